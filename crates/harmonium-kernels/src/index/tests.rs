use super::*;
use crate::arbitrary::{DENSITIES, bits, large, sizes};
use crate::tables::FIELD_CHUNK;

/// Whether `words` hold what `get` says, `chunk` positions to a word, and nothing else.
fn check(words: &[u64], n: usize, n_bits: usize, chunk: usize, get: impl Fn(usize, usize) -> bool) {
    assert_eq!(words.len(), n_bits.div_ceil(chunk) * n);
    for (at, &word) in words.iter().enumerate() {
        let (k, r) = (at / n, at % n);
        let here = (k * chunk..n_bits.min((k + 1) * chunk)).enumerate();
        let expected = here.fold(0, |w, (bit, i)| w | u64::from(get(r, i)) << bit);
        assert_eq!(word, expected, "chunk {k} of sample {r}");
    }
}

fn shapes() -> impl Iterator<Item = (usize, usize)> {
    let all = sizes().into_iter();
    all.flat_map(|n| [(n, 0), (0, n), (1, n), (n, 3), (9, n), (n, 67)]).chain(large())
}

/// Filled again and again, so that nothing may be left of what was there before.
#[test]
fn words_along_rows_hold_the_bits() {
    let mut words = Words::default();
    for (n_rows, n_columns) in shapes() {
        for density in DENSITIES {
            let matrix = bits(n_rows, n_columns, density, 3);
            words.fill_rows(&[&matrix]);
            check(words.as_slice(), n_rows, n_columns, CHUNK, |r, i| matrix.get(r, i));
        }
    }
}

#[test]
fn words_down_columns_hold_the_bits() {
    let mut words = Words::default();
    for (n_rows, n_columns) in shapes() {
        for (density, chunk) in DENSITIES.into_iter().zip([CHUNK, FIELD_CHUNK, 64, 4]) {
            let matrix = bits(n_rows, n_columns, density.max(0.3), 4);
            words.fill_columns(&matrix, chunk);
            check(words.as_slice(), n_columns, n_rows, chunk, |c, r| matrix.get(r, c));
        }
    }
}

#[test]
fn stacked_matrices_are_one() {
    let mut words = Words::default();
    for n_columns in sizes() {
        let parts = [(3, 1), (0, 2), (5, 3)].map(|(n, seed)| bits(n, n_columns, 0.5, seed));
        words.fill_rows(&[&parts[0], &parts[1], &parts[2]]);
        let get = |r: usize, i| if r < 3 { parts[0].get(r, i) } else { parts[2].get(r - 3, i) };
        check(words.as_slice(), 8, n_columns, CHUNK, get);
    }
    words.fill_rows(&[]);
    assert!(words.as_slice().is_empty());
}

#[test]
#[should_panic(expected = "stacked rows have one width")]
fn stacked_matrices_of_two_widths_are_refused() {
    Words::default().fill_rows(&[&BitMatrix::zeros(1, 40), &BitMatrix::zeros(1, 41)]);
}

#[test]
#[should_panic(expected = "a word holds at most 64 rows")]
fn chunks_beyond_a_word_are_refused() {
    Words::default().fill_columns(&BitMatrix::zeros(1, 1), 68);
}

/// Sparse samples are listed, dense ones are not, and both forms give the same sums.
#[test]
fn samples_give_the_same_sums_in_either_form() {
    use crate::line::{Line, Quantum, Wide};
    use crate::tables::{Tables, add_quantised, add_quantised_listed};
    let (n, n_columns) = (30, 333);
    let weights: Vec<Quantum> =
        (0..n_columns).map(|i| Line([7 - i16::from(i % 13 == 0); 32])).collect();
    let mut samples = Samples::default();
    for (density, listed) in [(0.0, true), (0.02, true), (0.5, false), (1.0, false)] {
        let (a, b) = (bits(n - 1, n_columns, density, 1), bits(1, n_columns, density, 2));
        samples.fill(&[&a, &b]);
        assert_eq!(samples.n_rows(), n);
        let (mut theta, unit) = (vec![Wide::ZERO; n], [Line([1.0; 32]); 2]);
        let row = |i: usize| &weights[i].0;
        match samples.form() {
            Form::Lists(lists) => {
                assert!(listed, "density {density}");
                add_quantised_listed(lists, n_columns, row, &unit, &mut theta);
            }
            Form::Words(words) => {
                assert!(!listed, "density {density}");
                let (sums, tables) = (&mut vec![Quantum::ZERO; n], &mut Tables::default());
                add_quantised(words, n_columns, row, &unit, &mut theta, sums, tables);
            }
        }
        for (r, theta) in theta.iter().enumerate() {
            let on = |i: usize| if r < n - 1 { a.get(r, i) } else { b.get(0, i) };
            let sum: i16 = (0..n_columns).filter(|&i| on(i)).map(|i| weights[i].0[0]).sum();
            assert_eq!(theta.0, [f32::from(sum); 32], "density {density}, sample {r}");
        }
    }
}

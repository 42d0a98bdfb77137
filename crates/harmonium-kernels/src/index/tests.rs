use super::*;
use crate::arbitrary::{DENSITIES, KEPT, bits, keep, large, sizes};
use crate::tables::COLUMN_CHUNK;

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

/// Whether `words` hold the used columns of each block, [`CHUNK`] to a word, and nothing else.
fn check_used(words: &[u64], used: &Used, bits: &BitMatrix) {
    let (n, n_columns) = (bits.n_rows(), bits.n_columns());
    assert_eq!(used.n_blocks(), n_columns.div_ceil(BLOCK));
    let mut words = words;
    for (block, first) in (0..n_columns).step_by(BLOCK).enumerate() {
        let all = first..n_columns.min(first + BLOCK);
        let columns: Vec<usize> = all.filter(|&i| (0..n).any(|r| bits.get(r, i))).collect();
        assert!(used.block(block).iter().map(|&i| i as usize).eq(columns.iter().copied()));
        for chunk in columns.chunks(CHUNK) {
            let (now, rest) = words.split_at(n);
            words = rest;
            for (r, &word) in now.iter().enumerate() {
                let here = chunk.iter().enumerate();
                let expected = here.fold(0, |w, (bit, &i)| w | u64::from(bits.get(r, i)) << bit);
                assert_eq!(word, expected, "columns {chunk:?} of sample {r}");
            }
        }
    }
    assert!(words.is_empty(), "no word is left over");
}

impl Samples {
    /// Samples as index words, however few their bits are.
    pub(crate) fn unlisted(parts: &[&BitMatrix]) -> Self {
        let mut samples = Self::default();
        samples.used.mark(parts);
        samples.used.number();
        samples.words.fill_used(parts, &samples.used);
        samples.n = parts.iter().map(|p| p.n_rows()).sum();
        samples
    }

    /// The index words, and which columns they are of.
    pub(crate) fn words(&self) -> (&[u64], &Used) {
        (self.words.as_slice(), &self.used)
    }
}

fn naive_extract(word: u64, mask: u64) -> u64 {
    let kept = (0..64).filter(|bit| mask >> bit & 1 == 1);
    kept.enumerate().fold(0, |out, (at, bit)| out | (word >> bit & 1) << at)
}

#[test]
fn extracted_bits_stand_next_to_each_other() {
    let runs = (0..64)
        .flat_map(|start| (1..=64 - start).map(move |length| (u64::MAX >> (64 - length)) << start));
    let halves = [0x5555_5555_5555_5555, 0xffff_ffff_0000_0000, 0xff00_ff00_ff00_ff00];
    let random = bits(300, 128, 0.5, 1);
    // Few and many bits, runs of all lengths.
    let mixed = (0..300).flat_map(|r| {
        let (a, b) = (random.row(r)[0], random.row(r)[1]);
        [a, a & b, a | b, a & b & a.rotate_left(17), a | b | b.rotate_left(9), a | 1 << 63]
    });
    let masks = runs.chain(halves).chain(mixed).flat_map(|mask| [mask, !mask]);
    for mask in masks.chain([0, u64::MAX]) {
        for word in [0, u64::MAX, mask, !mask, 1, 1 << 63, 0x0123_4567_89ab_cdef, random.row(7)[1]]
        {
            let found = extract(word, mask);
            assert_eq!(found, naive_extract(word, mask), "{word:#x} at {mask:#x}");
        }
    }
}

/// Filled again and again, so that nothing may be left of what was there before.
#[test]
fn words_along_rows_hold_the_bits_of_used_columns() {
    let (mut words, mut used) = (Words::default(), Used::default());
    for (n_rows, n_columns) in shapes().chain([(3, 963), (2, 1281)]) {
        for density in DENSITIES {
            let all = bits(n_rows, n_columns, density, 3);
            for kept in KEPT {
                let matrix = keep(&all, kept);
                let counts = used.mark(&[&matrix]);
                used.number();
                assert_eq!(counts.ones as u64, matrix.count_ones());
                assert_eq!(counts.used, used.columns.len());
                words.fill_used(&[&matrix], &used);
                check_used(words.as_slice(), &used, &matrix);
            }
        }
    }
}

#[test]
fn words_down_columns_hold_the_bits() {
    let mut words = Words::default();
    for (n_rows, n_columns) in shapes() {
        for (density, chunk) in DENSITIES.into_iter().zip([CHUNK, COLUMN_CHUNK, 64, 4]) {
            let matrix = bits(n_rows, n_columns, density.max(0.3), 4);
            words.fill_columns(&matrix, chunk);
            check(words.as_slice(), n_columns, n_rows, chunk, |c, r| matrix.get(r, c));
        }
    }
}

#[test]
fn stacked_matrices_are_one() {
    for n_columns in sizes().into_iter().chain([321, 700]) {
        let parts = [(3, 1), (0, 2), (5, 3)].map(|(n, seed)| bits(n, n_columns, 0.4, seed));
        let mut stacked = BitMatrix::zeros(0, n_columns);
        parts.iter().for_each(|p| (0..p.n_rows()).for_each(|r| stacked.push_words(p.row(r))));
        let samples = Samples::unlisted(&[&parts[0], &parts[1], &parts[2]]);
        assert_eq!(samples.n_rows(), 8);
        check_used(samples.words().0, samples.words().1, &stacked);
    }
    let none = Samples::unlisted(&[]);
    assert!(none.words().0.is_empty() && none.words().1.n_blocks() == 0);
    assert_eq!(Used::default().n_blocks(), 0);
}

#[test]
#[should_panic(expected = "stacked rows have one width")]
fn stacked_matrices_of_two_widths_are_refused() {
    let parts = [&BitMatrix::zeros(1, 40), &BitMatrix::zeros(1, 41)];
    Samples::default().fill(&parts, Entries::Single);
}

#[test]
fn columns_that_are_kept_stay_in_order() {
    let mut words = Words::default();
    for (n_rows, n_columns) in shapes() {
        let matrix = bits(n_rows, n_columns, 0.5, 6);
        for (kept, chunk) in KEPT.into_iter().zip([CHUNK, COLUMN_CHUNK, 64, 4, CHUNK, COLUMN_CHUNK])
        {
            let columns: Vec<u32> = (0..).take(n_columns).filter(|&c| kept(c as usize)).collect();
            words.fill_columns(&matrix, chunk);
            words.keep_columns(&columns);
            let get = |c: usize, r| matrix.get(r, columns[c] as usize);
            check(words.as_slice(), columns.len(), n_rows, chunk, get);
            let counts = counts_of(&words).into_iter();
            let expected =
                (0..columns.len()).map(|c| (0..n_rows).map(|r| u32::from(get(c, r))).sum::<u32>());
            assert!(counts.eq(expected), "{n_rows} rows, {n_columns} columns");
            words.keep_columns(&[]);
            assert!(words.as_slice().is_empty() && counts_of(&words).is_empty());
        }
    }
}

#[test]
fn columns_that_fall_or_do_not_exist_are_refused() {
    let refused = |columns: &[u32]| {
        let keep = || {
            let mut words = Words::default();
            words.fill_columns(&BitMatrix::zeros(100, 3), CHUNK);
            words.keep_columns(columns);
        };
        std::panic::catch_unwind(keep).is_err()
    };
    assert!(!refused(&[]) && !refused(&[0, 2]) && !refused(&[0, 1, 2]));
    assert!(refused(&[3]) && refused(&[0, 5]) && refused(&[2, 0]) && refused(&[1, 1]));
}

fn counts_of(words: &Words) -> Vec<u32> {
    let mut counts = Vec::new();
    words.each_count(|first, some| {
        assert_eq!(first, counts.len());
        counts.extend_from_slice(some);
    });
    counts
}

#[test]
fn column_counts_are_those_of_the_matrix() {
    let mut words = Words::default();
    for (n_rows, n_columns) in shapes() {
        for (density, chunk) in DENSITIES.into_iter().zip([CHUNK, COLUMN_CHUNK, 64, 4]) {
            let matrix = bits(n_rows, n_columns, density, 5);
            let mut counts = vec![0; n_columns];
            matrix.add_column_counts(&mut counts);
            words.fill_columns(&matrix, chunk);
            assert_eq!(counts_of(&words), counts, "{n_rows} rows, {n_columns} columns");
        }
    }
}

#[test]
#[should_panic(expected = "a word holds at most 64 rows")]
fn chunks_beyond_a_word_are_refused() {
    Words::default().fill_columns(&BitMatrix::zeros(1, 1), 68);
}

/// Few samples are listed, many sparse ones are listed by pairs, dense ones go through tables; all
/// forms give the same sums.
#[test]
fn samples_give_the_same_sums_in_any_form() {
    use crate::line::{Line, Quantum, Wide};
    use crate::lists::add_quantised_listed;
    use crate::pairs::{PairSums, add_quantised_pairs};
    use crate::tables::{Tables, Tiles, add_quantised};
    let n_columns = 333;
    let weights: Vec<Quantum> =
        (0..n_columns).map(|i| Line([7 - i16::from(i % 13 == 0); 32])).collect();
    let mut samples = Samples::default();
    let cases = [(0.0, 30, "tables"), (0.02, 2, "lists"), (0.1, 60, "pairs"), (0.5, 60, "tables")];
    for (density, n, expected) in cases.into_iter().chain([(1.0, 60, "tables")]) {
        for (k, kept) in KEPT.into_iter().enumerate() {
            let parts = [(n - 1, 1), (1, 2)].map(|(n, seed)| bits(n, n_columns, density, seed));
            let [a, b] = parts.map(|part| keep(&part, kept));
            samples.fill(&[&a, &b], Entries::Quantised);
            assert_eq!(samples.n_rows(), n);
            let (mut theta, unit) = (vec![Wide::ZERO; n], [1.0; 2]);
            let (row, sums) = (|i: usize| &weights[i].0, &mut vec![Quantum::ZERO; n]);
            let out = Tiles { theta: &mut theta, start: None, n_tiles: 1 };
            let form = match samples.form() {
                Form::Lists(lists) => {
                    add_quantised_listed(lists, n_columns, row, &unit, out.theta);
                    "lists"
                }
                Form::Words(words, used) => {
                    let tables = &mut Tables::default();
                    add_quantised(words, used, |_, i| row(i), &unit, out, sums, tables);
                    "tables"
                }
                Form::Pairs(pairs) => {
                    let of_strip = &mut PairSums::default();
                    let rows = |_: usize, i: usize| &weights[i..];
                    add_quantised_pairs(pairs, n_columns, rows, &unit, out, sums, of_strip);
                    "pairs"
                }
            };
            // Where columns are left out, tables pass over them.
            assert!(k > 0 || form == expected, "{n} samples of density {density}: {form}");
            for (r, theta) in theta.iter().enumerate() {
                let on = |i: usize| if r < n - 1 { a.get(r, i) } else { b.get(0, i) };
                let sum: i16 = (0..n_columns).filter(|&i| on(i)).map(|i| weights[i].0[0]).sum();
                assert_eq!(theta.0, [f32::from(sum); 32], "density {density}, sample {r}");
            }
        }
    }
}

/// A few dense samples add pairs of quantised weights, and rows of single precision as they are.
#[test]
fn the_form_depends_on_the_precision() {
    let some = bits(10, 500, 0.27, 3);
    let mut samples = Samples::default();
    samples.fill(&[&some], Entries::Quantised);
    assert!(matches!(samples.form(), Form::Pairs(_)));
    samples.fill(&[&some], Entries::Single);
    assert!(matches!(samples.form(), Form::Lists(_)));
}

#[test]
fn common_rows_are_counted() {
    for (n, n_rows) in shapes() {
        for density in [0.1, 0.7] {
            let (a, b) = (bits(n_rows, n, density, 1), bits(n_rows, 2 * n + 3, density, 2));
            let (mut of_a, mut of_b) = (Words::default(), Words::default());
            of_a.fill_columns(&a, 64);
            of_b.fill_columns(&b, 64);
            let mut counts = vec![99; n];
            for c in [0, n / 2, n.saturating_sub(1)].into_iter().take(n) {
                of_a.count_common(c, &of_b, 3, &mut counts);
                for (j, &count) in counts.iter().enumerate() {
                    let common = (0..n_rows).filter(|&r| a.get(r, c) && b.get(r, j + 3)).count();
                    assert_eq!(count as usize, common, "{n_rows} rows, columns {c} and {j}");
                }
            }
        }
    }
}

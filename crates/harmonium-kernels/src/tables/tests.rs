use super::fields::{subtract_few_in, sum_fields_in};
use super::*;
use crate::arbitrary::{
    DENSITIES, KEPT, assert_same, bits, keep, large, lines, real, shapes, sizes,
};
use crate::bits::BitMatrix;
use crate::index::{Samples, Words};
use crate::line::{Fields, Sums};
use crate::lists::{
    Lists, add_quantised_listed, add_quantised_listed_portable, add_single_listed,
    add_single_listed_portable,
};
use crate::pairs::{
    PairSums, Pairs, add_quantised_pairs, add_quantised_pairs_in, add_single_pairs,
    add_single_pairs_in,
};

/// Half a unit in the last place: what one rounding costs at most, relatively.
const ROUNDING: f64 = 1.0 / 16_777_216.0;

/// Samples over all columns, and others over some of them: which ones depends on the shape.
fn samples(n: usize, n_columns: usize, density: f64) -> [BitMatrix; 2] {
    let all = bits(n, n_columns, density, 1);
    let some = keep(&all, KEPT[1 + (n + n_columns) % (KEPT.len() - 1)]);
    [all, some]
}

fn columns_of(bits: &BitMatrix, chunk: usize) -> Words {
    let mut words = Words::default();
    words.fill_columns(bits, chunk);
    words
}

fn lists_of(bits: &BitMatrix) -> Lists {
    let mut lists = Lists::default();
    let ones = usize::try_from(bits.count_ones()).unwrap();
    lists.fill((0..bits.n_rows()).map(|r| bits.row(r)), (bits.n_rows(), bits.n_columns()), ones);
    lists
}

fn pairs_of(bits: &BitMatrix) -> Pairs {
    let mut pairs = Pairs::default();
    let rows = (0..bits.n_rows()).map(|r| bits.row(r));
    let mask = crate::pairs::tests::mask_of(bits);
    pairs.fill(&rows, bits.n_columns(), &mask, crate::index::one_by_one);
    pairs
}

#[expect(clippy::cast_possible_truncation, reason = "at most 102 in size")]
fn quantum(u: f64) -> i16 {
    // 320 of them stay inside 16 bits.
    (204.0 * u - 102.0) as i16
}

/// Two levels, each from 0 to [`LEVELS`], in one word.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 13 * 13")]
fn field(u: f64) -> u16 {
    let levels = LEVELS as u16 + 1;
    let both = (u * f64::from(levels * levels)) as u16;
    (both % levels) | ((both / levels) << 8)
}

/// The sum of the chosen rows, the sum of their sizes, both in double precision.
fn chosen(bits: &BitMatrix, r: usize, row: impl Fn(usize) -> f32) -> (f64, f64) {
    let (mut sum, mut size) = (0.0, 0.0);
    for i in (0..bits.n_columns()).filter(|&i| bits.get(r, i)) {
        sum += f64::from(row(i));
        size += f64::from(row(i)).abs();
    }
    (sum, size)
}

/// Compares with `before + gain * Σ` where every term passes through at most `roundings`.
fn assert_sums(
    bits: &BitMatrix,
    weights: &[Wide],
    (gain, roundings): (f32, usize),
    before: &[Wide],
    after: &[Wide],
) {
    for r in 0..bits.n_rows() {
        for l in 0..TILE {
            let (old, new) = (f64::from(before[r].0[l]), f64::from(after[r].0[l]));
            let (sum, size) = chosen(bits, r, |i| weights[i].0[l]);
            let expected = old + f64::from(gain) * sum;
            let bound = roundings as f64 * ROUNDING * (old.abs() + f64::from(gain).abs() * size);
            assert!(
                (new - expected).abs() <= bound,
                "{} rows, sample {r} of {}, lane {l}: {new} is not {expected}",
                weights.len(),
                bits.n_rows()
            );
        }
    }
}

/// Tables as a machine has them whose nearest cache holds all of them, or does not.
fn both_tables() -> [Tables<f32, HALF>; 2] {
    [true, false].map(|fit| Tables { fit, ..Tables::default() })
}

#[test]
fn single_sums_equal_the_sums_of_the_chosen_rows() {
    let [tables, others] = &mut both_tables();
    for (n_rows, n) in shapes() {
        for density in DENSITIES {
            let weights: Vec<Wide> = lines(n_rows, 4, real);
            let before: Vec<Wide> = lines(n, 3, real);
            let (row, gain) = (|i: usize| &weights[i].0, 0.7);
            for bits in samples(n, n_rows, density) {
                let (samples, lists) = (Samples::unlisted(&[&bits]), lists_of(&bits));
                let (words, used) = samples.words();
                let (mut theta, mut twin) = (before.clone(), before.clone());
                add_single(words, used, row, gain, &mut theta, tables);
                add_single_in::<PORTABLE, _>(words, used, row, gain, &mut twin, tables);
                assert_same(&theta, &twin, "add_single");
                twin.clone_from(&before);
                add_single(words, used, row, gain, &mut twin, others);
                assert_same(&theta, &twin, "add_single in another cache");
                // A multiplication, two additions inside the table, and one per table; every block
                // may have one table more that is not full.
                let roundings = 4 + n_rows.div_ceil(GROUP) + n_rows / BLOCK;
                assert_sums(&bits, &weights, (gain, roundings), &before, &theta);

                let (mut theta, mut twin) = (before.clone(), before.clone());
                let (pairs, sums) = (pairs_of(&bits), &mut PairSums::default());
                add_single_pairs(&pairs, n_rows, row, gain, &mut theta, sums);
                add_single_pairs_in::<PORTABLE, _>(&pairs, n_rows, row, gain, &mut twin, sums);
                assert_same(&theta, &twin, "add_single_pairs");
                // A multiplication, an addition inside the pair and one for each pair.
                let roundings = 2 + n_rows.div_ceil(2);
                assert_sums(&bits, &weights, (gain, roundings), &before, &theta);

                let (mut theta, mut twin) = (before.clone(), before.clone());
                add_single_listed(&lists, n_rows, row, gain, &mut theta);
                add_single_listed_portable(&lists, n_rows, row, gain, &mut twin);
                assert_same(&theta, &twin, "add_single_listed");
                // Half of a strip of 128 rows in each of two sums, and one for each strip.
                let roundings = 66 + 3 * n_rows.div_ceil(BLOCK);
                assert_sums(&bits, &weights, (gain, roundings), &before, &theta);
            }
        }
    }
}

/// `before`, and for each block what its unit counts of the sum, which is exact.
fn naive_quantised(
    bits: &BitMatrix,
    weights: &[Quantum],
    unit: &[f32],
    before: &[Wide],
) -> Vec<Wide> {
    let (n_rows, mut expected) = (weights.len(), before.to_vec());
    for (r, expected) in expected.iter_mut().enumerate() {
        for (block, &unit) in (0..n_rows).step_by(BLOCK).zip(unit) {
            let mut sum = [0_i32; TILE];
            for i in (block..n_rows.min(block + BLOCK)).filter(|&i| bits.get(r, i)) {
                for l in 0..TILE {
                    sum[l] += i32::from(weights[i].0[l]);
                }
            }
            for l in 0..TILE {
                let sum = f32::from(i16::try_from(sum[l]).expect("no block overflows"));
                expected.0[l] = sum.mul_add(unit, expected.0[l]);
            }
        }
    }
    expected
}

/// Tiles of all samples, one after the other.
fn tiles<'a>(theta: &'a mut [Wide], start: Option<&'a [Wide]>, n_tiles: usize) -> Tiles<'a> {
    Tiles { theta, start, n_tiles }
}

/// One tile and two, as panels have them; three, as nobody asks for, go two and one.
#[test]
fn quantised_sums_are_exact() {
    let tables = &mut Tables::default();
    for (k, (n_rows, n)) in shapes().into_iter().enumerate() {
        for (density, n_tiles) in DENSITIES.into_iter().zip((k..).map(|k| 1 + k % 3)) {
            let weights: Vec<Vec<Quantum>> =
                (0..n_tiles as u64).map(|t| lines(n_rows, 2 + 10 * t, quantum)).collect();
            let unit: Vec<f32> =
                lines::<_, 1>(n_rows.div_ceil(BLOCK), 4, real).iter().map(|x| x.0[0]).collect();
            let before: Vec<Wide> = lines(n_tiles * n, 3, real);
            let row = |t: usize, i: usize| &weights[t][i].0;
            let rows = |t: usize, i: usize| &weights[t][i..];
            let start: Vec<Wide> = lines(n_tiles, 9, real);
            for bits in samples(n, n_rows, density) {
                let expected_from = |before: &dyn Fn(usize) -> Vec<Wide>| -> Vec<Wide> {
                    let of_tile = |t: usize| naive_quantised(&bits, &weights[t], &unit, &before(t));
                    (0..n_tiles).flat_map(of_tile).collect()
                };
                let expected = expected_from(&|t| before[t * n..(t + 1) * n].to_vec());
                let started = expected_from(&|t| vec![start[t]; n]);
                let (samples, pairs) = (Samples::unlisted(&[&bits]), pairs_of(&bits));
                let (words, used) = samples.words();
                let (sums, of_strip) =
                    (&mut vec![Line([77; TILE]); n_tiles * n + 1], &mut PairSums::default());
                for (start, expected) in [(None, &expected), (Some(&start[..]), &started)] {
                    let check = |what: &str, add: &mut dyn FnMut(Tiles<'_>)| {
                        let mut theta = before.clone();
                        add(tiles(&mut theta, start, n_tiles));
                        assert_same(&theta, expected, what);
                    };
                    check("add_quantised", &mut |out| {
                        add_quantised(words, used, row, &unit, out, sums, tables);
                    });
                    check("add_quantised, portable", &mut |out| {
                        add_quantised_in::<PORTABLE, _>(words, used, row, &unit, out, sums, tables);
                    });
                    check("add_quantised_pairs", &mut |out| {
                        add_quantised_pairs(&pairs, n_rows, rows, &unit, out, sums, of_strip);
                    });
                    check("add_quantised_pairs, portable", &mut |out| {
                        add_quantised_pairs_in::<PORTABLE, _>(
                            &pairs, n_rows, rows, &unit, out, sums, of_strip,
                        );
                    });
                }
                let (lists, row) = (lists_of(&bits), |i: usize| row(0, i));
                for (what, add) in [("fast", true), ("portable", false)] {
                    let mut theta = before[..n].to_vec();
                    if add {
                        add_quantised_listed(&lists, n_rows, row, &unit, &mut theta);
                    } else {
                        add_quantised_listed_portable(&lists, n_rows, row, &unit, &mut theta);
                    }
                    assert_same(&theta, &expected[..n], what);
                }
            }
        }
    }
}

/// Rows of weights that no sample has are never read.
#[test]
fn unused_rows_are_left_alone() {
    let (n, n_rows) = (3, 1000);
    let (singles, quanta) = (lines::<f32, TILE>(n_rows, 2, real), lines(n_rows, 2, quantum));
    for kept in KEPT {
        let bits = keep(&bits(n, n_rows, 1.0, 1), kept);
        let samples = Samples::unlisted(&[&bits]);
        let (words, used) = samples.words();
        let checked = |i: usize| {
            assert!(kept(i), "row {i} is not used");
            i
        };
        let (theta, unit) = (&mut vec![Wide::ZERO; 2 * n], vec![1.0; 4]);
        let row = |i: usize| &singles[checked(i)].0;
        add_single(words, used, row, 1.0, &mut theta[..n], &mut Tables::default());
        let row = |_: usize, i: usize| &quanta[checked(i)].0;
        let (sums, out) = (&mut vec![Quantum::ZERO; 2 * n], tiles(theta, None, 2));
        add_quantised(words, used, row, &unit, out, sums, &mut Tables::default());
    }
}

/// Field sums as they are defined, for one side.
fn naive_fields(bits: &BitMatrix, q: &[Fields], sign: i64, sums: &mut [[i64; 2 * TILE]]) {
    for r in 0..bits.n_rows() {
        for i in (0..bits.n_columns()).filter(|&i| bits.get(r, i)) {
            for l in 0..TILE {
                sums[i][l] += sign * i64::from(q[r].0[l] & 0xff);
                sums[i][l + TILE] += sign * i64::from(q[r].0[l] >> 8);
            }
        }
    }
}

fn assert_fields(sums: &[Sums], expected: &[[i64; 2 * TILE]], what: &str) {
    for (i, (sums, expected)) in sums.iter().zip(expected).enumerate() {
        for l in 0..2 * TILE {
            assert_eq!(i64::from(sums.0[l]), expected[l], "{what}: row {i}, column {l}");
        }
    }
}

/// How fields are summed, and what that is called.
type Twin = (fn(&[u64], &[Fields], Sign, bool, &mut [Sums], &mut Tables<u16, TILE>), &'static str);

#[test]
fn field_sums_are_exact_with_every_sign() {
    let twins: [Twin; 2] = [(sum_fields, "fast"), (sum_fields_in::<PORTABLE>, "portable")];
    // Up to 2730 samples of the highest level stay inside 16 bits.
    let shapes = shapes().into_iter().chain([(3, 2730), (4096, 10)]);
    for (n, n_samples) in shapes {
        for density in DENSITIES {
            let first = bits(n_samples, n, density, 1);
            let second = bits(n_samples / 3, n, 0.5, 2);
            let q: Vec<Fields> = lines(n_samples, 3, field);
            let mut expected = vec![[0; 2 * TILE]; n];
            naive_fields(&first, &q, 1, &mut expected);
            let mut minus = expected.clone();
            naive_fields(&second, &q, -1, &mut minus);
            let mut twice = minus.clone();
            naive_fields(&second, &q, 1, &mut twice);
            let (a, b) = (columns_of(&first, COLUMN_CHUNK), columns_of(&second, COLUMN_CHUNK));
            let few = &q[..n_samples / 3];
            for (sum, name) in twins {
                // Sums that go on come after some that are not the last.
                for (n_sums, expected) in [&expected, &minus, &twice].into_iter().enumerate() {
                    let tables = &mut Tables::default();
                    let sums = &mut vec![Line([99; 2 * TILE]); n];
                    sum(a.as_slice(), &q, Sign::Start, n_sums == 0, sums, tables);
                    for (k, sign) in [Sign::Minus, Sign::Plus].into_iter().enumerate().take(n_sums)
                    {
                        sum(b.as_slice(), few, sign, k + 1 == n_sums, sums, tables);
                    }
                    assert_fields(sums, expected, name);
                }
            }
        }
    }
}

#[test]
fn the_highest_levels_stay_apart() {
    let full = u16::try_from(LEVELS * 257).expect("two bytes");
    for n in sizes().into_iter().chain([2730]) {
        let q = vec![Line([full; TILE]); n];
        let words = columns_of(&bits(n, 2, 1.0, 0), COLUMN_CHUNK);
        let sums = &mut vec![Sums::ZERO; 2];
        sum_fields(words.as_slice(), &q, Sign::Start, true, sums, &mut Tables::default());
        let expected = i16::try_from(n * LEVELS as usize).expect("2730 * 12 < 32768");
        assert!(sums.iter().all(|s| s.0 == [expected; 2 * TILE]), "{n} samples");
    }
}

#[test]
fn a_sum_down_the_columns_equals_the_sum_of_the_chosen_rows() {
    for (n, n_samples) in shapes() {
        for (density, half) in DENSITIES.into_iter().zip([0, 1, 1, 0]) {
            let (bits, starts) = (bits(n_samples, n, density, 1), (n + half) % 2 == 0);
            let p: Vec<Wide> = lines(n_samples, 2, real);
            let before: Vec<Row> = lines(n, 3, real);
            let (mut sums, mut twin) = (before.clone(), before.clone());
            let (words, row) = (columns_of(&bits, COLUMN_CHUNK), |r: usize| &p[r].0);
            let (words, factor, [tables, others]) = (words.as_slice(), -0.7, &mut both_tables());
            sum_single(words, n_samples, row, factor, half, starts, &mut sums, tables);
            sum_single_in::<PORTABLE, _>(
                words, n_samples, row, factor, half, starts, &mut twin, tables,
            );
            assert_same(&sums, &twin, "sum_single");
            twin.clone_from(&before);
            sum_single(words, n_samples, row, factor, half, starts, &mut twin, others);
            assert_same(&sums, &twin, "sum_single in another cache");
            let mut transposed = BitMatrix::zeros(n, n_samples);
            for r in 0..n_samples {
                (0..n).for_each(|i| transposed.set(i, r, bits.get(r, i)));
            }
            let roundings = (5 + n_samples.div_ceil(GROUP)) as f64;
            for (i, (sums, before)) in sums.iter().zip(&before).enumerate() {
                for l in 0..2 * TILE {
                    if l / TILE != half {
                        assert_eq!(sums.0[l], before.0[l], "the other parts are left alone");
                        continue;
                    }
                    let (sum, size) = chosen(&transposed, i, |r| p[r].0[l % TILE]);
                    let (sum, size) = (f64::from(factor) * sum, f64::from(factor).abs() * size);
                    let old = if starts { 0.0 } else { f64::from(before.0[l]) };
                    let error = (f64::from(sums.0[l]) - old - sum).abs();
                    let bound = roundings * ROUNDING * (old.abs() + size);
                    assert!(error <= bound, "{n_samples} samples, row {i}");
                }
            }
        }
    }
}

/// Without a reference every pair of sizes is affordable.
#[test]
fn fast_and_portable_agree_to_the_bit_at_every_pair_of_sizes() {
    let most = *sizes().last().expect("there are sizes");
    let weights: Vec<Wide> = lines(most, 2, real);
    let quanta: Vec<Quantum> = lines(2 * most, 2, quantum);
    let fields: Vec<Fields> = lines(most, 3, field);
    let unit = [0.37];
    let start: Vec<Wide> = lines(2 * most, 5, real);
    let (quantised, small) = (&mut Tables::default(), &mut Tables::default());
    let [single, others] = &mut both_tables();
    let mut sums = vec![Quantum::ZERO; 2 * most];
    for n_rows in sizes() {
        let all = bits(most, n_rows, 0.5, n_rows as u64);
        for n in sizes() {
            let mut bits = BitMatrix::zeros(0, n_rows);
            (0..n).for_each(|r| bits.push_words(all.row(r)));
            let samples = Samples::unlisted(&[&bits]);
            let (words, used) = samples.words();
            let (mut a, mut b) = (start[..2 * n].to_vec(), start[..2 * n].to_vec());
            add_single(words, used, |i| &weights[i].0, 1.0, &mut a[..n], single);
            let row = |i: usize| &weights[i].0;
            add_single_in::<PORTABLE, _>(words, used, row, 1.0, &mut b[..n], single);
            assert_same(&a, &b, "single precision");
            b[..n].copy_from_slice(&start[..n]);
            add_single(words, used, row, 1.0, &mut b[..n], others);
            let row = |t: usize, i: usize| &quanta[t * most + i].0;
            let out = tiles(&mut a, None, 2);
            add_quantised(words, used, row, &unit, out, &mut sums, quantised);
            let out = tiles(&mut b, None, 2);
            add_quantised_in::<PORTABLE, _>(words, used, row, &unit, out, &mut sums, quantised);
            assert_same(&a, &b, "tables");
            let words = columns_of(&bits, COLUMN_CHUNK);
            let (mut a, mut b) = (vec![Sums::ZERO; n_rows], vec![Sums::ZERO; n_rows]);
            sum_fields(words.as_slice(), &fields[..n], Sign::Start, false, &mut a, small);
            sum_fields_in::<PORTABLE>(
                words.as_slice(),
                &fields[..n],
                Sign::Start,
                false,
                &mut b,
                small,
            );
            assert_eq!(a, b, "{n_rows} rows, {n} samples");
        }
    }
}

#[test]
fn lists_hold_the_set_bits_of_each_block() {
    for (n_bits, n) in sizes().into_iter().map(|n| (n, 3)).chain(large()) {
        for density in DENSITIES {
            let bits = bits(n, n_bits, density, 7);
            let lists = lists_of(&bits);
            for (block, first) in (0..n_bits).step_by(BLOCK).enumerate() {
                for r in 0..n {
                    let expected = (first..n_bits.min(first + BLOCK)).filter(|&i| bits.get(r, i));
                    let found = lists.of(block, n, r, 0..5).iter().map(|&i| first + i as usize);
                    assert!(found.eq(expected), "{n_bits} bits, block {block}, sample {r}");
                }
            }
        }
    }
}

/// For few rows in one pass, for more in two; a side may have none.
#[test]
fn one_side_without_the_other_is_exact() {
    let counts = [0, 1, 4, 5, 6, 10, 13, 19, 20, 21, 61, 130];
    for (k, n) in [1, 2, 3, 31, 64, 65, 387, 1000].into_iter().enumerate() {
        for n_first in counts {
            for n_second in [n_first, counts[(k + n_first) % counts.len()]] {
                let (first, second) = (bits(n_first, n, 0.4, 1), bits(n_second, n, 0.7, 2));
                let q: [Vec<Fields>; 2] = [lines(n_first, 3, field), lines(n_second, 4, field)];
                let mut expected = vec![[0; 2 * TILE]; n];
                naive_fields(&first, &q[0], 1, &mut expected);
                naive_fields(&second, &q[1], -1, &mut expected);
                let words = [&first, &second].map(|bits| columns_of(bits, COLUMN_CHUNK));
                let (words, q) = (words.each_ref().map(Words::as_slice), [&q[0][..], &q[1]]);
                let (mut sums, tables) = (vec![Line([99; 2 * TILE]); n], &mut Tables::default());
                subtract_fields(words, q, &mut sums, tables);
                let what = format!("{n} columns, {n_first} and {n_second} rows");
                assert_fields(&sums, &expected, &what);
                if n_first.max(n_second) <= 20 && n_first.min(n_second) > 0 {
                    sums.fill(Line([98; 2 * TILE]));
                    subtract_few_in::<PORTABLE>(words, q, &mut sums, tables);
                    assert_fields(&sums, &expected, &what);
                }
            }
        }
    }
}

/// Whether `f` panics, quietly.
fn panics(f: impl FnOnce() + std::panic::UnwindSafe) -> bool {
    std::panic::catch_unwind(f).is_err()
}

#[test]
fn what_does_not_fit_is_refused() {
    const ROW: [f32; TILE] = [1.0; TILE];
    const QUANTUM: [i16; TILE] = [1; TILE];
    let single = |n_words: usize| {
        panics(move || {
            let (theta, tables) = (&mut [Wide::ZERO; 3], &mut Tables::default());
            let samples = Samples::unlisted(&[&bits(3, 41, 1.0, 1)]);
            let (words, used) = samples.words();
            add_single(&words[..n_words], used, |_| &ROW, 1.0, theta, tables);
        })
    };
    assert!(!single(6) && single(5));
    let quantised = |n_words: usize, n_units: usize, n_sums: usize| {
        panics(move || {
            let (theta, tables) = (&mut [Wide::ZERO; 6], &mut Tables::default());
            let (unit, sums) = (vec![0.0; n_units], &mut vec![Quantum::ZERO; n_sums]);
            let samples = Samples::unlisted(&[&bits(3, 321, 1.0, 1)]);
            let (words, used) = (&samples.words().0[..n_words], samples.words().1);
            let out = tiles(theta, None, 2);
            add_quantised(words, used, |_, _| &QUANTUM, &unit, out, sums, tables);
        })
    };
    assert!(!quantised(27, 2, 6));
    assert!(quantised(26, 2, 6) && quantised(27, 1, 6) && quantised(27, 2, 5));
    let listed = |n_samples: usize, n_units: usize| {
        panics(move || {
            let lists = lists_of(&bits(n_samples, 321, 0.5, 1));
            let unit = vec![0.0; n_units];
            add_quantised_listed(&lists, 321, |_| &QUANTUM, &unit, &mut [Wide::ZERO; 3]);
        })
    };
    assert!(!listed(3, 2) && listed(2, 2) && listed(3, 1));
    let paired = |n_samples: usize, n_units: usize, n_sums: usize| {
        panics(move || {
            let (pairs, theta) = (pairs_of(&bits(n_samples, 321, 0.5, 1)), &mut [Wide::ZERO; 5]);
            let (unit, sums) = (vec![0.0; n_units], &mut vec![Quantum::ZERO; n_sums]);
            let of_strip = &mut PairSums::default();
            let out = tiles(theta, None, 1);
            add_quantised_pairs(&pairs, 321, |_, _| &[], &unit, out, sums, of_strip);
        })
    };
    assert!(!paired(5, 2, 5) && paired(4, 2, 5) && paired(5, 1, 5) && paired(5, 2, 4));
    let fields = |n_words: usize| {
        panics(move || {
            let (sums, tables) = (&mut [Sums::ZERO; 3], &mut Tables::default());
            sum_fields(&vec![0; n_words], &[Fields::ZERO; 61], Sign::Start, true, sums, tables);
        })
    };
    assert!(!fields(6) && fields(5));
    let down = |n_words: usize, half| {
        panics(move || {
            let (sums, tables) = (&mut [Row::ZERO; 3], &mut Tables::default());
            sum_single(&vec![0; n_words], 61, |_| &ROW, 1.0, half, true, sums, tables);
        })
    };
    assert!(!down(6, 1) && down(5, 1) && down(6, 2));
}

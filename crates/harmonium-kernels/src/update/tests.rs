use super::*;
use crate::arbitrary::{assert_same, large, lines, real, sizes, small};
use crate::line::Line;

/// Half a unit in the last place: what one rounding costs at most, relatively.
const ROUNDING: f64 = 1.0 / 16_777_216.0;

/// Numbers of rows, over several blocks.
fn heights() -> Vec<usize> {
    let mut heights = sizes();
    heights.extend(large().iter().map(|&(n_rows, _)| n_rows));
    heights.dedup();
    heights
}

#[expect(clippy::cast_possible_truncation, reason = "whole numbers of 12 bits")]
fn whole(u: f64) -> i16 {
    (4096.0 * u - 2048.0) as i16
}

/// With and without each term of the rule.
const STEPS: [Step; 4] = [
    Step { rate: 0.05, momentum: 0.0, l1: 0.0, l2: 0.0 },
    Step { rate: 0.1, momentum: 0.9, l1: 0.0, l2: 0.3 },
    Step { rate: 0.1, momentum: 0.5, l1: 0.2, l2: 0.0 },
    Step { rate: 0.01, momentum: 0.9, l1: 0.03, l2: 0.02 },
];

/// Everything that one update reads.
struct Case<const K: usize> {
    step: Step,
    factors: Vec<[f32; K]>,
    columns: [Row; K],
    weights: Vec<Row>,
    velocity: Vec<Row>,
}

impl<const K: usize> Case<K> {
    fn new(n: usize, step: Step) -> Self {
        let factors: Vec<Line<f32, K>> = lines(n, 1, real);
        let columns: Vec<Row> = lines(K, 2, real);
        let mut weights: Vec<Row> = lines(n, 3, real);
        // A weight of zero has no sign to be punished for.
        weights.iter_mut().step_by(3).for_each(|row| row.0[5] = 0.0);
        Self {
            step,
            factors: factors.iter().map(|f| f.0).collect(),
            columns: std::array::from_fn(|k| columns[k]),
            weights,
            velocity: lines(n, 4, real),
        }
    }

    fn terms(&self) -> RankOne<'_, K> {
        RankOne { rows: &self.factors, columns: &self.columns }
    }

    /// The slope of an entry in double precision, and the sum of the sizes of its terms.
    fn slope(&self, terms: &[f64], i: usize, l: usize) -> (f64, f64) {
        let w = f64::from(self.weights[i].0[l]);
        let sign = if w == 0.0 { 0.0 } else { w.signum() };
        let product = |k: usize| f64::from(self.factors[i][k]) * f64::from(self.columns[k].0[l]);
        let penalties = [-f64::from(self.step.l2) * w, -f64::from(self.step.l1) * sign];
        let all = terms.iter().copied().chain((0..K).map(product)).chain(penalties);
        all.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()))
    }

    /// Whether an update is the formula, with at most as many roundings as there are operations.
    fn check(&self, terms: impl Fn(usize, usize) -> Vec<f64>, weights: &[Row], velocity: &[Row]) {
        let roundings = (K + 9) as f64;
        let (rate, momentum) = (f64::from(self.step.rate), f64::from(self.step.momentum));
        for i in 0..weights.len() {
            for l in 0..PANEL {
                let (g, size) = self.slope(&terms(i, l), i, l);
                let (w, old) = (f64::from(self.weights[i].0[l]), f64::from(self.velocity[i].0[l]));
                let v = momentum * old + rate * g;
                let bound = roundings * ROUNDING * (momentum * old.abs() + rate * size);
                assert!((f64::from(velocity[i].0[l]) - v).abs() <= bound, "velocity {i}, {l}");
                let bound = bound + ROUNDING * (w.abs() + v.abs());
                assert!((f64::from(weights[i].0[l]) - w - v).abs() <= bound, "weight {i}, {l}");
            }
        }
    }

    /// Updates in all ways and compares them with each other and with the formula.
    fn run<G: Gradient>(&self, gradient: &G, terms: impl Fn(usize, usize) -> Vec<f64> + Copy) {
        let (rows, step) = (self.terms(), self.step);
        let (mut w, mut v) = (self.weights.clone(), self.velocity.clone());
        update(gradient, rows, step, &mut w, &mut v);
        self.check(terms, &w, &v);
        let (mut w2, mut v2) = (self.weights.clone(), self.velocity.clone());
        update_portable(gradient, rows, step, &mut w2, &mut v2);
        assert_same(&w, &w2, "update: weights");
        assert_same(&v, &v2, "update: velocity");

        let (mut fast, row_scales) = quantised(&self.weights);
        let mut portable = fast.clone();
        let (mut w2, mut v2) = (self.weights.clone(), self.velocity.clone());
        update_quantised(gradient, rows, step, &mut w2, &mut v2, &mut fast, &row_scales);
        assert_same(&w, &w2, "update_quantised: weights");
        assert_same(&v, &v2, "update_quantised: velocity");
        check_copies(&w, &fast, &row_scales);
        let (mut w2, mut v2) = (self.weights.clone(), self.velocity.clone());
        update_quantised_portable(
            gradient,
            rows,
            step,
            &mut w2,
            &mut v2,
            &mut portable,
            &row_scales,
        );
        assert_same(&w, &w2, "update_quantised_portable: weights");
        assert_same(&v, &v2, "update_quantised_portable: velocity");
        assert_eq!(format!("{fast:?}"), format!("{portable:?}"), "copies");

        let squares = slope_squared(gradient, rows, step, &self.weights);
        let twin = slope_squared_portable(gradient, rows, step, &self.weights);
        assert_eq!(squares.to_bits(), twin.to_bits(), "slope_squared");
        let (mut expected, mut bound) = (0.0, 0.0);
        for i in 0..self.weights.len() {
            for l in 0..PANEL {
                let (g, size) = self.slope(&terms(i, l), i, l);
                expected += g * g;
                bound += size * size;
            }
        }
        // Twice the slope's, and a row of 64 squares in single precision.
        let bound = (2 * (K + 6) + 1 + 4 + HALF) as f64 * ROUNDING * bound;
        assert!((squares - expected).abs() <= bound, "slope_squared: {squares}, not {expected}");
    }
}

/// Fresh copies of a panel and the scales of its rows.
fn quantised(weights: &[Row]) -> (Copies, Vec<f32>) {
    let n = weights.len();
    let mut sums = vec![[0.0; 2]; n];
    add_row_sums(weights, &mut sums);
    let scales: Vec<f32> = sums.iter().map(|[up, down]| scale_for(up.max(*down))).collect();
    let mut copies = Copies::new(n);
    copies.quantise(weights);
    for tile in 0..n.div_ceil(TILE) {
        copies.quantise_backward(weights, tile, &scales);
    }
    (copies, scales)
}

/// A weight at a scale, and whether it fits.
#[expect(clippy::cast_possible_truncation, reason = "it was looked at")]
fn quantum(w: f32, scale: f32) -> Option<i16> {
    let q = (w * scale).round_ties_even();
    (q.abs() < 32_768.0).then_some(q as i16)
}

/// The larger of the sums of positive and of negative numbers; `None` if one was cut off.
fn most(q: impl Iterator<Item = Option<i16>>) -> Option<i64> {
    let (mut up, mut down) = (0, 0);
    for q in q {
        let q = i64::from(q?);
        if q > 0 { up += q } else { down -= q }
    }
    Some(up.max(down))
}

/// What a tally may say: the truth, or that it does not fit.
fn assert_tally(said: u32, truth: Option<i64>, what: &str) {
    match truth {
        Some(truth) if truth <= 32_767 => assert_eq!(i64::from(said), truth, "{what}"),
        _ => assert!(said > 32_767, "{what}: {said} hides {truth:?}"),
    }
}

/// Copies that hold what they should in every entry that fits, zeros beyond the last row, and
/// tallies that tell of everything that does not.
fn check_copies(weights: &[Row], copies: &Copies, row_scales: &[f32]) {
    let n = weights.len();
    for (block, first) in (0..n).step_by(BLOCK).enumerate() {
        let rows = first..n.min(first + BLOCK);
        for l in 0..PANEL {
            let q = |i: usize| quantum(weights[i].0[l], copies.scales[block][l]);
            for i in rows.clone() {
                let found = copies.forward[l / TILE * n + i].0[l % TILE];
                assert!(q(i).is_none_or(|q| q == found), "forward {i}, {l}: {found}, {:?}", q(i));
            }
            assert_tally(copies.sums[block].most(l), most(rows.clone().map(q)), "column");
        }
    }
    for i in 0..n.next_multiple_of(TILE) {
        let q = |l: usize| if i < n { quantum(weights[i].0[l], row_scales[i]) } else { Some(0) };
        for l in 0..PANEL {
            let found = copies.backward[i / TILE * PANEL + l].0[i % TILE];
            assert!(q(l).is_none_or(|q| q == found), "backward {i}, {l}: {found}, {:?}", q(l));
        }
        if i < n {
            assert_tally(copies.row_most(i), most((0..PANEL).map(q)), "row");
        }
    }
    let mut bounds = vec![[3; 8]; n.div_ceil(8)];
    copies.add_row_bounds(&mut bounds);
    for (i, bound) in bounds.iter().flatten().enumerate().take(n) {
        assert_eq!(*bound, 3 + copies.row_most(i), "bound of row {i}");
    }
}

/// Whether no subset of rows of a block, and of the columns of a row, can leave 16 bits.
fn assert_no_overflow(weights: &[Row], copies: &Copies, row_scales: &[f32], what: &str) {
    check_copies(weights, copies, row_scales);
    let n = weights.len();
    for (block, first) in (0..n).step_by(BLOCK).enumerate() {
        for l in 0..PANEL {
            let q = (first..n.min(first + BLOCK))
                .map(|i| quantum(weights[i].0[l], copies.scales[block][l]));
            assert!(most(q).is_some_and(|m| m <= 32_767), "{what}: block {block}, column {l}");
        }
    }
}

fn run_case<const K: usize>(n: usize, step: Step) {
    let case = Case::<K>::new(n, step);
    let [data, model]: [Vec<Sums>; 2] = [5, 6].map(|seed| lines(n, seed, whole));
    let (a, b) = (1.0 / 300.0, -1.0 / 700.0);
    let level = |sums: &[Sums], weight: f32, i: usize, l: usize| {
        f64::from(sums[i].0[l]) * f64::from(weight) / f64::from(LEVELS)
    };
    let (first, second) = (FieldSums::new(&data, a), FieldSums::new(&model, b));
    case.run(&first, |i, l| vec![level(&data, a, i, l)]);
    case.run(&[first, second], |i, l| vec![level(&data, a, i, l), level(&model, b, i, l)]);
    let sums: Vec<Row> = lines(n, 7, real);
    case.run(&SingleSums(&sums), |i, l| vec![f64::from(sums[i].0[l])]);
}

#[test]
fn an_update_is_its_formula_in_every_form() {
    for n in heights() {
        // Each number of terms meets each rule.
        run_case::<0>(n, STEPS[n % 4]);
        run_case::<1>(n, STEPS[(n + n / 4) % 4]);
        run_case::<2>(n, STEPS[(n + n / 4 + 1) % 4]);
        run_case::<4>(n, STEPS[(n + n / 4 + 2) % 4]);
    }
}

#[test]
fn squares_are_summed() {
    for n in heights() {
        let weights: Vec<Row> = lines(n, 1, real);
        let sum = squared(&weights);
        assert_eq!(sum.to_bits(), squared_portable(&weights).to_bits());
        let expected: f64 = weights.iter().flat_map(|w| w.0).map(|w| f64::from(w).powi(2)).sum();
        assert!((sum - expected).abs() <= (4 + HALF) as f64 * ROUNDING * expected, "{n} rows");
    }
}

#[test]
fn row_sums_are_added() {
    for n in heights() {
        let weights: Vec<Row> = lines(n, 1, real);
        let (mut sums, mut twin) = (vec![[0.5, 0.25]; n], vec![[0.5, 0.25]; n]);
        add_row_sums(&weights, &mut sums);
        add_row_sums_portable(&weights, &mut twin);
        assert_eq!(sums, twin);
        for (row, [up, down]) in weights.iter().zip(&sums) {
            let w = row.0.map(f64::from);
            let sum = |sign: f64, start| start + w.iter().map(|w| (sign * w).max(0.0)).sum::<f64>();
            for (found, expected) in [(up, sum(1.0, 0.5)), (down, sum(-1.0, 0.25))] {
                let bound = (4 + HALF + 1) as f64 * ROUNDING * expected;
                assert!((f64::from(*found) - expected).abs() <= bound, "{found}, not {expected}");
            }
        }
    }
}

#[test]
fn fast_and_portable_agree_on_the_copies() {
    for n in heights() {
        let weights: Vec<Row> = lines(n, 1, real);
        for block in weights.chunks(BLOCK) {
            let scales = column_scales(block);
            assert_eq!(scales, column_scales_portable(block));
            let mut halves = [(); 4].map(|()| vec![Quantum::ZERO; block.len()]);
            let [a, b, c, d] = &mut halves;
            let fast = quantise_columns(block, &scales, a, b);
            let portable = quantise_columns_portable(block, &scales, c, d);
            assert_eq!((fast.size, fast.sum), (portable.size, portable.sum));
            assert_eq!((a, b), (c, d));
        }
        let (copies, scales) = quantised(&weights);
        let mut twin = vec![Quantum::ZERO; copies.backward.len()];
        for first in (0..n).step_by(8) {
            let out = &mut twin[first / TILE * PANEL..][..PANEL];
            let tally = quantise_rows_portable(&weights, first, &scales, out);
            let fast = copies.row_sums[first / 8];
            assert_eq!((fast.size, fast.sum), (tally.size, tally.sum));
        }
        assert_eq!(copies.backward, twin);
        check_copies(&weights, &copies, &scales);
    }
}

#[test]
fn transposes_are_transposes() {
    let square: [[i16; 8]; 8] =
        std::array::from_fn(|i| std::array::from_fn(|j| whole((8 * i + j) as f64 / 64.0)));
    assert_eq!(transpose(square), transpose_portable(square));
    assert_eq!(transpose(square)[2][5], square[5][2]);
    let four = [0, 1, 2, 3].map(|i| [0, 1, 2, 3].map(|j| i as f32 + 0.1 * j as f32));
    assert_eq!(transpose_four(four), transpose_portable(four));
    for n in heights() {
        let weights: Vec<Row> = lines(n, 1, real);
        // One start beyond the last row: all zero.
        for first in (0..n + HALF).step_by(HALF).chain([n / 2]) {
            let (mut out, mut twin) = (vec![Line([9.0; HALF]); PANEL], vec![Single::ZERO; PANEL]);
            transpose_single(&weights, first, &mut out);
            transpose_single_portable(&weights, first, &mut twin);
            assert_same(&out, &twin, "transpose_single");
            for (j, column) in out.iter().enumerate() {
                for k in 0..HALF {
                    let expected = weights.get(first + k).map_or(0.0, |row| row.0[j]);
                    assert_eq!(column.0[k], expected, "row {}, column {j}", first + k);
                }
            }
        }
    }
}

/// A column of adversarial weights: its name and entry `i`, `l`, from a uniform variate.
type Adversary = (&'static str, fn(usize, usize, f32) -> f32);

const ADVERSARIES: [Adversary; 12] = [
    ("positive", |_, _, u| u + 1e-3),
    ("negative", |_, _, u| -u - 1e-3),
    ("all the same", |_, _, _| 0.1),
    ("all of one half more", |_, _, _| 1.5),
    ("alternating", |i, l, _| if (i + l) % 2 == 0 { 1.0 } else { -1.0 }),
    ("one huge", |i, l, u| if i % 77 == l { 1e20 } else { u - 0.5 }),
    ("heavy tails", |_, _, u| (1.0 / (u + 1e-12) - 2.0) * if u > 0.3 { 1.0 } else { -1.0 }),
    ("zeros", |_, _, _| 0.0),
    ("denormal", |i, _, _| if i % 2 == 0 { 1e-44 } else { -1e-40 }),
    ("near the smallest sum", |_, _, u| (u - 0.5) * 1e-31),
    ("1e30", |i, _, _| if i % 5 == 0 { -1e30 } else { 1e30 }),
    ("1e38", |_, _, u| (u - 0.5) * 3e38),
];

fn adversarial(n: usize, (_, make): Adversary) -> Vec<Row> {
    let u: Vec<Row> = lines(n, 11, |u| real(u).abs());
    let row = |i: usize| Line(std::array::from_fn(|l| make(i, l, u[i].0[l])));
    (0..n).map(row).collect()
}

#[test]
fn no_subset_of_a_block_can_overflow() {
    let heights = if small() { vec![1, 40, 321] } else { vec![1, 2, 7, 64, 319, 320, 321, 784] };
    for n in heights {
        for adversary in ADVERSARIES {
            let weights = adversarial(n, adversary);
            let (copies, scales) = quantised(&weights);
            assert_no_overflow(&weights, &copies, &scales, adversary.0);
            for i in 0..n {
                assert!(copies.row_most(i) <= 32_767, "{}: row {i}", adversary.0);
            }
        }
    }
}

/// From any weights to any others in one update: rescaling makes the columns fit again, and rows
/// that do not fit are told.
#[test]
fn no_update_can_overflow_unnoticed() {
    let heights = if small() { vec![1, 41] } else { vec![1, 2, 7, 65, 321] };
    let step = Step { rate: 1.0, momentum: 0.0, l1: 0.0, l2: 0.0 };
    let terms = RankOne { rows: &[[]; 321], columns: &[] };
    for n in heights {
        for before in ADVERSARIES {
            for after in ADVERSARIES {
                let mut weights = adversarial(n, before);
                let target = adversarial(n, after);
                let (mut copies, scales) = quantised(&weights);
                let difference =
                    |(a, b): (&Row, &Row)| Line(std::array::from_fn(|l| b.0[l] - a.0[l]));
                let slope: Vec<Row> = weights.iter().zip(&target).map(difference).collect();
                let velocity = &mut vec![Row::ZERO; n];
                let gradient = SingleSums(&slope);
                update_quantised(
                    &gradient,
                    terms,
                    step,
                    &mut weights,
                    velocity,
                    &mut copies,
                    &scales,
                );
                check_copies(&weights, &copies, &scales);
                copies.rescale(&weights);
                let what = format!("{} to {}, {n} rows", before.0, after.0);
                assert_no_overflow(&weights, &copies, &scales, &what);
            }
        }
    }
}

/// Growth by every factor, so that the quantised weight passes 32768, 65536 and so on.
#[test]
fn no_growth_of_a_single_weight_is_hidden_by_wrapping() {
    let step = Step { rate: 1.0, momentum: 0.0, l1: 0.0, l2: 0.0 };
    let terms = RankOne { rows: &[[]], columns: &[] };
    let factors = (0..4000_u16).map(|k| f32::from(k) / 100.0).chain([1e10, 1e30, 3e38]);
    for factor in factors.flat_map(|f| [f, -f]) {
        let mut weights = vec![Line([1.0; PANEL])];
        let (mut copies, scales) = quantised(&weights);
        let slope = [Line([factor; PANEL])];
        let velocity = &mut [Row::ZERO];
        let gradient = SingleSums(&slope);
        update_quantised(&gradient, terms, step, &mut weights, velocity, &mut copies, &scales);
        check_copies(&weights, &copies, &scales);
        copies.rescale(&weights);
        assert_no_overflow(&weights, &copies, &scales, "one weight");
    }
}

#[test]
fn scales_that_are_given_are_kept_where_they_fit() {
    for n in [1, 33, 321] {
        let weights: Vec<Row> = lines(n, 1, real);
        let (mut copies, row_scales) = quantised(&weights);
        let mut given: Vec<[f32; PANEL]> =
            copies.scales.iter().map(|scales| scales.map(|s| s * 0.5)).collect();
        copies.restore(&weights, &given);
        assert_eq!(copies.scales, given);
        assert_no_overflow(&weights, &copies, &row_scales, "half the scale");
        given[0][3] *= 1000.0;
        copies.restore(&weights, &given);
        assert_ne!(copies.scales[0], given[0]);
        assert_eq!(copies.scales[1..], given[1..]);
        assert_no_overflow(&weights, &copies, &row_scales, "a scale that is too large");
    }
}

/// The identity of [`Tally::most`] for all sums of both signs on a grid that is dense where
/// something wraps, built from numbers as they come.
#[test]
fn a_tally_tells_the_truth_or_that_it_does_not_fit() {
    let near = [0, 16_384, 32_767, 32_768, 49_152, 65_535, 65_536, 98_304, 131_072, 163_840];
    let grid: Vec<i64> = near.iter().flat_map(|&x| x - 2..=x + 2).filter(|&x| x >= 0).collect();
    for &up in &grid {
        for &down in &grid {
            let mut tally = Tally::<1>::ZERO;
            let (mut p, mut m) = (up, down);
            while p > 0 || m > 0 {
                let (a, b) = (p.min(32_767), m.min(32_768));
                tally.add(&[i16::try_from(a).expect("fits")]);
                tally.add(&[i16::try_from(-b).expect("fits")]);
                (p, m) = (p - a, m - b);
            }
            assert_tally(tally.most(0), Some(up.max(down)), &format!("{up}, {down}"));
        }
    }
    // Small numbers of a small type would never wrap; small counts of large ones do.
    let values = [i16::MIN, -32_767, -16_384, -1, 0, 1, 16_383, 16_384, i16::MAX];
    for code in 0..9_usize.pow(4) {
        let q = [0, 1, 2, 3].map(|k| values[code / 9_usize.pow(k) % 9]);
        let mut tally = Tally::<1>::ZERO;
        q.iter().for_each(|&q| tally.add(&[q]));
        assert_tally(tally.most(0), most(q.into_iter().map(Some)), &format!("{q:?}"));
    }
    for seed in 0..200 {
        #[expect(clippy::cast_possible_truncation, reason = "at most 32767")]
        let make = move |u| (f64::from(real(u)) * 32_767.0 / 1.08_f64.powi(seed)) as i16;
        let strip: Vec<Line<i16, PANEL>> = lines(24, u64::from(seed.unsigned_abs()), make);
        let mut tally = Tally::<PANEL>::ZERO;
        for eight in strip.as_chunks::<8>().0 {
            tally.add_strip(&eight.map(|line| line.0));
        }
        for l in 0..PANEL {
            assert_tally(tally.most(l), most(strip.iter().map(|q| Some(q.0[l]))), "random");
        }
    }
}

#[test]
fn missing_rows_are_refused() {
    let step = STEPS[1];
    let run = |n_factors: usize, n_velocities: usize, n_scales: Option<usize>| {
        std::panic::catch_unwind(move || {
            let sums = vec![Row::ZERO; 9];
            let terms = RankOne { rows: &vec![[1.0]; n_factors], columns: &[Row::ZERO] };
            let mut weights = vec![Row::ZERO; 9];
            let mut velocity = vec![Row::ZERO; n_velocities];
            let gradient = SingleSums(&sums);
            let Some(n_scales) = n_scales else {
                return update(&gradient, terms, step, &mut weights, &mut velocity);
            };
            let (copies, scales) = (&mut Copies::new(9), vec![1.0; n_scales]);
            update_quantised(&gradient, terms, step, &mut weights, &mut velocity, copies, &scales);
        })
        .is_err()
    };
    assert!(!run(9, 9, None) && run(8, 9, None) && run(9, 8, None));
    assert!(!run(9, 9, Some(9)) && run(8, 9, Some(9)) && run(9, 8, Some(9)) && run(9, 9, Some(8)));
    let narrow = || transpose_single(&[Row::ZERO; 3], 0, &mut vec![Single::ZERO; PANEL - 1]);
    assert!(std::panic::catch_unwind(narrow).is_err());
}

#[test]
fn dots_are_added_along_both_sides() {
    for n in heights() {
        let weights: Vec<Row> = lines(n, 1, real);
        let a: Vec<f32> = lines::<_, 1>(n, 2, real).iter().map(|x| x.0[0]).collect();
        let (z, before) = (lines(1, 3, real)[0], lines(1, 4, real)[0]);
        let (mut columns, mut rows) = (before, vec![0.5; n]);
        let (mut twin_columns, mut twin_rows) = (before, vec![0.5; n]);
        add_dots(&weights, &a, &z, &mut columns, &mut rows);
        add_dots_portable(&weights, &a, &z, &mut twin_columns, &mut twin_rows);
        assert_same(&[columns], &[twin_columns], "add_dots: columns");
        assert_eq!(rows, twin_rows, "add_dots: rows");
        let check = |found: f32, start: f32, terms: &mut dyn Iterator<Item = f64>, roundings| {
            let start = f64::from(start);
            let (sum, size) = terms.fold((start, start.abs()), |(s, m), x| (s + x, m + x.abs()));
            let bound = f64::from(u16::try_from(roundings).expect("few")) * ROUNDING * size;
            assert!((f64::from(found) - sum).abs() <= bound, "{n} rows: {found}, not {sum}");
        };
        for l in 0..PANEL {
            let mut terms = (0..n).map(|i| f64::from(weights[i].0[l]) * f64::from(a[i]));
            check(columns.0[l], before.0[l], &mut terms, n);
        }
        for i in 0..n {
            let mut terms = (0..PANEL).map(|l| f64::from(weights[i].0[l]) * f64::from(z.0[l]));
            // Eight products in each of eight lanes, three additions, and one to what was there.
            check(rows[i], 0.5, &mut terms, 12);
        }
    }
}

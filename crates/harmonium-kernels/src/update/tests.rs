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
        let mut dots = Room::new(w.len());
        let copies = (&mut fast, &row_scales[..]);
        update_quantised(gradient, rows, step, &mut w2, &mut v2, copies.0, copies.1, dots.dots());
        assert_same(&w, &w2, "update_quantised: weights");
        assert_same(&v, &v2, "update_quantised: velocity");
        check_copies(&w, &fast, &row_scales);
        dots.check(&v);
        let (mut w2, mut v2) = (self.weights.clone(), self.velocity.clone());
        let mut twin = Room::new(w.len());
        update_quantised_portable(
            gradient,
            rows,
            step,
            &mut w2,
            &mut v2,
            &mut portable,
            &row_scales,
            twin.dots(),
        );
        assert_same(&w, &w2, "update_quantised_portable: weights");
        assert_same(&v, &v2, "update_quantised_portable: velocity");
        assert_same_copies(&fast, &portable);
        dots.assert_same(&twin);

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

/// What the dot products of an update read and write; they are overwritten, whatever was there.
struct Room {
    row_shifts: Vec<f32>,
    column_shifts: Row,
    columns: Row,
    rows: Vec<f32>,
}

/// Stands behind the last row, where nothing is written.
const LEFT: f32 = 77.0;

impl Room {
    fn new(n: usize) -> Self {
        let row_shifts = lines::<_, 1>(n, 8, real).iter().map(|x| x.0[0]).collect();
        let mut rows = vec![f32::NAN; n];
        rows.push(LEFT);
        Self {
            row_shifts,
            column_shifts: lines(1, 9, real)[0],
            columns: Line([f32::NAN; PANEL]),
            rows,
        }
    }

    fn dots(&mut self) -> Dots<'_> {
        Dots {
            row_shifts: &self.row_shifts,
            column_shifts: &self.column_shifts,
            columns: &mut self.columns,
            rows: &mut self.rows,
        }
    }

    /// Whether they are the products with the last update.
    fn check(&self, velocity: &[Row]) {
        let n = velocity.len();
        check_dots(
            velocity,
            (&self.row_shifts, &self.column_shifts),
            (&Row::ZERO, 0.0),
            (&self.columns, &self.rows[..n]),
        );
        assert_eq!(self.rows[n..], [LEFT], "what is behind the rows is left alone");
    }

    fn assert_same(&self, twin: &Self) {
        assert_same(&[self.columns], &[twin.columns], "dots: columns");
        let bits = |room: &Self| room.rows.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(self), bits(twin), "dots: rows");
    }
}

/// Compares dot products along both sides with double precision; `before` is what was there.
fn check_dots(
    weights: &[Row],
    (a, z): (&[f32], &Row),
    before: (&Row, f32),
    (columns, rows): (&Row, &[f32]),
) {
    let n = weights.len();
    let check = |found: f32, start: f32, terms: &mut dyn Iterator<Item = f64>, roundings| {
        let start = f64::from(start);
        let (sum, size) = terms.fold((start, start.abs()), |(s, m), x| (s + x, m + x.abs()));
        let bound = f64::from(u16::try_from(roundings).expect("few")) * ROUNDING * size;
        assert!((f64::from(found) - sum).abs() <= bound, "{n} rows: {found}, not {sum}");
    };
    for l in 0..PANEL {
        let mut terms = (0..n).map(|i| f64::from(weights[i].0[l]) * f64::from(a[i]));
        check(columns.0[l], before.0.0[l], &mut terms, n);
    }
    assert_eq!(rows.len(), n);
    for i in 0..n {
        let mut terms = (0..PANEL).map(|l| f64::from(weights[i].0[l]) * f64::from(z.0[l]));
        // Eight products in each of eight lanes, three additions, and one to what was there.
        check(rows[i], before.1, &mut terms, 12);
    }
}

fn assert_same_copies(a: &Copies, b: &Copies) {
    assert!(a.forward == b.forward, "forward");
    assert!(a.backward == b.backward, "backward");
    assert!(a.scales == b.scales, "scales");
    let same = |(a, b): (&Tally<PANEL>, &Tally<PANEL>)| (a.size, a.sum) == (b.size, b.sum);
    assert!(a.sums.iter().zip(&b.sums).all(same), "sums of columns");
    let same = |(a, b): (&Tally<8>, &Tally<8>)| (a.size, a.sum) == (b.size, b.sum);
    assert!(a.row_sums.iter().zip(&b.row_sums).all(same), "sums of rows");
}

/// A weight at a scale: -32768 where it does not fit below 32767.
fn quantum(w: f32, scale: f32) -> i16 {
    rounded(w * scale)
}

#[expect(clippy::cast_possible_truncation, reason = "it was looked at")]
fn rounded(x: f32) -> i16 {
    let q = x.round_ties_even();
    if q > -32_768.0 && q < 32_767.0 { q as i16 } else { i16::MIN }
}

/// The larger of the sums of positive and of negative numbers.
fn most(q: impl Iterator<Item = i16>) -> i64 {
    let (mut up, mut down) = (0, 0);
    for q in q.map(i64::from) {
        if q > 0 { up += q } else { down -= q }
    }
    up.max(down)
}

/// What a tally may say: the truth, or that it does not fit.
fn assert_tally(said: u32, truth: i64, what: &str) {
    if truth <= 32_767 {
        assert_eq!(i64::from(said), truth, "{what}");
    } else {
        assert!(said > 32_767, "{what}: {said} hides {truth}");
    }
}

/// Copies that hold what they should in every entry, zeros beyond the last row, and tallies that
/// tell of everything that does not fit.
fn check_copies(weights: &[Row], copies: &Copies, row_scales: &[f32]) {
    let n = weights.len();
    for (block, first) in (0..n).step_by(BLOCK).enumerate() {
        let rows = first..n.min(first + BLOCK);
        for l in 0..PANEL {
            let q = |i: usize| quantum(weights[i].0[l], copies.scales[block][l]);
            for i in rows.clone() {
                let found = copies.forward[l / TILE * n + i].0[l % TILE];
                assert_eq!(found, q(i), "forward {i}, {l}");
            }
            assert_tally(copies.sums[block].most(l), most(rows.clone().map(q)), "column");
        }
    }
    for i in 0..n.next_multiple_of(TILE) {
        let q = |l: usize| if i < n { quantum(weights[i].0[l], row_scales[i]) } else { 0 };
        for l in 0..PANEL {
            let found = copies.backward[i / TILE * PANEL + l].0[i % TILE];
            assert_eq!(found, q(l), "backward {i}, {l}");
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
            assert!(most(q) <= 32_767, "{what}: block {block}, column {l}");
        }
    }
}

/// Where the rows of a gradient stand: each in its place.
fn in_place(n: usize) -> Vec<u32> {
    (0..).take(n).collect()
}

/// Where they stand if one of `every` has no sample, and how many places there are: those rows
/// share the last one.
fn shared(n: usize, every: usize) -> (Vec<u32>, usize) {
    let unused = |i: &usize| i % every == 1;
    let n_used = n - (0..n).filter(unused).count();
    let last = u32::try_from(n_used).expect("few");
    let mut next = 0..;
    let places = (0..n).map(|i| if unused(&i) { Some(last) } else { next.next() });
    (places.map(|place| place.expect("there is no end")).collect(), n_used + 1)
}

fn run_case<const K: usize>(n: usize, step: Step) {
    let case = Case::<K>::new(n, step);
    let identity = in_place(n);
    run_sums(&case, [(&identity, n), (&identity, n)], |_, _| {});
    let [(here, n_here), (there, n_there)] = [shared(n, 2), shared(n, 3)];
    run_sums(&case, [(&here, n_here), (&there, n_there)], |single, fields| {
        *single.last_mut().expect("a row of zeros") = Row::ZERO;
        fields.iter_mut().for_each(|f| *f.last_mut().expect("a row of zeros") = Sums::ZERO);
    });
}

/// Gradients whose sums stand at the places given, for the data side and the model side.
fn run_sums<const K: usize>(
    case: &Case<K>,
    places: [(&[u32], usize); 2],
    finish: impl Fn(&mut [Row], &mut [Vec<Sums>; 2]),
) {
    let [(here, n_here), (there, n_there)] = places;
    let mut single: Vec<Row> = lines(n_here, 7, real);
    let mut fields: [Vec<Sums>; 2] =
        [(n_here, 5), (n_there, 6)].map(|(n, seed)| lines(n, seed, whole));
    finish(&mut single, &mut fields);
    let [data, model] = &fields;
    let (a, b) = (1.0 / 300.0, -1.0 / 700.0);
    let level = |sums: &[Sums], place: u32, weight: f32, l: usize| {
        f64::from(sums[place as usize].0[l]) * f64::from(weight) / f64::from(LEVELS)
    };
    let (first, second) = (FieldSums::new(data, here, a), FieldSums::new(model, there, b));
    case.run(&first, |i, l| vec![level(data, here[i], a, l)]);
    case.run(&[first, second], |i, l| {
        vec![level(data, here[i], a, l), level(model, there[i], b, l)]
    });
    let sums = SingleSums { sums: &single, places: here };
    case.run(&sums, |i, l| vec![f64::from(single[here[i] as usize].0[l])]);
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

/// One update by `slope` as it is, by the fast and the portable way, which must agree.
fn move_all(slope: &[Row], weights: &mut [Row], copies: &mut Copies, scales: &[f32]) {
    let n = weights.len();
    let (places, step) = (in_place(n), Step { rate: 1.0, momentum: 0.0, l1: 0.0, l2: 0.0 });
    let gradient = SingleSums { sums: slope, places: &places };
    let terms = RankOne { rows: &vec![[]; n], columns: &[] };
    let (mut portable, mut twin) = (copies.clone(), weights.to_vec());
    let [mut room, mut twin_room] = [Room::new(n), Room::new(n)];
    let velocity = &mut vec![Row::ZERO; n];
    update_quantised(&gradient, terms, step, weights, velocity, copies, scales, room.dots());
    let (velocity, copies2, dots) = (&mut vec![Row::ZERO; n], &mut portable, twin_room.dots());
    update_quantised_portable(&gradient, terms, step, &mut twin, velocity, copies2, scales, dots);
    // What is not a number may be any of those.
    let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    let flat = crate::line::flat::<f32, PANEL>;
    assert!(flat(weights).iter().zip(flat(&twin)).all(same), "weights");
    assert!(room.columns.0.iter().zip(&twin_room.columns.0).all(same), "dots: columns");
    assert!(room.rows.iter().zip(&twin_room.rows).all(same), "dots: rows");
    assert_same_copies(copies, &portable);
}

/// From any weights to any others in one update: rescaling makes the columns fit again, and rows
/// that do not fit are told.
#[test]
fn no_update_can_overflow_unnoticed() {
    let heights = if small() { vec![1, 41] } else { vec![1, 2, 7, 65, 321] };
    for n in heights {
        for before in ADVERSARIES {
            for after in ADVERSARIES {
                let mut weights = adversarial(n, before);
                let target = adversarial(n, after);
                let (mut copies, scales) = quantised(&weights);
                let difference =
                    |(a, b): (&Row, &Row)| Line(std::array::from_fn(|l| b.0[l] - a.0[l]));
                let slope: Vec<Row> = weights.iter().zip(&target).map(difference).collect();
                move_all(&slope, &mut weights, &mut copies, &scales);
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
    let factors = (0..4000_u16).map(|k| f32::from(k) / 100.0).chain([1e10, 1e30, 3e38]);
    for factor in factors.flat_map(|f| [f, -f]) {
        let mut weights = vec![Line([1.0; PANEL])];
        let (mut copies, scales) = quantised(&weights);
        let slope = [Line([factor; PANEL])];
        move_all(&slope, &mut weights, &mut copies, &scales);
        check_copies(&weights, &copies, &scales);
        copies.rescale(&weights);
        assert_no_overflow(&weights, &copies, &scales, "one weight");
    }
}

/// Weights that left single precision: both ways say so, in every entry and tally.
#[test]
fn what_is_not_finite_is_told() {
    for n in [1, 9, 65, 321] {
        for bad in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            let mut weights: Vec<Row> = lines(n, 1, real);
            let (mut copies, scales) = quantised(&weights);
            let mut slope = vec![Row::ZERO; n];
            slope[n / 2].0[33] = bad;
            move_all(&slope, &mut weights, &mut copies, &scales);
            check_copies(&weights, &copies, &scales);
            assert!(copies.overflows(n / 2 / BLOCK) && copies.row_most(n / 2) > 32_767);
        }
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
            assert_tally(tally.most(0), up.max(down), &format!("{up}, {down}"));
        }
    }
    // Small numbers of a small type would never wrap; small counts of large ones do.
    let values = [i16::MIN, -32_767, -16_384, -1, 0, 1, 16_383, 16_384, i16::MAX];
    for code in 0..9_usize.pow(4) {
        let q = [0, 1, 2, 3].map(|k| values[code / 9_usize.pow(k) % 9]);
        let mut tally = Tally::<1>::ZERO;
        q.iter().for_each(|&q| tally.add(&[q]));
        assert_tally(tally.most(0), most(q.into_iter()), &format!("{q:?}"));
    }
    for seed in 0..200 {
        #[expect(clippy::cast_possible_truncation, reason = "at most 32767")]
        let make = move |u| (f64::from(real(u)) * 32_767.0 / 1.08_f64.powi(seed)) as i16;
        let strip: Vec<Line<i16, PANEL>> = lines(24, u64::from(seed.unsigned_abs()), make);
        let mut tally = Tally::<PANEL>::ZERO;
        strip.iter().for_each(|line| tally.add(&line.0));
        for l in 0..PANEL {
            assert_tally(tally.most(l), most(strip.iter().map(|q| q.0[l])), "random");
        }
    }
}

/// Lanes `l` and `l + 8` together: from nothing to far more than 16 bits hold, of either sign.
#[test]
fn halves_of_a_tally_are_one() {
    for seed in 0..200 {
        #[expect(clippy::cast_possible_truncation, reason = "at most 32767")]
        let make = move |u| (f64::from(real(u)) * 32_767.0 / 1.08_f64.powi(seed)) as i16;
        let mut q: Vec<Line<i16, HALF>> = lines(5, u64::from(seed.unsigned_abs()), make);
        // One lane of one sign, one of the other, one that was cut off.
        q.iter_mut().for_each(|q| q.0[1] = q.0[1].saturating_abs());
        q.iter_mut().for_each(|q| q.0[9] = -q.0[9].saturating_abs());
        q[3].0[10] = i16::MIN;
        for n in 0..=q.len() {
            let mut tally = Tally::<HALF>::ZERO;
            q[..n].iter().for_each(|q| tally.add(&q.0));
            let halves = tally.halves();
            for l in 0..8 {
                let both = q[..n].iter().flat_map(|q| [q.0[l], q.0[l + 8]]);
                assert_tally(halves.most(l), most(both), &format!("seed {seed}, lane {l}"));
            }
        }
    }
}

fast! {
    /// Sixteen weights rounded, by hand where the machine has the instructions.
    fn quantise_by_hand[](w: &[f32; HALF], scale: &[f32; HALF]) -> [i16; HALF]
        = quantise_half::<false>, wide quantise_half::<true>;
}

fast! {
    /// The same for pairs of transposed columns.
    fn transpose_by_hand[](x: [[i16; HALF]; 8]) -> [[i16; HALF]; 8]
        = transpose_pair::<false>, wide transpose_pair::<true>;
}

/// Whole numbers and halves on both sides of what fits, their neighbours, and what is no number.
fn numbers(every: usize) -> Vec<f32> {
    let halves = |range: std::ops::RangeInclusive<i32>| range.map(|k| k as f32 / 2.0);
    let near = halves(-65_545..=-65_525).chain(halves(65_525..=65_545)).chain(halves(-9..=9));
    let many = halves(-140_000..=140_000).step_by(every);
    let powers = (-140..128).map(|k| 2.0_f32.powi(k));
    let wraps = (1_u16..2000).map(|k| f32::from(k) * 65_536.0 - 1.0);
    let large = [1e9, 2_147_483_648.0, 4_294_967_296.0, 1e20, f32::MAX, f32::INFINITY];
    let all = near.chain(many).chain(powers).chain(wraps).chain(large);
    let signed = all.flat_map(|x| [x, x.next_up(), x.next_down()]).flat_map(|x| [x, -x]);
    signed.chain([0.0, -0.0, f32::NAN, -f32::NAN, f32::MIN_POSITIVE]).collect()
}

#[test]
fn rounding_is_to_even_and_marks_what_does_not_fit() {
    for (x, q) in [
        (32_766.49, 32_766),
        (32_766.5, 32_766),
        (32_766.502, i16::MIN),
        (32_767.0, i16::MIN),
        (32_768.0, i16::MIN),
        (1e9, i16::MIN),
        (1e20, i16::MIN),
        (f32::INFINITY, i16::MIN),
        (f32::NAN, i16::MIN),
        (-32_766.5, -32_766),
        (-32_767.0, -32_767),
        (-32_767.5, i16::MIN),
        (-32_768.0, i16::MIN),
        (-1e20, i16::MIN),
        (-0.0, 0),
        (0.5, 0),
        (1.5, 2),
        (-2.5, -2),
    ] {
        assert_eq!((to_i16(x), rounded(x)), (q, q), "{x}");
    }
    for x in numbers(if small() { 97 } else { 1 }) {
        assert_eq!(to_i16(x), rounded(x), "{x}");
    }
}

/// Every number in every lane, and the scale takes part.
#[test]
fn sixteen_weights_are_rounded_as_one_is() {
    let numbers = numbers(if small() { 997 } else { 31 });
    for scale in [1.0, 0.5, -1.0, 0.0, 3.7, 1e30, f32::INFINITY] {
        let scales: [f32; HALF] =
            std::array::from_fn(|l| if l % 5 == 3 { 2.0 * scale } else { scale });
        for w in numbers.windows(HALF) {
            let w: &[f32; HALF] = w.try_into().expect("sixteen");
            let q = quantise_by_hand(w, &scales);
            assert_eq!(q, quantise_half::<false>(w, &scales), "{w:?} at {scales:?}");
            assert_eq!(q, std::array::from_fn(|l| quantum(w[l], scales[l])), "{w:?}");
        }
    }
}

#[test]
fn pairs_of_columns_are_transposed_together() {
    #[expect(clippy::cast_possible_truncation, reason = "all of 16 bits")]
    let make = |u: f64| (65_536.0 * u - 32_768.0) as i16;
    // All different.
    let mut next = i16::MIN..;
    let places: Vec<Line<i16, HALF>> =
        (0..8).map(|_| Line([(); HALF].map(|()| next.next().expect("128 of them")))).collect();
    for seed in 0..100 {
        let random: Vec<Line<i16, HALF>> = lines(8, seed, make);
        for lines in [&random, &places] {
            let x: [[i16; HALF]; 8] = std::array::from_fn(|k| lines[k].0);
            let pairs = transpose_by_hand(x);
            assert_eq!(pairs, transpose_pair::<false>(x));
            for j in 0..8 {
                for k in 0..8 {
                    assert_eq!((pairs[j][k], pairs[j][k + 8]), (x[k][j], x[k][j + 8]));
                }
            }
        }
    }
}

#[test]
fn missing_rows_are_refused() {
    let step = STEPS[1];
    let run = |n_factors: usize, n_velocities: usize, n_places: usize, rest: Option<[usize; 3]>| {
        std::panic::catch_unwind(move || {
            let (sums, places) = (vec![Row::ZERO; 9], in_place(n_places));
            let terms = RankOne { rows: &vec![[1.0]; n_factors], columns: &[Row::ZERO] };
            let w = &mut vec![Row::ZERO; 9];
            let v = &mut vec![Row::ZERO; n_velocities];
            let gradient = SingleSums { sums: &sums, places: &places };
            let Some([n_scales, n_shifts, n_dots]) = rest else {
                return update(&gradient, terms, step, w, v);
            };
            let (copies, scales) = (&mut Copies::new(9), vec![1.0; n_scales]);
            let dots = Dots {
                row_shifts: &vec![0.0; n_shifts],
                column_shifts: &Row::ZERO,
                columns: &mut Row::ZERO.clone(),
                rows: &mut vec![0.0; n_dots],
            };
            update_quantised(&gradient, terms, step, w, v, copies, &scales, dots);
        })
        .is_err()
    };
    for rest in [None, Some([9; 3])] {
        assert!(!run(9, 9, 9, rest));
        assert!(run(8, 9, 9, rest) && run(9, 8, 9, rest) && run(9, 9, 8, rest));
    }
    assert!([[8, 9, 9], [9, 8, 9], [9, 9, 8]].into_iter().all(|n| run(9, 9, 9, Some(n))));
    // A place where there is no row.
    let sums = [Sums::ZERO; 2];
    assert!(std::panic::catch_unwind(|| FieldSums::new(&sums, &[0, 2], 1.0).row(1)).is_err());
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
        check_dots(&weights, (&a, &z), (&before, 0.5), (&columns, &rows));
    }
}

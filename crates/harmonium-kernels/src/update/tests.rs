use super::*;
use crate::arbitrary::{assert_same, large, lines, real, sizes};
use crate::line::Line;

/// Half a unit in the last place: what one rounding costs at most, relatively.
pub(crate) const ROUNDING: f64 = 1.0 / 16_777_216.0;

/// Numbers of rows, over several blocks.
pub(crate) fn heights() -> Vec<usize> {
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
const STEPS: [Step; 5] = [
    Step { rate: 0.05, momentum: 0.0, l1: 0.0, l2: 0.0 },
    Step { rate: 0.05, momentum: 0.0, l1: 0.0, l2: 0.4 },
    Step { rate: 0.1, momentum: 0.9, l1: 0.0, l2: 0.3 },
    Step { rate: 0.1, momentum: 0.5, l1: 0.2, l2: 0.0 },
    Step { rate: 0.01, momentum: 0.9, l1: 0.03, l2: 0.02 },
];

/// Everything that one update reads.
pub(crate) struct Case<const K: usize> {
    pub(crate) step: Step,
    factors: Vec<[f32; K]>,
    columns: [Row; K],
    pub(crate) weights: Vec<Row>,
    pub(crate) velocity: Vec<Row>,
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

    pub(crate) fn terms(&self) -> RankOne<'_, K> {
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
    fn check(
        &self,
        terms: impl Fn(usize, usize) -> Vec<f64>,
        weights: &[Row],
        velocity: Option<&[Row]>,
    ) {
        let roundings = (K + 9) as f64;
        let (rate, momentum) = (f64::from(self.step.rate), f64::from(self.step.momentum));
        for i in 0..weights.len() {
            for l in 0..PANEL {
                let (g, size) = self.slope(&terms(i, l), i, l);
                let (w, old) = (f64::from(self.weights[i].0[l]), f64::from(self.velocity[i].0[l]));
                let v = momentum * old + rate * g;
                let bound = roundings * ROUNDING * (momentum * old.abs() + rate * size);
                if let Some(velocity) = velocity {
                    assert!((f64::from(velocity[i].0[l]) - v).abs() <= bound, "velocity {i}, {l}");
                }
                // Without a velocity each term is added to the weight separately.
                let additions = if velocity.is_some() { 1 } else { terms(i, l).len() + 2 } as f64;
                let bound = bound + additions * ROUNDING * (w.abs() + rate * size + v.abs());
                assert!((f64::from(weights[i].0[l]) - w - v).abs() <= bound, "weight {i}, {l}");
            }
        }
    }

    /// Updates in all ways and compares them with each other and with the formula.
    fn run<G: Gradient>(&self, gradient: &G, terms: impl Fn(usize, usize) -> Vec<f64> + Copy) {
        let (rows, step) = (self.terms(), self.step);
        let (mut w, mut v) = (self.weights.clone(), self.velocity.clone());
        let mut dots = Room::new(w.len());
        let n_strips = w.len().div_ceil(TILE);
        let mut copy = vec![Line([9.0; TILE]); n_strips * PANEL];
        update(gradient, rows, step, &mut w, &mut v, dots.dots(), &mut copy);
        self.check(terms, &w, Some(&v));
        for (strip, copy) in copy.chunks(PANEL).enumerate() {
            let mut expected = vec![Wide::ZERO; PANEL];
            transpose_single(&w, strip * TILE, &mut expected);
            assert_same(copy, &expected, "update: transposed");
        }
        dots.check::<K>(&v);
        let (mut w2, mut v2) = (self.weights.clone(), self.velocity.clone());
        let mut twin = Room::new(w.len());
        update_in::<PORTABLE, _, _>(gradient, rows, step, &mut w2, &mut v2, twin.dots(), &mut copy);
        dots.assert_same(&twin);
        assert_same(&w, &w2, "update: weights");
        assert_same(&v, &v2, "update: velocity");
        crate::quantised::tests::check_update(self, gradient, &w, Some(&v));
        if step.momentum == 0.0 {
            self.run_without_velocity(gradient, terms, &v);
        }

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

impl<const K: usize> Case<K> {
    /// The same where no velocity is kept; `moved` is what the update is.
    fn run_without_velocity<G: Gradient>(
        &self,
        gradient: &G,
        terms: impl Fn(usize, usize) -> Vec<f64> + Copy,
        moved: &[Row],
    ) {
        let (rows, step, n) = (self.terms(), self.step, self.weights.len());
        let (mut w, mut w2) = (self.weights.clone(), self.weights.clone());
        let [mut dots, mut twin] = [Room::new(n), Room::new(n)];
        let mut copy = vec![Line([9.0; TILE]); n.div_ceil(TILE) * PANEL];
        update(gradient, rows, step, &mut w, &mut [], dots.dots(), &mut copy);
        self.check(terms, &w, None);
        dots.check::<K>(moved);
        for (strip, copy) in copy.chunks(PANEL).enumerate() {
            let mut expected = vec![Wide::ZERO; PANEL];
            transpose_single(&w, strip * TILE, &mut expected);
            assert_same(copy, &expected, "update: transposed");
        }
        update_in::<PORTABLE, _, _>(gradient, rows, step, &mut w2, &mut [], twin.dots(), &mut copy);
        dots.assert_same(&twin);
        assert_same(&w, &w2, "update without velocity");
        let free = K == 0 && step.l1 == 0.0 && step.l2 == 0.0;
        for i in (0..n).filter(|&i| free && gradient.is_zero(i)) {
            assert_eq!(w[i], self.weights[i], "row {i} rests");
        }
        crate::quantised::tests::check_update(self, gradient, &w, None);
    }
}

/// What the dot products of an update read and write; where any are taken they are overwritten,
/// whatever was there.
pub(crate) struct Room {
    pub(crate) row_shifts: Vec<f32>,
    column_shifts: Row,
    pub(crate) columns: Row,
    pub(crate) rows: Vec<f32>,
}

/// Stands behind the last row, where nothing is written.
const LEFT: f32 = 77.0;

impl Room {
    pub(crate) fn new(n: usize) -> Self {
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

    pub(crate) fn dots(&mut self) -> Dots<'_> {
        Dots {
            row_shifts: &self.row_shifts,
            column_shifts: &self.column_shifts,
            columns: &mut self.columns,
            rows: &mut self.rows,
        }
    }

    /// Whether they are the products with the last update; untouched where nothing is centered.
    pub(crate) fn check<const K: usize>(&self, velocity: &[Row]) {
        let n = velocity.len();
        if K == 0 {
            assert!(self.columns.0.iter().chain(&self.rows[..n]).all(|x| x.is_nan()));
        } else {
            check_dots(
                velocity,
                (&self.row_shifts, &self.column_shifts),
                (&self.columns, &self.rows[..n]),
            );
        }
        assert_eq!(self.rows[n..], [LEFT], "what is behind the rows is left alone");
    }

    pub(crate) fn assert_same(&self, twin: &Self) {
        assert_same(&[self.columns], &[twin.columns], "dots: columns");
        let bits = |room: &Self| room.rows.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(self), bits(twin), "dots: rows");
    }
}

/// Compares dot products along both sides with double precision.
fn check_dots(weights: &[Row], (a, z): (&[f32], &Row), (columns, rows): (&Row, &[f32])) {
    let n = weights.len();
    let check = |found: f32, terms: &mut dyn Iterator<Item = f64>, roundings| {
        let (sum, size) = terms.fold((0.0, 0.0), |(s, m), x: f64| (s + x, m + x.abs()));
        let bound = f64::from(u16::try_from(roundings).expect("few")) * ROUNDING * size;
        assert!((f64::from(found) - sum).abs() <= bound, "{n} rows: {found}, not {sum}");
    };
    for l in 0..PANEL {
        let mut terms = (0..n).map(|i| f64::from(weights[i].0[l]) * f64::from(a[i]));
        check(columns.0[l], &mut terms, n);
    }
    assert_eq!(rows.len(), n);
    for i in 0..n {
        let mut terms = (0..PANEL).map(|l| f64::from(weights[i].0[l]) * f64::from(z.0[l]));
        // Four products in each of sixteen lanes, and four additions.
        check(rows[i], &mut terms, 8);
    }
}

/// Where the rows of a gradient stand: each in its place.
pub(crate) fn in_place(n: usize) -> Vec<u32> {
    (0..).take(n).collect()
}

/// Where they stand if one of `every` has no sample, and how many places there are: those rows
/// share the last one.
fn shared(n: usize, every: usize) -> (Vec<u32>, usize) {
    places_of(n, |i| i % every != 1)
}

/// The same where long runs have no sample.
fn sparse(n: usize) -> (Vec<u32>, usize) {
    places_of(n, |i| i % 40 > 28 || i % 57 == 3)
}

fn places_of(n: usize, used: impl Fn(usize) -> bool) -> (Vec<u32>, usize) {
    let n_used = (0..n).filter(|&i| used(i)).count();
    let last = u32::try_from(n_used).expect("few");
    let mut next = 0..;
    let places = (0..n).map(|i| if used(i) { next.next() } else { Some(last) });
    (places.map(|place| place.expect("there is no end")).collect(), n_used + 1)
}

fn run_case<const K: usize>(n: usize, step: Step) {
    let case = Case::<K>::new(n, step);
    let identity = in_place(n);
    run_sums(&case, [(&identity, n + 1), (&identity, n + 1)]);
    let [(here, n_here), (there, n_there)] = [shared(n, 2), shared(n, 3)];
    run_sums(&case, [(&here, n_here), (&there, n_there)]);
    // Whole strips without a sample, and some with a few.
    let (here, n_here) = sparse(n);
    run_sums(&case, [(&here, n_here), (&here, n_here)]);
}

/// Gradients whose sums stand at the places given, for the data side and the model side.
fn run_sums<const K: usize>(case: &Case<K>, places: [(&[u32], usize); 2]) {
    let [(here, n_here), (there, n_there)] = places;
    let mut single: Vec<Row> = lines(n_here, 7, real);
    let mut fields: [Vec<Sums>; 2] =
        [(n_here, 5), (n_there, 6)].map(|(n, seed)| lines(n, seed, whole));
    *single.last_mut().expect("a row of zeros") = Row::ZERO;
    fields.iter_mut().for_each(|f| *f.last_mut().expect("a row of zeros") = Sums::ZERO);
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
    let sums = SingleSums::new(&single, here);
    case.run(&sums, |i, l| vec![f64::from(single[here[i] as usize].0[l])]);
}

#[test]
fn an_update_is_its_formula_in_every_form() {
    for n in heights() {
        // Each number of terms meets each rule.
        run_case::<0>(n, STEPS[n % 5]);
        run_case::<1>(n, STEPS[(n + n / 5) % 5]);
        run_case::<2>(n, STEPS[(n + n / 5 + 1) % 5]);
        run_case::<4>(n, STEPS[(n + n / 5 + 2) % 5]);
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

#[cfg(not(target_arch = "x86_64"))]
use transpose_portable as by_hand;
#[cfg(target_arch = "x86_64")]
use x86::avx2::transpose_eight as by_hand;

fast! {
    /// Eight rows, by hand where the machine has the instructions.
    fn eight_by_hand[](x: [[f32; 8]; 8]) -> [[f32; 8]; 8] = transpose_portable, wide by_hand;
}

#[test]
fn transposes_are_transposes() {
    let four = [0, 1, 2, 3].map(|i| [0, 1, 2, 3].map(|j| i as f32 + 0.1 * j as f32));
    assert_eq!(transpose_four(four), transpose_portable(four));
    let eight: [[f32; 8]; 8] =
        std::array::from_fn(|i| std::array::from_fn(|j| i as f32 + 0.1 * j as f32));
    assert_eq!(eight_by_hand(eight), transpose_portable(eight));
    for n in heights() {
        let weights: Vec<Row> = lines(n, 1, real);
        // One start beyond the last row: all zero.
        for first in (0..n + TILE).step_by(TILE).chain([n / 2]) {
            let (mut out, mut twin) = (vec![Line([9.0; TILE]); PANEL], vec![Wide::ZERO; PANEL]);
            transpose_single(&weights, first, &mut out);
            transpose_single_portable(&weights, first, &mut twin);
            assert_same(&out, &twin, "transpose_single");
            for (j, column) in out.iter().enumerate() {
                for k in 0..TILE {
                    let expected = weights.get(first + k).map_or(0.0, |row| row.0[j]);
                    assert_eq!(column.0[k], expected, "row {}, column {j}", first + k);
                }
            }
        }
    }
}

#[test]
fn missing_rows_are_refused() {
    let step = STEPS[2];
    let run = |[n_factors, n_velocities, n_places, n_shifts]: [usize; 4]| {
        std::panic::catch_unwind(move || {
            let (sums, places) = (vec![Row::ZERO; 9], in_place(n_places));
            let terms = RankOne { rows: &vec![[1.0]; n_factors], columns: &[Row::ZERO] };
            let w = &mut vec![Row::ZERO; 9];
            let v = &mut vec![Row::ZERO; n_velocities];
            let gradient = SingleSums::new(&sums, &places);
            let mut room = Room::new(9);
            room.row_shifts.truncate(n_shifts);
            update(&gradient, terms, step, w, v, room.dots(), &mut vec![Wide::ZERO; PANEL]);
        })
        .is_err()
    };
    assert!(!run([9; 4]));
    // The last: momentum needs velocities.
    let few = [[8, 9, 9, 9], [9, 8, 9, 9], [9, 9, 8, 9], [9, 9, 9, 8], [9, 0, 9, 9]];
    assert!(few.into_iter().all(run));
    // A place where there is no row.
    let sums = [Sums::ZERO; 2];
    assert!(std::panic::catch_unwind(|| FieldSums::new(&sums, &[0, 2], 1.0).row(1)).is_err());
    let narrow = || transpose_single(&[Row::ZERO; 3], 0, &mut vec![Wide::ZERO; PANEL - 1]);
    assert!(std::panic::catch_unwind(narrow).is_err());
}

#[test]
fn a_dot_is_summed_as_its_twin_is() {
    for pair in lines::<f32, 16>(100, 5, real) {
        let (a, b) = pair.0.split_at(8);
        let x = [a, b].map(|x| std::array::from_fn(|l| x[l]));
        assert_eq!(Dot(x).total().to_bits(), total_portable(x).to_bits());
    }
}

/// A gradient that is written down is the update from nothing with a rate of one.
#[test]
fn a_written_gradient_is_a_step_of_one_from_zero() {
    for n in heights() {
        let case = Case::<2>::new(n, Step { rate: 1.0, momentum: 0.0, l1: 0.0, l2: 0.0 });
        let mut sums: Vec<Row> = lines(n + 1, 7, real);
        sums[n] = Row::ZERO;
        let places: Vec<u32> = (0..).take(n).collect();
        let gradient = SingleSums::new(&sums, &places);
        let mut written = vec![Row::ZERO; n];
        gradient_into(&gradient, case.terms(), &mut written);
        let mut portable = vec![Row::ZERO; n];
        gradient_into_portable(&gradient, case.terms(), &mut portable);
        assert_same(&written, &portable, "gradient_into");
        let (mut weights, shifts) = (vec![Row::ZERO; n], vec![0.0; n]);
        let (mut columns, mut rows) = (Row::ZERO, vec![0.0; n]);
        let dots = Dots {
            row_shifts: &shifts,
            column_shifts: &Row::ZERO,
            columns: &mut columns,
            rows: &mut rows,
        };
        update(&gradient, case.terms(), case.step, &mut weights, &mut [], dots, &mut []);
        assert_same(&written, &weights, "gradient_into and update");
    }
}

use super::*;
use crate::arbitrary::{assert_same, lines, real, small};
use crate::line::Line;
use crate::update::SingleSums;
use crate::update::tests::{Case, ROUNDING, Room, heights, in_place};

/// Whether an update with copies moves weights and velocity as one without, and keeps the copies.
pub(crate) fn check_update<const K: usize, G: Gradient>(
    case: &Case<K>,
    gradient: &G,
    w: &[Row],
    v: Option<&[Row]>,
) {
    let (rows, step, n) = (case.terms(), case.step, w.len());
    let (mut fast, scales) = quantised(&case.weights);
    let mut portable = fast.clone();
    let before = || if v.is_some() { case.velocity.clone() } else { Vec::new() };
    let (mut w2, mut v2) = (case.weights.clone(), before());
    let mut dots = Room::new(n);
    update_quantised(gradient, rows, step, &mut w2, &mut v2, &mut fast, &scales, dots.dots());
    assert_same(w, &w2, "update_quantised: weights");
    check_copies(w, &fast, &scales);
    if let Some(v) = v {
        assert_same(v, &v2, "update_quantised: velocity");
        dots.check::<K>(v);
    }
    let (mut w3, mut v3) = (case.weights.clone(), before());
    let (mut twin, copies) = (Room::new(n), &mut portable);
    let dots2 = twin.dots();
    update_quantised_in::<PORTABLE, K, G>(
        gradient, rows, step, &mut w3, &mut v3, copies, &scales, dots2,
    );
    assert_same(w, &w3, "update_quantised_portable: weights");
    assert_same(&v2, &v3, "update_quantised_portable: velocity");
    assert_same_copies(&fast, &portable);
    dots.assert_same(&twin);
}

/// A scale that fits the rows of a block and all their columns.
fn fresh_scale(weights: &[Row], block: usize) -> f32 {
    let rows = &weights[block * BLOCK..weights.len().min((block + 1) * BLOCK)];
    let mut sums = vec![[0.0; 2]; rows.len()];
    add_row_sums(rows, &mut sums);
    let most = sums.iter().flatten().fold(largest_column_sum(rows), |m, x| m.max(*x));
    scale_for(most)
}

/// Fresh copies of a panel and the scales of its blocks.
fn quantised(weights: &[Row]) -> (Copies, Vec<f32>) {
    let n = weights.len();
    let mut copies = Copies::new(n);
    let scales: Vec<f32> =
        (0..n.div_ceil(BLOCK)).map(|block| fresh_scale(weights, block)).collect();
    scales.iter().enumerate().for_each(|(block, s)| copies.quantise(weights, block, *s));
    (copies, scales)
}

fn assert_same_copies(a: &Copies, b: &Copies) {
    assert!(a.forward == b.forward, "forward");
    assert!(a.backward == b.backward, "backward");
    let same = |(a, b): (&Tally<PANEL>, &Tally<PANEL>)| (a.size, a.sum) == (b.size, b.sum);
    assert!(a.columns.iter().zip(&b.columns).all(same), "sums of columns");
    assert_eq!(a.rows, b.rows, "sums of rows");
}

/// A weight at a scale: 32767 or -32768 where it does not fit between.
fn quantum(w: f32, scale: f32) -> i16 {
    rounded(w * scale)
}

#[expect(clippy::cast_possible_truncation, reason = "it was looked at")]
fn rounded(x: f32) -> i16 {
    let q = x.round_ties_even();
    if q < 2_147_483_648.0 { q.clamp(-32_768.0, 32_767.0) as i16 } else { i16::MIN }
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
fn assert_tally(said: u16, truth: i64, what: &str) {
    if truth <= 32_767 {
        assert_eq!(i64::from(said), truth, "{what}");
    } else {
        assert!(said > 32_767, "{what}: {said} hides {truth}");
    }
}

/// Copies that hold what they should in every entry, zeros beyond the last row, and tallies that
/// tell of everything that does not fit.
fn check_copies(weights: &[Row], copies: &Copies, scales: &[f32]) {
    let n = weights.len();
    for (block, first) in (0..n).step_by(BLOCK).enumerate() {
        let rows = first..n.min(first + BLOCK);
        for l in 0..PANEL {
            let q = |i: usize| quantum(weights[i].0[l], scales[block]);
            for i in rows.clone() {
                let found = copies.forward[l / TILE * n + i].0[l % TILE];
                assert_eq!(found, q(i), "forward {i}, {l}");
            }
            assert_tally(copies.columns[block].most(l), most(rows.clone().map(q)), "column");
        }
        let largest = (0..PANEL).map(|l| copies.columns[block].most(l)).max();
        assert_eq!(Some(copies.column_most(block)), largest);
    }
    for i in 0..n.next_multiple_of(TILE) {
        let q = |l: usize| if i < n { quantum(weights[i].0[l], scales[i / BLOCK]) } else { 0 };
        for l in 0..PANEL {
            let found = copies.backward[i / TILE * PANEL + l].0[i % TILE];
            assert_eq!(found, q(l), "backward {i}, {l}");
        }
        if i < n {
            assert_tally(row_most(copies, i), most((0..PANEL).map(q)), "row");
        }
    }
    let mut bounds = vec![[3; 8]; n.div_ceil(8)];
    copies.add_row_bounds(&mut bounds);
    for (i, bound) in bounds.iter().flatten().enumerate().take(n) {
        assert_eq!(*bound, 3 + row_most(copies, i), "bound of row {i}");
    }
}

fn row_most(copies: &Copies, i: usize) -> u16 {
    copies.rows[i / 8][i % 8]
}

/// Whether no subset of rows of a block, and of the columns of a row, can leave 16 bits.
fn assert_no_overflow(weights: &[Row], copies: &Copies, scales: &[f32], what: &str) {
    check_copies(weights, copies, scales);
    let n = weights.len();
    for (block, first) in (0..n).step_by(BLOCK).enumerate() {
        let (rows, scale) = (first..n.min(first + BLOCK), scales[block]);
        for l in 0..PANEL {
            let q = rows.clone().map(|i| quantum(weights[i].0[l], scale));
            assert!(most(q) <= 32_767, "{what}: block {block}, column {l}");
        }
        for i in rows {
            let q = (0..PANEL).map(|l| quantum(weights[i].0[l], scale));
            assert!(most(q) <= 32_767, "{what}: row {i}");
        }
    }
}

/// Quantises the blocks anew whose sums outgrew their scale, as the owner of a panel does.
fn rescale(weights: &[Row], copies: &mut Copies, scales: &mut [f32]) {
    let n = weights.len();
    for (block, scale) in scales.iter_mut().enumerate() {
        let mut rows = block * BLOCK..n.min((block + 1) * BLOCK);
        if copies.column_most(block) >= FULL || rows.any(|i| row_most(copies, i) >= FULL) {
            *scale = fresh_scale(weights, block);
            copies.quantise(weights, block, *scale);
        }
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
        for rows in weights.chunks(BLOCK) {
            let (a, b) = (largest_column_sum(rows), largest_column_sum_portable(rows));
            assert_eq!(a.to_bits(), b.to_bits());
        }
        let (copies, scales) = quantised(&weights);
        let mut twin = Copies::new(n);
        for (block, scale) in scales.iter().enumerate() {
            quantise_block_in::<PORTABLE>(&weights, block, *scale, &mut twin);
        }
        assert_same_copies(&copies, &twin);
        check_copies(&weights, &copies, &scales);
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
        }
    }
}

/// One update by `slope` as it is, by the fast and the portable way, which must agree.
fn move_all(slope: &[Row], weights: &mut [Row], copies: &mut Copies, scales: &[f32]) {
    let n = weights.len();
    let (places, step) = (in_place(n), Step { rate: 1.0, momentum: 0.0, l1: 0.0, l2: 0.0 });
    let slope = [slope, &[Row::ZERO]].concat();
    let gradient = SingleSums::new(&slope, &places);
    let terms = RankOne { rows: &vec![[]; n], columns: &[] };
    let (mut portable, mut twin) = (copies.clone(), weights.to_vec());
    let [mut room, mut twin_room] = [Room::new(n), Room::new(n)];
    let velocity = &mut vec![Row::ZERO; n];
    update_quantised(&gradient, terms, step, weights, velocity, copies, scales, room.dots());
    let (velocity, copies2, dots) = (&mut vec![Row::ZERO; n], &mut portable, twin_room.dots());
    update_quantised_in::<PORTABLE, 0, _>(
        &gradient, terms, step, &mut twin, velocity, copies2, scales, dots,
    );
    // What is not a number may be any of those.
    let same = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    let flat = crate::line::flat::<f32, PANEL>;
    assert!(flat(weights).iter().zip(flat(&twin)).all(same), "weights");
    assert!(room.columns.0.iter().zip(&twin_room.columns.0).all(same), "dots: columns");
    assert!(room.rows.iter().zip(&twin_room.rows).all(same), "dots: rows");
    assert_same_copies(copies, &portable);
}

/// From any weights to any others in one update: what does not fit is told, and rescaling makes it
/// fit again.
#[test]
fn no_update_can_overflow_unnoticed() {
    let heights = if small() { vec![1, 41] } else { vec![1, 2, 7, 65, 321] };
    for n in heights {
        for before in ADVERSARIES {
            for after in ADVERSARIES {
                let mut weights = adversarial(n, before);
                let target = adversarial(n, after);
                let (mut copies, mut scales) = quantised(&weights);
                let difference =
                    |(a, b): (&Row, &Row)| Line(std::array::from_fn(|l| b.0[l] - a.0[l]));
                let slope: Vec<Row> = weights.iter().zip(&target).map(difference).collect();
                move_all(&slope, &mut weights, &mut copies, &scales);
                check_copies(&weights, &copies, &scales);
                rescale(&weights, &mut copies, &mut scales);
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
        let (mut copies, mut scales) = quantised(&weights);
        let slope = [Line([factor; PANEL])];
        move_all(&slope, &mut weights, &mut copies, &scales);
        check_copies(&weights, &copies, &scales);
        rescale(&weights, &mut copies, &mut scales);
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
            assert!(copies.column_most(n / 2 / BLOCK) > 32_767);
            assert!(row_most(&copies, n / 2) > 32_767);
        }
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
    /// Weights rounded, by hand where the machine has the instructions.
    fn quantise_by_hand[](w: [f32; TILE], scale: f32) -> [i16; TILE]
        = quantise_line::<PORTABLE>, wide quantise_line::<WIDE>, widest quantise_line::<WIDEST>;
}

fast! {
    /// The same for pairs of transposed columns.
    fn transpose_by_hand[](x: [[i16; HALF]; 8]) -> [[i16; HALF]; 8]
        = transpose_pair::<PORTABLE>, wide transpose_pair::<WIDE>;
}

/// Whole numbers and halves on both sides of what fits, their neighbours, and NaN and infinities.
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
        (32_766.502, i16::MAX),
        (32_767.0, i16::MAX),
        (32_768.0, i16::MAX),
        (1e9, i16::MAX),
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
fn weights_of_a_line_are_rounded_as_one_is() {
    let numbers = numbers(if small() { 997 } else { 31 });
    for scale in [1.0, 0.5, -1.0, 0.0, 3.7, 1e30, f32::INFINITY] {
        for w in numbers.windows(TILE) {
            let w: [f32; TILE] = w.try_into().expect("32 of them");
            let q = quantise_by_hand(w, scale);
            assert_eq!(q, quantise_line::<PORTABLE>(w, scale), "{w:?} at {scale}");
            assert_eq!(q, w.map(|w| quantum(w, scale)), "{w:?} at {scale}");
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
            assert_eq!(pairs, transpose_pair::<PORTABLE>(x));
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
    let run = |[n_scales, n_shifts, n_dots, n_velocities]: [usize; 4]| {
        std::panic::catch_unwind(move || {
            let (sums, places) = (vec![Row::ZERO; 9], in_place(9));
            let terms = RankOne { rows: &[[1.0]; 9], columns: &[Row::ZERO] };
            let (w, v) = (&mut vec![Row::ZERO; 9], &mut vec![Row::ZERO; n_velocities]);
            let gradient = SingleSums::new(&sums, &places);
            let step = Step { rate: 0.1, momentum: 0.9, l1: 0.0, l2: 0.3 };
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
    assert!(!run([1, 9, 9, 9]));
    assert!([[0, 9, 9, 9], [1, 8, 9, 9], [1, 9, 8, 9], [1, 9, 9, 8]].into_iter().all(run));
}

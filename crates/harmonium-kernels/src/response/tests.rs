use super::*;
use crate::arbitrary::{assert_same, lines, real, sizes, small};
use crate::line::Line;

/// What the documentation claims: $|\sigma - \mathrm{exact}|$ is below this everywhere.
const ABSOLUTE: f64 = 1e-7;

fn sigma(theta: f32) -> f64 {
    1.0 / (1.0 + (-f64::from(theta)).exp())
}

/// Two million natural parameters between `-end` and `end`.
fn grid(end: f32) -> Vec<Wide> {
    let n: u16 = if small() { 255 } else { u16::MAX };
    let step = 2.0 / f32::from(n);
    let at = |i: u16, l: usize| end * (f32::from(i).mul_add(step, -1.0) + step / 32.0 * l as f32);
    (0..n).map(|i| Line(std::array::from_fn(|l| at(i, l)))).collect()
}

/// Rows of natural parameters: moderate, and some beyond all bounds.
fn thetas(n: usize, seed: u64) -> Vec<Wide> {
    let mut theta: Vec<Wide> = lines(n, seed, |u| 12.0 * real(u));
    let extremes = [0.0, -0.0, 200.0, -200.0, f32::INFINITY, f32::NEG_INFINITY, 1e-30, -1e30];
    for (row, x) in theta.iter_mut().zip(extremes.iter().cycle()) {
        row.0[7] = *x;
    }
    theta
}

#[test]
fn probabilities_are_as_good_as_documented() {
    for end in [1.0, 8.0, 87.0] {
        let (mut relative, mut absolute) = (0.0_f64, 0.0_f64);
        let theta = grid(end);
        let mut p = theta.clone();
        probabilities(&mut p);
        for (theta, p) in theta.iter().zip(&p) {
            for (&theta, &p) in theta.0.iter().zip(&p.0) {
                let (expected, x) = (sigma(theta), f64::from(theta).abs());
                let error = (f64::from(p) - expected).abs();
                let unit = (2.0 + x / 8.0) * f64::from(f32::EPSILON);
                relative = relative.max(error / expected / unit);
                absolute = absolute.max(error);
                let exact = (-f64::from(theta)).exp();
                let error = (f64::from(exp_neg(theta)) - exact).abs() / exact;
                assert!(error <= unit, "exp({}) is wrong by {error}", -theta);
            }
        }
        assert!(relative <= 1.0, "{relative} of the bound, up to {end}");
        assert!(absolute <= ABSOLUTE, "{absolute}, up to {end}");
        assert!(small() || relative > 0.5, "the bound can be halved, up to {end}");
    }
}

#[test]
fn probabilities_at_the_ends_are_probabilities() {
    let ends = [0.0, 88.0, 1e3, f32::MAX, f32::INFINITY, f32::NAN];
    for x in ends.into_iter().flat_map(|x| [x, -x]) {
        let mut p = [Line([x; TILE])];
        probabilities(&mut p);
        assert!((0.0..=1.0).contains(&p[0].0[0]), "{x}");
        if !x.is_nan() {
            assert!((f64::from(p[0].0[0]) - sigma(x)).abs() < ABSOLUTE, "{x}");
        }
    }
    let mut half = [Wide::ZERO];
    probabilities(&mut half);
    assert_eq!(half[0].0, [0.5; TILE]);
}

#[test]
fn fast_and_portable_agree_to_the_bit() {
    let (stream, site) = (Stream::new(3), Site { row: 5, sweep: 1, lane: 2 });
    for n in sizes().into_iter().chain([500]) {
        let theta = thetas(n, 1);
        let (mut a, mut b) = (theta.clone(), theta.clone());
        probabilities(&mut a);
        probabilities_portable(&mut b);
        assert_same(&a, &b, "probabilities");
        let p = a.clone();
        assert_same(&[sum_rows(&p)], &[sum_rows_portable(&p)], "sum_rows");
        let betas: Vec<f32> = (0..n).map(|r| r as f32 / 131.0).collect();
        let base = &lines(1, 9, real)[0];
        temper(&mut a, &betas, base);
        temper_portable(&mut b, &betas, base);
        assert_same(&a, &b, "temper");
        let (mut x, mut y) = (vec![1; n], vec![2; n]);
        let (mut a, mut b) = (vec![[0.5; 8]; n], vec![[0.5; 8]; n]);
        let finite: Vec<Wide> = lines(n, 1, |u| 90.0 * real(u));
        let (warmth, draw) = (Warmth { to: 0.3, step: 1e-4 }, (stream, site, 3));
        let far = anneal(&finite, base, warmth, -0.5, draw, &mut a, &mut x);
        let twin = anneal_portable(&finite, base, warmth, -0.5, draw, &mut b, &mut y);
        assert_eq!((far.to_bits(), a, &x), (twin.to_bits(), b, &y), "anneal");
        sample(&theta, stream, site, 3, &mut x);
        sample_in::<PORTABLE>(&theta, stream, site, 3, &mut y);
        assert_eq!(x, y, "sample");
        sample_means(&p, stream, site, 3, &mut x);
        sample_means_in::<PORTABLE>(&p, stream, site, 3, &mut y);
        assert_eq!(x, y, "sample_means");
        let dither = &stream.tile(site, 0).map(|w| w & 255);
        let (mut a, mut b) = (vec![Line([7; TILE]); n], vec![Line([9; TILE]); n]);
        for byte in [Byte::Low, Byte::High] {
            to_fields(&p, dither, byte, &mut a);
            to_fields_portable(&p, dither, byte, &mut b);
            assert_eq!(a, b, "to_fields");
        }
    }
}

#[test]
fn packing_takes_one_bit_of_each_lane() {
    let mut words: Vec<u32> = (0..32).flat_map(|l| [1 << l, !(1 << l)]).collect();
    words.extend(Stream::new(1).tile(Site::default(), 0));
    for word in words {
        let lanes = std::array::from_fn(|l| if word >> l & 1 == 1 { u32::MAX } else { 0 });
        assert_eq!((pack(lanes), pack_portable(lanes)), (word, word));
    }
}

/// The variate of a unit as it is defined, by blocks of four words.
fn variate(stream: Stream, site: Site, unit: usize) -> f64 {
    let block = u32::try_from(unit / 32 * 8 + unit % 8).expect("few units");
    let word = stream.words(Site { row: site.row / 2, ..site }, block)[unit % 32 / 8];
    let (low, high) = (word & 0xffff, word >> 16);
    let bits = if site.row.is_multiple_of(2) { word >> 8 } else { low << 8 | high >> 8 };
    (f64::from(bits) + 0.5) / 16_777_216.0
}

/// A bit may differ only where the variate is as close to the probability as its error: that of
/// the probability, and one rounding of the product.
#[test]
fn a_bit_is_a_comparison_with_a_variate() {
    const CLOSE: f64 = ABSOLUTE + 1.0 / 8_388_608.0;
    let n = if small() { 33 } else { 4001 };
    let stream = Stream::new(8);
    let theta = thetas(n, 4);
    let p: Vec<Wide> = lines(n, 5, |u| real(u).mul_add(0.6, 0.5));
    let (mut bits, mut from_means) = (vec![0; n], vec![0; n]);
    for (first, tile) in [(0, 0), (1, 1), (2, 5), (7, 0), (u32::MAX, 0)] {
        let site = Site { row: first, sweep: 3, lane: 1 };
        sample(&theta, stream, site, tile, &mut bits);
        sample_means(&p, stream, site, tile, &mut from_means);
        let (mut close, mut row) = (0, first);
        for r in 0..n {
            for l in 0..TILE {
                let u = variate(stream, Site { row, ..site }, tile as usize * 32 + l);
                let exact = sigma(theta[r].0[l]);
                if (u - exact).abs() < CLOSE {
                    close += 1;
                } else {
                    assert_eq!(bits[r] >> l & 1 == 1, u < exact, "row {r}, lane {l}");
                }
                let on = from_means[r] >> l & 1 == 1;
                assert_eq!(on, u < f64::from(p[r].0[l]), "means: row {r}, lane {l}");
            }
            row = row.wrapping_add(1);
        }
        assert!(close <= 4, "{close} of {} variates are too close to tell", n * TILE);
    }
}

/// Within 5 standard errors of the probability.
#[test]
fn frequencies_are_the_probabilities() {
    let n = if small() { 100 } else { 10_000 };
    let theta: Wide = Line(std::array::from_fn(|l| l as f32 / 2.0 - 8.0));
    let (mut bits, mut counts) = (vec![0; n], [0_u32; TILE]);
    sample(&vec![theta; n], Stream::new(2), Site::default(), 1, &mut bits);
    for word in bits {
        (0..TILE).for_each(|l| counts[l] += word >> l & 1);
    }
    for l in 0..TILE {
        let (p, mean) = (sigma(theta.0[l]), f64::from(counts[l]) / n as f64);
        let error = (p * (1.0 - p) / n as f64).sqrt();
        assert!((mean - p).abs() <= 5.0 * error, "{mean}, not {p}");
    }
}

#[test]
fn tempering_interpolates() {
    let theta: Vec<Wide> = lines(40, 1, real);
    let base = &lines(1, 2, real)[0];
    let betas: Vec<f32> = (0..40_u16).map(|r| f32::from(r) / 39.0).collect();
    let mut tempered = theta.clone();
    temper(&mut tempered, &betas, base);
    for (r, row) in tempered.iter().enumerate() {
        for l in 0..TILE {
            let (beta, t) = (f64::from(betas[r]), f64::from(theta[r].0[l]));
            let b = f64::from(base.0[l]);
            let expected = beta * t + (1.0 - beta) * b;
            // The difference and the sum are rounded once each.
            let bound = f64::from(f32::EPSILON) * (t.abs() + b.abs());
            assert!((f64::from(row.0[l]) - expected).abs() <= bound);
        }
    }
    assert_eq!(tempered[0], *base);
}

#[test]
fn rows_are_summed() {
    for n in sizes() {
        let p: Vec<Wide> = lines(n, 6, real);
        let sum = sum_rows(&p);
        for l in 0..TILE {
            let expected: f64 = p.iter().map(|row| f64::from(row.0[l])).sum();
            let size: f64 = p.iter().map(|row| f64::from(row.0[l]).abs()).sum();
            let bound = n as f64 / 16_777_216.0 * size;
            assert!((f64::from(sum.0[l]) - expected).abs() <= bound, "{n} rows");
        }
    }
}

/// Fields as they are defined: fixed point with eight bits after the point, plus the dither.
#[test]
fn fields_are_dithered_levels() {
    let n = if small() { 9 } else { 300 };
    let [low, high]: [Vec<Wide>; 2] = [1, 2].map(|seed| lines(n, seed, |u| real(u).abs()));
    let dither: [u32; TILE] = Stream::new(1).tile(Site::default(), 0).map(|w| w >> 24);
    let mut q = vec![Line([0xabcd; TILE]); n];
    to_fields(&low, &dither, Byte::Low, &mut q);
    let first = q.clone();
    to_fields(&high, &dither, Byte::High, &mut q);
    for r in 0..n {
        for l in 0..TILE {
            let dither = (dither[l] as usize + 159 * r) % 256;
            let level = |p: f32| {
                let fixed = (f64::from(p) * f64::from(LEVELS) * 256.0).round_ties_even();
                ((fixed + dither as f64) / 256.0).floor()
            };
            assert_eq!(f64::from(first[r].0[l]), level(low[r].0[l]));
            assert_eq!(q[r].0[l] & 0xff, first[r].0[l]);
            assert_eq!(f64::from(q[r].0[l] >> 8), level(high[r].0[l]));
        }
    }
}

/// Over all 256 dithers the mean level is the probability in fixed point, which is off by at most
/// half of 1/256; and 256 rows see all dithers.
#[test]
fn fields_keep_the_mean_and_never_exceed_the_levels() {
    let mut p: Vec<f32> =
        lines::<_, TILE>(3, 1, |u| real(u).abs()).iter().flat_map(|p| p.0).collect();
    p.extend([0.0, 1.0, 1.0 - f32::EPSILON / 2.0, 1e-30, 0.5, 1.0 / 3072.0, 1.0 / 6144.0]);
    for &p in &p {
        let (mut sum, mut by_rows) = (0_u32, vec![Fields::ZERO; 256]);
        for d in 0..256 {
            let mut q = [Fields::ZERO];
            to_fields(&[Line([p; TILE])], &[d; TILE], Byte::Low, &mut q);
            assert!(u32::from(q[0].0[0]) <= LEVELS, "{p}, {d}");
            sum += u32::from(q[0].0[0]);
        }
        let levels = f64::from(p) * f64::from(LEVELS);
        assert!((f64::from(sum) / 256.0 - levels).abs() <= 1.0 / 512.0, "{p}");
        assert!(p != 0.0 || sum == 0, "never a level at 0");
        assert!(p != 1.0 || sum == 256 * LEVELS, "always all levels at 1");
        to_fields(&vec![Line([p; TILE]); 256], &[17; TILE], Byte::Low, &mut by_rows);
        let rows: u32 = by_rows.iter().map(|q| u32::from(q.0[31])).sum();
        assert_eq!(rows, sum, "{p}: rows step through all dithers");
    }
}

/// Differences of softplus in double precision, for binary units and spins.
#[test]
fn a_short_step_of_annealing_is_a_difference() {
    let softplus = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
    let theta: Vec<Wide> = lines(200, 4, |u| 40.0 * real(u));
    let base = lines::<_, TILE>(1, 9, real)[0];
    let (draw, n) = ((Stream::new(5), Site::new(3, 1, 2), 4), theta.len());
    for (to, step) in [(1e-4, 1e-4), (0.5, 1e-3), (0.97, -2e-4), (1.0, 1e-3), (0.0, -1e-3)] {
        for c in [0.0, -0.5] {
            let (mut sums, mut bits, mut expected_bits) =
                (vec![[0.25; 8]; n], vec![0; n], vec![1; n]);
            let warmth = Warmth { to, step };
            let far = anneal(&theta, &base, warmth, c, draw, &mut sums, &mut bits);
            let mut p = theta.clone();
            temper(&mut p, &vec![to; n], &base);
            probabilities(&mut p);
            sample_means(&p, draw.0, draw.1, draw.2, &mut expected_bits);
            assert_eq!(bits, expected_bits);
            let mut farthest = 0.0_f64;
            for (row, sum) in theta.iter().zip(&sums) {
                let (mut expected, mut size) = (2.0, 0.0);
                let sum: f64 = sum.iter().map(|x| f64::from(*x)).sum();
                for (t, b) in row.0.iter().zip(base.0) {
                    let gap = f64::from(*t) - f64::from(b);
                    let delta = f64::from(step) * gap;
                    let a = f64::from(b) + f64::from(to) * gap;
                    expected += softplus(a) - softplus(a - delta) + f64::from(c) * delta;
                    size += delta.abs();
                    farthest = farthest.max(delta.abs());
                }
                let bound = 32.0 * 3e-8 + 1e-6 * size;
                assert!((sum - expected).abs() < bound, "{sum}, not {expected}");
            }
            assert!((f64::from(far) - farthest).abs() <= 1e-6 * farthest);
        }
    }
}

use super::*;
use crate::line::Line;

/// Numbers between -2 and 2, different for each place.
fn noise(seed: u64, i: usize) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "test numbers")]
    let x = (4.0 * Stream::new(seed).uniform(Site::default(), i) - 2.0) as f32;
    x
}

fn lanes(seed: u64, n: usize) -> Vec<Lanes> {
    (0..n).map(|i| Line(std::array::from_fn(|l| noise(seed, 32 * i + l)))).collect()
}

fn words(seed: u64, n: usize) -> Vec<u32> {
    (0..n)
        .map(|i| Stream::new(seed).words(Site::default(), u32::try_from(i).unwrap_or(0))[0])
        .collect()
}

fn heat<'a>(betas: &'a Lanes, base: &'a [f32]) -> Heat<'a> {
    Heat { betas, base }
}

fn draws() -> Draws {
    Draws { stream: Stream::new(9), site: Site::new(64, 3, 1) }
}

fn variates() -> Variates {
    let mut variates = Variates::default();
    variates.draw(draws(), 5);
    variates
}

#[test]
fn bits_are_transposed() {
    let original: [u32; 32] = words(1, 32).try_into().expect("32 words");
    let mut turned = original;
    transpose_bits(&mut turned);
    for i in 0..32 {
        for j in 0..32 {
            assert_eq!(turned[i] >> j & 1, original[j] >> i & 1, "({i}, {j})");
        }
    }
    transpose_bits(&mut turned);
    assert_eq!(turned, original);
}

#[test]
fn rows_become_units() {
    for n_rows in [0, 1, 31, 32] {
        let rows = lanes(2, n_rows);
        let mut units = lanes(3, 32);
        to_lanes(&rows, &mut units);
        for (i, unit) in units.iter().enumerate() {
            for l in 0..32 {
                assert_eq!(unit.0[l], rows.get(l).map_or(0.0, |r| r.0[i]));
            }
        }
    }
}

#[test]
fn variates_are_those_of_rows() {
    let variates = variates();
    for i in 0..32 {
        for l in 0..32 {
            let u = Stream::new(9).uniform(Site::new(64 + l, 3, 1), 160 + i);
            assert!((f64::from(variates.units[i].0[l] / FULL) - u).abs() < 1e-7);
        }
    }
}

/// Unit after unit, row after row, in double precision.
#[test]
fn units_in_turn_see_the_changes_before_them() {
    let variates = variates();
    let rows: Vec<Row> =
        (0..64).map(|i| Line(std::array::from_fn(|j| noise(5, 64 * i + j)))).collect();
    let betas: Lanes = Line(std::array::from_fn(|l| l as f32 / 31.0));
    let base: Vec<f32> = (0..32).map(|i| noise(6, i)).collect();
    for (n, first, gain) in [(32, 0, 1.0), (32, 32, 4.0), (7, 32, 4.0), (1, 0, 1.0)] {
        let n_theta = if first == 0 && n == 32 { 64 } else { n };
        let (start, old) = (lanes(4, n_theta), words(7, n));
        let (mut theta, mut new) = (start.clone(), old.clone());
        let own = &rows[first..first + n];
        sample_in_turn(&mut theta, own, first, gain, heat(&betas, &base), &variates, &mut new);
        let mut close = 0;
        for l in 0..32 {
            let mut field: Vec<f64> = start.iter().map(|t| f64::from(t.0[l])).collect();
            for i in 0..n {
                let beta = f64::from(betas.0[l]);
                let t = beta * field[i] + (1.0 - beta) * f64::from(base[i]);
                let u = f64::from(variates.units[i].0[l] / FULL);
                let (p, bit) = (1.0 / (1.0 + (-t).exp()), new[i] >> l & 1 == 1);
                close += usize::from((u - p).abs() < 1e-5);
                assert!(bit == (u < p) || (u - p).abs() < 1e-5, "unit {i}, row {l}");
                let change = f64::from(new[i] >> l & 1) - f64::from(old[i] >> l & 1);
                for j in i + 1..n_theta {
                    let w = f64::from(own[i].0[first + j]);
                    field[j] += f64::from(gain) * change * w;
                }
            }
            for j in n..n_theta {
                assert!((field[j] - f64::from(theta[j].0[l])).abs() < 1e-4, "unit {j}, row {l}");
            }
        }
        assert!(close < 3, "the test decides almost everything");
    }
}

#[test]
fn linked_units_gather_what_their_neighbours_send() {
    // Units 32..64 see some of the first 32.
    let mut links = Links { starts: vec![0; 33], ..Links::default() };
    for i in 32..64_u32 {
        for k in 0..i % 5 {
            links.units.push((7 * i + 3 * k) % 32);
            links.weights.push(noise(8, (i * 5 + k) as usize));
        }
        links.starts.push(u32::try_from(links.units.len()).unwrap_or(0));
    }
    let (betas, base) = (Line([1.0; 32]), [0.0; 32]);
    let (each, old) = (lanes(4, 32), words(7, 64));
    let same: Vec<f32> = each.iter().map(|l| l.0[0]).collect();
    let draws = draws();
    for input in [Input::Each(&each), Input::Same(&same)] {
        let mut new = old.clone();
        sample_together(input, 32, &links, heat(&betas, &base), draws, &mut new);
        assert_eq!(new[..32], old[..32]);
        let mut close = 0;
        for i in 0..32 {
            let range = links.starts[32 + i] as usize..links.starts[33 + i] as usize;
            for l in 0..32 {
                let sent = range.clone().filter(|&k| old[links.units[k] as usize] >> l & 1 == 1);
                let t: f64 = sent.map(|k| f64::from(links.weights[k])).sum();
                let own = match input {
                    Input::Each(each) => each[i].0[l],
                    Input::Same(same) => same[i],
                };
                // Unit 32 + i and rows 64 to 95 have changed places.
                let u = draws.stream.uniform(Site::new(2 * (32 + i), 3, 1), 64 + l);
                let p = 1.0 / (1.0 + (-t - f64::from(own)).exp());
                let bit = new[32 + i] >> l & 1 == 1;
                close += usize::from((u - p).abs() < 1e-5);
                assert!(bit == (u < p) || (u - p).abs() < 1e-5, "unit {i}, row {l}");
            }
        }
        assert!(close < 3, "the test decides almost everything");
    }
}

/// The wide version gives the bits of the portable one.
#[test]
fn fast_and_portable_agree_to_the_bit() {
    let rows: Vec<Row> =
        (0..32).map(|i| Line(std::array::from_fn(|j| noise(5, 64 * i + j)))).collect();
    let (betas, base) = (Line([0.7; 32]), [0.2; 32]);
    let heat = heat(&betas, &base);
    let (fast, draws) = (variates(), draws());
    let mut portable = Variates::default();
    draw_portable(draws, 5, &mut portable.units);
    assert_eq!(fast.units, portable.units);
    let (mut a, mut b) = (lanes(4, 64), lanes(4, 64));
    let (mut x, mut y) = (words(7, 32), words(7, 32));
    sample_in_turn(&mut a, &rows, 0, 4.0, heat, &fast, &mut x);
    sample_in_turn_portable(&mut b, &rows, 0, 4.0, heat, &fast, &mut y);
    assert_eq!((a, x), (b, y));
    let links = Links {
        starts: (0..=64).map(|i: u32| i.saturating_sub(32) * 2).collect(),
        units: (0..64).map(|k| k * 5 % 32).collect(),
        weights: (0..64).map(|k| noise(3, k)).collect(),
    };
    let input = lanes(4, 32);
    let (mut x, mut y) = (words(7, 64), words(7, 64));
    sample_together(Input::Each(&input), 32, &links, heat, draws, &mut x);
    sample_together_portable(Input::Each(&input), 32, &links, heat, draws, &mut y);
    assert_eq!(x, y);
}

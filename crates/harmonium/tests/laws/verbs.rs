//! Every unit kind: the four verbs against sums over its configurations.

use crate::machines::{assert_close, noise, statistic};
use crate::statistics::{assert_distributed, assert_mean};
use harmonium::machine::{Layer, Role};
use harmonium::random::{Site, Stream};
use harmonium::units::{Draw, OwnParameter, OwnParameters, Storage, Units};

const DISCRETE: [Units; 8] = [
    Units::Binary,
    Units::Spin,
    Units::Categorical { q: 3 },
    Units::Categorical { q: 5 },
    Units::Binomial { n: 1 },
    Units::Binomial { n: 6 },
    Units::Counts { max: 9 },
    Units::Ordinal { levels: 5 },
];

/// Own parameters of four units that are not those they start with.
fn own(units: Units) -> Vec<f64> {
    let n = 4 * units.group();
    let of = |p: &OwnParameter| (0..n).map(|i| p.start + 0.4 * noise(77, i)).collect::<Vec<_>>();
    units.own_parameters().iter().flat_map(of).collect()
}

/// Four units' worth of inputs.
fn theta(units: Units, seed: u64) -> Vec<f64> {
    (0..4 * units.group()).map(|i| 5.0 * noise(seed, i)).collect()
}

/// $p$ of each configuration of one unit, and the logarithm of their sum.
fn weights(units: Units, theta: &[f64], own: OwnParameters<'_>) -> (Vec<f64>, f64) {
    let energy = |c: &Vec<f64>| -> f64 {
        let rows = 0..units.own_parameters().len();
        rows.map(|k| own.row(k)[0] * statistic(units, k, c[0])).sum()
    };
    let dot = |c: &Vec<f64>| c.iter().zip(theta).map(|(c, t)| c * t).sum::<f64>() - energy(c);
    let e: Vec<f64> = units.configurations().unwrap().0.iter().map(|c| dot(c).exp()).collect();
    let z: f64 = e.iter().sum();
    (e.iter().map(|e| e / z).collect(), z.ln())
}

#[test]
fn means_and_partition_functions_are_sums_over_configurations() {
    for units in DISCRETE {
        for seed in 0..20 {
            let (theta, own) = (theta(units, seed), own(units));
            let own = OwnParameters::new(&own, theta.len());
            let group = units.group();
            let mut mean = theta.clone();
            units.mean_in_place(&mut mean, own);
            let mut log_z = 0.0;
            for (u, (t, m)) in theta.chunks(group).zip(mean.chunks(group)).enumerate() {
                let (p, l) = weights(units, t, own.piece(u * group..(u + 1) * group));
                log_z += l;
                for (i, m) in m.iter().enumerate() {
                    let configurations = units.configurations().unwrap().0;
                    let expected: f64 = p.iter().zip(&configurations).map(|(p, c)| p * c[i]).sum();
                    assert_close(expected, *m, 1e-12, units.name());
                }
            }
            assert_close(log_z, units.log_partition(&theta, own), 1e-12, units.name());
        }
    }
}

#[test]
fn the_mode_is_the_most_probable_configuration() {
    for units in DISCRETE {
        for seed in 0..20 {
            let (theta, own) = (theta(units, seed), own(units));
            let own = OwnParameters::new(&own, theta.len());
            let group = units.group();
            let mut mode = theta.clone();
            units.mode_in_place(&mut mode, own);
            for (u, (t, m)) in theta.chunks(group).zip(mode.chunks(group)).enumerate() {
                let (p, _) = weights(units, t, own.piece(u * group..(u + 1) * group));
                let best = (0..p.len()).max_by(|&a, &b| p[a].total_cmp(&p[b])).unwrap();
                assert_eq!(m, units.configurations().unwrap().0[best], "{}", units.name());
            }
        }
        let mut tie = vec![0.0; units.group()];
        let even = vec![0.0; units.own_parameters().len() * tie.len()];
        let n = tie.len();
        units.mode_in_place(&mut tie, OwnParameters::new(&even, n));
        assert_eq!(tie, units.configurations().unwrap().0[0], "ties go to the lower value");
    }
}

#[test]
fn samples_have_the_probabilities_of_the_configurations() {
    for units in DISCRETE {
        let (theta, own) = (theta(units, 3), own(units));
        let own = OwnParameters::new(&own, theta.len());
        let group = units.group();
        let configurations = units.configurations().unwrap().0;
        let mut counts = vec![vec![0.0; configurations.len()]; 4];
        for row in 0..20_000 {
            let site = Site { row, sweep: 1, lane: 2 };
            let mut x = theta.clone();
            units.sample_in_place(&mut x, own, Draw { stream: Stream::new(5), site, start: 0 });
            for (counts, x) in counts.iter_mut().zip(x.chunks(group)) {
                counts[configurations.iter().position(|c| c == x).unwrap()] += 1.0;
            }
        }
        for (u, (counts, t)) in counts.iter().zip(theta.chunks(group)).enumerate() {
            let own = own.piece(u * group..(u + 1) * group);
            assert_distributed(units.name(), counts, &weights(units, t, own).0);
        }
    }
}

#[test]
fn a_piece_of_a_layer_draws_what_the_whole_would() {
    for units in DISCRETE.into_iter().chain([Units::Gaussian]) {
        let theta = theta(units, 4);
        let own = vec![0.7; theta.len() * units.own_parameters().len()];
        let own = OwnParameters::new(&own, theta.len());
        let draw = |start| Draw { stream: Stream::new(9), site: Site::default(), start };
        let mut whole = theta.clone();
        units.sample_in_place(&mut whole, own, draw(0));
        for start in (0..theta.len()).step_by(units.group()) {
            let range = start..start + units.group();
            let mut piece = theta[range.clone()].to_vec();
            units.sample_in_place(&mut piece, own.piece(range.clone()), draw(start));
            assert_eq!(piece, whole[range], "{} from entry {start}", units.name());
        }
    }
}

/// Simpson's rule over ±12 standard deviations.
fn integral(f: impl Fn(f64) -> f64, centre: f64, width: f64) -> f64 {
    let n = 4000;
    let h = 24.0 * width / f64::from(n);
    let at = |k: i32| f(centre - 12.0 * width + f64::from(k) * h);
    (0..=n)
        .map(|k| match k {
            0 => at(k),
            k if k == n => at(k),
            k if k % 2 == 1 => 4.0 * at(k),
            k => 2.0 * at(k),
        })
        .sum::<f64>()
        * h
        / 3.0
}

#[test]
fn gaussian_verbs_are_integrals() {
    for (theta, gamma) in [(0.7_f64, 1.3_f64), (-2.0, 0.4), (0.0, 5.0)] {
        let weight = |x: f64| (theta * x - 0.5 * gamma * x * x).exp();
        let (centre, width) = (theta / gamma, 1.0 / gamma.sqrt());
        let z = integral(weight, centre, width);
        let mean = integral(|x| x * weight(x), centre, width) / z;
        let entropy = -integral(
            |x| {
                let p = weight(x) / z;
                if p > 0.0 { p * p.ln() } else { 0.0 }
            },
            centre,
            width,
        );
        let (units, gammas) = (Units::Gaussian, [gamma]);
        let own = OwnParameters::new(&gammas, 1);
        assert_close(z.ln(), units.log_partition(&[theta], own), 1e-10, "log partition");
        assert_close(entropy, units.entropy(&[mean], own), 1e-8, "entropy");
        for verb in [Units::mean_in_place, Units::mode_in_place] {
            let mut x = [theta];
            verb(units, &mut x, own);
            assert_close(mean, x[0], 1e-10, "mean and mode");
        }
        let draws: Vec<f64> = (0..20_000)
            .map(|row| {
                let mut x = [theta];
                let site = Site { row, ..Site::default() };
                let draw = Draw { stream: Stream::new(2), site, start: 0 };
                units.sample_in_place(&mut x, own, draw);
                x[0]
            })
            .collect();
        assert_mean("sample", &draws, mean);
        let squares: Vec<f64> = draws.iter().map(|x| (x - mean).powi(2)).collect();
        assert_mean("variance", &squares, 1.0 / gamma);
    }
}

#[test]
fn entropies_are_those_of_the_configurations() {
    for units in DISCRETE {
        let (theta, own) = (theta(units, 8), own(units));
        let own = OwnParameters::new(&own, theta.len());
        let group = units.group();
        let mut mean = theta.clone();
        units.mean_in_place(&mut mean, own);
        let mut expected = 0.0;
        for (u, t) in theta.chunks(group).enumerate() {
            let own = own.piece(u * group..(u + 1) * group);
            let (p, _) = weights(units, t, own);
            expected -= p.iter().map(|p| p * p.ln()).sum::<f64>();
            // What the own energy at the mean, between two values, has more than its mean.
            for k in 0..units.own_parameters().len() {
                let at = |x: f64| own.row(k)[0] * statistic(units, k, x);
                let spread: f64 = p.iter().enumerate().map(|(x, p)| p * at(x as f64)).sum();
                let (below, share) = (mean[u].floor(), mean[u].fract());
                expected += (1.0 - share) * at(below) + share * at(below + 1.0) - spread;
            }
        }
        assert_close(expected, units.entropy(&mean, own), 1e-10, units.name());
    }
    let sure: [(Units, &[f64]); 3] = [
        (Units::Binary, &[0.0, 1.0]),
        (Units::Spin, &[-1.0, 1.0]),
        (Units::Categorical { q: 2 }, &[0.0, 1.0]),
    ];
    for (units, mean) in sure {
        assert_eq!(units.entropy(mean, OwnParameters::NONE), 0.0, "what is sure has no entropy");
    }
}

#[test]
fn huge_inputs_stay_finite() {
    for t in [-1e4, -800.0, 800.0, 1e4] {
        assert!((Units::Binary.log_partition(&[t], OwnParameters::NONE) - t.max(0.0)).abs() < 1e-9);
        assert!((Units::Spin.log_partition(&[t], OwnParameters::NONE) - t.abs()).abs() < 1e-9);
        let mut x = [t, 0.0, -t];
        Units::Categorical { q: 3 }.mean_in_place(&mut x, OwnParameters::NONE);
        assert!(x.iter().all(|p| p.is_finite()) && (x.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
    let mut x = [1e4, -1e4];
    Units::Binary.mean_in_place(&mut x, OwnParameters::NONE);
    assert_eq!(x, [1.0, 0.0]);
}

#[test]
fn neutral_means_are_means_at_zero() {
    for units in DISCRETE.into_iter().chain([Units::Gaussian]) {
        let mut x = vec![0.0; units.group()];
        let own: Vec<f64> = units.own_parameters().iter().map(|p| p.start).collect();
        units.mean_in_place(&mut x, OwnParameters::new(&own, 1));
        assert_close(x[0], units.neutral_mean(), 1e-15, units.name());
    }
}

#[test]
fn what_a_kind_says_of_its_values_agrees_with_the_list_of_them() {
    for units in DISCRETE.into_iter().chain([Units::Gaussian]) {
        let listed = units.configurations();
        assert_eq!(units.is_finite(), listed.is_some(), "{}", units.name());
        let Some(listed) = listed else {
            assert_eq!(units.bit_coordinates(), None, "{}", units.name());
            continue;
        };
        let Some(bits) = units.bit_coordinates() else {
            assert_eq!(units.storage(), Storage::Levels, "{}", units.name());
            assert!(listed.0.iter().enumerate().all(|(k, x)| *x == [k as f64]));
            continue;
        };
        let values = [bits.shift, bits.scale + bits.shift];
        assert!(listed.0.iter().flatten().all(|x| values.contains(x)), "{}", units.name());
        let set = |unit: &Vec<f64>| unit.iter().filter(|x| **x == values[1]).count();
        match units.storage() {
            Storage::Bits => assert_eq!(listed.0, [[values[0]], [values[1]]], "{}", units.name()),
            Storage::OneHot => assert!(listed.0.iter().all(|unit| set(unit) == 1)),
            other => panic!("{} units are finite, but {other:?}", units.name()),
        }
    }
}

/// A machine with one own parameter moved has an energy that moved by the statistic.
#[test]
fn the_energy_is_linear_in_own_parameters() {
    for units in DISCRETE.into_iter().chain([Units::Gaussian]) {
        for (k, parameter) in units.own_parameters().iter().enumerate() {
            let mut layer = Layer::new("v", Role::Visible, units, 3).unwrap();
            assert_eq!(layer.own_named(parameter.name), [parameter.start; 3]);
            let x = if units.is_finite() { [0.0, 1.0, 1.0] } else { [0.3, -1.2, 2.0] };
            let before = layer.energy(&x);
            layer.own[k * 3 + 1] += 0.7;
            let expected = before + units.own_term(k, 0.7, x[1]);
            assert_close(layer.energy(&x), expected, 1e-12, parameter.name);
            assert!(parameter.accepts(parameter.start), "{}", parameter.name);
            // A small step moves the energy by the slope along the scale of learning.
            let value = layer.own[k * 3 + 1];
            let moved = parameter.moved(value, 1e-6) - value;
            let slope = parameter.gradient(value, 1.0);
            assert_close(moved / 1e-6, slope, 1e-5, parameter.name);
        }
    }
}

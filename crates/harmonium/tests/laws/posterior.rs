//! Sums over the hidden units of each row, by annealing, held against enumeration.

use crate::machines::{all, extent, named, some_states};
use crate::statistics::assert_mean;
use harmonium::engine::Arithmetic;
use harmonium::error::Error;
use harmonium::evaluation::likelihood::estimate;
use harmonium::evaluation::log_partition::{self, Bracket, Method, log_partition};
use harmonium::evaluation::row_sums::{How, RowWork, annealed_log_sums, log_sums};
use harmonium::exact;
use harmonium::progress::Silent;
use harmonium::sampling::{Clamp, Sampler, posterior_factorises};

const PRECISIONS: [Arithmetic; 2] = [Arithmetic::F64, Arithmetic::F32];

#[test]
fn annealing_finds_the_sum_of_each_row() {
    for (name, machine) in all() {
        let clamp = Clamp::visible(&machine);
        let x = some_states(&machine, 5, 81);
        let exact = exact::log_sums(&machine, &clamp, &x).unwrap();
        for precision in PRECISIONS {
            let sampler = Sampler::new(machine.clone(), precision);
            let settings = RowWork { betas: 8, chains: 400, ..RowWork::default() };
            let found = annealed_log_sums(&sampler, &clamp, &x, 0, &settings).unwrap();
            assert_eq!(found.how, How::Annealed);
            for row in 0..x.n_rows() {
                let [error, below, above] = found.std_errors[row];
                let what = format!("{name}, {precision:?}, row {row}: {} in {found:?}", exact[row]);
                assert!((found.rows[row] - exact[row]).abs() <= 5.0 * error + 1e-5, "{what}");
                assert!(found.bounds[row] <= exact[row] + 1e-5, "{what}");
                assert!(found.lower[row] <= exact[row] + 5.0 * below + 1e-5, "{what}");
                assert!(found.upper[row] >= exact[row] - 5.0 * above - 1e-5, "{what}");
            }
        }
    }
}

#[test]
fn weights_of_a_row_are_unbiased_however_few_temperatures_there_are() {
    for (name, machine) in all() {
        let clamp = Clamp::visible(&machine);
        if posterior_factorises(&machine, &clamp) {
            continue;
        }
        let x = some_states(&machine, 3, 82);
        let exact = exact::log_sums(&machine, &clamp, &x).unwrap();
        let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
        let ratios: Vec<f64> = (0..extent(80, 200))
            .map(|seed| {
                // With two temperatures a state that the base hardly has may carry the sum.
                let settings = RowWork { betas: 4, chains: 20, seed, ..RowWork::default() };
                let found = annealed_log_sums(&sampler, &clamp, &x, 0, &settings).unwrap();
                (found.lower[1] - exact[1]).exp()
            })
            .collect();
        assert_mean(&name, &ratios, 1.0);
    }
}

#[test]
fn small_or_factorised_sums_are_exact() {
    for (name, machine) in all() {
        let (clamp, sampler) =
            (Clamp::visible(&machine), Sampler::new(machine.clone(), Arithmetic::F64));
        let x = some_states(&machine, 4, 83);
        let exact = exact::log_sums(&machine, &clamp, &x).unwrap();
        let found = log_sums(&sampler, &clamp, &x, 0, &RowWork::default()).unwrap();
        assert_eq!((found.how, found.bracket()), (How::Exact, Bracket::Bound), "{name}");
        for (found, exact) in found.rows.iter().zip(&exact) {
            assert!((found - exact).abs() < 1e-9, "{name}: {found} is not {exact}");
        }
    }
}

#[test]
fn a_score_holds_the_exact_one_in_its_interval() {
    let (mut tried, mut missed) = (0, Vec::new());
    for (name, machine) in all() {
        let clamp = Clamp::visible(&machine);
        let x = some_states(&machine, 20, 84);
        let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
        let settings = RowWork { betas: 8, chains: 30, ..RowWork::default() };
        let sums = annealed_log_sums(&sampler, &clamp, &x, 0, &settings).unwrap();
        let how = log_partition::Settings {
            method: Some(Method::Sandwich),
            betas: Some(30),
            ..log_partition::Settings::default()
        };
        let log_z = log_partition(&machine, &how, &mut Silent).unwrap();
        let exact = exact::log_probabilities(&machine, &clamp, &x).unwrap();
        let exact = exact.iter().sum::<f64>() / 20.0;
        let found = estimate(&sums, &[1.0; 20], &log_z);
        assert_eq!(found.bracket, Bracket::Heuristic);
        tried += 1;
        // The lower ends hold with a margin of 97.5 % each, as does the upper one.
        let lower = found.lower.max(found.bound_lower);
        if exact < lower - 1e-5 || exact > found.upper + 1e-5 {
            missed.push(name.clone());
        }
        assert!((found.mean - exact).abs() <= 5.0 * found.std_error + 1e-5, "{name}");
    }
    // Five in a hundred may miss; four times the standard deviation above that cannot be.
    let allowed = 0.05 * f64::from(tried) + 4.0 * (0.05 * 0.95 * f64::from(tried)).sqrt();
    assert!((missed.len() as f64) < allowed, "{missed:?} of {tried}");
}

#[test]
fn settings_that_cannot_be_are_explained() {
    let machine = named("chain of binary");
    let (clamp, sampler) =
        (Clamp::visible(&machine), Sampler::new(machine.clone(), Arithmetic::F64));
    let x = some_states(&machine, 2, 85);
    for settings in
        [RowWork { betas: 1, ..RowWork::default() }, RowWork { chains: 0, ..RowWork::default() }]
    {
        let found = log_sums(&sampler, &clamp, &x, 0, &settings);
        assert!(matches!(found, Err(Error::Setting { .. })), "{found:?}");
    }
}

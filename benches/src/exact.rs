//! How long an exact partition function takes, and what the Gray code and threads are worth.

use crate::Outcome;
use crate::turns::{medians, on_threads};
use harmonium::exact;
use harmonium::machine::Machine;
use harmonium::models::Rbm;
use harmonium::sampling::Clamp;
use harmonium::training::{Plan, initialise};
use harmonium::units::log_sum_exp;
use harmonium_data::{Binarize, Dataset, Table};

/// An RBM with weights as large as trained ones.
fn rbm(n_visible: usize, n_hidden: usize) -> Result<Machine, Box<dyn std::error::Error>> {
    let pixels = (0..4 * n_visible).map(|i| f32::from(u8::from(i * 7919 % 3 == 0))).collect();
    let data = Dataset::new(Table::from_real(pixels, n_visible)?, Binarize::None)?;
    let mut machine = Rbm::binary(n_visible, n_hidden)?.into_machine();
    initialise(&mut machine, &data, &Plan { initial_std: 0.3, ..Plan::default() })?;
    Ok(machine)
}

/// One free energy after the other, as a first program would do it.
fn plain(machine: &Machine, n_hidden: usize) -> Result<f64, harmonium::Error> {
    let zero = harmonium::machine::State::zeros(machine, 1)?;
    let states = exact::states(machine, &Clamp::layers([Rbm::VISIBLE]), &zero, 0)?;
    assert_eq!(states.n_rows(), 1 << n_hidden);
    let free = machine.free_energy_over(&[Rbm::VISIBLE], &states)?;
    Ok(log_sum_exp(&free.iter().map(|f| -f).collect::<Vec<_>>()))
}

pub(crate) fn run() -> Outcome {
    let small = rbm(784, 12)?;
    let fast = exact::log_partition(&small)?;
    assert!((fast - plain(&small, 12)?).abs() < 1e-9, "both ways give one answer");
    let times = medians(
        5,
        &mut [&mut || drop(exact::log_partition(&small)), &mut || drop(plain(&small, 12))],
    );
    println!(
        "RBM 784x12: Gray code {:.4} s, state by state {:.4} s: {:.0}x",
        times[0],
        times[1],
        times[1] / times[0]
    );
    let large = rbm(784, 20)?;
    let on = |n: usize| {
        let large = &large;
        move || drop(on_threads(n, || exact::log_partition(large)))
    };
    let times = medians(5, &mut [&mut on(1), &mut on(2)]);
    println!(
        "RBM 784x20: {:.3} s on 1 thread, {:.3} s on 2: {:.2}x",
        times[0],
        times[1],
        times[0] / times[1]
    );
    Ok(())
}

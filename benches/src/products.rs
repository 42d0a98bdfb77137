//! The product v→h alone: bits by tables and lists against dense numbers.
//!
//! The library's time includes looking at the bits and choosing between tables and lists, and
//! adding the biases.

use crate::report::Report;
use crate::step::{NAMES, heads, n_contenders, named_ratios, random_bits, ratios, told};
use crate::turns::{Contender, median, on_threads, take_turns, timed};
use crate::yardstick::{Dense, Yardstick};
use crate::{Fallible, Outcome};
use harmonium::engine::Arithmetic;
use harmonium::machine::{Machine, State};
use harmonium::models::Rbm;
use harmonium::sampling::Sampler;
use harmonium::training::{Plan, initialise};
use harmonium_data::{Binarize, Dataset, Table};
use harmonium_kernels::bits::BitMatrix;
use harmonium_kernels::line::{TILE, Wide};
use serde_json::json;

const SHAPE: (usize, usize) = (784, 500);

/// Times products of batches of the given sizes and densities.
pub(crate) fn run(
    batches: &[usize],
    densities: &[f64],
    seconds: f64,
    mut report: Report,
) -> Outcome {
    let (n_visible, n_hidden) = SHAPE;
    report.say(&format!("µs for the product v→h, {n_visible}x{n_hidden}, one thread\n"));
    report.say(&format!("{:>5} {:>7} {}", "batch", "density", heads()));
    for &density in densities {
        let machine = machine_like(&random_bits(500, n_visible, density, 1))?;
        for &batch in batches {
            let bits = random_bits(batch, n_visible, density, 2);
            // In the pool of all threads samples would be listed by several.
            let measured = on_threads(1, || {
                measure(&machine, &bits, seconds / 2.0).map_err(|error| error.to_string())
            });
            let (micros, ratios) = measured??;
            report.row(
                &format!(
                    "{batch:>5} {density:>7} {:>10.1} {:>10.1} {:>10.1} {}",
                    micros[0],
                    micros[1],
                    micros[2],
                    told(&ratios),
                ),
                json!({
                    "batch": batch, "density": density, "contenders": NAMES[..n_contenders()],
                    "microseconds": micros, "ratio": named_ratios(&ratios),
                }),
            );
        }
    }
    report.finish(&[
        "i16, f32: harmonium's sampler, packing and biases included; gemm: dense f32, without biases",
        "gemm uses AVX-512 where the machine has it; in brackets the ratios where it may use AVX2 alone",
        "! marks where the dense product is faster; other work on the machine moves ratios by 10 % and more",
    ])
}

fn measure(
    machine: &Machine,
    bits: &BitMatrix,
    seconds: f64,
) -> Fallible<(Vec<f64>, Vec<[f64; 2]>)> {
    let (n_visible, n_hidden) = SHAPE;
    let (batch, n_tiles) = (bits.n_rows(), n_hidden.div_ceil(TILE));
    let mut theta = [0, 1].map(|_| vec![Wide::ZERO; n_tiles * batch]);
    let mut states = [state_of(machine, bits)?, state_of(machine, bits)?];
    let engines = [Arithmetic::I16, Arithmetic::F32].map(|p| Sampler::new(machine.clone(), p));
    let mut products = engines
        .each_ref()
        .map(|sampler| sampler.products(Rbm::HIDDEN).expect("laid out for the kernels"));
    let mut ours = products.iter_mut().zip(&mut states).zip(&mut theta);
    let mut next = || {
        let ((product, x), theta) = ours.next().expect("there are two");
        timed(move || product(x, theta))
    };
    let (mut quantised, mut single) = (next(), next());
    let weights = dense_weights(machine, 0);
    let x = Dense::from_fn(batch, n_visible, |i, j| f32::from(u8::from(bits.get(i, j))));
    let mut results =
        [Yardstick::Best, Yardstick::Avx2].map(|by| Dense::zeros(batch, n_hidden).by(by));
    let [best, narrow] = &mut results;
    let mut dense = timed(|| best.multiply(1, 0..batch, x.all(), weights.all(), (0.0, 1.0)));
    let mut avx2 = timed(|| narrow.multiply(1, 0..batch, x.all(), weights.all(), (0.0, 1.0)));
    let all: &mut [&mut Contender] = &mut [&mut quantised, &mut single, &mut dense, &mut avx2];
    let rounds = take_turns(seconds, &mut all[..n_contenders()])?;
    let micros = rounds.iter().map(|s| 1e6 * median(s.clone())).collect();
    Ok((micros, ratios(&rounds)))
}

fn machine_like(bits: &BitMatrix) -> Fallible<Machine> {
    let data = Dataset::new(Table::from_bits(bits.clone())?, Binarize::None)?;
    let mut machine = Rbm::binary(SHAPE.0, SHAPE.1)?.into_machine();
    initialise(&mut machine, &data, &Plan::default())?;
    Ok(machine)
}

/// Chains whose visible layer holds the bits.
pub(crate) fn state_of(machine: &Machine, bits: &BitMatrix) -> Fallible<State> {
    let mut x = State::zeros(machine, bits.n_rows())?;
    let mut values = vec![0.0; bits.n_columns()];
    for row in 0..bits.n_rows() {
        bits.unpack_row_into(row, &mut values);
        x.set_row(Rbm::VISIBLE, row, &values)?;
    }
    Ok(x)
}

/// The weights of a coupling between two layers.
#[expect(clippy::cast_possible_truncation, reason = "single precision")]
pub(crate) fn dense_weights(machine: &Machine, coupling: usize) -> Dense {
    let c = &machine.couplings()[coupling];
    let [rows, columns] = [c.between.0, c.between.1].map(|l| machine.layer(l).len());
    let entries = c.weights.entries();
    Dense::from_fn(rows, columns, |i, j| entries[i * columns + j] as f32)
}

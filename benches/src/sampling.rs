//! Do samples have the marginals of their machine, or say that they do not? UAI files, Ising tori, and
//! trained RBMs, by default and with exact sampling left out.
//!
//! Every marginal is compared with the exact one in units of its own standard error,
//! $\sqrt{p(1-p)/n_\text{eff}}$; the largest of them has to stay below 4, Bonferroni's bound for the
//! number of units added, unless the verdict is `not mixed`.

use crate::{Fallible, Outcome};
use harmonium::data::synthetic::{Repeats, bars_and_stripes};
use harmonium::evaluation::verdict::Verdict;
use harmonium::exact;
use harmonium::machine::{Machine, State};
use harmonium::model::{Drawing, Drawn, Sampling};
use harmonium::models::ising_torus;
use harmonium::progress::Silent;
use harmonium::sampling::Clamp;
use harmonium::{Binarize, Dataset, Model, Plan, Rbm};
use std::path::Path;
use std::time::Instant;

const DATA: &str = "../shared/data";
const SIDE: u32 = 32;

/// What went wrong, if anything.
#[derive(Default)]
struct Tally {
    tried: usize,
    wrong: Vec<String>,
}

pub(crate) fn run() -> Outcome {
    let mut tally = Tally::default();
    println!(
        "{:<31}{:<10}{:>9}{:>11}{:>8}{:>9}{:>8}",
        "", "method", "R-hat", "effective", "error", "largest z", "s"
    );
    files(&mut tally)?;
    tori(&mut tally)?;
    trained(&mut tally)?;
    println!(
        "{} of {} right or said not to be mixed",
        tally.tried - tally.wrong.len(),
        tally.tried
    );
    if tally.wrong.is_empty() {
        return Ok(());
    }
    Err(format!("wrong and silent: {}", tally.wrong.join(", ")).into())
}

fn draw(model: &Model, n: usize, method: Sampling) -> Fallible<(Drawn, f64)> {
    let start = Instant::now();
    let drawing = Drawing { n, method, ..Drawing::default() };
    let drawn = model.freely().draw(&drawing, &mut Silent)?;
    Ok((drawn, start.elapsed().as_secs_f64()))
}

impl Tally {
    /// One line: how far the means of the columns are from `exact`, values going from `low` to 1.
    fn marginals(&mut self, name: &str, exact: &[f64], low: f64, (drawn, s): &(Drawn, f64)) {
        let n = drawn.trust.effective_samples.unwrap_or(1.0).max(1.0);
        let (mut error, mut z) = (0.0_f64, 0.0_f64);
        for (column, &mean) in drawn.values.columns().into_iter().zip(exact) {
            let gap = (column.sum() / column.len() as f64 - mean).abs();
            error = error.max(gap / (1.0 - low));
            let variance = (1.0 - mean) * (mean - low);
            // What a count below one sample can tell.
            z = z.max(gap / (variance / n).sqrt().max((1.0 - low) / n));
        }
        self.line(name, drawn, (error, z), *s, exact.len());
    }

    fn line(&mut self, name: &str, drawn: &Drawn, (error, z): (f64, f64), s: f64, units: usize) {
        let trust = &drawn.trust;
        let r_hat = trust.r_hat.map_or("–".into(), |r| format!("{r:.3}"));
        let worth = trust.effective_samples.unwrap_or(0.0);
        let method = drawn.method.name();
        println!(
            "{name:<26}{method:<10}{r_hat:>9}{worth:>11.0}{error:>8.3}{z:>9.1}{s:>8.1}  {}",
            trust.verdict
        );
        self.tried += 1;
        // 4 for one unit; sqrt(2 ln n) more for the largest of n.
        let bound = 4.0 + if units > 1 { 0.5 * (units as f64).ln().sqrt() } else { 0.0 };
        if z > bound && trust.verdict != Verdict::NotMixed {
            self.wrong.push(name.to_owned());
        }
    }
}

/// UAI files with their marginals beside them.
fn files(tally: &mut Tally) -> Outcome {
    let rbms = ["DBN_11", "DBN_12", "DBN_13"].map(|name| (format!("uai-rbm/{name}"), ""));
    let grids = ["Grids_11", "Grids_12"].map(|name| (format!("uai-grids/{name}"), ".uai"));
    for (name, ending) in rbms.into_iter().chain(grids) {
        let file = format!("{DATA}/{name}.uai");
        if !Path::new(&file).exists() {
            println!("{name}: `{file}` is not there");
            continue;
        }
        let model = Model::open(&file, &mut Silent)?;
        let exact = marginals(&std::fs::read_to_string(format!("{DATA}/{name}{ending}.MAR"))?)?;
        // Hidden units of an RBM are not shown.
        let exact = &exact[..model.body.visible().iter().map(|l| l.len()).sum::<usize>()];
        for (what, method) in
            [("", Sampling::Auto), (", plain", Sampling::Gibbs), (", tempered", Sampling::Tempered)]
        {
            let low = lowest(model.top()?);
            let exact: Vec<f64> = exact.iter().map(|p| low + (1.0 - low) * p).collect();
            let short = name.rsplit('/').next().unwrap_or_default();
            let found = draw(&model, 1000, method)?;
            tally.marginals(&format!("{short}{what}"), &exact, low, &found);
        }
    }
    Ok(())
}

/// The lower of the two values of a unit.
fn lowest(machine: &Machine) -> f64 {
    let values = machine.layers()[0].units.configurations();
    values.map_or(0.0, |all| all.0.concat().into_iter().fold(f64::INFINITY, f64::min))
}

/// $p(x_i = 1)$ from a file of marginals.
fn marginals(text: &str) -> Fallible<Vec<f64>> {
    let mut numbers = text.split_whitespace().skip_while(|w| w.parse::<f64>().is_err());
    let mut next = || numbers.next().and_then(|w| w.parse::<f64>().ok());
    let mut found = Vec::new();
    let n = next().ok_or("a file of marginals is empty")?;
    while (found.len() as f64) < n {
        match (next(), next(), next()) {
            (Some(2.0), Some(_), Some(p)) => found.push(p),
            _ => return Err("a file of marginals ends early".into()),
        }
    }
    Ok(found)
}

/// |m| against Onsager where the torus is ordered, and the energy of a bond against Kaufman.
fn tori(tally: &mut Tally) -> Outcome {
    for k in [0.2, 0.4, 0.6, 1.0] {
        let model = Model::from(ising_torus(SIDE as usize, k)?.into_machine());
        let found = draw(&model, 200, Sampling::Auto)?;
        let n = f64::from(SIDE * SIDE);
        let rows = || found.0.values.rows().into_iter();
        if k > 0.45 {
            let sizes: Vec<f64> = rows().map(|row| row.sum().abs() / n).collect();
            let onsager = (1.0 - (2.0 * k).sinh().powi(-4)).powf(0.125);
            let (mean, error) = mean(&sizes, &found.0);
            let name = format!("ising:32,{k} |m| {mean:.4}");
            let z = (mean - onsager).abs() / error;
            tally.line(&name, &found.0, ((mean - onsager).abs(), z), found.1, 1);
        }
        let bonds: Vec<f64> = rows().map(|row| bond(&row.to_vec())).collect();
        let (mean, error) = mean(&bonds, &found.0);
        let h = 1e-4;
        let slope = (kaufman(SIDE, k + h) - kaufman(SIDE, k - h)) / (2.0 * h);
        let gap = (mean - slope / (2.0 * n)).abs();
        tally.line(
            &format!("ising:32,{k} bond {mean:.4}"),
            &found.0,
            (gap, gap / error),
            found.1,
            1,
        );
    }
    Ok(())
}

/// A mean over samples and its standard error.
fn mean(values: &[f64], drawn: &Drawn) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / drawn.trust.effective_samples.unwrap_or(n)).sqrt())
}

/// $\langle s s'\rangle$ over the bonds of a torus.
fn bond(spins: &[f64]) -> f64 {
    let side = SIDE as usize;
    let at = |r: usize, c: usize| spins[r % side * side + c % side];
    let places = (0..side).flat_map(|r| (0..side).map(move |c| (r, c)));
    let sum: f64 = places.map(|(r, c)| at(r, c) * (at(r, c + 1) + at(r + 1, c))).sum();
    sum / (2.0 * f64::from(SIDE * SIDE))
}

/// $\ln Z$ of a torus (Kaufman 1949).
fn kaufman(side: u32, k: f64) -> f64 {
    let l = f64::from(side);
    let gamma = |j: u32| -> f64 {
        if j == 0 {
            return 2.0 * k + k.tanh().ln();
        }
        let c = (2.0 * k).cosh().powi(2) / (2.0 * k).sinh();
        (c - (std::f64::consts::PI * f64::from(j) / l).cos()).acosh()
    };
    // Each product is of 2 cosh or 2 sinh of (L/2) γ, as a sign and a logarithm.
    let product = |odd: u32, minus: bool| -> (f64, f64) {
        let (mut sign, mut log) = (1.0, 0.0);
        for j in 0..side {
            let g = 0.5 * l * gamma(2 * j + odd);
            let tail = (-2.0 * g.abs()).exp();
            log += g.abs() + if minus { (-tail).ln_1p() } else { tail.ln_1p() };
            sign *= if minus && g < 0.0 { -1.0 } else { 1.0 };
        }
        (sign, log)
    };
    let parts = [product(1, false), product(1, true), product(0, false), product(0, true)];
    // Below the critical temperature γ_0 changes its sign, and the last product with it.
    let most = parts.iter().map(|p| p.1).fold(f64::MIN, f64::max);
    let [a, b, c, d] = parts.map(|(sign, log)| sign * (log - most).exp());
    let sum = a + b + c + d;
    -std::f64::consts::LN_2 + 0.5 * l * l * (2.0 * (2.0 * k).sinh()).ln() + most + sum.ln()
}

/// RBMs trained on bars and stripes, from few epochs to many and with several rates.
fn trained(tally: &mut Tally) -> Outcome {
    let data = Dataset::new(bars_and_stripes(4, Repeats::Counted)?, Binarize::None)?;
    for (k, seed) in (0_usize..10).zip(0_u64..) {
        let epochs = [50, 500, 3000][k % 3];
        let plan = Plan {
            seed,
            learning_rate: [0.01, 0.05, 0.1][k / 3 % 3],
            batch: 8,
            ..Plan::for_epochs(epochs)
        };
        let model = Rbm::binary(16, 8 + k % 5)?.train(&data, &plan)?;
        let machine = model.top()?;
        let zero = State::zeros(machine, 1)?;
        let exact = exact::conditional_means(machine, &Clamp::none(), &zero)?;
        let exact: Vec<f64> =
            machine.visible_layers().iter().flat_map(|&l| exact.row(l, 0)).copied().collect();
        for (what, method) in
            [("", Sampling::Auto), (", plain", Sampling::Gibbs), (", tempered", Sampling::Tempered)]
        {
            let found = draw(&model, 1000, method)?;
            tally.marginals(&format!("RBM {seed}, {epochs} epochs{what}"), &exact, 0.0, &found);
        }
    }
    Ok(())
}

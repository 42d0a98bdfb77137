//! Instructions of the hot paths, counted by callgrind: exact where clocks are noisy.
//!
//! A path runs once and three times in processes of their own; half the difference is what it
//! costs, without setting up. Counts are held against `benches/instructions.json`.

use crate::machine::said;
use crate::products::state_of;
use crate::report::{Flags, Report};
use crate::step::{random_bits, random_data, train};
use crate::{Fallible, Outcome};
use harmonium::engine::Arithmetic;
use harmonium::machine::Machine;
use harmonium::models::Rbm;
use harmonium::sampling::{Chains, Sampler};
use harmonium::training::{Numbers, Plan, Rule, Trainer, initialise};
use harmonium_data::Dataset;
use harmonium_kernels::line::{Fields, Line, PANEL, Row, TILE, Wide};
use harmonium_kernels::quantised::{Copies, update_quantised};
use harmonium_kernels::random::{Site, Stream};
use harmonium_kernels::response::{Byte, probabilities, sample, sample_means, to_fields};
use harmonium_kernels::tables::BLOCK;
use harmonium_kernels::update::{Dots, FieldSums, RankOne, SingleSums, Step, update};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str =
    "usage: cargo xtask bench instructions [--quick] [--update] [--only NAME,…] [--json [FILE]]";

/// Growth that is let pass, in per cent.
const TOLERANCE: f64 = 3.0;

/// Valgrind knows no AVX-512.
const AT_MOST: &str = "avx2";

/// The instruction set whose kernels are counted.
fn counted_set() -> &'static str {
    match harmonium_kernels::instruction_set() {
        "avx512" => AT_MOST,
        other => other,
    }
}

/// Layers of the machine that is run, two panels wide, and rows of a batch.
const SHAPE: (usize, usize) = (784, 128);
const BATCH: usize = 100;

/// The paths, and whether they are part of a quick run.
const PATHS: [(&str, bool); 15] = [
    ("step-pcd-i16", true),
    ("step-pcd-f32", true),
    ("step-cd-i16", false),
    ("sweep-i16", true),
    ("sweep-f32", false),
    ("product-i16-half", true),
    ("product-i16-sparse", false),
    ("product-f32-half", true),
    ("product-f32-sparse", false),
    ("probabilities", true),
    ("sample", true),
    ("sample-means", false),
    ("to-fields", false),
    ("update", false),
    ("update-quantised", true),
];

pub(crate) fn run(words: &[&str]) -> Fallible<ExitCode> {
    if let ["--kernel", name, repeats] = words {
        repeat(name, repeats.parse()?)?;
        println!("{}", harmonium_kernels::instruction_set());
        return Ok(ExitCode::SUCCESS);
    }
    let mut flags = Flags::parse(words, USAGE)?;
    let version = said(Path::new("valgrind"), &["--version"], Path::new("."));
    if version.is_null() {
        return Err("valgrind is not installed, and nothing was counted\n\
             hint: install it from your system's packages"
            .into());
    }
    let quick: Vec<String> = PATHS
        .iter()
        .filter(|(_, quick)| *quick || !flags.has("--quick"))
        .map(|(name, _)| (*name).into())
        .collect();
    let names: Vec<String> = flags.list("--only", &quick)?;
    let mut report = flags.report("instructions");
    let mut baseline = Baseline::read()?;
    report.say(&format!("{:<20} {:>14} {:>14} {:>8}", "", "instructions", "baseline", "change"));
    let mut grown = Vec::new();
    for name in &names {
        let count = (count(name, 3)? - count(name, 1)?) / 2;
        if tell(name, count, baseline.of(name), &mut report) > TOLERANCE {
            grown.push(name.as_str());
        }
        if flags.has("--update") {
            baseline.set(name, count);
        }
    }
    let set = counted_set();
    let other = baseline.unlike_this(set);
    report.finish(&[
        &format!(
            "counted by callgrind of {} with kernels for {set}",
            version.as_str().unwrap_or("?")
        ),
        other.as_deref().unwrap_or("the baseline is from the same compiler and instruction set"),
    ])?;
    if flags.has("--update") {
        baseline.write(set)?;
        eprintln!("{} was rewritten", Baseline::path().display());
    } else if !grown.is_empty() {
        eprintln!("error: more than {TOLERANCE} % above the baseline: {}", grown.join(", "));
        eprintln!("\nhint: if that is meant to be so, run it with --update");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a line, and gives the growth in per cent.
fn tell(name: &str, count: u64, base: Option<u64>, report: &mut Report) -> f64 {
    let change = base.map(|base| 100.0 * (count as f64 / base as f64 - 1.0));
    let (base_text, change_text) = match (base, change) {
        (Some(base), Some(change)) => (base.to_string(), format!("{change:+.1} %")),
        _ => ("-".into(), "new".into()),
    };
    report.row(
        &format!("{name:<20} {count:>14} {base_text:>14} {change_text:>8}"),
        json!({ "name": name, "instructions": count, "baseline": base, "change_percent": change }),
    );
    change.unwrap_or(0.0)
}

/// Instructions of a process that runs a path some times.
fn count(name: &str, repeats: usize) -> Fallible<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["bench", "instructions", "--kernel", name, &repeats.to_string()])
        .env("RAYON_NUM_THREADS", "1")
        .env("HARMONIUM_INSTRUCTIONS", AT_MOST)
        .output()?;
    // Valgrind shows programs a processor of its own.
    let (seen, here) = (String::from_utf8_lossy(&output.stdout), counted_set());
    if output.status.success() && seen.trim() != here {
        let seen = seen.trim();
        return Err(format!("valgrind runs the kernels for {seen}, not those for {here}").into());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected : "));
    match collected {
        Some((_, number)) if output.status.success() => Ok(number.trim().parse()?),
        _ => Err(format!("callgrind could not count `{name}`:\n{text}").into()),
    }
}

/// What was counted before.
struct Baseline(Map<String, Value>);

impl Baseline {
    fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json")
    }

    fn read() -> Fallible<Self> {
        match std::fs::read(Self::path()) {
            Ok(bytes) => Ok(Self(serde_json::from_slice(&bytes)?)),
            Err(_) => Ok(Self(Map::new())),
        }
    }

    fn of(&self, name: &str) -> Option<u64> {
        self.0.get("instructions")?.get(name)?.as_u64()
    }

    fn set(&mut self, name: &str, count: u64) {
        let counts = self.0.entry("instructions").or_insert_with(|| json!({}));
        counts[name] = count.into();
    }

    fn rustc() -> Value {
        said(Path::new("rustc"), &["--version"], Path::new("."))
    }

    /// Why it may not be compared, if so.
    fn unlike_this(&self, set: &str) -> Option<String> {
        let same = |key: &str, value: Value| self.0.get(key).is_none_or(|old| *old == value);
        (!same("instruction_set", set.into()) || !same("rustc", Self::rustc())).then(|| {
            let text = |key: &str| self.0.get(key).and_then(Value::as_str).unwrap_or("?");
            format!(
                "careful: the baseline is from {} with kernels for {}",
                text("rustc"),
                text("instruction_set")
            )
        })
    }

    fn write(mut self, set: &str) -> Outcome {
        self.0.insert("instruction_set".into(), set.into());
        self.0.insert("rustc".into(), Self::rustc());
        Ok(std::fs::write(Self::path(), format!("{:#}\n", Value::Object(self.0)))?)
    }
}

/// Runs a path some times, on this thread.
fn repeat(name: &str, n: usize) -> Outcome {
    let times = |work: &mut dyn FnMut()| (0..n).for_each(|_| work());
    let stream = Stream::new(5);
    let normal = |i: usize, l: usize| single(stream.normal(Site::new(i, 0, 9), l));
    let mut lines: Vec<Wide> =
        (0..BATCH).map(|i| Line(std::array::from_fn(|l| normal(i, l)))).collect();
    let mut bits = vec![0; BATCH];
    let site = Site::new(0, 0, 0);
    match name {
        "step-pcd-i16" => steps(Rule::Pcd, Numbers::I16, n)?,
        "step-pcd-f32" => steps(Rule::Pcd, Numbers::F32, n)?,
        "step-cd-i16" => steps(Rule::Cd, Numbers::I16, n)?,
        "sweep-i16" => sweeps(Arithmetic::I16, n)?,
        "sweep-f32" => sweeps(Arithmetic::F32, n)?,
        "product-i16-half" => products(Arithmetic::I16, 0.5, n)?,
        "product-i16-sparse" => products(Arithmetic::I16, 0.05, n)?,
        "product-f32-half" => products(Arithmetic::F32, 0.5, n)?,
        "product-f32-sparse" => products(Arithmetic::F32, 0.05, n)?,
        "probabilities" => times(&mut || probabilities(&mut lines)),
        "sample" => {
            times(&mut || sample(&lines, stream, site, 0, &mut bits));
        }
        "sample-means" => {
            times(&mut || sample_means(&lines, stream, site, 0, &mut bits));
        }
        "to-fields" => {
            probabilities(&mut lines);
            let (dither, mut fields) = ([7; TILE], vec![Fields::ZERO; BATCH]);
            times(&mut || to_fields(&lines, &dither, Byte::Low, &mut fields));
        }
        "update" | "update-quantised" => updates(name == "update-quantised", n),
        _ => return Err(format!("there is no path `{name}`\n{USAGE}").into()),
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "single precision")]
fn single(x: f64) -> f32 {
    x as f32
}

/// A machine and data of its size; fewer rows than would end an epoch while it is run.
fn machine(density: f64) -> Fallible<(Machine, Dataset)> {
    let data = random_data(SHAPE.0, density, 70 * BATCH)?;
    let mut machine = Rbm::binary(SHAPE.0, SHAPE.1)?.into_machine();
    let few: Vec<usize> = (0..100).collect();
    initialise(&mut machine, &data.select_rows(&few)?, &Plan::default())?;
    Ok((machine, data))
}

/// Twenty steps at a time, one of which takes the norms.
fn steps(rule: Rule, precision: Numbers, n: usize) -> Outcome {
    let (machine, data) = machine(0.19)?;
    let plan = Plan { rule, precision, batch: BATCH, chains: BATCH, ..Plan::default() };
    train(&mut Trainer::new(machine, &data, &plan)?, 20 * n)?;
    Ok(())
}

fn sweeps(precision: Arithmetic, n: usize) -> Outcome {
    let (machine, _) = machine(0.19)?;
    let sampler = Sampler::new(machine.clone(), precision);
    let mut chains = Chains::new(&machine, BATCH, Stream::new(1))?;
    Ok(chains.advance(&sampler, n, Stream::new(2))?)
}

fn products(precision: Arithmetic, density: f64, n: usize) -> Outcome {
    let (machine, _) = machine(density)?;
    let sampler = Sampler::new(machine.clone(), precision);
    let mut x = state_of(&machine, &random_bits(BATCH, SHAPE.0, density, 2))?;
    let mut theta = vec![Wide::ZERO; SHAPE.1.div_ceil(TILE) * BATCH];
    let mut product = sampler.products(Rbm::HIDDEN).expect("laid out for the kernels");
    (0..n).for_each(|_| product(&mut x, &mut theta));
    Ok(())
}

/// A panel of weights moves, with centering.
fn updates(quantised: bool, n: usize) {
    let n_rows = SHAPE.0;
    let mut weights = vec![Line([0.01; PANEL]); n_rows];
    let mut velocity = vec![Row::ZERO; n_rows];
    let (rows, columns) = (vec![[0.1, 0.2]; n_rows], [Row::ZERO; 2]);
    let terms = RankOne { rows: &rows, columns: &columns };
    let step = Step { rate: 1e-4, momentum: 0.5, l1: 0.0, l2: 0.0 };
    let places: Vec<u32> = (0..).take(n_rows).collect();
    let (shifts, shift) = (vec![0.1; n_rows], Row::ZERO);
    let (mut column_dots, mut row_dots) = (Row::ZERO, vec![0.0; n_rows]);
    let mut each = |mut work: Box<dyn FnMut(Dots<'_>) + '_>| {
        for _ in 0..n {
            let (columns, rows) = (&mut column_dots, &mut row_dots);
            work(Dots { row_shifts: &shifts, column_shifts: &shift, columns, rows });
        }
    };
    let (w, v) = (&mut weights, &mut velocity);
    if quantised {
        let mut sums = vec![Line([1; PANEL]); n_rows];
        sums.push(Line([0; PANEL]));
        let gradient = FieldSums::new(&sums, &places, 1e-2);
        let scales = vec![1.0; n_rows.div_ceil(BLOCK)];
        let mut copies = Copies::new(n_rows);
        scales.iter().enumerate().for_each(|(b, s)| copies.quantise(w, b, *s));
        each(Box::new(|dots| {
            update_quantised(&gradient, terms, step, w, v, &mut copies, &scales, dots);
        }));
    } else {
        let sums = vec![Row::ZERO; n_rows + 1];
        let gradient = SingleSums::new(&sums, &places);
        let mut copy = vec![Wide::ZERO; n_rows.div_ceil(TILE) * PANEL];
        each(Box::new(|dots| update(&gradient, terms, step, w, v, dots, &mut copy)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_runs() {
        for (name, _) in PATHS {
            repeat(name, 1).expect(name);
        }
        assert!(repeat("no-such-path", 1).is_err());
    }
}

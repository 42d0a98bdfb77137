//! How time and memory grow with rows, units and batch, one at a time.
//!
//! Every point is a process of its own, this program again, that makes its data, trains and says how long an epoch
//! took and how much memory it had at most.

use crate::report::{Flags, Report};
use crate::step::random_data;
use crate::turns::{exponent, median};
use crate::{Fallible, Outcome};
use harmonium::models::Rbm;
use harmonium::training::{Observer, Plan, Trainer, View, initialise};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::process::Command;
use std::time::Instant;

const USAGE: &str =
    "usage: cargo xtask bench scaling [--quick] [--rounds N] [--threads N] [--json [FILE]]";

/// Rows, visible units, hidden units, batch.
type Size = [usize; 4];

const NAMES: [&str; 4] = ["rows", "visible", "hidden", "batch"];
const BASE: Size = [20_000, 784, 256, 100];
const VALUES: [&[usize]; 4] =
    [&[10_000, 20_000, 40_000, 60_000], &[196, 784, 3136], &[64, 256, 1024], &[10, 100, 1000]];
/// What a process needs when there is nearly nothing to train.
const NOTHING: Size = [10, 8, 8, 10];

/// Seconds of an epoch and peak memory in MiB.
type Cost = [f64; 2];

pub(crate) fn run(words: &[&str]) -> Outcome {
    if let ["--child", sizes @ ..] = words {
        let sizes = sizes.iter().map(|s| s.parse()).collect::<Result<Vec<usize>, _>>()?;
        return child(sizes.try_into().map_err(|_| "a child has four sizes")?);
    }
    let mut flags = Flags::parse(words, USAGE)?;
    let quick = flags.has("--quick");
    let rounds = flags.list("--rounds", &[if quick { 1 } else { 3 }])?[0];
    let threads: usize = flags.list("--threads", &[1])?[0];
    let mut report = flags.report("scaling");
    let mut sizes = vec![NOTHING];
    for (k, values) in VALUES.iter().enumerate() {
        sizes.extend(values.iter().map(|&value| with(k, value)));
    }
    sizes.sort_unstable();
    sizes.dedup();
    let mut costs: Vec<(Size, Vec<Cost>)> = sizes.into_iter().map(|s| (s, Vec::new())).collect();
    for _ in 0..rounds {
        for (size, costs) in &mut costs {
            costs.push(measure(*size, threads)?);
        }
    }
    let of = |size: Size| -> Cost {
        let found = costs.iter().find(|(s, _)| *s == size).map_or(&[][..], |(_, c)| c);
        [0, 1].map(|k| median(found.iter().map(|c| c[k]).collect()))
    };
    let idle = of(NOTHING)[1];
    report.say(&format!(
        "an epoch of PCD-1 with {} rows, {} visible, {} hidden units and batch {}, unless the line says otherwise\n",
        BASE[0], BASE[1], BASE[2], BASE[3]
    ));
    report.say(&format!("{:>8} {:>8} {:>12} {:>10}", "", "", "seconds", "peak MiB"));
    for k in 0..NAMES.len() {
        let points: Vec<(usize, Cost)> =
            VALUES[k].iter().map(|&value| (value, of(with(k, value)))).collect();
        tell(NAMES[k], &points, idle, &mut report);
    }
    report.finish(&[
        "seconds: one epoch in the trainer, i16 as by default; peak MiB: VmHWM of the process, data included",
        &format!("power: least squares on logarithms; that of memory is of what exceeds {idle:.1} MiB, an idle process"),
        "one process per point, points take turns, medians over rounds; times move with other work on the machine",
    ])
}

fn with(k: usize, value: usize) -> Size {
    let mut size = BASE;
    size[k] = value;
    size
}

fn tell(name: &str, points: &[(usize, Cost)], idle: f64, report: &mut Report) {
    for (value, [seconds, memory]) in points {
        report.row(
            &format!("{name:>8} {value:>8} {seconds:>12.4} {memory:>10.1}"),
            json!({ "grows": name, "value": value, "seconds": seconds, "peak_mib": memory }),
        );
    }
    let power = |k: usize, less: f64| {
        exponent(&points.iter().map(|(x, c)| (*x as f64, c[k] - less)).collect::<Vec<_>>())
    };
    let (seconds, memory) = (power(0, 0.0), power(1, idle));
    report.row(
        &format!("{name:>8} {:>8} {seconds:>12.2} {memory:>10.2}\n", "power"),
        json!({ "grows": name, "seconds_power": seconds, "memory_power": memory }),
    );
}

/// Lets a process of its own do the work.
fn measure(size: Size, threads: usize) -> Fallible<Cost> {
    let [n_rows, n_visible, n_hidden, batch] = size;
    eprintln!("{n_rows} rows, {n_visible}x{n_hidden}, batch {batch}");
    let output = Command::new(std::env::current_exe()?)
        .args(["bench", "scaling", "--child"])
        .args(size.map(|n| n.to_string()))
        .env("RAYON_NUM_THREADS", threads.to_string())
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let reply: Value = serde_json::from_slice(&output.stdout)?;
    let number = |key: &str| reply[key].as_f64().ok_or(format!("the process gave no `{key}`"));
    Ok([number("seconds")?, number("peak_mib")?])
}

/// Trains for a few epochs and prints what the last one cost.
fn child([n_rows, n_visible, n_hidden, batch]: Size) -> Outcome {
    let data = random_data(n_visible, 0.19, n_rows)?;
    let plan = Plan { batch, chains: batch, epochs: 2, l2: 0.0, ..Plan::default() };
    let mut machine = Rbm::binary(n_visible, n_hidden)?.into_machine();
    initialise(&mut machine, &data, &plan)?;
    let mut clock = EpochClock { started: Instant::now(), seconds: f64::NAN };
    Trainer::new(machine, &data, &plan)?.run(&mut [&mut clock])?;
    println!("{}", json!({ "seconds": clock.seconds, "peak_mib": peak_mib()? }));
    Ok(())
}

/// Times the epoch that ended last.
struct EpochClock {
    started: Instant,
    seconds: f64,
}

impl Observer for EpochClock {
    fn epoch_ended(&mut self, _: &View<'_>) -> Result<ControlFlow<String>, harmonium::Error> {
        self.seconds = self.started.elapsed().as_secs_f64();
        self.started = Instant::now();
        Ok(ControlFlow::Continue(()))
    }
}

/// The most memory this process ever had.
fn peak_mib() -> Fallible<f64> {
    let status = std::fs::read_to_string("/proc/self/status")
        .map_err(|_| "peak memory is read from /proc/self/status, which only Linux has")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib / 1024.0)
}

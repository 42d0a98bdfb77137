//! A whole step of training against the same step by dense products.
//!
//! The library is driven through its trainer: presenting the batch, both sides, the update and its
//! reports are all in its time. The yardstick leaves out norms, shuffling and everything that is
//! not arithmetic. Neither centers; with `--center` the library does, and the yardstick still does not.

use crate::report::{Flags, Report, times};
use crate::turns::{median, pool, ratio, take_turns};
use crate::yardstick::{Dense, DenseRbm, Side, Yardstick};
use crate::{Fallible, Outcome, products};
use harmonium::machine::Machine;
use harmonium::models::Rbm;
use harmonium::optim::Schedule;
use harmonium::training::{Numbers, Observer, Plan, Rule, Trainer, View, initialise};
use harmonium_data::{Binarize, Dataset, Table};
use harmonium_kernels::bits::BitMatrix;
use harmonium_kernels::random::{Site, Stream};
use rayon::ThreadPool;
use serde_json::json;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask bench step [--quick] [--products] [--center] \
     [--shape 784x500,…] [--batch N,…] [--density P,…] [--rule pcd,cd,cd5,…] [--threads N,…] \
     [--seconds S] [--json [FILE]]";

/// The names of the contenders, ours first, then the yardsticks: the one with the best instructions
/// of the machine, and the one with AVX2 alone.
pub(crate) const NAMES: [&str; 4] = ["i16", "f32", "gemm", "gemm avx2"];

/// How many of [`NAMES`] take part: where there is no AVX-512 both yardsticks are the same.
pub(crate) fn n_contenders() -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        return 4;
    }
    3
}

/// What stands above times and ratios.
pub(crate) fn heads() -> String {
    let last = if n_contenders() > 3 { "   (gemm avx2)" } else { "" };
    format!("{:>10} {:>10} {:>10} {:>8} {:>8}{last}", "i16", "f32", "gemm", "i16", "f32")
}

/// How many times as long each yardstick takes as each of ours: a row for each yardstick.
pub(crate) fn ratios(seconds: &[Vec<f64>]) -> Vec<[f64; 2]> {
    let of = |yardstick: &Vec<f64>| {
        [0, 1].map(|c: usize| ratio(yardstick, &seconds[c]).unwrap_or(f64::NAN))
    };
    seconds[2..].iter().map(of).collect()
}

/// Those of the first yardstick, and in brackets those of the second.
pub(crate) fn told(ratios: &[[f64; 2]]) -> String {
    let both = |[a, b]: &[f64; 2]| format!("{:>8} {:>8}", times(*a), times(*b));
    let second = ratios.get(1).map(|[a, b]| format!("  ({a:.2}, {b:.2})"));
    ratios.first().map_or_else(String::new, both) + &second.unwrap_or_default()
}

/// The same for JSON: by the name of the yardstick, then of ours.
pub(crate) fn named_ratios(ratios: &[[f64; 2]]) -> serde_json::Value {
    let ours = |of: &[f64; 2]| json!({ "i16": of[0], "f32": of[1] });
    let each = NAMES[2..].iter().zip(ratios).map(|(name, of)| ((*name).to_string(), ours(of)));
    each.collect::<serde_json::Map<_, _>>().into()
}

/// Steps before those that are measured.
const WARM_UP: usize = 30;

/// Seconds for which several threads warm up at least: as long as a system may take to give each of them a processor.
const SETTLING: f64 = 0.05;

/// What is measured.
struct StepSettings {
    shapes: Vec<String>,
    batches: Vec<usize>,
    densities: Vec<f64>,
    rules: Vec<String>,
    threads: Vec<usize>,
    center: bool,
    seconds: f64,
}

pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut flags = Flags::parse(words, USAGE)?;
    let quick = flags.has("--quick");
    let shapes: &[&str] =
        if quick { &["64x64", "784x500"] } else { &["64x64", "784x500", "784x2000", "4096x1024"] };
    let settings = StepSettings {
        shapes: flags
            .list("--shape", &shapes.iter().map(ToString::to_string).collect::<Vec<_>>())?,
        batches: flags.list("--batch", &[10, 100, 500, 1000])?,
        densities: flags.list("--density", &[0.05, 0.19, 0.5])?,
        rules: flags.list("--rule", &["pcd".into(), "cd".into()])?,
        threads: flags.list("--threads", &[1, 2])?,
        center: flags.has("--center"),
        seconds: flags.list("--seconds", &[if quick { 0.45 } else { 1.0 }])?[0],
    };
    let mut report = flags.report("step");
    if flags.has("--products") {
        return products::run(&settings.batches, &settings.densities, settings.seconds, report);
    }
    report.say("µs for a step of training, and how many times as long the dense step takes\n");
    report.say(&format!(
        "{:>9} {:>5} {:>7} {:>4} {:>7} {}  speed-up of threads",
        "shape",
        "batch",
        "density",
        "rule",
        "threads",
        heads(),
    ));
    let pools = settings.threads.iter().map(|n| pool(*n)).collect::<Result<Vec<_>, _>>()?;
    for shape in &settings.shapes {
        let (n_visible, n_hidden) = parse_shape(shape)?;
        for &density in &settings.densities {
            let data = random_data(n_visible, density, 20_000)?;
            for &batch in &settings.batches {
                for rule in &settings.rules {
                    let cell = Cell { shape, n_visible, n_hidden, batch, density, rule };
                    cell.measure(&settings, &data, &pools, &mut report)?;
                }
            }
        }
    }
    report.finish(&[
        "i16, f32: harmonium; gemm: the same step in dense f32 with the gemm crate and harmonium's own exponentials and variates",
        "gemm uses AVX-512 where the machine has it; in brackets the ratios where it may use AVX2 alone",
        "the dense step leaves out norms and shuffling, and centering where harmonium does it, which favours it; ! marks where it is faster",
        "ratios are medians over the rounds of one run in which all take turns; other work on the machine moves them by 10 % and more",
    ])
}

struct Cell<'a> {
    shape: &'a str,
    n_visible: usize,
    n_hidden: usize,
    batch: usize,
    density: f64,
    rule: &'a str,
}

impl Cell<'_> {
    fn measure(
        &self,
        settings: &StepSettings,
        data: &Dataset,
        pools: &[ThreadPool],
        report: &mut Report,
    ) -> Outcome {
        let (rule, side, k) = parse_rule(self.rule)?;
        let plan = |precision| Plan {
            precision,
            rule,
            k: Schedule::Constant(k as f64),
            epochs: 1 << 40,
            batch: self.batch,
            chains: self.batch,
            decay: Schedule::Constant(1.0),
            momentum: Schedule::Constant(0.5),
            l2: 0.0,
            center: settings.center,
            ..Plan::default()
        };
        let mut machine = Rbm::binary(self.n_visible, self.n_hidden)?.into_machine();
        let few: Vec<usize> = (0..500).collect();
        initialise(&mut machine, &data.select_rows(&few)?, &plan(Numbers::F32))?;
        let trainers = [Numbers::I16, Numbers::F32]
            .map(|numbers| Trainer::new(machine.clone(), data, &plan(numbers)));
        let [quantised, single] = trainers;
        let (mut quantised, mut single) = (quantised?, single?);
        let mut dense = [Yardstick::Best, Yardstick::Avx2]
            .map(|yardstick| self.dense((side, k), &machine, data).by(yardstick));
        let mut measured = vec![vec![Vec::new(); n_contenders()]; pools.len()];
        // All thread counts take turns as well, so that their quotient is one of neighbours.
        let turns: Vec<(usize, usize)> =
            (0..pools.len()).flat_map(|p| (0..n_contenders()).map(move |c| (p, c))).collect();
        let work = std::cell::RefCell::new((&mut quantised, &mut single, &mut dense));
        let contender = |&(p, c): &(usize, usize)| {
            let work = &work;
            move |n: usize| -> Fallible<f64> {
                let (quantised, single, dense) = &mut *work.borrow_mut();
                let threads = settings.threads[p];
                let mut turn = |n: usize| {
                    pools[p].install(|| match c {
                        0 => train(quantised, n),
                        1 => train(single, n),
                        _ => {
                            let start = Instant::now();
                            (0..n).for_each(|_| dense[c - 2].step(threads));
                            Ok(start.elapsed().as_secs_f64())
                        }
                    })
                };
                // The threads of a pool that slept find their processors before time is taken.
                let start = Instant::now();
                turn(n.min(WARM_UP))?;
                while threads > 1 && start.elapsed().as_secs_f64() < SETTLING {
                    turn(n.min(WARM_UP))?;
                }
                Ok(turn(n)?)
            }
        };
        let mut contenders: Vec<_> = turns.iter().map(contender).collect();
        let mut contenders: Vec<_> =
            contenders.iter_mut().map(|c| c as &mut crate::turns::Contender).collect();
        let seconds = settings.seconds * pools.len() as f64 / 2.0;
        for (&(p, c), times) in turns.iter().zip(take_turns(seconds, &mut contenders)?) {
            measured[p][c] = times;
        }
        for (threads, times_of) in settings.threads.iter().zip(&measured) {
            self.report(*threads, times_of, &measured[0], report);
        }
        Ok(())
    }

    fn report(&self, threads: usize, seconds: &[Vec<f64>], base: &[Vec<f64>], report: &mut Report) {
        let micros: Vec<f64> = seconds.iter().map(|s| 1e6 * median(s.clone())).collect();
        let ratios = ratios(seconds);
        let gains: Vec<f64> = base
            .iter()
            .zip(seconds)
            .map(|(base, seconds)| ratio(base, seconds).unwrap_or(f64::NAN))
            .collect();
        let mut line = format!(
            "{:>9} {:>5} {:>7} {:>4} {threads:>7} {:>10.1} {:>10.1} {:>10.1} {}",
            self.shape,
            self.batch,
            self.density,
            self.rule,
            micros[0],
            micros[1],
            micros[2],
            told(&ratios),
        );
        if !std::ptr::eq(seconds, base) {
            let list = NAMES.iter().zip(&gains).map(|(n, g)| format!(" {n} {g:.2}"));
            let _ = write!(line, " {}", list.collect::<String>());
        }
        let named = |values: &[f64]| -> serde_json::Map<String, serde_json::Value> {
            NAMES.iter().zip(values).map(|(n, v)| ((*n).into(), (*v).into())).collect()
        };
        report.row(
            &line,
            json!({
                "shape": self.shape, "batch": self.batch, "density": self.density,
                "rule": self.rule, "threads": threads, "rounds": seconds[0].len(),
                "microseconds": named(&micros), "ratio": named_ratios(&ratios),
                "speed_up": named(&gains),
            }),
        );
    }

    #[expect(clippy::cast_possible_truncation, reason = "single precision")]
    fn dense(&self, rule: (Side, usize), machine: &Machine, data: &Dataset) -> DenseRbm {
        let entries = machine.couplings()[0].weights.entries();
        let weights = Dense::from_fn(self.n_visible, self.n_hidden, |i, j| {
            entries[i * self.n_hidden + j] as f32
        });
        let bias = machine.layer(Rbm::VISIBLE).bias.iter().map(|b| *b as f32).collect();
        let n_rows = 4 * self.batch;
        let rows = Dense::from_fn(n_rows, self.n_visible, |i, j| data.table().at(i, j));
        DenseRbm::new(rule, self.batch, weights, bias, rows)
    }
}

/// Does `n` updates and gives the seconds from the first to the last.
pub(crate) fn train(trainer: &mut Trainer<'_>, n: usize) -> Result<f64, harmonium::Error> {
    let mut clock = Clock { left: n, start: Instant::now(), seconds: 0.0 };
    trainer.run(&mut [&mut clock])?;
    Ok(clock.seconds)
}

/// Stops the time after some updates.
struct Clock {
    left: usize,
    start: Instant,
    seconds: f64,
}

impl Observer for Clock {
    fn updated(&mut self, _: &View<'_>) -> Result<ControlFlow<String>, harmonium::Error> {
        self.left -= 1;
        if self.left > 0 {
            return Ok(ControlFlow::Continue(()));
        }
        self.seconds = self.start.elapsed().as_secs_f64();
        Ok(ControlFlow::Break("enough".into()))
    }
}

/// A rule, and after it the sweeps of its chains where that is not one.
fn parse_rule(text: &str) -> Fallible<(Rule, Side, usize)> {
    let name = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let (rule, side) = match name {
        "pcd" => (Rule::Pcd, Side::Persistent),
        "cd" => (Rule::Cd, Side::Contrastive),
        _ => return Err(format!("there is no rule `{text}`\n{USAGE}").into()),
    };
    let k = if name == text { 1 } else { text[name.len()..].parse()? };
    if k == 0 {
        return Err(format!("`{text}`: chains make one sweep at least\n{USAGE}").into());
    }
    Ok((rule, side, k))
}

fn parse_shape(text: &str) -> Fallible<(usize, usize)> {
    let wrong = || format!("a shape is like 784x500, not `{text}`\n{USAGE}");
    let (rows, columns) = text.split_once('x').ok_or_else(wrong)?;
    Ok((rows.parse().map_err(|_| wrong())?, columns.parse().map_err(|_| wrong())?))
}

/// Independent bits, ones with probability `density` (to 1/256).
pub(crate) fn random_bits(n_rows: usize, n_columns: usize, density: f64, seed: u64) -> BitMatrix {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 256")]
    let threshold = (density * 256.0).round() as u32;
    let stream = Stream::new(seed);
    let mut bits = BitMatrix::zeros(0, n_columns);
    let mut words = vec![0; bits.words_per_row()];
    for row in 0..n_rows {
        for (w, word) in words.iter_mut().enumerate() {
            *word = sparse_word(stream, Site::new(row, w, 0), threshold);
        }
        if !n_columns.is_multiple_of(64) {
            *words.last_mut().expect("a row has words") &= (1 << (n_columns % 64)) - 1;
        }
        bits.push_words(&words);
    }
    bits
}

/// 64 bits, each 1 with probability `threshold / 256`: the digits of the threshold, lowest first,
/// say whether a fresh word is joined by `or` or by `and`.
fn sparse_word(stream: Stream, site: Site, threshold: u32) -> u64 {
    let mut word = 0;
    for pair in 0..4_u32 {
        let [a, b, c, d] = stream.words(site, pair).map(u64::from);
        for (k, fresh) in [a | b << 32, c | d << 32].into_iter().enumerate() {
            let digit = threshold >> (2 * pair as usize + k) & 1;
            word = if digit == 1 { word | fresh } else { word & fresh };
        }
    }
    word
}

/// A set of such rows.
pub(crate) fn random_data(n_columns: usize, density: f64, n_rows: usize) -> Fallible<Dataset> {
    let bits = random_bits(n_rows, n_columns, density, 3);
    Ok(Dataset::new(Table::from_bits(bits)?, Binarize::None)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_their_density() {
        for density in [0.05, 0.19, 0.5] {
            let bits = random_bits(1000, 100, density, 1);
            let found = bits.count_ones() as f64 / 1e5;
            // Four standard errors, and half a step of 1/256.
            assert!((found - density).abs() < 4.0 * (density / 1e5).sqrt() + 0.002, "{found}");
        }
    }
}

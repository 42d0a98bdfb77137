//! Do intervals of ln Z hold what they promise?
//!
//! The easy families are 200 random machines small enough to enumerate. Of each hard family 40 machines are
//! asked with five seeds, methods forced; exact values are by enumeration or elimination. At least 183
//! of 200 intervals have to hold the exact value in every family and by every method (fewer would be
//! unlikely for intervals of 95 %: 190 less 2.3 standard deviations), unsettled ones among them. At most 5 % may be
//! unsettled in easy families, 40 % in hard ones.
//!
//! Constants of the methods are not chosen by these machines but by rehearsals: other draws of the same
//! families, and families of their own, which are asked for by name and are not part of the study.

mod easy;
mod families;
mod rehearsals;

use crate::{Fallible, Outcome};
pub(crate) use easy::{SHAPES, random};
use families::{FAMILIES, Family, Which};
use harmonium::evaluation::log_partition::{LogPartition, Method, Settings, Starts, log_partition};
use harmonium::exact;
use harmonium::progress::Silent;
use rayon::prelude::*;
use rehearsals::REHEARSALS;
use serde_json::{Value, json};
use std::time::Instant;

/// Machines of a hard family, and seeds for each.
const MACHINES: usize = 40;
const SEEDS: u64 = 5;
/// Share of the intervals that have to hold: 183 of 200.
const HOLD: f64 = 183.0 / 200.0;
/// Share that may be unsettled in easy and in hard families.
const UNSETTLED: [f64; 2] = [0.05, 0.4];
/// Single precision on the way leaves errors of this size.
const SLACK: f64 = 1e-5;

/// A method that is forced, and where its backward chains start.
#[derive(Clone, Copy)]
struct Forced {
    name: &'static str,
    method: Method,
    starts: Option<Starts>,
}

const HARD: [Forced; 3] = [
    Forced { name: "sandwich", method: Method::Sandwich, starts: None },
    Forced { name: "sandwich, tempered", method: Method::Sandwich, starts: Some(Starts::Tempered) },
    Forced { name: "bar", method: Method::Bar, starts: None },
];

/// How often intervals held the truth, and how wide they were.
#[derive(Clone, Default)]
struct Tally {
    held: usize,
    unsettled: usize,
    widths: Vec<f64>,
    /// How far the exact value lies outside of those that missed.
    misses: Vec<f64>,
    /// Of the estimates, in standard errors.
    squares: f64,
    seconds: f64,
}

impl Tally {
    fn add(&mut self, found: &LogPartition, exact: f64, seconds: f64) {
        let outside = (found.lower - exact).max(exact - found.upper);
        if outside <= SLACK {
            self.held += 1;
        } else {
            self.misses.push(outside);
        }
        self.unsettled += usize::from(found.is_unsettled());
        self.widths.push(found.width());
        self.squares += ((found.log_z - exact) / (found.std_error + SLACK)).powi(2);
        self.seconds += seconds;
    }

    fn join(&mut self, other: &Self) {
        self.held += other.held;
        self.unsettled += other.unsettled;
        self.widths.extend(&other.widths);
        self.misses.extend(&other.misses);
        self.squares += other.squares;
        self.seconds += other.seconds;
    }

    fn n(&self) -> f64 {
        self.widths.len() as f64
    }

    fn coverage(&self) -> f64 {
        self.held as f64 / self.n()
    }

    fn share_unsettled(&self) -> f64 {
        self.unsettled as f64 / self.n()
    }

    /// The width that a share of the intervals does not exceed.
    fn width(&self, share: f64) -> f64 {
        let mut sorted = self.widths.clone();
        sorted.sort_by(f64::total_cmp);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let at = (share * (self.n() - 1.0)).round() as usize;
        sorted.get(at).copied().unwrap_or(f64::NAN)
    }

    fn farthest(&self) -> f64 {
        self.misses.iter().copied().fold(0.0, f64::max)
    }

    fn json(&self) -> Value {
        json!({
            "n": self.widths.len(),
            "held": self.held,
            "unsettled": self.unsettled,
            "median_width": self.width(0.5),
            "width_90": self.width(0.9),
            "farthest_miss": self.farthest(),
            "rms_standard_errors": (self.squares / self.n()).sqrt(),
            "seconds": self.seconds,
        })
    }

    /// What it falls short of, if it does.
    fn complaint(&self, what: &str, most_unsettled: f64) -> Option<String> {
        let (held, n, unsettled) = (self.held, self.widths.len(), self.unsettled);
        if self.coverage() < HOLD {
            return Some(format!("{what}: {held} of {n} intervals hold, fewer than 183 of 200"));
        }
        let most = 100.0 * most_unsettled;
        (self.share_unsettled() > most_unsettled)
            .then(|| format!("{what}: {unsettled} of {n} are unsettled, more than {most:.0} %"))
    }
}

/// What was asked for: one family, other machines, one or fewer of them, each interval on stderr, JSON.
#[derive(Default)]
struct Asked<'a> {
    family: Option<&'a str>,
    draw: u64,
    machine: Option<usize>,
    json: bool,
    quick: bool,
    each: bool,
}

impl<'a> Asked<'a> {
    fn new(words: &[&'a str]) -> Fallible<Self> {
        let mut asked = Self::default();
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "--json" => asked.json = true,
                "--quick" => asked.quick = true,
                "--each" => asked.each = true,
                "--family" => asked.family = Some(words.next().ok_or("--family takes a name")?),
                "--draw" => asked.draw = words.next().ok_or("--draw takes a number")?.parse()?,
                "--machine" => {
                    asked.machine = Some(words.next().ok_or("--machine takes a number")?.parse()?);
                }
                other => return Err(format!("`{other}` is not known; {}", usage()).into()),
            }
        }
        let known = |name: &str| name == easy::NAME || hard_families().any(|f| f.name == name);
        match asked.family {
            Some(name) if !known(name) => {
                Err(format!("there is no family `{name}`; {}", usage()).into())
            }
            _ => Ok(asked),
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.family.is_none_or(|family| family == name)
    }
}

fn hard_families() -> impl Iterator<Item = &'static Family> {
    FAMILIES.iter().chain(&REHEARSALS)
}

fn usage() -> String {
    let names: Vec<&str> = hard_families().map(|f| f.name).collect();
    format!(
        "usage: reproduce coverage [--family {}|{}] [--draw N] [--machine K] [--quick] [--each] [--json]",
        easy::NAME,
        names.join("|")
    )
}

pub(crate) fn run(words: &[&str]) -> Outcome {
    let asked = Asked::new(words)?;
    let start = Instant::now();
    let (mut complaints, mut all) = (Vec::new(), Vec::new());
    if asked.wants(easy::NAME) {
        let (found, short) = easy::run(&asked)?;
        all.push(found);
        complaints.extend(short);
    }
    let rehearsed = |f: &&Family| asked.family == Some(f.name);
    let families = FAMILIES.iter().filter(|f| asked.wants(f.name));
    for family in families.chain(REHEARSALS.iter().filter(rehearsed)) {
        let (found, short) = hard(family, &asked)?;
        all.push(found);
        complaints.extend(short);
    }
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds());
    if asked.json {
        let all = json!({ "families": all, "seconds": seconds, "cpu_seconds": cpu,
            "complaints": complaints });
        println!("{all}");
    } else {
        println!("{seconds:.0} s in all, {:.0} s of processors", cpu.unwrap_or(f64::NAN));
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n").into()) }
}

/// What this process has taken of all processors, where Linux tells: a machine may be shared.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which may hold anything: ticks of a hundredth in user and in system mode.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

/// One hard family: its numbers, and what falls short.
fn hard(family: &Family, asked: &Asked<'_>) -> Fallible<(Value, Vec<String>)> {
    let n = if asked.quick { MACHINES / 4 } else { MACHINES };
    let seeds = if asked.quick { 2 } else { SEEDS };
    // Every fourth machine, so that all sizes and strengths have their turn.
    let step = if asked.quick { 4 } else { 1 };
    let one = |k: usize| -> Result<Vec<Tally>, String> {
        let machine =
            (family.make)(Which { draw: asked.draw, k: step * k }).map_err(|e| e.to_string())?;
        let exact = exact::log_partition(&machine).map_err(|e| e.to_string())?;
        let mut tallies = vec![Tally::default(); HARD.len()];
        for (tally, forced) in tallies.iter_mut().zip(HARD) {
            for seed in 0..seeds {
                let start = Instant::now();
                let found = log_partition(&machine, &settings(forced, seed), &mut Silent)
                    .map_err(|e| e.to_string())?;
                tally.add(&found, exact, start.elapsed().as_secs_f64());
                if asked.each {
                    let (name, how) = (family.name, forced.name);
                    eprintln!("{name} {} {how} seed {seed} {exact:.4} {found:?}", step * k);
                }
            }
        }
        Ok(tallies)
    };
    let chosen = |k: &usize| asked.machine.is_none_or(|machine| machine == step * k);
    let each: Result<Vec<_>, String> = (0..n).into_par_iter().filter(chosen).map(one).collect();
    let mut sums = vec![Tally::default(); HARD.len()];
    for tallies in each? {
        sums.iter_mut().zip(&tallies).for_each(|(sum, tally)| sum.join(tally));
    }
    let rows: Vec<(&str, &Tally)> = HARD.iter().map(|f| f.name).zip(&sums).collect();
    if !asked.json {
        println!("{}: {}; {n} machines, {seeds} seeds", family.name, family.what);
        table(&rows);
    }
    Ok(judged(family.name, &rows, UNSETTLED[1]))
}

/// The numbers of a family, and what falls short in it.
fn judged(name: &str, rows: &[(&str, &Tally)], unsettled: f64) -> (Value, Vec<String>) {
    let methods: serde_json::Map<String, Value> =
        rows.iter().map(|(name, tally)| ((*name).to_owned(), tally.json())).collect();
    let short =
        |(method, tally): &(&str, &Tally)| tally.complaint(&format!("{name}, {method}"), unsettled);
    (json!({ "family": name, "methods": methods }), rows.iter().filter_map(short).collect())
}

fn table(rows: &[(&str, &Tally)]) {
    println!(
        "  {:<20}{:>12}{:>12}{:>14}{:>12}{:>14}{:>10}",
        "", "hold", "unsettled", "median width", "90 % below", "farthest miss", "s each"
    );
    for (name, t) in rows {
        println!(
            "  {name:<20}{:>12}{:>10.1} %{:>14.3}{:>12.3}{:>14.3}{:>10.2}",
            format!("{} of {}", t.held, t.widths.len()),
            100.0 * t.share_unsettled(),
            t.width(0.5),
            t.width(0.9),
            t.farthest(),
            t.seconds / t.n()
        );
    }
}

/// A start that many a machine is too hard for, and twice four times as much where it did not settle.
fn settings(forced: Forced, seed: u64) -> Settings {
    let bar = forced.method == Method::Bar;
    Settings {
        method: Some(forced.method),
        starts: forced.starts,
        betas: (!bar).then_some(1000),
        chains: Some(if bar { 10 } else { 100 }),
        sweeps: Some(100_000),
        extensions: Some(2),
        seed,
        ..Settings::default()
    }
}

//! The data sets of the studies, models bracketed on them, and the time that a process has taken.

use crate::Fallible;
use harmonium::engine::Arithmetic;
use harmonium::evaluation::likelihood;
use harmonium::evaluation::log_partition::{LogPartition, Settings, log_partition};
use harmonium::evaluation::row_sums::{RowWork, Sums, log_sums};
use harmonium::machine::{Machine, State};
use harmonium::progress::Silent;
use harmonium::random::Stream;
use harmonium::sampling::{Clamp, Sampler};
use harmonium::schema::Feed;
use harmonium_data::{Binarize, Dataset, Options, open_dataset};
use std::path::Path;

/// Rows that are looked at together.
const TOGETHER: usize = 500;

/// What is learned from, validated with, and tested on.
pub(crate) struct Set {
    pub(crate) train: Dataset,
    pub(crate) valid: Dataset,
    pub(crate) test: Dataset,
}

/// A file of the shared data.
pub(crate) fn file(name: &str, binarize: Binarize) -> Fallible<Dataset> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(name);
    let path = path.to_str().ok_or("a path that is not text")?;
    if !Path::new(path).exists() {
        return Err(format!("the data is not there: `{path}`").into());
    }
    Ok(open_dataset(path, &Options::default(), binarize)?.dataset)
}

/// One of the binary sets for density estimation.
pub(crate) fn density(name: &str) -> Fallible<Set> {
    let part = |part: &str| file(&format!("density/{name}/{name}.{part}.data"), Binarize::None);
    Ok(Set { train: part("train")?, valid: part("valid")?, test: part("test")? })
}

/// A machine and $\ln Z$ from both sides, by a fixed amount of work.
pub(crate) struct Bracketed<'m> {
    machine: &'m Machine,
    pub(crate) log_z: LogPartition,
}

impl<'m> Bracketed<'m> {
    /// Anneals over `betas` temperatures in as many `chains` on each side, from the means of the training data.
    pub(crate) fn new(
        machine: &'m Machine,
        train: &Dataset,
        (betas, chains): (usize, usize),
    ) -> Fallible<Self> {
        let means = Some(Feed::of(machine, train)?.means().concat());
        let (betas, chains) = (Some(betas), Some(chains));
        let settings = Settings { means, betas, chains, ..Settings::default() };
        Ok(Self { machine, log_z: log_partition(machine, &settings, &mut Silent)? })
    }

    /// Lower end, estimate and upper end of the mean log-likelihood of the first `rows` rows.
    pub(crate) fn on(&self, data: &Dataset, rows: usize) -> Fallible<[f64; 3]> {
        let sums = first_sums(self.machine, data, rows)?;
        let found = likelihood::estimate(&sums, &vec![1.0; sums.rows.len()], &self.log_z);
        Ok([found.lower, found.mean, found.upper])
    }
}

/// $\ln\sum_h e^{-E}$ of the first `n` rows of a set.
fn first_sums(machine: &Machine, data: &Dataset, n: usize) -> Fallible<Sums> {
    let feed = Feed::of(machine, data)?;
    let n = n.min(data.n_rows());
    let mut all = Sums::none();
    for first in (0..n).step_by(TOGETHER) {
        let batch = feed.batch(first..(first + TOGETHER).min(n), Stream::new(0));
        all.extend(sums(machine, &batch.to_state(machine)?, first)?);
    }
    Ok(all)
}

/// The same of states.
fn sums(machine: &Machine, x: &State, first: usize) -> Fallible<Sums> {
    let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
    Ok(log_sums(&sampler, &Clamp::visible(machine), x, first, &RowWork::default())?)
}

/// Seconds of processor time that this process has taken, those of all threads together: other work on the machine does
/// not count.
pub(crate) fn cpu_seconds() -> Fallible<f64> {
    /// Ticks of the clock in which Linux counts.
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat")
        .map_err(|_| "processor time is read from /proc/self/stat, which only Linux has")?;
    // Fields are counted behind the name, which may hold anything.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |k: usize| fields.get(k).and_then(|f| f.parse::<f64>().ok());
    let (user, system) = (ticks(11), ticks(12));
    let both = user.zip(system).ok_or("/proc/self/stat has other fields than expected")?;
    Ok((both.0 + both.1) / TICKS)
}

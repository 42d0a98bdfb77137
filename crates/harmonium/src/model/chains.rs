//! Plain chains of a verb, with those of them that are watched.
//!
//! A sample is the last state of a chain of its own. The verdict comes from chains that are watched
//! over the second half of their sweeps: the samples' own where one distribution has enough of them,
//! else companions that are thrown away afterwards. Every second watched chain starts from units that
//! do not care, the others from units with the machine's biases, so that they start dispersed.

use super::given::Given;
use crate::error::Error;
use crate::evaluation::verdict::{LOOKS, R_HAT_OF_SAMPLES, Trust, Watches, Worst};
use crate::machine::{Clamp, Machine, State};
use crate::progress::{Listener, tell};
use crate::random::Stream;
use crate::sampling::{Clusters, Sampler};

/// Chains that are watched together where nothing is given, or one thing for all.
const WATCHED: usize = 24;
/// Given rows whose chains are watched, and the chains of each.
const WATCHED_ROWS: usize = 8;
const WATCHED_PER_ROW: usize = 6;
/// Bonds, over all rows that differ, up to which cluster moves are prepared.
const MOST_BONDS: usize = 20_000_000;

/// Which chains there are.
pub(super) struct Crew {
    /// The given row of each chain; the samples come first.
    pub(super) of: Vec<usize>,
    /// Chains that are watched, those of one row together.
    groups: Vec<Vec<usize>>,
    n_samples: usize,
}

impl Crew {
    /// `n` samples for each of `n_rows` rows, and companions where those are too few to watch.
    pub(super) fn new(n_rows: usize, n: usize) -> Self {
        let mut of: Vec<usize> = (0..n_rows).flat_map(|row| std::iter::repeat_n(row, n)).collect();
        let n_samples = of.len();
        let (rows, chains) =
            if n_rows == 1 { (1, WATCHED) } else { (n_rows.min(WATCHED_ROWS), WATCHED_PER_ROW) };
        let mut groups = Vec::new();
        for k in 0..rows {
            let row = k * n_rows / rows;
            let mut group: Vec<usize> = (row * n..row * n + n.min(chains)).collect();
            while group.len() < chains {
                group.push(of.len());
                of.push(row);
            }
            groups.push(group);
        }
        Self { of, groups, n_samples }
    }

    /// Whether a chain starts from units that do not care.
    pub(super) fn is_dispersed(&self, chain: usize) -> bool {
        self.groups.iter().any(|g| g.iter().position(|c| *c == chain).is_some_and(|k| k % 2 == 1))
    }
}

/// Chains on their way.
pub(super) struct Plain<'a> {
    sampler: &'a Sampler,
    crew: Crew,
    x: State,
    clamp: Clamp,
    stream: Stream,
    /// The ferromagnets that the rows are, if cluster moves are made.
    ferromagnets: Vec<Clusters>,
    done: usize,
}

impl<'a> Plain<'a> {
    /// Chains of `n` samples for each given row.
    pub(super) fn new(
        sampler: &'a Sampler,
        given: &Given<'_>,
        n: usize,
        stream: Stream,
    ) -> Result<Self, Error> {
        let crew = Crew::new(given.n_rows(), n);
        let dispersed: Vec<bool> = (0..crew.of.len()).map(|c| crew.is_dispersed(c)).collect();
        let (x, clamp) = given.start(&crew.of, |chain| dispersed[chain], stream)?;
        Ok(Self { sampler, crew, x, clamp, stream, ferromagnets: Vec::new(), done: 0 })
    }

    /// Adds cluster moves where the free units of every given row are a ferromagnet, and says whether
    /// they are.
    pub(super) fn add_clusters(&mut self, given: &Given<'_>) -> Result<bool, Error> {
        let (n_rows, machine) = (given.n_rows(), self.sampler.machine());
        let mut bonds = 0;
        for row in 0..n_rows {
            let Some(chain) = self.crew.of.iter().position(|of| *of == row) else { break };
            let found = Clusters::new(machine, &self.clamp, &self.x, chain)?;
            bonds += found.as_ref().map_or(0, Clusters::n_bonds);
            match found {
                Some(found) if bonds <= MOST_BONDS => self.ferromagnets.push(found),
                _ => {
                    self.ferromagnets.clear();
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Sweeps until `total` are done, watching the chains after half of them.
    pub(super) fn run(
        &mut self,
        total: usize,
        listener: &mut dyn Listener,
    ) -> Result<Trust, Error> {
        let machine = self.sampler.machine().clone();
        let half = (total / 2).max(self.done);
        let spacing = ((total - half) / LOOKS).max(1);
        // Where half of the sweeps are done and a whole number of spacings is left.
        let first = total - (total - half) / spacing * spacing;
        let mut watches = None;
        while self.done < total {
            let ahead = if self.done < first { first - self.done } else { spacing };
            self.sweep(ahead.min(spacing))?;
            if self.done == first {
                watches = Some(Watches::new(&machine, &self.x, &self.crew.groups)?);
            } else if let Some(watches) = &mut watches {
                watches.look(&machine, &self.x)?;
            }
            tell(listener, "sampling", self.done as u64, total as u64)?;
        }
        let worst = watches.map_or(Ok(None), |watches| watches.worst())?;
        Ok(worst.map_or_else(Trust::unknown, |worst: Worst| {
            Trust::of_last_states(self.crew.n_samples, &worst, spacing)
        }))
    }

    fn sweep(&mut self, n: usize) -> Result<(), Error> {
        let Self { sampler, crew, x, clamp, stream, ferromagnets, done } = self;
        let of_sweep = |purpose: u64, sweep: usize| stream.fork(purpose).fork(sweep as u64);
        if ferromagnets.is_empty() {
            sampler.gibbs(clamp, x, n, of_sweep(2, *done))?;
        } else {
            for sweep in *done..*done + n {
                sampler.gibbs(clamp, x, 1, of_sweep(2, sweep))?;
                Clusters::advance_rows(ferromagnets, &crew.of, x, of_sweep(5, sweep));
            }
        }
        *done += n;
        Ok(())
    }

    /// Whether more sweeps are likely to help: chains that stand far apart do not meet soon.
    pub(super) fn may_mix(trust: &Trust) -> bool {
        const HOPELESS: f64 = 1.3;
        trust.r_hat.is_some_and(|r| r > R_HAT_OF_SAMPLES && r <= HOPELESS)
    }

    /// Sweeps that are done.
    pub(super) fn sweeps(&self) -> usize {
        self.done
    }

    /// The samples, and what is held of them.
    pub(super) fn into_samples(self) -> (State, Clamp) {
        let rows: Vec<usize> = (0..self.crew.n_samples).collect();
        (self.x.select_rows(&rows), self.clamp.select_rows(&rows))
    }
}

/// Multiplications of a sweep of one chain, roughly.
pub(super) fn sweep_cost(machine: &Machine) -> f64 {
    let entries: usize = machine.layers().iter().map(crate::machine::Layer::len).sum();
    (machine.n_parameters() + entries) as f64
}

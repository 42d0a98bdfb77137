//! Parallel tempering: replicas between an easy base and the machine exchange places.
//!
//! Replica $k$ samples $p_{\beta_k}(x) \propto e^{-(1-\beta_k)E_\text{base}(x) - \beta_k E(x)}$.
//! After each sweep neighbours swap with probability
//! $\min(1, e^{(\beta_i - \beta_j)(D(x_i) - D(x_j))})$, $D = E - E_\text{base}$, which leaves the
//! joint distribution of all replicas where it is (Swendsen & Wang 1986; Desjardins et al. 2010).

use super::chains::independent;
use super::collapsed::{Collapsed, Variates};
use super::gibbs::sample_sweeps;
use super::walk::{Heat, Walk};
use super::{Clamp, Sampler};
use crate::error::Error;
use crate::machine::{Base, Layer, Machine, State, check_memory};
use harmonium_kernels::random::{Site, Stream};
use rayon::prelude::*;
use serde::Serialize;

/// How often two neighbouring temperatures exchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SwapRate {
    /// Exchanges proposed.
    pub proposed: u64,
    /// Exchanges made.
    pub accepted: u64,
}

impl SwapRate {
    /// Share of proposals accepted; 0 before the first.
    pub fn rate(self) -> f64 {
        self.accepted as f64 / self.proposed.max(1) as f64
    }
}

/// One replica on its way up and down the ladder.
#[derive(Clone, Copy, Debug)]
struct Traveller {
    /// The row it started in.
    replica: usize,
    /// The end of the ladder it was at last.
    last_end: Option<End>,
}

/// The ends of a ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The lowest inverse temperature.
    Hot,
    /// The machine itself, after the hot end.
    Cold,
}

/// A number of independent ladders of replicas.
#[derive(Clone, Debug)]
pub struct Tempering {
    betas: Vec<f64>,
    base: Base,
    /// What is held in each row.
    clamp: Clamp,
    /// Row `ladder * n_betas + k` is at `betas[k]`.
    replicas: State,
    row_betas: Vec<f64>,
    swaps: Vec<SwapRate>,
    rounds: u64,
    /// Who stands in each row: swapped along with the rows.
    travellers: Vec<Traveller>,
    round_trips: u64,
}

impl Tempering {
    /// `n_ladders` ladders over the inverse temperatures `betas`, rising and ending at 1, started
    /// from the base.
    ///
    /// # Errors
    ///
    /// If there is no ladder, the temperatures do not rise from at least 0 to 1, or memory ends.
    pub fn new(
        machine: &Machine,
        n_ladders: usize,
        betas: &[f64],
        base: Base,
        stream: Stream,
    ) -> Result<Self, Error> {
        let rising = betas.windows(2).all(|w| w[0] < w[1]);
        if !rising || betas.first().is_none_or(|b| *b < 0.0) || betas.last() != Some(&1.0) {
            let value = format!("{betas:?}");
            return Err(Error::Setting {
                name: "betas",
                value,
                range: "rising from 0 or more to 1",
            });
        }
        if n_ladders == 0 {
            return Err(Error::Setting { name: "chains", value: "0".into(), range: "at least 1" });
        }
        let what = || format!("{n_ladders} ladders of {} replicas", betas.len());
        // States, and who stands in each row at which temperature.
        let entries: usize = machine.layers().iter().map(Layer::len).sum();
        let row = entries as f64 * 8.0 + 40.0;
        check_memory(n_ladders as f64 * betas.len() as f64 * row, what)?;
        let replicas = independent(machine, &base, n_ladders * betas.len(), stream)?;
        let traveller = |replica| Traveller { replica, last_end: None };
        let mut ladders = Self {
            clamp: Clamp::none(),
            travellers: (0..replicas.n_rows()).map(traveller).collect(),
            round_trips: 0,
            row_betas: betas.repeat(n_ladders),
            swaps: vec![SwapRate::default(); betas.len() - 1],
            betas: betas.to_vec(),
            base,
            replicas,
            rounds: 0,
        };
        ladders.note_ends();
        Ok(ladders)
    }

    /// Ladders with part of each held: one for each row of `held`, at whose values the units stay
    /// that `clamp` holds.
    ///
    /// # Errors
    ///
    /// As for [`Tempering::new`], and if clamp or state do not fit the machine.
    pub fn holding(
        machine: &Machine,
        (held, clamp): (&State, &Clamp),
        betas: &[f64],
        base: Base,
        stream: Stream,
    ) -> Result<Self, Error> {
        held.check(machine)?;
        clamp.check(machine, held.n_rows())?;
        let mut ladders = Self::new(machine, held.n_rows(), betas, base, stream)?;
        let n = betas.len();
        let of: Vec<usize> = (0..ladders.replicas.n_rows()).map(|row| row / n).collect();
        ladders.replicas.hold(machine, clamp, held, &of)?;
        ladders.clamp = clamp.select_rows(&of);
        Ok(ladders)
    }

    /// The same ladders over other temperatures, each replica started from one that stood nearby.
    /// Counts begin anew.
    ///
    /// # Errors
    ///
    /// As for [`Tempering::new`].
    pub(crate) fn over(&self, machine: &Machine, betas: &[f64]) -> Result<Self, Error> {
        let (n, m) = (self.betas.len(), betas.len());
        let n_ladders = self.replicas.n_rows() / n;
        let mut ladders = Self::new(machine, n_ladders, betas, self.base.clone(), Stream::new(0))?;
        let near = |k: usize| {
            let far = |j: &usize| (self.betas[*j] - betas[k]).abs();
            (0..n).min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(0)
        };
        let near: Vec<usize> = (0..m).map(near).collect();
        let from: Vec<usize> = (0..n_ladders * m).map(|row| row / m * n + near[row % m]).collect();
        ladders.replicas = self.replicas.select_rows(&from);
        ladders.clamp = self.clamp.select_rows(&from);
        Ok(ladders)
    }

    /// What is held in each row of the replicas.
    pub(crate) fn clamp(&self) -> &Clamp {
        &self.clamp
    }

    /// `n` inverse temperatures, evenly from 0 to 1.
    pub fn even_ladder(n: usize) -> Vec<f64> {
        (0..n).map(|k| if n > 1 { k as f64 / (n - 1) as f64 } else { 1.0 }).collect()
    }

    /// The inverse temperatures.
    pub fn betas(&self) -> &[f64] {
        &self.betas
    }

    /// Acceptance between each temperature and the next.
    pub fn swap_rates(&self) -> &[SwapRate] {
        &self.swaps
    }

    /// The row in which the replica that is now in `row` started.
    pub fn replica_at(&self, row: usize) -> Option<usize> {
        self.travellers.get(row).map(|t| t.replica)
    }

    /// How often replicas went from the hot end to the machine and back, all of them together.
    ///
    /// Neighbours may swap often while nobody comes through: this is the count that says whether
    /// the cold end is renewed from the hot one (Katzgraber, Trebst, Huse & Troyer 2006). It
    /// begins with this value, and anew when a run is resumed.
    pub fn round_trips(&self) -> u64 {
        self.round_trips
    }

    /// All replicas; row `ladder * betas().len() + k` is at temperature `k`.
    pub fn replicas(&self) -> &State {
        &self.replicas
    }

    /// Where the ladder ends at $\beta = 0$.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Puts the replicas where `replicas` says, in the order of [`Tempering::replicas`].
    ///
    /// # Errors
    ///
    /// If it has another shape.
    pub fn set_replicas(&mut self, machine: &Machine, replicas: State) -> Result<(), Error> {
        replicas.check(machine)?;
        if replicas.n_rows() != self.replicas.n_rows() {
            let (expected, found) = (self.replicas.n_rows(), replicas.n_rows());
            return Err(Error::Shape { what: "the number of replicas".into(), expected, found });
        }
        self.replicas = replicas;
        Ok(())
    }

    /// Rounds done: the parity decides which neighbours may swap next.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds
    }

    pub(crate) fn set_counters(&mut self, rounds: u64, swaps: Vec<SwapRate>) {
        (self.rounds, self.swaps) = (rounds, swaps);
    }

    /// One round per sweep: every replica sweeps at its temperature, then neighbours may swap.
    ///
    /// # Errors
    ///
    /// If the machine is not the one the replicas were made for.
    pub fn advance(
        &mut self,
        sampler: &Sampler,
        n_sweeps: usize,
        stream: Stream,
    ) -> Result<(), Error> {
        let (machine, engine) = (sampler.machine(), sampler.engine());
        self.replicas.check(machine)?;
        for sweep in 0..n_sweeps {
            let heat = Heat::Mixed { base: &self.base, betas: &self.row_betas };
            let walk = Walk { engine, clamp: &self.clamp, heat, step: 1.0 };
            sample_sweeps(walk, &mut self.replicas, sweep..sweep + 1, stream.fork(0));
            let x = &self.replicas;
            let differences: Vec<f64> = (0..x.n_rows())
                .into_par_iter()
                .map(|row| machine.energy_of_row(x, row) - self.base.energy_of_row(machine, x, row))
                .collect();
            let gaps: Vec<f64> = self.betas.windows(2).map(|b| b[0] - b[1]).collect();
            let log_ratio = |i: usize, k: usize| gaps[k] * (differences[i] - differences[i + 1]);
            self.swap(log_ratio, sweep, stream.fork(1));
        }
        Ok(())
    }

    /// Lets neighbours swap, `log_ratio` being that of the swap of a row at temperature `k` with
    /// the next row, at `k + 1`.
    fn swap(&mut self, log_ratio: impl Fn(usize, usize) -> f64, sweep: usize, stream: Stream) {
        let n = self.betas.len();
        let parity = usize::from(!self.rounds.is_multiple_of(2));
        for ladder in 0..self.replicas.n_rows() / n {
            for k in (parity..n - 1).step_by(2) {
                let (i, j) = (ladder * n + k, ladder * n + k + 1);
                let log_ratio = log_ratio(i, k);
                let site = Site::new(ladder, sweep, 0);
                self.swaps[k].proposed += 1;
                if stream.uniform(site, k).ln() < log_ratio {
                    self.swaps[k].accepted += 1;
                    self.replicas.swap_rows(i, j);
                    self.travellers.swap(i, j);
                }
            }
        }
        self.rounds += 1;
        self.note_ends();
    }

    /// Takes down who stands at an end of its ladder.
    fn note_ends(&mut self) {
        for ladder in self.travellers.chunks_exact_mut(self.betas.len()) {
            let [hot, .., cold] = ladder else { continue };
            if hot.last_end == Some(End::Cold) {
                self.round_trips += 1;
            }
            hot.last_end = Some(End::Hot);
            if cold.last_end.is_some() {
                cold.last_end = Some(End::Cold);
            }
        }
    }

    /// One round with the layers that can be summed out left out of the swaps, which then happen
    /// more often. For each row, $\ln p^*_{k+1} - \ln p^*_k$ and $\ln p^*_{k-1} - \ln p^*_k$ of
    /// where it stood before the swaps; 0 beyond the ends of the ladder.
    pub(crate) fn advance_collapsed(
        &mut self,
        collapsed: &mut Collapsed<'_>,
        variates: Variates,
    ) -> (Vec<f64>, Vec<f64>) {
        let (n, last) = (self.betas.len(), self.betas.len() - 1);
        let stream = variates.stream;
        collapsed.sweep(
            &mut self.replicas,
            &self.row_betas,
            Variates { stream: stream.fork(0), ..variates },
        );
        let n_ladders = self.replicas.n_rows() / n;
        let moved = |of: &dyn Fn(usize) -> usize| -> Vec<f64> {
            (0..n).map(|k| self.betas[of(k)]).collect::<Vec<f64>>().repeat(n_ladders)
        };
        let (up, down) = (moved(&|k| (k + 1).min(last)), moved(&|k| k.saturating_sub(1)));
        let logs = collapsed.log_densities(&mut self.replicas, &[&self.row_betas, &up, &down]);
        let minus = |a: &[f64]| a.iter().zip(&logs[0]).map(|(a, b)| a - b).collect::<Vec<f64>>();
        let (up, down) = (minus(&logs[1]), minus(&logs[2]));
        self.swap(|i, _| up[i] + down[i + 1], variates.sweep, stream.fork(1));
        (up, down)
    }

    /// A sweep on the way from the base to the ladder, without swaps: each replica is at the rung that is
    /// this `share` of its own way up.
    pub(crate) fn climb_collapsed(
        &mut self,
        collapsed: &mut Collapsed<'_>,
        share: f64,
        variates: Variates,
    ) {
        let n = self.betas.len();
        let on_the_way = |k: usize| {
            let place = share * k as f64;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rung")]
            let below = (place as usize).min(n - 1);
            let (low, high) = (self.betas[below], self.betas[(below + 1).min(n - 1)]);
            low + place.fract() * (high - low)
        };
        let betas: Vec<f64> = (0..n).map(on_the_way).collect();
        let betas = betas.repeat(self.replicas.n_rows() / n);
        let Variates { stream, sweep } = variates;
        collapsed.sweep(&mut self.replicas, &betas, Variates { stream: stream.fork(2), sweep });
    }

    /// The replicas at $\beta = 1$: samples of the machine itself.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn targets(&self, machine: &Machine) -> Result<State, Error> {
        self.replicas.check(machine)?;
        let n = self.betas.len();
        let last: Vec<usize> = (0..self.replicas.n_rows() / n).map(|k| k * n + n - 1).collect();
        Ok(self.replicas.select_rows(&last))
    }
}

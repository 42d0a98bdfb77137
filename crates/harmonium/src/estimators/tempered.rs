//! The model side from parallel tempering (Desjardins et al. 2010): chains that keep mixing when
//! the energy landscape grows steep.

use super::{Context, Deferring, Estimator, Side, Snapshot, last_free_block};
use crate::error::Error;
use crate::machine::{Base, Machine, State, check_memory, filled};
use crate::sampling::{Clamp, SwapRate, Tempering};
use harmonium_kernels::random::Stream;

/// Persistent ladders of replicas; the statistics come from those at $\beta = 1$.
#[derive(Clone, Debug)]
pub struct Tempered {
    n_chains: usize,
    betas: Vec<f64>,
    ladders: Option<Tempering>,
    particles: Option<State>,
    weights: Vec<f64>,
}

impl Tempered {
    /// `n_chains` ladders of `n_replicas` evenly spaced inverse temperatures.
    ///
    /// # Errors
    ///
    /// If there is no chain, fewer than two replicas, or more of both than memory holds.
    pub fn new(n_chains: usize, n_replicas: usize) -> Result<Self, Error> {
        for (name, value, least) in [("chains", n_chains, 1), ("replicas", n_replicas, 2)] {
            if value < least {
                let range = if least == 1 { "at least 1" } else { "at least 2" };
                return Err(Error::Setting { name, value: value.to_string(), range });
            }
        }
        let what = || format!("{n_chains} chains of {n_replicas} replicas");
        check_memory(n_chains as f64 * n_replicas as f64 * 8.0, what)?;
        Ok(Self {
            n_chains,
            betas: Tempering::even_ladder(n_replicas),
            ladders: None,
            particles: None,
            weights: filled(n_chains, 1.0 / n_chains as f64, what)?,
        })
    }

    /// Acceptance between neighbouring temperatures so far.
    pub fn swap_rates(&self) -> &[SwapRate] {
        self.ladders.as_ref().map_or(&[], Tempering::swap_rates)
    }

    fn start(&self, machine: &Machine, base: Base, stream: Stream) -> Result<Tempering, Error> {
        Tempering::new(machine, self.n_chains, &self.betas, base, stream)
    }
}

impl Deferring for Tempered {}

impl Estimator for Tempered {
    fn name(&self) -> &'static str {
        "pt"
    }

    fn estimate(&mut self, context: &Context<'_>) -> Result<Side<'_>, Error> {
        let Context { sampler, k, stream, .. } = *context;
        let machine = sampler.machine();
        let mut ladders = match self.ladders.take() {
            Some(ladders) => ladders,
            // The base keeps the biases of the first step: near the data's own means.
            None => self.start(machine, Base::of_biases(machine), stream.fork(0))?,
        };
        ladders.advance(sampler, k, stream.fork(1))?;
        let state = self.particles.insert(ladders.targets(machine)?);
        self.ladders = Some(ladders);
        let free = Clamp::none();
        sampler.average_block(&free, state, &last_free_block(sampler, &free));
        Ok(Side::Particles { state, weights: &self.weights })
    }

    fn export(&self, machine: &Machine) -> Snapshot {
        let mut snapshot = Snapshot::default();
        if let Some(ladders) = &self.ladders {
            snapshot.insert_state(machine, ladders.replicas());
            snapshot.insert_base(machine, ladders.base());
            let swaps = ladders.swap_rates().iter();
            let counts = swaps.flat_map(|s| [s.proposed as f64, s.accepted as f64]).collect();
            snapshot.insert("swaps", counts);
            snapshot.insert("rounds", vec![ladders.rounds() as f64]);
        }
        snapshot
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counters below 2^53 are whole numbers in f64"
    )]
    fn import(&mut self, machine: &Machine, snapshot: &Snapshot) -> Result<(), Error> {
        self.ladders = None;
        if snapshot.0.is_empty() {
            return Ok(());
        }
        let base = snapshot.base(machine)?;
        let mut ladders = self.start(machine, base, Stream::new(0))?;
        let n_rows = self.n_chains * self.betas.len();
        ladders.set_replicas(machine, snapshot.state(machine, n_rows)?)?;
        let counts = snapshot.get("swaps", 2 * (self.betas.len() - 1))?;
        let pair = |c: &[f64]| SwapRate { proposed: c[0] as u64, accepted: c[1] as u64 };
        let rounds = snapshot.get("rounds", 1)?[0] as u64;
        ladders.set_counters(rounds, counts.chunks_exact(2).map(pair).collect());
        self.ladders = Some(ladders);
        Ok(())
    }
}

//! Samples by parallel tempering, for machines whose plain chains do not mix.
//!
//! Ladders of replicas go from independent units to the machine. The temperatures are placed such that
//! a swap is refused equally often everywhere: with $r_k$ the share refused between $\beta_k$ and
//! $\beta_{k+1}$, $\Lambda(\beta_k) = \sum_{j<k} r_j$ is cut evenly, into about $2\Lambda(1)$ pieces
//! (Syed, Bouchard-Côté, Deligiannidis & Doucet, Journal of the Royal Statistical Society B 84, 2022).
//! Samples are taken from the cold ends over the second half of the rounds. They count as mixed where
//! the cold ends of several ladders agree and replicas have come round.

use super::chains::sweep_cost;
use super::given::Given;
use crate::error::Error;
use crate::evaluation::verdict::{LOOKS, Trust, Verdict, Watches};
use crate::machine::{Base, Clamp, Machine, State};
use crate::progress::{Listener, tell};
use crate::random::Stream;
use crate::sampling::{Collapsed, Sampler, Tempering, Variates};

/// Ladders for each given row, where few are given and where many are.
const LADDERS: usize = 16;
const LADDERS_OF_MANY: usize = 4;
/// Given rows that are few.
pub(super) const FEW_ROWS: usize = 8;
/// Temperatures at first, fewest and most.
const FIRST_RUNGS: usize = 12;
const RUNGS: std::ops::RangeInclusive<usize> = 6..=64;
/// Times that temperatures are placed anew, and rounds before each.
const PLACINGS: usize = 5;
const PLACING_ROUNDS: usize = 100;
/// Rounds at first; they double until the ladders have mixed.
const FIRST_ROUNDS: usize = 1000;
/// Rounds after which it ends in any case, if the work does not end it before.
const MOST_ROUNDS: usize = 16_000;
/// Multiplications that the rounds may cost: about a minute.
const WORK: f64 = 2e11;
/// Round trips of each ladder below which its cold end is not renewed from the hot one.
const LEAST_TRIPS: f64 = 2.0;

/// What tempering found.
pub(super) struct Tempered {
    pub(super) x: State,
    pub(super) clamp: Clamp,
    pub(super) trust: Trust,
    pub(super) rounds: usize,
    pub(super) round_trips: u64,
}

/// Draws `n` samples for each given row; with `rounds` given, after exactly so many rounds.
pub(super) fn temper(
    sampler: &Sampler,
    base: &Base,
    given: &Given<'_>,
    (n, rounds): (usize, Option<usize>),
    stream: Stream,
    listener: &mut dyn Listener,
) -> Result<Tempered, Error> {
    let n_rows = given.n_rows();
    let per_row = if n_rows <= FEW_ROWS { LADDERS } else { LADDERS_OF_MANY };
    let of: Vec<usize> = (0..n_rows).flat_map(|row| std::iter::repeat_n(row, per_row)).collect();
    let (held, clamp) = given.start(&of, |_| false, stream.fork(10))?;
    let betas = Tempering::even_ladder(FIRST_RUNGS);
    let ladders = Tempering::holding(
        sampler.machine(),
        (&held, &clamp),
        &betas,
        base.clone(),
        stream.fork(11),
    )?;
    let mut ladders =
        Ladders { sampler, replicas: ladders, cold: clamp, stream: stream.fork(12), done: 0 };
    ladders.place(listener)?;
    let collect = Collect { n, per_row, n_rows };
    let most = rounds.unwrap_or_else(|| ladders.affordable().max(2 * n.div_ceil(per_row)));
    let mut total = rounds.unwrap_or_else(|| FIRST_ROUNDS.max(2 * n.div_ceil(per_row)).min(most));
    loop {
        let (x, trust) = ladders.run(total, &collect, listener)?;
        if trust.verdict == Verdict::Mixed || total >= most {
            let of: Vec<usize> = (0..n_rows * n).map(|i| i / n * per_row).collect();
            let clamp = ladders.cold.select_rows(&of);
            let round_trips = ladders.replicas.round_trips();
            return Ok(Tempered { x, clamp, trust, rounds: total, round_trips });
        }
        total = (2 * total).min(most);
    }
}

/// Which cold ends become samples.
struct Collect {
    n: usize,
    per_row: usize,
    n_rows: usize,
}

impl Collect {
    /// Rounds of a window of `window` at which samples are taken.
    fn rounds(&self, window: usize) -> Vec<usize> {
        let times = self.n.div_ceil(self.per_row);
        (1..=times).map(|k| (k * window / times).max(1)).collect()
    }
}

struct Ladders<'a> {
    sampler: &'a Sampler,
    replicas: Tempering,
    /// What is held at the cold ends, a row for each ladder.
    cold: Clamp,
    stream: Stream,
    done: usize,
}

impl Ladders<'_> {
    /// Moves the temperatures to where replicas get through.
    fn place(&mut self, listener: &mut dyn Listener) -> Result<(), Error> {
        let machine = self.sampler.machine();
        for placing in 0..PLACINGS {
            let stream = self.stream.fork(0).fork(placing as u64);
            let setting = Setting::of(&self.replicas);
            let mut collapsed = setting.collapsed(self.sampler, &self.replicas)?;
            for k in 0..PLACING_ROUNDS {
                round(self.sampler, &mut self.replicas, &mut collapsed, stream.fork(k as u64))?;
            }
            let betas = placed(&self.replicas);
            self.replicas = self.replicas.over(machine, &betas)?;
            tell(listener, "temperatures", placing as u64 + 1, PLACINGS as u64)?;
        }
        Ok(())
    }

    /// Rounds that the work allows.
    fn affordable(&self) -> usize {
        let round = self.replicas.replicas().n_rows() as f64 * sweep_cost(self.sampler.machine());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let rounds = (WORK / round).clamp(FIRST_ROUNDS as f64, MOST_ROUNDS as f64) as usize;
        rounds
    }

    /// Rounds until `total` are done; samples and looks are taken over the second half.
    fn run(
        &mut self,
        total: usize,
        collect: &Collect,
        listener: &mut dyn Listener,
    ) -> Result<(State, Trust), Error> {
        let machine = self.sampler.machine();
        let half = (total / 2).max(self.done);
        let spacing = ((total - half) / (4 * LOOKS)).max(1);
        let setting = Setting::of(&self.replicas);
        let mut collapsed = setting.collapsed(self.sampler, &self.replicas)?;
        let (mut trips, mut watches) = (0, None);
        let mut samples = State::zeros(machine, collect.n_rows * collect.n)?;
        let mut times = collect.rounds(total - half).into_iter().enumerate().peekable();
        let groups: Vec<Vec<usize>> = (0..collect.n_rows)
            .map(|row| (row * collect.per_row..(row + 1) * collect.per_row).collect())
            .collect();
        while self.done < total {
            let stream = self.stream.fork(1).fork(self.done as u64);
            round(self.sampler, &mut self.replicas, &mut collapsed, stream)?;
            self.done += 1;
            let into = self.done.saturating_sub(half);
            if into == 0 {
                trips = self.replicas.round_trips();
            }
            let looks = into.is_multiple_of(spacing) && self.done >= half;
            let due = times.peek().is_some_and(|(_, at)| *at <= into) && into > 0;
            if looks || due {
                let stream = self.stream.fork(2).fork(self.done as u64);
                let summed = collapsed.as_ref();
                let x = cold_ends(self.sampler, &self.replicas, summed, &self.cold, stream)?;
                let watches = match &mut watches {
                    Some(watches) => watches,
                    None => watches.insert(Watches::new(machine, &x, &groups)?),
                };
                if looks {
                    watches.look(machine, &x)?;
                }
                while let Some((k, _)) = times.next_if(|(_, at)| *at <= into) {
                    collect.take(machine, k, &x, &mut samples)?;
                }
            }
            if self.done.is_multiple_of(16) || self.done == total {
                tell(listener, "tempering", self.done as u64, total as u64)?;
            }
        }
        let Some(watches) = watches else { return Ok((samples, Trust::unknown())) };
        let Some(worst) = watches.worst()? else { return Ok((samples, Trust::unknown())) };
        let n_samples = collect.n * collect.n_rows;
        let mut trust = Trust::of_series(n_samples, watches.draws(), &worst, spacing);
        let trips = (self.replicas.round_trips() - trips) as f64;
        if trips < LEAST_TRIPS * (collect.per_row * collect.n_rows) as f64 {
            trust.verdict = Verdict::NotMixed;
        }
        Ok((samples, trust))
    }
}

impl Collect {
    /// Takes the cold ends `x` as the samples of time `k`.
    fn take(
        &self,
        machine: &Machine,
        k: usize,
        x: &State,
        samples: &mut State,
    ) -> Result<(), Error> {
        for ladder in 0..x.n_rows() {
            let (row, place) = (ladder / self.per_row, k * self.per_row + ladder % self.per_row);
            if place < self.n {
                for l in machine.layer_ids() {
                    samples.set_row(l, row * self.n + place, x.row(l, ladder))?;
                }
            }
        }
        Ok(())
    }
}

/// What the ladders share while their temperatures stay.
struct Setting {
    base: Base,
    clamp: Clamp,
}

impl Setting {
    fn of(ladders: &Tempering) -> Self {
        Self { base: ladders.base().clone(), clamp: ladders.clamp().clone() }
    }

    /// The walk with some layers summed out of the swaps, which then happen more often; where parts
    /// of layers are held, there is none.
    fn collapsed<'a>(
        &'a self,
        sampler: &'a Sampler,
        ladders: &Tempering,
    ) -> Result<Option<Collapsed<'a>>, Error> {
        let whole = |l| self.clamp.holds_layer(l) || self.clamp.frees_layer(l);
        if !sampler.machine().layer_ids().all(whole) {
            return Ok(None);
        }
        Collapsed::new(sampler, &self.base, &self.clamp, ladders.replicas()).map(Some)
    }
}

/// One round.
fn round(
    sampler: &Sampler,
    ladders: &mut Tempering,
    collapsed: &mut Option<Collapsed<'_>>,
    stream: Stream,
) -> Result<(), Error> {
    let Some(collapsed) = collapsed else { return ladders.advance(sampler, 1, stream) };
    ladders.advance_collapsed(collapsed, Variates { stream, sweep: 0 });
    Ok(())
}

/// The cold ends. Layers that were summed out of the swaps are drawn anew: they still belong to the
/// temperature that their replica had before.
fn cold_ends(
    sampler: &Sampler,
    ladders: &Tempering,
    collapsed: Option<&Collapsed<'_>>,
    cold: &Clamp,
    stream: Stream,
) -> Result<State, Error> {
    let mut x = ladders.targets(sampler.machine())?;
    if let Some(collapsed) = collapsed {
        let mut clamp = cold.clone();
        collapsed.kept().iter().for_each(|&l| clamp.hold_layer(l));
        sampler.gibbs(&clamp, &mut x, 1, stream)?;
    }
    Ok(x)
}

/// Temperatures at which swaps would be refused equally often.
fn placed(ladders: &Tempering) -> Vec<f64> {
    /// Refused at least, so that temperatures stay apart.
    const LEAST: f64 = 1e-3;
    let betas = ladders.betas();
    let refused = ladders.swap_rates().iter().map(|s| (1.0 - s.rate()).max(LEAST));
    let mut barrier = vec![0.0];
    refused.for_each(|r| barrier.push(barrier[barrier.len() - 1] + r));
    let whole = barrier[barrier.len() - 1];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 64 refusals"
    )]
    let n = ((2.0 * whole).ceil() as usize + 2).clamp(*RUNGS.start(), *RUNGS.end());
    let inside = (1..n - 1).map(|k| {
        let wanted = whole * k as f64 / (n - 1) as f64;
        let j = barrier.partition_point(|b| *b <= wanted).clamp(1, betas.len() - 1);
        let share = (wanted - barrier[j - 1]) / (barrier[j] - barrier[j - 1]);
        betas[j - 1] + share * (betas[j] - betas[j - 1])
    });
    std::iter::once(0.0).chain(inside).chain([1.0]).collect()
}

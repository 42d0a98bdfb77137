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
    let rounds = rounds.map(|rounds| rounds.max(1));
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
        let setting = Setting::of(&self.replicas);
        let mut collapsed = setting.collapsed(self.sampler, &self.replicas)?;
        let mut window = Window::new(machine, collect, total - half)?;
        let mut trips = self.replicas.round_trips();
        while self.done < total {
            let stream = self.stream.fork(1).fork(self.done as u64);
            round(self.sampler, &mut self.replicas, &mut collapsed, stream)?;
            self.done += 1;
            if self.done <= half {
                trips = self.replicas.round_trips();
            } else if window.wants(self.done - half) {
                let stream = self.stream.fork(2).fork(self.done as u64);
                let summed = collapsed.as_ref();
                let x = cold_ends(self.sampler, &self.replicas, summed, &self.cold, stream)?;
                window.take(machine, self.done - half, &x)?;
            }
            if self.done.is_multiple_of(16) || self.done == total {
                tell(listener, "tempering", self.done as u64, total as u64)?;
            }
        }
        window.judged(self.replicas.round_trips() - trips)
    }
}

/// How many samples come from the cold ends.
struct Collect {
    n: usize,
    per_row: usize,
    n_rows: usize,
}

/// What is gathered over the second half of the rounds.
struct Window<'c> {
    collect: &'c Collect,
    /// Rounds between two looks.
    spacing: usize,
    watches: Option<Watches>,
    samples: State,
    /// Rounds at which samples are taken, and how many of them are over.
    due: Vec<usize>,
    taken: usize,
}

impl<'c> Window<'c> {
    fn new(machine: &Machine, collect: &'c Collect, rounds: usize) -> Result<Self, Error> {
        let times = collect.n.div_ceil(collect.per_row);
        Ok(Self {
            collect,
            spacing: (rounds / (4 * LOOKS)).max(1),
            watches: None,
            samples: State::zeros(machine, collect.n_rows * collect.n)?,
            due: (1..=times).map(|k| (k * rounds / times).max(1)).collect(),
            taken: 0,
        })
    }

    /// Whether a round of the window is looked at.
    fn wants(&self, round: usize) -> bool {
        round.is_multiple_of(self.spacing) || self.due.get(self.taken).is_some_and(|d| *d <= round)
    }

    /// Looks at the cold ends `x`, and takes samples that are due.
    fn take(&mut self, machine: &Machine, round: usize, x: &State) -> Result<(), Error> {
        let &Collect { n, per_row, n_rows } = self.collect;
        if round.is_multiple_of(self.spacing) {
            let rows = |row: usize| (row * per_row..(row + 1) * per_row).collect();
            let groups: Vec<Vec<usize>> = (0..n_rows).map(rows).collect();
            let watches = match &mut self.watches {
                Some(watches) => watches,
                none => none.insert(Watches::new(machine, x, &groups)?),
            };
            watches.look(machine, x)?;
        }
        while self.due.get(self.taken).is_some_and(|due| *due <= round) {
            for ladder in 0..x.n_rows() {
                let place = self.taken * per_row + ladder % per_row;
                for l in machine.layer_ids().filter(|_| place < n) {
                    self.samples.set_row(l, ladder / per_row * n + place, x.row(l, ladder))?;
                }
            }
            self.taken += 1;
        }
        Ok(())
    }

    /// The samples and their verdict, if replicas came round `trips` times in the window.
    fn judged(self, trips: u64) -> Result<(State, Trust), Error> {
        let Some(watches) = self.watches else { return Ok((self.samples, Trust::unknown())) };
        let Some(worst) = watches.worst()? else { return Ok((self.samples, Trust::unknown())) };
        let Collect { n, per_row, n_rows } = self.collect;
        let mut trust = Trust::of_series(n * n_rows, watches.draws(), &worst, self.spacing);
        if (trips as f64) < LEAST_TRIPS * (per_row * n_rows) as f64 {
            trust.verdict = Verdict::NotMixed;
        }
        Ok((self.samples, trust))
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

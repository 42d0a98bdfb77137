//! Where chains start: the base whose chains bound $\ln Z$ highest.
//!
//! A few chains are led to the machine from each of several bases. The mean of their weights is an unbiased
//! estimate of $Z_1/Z_0$ whatever the base, so its logarithm less a margin of 97.5 % bounds $\ln Z$ from below. The
//! highest of these bounds is the *floor*. Chains from a base may all end in one mode, and agree with each other
//! about a sum that lacks the rest: a base whose chains cannot reach the floor is out, however even its weights are.
//! Of the others the one is taken whose $\langle\ln w\rangle$ is highest: it is below $\ln Z_1/Z_0$ by the divergence of the
//! two directions, and a few chains know it well. An interval that ends below the floor has missed something,
//! whatever else speaks for it. What is missing has to exceed the noise of a few chains: a mode that holds an eighth of
//! the sum can still be missed from means that lie in another one.

use super::ais::anneal;
use super::doubts::{self, Doubt};
use super::search::Search;
use super::weights::Summary;
use super::{Bracket, LogPartition, Method};
use crate::error::Error;
use crate::machine::{Base, Machine};
use crate::sampling::{Collapsed, independent};

/// Bases are tried with a fifth of the temperatures, at least and at most so many.
const SHARE: usize = 5;
const BETAS: (usize, usize) = (8, 200);
/// Chains that try them.
pub(super) const CHAINS: usize = 50;
/// Where that leaves open whether the chains of one find more than those of another: temperatures and chains of two
/// more attempts, in multiples of those of the first.
const AGAIN: [(usize, usize); 2] = [(4, 1), (4, 4)];

/// The highest bound from below that the bases gave.
#[derive(Clone, Copy)]
pub(super) struct Floor {
    /// With a margin of 97.5 %: good enough to choose by.
    lower: f64,
    /// With a margin that chance alone hardly crosses: an interval that ends below it is in doubt.
    sure: f64,
    /// What the chains say is above it.
    upper: f64,
}

/// What chains from one base say about $\ln Z$.
struct Tried {
    base: Base,
    floor: Floor,
    /// The logarithm of the mean weight.
    found: f64,
    /// As far up as the weights reach if the upper half of their logarithms is to be believed.
    reach: f64,
    /// Base and mean log-weight.
    mean: f64,
    /// Whether a few chains decide about it.
    wild: bool,
}

impl Floor {
    /// Below everything.
    pub(super) const NOWHERE: Self =
        Self { lower: f64::NEG_INFINITY, sure: f64::NEG_INFINITY, upper: f64::NEG_INFINITY };

    /// The highest of each.
    fn or_higher(self, other: Self) -> Self {
        Self {
            lower: self.lower.max(other.lower),
            sure: self.sure.max(other.sure),
            upper: if other.sure > self.sure { other.upper } else { self.upper },
        }
    }

    /// An interval that ends below the floor is widened, and not settled.
    pub(super) fn hold(&self, found: &mut LogPartition) {
        if self.sure > found.upper {
            found.doubts.push(Doubt::OtherBase { above: self.sure - found.upper });
            found.bracket = Bracket::Unsettled;
            found.upper = self.upper;
        }
    }
}

/// Tries the base of the search, and three that know nothing of data. Nothing of these chains is used again.
pub(super) fn choose(
    search: &Search,
    method: Method,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<(Base, Floor), Error> {
    let machine = search.machine();
    let mut bases = vec![search.base.clone()];
    for base in [Base::of_biases(machine), Base::of_middle(machine)?, Base::uniform(machine)] {
        if !bases.contains(&base) {
            bases.push(base);
        }
    }
    let (n_betas, n_chains) = search.trial(method);
    let n = (n_betas / SHARE).clamp(BETAS.0, BETAS.1);
    let mut attempt = |k: u64, base: &Base, n: usize, n_chains: usize| -> Result<Tried, Error> {
        let stream = search.stream.fork(4).fork(k);
        let betas: Vec<f64> = (0..n).map(|k| k as f64 / (n - 1) as f64).collect();
        let mut x = independent(machine, base, n_chains, stream.fork(0))?;
        let mut collapsed = Collapsed::new(&search.sampler, base, &search.clamp, &x)?;
        let mut tell = |_| go_on();
        let weights = anneal(&mut collapsed, &mut x, &betas, stream.fork(1), &mut tell)?;
        Ok(Tried::new(machine, base.clone(), &weights))
    };
    let mut all = |first: u64, n: usize, n_chains: usize| -> Result<Vec<Tried>, Error> {
        (first..).zip(&bases).map(|(k, base)| attempt(k, base, n, n_chains)).collect()
    };
    let mut tried = all(0, n, n_chains)?;
    for (first, (longer, more)) in (10..).step_by(10).zip(AGAIN) {
        if is_decided(&tried) {
            break;
        }
        tried = all(first, longer * n, more * n_chains)?;
    }
    let (chosen, floor) = highest(&tried);
    Ok((tried.swap_remove(chosen).base, floor))
}

/// Of the bases whose chains may reach the floor that with the highest mean log-weight, and the floor.
fn highest(tried: &[Tried]) -> (usize, Floor) {
    let floor = tried.iter().fold(Floor::NOWHERE, |floor, tried| floor.or_higher(tried.floor));
    let able = tried.iter().enumerate().filter(|(_, t)| t.reach >= floor.lower);
    let best = able.max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean));
    (best.map_or(0, |(k, _)| k), floor)
}

/// Whether no base seems to find more than the one that would be chosen, and none is so wild that it cannot be known.
fn is_decided(tried: &[Tried]) -> bool {
    let chosen = tried[highest(tried).0].floor.upper;
    let more = |t: &Tried| t.found > chosen || t.wild && t.reach > chosen;
    !tried.iter().any(more)
}

impl Tried {
    fn new(machine: &Machine, base: Base, weights: &[f64]) -> Self {
        let (summary, log_z) = (Summary::of(weights), base.log_partition(machine));
        let found = log_z + summary.log_mean;
        Self {
            base,
            floor: Floor {
                lower: found - summary.margin_below(),
                sure: found - summary.sure_margin_below(),
                upper: found + summary.margin_above(),
            },
            found,
            reach: found + summary.reach_above(),
            mean: log_z + weights.iter().sum::<f64>() / weights.len() as f64,
            wild: doubts::few(summary.effective_samples, weights.len()).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluation::log_partition::Settings;
    use crate::exact;
    use crate::machine::{Coupling, Layer, LayerId, Matrix, Role};
    use crate::progress::Silent;
    use crate::units::Units;

    /// An RBM with strong weights and biases against them.
    fn strong() -> Machine {
        let layer = |name: &str, role, n| {
            let mut layer = Layer::new(name, role, Units::Binary, n).expect("it is small");
            layer.bias.fill(-1.0);
            layer
        };
        let layers = vec![layer("v", Role::Visible, 6), layer("h", Role::Hidden, 4)];
        let weights = Matrix::from_fn(6, 4, |i, j| if (i + j) % 2 == 0 { 2.0 } else { -1.0 });
        let weights = Coupling::between(LayerId(0), LayerId(1), weights.expect("it is small"));
        Machine::new(layers, vec![weights]).expect("an RBM")
    }

    #[test]
    fn an_interval_that_ends_below_what_another_base_bounds_is_unsettled() {
        let machine = strong();
        let settings = Settings { method: Some(Method::Ais), ..Settings::default() };
        let search = Search::new(&machine, &settings, Method::Ais, &mut Silent).expect("ready");
        let (_, floor) = choose(&search, Method::Ais, &mut || Ok(())).expect("a few chains");
        let bound = floor.sure;
        let exact = exact::log_partition(&machine).expect("1024 states");
        assert!(bound <= exact + 1e-9, "a stochastic bound from below: {bound} and {exact}");
        let missed = |upper: f64| LogPartition {
            lower: upper - 1.0,
            log_z: upper - 0.5,
            upper,
            bracket: Bracket::Heuristic,
            ..LogPartition::exactly(exact)
        };
        let mut below = missed(bound - 2.0);
        floor.hold(&mut below);
        assert!(below.is_unsettled() && below.upper >= bound, "{below:?}");
        assert!(matches!(below.doubts[..], [Doubt::OtherBase { above }] if above > 1.9));
        let mut above = missed(bound + 0.1);
        floor.hold(&mut above);
        assert_eq!((above.bracket, above.doubts.len()), (Bracket::Heuristic, 0));
    }
}

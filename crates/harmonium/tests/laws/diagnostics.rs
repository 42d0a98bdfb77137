//! Diagnostics of chains say what is known of them exactly.

use harmonium::engine::Arithmetic;
use harmonium::evaluation::diagnostics::{Mixing, Travel, Watch};
use harmonium::machine::{Base, Coupling, LayerId, Machine, State, Triangle};
use harmonium::machine::{Layer, Role};
use harmonium::models::Rbm;
use harmonium::random::{Site, Stream};
use harmonium::sampling::{Chains, Sampler, Tempering};
use harmonium::units::Units;

/// Chains of $x_{t+1} = \rho x_t + \sqrt{1-\rho^2}\,\epsilon$, stationary from the start.
fn autoregressive(rho: f64, n_chains: usize, n: usize, seed: u64) -> Vec<Vec<f64>> {
    let stream = Stream::new(seed);
    let chain = |c: usize| {
        let mut x = stream.normal(Site::new(c, 0, 1), 0);
        let step = |t| {
            x = rho * x + (1.0 - rho * rho).sqrt() * stream.normal(Site::new(c, 0, 0), t);
            x
        };
        (0..n).map(step).collect()
    };
    (0..n_chains).map(chain).collect()
}

/// Five standard deviations of a sum of `window` autocorrelations, relative to $\tau$
/// (Madras & Sokal 1988).
fn tolerance(found: &Mixing, draws: usize) -> f64 {
    5.0 * (2.0 * (2.0 * found.window as f64 + 1.0) / draws as f64).sqrt()
}

fn assert_time(name: &str, found: &Mixing, draws: usize, expected: f64) {
    let tau = found.autocorrelation_time.unwrap();
    let allowed = tolerance(found, draws);
    assert!(allowed < 0.4, "{name}: the tolerance {allowed} says nothing");
    assert!((tau / expected - 1.0).abs() < allowed, "{name}: {tau}, not {expected} ± {allowed}");
    assert!((found.effective_samples.unwrap() * tau / draws as f64 - 1.0).abs() < 1e-12);
}

#[test]
fn autoregressive_chains_have_their_autocorrelation_time() {
    let (m, n) = (16, 20_000);
    for rho in [-0.3, 0.0, 0.5, 0.9, 0.97] {
        let found = Mixing::of(&autoregressive(rho, m, n, 1)).unwrap();
        assert_time(&format!("rho {rho}"), &found, m * n, (1.0 + rho) / (1.0 - rho));
        let error = found.std_error.unwrap();
        assert!(found.mean.abs() < 5.0 * error, "{} ± {error}", found.mean);
        assert!(found.is_fine(), "{rho}: {found:?}");
    }
}

/// Under independence $\hat R^2$ is $1 - 1/N$ plus $1/N$ times a $\chi^2/f$ of the halves' means.
#[test]
fn independent_chains_have_an_r_hat_of_one() {
    for (m, n) in [(2, 100), (10, 400), (100, 1000)] {
        let found = Mixing::of(&autoregressive(0.0, m, n, 2)).unwrap();
        let (halves, n) = (2.0 * m as f64, n as f64 / 2.0);
        let allowed = 5.0 * (2.0 / (halves - 1.0)).sqrt() / n;
        let r_hat = found.r_hat.unwrap();
        assert!((r_hat * r_hat - 1.0).abs() < allowed, "{m} chains: {r_hat}");
    }
}

/// With many chains $\hat R^2 - 1$ is $\tau/N$: the variance of the mean of a half.
#[test]
fn r_hat_falls_with_the_length_of_the_chains() {
    let (m, rho) = (200, 0.8);
    let tau = (1.0 + rho) / (1.0 - rho);
    for n in [400, 1600] {
        let r_hat = Mixing::of(&autoregressive(rho, m, n, 3)).unwrap().r_hat.unwrap();
        let (halves, n) = (2.0 * m as f64, n as f64 / 2.0);
        let expected = tau / n;
        // Spread of the chi-square, and W itself, which misses tau / N.
        let allowed = expected * (5.0 * (2.0 / (halves - 1.0)).sqrt() + 2.0 * expected);
        let found = r_hat * r_hat - 1.0;
        assert!((found - expected).abs() < allowed + 1.0 / n, "{n}: {found}, not {expected}");
    }
}

#[test]
fn chains_in_different_modes_are_noticed() {
    let mut chains = autoregressive(0.0, 8, 500, 4);
    chains.iter_mut().take(4).flatten().for_each(|x| *x += 6.0);
    let found = Mixing::of(&chains).unwrap();
    assert!(found.r_hat.unwrap() > 1.5 && !found.is_fine(), "{found:?}");
    // Eight chains that never move are not worth more than their number.
    assert!(found.effective_samples.unwrap() < 16.0, "{found:?}");
    let still: Vec<Vec<f64>> = (0..4).map(|c| vec![0.1 + f64::from(c); 50]).collect();
    let found = Mixing::of(&still).unwrap();
    assert_eq!(found.r_hat, Some(f64::INFINITY));
    let constant = Mixing::of(&vec![vec![0.1; 50]; 4]).unwrap();
    assert_eq!((constant.r_hat, constant.effective_samples), (None, None));
}

#[test]
fn series_that_say_nothing_are_refused() {
    assert!(Mixing::of(&[]).is_err());
    assert!(Mixing::of(&[vec![0.0; 7]]).is_err());
    assert!(Mixing::of(&[vec![0.0; 9], vec![0.0; 8]]).is_err());
    assert!(Mixing::of(&[vec![f64::NAN; 9]]).is_err());
}

/// One visible and one hidden bit: the visible one is a Markov chain of two states, whose second
/// eigenvalue $\lambda = P(1 \to 1) - P(0 \to 1)$ gives $\tau = (1+\lambda)/(1-\lambda)$.
#[test]
fn a_machine_of_two_states_has_the_time_of_its_transition_matrix() {
    let (bias, weight) = ([-1.5, -1.0], 3.0);
    let mut rbm = Rbm::binary(1, 1).unwrap().into_machine();
    let mut layers = rbm.layers().to_vec();
    layers.iter_mut().zip(bias).for_each(|(l, b)| l.bias = vec![b]);
    let weights = harmonium::machine::Matrix::from_rows(1, 1, vec![weight]).unwrap();
    rbm = Machine::new(layers, vec![Coupling::between(LayerId(0), LayerId(1), weights)]).unwrap();
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    let up = |from: f64| {
        let h = logistic(bias[1] + weight * from);
        h * logistic(bias[0] + weight) + (1.0 - h) * logistic(bias[0])
    };
    let lambda = up(1.0) - up(0.0);
    let (m, n) = (16, 10_000);
    let mut chains = Chains::new(&rbm, m, Stream::new(5)).unwrap();
    let sampler = Sampler::new(rbm.clone(), Arithmetic::F64);
    chains.advance(&sampler, 100, Stream::new(6)).unwrap();
    let mut watch = Watch::new(&rbm, chains.state()).unwrap();
    for sweep in 0..n {
        chains.advance(&sampler, 1, Stream::new(7).fork(sweep)).unwrap();
        watch.look(&rbm, chains.state()).unwrap();
    }
    let draws = m * n as usize;
    let found = Mixing::of(&watch.series()[1].chains).unwrap();
    assert_time("visible", &found, draws, (1.0 + lambda) / (1.0 - lambda));
    let p = up(0.0) / (1.0 - lambda);
    assert!((found.mean - p).abs() < 5.0 * found.std_error.unwrap(), "{} not {p}", found.mean);
    // The direction is the visible unit itself, up to its sign.
    let along = Mixing::of(&watch.series()[3].chains).unwrap();
    let times = [found.autocorrelation_time.unwrap(), along.autocorrelation_time.unwrap()];
    assert!((times[0] / times[1] - 1.0).abs() < 1e-9, "{times:?}");
}

/// Below its critical temperature a Curie-Weiss magnet points up or down and does not turn. The
/// energy cannot tell; the direction in which chains differ can, and tempering gets through.
#[test]
fn a_magnet_that_does_not_turn_is_noticed() {
    let n = 40;
    let layer = Layer::new("spins", Role::Visible, Units::Spin, n).unwrap();
    let triangle = Triangle::from_fn(n, |_, _| 1.6 / n as f64).unwrap();
    let magnet = Machine::new(vec![layer], vec![Coupling::lateral(LayerId(0), triangle)]).unwrap();
    let sampler = Sampler::new(magnet.clone(), Arithmetic::F64);
    let mut x = State::zeros(&magnet, 20).unwrap();
    for row in 0..20 {
        x.set_row(LayerId(0), row, &vec![if row < 10 { 1.0 } else { -1.0 }; n]).unwrap();
    }
    let mut chains = Chains::from_state(x);
    chains.advance(&sampler, 10, Stream::new(8)).unwrap();
    let mut watch = Watch::new(&magnet, chains.state()).unwrap();
    for sweep in 0..300 {
        chains.advance(&sampler, 1, Stream::new(9).fork(sweep)).unwrap();
        watch.look(&magnet, chains.state()).unwrap();
    }
    let r_hat = |k: usize| Mixing::of(&watch.series()[k].chains).unwrap().r_hat.unwrap();
    assert_eq!(watch.series()[2].name, "direction 1");
    assert!(r_hat(0) < 1.05 && r_hat(2) > 1.5, "energy {}, direction {}", r_hat(0), r_hat(2));
    let base = Base::uniform(&magnet);
    let betas = Tempering::even_ladder(6);
    let mut ladders = Tempering::new(&magnet, 4, &betas, base, Stream::new(10)).unwrap();
    assert_eq!(Travel::of(&ladders).rounds_per_trip, None);
    ladders.advance(&sampler, 2000, Stream::new(11)).unwrap();
    let travel = Travel::of(&ladders);
    let rounds = travel.rounds_per_trip.unwrap();
    assert!((12.0..400.0).contains(&rounds), "{travel:?}");
    assert!(travel.narrowest().unwrap().1 > 0.1, "{travel:?}");
}

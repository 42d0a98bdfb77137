//! When an interval of $\ln Z$ is called unsettled: every sign on a real run where it must show and on one where it
//! must not, and the truth inside of both.

use harmonium::evaluation::log_partition::{
    Doubt, LogPartition, Method, Settings, Starts, log_partition,
};
use harmonium::exact;
use harmonium::machine::{Coupling, Edges, Layer, LayerId, Machine, Role, Triangle};
use harmonium::progress::Silent;
use harmonium::random::{Site, Stream};
use harmonium::units::Units;

/// Spins on an open grid, couplings uniform between -`most` and `most`.
fn grid(side: usize, most: f64) -> Machine {
    let n = side * side;
    let spins = Layer::new("spins", Role::Visible, Units::Spin, n).unwrap();
    let right = (0..n).filter(|i| i % side + 1 < side).map(|i| (i, i + 1));
    let below = (0..n - side).map(|i| (i, i + side));
    let even = |i: usize| 2.0 * Stream::new(1).uniform(Site::new(0, 0, 0), i) - 1.0;
    let edges = right.chain(below).enumerate().map(|(k, (i, j))| (i, j, most * even(k)));
    let edges = Edges::new(n, edges).unwrap();
    Machine::new(vec![spins], vec![Coupling::sparse(LayerId(0), edges)]).unwrap()
}

/// Twenty spins that all see each other: one mode up, one down.
fn two_modes(field: f64) -> Machine {
    let mut spins = Layer::new("spins", Role::Visible, Units::Spin, 20).unwrap();
    spins.bias.fill(field);
    let weights = Triangle::from_fn(20, |_, _| 0.2).unwrap();
    Machine::new(vec![spins], vec![Coupling::lateral(LayerId(0), weights)]).unwrap()
}

fn work(method: Method, betas: usize, chains: usize, sweeps: usize) -> Settings {
    Settings {
        method: Some(method),
        betas: Some(betas),
        chains: Some(chains),
        sweeps: Some(sweeps),
        starts: Some(Starts::Tempered),
        ..Settings::default()
    }
}

/// An interval, which holds the truth whatever it is called.
fn found(machine: &Machine, settings: &Settings) -> LogPartition {
    let exact = exact::log_partition(machine).unwrap();
    let found = log_partition(machine, settings, &mut Silent).unwrap();
    assert!(found.lower <= exact && exact <= found.upper, "{exact}: {found:?}");
    assert_eq!(found.is_unsettled(), !found.doubts.is_empty(), "{found:?}");
    found
}

fn has(found: &LogPartition, which: fn(&Doubt) -> bool) -> bool {
    found.doubts.iter().any(which)
}

#[test]
fn weights_of_which_a_few_decide_are_doubted() {
    let machine = grid(8, 2.0);
    let few = |d: &Doubt| matches!(d, Doubt::FewEffective { .. });
    let wild = found(&machine, &work(Method::Ais, 4, 100, 0));
    assert!(has(&wild, few) && wild.effective_samples < Some(10.0), "{wild:?}");
    let even = found(&machine, &work(Method::Ais, 1000, 100, 0));
    assert!(!even.is_unsettled() && even.width() < 0.5, "{even:?}");
}

#[test]
fn sides_that_contradict_each_other_are_doubted() {
    let apart = |d: &Doubt| matches!(d, Doubt::SidesApart { .. });
    // Ladders that lag behind give starts from which chains go back to too little.
    let lagging = found(&grid(8, 9.0), &work(Method::Sandwich, 200, 100, 20_000));
    assert!(has(&lagging, apart), "{lagging:?}");
    // Forward chains alone tell the same of ladders without backward chains.
    let lagging = found(&grid(8, 9.0), &work(Method::Bar, 10, 10, 4000));
    assert!(has(&lagging, apart), "{lagging:?}");
    let agreeing = found(&grid(8, 2.0), &work(Method::Sandwich, 1000, 100, 200_000));
    assert!(!agreeing.is_unsettled(), "{agreeing:?}");
}

#[test]
fn ladders_that_differ_are_doubted() {
    let apart = |d: &Doubt| matches!(d, Doubt::LaddersApart { .. });
    let stuck = found(&grid(8, 9.0), &work(Method::Bar, 20, 10, 20_000));
    assert!(has(&stuck, apart), "{stuck:?}");
    let alike = found(&grid(8, 2.0), &work(Method::Bar, 12, 10, 400_000));
    assert!(!alike.is_unsettled() && alike.width() < 0.5, "{alike:?}");
}

#[test]
fn halves_that_drift_are_doubted() {
    let apart = |d: &Doubt| matches!(d, Doubt::HalvesApart { .. });
    let moving = found(&grid(12, 5.0), &work(Method::Sandwich, 200, 100, 20_000));
    assert!(has(&moving, apart), "{moving:?}");
    let still = found(&grid(8, 2.0), &work(Method::Bar, 12, 10, 400_000));
    assert!(!has(&still, apart), "{still:?}");
}

#[test]
fn replicas_that_hardly_travelled_are_doubted() {
    let stuck = |d: &Doubt| matches!(d, Doubt::NotTravelled { .. });
    let machine = grid(8, 2.0);
    let short = found(&machine, &work(Method::Bar, 12, 10, 20_000));
    assert!(has(&short, stuck) && short.round_trips < Some(250), "{short:?}");
    let long = found(&machine, &work(Method::Bar, 12, 10, 400_000));
    assert!(!has(&long, stuck) && long.round_trips >= Some(250), "{long:?}");
    // A sandwich whose weights are even does not lean on its ladders.
    let even = found(&machine, &work(Method::Sandwich, 200, 100, 20_000));
    assert!(!even.is_unsettled() && even.round_trips < Some(250), "{even:?}");
}

/// Chains from one mode never see the other and agree with each other; those from other bases tell, if the mode
/// that is missing holds more than their noise: here a half and, with the field, three tenths of the sum.
#[test]
fn means_that_lie_in_one_mode_do_not_hide_the_other() {
    for field in [0.0, 0.02] {
        let machine = two_modes(field);
        for method in [Method::Ais, Method::Sandwich, Method::Bar] {
            let (betas, chains) = if method == Method::Bar { (10, 10) } else { (100, 100) };
            for mean in [-0.99, 0.0, 0.99] {
                let means = Some(vec![mean; 20]);
                found(&machine, &Settings { means, ..work(method, betas, chains, 40_000) });
            }
        }
    }
}

//! Trajectory tempering: jumps leave the machine's samples where they are, the ladder knows
//! ln Z however long it is, and what goes too far is undone.

use crate::machines::{all, discrete, every_state, extent, key, named, some_states};
use crate::statistics::assert_distributed;
use harmonium::engine::Arithmetic;
use harmonium::estimators::{Context, Estimator, Snapshot, TrajectorySettings, TrajectoryTempered};
use harmonium::machine::{Base, Batch, LayerId, Machine, State};
use harmonium::models::{Bm, Dbm, Lateral, Rbm};
use harmonium::optim::Schedule;
use harmonium::random::Stream;
use harmonium::sampling::{Sampler, TrackedLogPartition};
use harmonium::training::{
    Checkpoint, Learner, Numbers, Observer, Plan, Posterior, Rule, Trainer, View, initialise,
};
use harmonium::units::Units;
use harmonium::{Error, exact};
use harmonium_data::{Binarize, Dataset, Table, synthetic};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Samples as a snapshot holds them: 48 bits to a number.
fn stored(machine: &Machine, l: LayerId, values: &[f64]) -> Vec<f64> {
    let units = machine.layer(l).units;
    let Some(bits) = units.bit_coordinates() else { return values.to_vec() };
    let on = bits.scale + bits.shift;
    let word = |some: &[f64]| {
        let set = some.iter().enumerate().filter(|(_, x)| **x == on);
        set.map(|(i, _)| (1_u64 << i) as f64).sum::<f64>()
    };
    values.chunks(48).map(word).collect()
}

/// Chains that follow `machine` and are proposed samples of `frozen`, all of it at exact samples.
fn at_exact_samples(
    machine: &Machine,
    frozen: &Machine,
    (n, blocks): (usize, usize),
    stream: Stream,
) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut probe = TrajectoryTempered::new(TrajectorySettings::of(2), Arithmetic::F64).unwrap();
    let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
    let batch = nothing(machine);
    let context = Context { sampler: &sampler, batch: &batch, k: 1, stream: Stream::new(0) };
    probe.estimate(&context).unwrap();
    let begun = probe.export(machine);
    snapshot.0.extend(begun.0.into_iter().filter(|(key, _)| key.starts_with("base.")));
    snapshot.insert("acceptance", vec![1.0]);
    snapshot.insert("ladder", vec![1.0, 0.0, 0.0, 1.0]);
    snapshot.insert("log_partition", vec![exact::log_partition(frozen).unwrap()]);
    snapshot.insert("log_partition.groups", vec![exact::log_partition(frozen).unwrap(); 5]);
    let x = exact::samples(machine, n, stream.fork(0)).unwrap();
    for l in machine.layer_ids() {
        snapshot.insert(format!("chains.{}", machine.layer(l).name), x.layer(l).to_vec());
    }
    for layer in frozen.layers() {
        let values = [("bias", &layer.bias), ("offset", &layer.offset), ("own", &layer.own)];
        for (what, values) in values {
            snapshot.insert(format!("frozen.{}.{what}", layer.name), values.clone());
        }
    }
    for (c, coupling) in frozen.couplings().iter().enumerate() {
        snapshot.insert(format!("frozen.weights.{c}"), coupling.weights.entries().to_vec());
    }
    snapshot.insert("frozen.constant", vec![frozen.constant()]);
    for b in 0..blocks {
        let x = exact::samples(frozen, n, stream.fork(1).fork(b as u64)).unwrap();
        for l in machine.layer_ids() {
            let name = format!("samples.{b}.{}", machine.layer(l).name);
            snapshot.insert(name, stored(machine, l, x.layer(l)));
        }
    }
    snapshot
}

/// A batch for estimators that do not look at it.
fn nothing(machine: &Machine) -> Batch {
    let x = some_states(machine, 1, 0);
    let visible = machine.visible_layers().into_iter();
    let row: Vec<f64> = visible.flat_map(|l| x.row(l, 0).to_vec()).collect();
    Batch::from_rows(machine, row.len(), &row).unwrap()
}

fn n_visible(machine: &Machine) -> usize {
    machine.visible_layers().iter().map(|&l| machine.layer(l).len()).sum()
}

/// How often each state of a machine occurs.
fn counts(machine: &Machine, states: &State, x: &State) -> Vec<f64> {
    let places: BTreeMap<Vec<u64>, usize> =
        (0..states.n_rows()).map(|s| (key(machine, states, s), s)).collect();
    let mut counts = vec![0.0; states.n_rows()];
    for row in 0..x.n_rows() {
        counts[places[&key(machine, x, row)]] += 1.0;
    }
    counts
}

/// Chains that start at exact samples and are proposed exact samples of another machine, with offsets of its own, stay
/// there: neither jumps nor sweeps move them.
#[test]
fn jumps_leave_the_distribution_where_it_is() {
    // No sample is proposed twice: those that jump to the same one would not be independent.
    let (n, blocks) = (extent(4_000, 20_000), 3);
    for (m, (name, machine)) in discrete().into_iter().enumerate() {
        let mut frozen = machine.temper(&Base::of_biases(&machine), 0.75).unwrap();
        // The same energies in other coordinates.
        let offsets: Vec<Vec<f64>> =
            machine.layers().iter().map(|l| l.offset.iter().map(|o| o + 0.3).collect()).collect();
        frozen.recenter(&offsets).unwrap();
        // Whatever is accepted, nothing is frozen and nothing undone.
        let settings = TrajectorySettings {
            chains: n,
            reservoir: blocks * n,
            freeze_below: 1e-9,
            retreat_below: 0.0,
        };
        let arithmetic = [Arithmetic::F64, Arithmetic::F32, Arithmetic::I16][m % 3];
        let mut ladder = TrajectoryTempered::new(settings, arithmetic).unwrap();
        let begun = at_exact_samples(&machine, &frozen, (n, blocks), Stream::new(m as u64));
        ladder.import(&machine, &begun).unwrap();
        let sampler = Sampler::new(machine.clone(), arithmetic);
        let batch = nothing(&machine);
        for step in 0..blocks as u64 {
            let stream = Stream::new(7).fork(step);
            let context = Context { sampler: &sampler, batch: &batch, k: 1, stream };
            ladder.estimate(&context).unwrap();
            assert!(ladder.acceptance() > 0.2, "{name}: {}", ladder.acceptance());
        }
        assert_eq!(ladder.rungs(), 1, "{name}");
        let states = every_state(&machine);
        let p = exact::probabilities(&machine, &states).unwrap();
        assert_distributed(&name, &counts(&machine, &states, ladder.chains().unwrap()), &p);
        let first = &machine.layer(LayerId(0)).name;
        let (chains, samples) = (format!("chains.{first}"), format!("samples.0.{first}"));
        let ended = ladder.export(&machine);
        assert_ne!(begun.0[&chains], ended.0[&chains], "{name}: it moved");
        assert_eq!(begun.0[&samples], ended.0[&samples], "{name}: samples are copied");
    }
}

/// Against the acceptance that enumeration gives.
#[test]
fn jumps_are_accepted_as_often_as_enumeration_says() {
    for (name, machine) in discrete() {
        let base = Base::of_biases(&machine);
        let low = machine.temper(&base, 0.5).unwrap();
        let n = extent(3_000, 10_000);
        let settings =
            TrajectorySettings { chains: n, reservoir: n, freeze_below: 1e-9, retreat_below: 0.0 };
        let mut ladder = TrajectoryTempered::new(settings, Arithmetic::F64).unwrap();
        let begun = at_exact_samples(&machine, &low, (n, 1), Stream::new(3));
        ladder.import(&machine, &begun).unwrap();
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        let batch = nothing(&machine);
        let context = Context { sampler: &sampler, batch: &batch, k: 1, stream: Stream::new(4) };
        ladder.estimate(&context).unwrap();
        // What is left when the layers of the first block are summed out.
        let first = machine.schedule().remove(0);
        let summed: Vec<LayerId> = first.into_iter().filter(|&l| !machine.has_lateral(l)).collect();
        let states = every_state(&machine);
        let minus = |m: &Machine| -> Vec<f64> {
            let log_z = exact::log_partition(m).unwrap();
            let free = m.free_energy_over(&summed, &states).unwrap();
            free.iter().map(|f| -f - log_z).collect()
        };
        let (above, below) = (minus(&machine), minus(&low));
        let p = exact::probabilities(&machine, &states).unwrap();
        let q = exact::probabilities(&low, &states).unwrap();
        let mut expected = 0.0;
        for i in 0..p.len() {
            for j in 0..q.len() {
                let ratio = above[j] - below[j] - above[i] + below[i];
                expected += p[i] * q[j] * ratio.min(0.0).exp();
            }
        }
        // Of n independent pairs, each between 0 and 1; all n² pairs know more.
        let tolerance = 4.0 * (expected * (1.0 - expected) / n as f64).sqrt() + 1e-9;
        let found = ladder.acceptance();
        assert!((found - expected).abs() < tolerance, "{name}: {found} against {expected}");
    }
}

/// What an observer saw of ln Z.
struct Tracks(Vec<(TrackedLogPartition, f64)>);

impl Observer for Tracks {
    fn epoch_ended(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        let watched = view.watched().unwrap();
        let found = watched.model_side.log_partition(watched.sampler)?.unwrap();
        self.0.push((found, exact::log_partition(watched.sampler.machine())?));
        Ok(ControlFlow::Continue(()))
    }
}

/// Rows of the visible layers as a data set.
fn rows(machine: &Machine, x: &State) -> Dataset {
    let mut values = Vec::new();
    for row in 0..x.n_rows() {
        for l in machine.visible_layers() {
            values.extend(x.row(l, row).iter().map(|v| *v as f32));
        }
    }
    Dataset::new(Table::from_real(values, n_visible(machine)).unwrap(), Binarize::None).unwrap()
}

/// ln Z along the ladder of a whole training, on every machine, from a start that one exchange
/// reaches and from one that takes machines in between.
#[test]
fn the_ladder_knows_the_partition_function() {
    let mut off = Vec::new();
    for (m, (name, machine)) in all().into_iter().enumerate() {
        let data = rows(&machine, &some_states(&machine, 12, 61));
        let gaussian = machine.layers().iter().any(|l| !l.units.is_finite());
        let plan = Plan {
            rule: Rule::Ptt,
            precision: [Numbers::F64, Numbers::Auto][m % 2],
            epochs: extent(40, 150),
            batch: 12,
            chains: 60,
            k: Schedule::Constant(2.0),
            reservoir: Some(240),
            learning_rate: if gaussian { 0.01 } else { 0.1 },
            decay: Schedule::Constant(1.0),
            initial_std: if m % 3 == 0 { 0.8 } else { 0.05 },
            l2: 0.0,
            posterior: Posterior::Exact,
            ..Plan::suited_to(&machine)
        };
        let mut fresh = machine.clone();
        initialise(&mut fresh, &data, &plan).unwrap();
        let mut trainer = Trainer::new(fresh, &data, &plan).unwrap();
        let mut tracks = Tracks(Vec::new());
        trainer.run(&mut [&mut tracks]).unwrap();
        let (found, exact) = *tracks.0.last().unwrap();
        assert!(found.std_error < 0.5, "{name}: ±{}", found.std_error);
        assert!(found.rungs >= 1, "{name}");
        off.push(((found.log_z - exact) / found.std_error.max(1e-9), name));
    }
    // Each within its error bars, and all of them together neither too often nor too far outside.
    for (z, name) in &off {
        assert!(z.abs() < 4.5, "{name}: {z} standard errors away");
    }
    let (n, squares) = (off.len() as f64, off.iter().map(|(z, _)| z * z).sum::<f64>());
    assert!(squares / n < 1.0 + 4.0 * (2.0 / n).sqrt(), "mean square {} of {n}", squares / n);
}

/// Ladders of many machines, on data with modes that sweeps alone do not leave: every one of them passes its error on to the
/// next, and the bar has to know of all of it.
#[test]
fn long_ladders_know_the_partition_function() {
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).unwrap();
    let data = Dataset::new(table, Binarize::None).unwrap();
    let (visible, b) = ((Units::Binary, 9), Units::Binary);
    let machines = [
        ("rbm", Rbm::binary(9, 10).unwrap().into_machine()),
        ("dbm", Dbm::binary(9, &[6, 4]).unwrap().into_machine()),
        ("bm", Bm::new(visible, (b, 5), Lateral::Both).unwrap().into_machine()),
        ("visible only", Bm::new(visible, (b, 0), Lateral::Visible).unwrap().into_machine()),
    ];
    let (mut squares, mut n) = (0.0, 0.0);
    for (name, machine) in machines {
        for seed in 0..extent(3, 8) {
            let plan = Plan {
                rule: Rule::Ptt,
                epochs: extent(600, 3000),
                batch: 16,
                learning_rate: 0.5,
                l2: 0.0,
                seed,
                ..Plan::default()
            };
            let mut fresh = machine.clone();
            initialise(&mut fresh, &data, &plan).unwrap();
            let mut trainer = Trainer::new(fresh, &data, &plan).unwrap();
            trainer.run(&mut []).unwrap();
            let watched = trainer.watched().unwrap();
            let found = watched.model_side.log_partition(watched.sampler).unwrap().unwrap();
            let truth = exact::log_partition(watched.sampler.machine()).unwrap();
            let off = (found.log_z - truth) / found.std_error;
            println!("{name} {seed}: {found:?} {truth} {off}");
            assert!(found.is_settled, "{name}: {found:?}");
            assert!(found.std_error < 1.0 && off.abs() < 4.5, "{name}: {found:?}, {truth}");
            (squares, n) = (squares + off * off, n + 1.0);
        }
    }
    assert!(squares / n < 1.0 + 4.0 * (2.0_f64 / n).sqrt(), "mean square {}", squares / n);
}

/// Steps that are too large are undone, and the same ones whenever the run is repeated.
#[test]
fn what_goes_too_far_is_undone() {
    let data = Dataset::new(
        synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).unwrap(),
        Binarize::None,
    )
    .unwrap();
    for precision in [Numbers::F64, Numbers::F32, Numbers::I16] {
        let plan = Plan {
            rule: Rule::Ptt,
            precision,
            epochs: 60,
            batch: 16,
            chains: 50,
            learning_rate: 30.0,
            decay: Schedule::Constant(1.0),
            ..Plan::default()
        };
        let run = || {
            let mut machine = Rbm::binary(9, 6).unwrap().into_machine();
            initialise(&mut machine, &data, &plan).unwrap();
            let mut trainer = Trainer::new(machine, &data, &plan).unwrap();
            let mut undone = Undone::default();
            trainer.run(&mut [&mut undone]).unwrap();
            (trainer.checkpoint(), undone)
        };
        let (first, undone) = run();
        assert!(undone.steps.len() > 2, "{precision:?}: {:?}", undone.steps);
        for &(step, factor, acceptance) in &undone.steps {
            assert!(factor <= 0.5 && factor.log2().fract() == 0.0, "{precision:?}: {factor}");
            // Below 0.1, or below 0.3 where the chains did not settle.
            assert!(acceptance < 0.3, "{precision:?}: {acceptance}");
            let later = undone.rates.iter().find(|(s, _)| *s == step + 1);
            assert!(later.is_none_or(|(_, rate)| *rate == 30.0 * factor), "{precision:?}");
        }
        // One after the other is undone at half the rate of the one before, until one is small enough.
        for pair in undone.steps.windows(2).filter(|pair| pair[1].0 == pair[0].0 + 1) {
            assert_eq!(pair[1].1, 0.5 * pair[0].1, "{precision:?}");
        }
        assert!(undone.steps.len() < 30, "{precision:?}: {:?}", undone.steps);
        assert!(run().0 == first, "{precision:?}");
        // Stopped where it was undone, before and after, it goes on alike.
        for checkpoint in &undone.checkpoints {
            let mut resumed = Trainer::resume(checkpoint, &data, &plan).unwrap();
            resumed.run(&mut []).unwrap();
            assert!(resumed.checkpoint() == first, "{precision:?}");
        }
    }
}

/// Steps that were undone, and checkpoints around them.
#[derive(Default)]
struct Undone {
    steps: Vec<(u64, f64, f64)>,
    rates: Vec<(u64, f64)>,
    checkpoints: Vec<Checkpoint>,
}

impl Observer for Undone {
    fn updated(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        let report = view.report;
        self.rates.push((report.step, report.learning_rate));
        if let Some(rollback) = report.rollback {
            self.steps.push((report.step, rollback.rate_factor, rollback.acceptance));
        }
        if report.rollback.is_some() || report.step < 4 {
            self.checkpoints.push(view.checkpoint());
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The machine that a step is undone to is one that was frozen: its parameters, to the last bit.
#[test]
fn it_goes_back_to_a_frozen_machine() {
    let machine = named("rbm of binary");
    let data = rows(&machine, &some_states(&machine, 8, 62));
    let plan = Plan {
        rule: Rule::Ptt,
        precision: Numbers::F64,
        batch: 8,
        epochs: 30,
        chains: 20,
        learning_rate: 100.0,
        freeze_below: Some(0.9),
        rollback_below: Some(0.8),
        ..Plan::default()
    };
    let mut trainer = Trainer::new(machine.clone(), &data, &plan).unwrap();
    let mut undone = 0;
    for _ in 0..20 {
        let report = trainer.step().unwrap();
        if report.rollback.is_none() {
            continue;
        }
        undone += 1;
        let state = trainer.checkpoint().state;
        for (i, c) in trainer.machine().couplings().iter().enumerate() {
            let key = format!("negative.frozen.weights.{i}");
            assert_eq!(state.0[&key], c.weights.entries(), "step {}", report.step);
        }
    }
    assert!(undone > 0);
}

//! Learning: gradients, weights of samples, centering, and what training reaches.

use crate::machines::{
    all, assert_close, assert_gradient, discrete, every_state, extent, some_states,
};
use crate::statistics::assert_mean;
use harmonium::engine::Arithmetic;
use harmonium::estimators::{
    ClampedGibbs, Context, Contrastive, Estimator, ExactModel, ExactPosterior, MeanFieldPosterior,
    Persistent, PseudoLikelihood, Side, Tempered, TrajectorySettings, TrajectoryTempered,
};
use harmonium::evaluation::pseudo::{Visit, log_pseudo_likelihood};
use harmonium::evaluation::{baseline, likelihood};
use harmonium::exact;
use harmonium::machine::{Batch, LayerId, Machine, Role, State};
use harmonium::models::{Bm, Dbm, Lateral, Rbm, ising_torus};
use harmonium::moments::Moments;
use harmonium::optim::Schedule;
use harmonium::random::Stream;
use harmonium::sampling::{Clamp, MeanField, Sampler};
use harmonium::schema::Feed;
use harmonium::training::{
    EarlyStop, Every, History, OptimizerKind, Plan, Posterior, Rule, Stop, Trainer, initialise,
    train,
};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Table, synthetic};
use std::ops::ControlFlow;

/// Rows of the visible layers as a data set.
fn rows(machine: &Machine, x: &State) -> Dataset {
    let mut values = Vec::new();
    for row in 0..x.n_rows() {
        for l in machine.visible_layers() {
            values.extend(x.row(l, row).iter().map(|v| *v as f32));
        }
    }
    let n: usize = machine.visible_layers().iter().map(|&l| machine.layer(l).len()).sum();
    Dataset::new(Table::from_real(values, n).unwrap(), Binarize::None).unwrap()
}

fn batch_of(machine: &Machine, x: &State) -> Batch {
    let values: Vec<f64> = (0..x.n_rows())
        .flat_map(|r| machine.visible_layers().into_iter().flat_map(move |l| x.row(l, r).to_vec()))
        .collect();
    let n = machine.visible_layers().iter().map(|&l| machine.layer(l).len()).sum();
    Batch::from_rows(machine, n, &values).unwrap()
}

fn moments_of(
    estimator: &mut dyn Estimator,
    machine: &Machine,
    batch: &Batch,
    k: usize,
    stream: Stream,
) -> Moments {
    let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
    let context = Context { sampler: &sampler, batch, k, stream };
    let mut moments = Moments::zeros(machine);
    estimator.estimate(&context).unwrap().add_to(machine, 1.0, &mut moments);
    moments
}

fn trajectory(chains: usize) -> TrajectoryTempered {
    TrajectoryTempered::new(TrajectorySettings::of(chains), Arithmetic::F64).unwrap()
}

#[test]
fn exact_estimators_yield_the_slope_of_the_likelihood() {
    for (name, machine) in all() {
        let x = some_states(&machine, 3, 51);
        let batch = batch_of(&machine, &x);
        let stream = Stream::new(0);
        let data = moments_of(&mut ExactPosterior::default(), &machine, &batch, 1, stream);
        let model = moments_of(&mut ExactModel, &machine, &batch, 1, stream);
        let clamp = Clamp::visible(&machine);
        assert_gradient(&name, &machine, &data.minus(&model), |m| {
            exact::log_probabilities(m, &clamp, &x).unwrap().iter().sum::<f64>() / 3.0
        });
    }
}

/// Fully visible machines have a pseudo-likelihood whose slope needs neither chains nor sums.
#[test]
fn pseudo_likelihood_estimators_yield_the_slope_of_the_pseudo_likelihood() {
    let mut tried = 0;
    for (name, machine) in all() {
        let Ok(mut estimator) = PseudoLikelihood::new(&machine) else { continue };
        tried += 1;
        let batch = batch_of(&machine, &some_states(&machine, 3, 57));
        let stream = Stream::new(0);
        let data = moments_of(&mut ExactPosterior::default(), &machine, &batch, 1, stream);
        let model = moments_of(&mut estimator, &machine, &batch, 1, stream);
        assert_gradient(&name, &machine, &data.minus(&model), |m| {
            log_pseudo_likelihood(m, &batch, Visit::All).unwrap().iter().sum::<f64>() / 3.0
        });
    }
    assert!(tried >= 3, "{tried} fully visible machines");
}

/// Learned from all states of a machine, each with its probability, it finds that machine.
#[test]
fn pseudo_likelihood_finds_the_machine_behind_the_data() {
    let truth = ising_torus(3, 0.3).unwrap().into_machine();
    let all = every_state(&truth);
    let p = exact::probabilities(&truth, &all).unwrap();
    let data = rows(&truth, &all).with_weights(p).unwrap();
    let plan = Plan {
        rule: Rule::Pseudo,
        batch: 512,
        epochs: 300,
        learning_rate: 0.2,
        decay: Schedule::Constant(1.0),
        momentum: Schedule::Constant(0.5),
        l2: 0.0,
        initial_std: 0.0,
        ..Plan::default()
    };
    let outcome = train(truth.clone(), &data, &plan, &mut []).unwrap();
    let pairs = truth.couplings()[0].weights.entries().iter();
    for (a, b) in pairs.zip(outcome.machine.couplings()[0].weights.entries()) {
        assert_close(*a, *b, 1e-4, "a bond");
    }
    let refused = Trainer::new(Rbm::binary(9, 2).unwrap().into_machine(), &data, &plan);
    assert!(refused.is_err(), "hidden units have no such slope");
}

/// The others agree with the exact moments within their noise, over many independent steps.
#[test]
fn sampling_estimators_agree_with_exact_ones() {
    let steps = extent(150, 400);
    for (name, machine) in discrete() {
        let x = some_states(&machine, 6, 52);
        let batch = batch_of(&machine, &x);
        let posterior =
            moments_of(&mut ExactPosterior::default(), &machine, &batch, 1, Stream::new(0));
        let model = moments_of(&mut ExactModel, &machine, &batch, 1, Stream::new(0));
        let repeat = |e: &mut dyn Estimator, s: u64| {
            moments_of(e, &machine, &batch, 12, Stream::new(s)).slices().concat()
        };
        // Independent repetitions: the first steps of a tempered ladder are left out.
        let of_one = |mut estimator: Box<dyn Estimator>| -> Vec<Vec<f64>> {
            (0..10).for_each(|s| drop(repeat(estimator.as_mut(), 10_000 + s)));
            (0..steps).map(|s| repeat(estimator.as_mut(), s)).collect()
        };
        // The frozen samples of a trajectory are proposed again and again, and no more is known of a machine that stands
        // still than they know: every repetition has a trajectory of its own.
        let of_many = || -> Vec<Vec<f64>> {
            (0..steps / 3).map(|s| repeat(&mut trajectory(40), s)).collect()
        };
        let sides: Vec<(&str, Vec<Vec<f64>>, &Moments)> = vec![
            ("gibbs", of_one(Box::new(ClampedGibbs::new(40))), &posterior),
            ("pt", of_one(Box::new(Tempered::new(8, 4).unwrap())), &model),
            ("ptt", of_many(), &model),
        ];
        for (which, draws, exact) in sides {
            for (i, expected) in exact.slices().concat().into_iter().enumerate() {
                let values: Vec<f64> = draws.iter().map(|d| d[i]).collect();
                assert_mean(&format!("{name}, {which}, moment {i}"), &values, expected);
            }
        }
    }
}

/// Contrastive divergence with many sweeps forgets the data; with none it is the data.
#[test]
fn contrastive_divergence_goes_from_the_data_to_the_model() {
    for (name, machine) in discrete() {
        let x = some_states(&machine, 64, 53);
        let batch = batch_of(&machine, &x);
        let exact = |e: &mut dyn Estimator| moments_of(e, &machine, &batch, 1, Stream::new(0));
        let (data, model) = (exact(&mut ExactPosterior::default()), exact(&mut ExactModel));
        for (k, expected) in [(0, &data), (60, &model)] {
            let draws: Vec<Vec<f64>> = (0..extent(60, 150))
                .map(|s| {
                    moments_of(&mut Contrastive::default(), &machine, &batch, k, Stream::new(s))
                        .slices()
                        .concat()
                })
                .collect();
            for l in machine.visible_layers() {
                for i in 0..machine.layer(l).len() {
                    let at = machine.layers()[..l.0]
                        .iter()
                        .map(harmonium::machine::Layer::len)
                        .sum::<usize>()
                        + i;
                    let values: Vec<f64> = draws.iter().map(|d| d[at]).collect();
                    let what = format!("{name}, CD-{k}, mean {i}");
                    assert_mean(&what, &values, expected.bias[l.0][i]);
                }
            }
        }
    }
}

#[test]
fn particles_weigh_one_whatever_their_number() {
    for (name, machine) in discrete() {
        // Three samples against seven chains: each side is an average of its own.
        let x = some_states(&machine, 3, 54);
        let batch = batch_of(&machine, &x);
        let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
        let stream = Stream::new(1);
        let context = Context { sampler: &sampler, batch: &batch, k: 1, stream };
        let mut sides: Vec<Box<dyn Estimator>> = vec![
            Box::new(MeanFieldPosterior::new(MeanField::default())),
            Box::new(ClampedGibbs::new(2)),
            Box::new(Contrastive::default()),
            Box::new(Persistent::new(7).unwrap()),
            Box::new(Tempered::new(5, 3).unwrap()),
            Box::new(trajectory(5)),
        ];
        for estimator in &mut sides {
            let kind = estimator.name();
            let Side::Particles { state, weights } = estimator.estimate(&context).unwrap() else {
                panic!("{name}: {kind} yields particles")
            };
            assert_eq!(state.n_rows(), weights.len());
            assert_close(1.0, weights.iter().sum(), 1e-12, &format!("{name}: {kind}"));
        }
    }
}

/// A sample of weight 3 is three samples, in the exact gradient and in the bias of a short batch.
#[test]
fn a_weight_counts_as_repetition() {
    let machine = Rbm::binary(4, 3).unwrap().into_machine();
    let row = |bits: [u8; 4]| bits.map(f32::from).to_vec();
    let (a, b) = (row([1, 0, 0, 1]), row([0, 1, 1, 1]));
    let table = |rows: &[&Vec<f32>]| {
        Table::from_real(rows.iter().flat_map(|r| r.iter().copied()).collect(), 4).unwrap()
    };
    let weighted = Dataset::new(table(&[&a, &b]), Binarize::None).unwrap();
    let weighted = weighted.with_weights(vec![3.0, 1.0]).unwrap();
    let repeated = Dataset::new(table(&[&a, &a, &a, &b]), Binarize::None).unwrap();
    let plan = Plan { rule: Rule::Exact, epochs: 30, batch: 10, ..Plan::default() };
    let run = |data: &Dataset| train(machine.clone(), data, &plan, &mut []).unwrap().machine;
    let (x, y) = (run(&weighted), run(&repeated));
    for (x, y) in x.layers().iter().zip(y.layers()) {
        for (x, y) in x.bias.iter().chain(&x.offset).zip(y.bias.iter().chain(&y.offset)) {
            assert_close(*x, *y, 1e-10, "weighted and repeated samples");
        }
    }
    assert!(Dataset::new(table(&[&a]), Binarize::None).unwrap().with_weights(vec![-1.0]).is_err());
}

/// The last batch of an epoch is short: its gradient is an average over what it holds.
#[test]
fn a_short_last_batch_is_averaged_over_itself() {
    let machine = Rbm::binary(3, 2).unwrap().into_machine();
    let table = Table::from_real([1.0, 0.0, 1.0].repeat(5), 3).unwrap();
    let data = Dataset::new(table, Binarize::None).unwrap();
    // Five equal rows in batches of two: every batch has the same exact gradient, so batches of
    // two and of one must move the machine alike.
    let plan = Plan {
        rule: Rule::Exact,
        epochs: 1,
        decay: Schedule::Constant(1.0),
        momentum: Schedule::Constant(0.0),
        ..Plan::default()
    };
    let run = |batch, epochs| {
        let plan = Plan { batch, epochs, ..plan.clone() };
        train(machine.clone(), &data, &plan, &mut []).unwrap()
    };
    let (short, whole) = (run(2, 1), run(5, 3));
    assert_eq!((short.steps, whole.steps), (3, 3));
    for (a, b) in short.machine.layers().iter().zip(whole.machine.layers()) {
        for (a, b) in a.bias.iter().zip(&b.bias) {
            assert_close(*a, *b, 1e-12, "three steps");
        }
    }
}

#[test]
fn constant_features_give_finite_biases() {
    for units in [Units::Binary, Units::Spin, Units::Gaussian, Units::Categorical { q: 2 }] {
        let mut machine = Rbm::new((units, 3), (Units::Binary, 2)).unwrap().into_machine();
        let n = 3 * units.group();
        let row: Vec<f32> = if units.group() == 2 { [1.0, 0.0].repeat(3) } else { vec![1.0; n] };
        let data =
            Dataset::new(Table::from_real(row.repeat(4), n).unwrap(), Binarize::None).unwrap();
        initialise(&mut machine, &data, &Plan::default()).unwrap();
        let layer = machine.layer(LayerId(0));
        assert!(layer.bias.iter().all(|b| b.is_finite() && b.abs() < 1e5), "{units:?}");
        assert!(layer.own.iter().all(|g| g.is_finite()), "{units:?}");
        assert!(likelihood::exact(&machine, &data).unwrap().mean.is_finite(), "{units:?}");
    }
}

#[test]
fn a_fresh_machine_has_the_means_of_the_data() {
    for (name, mut machine) in all() {
        if machine.has_lateral(LayerId(0)) {
            continue; // only its conditional means are those of the biases
        }
        let data = rows(&machine, &some_states(&machine, 400, 55));
        let plan = Plan { initial_std: 0.0, ..Plan::suited_to(&machine) };
        initialise(&mut machine, &data, &plan).unwrap();
        let one = State::zeros(&machine, 1).unwrap();
        let moments = exact::moments(&machine, &Clamp::none(), &one, &[1.0]).unwrap();
        assert_eq!(machine.constant(), 0.0, "{name}: a fresh machine has no constant");
        let means = Feed::of(&machine, &data).unwrap().means().concat();
        let model = machine.visible_layers().into_iter().flat_map(|l| moments.bias[l.0].clone());
        for (a, b) in means.iter().zip(model) {
            assert_close(*a, b, 1e-6, &name);
        }
        for l in machine.layer_ids() {
            let offset = &machine.layer(l).offset;
            let visible = machine.layer(l).role == Role::Visible;
            // Units that see real columns start off in most rows.
            let real = |m: LayerId| {
                machine.layer(m).role == Role::Visible && !machine.layer(m).units.is_finite()
            };
            let sees_real = machine.layer_ids().any(|m| real(m) && machine.coupled(l, m));
            let rare = sees_real && machine.layer(l).units == Units::Binary;
            let start = if rare { 0.3 } else { machine.layer(l).units.neutral_mean() };
            assert!(visible || offset.iter().all(|o| *o == start), "{name}");
        }
    }
}

/// Two patterns in turn: all visible units at their first value, and all at their last.
fn opposites(machine: &Machine, n_rows: usize) -> Dataset {
    let mut x = State::zeros(machine, n_rows).unwrap();
    for l in machine.visible_layers() {
        let layer = machine.layer(l);
        for row in 0..n_rows {
            let value = match layer.units.configurations() {
                Some(all) => all.0[row % 2 * (all.0.len() - 1)].clone(),
                None => vec![3.0 * (row % 2) as f64],
            };
            x.set_row(l, row, &value.repeat(layer.n_units())).unwrap();
        }
    }
    rows(machine, &x)
}

/// Two patterns: no model can do better than ln(1/2).
#[test]
fn every_rule_trains_every_machine() {
    let sampled = [Rule::Pcd, Rule::Pt, Rule::Cd, Rule::Ptt];
    for (m, (name, machine)) in all().into_iter().enumerate() {
        let gaussian = machine.layers().iter().any(|l| !l.units.is_finite());
        // In the default run machines take turns with the rules that sample.
        for &rule in [Rule::Exact].iter().chain(extent(&sampled[m % 4..][..1], &sampled)) {
            // The chains of contrastive divergence are the samples: two would be noise. And correlations
            // of two rows are not believed at all.
            let many = rule == Rule::Cd || name.starts_with("coupled");
            let data = opposites(&machine, if many { 40 } else { 2 });
            let plan = Plan {
                rule,
                epochs: 300,
                chains: 100,
                replicas: 4,
                // Numbers that see each other must have a distribution.
                initial_std: if gaussian && name.starts_with("mixed") { 0.1 } else { 0.3 },
                learning_rate: if gaussian { 0.02 } else { 0.15 },
                l2: 0.0,
                posterior: Posterior::Exact,
                k: Schedule::Constant(3.0),
                momentum: Schedule::Constant(if rule == Rule::Exact { 0.9 } else { 0.5 }),
                ..Plan::suited_to(&machine)
            };
            let mut fresh = machine.clone();
            initialise(&mut fresh, &data, &plan).unwrap();
            let before = likelihood::exact(&fresh, &data).unwrap().mean;
            let outcome = train(machine.clone(), &data, &plan, &mut []).unwrap();
            assert_eq!(outcome.stop, Stop::Finished, "{name} by {rule:?}");
            let after = likelihood::exact(&outcome.machine, &data).unwrap().mean;
            // Coupled Gaussians start almost where they end: their fit of two points is a Gaussian.
            let least = if name.starts_with("coupled") { 1e-4 } else { 0.02 };
            assert!(after > before + least, "{name} by {rule:?}: {before} -> {after}");
            let best = synthetic::best_total(data.table()) / data.n_rows() as f64;
            // Real units have densities, which know no bound.
            let has_real_data =
                machine.visible_layers().iter().any(|&l| !machine.layer(l).units.is_finite());
            assert!(has_real_data || after <= best + 1e-9, "{name}: {after} beats {best}");
            let rebuilt = Machine::new(
                outcome.machine.layers().to_vec(),
                outcome.machine.couplings().to_vec(),
            );
            assert!(rebuilt.is_ok(), "{name}: learning broke the machine: {rebuilt:?}");
        }
    }
}

#[test]
fn every_posterior_trains_a_general_machine() {
    let data = Dataset::new(
        synthetic::bars_and_stripes(2, synthetic::Repeats::Counted).unwrap(),
        Binarize::None,
    )
    .unwrap();
    let bm = Bm::new((Units::Binary, 4), (Units::Binary, 3), Lateral::Both).unwrap().into_machine();
    let dbm = Dbm::binary(4, &[4, 3]).unwrap().into_machine();
    for machine in [bm, dbm] {
        for posterior in [Posterior::Exact, Posterior::MeanField, Posterior::Gibbs, Posterior::Auto]
        {
            let plan = Plan {
                posterior,
                rule: Rule::Exact,
                epochs: 600,
                learning_rate: 0.1,
                l2: 0.0,
                ..Plan::default()
            };
            let mut fresh = machine.clone();
            initialise(&mut fresh, &data, &plan).unwrap();
            let before = likelihood::exact(&fresh, &data).unwrap().total();
            let outcome = train(machine.clone(), &data, &plan, &mut []).unwrap();
            let after = likelihood::exact(&outcome.machine, &data).unwrap().total();
            assert!(after > before + 1.0, "{posterior:?}: {before} -> {after}");
        }
    }
}

#[test]
fn optimisers_and_penalties_do_what_they_say() {
    let data = Dataset::new(
        synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).unwrap(),
        Binarize::None,
    )
    .unwrap();
    let machine = || Rbm::binary(9, 6).unwrap().into_machine();
    let base =
        Plan { rule: Rule::Exact, epochs: 500, learning_rate: 0.1, l2: 0.0, ..Plan::default() };
    let run = |plan: &Plan| train(machine(), &data, plan, &mut []).unwrap().machine;
    let total = |m: &Machine| likelihood::exact(m, &data).unwrap().total();
    let weights = |m: &Machine| m.couplings()[0].weights.entries().to_vec();
    let size = |m: &Machine| weights(m).iter().map(|w| w * w).sum::<f64>();
    let plain = run(&base);
    let adam = run(&Plan { optimizer: OptimizerKind::Adam, learning_rate: 0.05, ..base.clone() });
    assert!(total(&plain) > -70.0 && total(&adam) > -70.0, "{} {}", total(&plain), total(&adam));
    assert!(size(&run(&Plan { l2: 0.05, ..base.clone() })) < 0.5 * size(&plain));
    let l1 = run(&Plan { l1: 0.05, ..base.clone() });
    let small = |m: &Machine| weights(m).iter().filter(|w| w.abs() < 0.01).count();
    assert!(small(&l1) > small(&plain) + 10, "{} {}", small(&l1), small(&plain));
    let bounded = run(&Plan { max_norm: Some(1.0), ..base.clone() });
    for j in 0..6 {
        let norm: f64 = weights(&bounded).chunks(6).map(|row| row[j] * row[j]).sum::<f64>().sqrt();
        assert!(norm <= 1.0 + 1e-9, "unit {j}: {norm}");
    }
    let sparse = run(&Plan { sparsity_target: Some(0.1), sparsity_cost: 1.0, ..base.clone() });
    let activity = |m: &Machine| {
        let x = batch_of_data(m, &data).to_state(m).unwrap();
        let moments = exact::moments(m, &Clamp::visible(m), &x, &[1.0 / 16.0; 16]).unwrap();
        moments.bias[1].iter().sum::<f64>() / 6.0
    };
    assert!((activity(&sparse) - 0.1).abs() < 0.05, "{}", activity(&sparse));
    assert!((activity(&plain) - 0.1).abs() > 0.1, "{}", activity(&plain));
    let clipped = run(&Plan { clip: Some(1e-4), ..base.clone() });
    assert!(total(&clipped) < total(&plain) - 1.0);
}

fn batch_of_data(machine: &Machine, data: &Dataset) -> Batch {
    Feed::of(machine, data).unwrap().batch(0..data.n_rows(), Stream::new(0))
}

/// Centering follows the data phase and changes nothing else.
#[test]
fn offsets_follow_the_means_of_the_data_phase() {
    for (name, machine) in discrete() {
        let data = rows(&machine, &some_states(&machine, 50, 57));
        let still = Plan {
            learning_rate: 0.0,
            epochs: 150,
            offset_rate: 0.1,
            batch: 50,
            rule: Rule::Exact,
            posterior: Posterior::Exact,
            ..Plan::default()
        };
        let mut fresh = machine.clone();
        let plan = Plan { initial_std: 0.8, ..still };
        initialise(&mut fresh, &data, &plan).unwrap();
        let outcome = train(machine.clone(), &data, &plan, &mut []).unwrap();
        let log_z = |m: &Machine| exact::log_partition(m).unwrap();
        assert_close(log_z(&fresh), log_z(&outcome.machine), 1e-9, &name);
        let x = batch_of_data(&fresh, &data).to_state(&fresh).unwrap();
        let moments = exact::moments(&fresh, &Clamp::visible(&fresh), &x, &[0.02; 50]).unwrap();
        for l in fresh.layer_ids() {
            for (o, m) in outcome.machine.layer(l).offset.iter().zip(&moments.bias[l.0]) {
                assert_close(*m, *o, 1e-6, &name);
            }
        }
        let off = train(machine, &data, &Plan { center: false, ..plan }, &mut []).unwrap();
        assert!(off.machine.layers().iter().all(|l| l.offset.iter().all(|o| *o == 0.0)), "{name}");
    }
}

#[test]
fn numbers_that_run_away_stop_training_at_the_last_good_machine() {
    let machine = Rbm::new((Units::Gaussian, 3), (Units::Binary, 3)).unwrap().into_machine();
    let table = Table::from_real((0..30).map(|i| (i % 7) as f32 * 1e3).collect(), 3).unwrap();
    let data = Dataset::new(table, Binarize::None).unwrap();
    let plan = Plan { learning_rate: 1e200, epochs: 100, rule: Rule::Cd, ..Plan::default() };
    let outcome = train(machine, &data, &plan, &mut []).unwrap();
    let Stop::Diverged(error) = &outcome.stop else { panic!("{:?}", outcome.stop) };
    assert!(error.to_string().contains("not finite"), "{error}");
    assert!(error.hint().contains("--learning-rate"));
    let layers = outcome.machine.layers();
    assert!(layers.iter().all(|l| l.bias.iter().chain(&l.own).all(|x| x.is_finite())));
}

/// Updates that would leave no distribution are shortened until one is left.
#[test]
fn couplings_between_real_units_never_outgrow_their_precision() {
    let machine = Rbm::new((Units::Gaussian, 2), (Units::Gaussian, 2)).unwrap().into_machine();
    let table = Table::from_real((0..40).map(|i| (i / 2 % 5) as f32 - 2.0).collect(), 2).unwrap();
    let data = Dataset::new(table, Binarize::None).unwrap();
    let plan = Plan { learning_rate: 3.0, epochs: 30, rule: Rule::Exact, ..Plan::default() };
    let mut steps = 0;
    let mut every = Every::new(1, |view| {
        steps += 1;
        assert!(exact::log_partition(view.machine().unwrap()).unwrap().is_finite());
        ControlFlow::Continue(())
    });
    let outcome = train(machine, &data, &plan, &mut [&mut every]).unwrap();
    assert_eq!((outcome.stop, steps), (Stop::Finished, 30));
}

#[test]
fn observers_see_stop_and_measure() {
    let data = Dataset::new(
        synthetic::bars_and_stripes(2, synthetic::Repeats::Counted).unwrap(),
        Binarize::None,
    )
    .unwrap();
    let machine = Rbm::binary(4, 3).unwrap().into_machine();
    let plan = Plan { epochs: 50, batch: 3, ..Plan::default() };
    let metric = || likelihood::ExactLikelihood::new("train", &data);
    let mut history = History::new(10, vec![Box::new(metric())]);
    let mut seen = 0;
    let mut every = Every::new(7, |view| {
        seen += 1;
        assert_eq!(view.progress().n_steps, 150);
        assert!(view.report.update_ratio > 0.0 && view.report.gradient_norm > 0.0);
        if view.epoch() == 35 {
            ControlFlow::Break("enough".into())
        } else {
            ControlFlow::Continue(())
        }
    });
    let outcome = train(machine.clone(), &data, &plan, &mut [&mut history, &mut every]).unwrap();
    assert_eq!(outcome.stop, Stop::Observer("enough".into()));
    assert_eq!((outcome.epochs, outcome.steps, seen), (35, 105, 5));
    assert_eq!(history.records().iter().map(|r| r.epoch).collect::<Vec<_>>(), [10, 20, 30]);
    assert_eq!(history.records()[0].measurements.0[0].name.as_str(), "train");
    // A rate of zero never improves: stopping comes after the patience, and says since when.
    let mut early = EarlyStop::new(metric(), 4);
    let still = Plan { learning_rate: 0.0, ..plan };
    let outcome = train(machine, &data, &still, &mut [&mut early]).unwrap();
    assert_eq!(outcome.epochs, 5);
    assert!(matches!(outcome.stop, Stop::Observer(reason) if reason.contains("since epoch 1")));
}

#[test]
fn training_beats_independent_units() {
    let data = Dataset::new(
        synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).unwrap(),
        Binarize::None,
    )
    .unwrap();
    let machine = Rbm::binary(9, 8).unwrap().into_machine();
    let (alone, _) = baseline::independent(&machine, &data, &data).unwrap();
    assert_close(9.0 * 0.5_f64.ln(), alone, 1e-9, "every pixel is on half the time");
    let plan =
        Plan { rule: Rule::Exact, epochs: 500, learning_rate: 0.1, l2: 0.0, ..Plan::default() };
    let outcome = train(machine, &data, &plan, &mut []).unwrap();
    assert!(likelihood::exact(&outcome.machine, &data).unwrap().mean > alone + 2.0);
}

#[test]
fn resuming_equals_never_having_stopped() {
    for (name, machine) in all() {
        let data = rows(&machine, &some_states(&machine, 11, 58));
        for rule in [Rule::Pcd, Rule::Pt, Rule::Cd, Rule::Ptt] {
            for optimizer in [OptimizerKind::Sgd, OptimizerKind::Adam] {
                let plan = Plan {
                    rule,
                    optimizer,
                    epochs: 4,
                    batch: 4,
                    chains: 6,
                    replicas: 3,
                    sparsity_target: Some(0.2),
                    ..Plan::suited_to(&machine)
                };
                let mut fresh = machine.clone();
                initialise(&mut fresh, &data, &plan).unwrap();
                let mut straight = Trainer::new(fresh.clone(), &data, &plan).unwrap();
                // Stop in the middle of an epoch, at every place there is.
                let mut checkpoints = vec![straight.checkpoint()];
                let mut keep = EachStep(&mut checkpoints);
                straight.run(&mut [&mut keep]).unwrap();
                let end = straight.checkpoint();
                for checkpoint in checkpoints.iter().step_by(5) {
                    let mut resumed = Trainer::resume(checkpoint, &data, &plan).unwrap();
                    resumed.run(&mut []).unwrap();
                    assert_eq!(resumed.checkpoint(), end, "{name} by {rule:?}");
                }
            }
        }
    }
}

struct EachStep<'a>(&'a mut Vec<harmonium::training::Checkpoint>);

impl harmonium::training::Observer for EachStep<'_> {
    fn updated(
        &mut self,
        view: &harmonium::training::View<'_>,
    ) -> Result<ControlFlow<String>, harmonium::Error> {
        self.0.push(view.checkpoint());
        Ok(ControlFlow::Continue(()))
    }
}

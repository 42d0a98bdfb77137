//! Greedy pre-training: what counting twice means, at which ends it happens, and what the stack
//! becomes.

use crate::machines::{assert_close, noise, some_states};
use harmonium::Error;
use harmonium::engine::Arithmetic;
use harmonium::evaluation::likelihood;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role, State};
use harmonium::models::{Bm, Body, Dbm, Lateral, Rbm};
use harmonium::optim::Schedule;
use harmonium::progress::Silent;
use harmonium::sampling::{Clamp, MeanField, Sampler};
use harmonium::training::{
    Learner, Observer, Plan, Pretrained, Rule, Stage, Stop, Trainer, View, drive, initialise, train,
};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Labels, Table, synthetic};
use std::ops::ControlFlow;

fn matrix(n: usize, m: usize, seed: u64) -> Matrix {
    Matrix::from_fn(n, m, |i, j| 3.0 * noise(seed, i * 31 + j)).unwrap()
}

fn layer(name: &str, role: Role, n: usize, seed: u64, times: f64) -> Layer {
    let mut layer = Layer::new(name, role, Units::Binary, n).unwrap();
    layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = times * noise(seed, i));
    layer.offset.iter_mut().enumerate().for_each(|(i, m)| *m = 0.5 + 0.5 * noise(seed + 1, i));
    layer
}

/// A layer that counts twice responds as one that sees two tied copies, with twice the bias.
#[test]
fn counting_twice_is_seeing_two_copies() {
    let (n, m) = (7, 5);
    let w = || matrix(n, m, 3);
    let (v, h) = (layer("v", Role::Visible, n, 5, 1.0), layer("h", Role::Hidden, m, 9, 1.0));
    let copy = Layer { name: "copy".into(), ..v.clone() };
    let twice = layer("h", Role::Hidden, m, 9, 2.0);
    let ends = [LayerId(0), LayerId(1), LayerId(2)];
    let couplings =
        vec![Coupling::between(ends[0], ends[2], w()), Coupling::between(ends[1], ends[2], w())];
    let three = Machine::new(vec![v.clone(), copy, twice], couplings).unwrap();
    let two = Machine::new(vec![v, h], vec![Coupling::between(ends[0], ends[1], w())]).unwrap();
    let x = some_states(&two, 40, 1);
    let mut copied = State::zeros(&three, 40).unwrap();
    for row in 0..40 {
        copied.set_row(ends[0], row, x.row(ends[0], row)).unwrap();
        copied.set_row(ends[1], row, x.row(ends[0], row)).unwrap();
    }
    let settings = MeanField::default();
    let clamp = Clamp::visible(&three);
    Sampler::new(three.clone(), Arithmetic::F64).infer(&clamp, &mut copied, settings).unwrap();
    for (precision, tolerance) in
        [(Arithmetic::F64, 1e-13), (Arithmetic::F32, 1e-5), (Arithmetic::I16, 3e-3)]
    {
        let sampler = Sampler::with_copies(two.clone(), precision, &[1.0, 2.0]);
        let up = sampler.conditional_means(&Clamp::none(), &x, &[ends[1]]).unwrap();
        // The visible layer counts once: it sees one hidden layer in both machines.
        let down = sampler.conditional_means(&Clamp::none(), &x, &[ends[0]]).unwrap();
        let plain = Sampler::new(two.clone(), Arithmetic::F64);
        let expected = plain.conditional_means(&Clamp::none(), &x, &[ends[0]]).unwrap();
        for row in 0..40 {
            for (a, b) in up.row(ends[1], row).iter().zip(copied.row(ends[2], row)) {
                assert_close(*a, *b, tolerance, &format!("{precision:?}, up"));
            }
            for (a, b) in down.row(ends[0], row).iter().zip(expected.row(ends[0], row)) {
                assert_close(*a, *b, tolerance, &format!("{precision:?}, down"));
            }
        }
    }
}

/// A chain of three hidden layers, and one of two with labels above, with data.
fn stacks() -> Vec<(&'static str, Machine, Dataset)> {
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).unwrap();
    let plain = Dataset::new(table, Binarize::None).unwrap();
    let classes: Vec<u32> = (0..plain.n_rows() as u32).map(|r| r % 3).collect();
    let labelled = plain.clone().with_labels(Labels::from_values(classes)).unwrap();
    let chain = Dbm::binary(9, &[6, 5, 4]).unwrap().into_machine();
    let labels = Layer::new("labels", Role::Visible, Units::Categorical { q: 3 }, 1).unwrap();
    let hidden = |name: &str, n| Layer::new(name, Role::Hidden, Units::Binary, n).unwrap();
    let v = Layer::new("visible", Role::Visible, Units::Binary, 9).unwrap();
    let zeros = |n, m| Matrix::zeros(n, m).unwrap();
    let with_labels = Machine::new(
        vec![v, labels, hidden("hidden1", 6), hidden("hidden2", 5)],
        vec![
            Coupling::between(LayerId(0), LayerId(2), zeros(9, 6)),
            Coupling::between(LayerId(2), LayerId(3), zeros(6, 5)),
            Coupling::between(LayerId(1), LayerId(3), zeros(3, 5)),
        ],
    );
    vec![("chain", chain, plain), ("labels", with_labels.unwrap(), labelled)]
}

fn plan(center: bool) -> Plan {
    Plan {
        pretrain_epochs: 30,
        pretrain_learning_rate: 0.1,
        batch: 8,
        epochs: 0,
        center,
        initial_std: 0.3,
        ..Plan::default()
    }
}

/// What stages were called, how often each of their layers counts, and how they ended.
struct Seen {
    layer: String,
    machine: Machine,
    counts: Vec<f64>,
}

fn pretrained(machine: &mut Machine, data: &Dataset, plan: &Plan) -> Vec<Seen> {
    let mut learner = Pretrained::new(machine.clone(), data, plan).unwrap();
    let mut seen: Vec<Seen> = Vec::new();
    while !learner.is_done() {
        learner.step().unwrap();
        if learner.progress().epoch == plan.pretrain_epochs {
            let (layer, _) = learner.described().unwrap();
            let part = learner.current();
            let counts = counts(part.sampler);
            seen.push(Seen { layer, machine: part.sampler.machine().clone(), counts });
            assert_eq!(learner.stage(), Some(Stage::Pretrain(seen.len())));
        }
    }
    *machine = machine_of(&learner);
    seen
}

/// What a learner has learned, where it is a machine.
fn machine_of(learner: &dyn Learner) -> Machine {
    let Body::Machine(machine) = learner.body() else { panic!("a stack becomes a machine") };
    machine
}

/// How strongly each binary layer responds: ln p/(1-p) over θ.
fn counts(sampler: &Sampler) -> Vec<f64> {
    let machine = sampler.machine();
    let x = some_states(machine, 1, 4);
    let count = |l: LayerId| {
        if machine.layer(l).units != Units::Binary {
            return f64::NAN;
        }
        let q = sampler.conditional_means(&Clamp::none(), &x, &[l]).unwrap();
        let theta = machine.theta(l, &x, 0).unwrap();
        let strongest = (0..theta.len()).max_by(|&i, &j| theta[i].abs().total_cmp(&theta[j].abs()));
        let i = strongest.unwrap();
        let p = q.row(l, 0)[i];
        (p / (1.0 - p)).ln() / theta[i]
    };
    machine.layer_ids().map(count).collect()
}

/// Upwards in the first stage, downwards in the last, both ways in between; labels count once.
#[test]
fn doubling_happens_at_the_right_ends() {
    let expected: [&[(&str, &[f64])]; 2] = [
        &[("hidden1", &[1.0, 2.0]), ("hidden2", &[2.0, 2.0]), ("hidden3", &[2.0, 1.0])],
        &[("hidden1", &[1.0, 2.0]), ("hidden2", &[f64::NAN, 2.0, 1.0])],
    ];
    for ((name, mut machine, data), expected) in stacks().into_iter().zip(expected) {
        let seen = pretrained(&mut machine, &data, &plan(true));
        assert_eq!(seen.len(), expected.len(), "{name}");
        for (stage, (layer, counts)) in seen.iter().zip(expected) {
            assert_eq!(stage.layer, *layer);
            for (found, expected) in stage.counts.iter().zip(*counts) {
                if expected.is_finite() {
                    assert_close(*found, *expected, 0.02, &format!("{name}, {layer}"));
                }
            }
        }
    }
}

/// Every layer's θ in the whole machine is the sum of those of its stages, so that two stages that
/// each count twice have half a vote each; and centering does not change it.
#[test]
fn a_stack_becomes_the_sum_of_its_stages() {
    for center in [true, false] {
        for (name, mut machine, data) in stacks() {
            initialise(&mut machine, &data, &plan(center)).unwrap();
            let seen = pretrained(&mut machine, &data, &plan(center));
            let x = some_states(&machine, 5, 6);
            for row in 0..5 {
                for l in machine.layer_ids() {
                    let mut sum = vec![0.0; machine.layer(l).len()];
                    for Seen { machine: own, .. } in &seen {
                        let id = |whole: LayerId| {
                            let named =
                                |m: &LayerId| own.layer(*m).name == machine.layer(whole).name;
                            own.layer_ids().find(named)
                        };
                        let Some(here) = id(l) else { continue };
                        let mut part = State::zeros(own, 1).unwrap();
                        for m in machine.layer_ids() {
                            if let Some(inside) = id(m) {
                                part.set_row(inside, 0, x.row(m, row)).unwrap();
                            }
                        }
                        let theta = own.theta(here, &part, 0).unwrap();
                        sum.iter_mut().zip(theta).for_each(|(s, t)| *s += t);
                    }
                    for (a, b) in machine.theta(l, &x, row).unwrap().iter().zip(&sum) {
                        assert_close(*a, *b, 1e-9, &format!("{name}, centered {center}, {l:?}"));
                    }
                }
            }
            for layer in machine.layers() {
                let centered = layer.offset.iter().any(|o| *o != 0.0);
                assert_eq!(centered, center, "{name}, {}", layer.name);
            }
            assert_eq!(machine.constant(), 0.0);
        }
    }
}

/// Each step is worth something: the stack beats the start, and learning together beats the stack.
#[test]
fn joint_learning_goes_beyond_the_stack() {
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).unwrap();
    let data = Dataset::new(table, Binarize::None).unwrap();
    let plan = Plan {
        pretrain_epochs: 1500,
        pretrain_learning_rate: 0.1,
        batch: 16,
        momentum: Schedule::Constant(0.5),
        l2: 0.0,
        rule: Rule::Exact,
        learning_rate: 0.2,
        epochs: 300,
        ..Plan::default()
    };
    let total = |m: &Machine| likelihood::exact(m, &data).unwrap().total();
    let mut machine = Dbm::binary(9, &[8, 6]).unwrap().into_machine();
    initialise(&mut machine, &data, &plan).unwrap();
    let start = total(&machine);
    pretrained(&mut machine, &data, &Plan { epochs: 0, ..plan.clone() });
    let stack = total(&machine);
    let mut trainer = Trainer::new(machine, &data, &plan).unwrap();
    trainer.run(&mut []).unwrap();
    let joint = total(trainer.machine());
    assert!(start + 10.0 < stack, "{start} {stack}");
    assert!(stack + 5.0 < joint, "{stack} {joint}");
    // The same in one call, to the bit.
    let again = train(Dbm::binary(9, &[8, 6]).unwrap().into_machine(), &data, &plan, &mut []);
    assert_eq!(total(&again.unwrap().machine), joint);
}

#[test]
fn a_watcher_may_stop_it_and_the_machine_stays() {
    let (_, mut machine, data) = stacks().remove(0);
    initialise(&mut machine, &data, &plan(true)).unwrap();
    let before = machine.clone();
    let mut learner = Pretrained::new(machine, &data, &plan(true)).unwrap();
    let stop = drive(&mut learner, &mut [&mut NoSecondStage], &mut Silent).unwrap();
    assert_eq!(stop, Stop::Observer("enough".into()));
    assert_eq!(machine_of(&learner), before);
}

/// Stops in the second stage.
struct NoSecondStage;

impl Observer for NoSecondStage {
    fn updated(&mut self, view: &View<'_>) -> Result<ControlFlow<String>, Error> {
        Ok(if view.stage() == Some(Stage::Pretrain(2)) {
            ControlFlow::Break("enough".into())
        } else {
            ControlFlow::Continue(())
        })
    }
}

#[test]
fn what_is_no_stack_is_refused() {
    let binary = |n| (Units::Binary, n);
    let rows = Table::from_real(vec![0.0, 1.0, 1.0, 0.0], 2).unwrap();
    let data = Dataset::new(rows, Binarize::None).unwrap();
    let lateral = Bm::new(binary(2), binary(2), Lateral::Both).unwrap().into_machine();
    let spins = Rbm::new(binary(2), (Units::Spin, 2)).unwrap().into_machine();
    let visible = Bm::new(binary(2), binary(0), Lateral::Visible).unwrap().into_machine();
    for machine in [lateral, spins, visible] {
        let found = Pretrained::new(machine, &data, &plan(true)).err();
        assert!(matches!(found, Some(Error::Topology { .. })), "{found:?}");
    }
}

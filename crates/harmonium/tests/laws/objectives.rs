//! What machines with labels climb: slopes against finite differences, between two ends.

use crate::classify::{Q, labels, machines, some_rows};
use crate::machines::{assert_close, assert_gradient};
use harmonium::data::Labels;
use harmonium::engine::Arithmetic;
use harmonium::evaluation::bound;
use harmonium::machine::{Clamp, LayerId, Machine, Role, State};
use harmonium::moments::Moments;
use harmonium::optim::Schedule;
use harmonium::sampling::{MeanField, Sampler, posterior_factorises};
use harmonium::training::{
    Learner, Numbers, Objective, Plan, Posterior, Rule, Trainer, drive, initialise,
};
use harmonium::units::log_sum_exp;
use harmonium::{Dataset, Error, Rbm, exact, models};

const CAREFUL: MeanField = MeanField { tolerance: 1e-13, max_sweeps: 5000, damping: 0.0 };

fn plan(objective: Objective) -> Plan {
    Plan {
        objective,
        rule: Rule::Exact,
        posterior: Posterior::Auto,
        precision: Numbers::F64,
        batch: 1000,
        decay: Schedule::Constant(1.0),
        momentum: Schedule::Constant(0.0),
        l2: 0.0,
        center: false,
        mean_field_sweeps: CAREFUL.max_sweeps,
        mean_field_tolerance: CAREFUL.tolerance,
        ..Plan::for_epochs(1)
    }
}

/// What a training climbs.
fn learned(machine: &Machine, data: &Dataset, objective: Objective) -> Moments {
    Trainer::new(machine.clone(), data, &plan(objective)).unwrap().slopes().unwrap()
}

/// $s_y$ of each row: the sum over hidden units, or its bound.
fn sums(machine: &Machine, x: &State, class: usize) -> Vec<f64> {
    let mut x = x.clone();
    let one: Vec<f64> = (0..Q).map(|k| f64::from(u8::from(k == class))).collect();
    (0..x.n_rows()).for_each(|row| x.set_row(labels(machine), row, &one).unwrap());
    let clamp = Clamp::visible(machine);
    if posterior_factorises(machine, &clamp) {
        return exact::log_sums(machine, &clamp, &x).unwrap();
    }
    let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
    sampler.start_outwards(&clamp, &mut x).unwrap();
    let found = sampler.mean_field(&clamp, &mut x, CAREFUL).unwrap();
    assert_eq!(found.unconverged, 0);
    bound::unnormalised(machine, &clamp, &x).unwrap()
}

/// Mean $\ln p(y \mid v)$.
fn discriminative(machine: &Machine, x: &State, classes: &[usize]) -> f64 {
    let all: Vec<Vec<f64>> = (0..Q).map(|y| sums(machine, x, y)).collect();
    let of = |row: usize| {
        let logs: Vec<f64> = all.iter().map(|s| s[row]).collect();
        logs[classes[row]] - log_sum_exp(&logs)
    };
    (0..classes.len()).map(of).sum::<f64>() / classes.len() as f64
}

fn given(machine: &Machine) -> (Dataset, State, Vec<usize>) {
    let (data, x) = some_rows(machine, 4);
    let classes: Vec<usize> = vec![0, 2, 1, 2];
    let labels = Labels::from_values(classes.iter().map(|c| *c as u32).collect());
    (data.with_labels(labels).unwrap(), x, classes)
}

/// Machines whose data side is closed or converges by mean field alone: no laterals in hidden layers.
fn under_law() -> Vec<(String, Machine)> {
    let fits = |m: &Machine| {
        let hidden = |l: LayerId| m.layer(l).role == Role::Hidden;
        m.layer_ids().any(hidden) && m.layer_ids().all(|l| !hidden(l) || !m.has_lateral(l))
    };
    machines().into_iter().filter(|(_, m)| fits(m)).collect()
}

#[test]
fn slopes_are_those_of_the_conditional_likelihood() {
    let mut deep = 0;
    for (name, machine) in under_law() {
        let (data, x, classes) = given(&machine);
        deep += usize::from(!posterior_factorises(&machine, &Clamp::visible(&machine)));
        let gradient = learned(&machine, &data, Objective::Discriminative);
        assert_gradient(&name, &machine, &gradient, |m| discriminative(m, &x, &classes));
    }
    assert!(deep > 0, "mean field is under law too");
}

/// A hybrid of share w has w times the slopes of one end and 1 − w times those of the other; at its ends it is them.
#[test]
fn a_hybrid_lies_between_its_two_ends() {
    for (name, machine) in under_law().into_iter().take(6) {
        let (data, _, _) = given(&machine);
        let of = |objective| learned(&machine, &data, objective);
        let (generative, conditional) = (of(Objective::Generative), of(Objective::Discriminative));
        assert_eq!(of(Objective::Hybrid(1.0)), generative, "{name}");
        assert_eq!(of(Objective::Hybrid(0.0)), conditional, "{name}");
        let half = of(Objective::Hybrid(0.25));
        let (g, c) = (generative.slices(), conditional.slices());
        let mut differ = false;
        for (s, slice) in half.slices().iter().enumerate() {
            for (i, found) in slice.iter().enumerate() {
                let expected = 0.25 * g[s][i] + 0.75 * c[s][i];
                assert_close(*found, expected, 1e-8 * (1.0 + expected.abs()), &name);
                differ |= (g[s][i] - c[s][i]).abs() > 1e-3;
            }
        }
        assert!(differ, "{name}: the ends differ");
    }
}

/// Learned with chains and in single precision, a discriminative RBM tells classes better than a generative one.
#[test]
fn discriminative_learning_tells_classes_better() {
    let (table, labels) = harmonium::data::digits::digits().unwrap();
    let labels = Labels::from_values(labels.into_iter().map(u32::from).collect());
    let data = Dataset::new(table, harmonium::Binarize::Threshold(0.5)).unwrap();
    let data =
        data.with_labels(labels).unwrap().select_rows(&(0..300).collect::<Vec<_>>()).unwrap();
    let machine = models::with_labels(Rbm::binary(64, 20).unwrap().machine(), 10).unwrap();
    let rate = |objective| {
        let plan = Plan { objective, batch: 30, learning_rate: 0.1, ..Plan::for_epochs(150) };
        let model = machine.clone().train(&data, &plan).unwrap();
        model.classify(&data).unwrap().errors.unwrap().rate
    };
    let (generative, conditional) = (rate(Objective::Generative), rate(Objective::Discriminative));
    let hybrid = rate(Objective::Hybrid(0.1));
    assert!(conditional < 0.05, "{conditional}");
    assert!(conditional < generative && hybrid < generative, "{conditional} {hybrid} {generative}");
}

#[test]
fn resuming_a_hybrid_equals_never_having_stopped() {
    let (name, machine) = under_law()
        .into_iter()
        .find(|(_, m)| !posterior_factorises(m, &Clamp::visible(m)))
        .unwrap();
    let (data, _, _) = given(&machine);
    let plan = Plan {
        rule: Rule::Pcd,
        chains: 5,
        batch: 2,
        epochs: 4,
        objective: Objective::Hybrid(0.3),
        ..Plan::default()
    };
    let mut whole = Trainer::new(machine.clone(), &data, &plan).unwrap();
    whole.run(&mut []).unwrap();
    let mut part = Trainer::new(machine, &data, &plan).unwrap();
    (0..3).for_each(|_| assert!(part.step().is_ok()));
    let mut rest = Trainer::resume(&part.checkpoint(), &data, &plan).unwrap();
    drive(&mut rest, &mut [], &mut harmonium::progress::Silent).unwrap();
    assert_eq!(rest.machine(), whole.machine(), "{name}");
}

#[test]
fn objectives_need_labels() {
    let mut machine = Rbm::binary(4, 3).unwrap().into_machine();
    let data = some_rows(&machines().remove(0).1, 3).0;
    let plan = plan(Objective::Discriminative);
    let _ = initialise(&mut machine, &data, &plan);
    let refused = Trainer::new(machine, &data, &plan).map(|_| ());
    assert!(matches!(refused, Err(Error::NoLabels | Error::ColumnCount { .. })), "{refused:?}");
}

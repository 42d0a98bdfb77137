//! Learners that average their gradients: a reducer that changes nothing, several learners against
//! one, and that they never drift apart.

use crate::machines::{assert_close, noise};
use harmonium::Error;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role};
use harmonium::models::{Dbm, Rbm};
use harmonium::training::{Numbers, OptimizerKind, Plan, Reduce, Rule, Trainer, initialise};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Table};
use std::sync::{Arc, Barrier, Mutex};

/// One learner alone.
struct Alone;

impl Reduce for Alone {
    fn average(&mut self, _: &mut [&mut [f64]]) -> Result<(), Error> {
        Ok(())
    }

    fn average_single(&mut self, _: &mut [&mut [f32]]) -> Result<(), Error> {
        Ok(())
    }
}

/// Where learners on threads put their numbers down.
struct Exchange {
    barrier: Barrier,
    numbers: Vec<Mutex<Vec<f64>>>,
}

/// One of several learners.
struct Seat {
    table: Arc<Exchange>,
    me: usize,
}

impl Seat {
    fn several(n: usize) -> Vec<Self> {
        let numbers = (0..n).map(|_| Mutex::new(Vec::new())).collect();
        let table = Arc::new(Exchange { barrier: Barrier::new(n), numbers });
        (0..n).map(|me| Self { table: table.clone(), me }).collect()
    }

    /// The average of what all learners put down, added in the same order by each.
    fn exchange(&self, mine: Vec<f64>) -> Vec<f64> {
        let n = mine.len();
        *self.table.numbers[self.me].lock().unwrap() = mine;
        self.table.barrier.wait();
        let mut sum = vec![0.0; n];
        for numbers in &self.table.numbers {
            let numbers = numbers.lock().unwrap();
            assert_eq!(numbers.len(), n, "learners average slices of the same lengths");
            sum.iter_mut().zip(&*numbers).for_each(|(s, x)| *s += x);
        }
        self.table.barrier.wait();
        sum.iter_mut().for_each(|s| *s /= self.table.numbers.len() as f64);
        sum
    }
}

impl Reduce for Seat {
    fn average(&mut self, parts: &mut [&mut [f64]]) -> Result<(), Error> {
        let all = self.exchange(parts.iter().flat_map(|part| part.iter().copied()).collect());
        parts.iter_mut().flat_map(|part| part.iter_mut()).zip(all).for_each(|(x, a)| *x = a);
        Ok(())
    }

    fn average_single(&mut self, parts: &mut [&mut [f32]]) -> Result<(), Error> {
        let mine = parts.iter().flat_map(|part| part.iter().map(|x| f64::from(*x)));
        let all = self.exchange(mine.collect());
        let numbers = parts.iter_mut().flat_map(|part| part.iter_mut());
        numbers.zip(all).for_each(|(x, a)| *x = a as f32);
        Ok(())
    }
}

/// Rows `first..first + n` of one long sequence of bits.
fn rows(n_columns: usize, first: usize, n: usize) -> Dataset {
    let bit = |i: usize| f32::from(u8::from(noise(17, i) > 0.2));
    let values = (first * n_columns..(first + n) * n_columns).map(bit).collect();
    Dataset::new(Table::from_real(values, n_columns).unwrap(), Binarize::None).unwrap()
}

/// A plan of few steps on all samples at once.
fn plan(precision: Numbers, rule: Rule, batch: usize) -> Plan {
    let (epochs, learning_rate, initial_std) = (4, 0.1, 0.2);
    Plan {
        precision,
        rule,
        epochs,
        batch,
        chains: 12,
        learning_rate,
        initial_std,
        ..Plan::default()
    }
}

/// What learners make of a machine, each with its own samples and plan, averaging their gradients.
fn together(machine: &Machine, learners: &[(Dataset, Plan)]) -> Vec<Machine> {
    let seats = Seat::several(learners.len());
    std::thread::scope(|scope| {
        let run = |(seat, (data, plan)): (Seat, &(Dataset, Plan))| {
            let (machine, data, plan) = (machine.clone(), data.clone(), plan.clone());
            scope.spawn(move || {
                let trainer = Trainer::new(machine, &data, &plan).unwrap();
                let mut trainer = trainer.with_reduce(seat);
                trainer.run(&mut []).unwrap();
                trainer.machine().clone()
            })
        };
        let threads: Vec<_> = seats.into_iter().zip(learners).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// The machine after a training without and with a reducer that does nothing.
fn with_and_without(machine: &Machine, data: &Dataset, plan: &Plan) -> [Machine; 2] {
    let mut plain = Trainer::new(machine.clone(), data, plan).unwrap();
    let mut reduced = Trainer::new(machine.clone(), data, plan).unwrap().with_reduce(Alone);
    [&mut plain, &mut reduced].map(|trainer| {
        trainer.run(&mut []).unwrap();
        trainer.machine().clone()
    })
}

fn started(mut machine: Machine, data: &Dataset, plan: &Plan) -> Machine {
    initialise(&mut machine, data, plan).unwrap();
    machine
}

fn shapes() -> [(&'static str, Machine); 2] {
    [
        ("rbm", Rbm::binary(70, 75).unwrap().into_machine()),
        ("dbm", Dbm::binary(70, &[40, 66]).unwrap().into_machine()),
    ]
}

/// By moments, and inside the engine without offsets in single precision, every number is the same.
#[test]
fn a_reducer_that_does_nothing_changes_no_bit() {
    let data = rows(70, 0, 50);
    let adam = Plan { optimizer: OptimizerKind::Adam, ..plan(Numbers::F32, Rule::Pcd, 20) };
    let plans = [
        plan(Numbers::F64, Rule::Pcd, 20),
        plan(Numbers::F64, Rule::Cd, 20),
        Plan { sparsity_target: Some(0.1), ..plan(Numbers::F32, Rule::Cd, 20) },
        adam,
        Plan { center: false, ..plan(Numbers::F32, Rule::Pcd, 20) },
        Plan { center: false, l1: 1e-4, ..plan(Numbers::F32, Rule::Cd, 20) },
    ];
    for (name, machine) in shapes() {
        for plan in &plans {
            let machine = started(machine.clone(), &data, plan);
            let [plain, reduced] = with_and_without(&machine, &data, plan);
            assert_ne!(plain, machine, "{name}: it learns");
            assert_eq!(plain, reduced, "{name}, {:?}, {:?}", plan.rule, plan.precision);
        }
    }
}

/// Elsewhere a gradient is rounded once more before it is applied. Its terms are at most 4 in all
/// (two sides, and as much again for the offsets), each path rounds them at most four times, and
/// the new weight once.
#[test]
fn a_reducer_that_does_nothing_costs_a_rounding() {
    const ROUNDING: f64 = 1.0 / 16_777_216.0;
    let data = rows(70, 0, 30);
    for (name, machine) in shapes() {
        for (precision, clip) in
            [(Numbers::F32, None), (Numbers::I16, None), (Numbers::I16, Some(0.5))]
        {
            for rule in [Rule::Pcd, Rule::Cd] {
                let plan = Plan { epochs: 1, clip, ..plan(precision, rule, 30) };
                let machine = started(machine.clone(), &data, &plan);
                let [plain, reduced] = with_and_without(&machine, &data, &plan);
                let of_gradient = plan.learning_rate * 4.0 * 2.0 * 4.0 * ROUNDING;
                for (a, b) in plain.couplings().iter().zip(reduced.couplings()) {
                    for (a, b) in a.weights.entries().iter().zip(b.weights.entries()) {
                        let bound = of_gradient + 2.0 * ROUNDING * a.abs();
                        assert!((a - b).abs() <= bound, "{name}, {precision:?}: {a} {b}");
                    }
                }
                // A bias follows the changes of up to 106 weights, and clipping the norm of all.
                for (a, b) in plain.layers().iter().zip(reduced.layers()) {
                    for (a, b) in a.bias.iter().zip(&b.bias) {
                        assert!((a - b).abs() <= 106.0 * 2.0 * of_gradient, "{name}: {a} {b}");
                    }
                }
            }
        }
    }
}

/// Half of the samples each, and the average of both gradients, are one learner on all samples.
#[test]
fn two_learners_on_halves_are_one_on_the_whole() {
    let plan = |batch| Plan { epochs: 6, ..plan(Numbers::F64, Rule::Exact, batch) };
    let whole = rows(5, 0, 20);
    for machine in
        [Rbm::binary(5, 3).unwrap().into_machine(), Dbm::binary(5, &[3, 2]).unwrap().into_machine()]
    {
        let machine = started(machine, &whole, &plan(20));
        let mut one = Trainer::new(machine.clone(), &whole, &plan(20)).unwrap();
        one.run(&mut []).unwrap();
        let halves = [(rows(5, 0, 10), plan(10)), (rows(5, 10, 10), plan(10))];
        let [first, second] = together(&machine, &halves).try_into().unwrap();
        assert_eq!(first, second);
        assert_ne!(one.machine(), &machine, "it learns");
        for (a, b) in one.machine().layers().iter().zip(first.layers()) {
            for (a, b) in a.bias.iter().chain(&a.offset).zip(b.bias.iter().chain(&b.offset)) {
                assert_close(*a, *b, 1e-12, "biases and offsets");
            }
        }
        for (a, b) in one.machine().couplings().iter().zip(first.couplings()) {
            for (a, b) in a.weights.entries().iter().zip(b.weights.entries()) {
                assert_close(*a, *b, 1e-12, "weights");
            }
        }
    }
}

/// Where every unit is sure of its value, variates decide nothing: then contrastive divergence on
/// halves, inside the engine, is that on the whole.
#[test]
fn halves_are_the_whole_inside_the_engine_where_variates_decide_nothing() {
    let sure = |name: &str, role, n: usize| {
        let mut layer = Layer::new(name, role, Units::Binary, n).unwrap();
        let sign = |i: usize| if noise(3, i) > 0.0 { 30.0 } else { -30.0 };
        layer.bias = (0..n).map(sign).collect();
        layer.offset = vec![0.4; n];
        layer
    };
    let layers = vec![sure("visible", Role::Visible, 70), sure("hidden", Role::Hidden, 75)];
    let weights = Matrix::zeros(70, 75).unwrap();
    let couplings = vec![Coupling::between(LayerId(0), LayerId(1), weights)];
    let machine = Machine::new(layers, couplings).unwrap();
    for precision in [Numbers::F32, Numbers::I16] {
        let plan = |batch| plan(precision, Rule::Cd, batch);
        let whole = rows(70, 0, 32);
        let mut one = Trainer::new(machine.clone(), &whole, &plan(32)).unwrap();
        one.run(&mut []).unwrap();
        let halves = [(rows(70, 0, 16), plan(16)), (rows(70, 16, 16), plan(16))];
        let both = together(&machine, &halves);
        assert_eq!(both[0], both[1]);
        let (one, two) = (one.machine().couplings(), both[0].couplings());
        let pairs = one[0].weights.entries().iter().zip(two[0].weights.entries());
        let largest = one[0].weights.entries().iter().fold(0.0_f64, |m, w| m.max(w.abs()));
        assert!(largest > 0.05, "it learns: {largest}");
        pairs.for_each(|(a, b)| assert_close(*a, *b, 1e-6, "weights"));
    }
}

/// Other samples, other chains, other variates: after any number of steps all learners hold the
/// same machine, to the last bit.
#[test]
fn learners_never_drift_apart() {
    for (name, machine) in shapes() {
        for precision in [Numbers::F32, Numbers::I16] {
            for (rule, clip, chains) in
                [(Rule::Pcd, None, 20), (Rule::Cd, Some(0.5), 20), (Rule::Pcd, None, 13)]
            {
                let plan = |seed| Plan { seed, clip, chains, ..plan(precision, rule, 20) };
                let learners = [0, 1, 2].map(|k| (rows(70, 50 * k, 50), plan(k as u64)));
                let machine = started(machine.clone(), &learners[0].0, &learners[0].1);
                let found = together(&machine, &learners);
                assert_ne!(found[0], machine, "{name}: it learns");
                assert_eq!(found[0], found[1], "{name}, {precision:?}, {rule:?}");
                assert_eq!(found[0], found[2], "{name}, {precision:?}, {rule:?}");
            }
        }
    }
}

/// A reducer that fails ends the training with its reason, and the machine is as it was.
#[test]
fn a_step_that_cannot_be_averaged_is_not_made() {
    struct Lost;
    impl Reduce for Lost {
        fn average(&mut self, _: &mut [&mut [f64]]) -> Result<(), Error> {
            Err(Error::Reduce { reason: "nobody answers".into() })
        }

        fn average_single(&mut self, _: &mut [&mut [f32]]) -> Result<(), Error> {
            unreachable!("means come first")
        }
    }
    let data = rows(70, 0, 50);
    for precision in [Numbers::F64, Numbers::F32] {
        let plan = Plan { center: false, ..plan(precision, Rule::Pcd, 20) };
        let machine = started(Rbm::binary(70, 9).unwrap().into_machine(), &data, &plan);
        let mut trainer = Trainer::new(machine.clone(), &data, &plan).unwrap().with_reduce(Lost);
        let error = trainer.run(&mut []).unwrap_err();
        assert!(error.to_string().contains("nobody answers"), "{error}");
        for (a, b) in machine.couplings().iter().zip(trainer.machine().couplings()) {
            for (a, b) in a.weights.entries().iter().zip(b.weights.entries()) {
                assert_close(*a, *b, 1e-7, "weights");
            }
        }
    }
}

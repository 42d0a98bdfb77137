//! Bad input gets a typed error with the numbers in it, and never a panic.

use harmonium::Error;
use harmonium::engine::Arithmetic;
use harmonium::machine::{Batch, Coupling, Layer, LayerId, Machine, Matrix, Role, State, Triangle};
use harmonium::models::{Bm, Dbm, Lateral, MultimodalDbm, Pathway, Rbm};
use harmonium::random::Stream;
use harmonium::sampling::{Clamp, MeanField, Sampler, Tempering};
use harmonium::training::{Plan, Rule, train};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Table};
use ndarray::Array2;

fn layer(name: &str, units: Units, n: usize) -> Layer {
    Layer::new(name, Role::Visible, units, n).unwrap()
}

fn two() -> Vec<Layer> {
    vec![layer("a", Units::Binary, 4), layer("b", Units::Binary, 3)]
}

#[test]
fn machines_that_do_not_fit_are_named() {
    let weights = |n, m| Coupling::between(LayerId(0), LayerId(1), Matrix::zeros(n, m).unwrap());
    let message = |layers, couplings| Machine::new(layers, couplings).unwrap_err().to_string();
    assert_eq!(
        message(two(), vec![weights(3, 4)]),
        "weights between `a` and `b` must be 4x3, found 3x4"
    );
    assert_eq!(message(vec![], vec![]), "the machine is empty");
    assert_eq!(
        message(two(), vec![weights(4, 3), weights(4, 3)]),
        "the coupling of `a` and `b` occurs twice"
    );
    let twice = vec![layer("a", Units::Binary, 1), layer("a", Units::Binary, 1)];
    assert_eq!(message(twice, vec![]), "layer `a` occurs twice");
    let unknown = Coupling::between(LayerId(0), LayerId(7), Matrix::zeros(4, 3).unwrap());
    assert_eq!(
        message(two(), vec![unknown]),
        "a coupling names layer 7, but the machine has 2 layers"
    );
    let nan = Matrix::from_fn(4, 3, |i, j| if (i, j) == (1, 2) { f64::NAN } else { 0.0 }).unwrap();
    let nan = Coupling::between(LayerId(0), LayerId(1), nan);
    assert_eq!(message(two(), vec![nan]), "the weights of `a, b` holds NaN at entry 5");
    let mut short = two();
    short[1].bias.pop();
    assert_eq!(message(short, vec![]), "the offset of layer `b` must have 2 entries, found 3");
    let mut negative = vec![layer("g", Units::Gaussian, 2)];
    negative[0].own[1] = -1.0;
    assert_eq!(message(negative, vec![]), "the precision of `g` holds -1 at entry 1");
    let inside = Triangle::from_fn(6, |i, j| f64::from(u8::from((i, j) == (3, 5)))).unwrap();
    let inside = Coupling::lateral(LayerId(0), inside);
    let potts = vec![layer("p", Units::Categorical { q: 3 }, 2)];
    assert_eq!(
        message(potts, vec![inside]),
        "the lateral weights of `p` couple entries 3 and 5 of one unit"
    );
    for pair in [(0, 1), (0, 2), (4, 5)] {
        let inside = Triangle::from_fn(6, |i, j| f64::from(u8::from((i, j) == pair))).unwrap();
        let potts = vec![layer("p", Units::Categorical { q: 3 }, 2)];
        let refused = Machine::new(potts, vec![Coupling::lateral(LayerId(0), inside)]);
        assert_eq!(refused, Err(Error::InsideOneUnit { layer: "p".into(), entry: pair }));
    }
    let self_matrix = Coupling::between(LayerId(0), LayerId(0), Matrix::zeros(4, 4).unwrap());
    assert!(Machine::new(two(), vec![self_matrix]).is_err());
    let mut ragged = vec![layer("p", Units::Categorical { q: 3 }, 2)];
    ragged[0].units = Units::Categorical { q: 4 };
    assert_eq!(
        message(ragged, vec![]),
        "layer `p` has 6 entries, which is not a whole number of units of 4"
    );
    for q in [0, 1] {
        let mut one = vec![layer("p", Units::Binary, 3)];
        one[0].units = Units::Categorical { q };
        assert!(Machine::new(one, vec![]).is_err(), "q = {q}");
    }
    assert!(Machine::new(two(), vec![]).unwrap().with_constant(f64::NAN).is_err());
}

#[test]
fn more_than_memory_is_refused() {
    for result in [
        Rbm::binary(1 << 40, 1 << 40).map(Rbm::into_machine),
        Rbm::binary(usize::MAX, 2).map(Rbm::into_machine),
        Rbm::binary(2, usize::MAX / 8).map(Rbm::into_machine),
        Rbm::new((Units::Categorical { q: usize::MAX }, 2), (Units::Binary, 1))
            .map(Rbm::into_machine),
        Bm::new((Units::Binary, 1 << 40), (Units::Binary, 0), Lateral::Visible)
            .map(Bm::into_machine),
        Dbm::binary(10, &[1 << 50, 1 << 50]).map(Dbm::into_machine),
    ] {
        assert!(matches!(result, Err(Error::Memory { .. })), "{result:?}");
    }
    let rbm = Rbm::binary(1000, 1000).unwrap();
    assert!(matches!(State::zeros(rbm.machine(), usize::MAX / 4), Err(Error::Memory { .. })));
}

#[test]
fn models_prove_their_topology() {
    let rbm = || Rbm::binary(3, 2).unwrap().into_machine();
    let dbm = || Dbm::binary(3, &[2, 2]).unwrap().into_machine();
    let bm = Bm::new((Units::Binary, 3), (Units::Binary, 2), Lateral::Both).unwrap().into_machine();
    let pathway =
        |name: &str, n| Pathway { name: name.into(), visible: (Units::Binary, n), hidden: vec![2] };
    let multimodal = MultimodalDbm::new(&[pathway("image", 4), pathway("text", 3)], 2).unwrap();
    assert_eq!(multimodal.machine().schedule().len(), 2);
    assert_eq!(multimodal.machine().visible_layers().len(), 2);
    assert!(
        Rbm::try_from(rbm()).is_ok() && Dbm::try_from(rbm()).is_ok() && Bm::try_from(rbm()).is_ok()
    );
    assert_eq!(Dbm::try_from(dbm()).unwrap().depth(), 2);
    assert_eq!(
        Rbm::try_from(dbm()).unwrap_err().to_string(),
        "an RBM needs a visible and a hidden layer with one coupling between them; \
         found layers visible, hidden, hidden with 2 couplings"
    );
    assert!(Rbm::try_from(bm.clone()).is_err() && Dbm::try_from(bm.clone()).is_err());
    assert!(Bm::try_from(bm).is_ok() && Bm::try_from(dbm()).is_err());
    assert!(MultimodalDbm::try_from(dbm()).is_err());
    assert!(MultimodalDbm::new(&[pathway("only", 3)], 2).is_err());
    assert!(Bm::new((Units::Binary, 3), (Units::Binary, 0), Lateral::Hidden).is_err());
    assert!(
        Dbm::binary(3, &[]).is_err() && Rbm::binary(0, 3).is_err() && Rbm::binary(3, 0).is_err()
    );
    // Two separate pairs and a cycle have the right counts, but are not a tree.
    let layers: Vec<Layer> = (0..5).map(|i| layer(&i.to_string(), Units::Binary, 1)).collect();
    let join = |a, b| Coupling::between(LayerId(a), LayerId(b), Matrix::zeros(1, 1).unwrap());
    let cycle = vec![join(0, 1), join(2, 3), join(3, 4), join(4, 2)];
    assert!(MultimodalDbm::try_from(Machine::new(layers, cycle).unwrap()).is_err());
}

#[test]
fn values_that_units_cannot_take_are_found() {
    let in_columns = |units, n: usize, values: &[f64]| {
        let machine = Rbm::new((units, 2), (Units::Binary, 1)).unwrap();
        Batch::from_rows(machine.machine(), n, values).unwrap_err()
    };
    let message = |units, values: &[f64]| in_columns(units, 2, values);
    let error = message(Units::Binary, &[0.0, 1.0, 1.0, 0.25]);
    assert_eq!(
        error.to_string(),
        "binary units of layer `visible` cannot hold 0.25 (row 1, column 1)"
    );
    assert!(error.hint().contains("--binarize 0.5") && error.hint().contains("--visible gaussian"));
    assert!(message(Units::Spin, &[1.0, 0.0]).hint().contains("--visible binary"));
    assert!(
        message(Units::Gaussian, &[f64::NAN, 0.0]).to_string().contains("NaN (row 0, column 0)")
    );
    assert!(message(Units::Gaussian, &[0.0, f64::INFINITY]).hint().contains("leave the rows out"));
    let potts = Units::Categorical { q: 3 };
    assert!(message(potts, &[0.0, 3.0]).to_string().contains("3 (row 0, column 1)"));
    assert!(in_columns(potts, 6, &[1.0, 1.0, 0.0, 0.0, 0.0, 1.0]).to_string().contains("column 1"));
    assert!(in_columns(potts, 6, &[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]).to_string().contains("column 0"));
    assert_eq!(
        in_columns(potts, 7, &[1.0; 7]).to_string(),
        "the data has 7 columns, the visible layers take 6, or 2 with categories as whole numbers"
    );
    assert!(matches!(message(Units::Binary, &[]), Error::Empty { .. }));
    assert!(matches!(message(Units::Binary, &[1.0, 0.0, 1.0]), Error::Shape { .. }));
}

#[test]
fn whole_numbers_and_one_hot_groups_are_the_same_categories() {
    let machine = Rbm::new((Units::Categorical { q: 3 }, 2), (Units::Binary, 1)).unwrap();
    let state = |values: &[f64]| {
        Batch::from_rows(machine.machine(), values.len(), values)
            .unwrap()
            .to_state(machine.machine())
            .unwrap()
    };
    assert_eq!(state(&[2.0, 0.0]), state(&[0.0, 0.0, 1.0, 1.0, 0.0, 0.0]));
}

#[test]
fn data_that_does_not_fit_is_refused_before_training() {
    let machine = || Rbm::binary(4, 2).unwrap().into_machine();
    let data = |values: Vec<f32>, n| {
        Dataset::new(Table::from_real(values, n).unwrap(), Binarize::None).unwrap()
    };
    let refuse = |data: &Dataset, plan: &Plan| train(machine(), data, plan, &mut []).unwrap_err();
    let plan = Plan::default();
    let wide = refuse(&data(vec![0.0; 10], 5), &plan);
    assert_eq!(wide.to_string(), "the data has 5 columns, the visible layers take 4");
    assert!(matches!(
        refuse(&data(vec![0.0, 0.0, 0.0, f32::NAN], 4), &plan),
        Error::EmptyColumn { column: 3, n_rows: 1 }
    ));
    assert!(Table::from_real(vec![], 4).is_err() && Table::from_real(vec![0.0; 5], 4).is_err());
    let good = data(vec![0.0, 1.0, 0.0, 1.0], 4);
    for plan in [
        Plan { batch: 0, ..Plan::default() },
        Plan { chains: 0, ..Plan::default() },
        Plan { learning_rate: f64::NAN, ..Plan::default() },
        Plan { learning_rate: -1.0, ..Plan::default() },
        Plan { l2: f64::INFINITY, ..Plan::default() },
        Plan { momentum: "1.0".parse().unwrap(), ..Plan::default() },
        Plan { k: "0".parse().unwrap(), ..Plan::default() },
        Plan { max_norm: Some(0.0), ..Plan::default() },
        Plan { offset_rate: 2.0, ..Plan::default() },
        Plan { sparsity_target: Some(7.0), ..Plan::default() },
        Plan { rule: Rule::Pt, replicas: 1, ..Plan::default() },
        Plan { rule: Rule::Ptt, reservoir: Some(99), ..Plan::default() },
        Plan { rule: Rule::Ptt, freeze_below: Some(1.0), ..Plan::default() },
        Plan { rule: Rule::Ptt, rollback_below: Some(0.3), ..Plan::default() },
        Plan { rule: Rule::Ptt, reservoir: Some(usize::MAX), ..Plan::default() },
    ] {
        assert!(matches!(refuse(&good, &plan), Error::Setting { .. }), "{plan:?}");
    }
    let large = Rbm::binary(4, 2).unwrap();
    assert!(
        train(large.into_machine(), &good, &Plan { epochs: 0, ..Plan::default() }, &mut []).is_ok()
    );
}

#[test]
fn clamps_states_and_ladders_of_another_shape_are_refused() {
    let rbm = Rbm::binary(4, 2).unwrap().into_machine();
    let other = Rbm::binary(4, 3).unwrap().into_machine();
    let sampler = Sampler::new(rbm.clone(), Arithmetic::F64);
    let mut x = State::zeros(&rbm, 2).unwrap();
    let mut try_clamp = |clamp: Clamp| sampler.gibbs(&clamp, &mut x, 1, Stream::new(0));
    assert!(try_clamp(Clamp::none().with_units(LayerId(0), vec![true; 3])).is_err());
    assert!(try_clamp(Clamp::layers([LayerId(2)])).is_err());
    assert!(
        try_clamp(Clamp::none().with_mask(LayerId(0), Array2::default((3, 4)).view())).is_err()
    );
    assert!(
        try_clamp(Clamp::none().with_mask(LayerId(0), Array2::default((2, 5)).view())).is_err()
    );
    assert!(try_clamp(Clamp::none().with_mask(LayerId(0), Array2::default((2, 4)).view())).is_ok());
    let mut foreign = State::zeros(&other, 2).unwrap();
    assert!(sampler.gibbs(&Clamp::none(), &mut foreign, 1, Stream::new(0)).is_err());
    assert!(rbm.energies(&foreign).is_err() && rbm.theta(LayerId(0), &foreign, 0).is_err());
    for settings in [
        MeanField { damping: 1.0, ..MeanField::default() },
        MeanField { max_sweeps: 0, ..MeanField::default() },
    ] {
        assert!(sampler.mean_field(&Clamp::none(), &mut x, settings).is_err());
    }
    let mut state = State::zeros(&rbm, 2).unwrap();
    assert!(state.set_row(LayerId(0), 2, &[0.0; 4]).is_err());
    assert!(state.set_row(LayerId(0), 0, &[0.0; 3]).is_err());
    assert!(state.set_row(LayerId(9), 0, &[0.0; 3]).is_err());
    let base = || harmonium::machine::Base::uniform(&rbm);
    for betas in [&[][..], &[0.5], &[0.0, 0.0, 1.0], &[-0.1, 1.0], &[0.0, f64::NAN, 1.0]] {
        assert!(Tempering::new(&rbm, 3, betas, base(), Stream::new(0)).is_err(), "{betas:?}");
    }
    assert!(Tempering::new(&rbm, 0, &[0.0, 1.0], base(), Stream::new(0)).is_err());
    let mut machine = rbm.clone();
    assert!(machine.recenter(&[vec![0.0; 4]]).is_err());
    assert!(machine.recenter(&[vec![0.0; 4], vec![f64::NAN; 2]]).is_err());
    assert!(machine.recenter(&[vec![0.0; 4], vec![0.0; 3]]).is_err());
    assert_eq!(machine, rbm, "a refused change changes nothing");
}

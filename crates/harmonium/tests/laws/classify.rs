//! Classes against sums over all states.

use crate::dbn::{all_values, dataset};
use crate::machines::{self, assert_close, moved, noise, some_states};
use crate::model_dbn::{joint, labelled};
use harmonium::data::Labels;
use harmonium::engine::Arithmetic;
use harmonium::evaluation::row_sums::{self, RowWork};
use harmonium::machine::{LayerId, Machine, State};
use harmonium::model::{ClassMethod, Classified, Classifying, Completing};
use harmonium::models::with_labels;
use harmonium::moments::Moments;
use harmonium::progress::Silent;
use harmonium::sampling::{Clamp, Sampler};
use harmonium::{Binarize, Dataset, Error, Model, exact};
use ndarray::{Array2, Axis};

pub(crate) const Q: usize = 3;

/// The layer of labels: behind all others that data goes into.
pub(crate) fn labels(machine: &Machine) -> LayerId {
    *machine.visible_layers().last().unwrap()
}

/// Every machine under law with three classes beside its visible layer, all weights strong.
pub(crate) fn machines() -> Vec<(String, Machine)> {
    let labelled = |(name, machine): (String, Machine)| {
        let machine = with_labels(&machine, Q).unwrap();
        let mut step = Moments::zeros(&machine);
        step.bias[labels(&machine).0].iter_mut().enumerate().for_each(|(y, b)| *b = noise(31, y));
        let weights = step.weights.last_mut().unwrap();
        weights.iter_mut().enumerate().for_each(|(i, w)| *w = 3.0 * noise(32, i));
        (name, moved(&machine, &step))
    };
    machines::all().into_iter().map(labelled).collect()
}

/// The visible layers but the labels.
fn inputs(machine: &Machine) -> Vec<LayerId> {
    machine.visible_layers().into_iter().filter(|&l| l != labels(machine)).collect()
}

/// Some rows of data, and the state that holds them.
pub(crate) fn some_rows(machine: &Machine, n: usize) -> (Dataset, State) {
    let mut x = some_states(machine, n, 5);
    let mut values = Vec::new();
    for row in 0..n {
        for l in inputs(machine) {
            // A table holds 32-bit numbers.
            let cells: Vec<f64> = x.row(l, row).iter().map(|v| f64::from(*v as f32)).collect();
            x.set_row(l, row, &cells).unwrap();
            values.extend(cells);
        }
    }
    let array = Array2::from_shape_vec((n, values.len() / n), values).unwrap();
    let data = Dataset::from_array(array.view()).unwrap().binarized(Binarize::None).unwrap();
    (data, x)
}

/// $s_y$ of each row with what `clamp` holds besides the label.
fn log_sums(machine: &Machine, clamp: &Clamp, x: &State, class: usize) -> Vec<f64> {
    exact::log_sums(machine, &holding(machine, clamp), &with_class(machine, x, class)).unwrap()
}

fn holding(machine: &Machine, clamp: &Clamp) -> Clamp {
    clamp.clone().with_units(labels(machine), vec![true])
}

fn with_class(machine: &Machine, x: &State, class: usize) -> State {
    let mut x = x.clone();
    let one: Vec<f64> = (0..machine.layer(labels(machine)).len())
        .map(|k| f64::from(u8::from(k == class)))
        .collect();
    (0..x.n_rows()).for_each(|row| x.set_row(labels(machine), row, &one).unwrap());
    x
}

/// $p(y \mid x)$ by enumeration.
fn enumerated(machine: &Machine, clamp: &Clamp, x: &State) -> Array2<f64> {
    let mut p = Array2::zeros((x.n_rows(), Q));
    for y in 0..Q {
        let sums = log_sums(machine, clamp, x, y);
        sums.into_iter().enumerate().for_each(|(row, s)| p[(row, y)] = s.exp());
    }
    let totals = p.sum_axis(Axis(1)).insert_axis(Axis(1));
    p / totals
}

fn assert_same(name: &str, expected: &Array2<f64>, found: &Array2<f64>) {
    assert_eq!(expected.dim(), found.dim(), "{name}");
    expected.iter().zip(found).for_each(|(e, f)| assert_close(*e, *f, 1e-9, name));
}

fn by(model: &Model, data: &Dataset, method: ClassMethod, seed: u64) -> Result<Classified, Error> {
    let classifying = Classifying { method, seed, ..Classifying::default() };
    model.classify_with(data, &classifying, &mut Silent)
}

#[test]
fn classes_have_the_probabilities_of_the_machine() {
    for (name, machine) in machines() {
        let (data, x) = some_rows(&machine, 7);
        let clamp = Clamp::layers(inputs(&machine));
        let expected = enumerated(&machine, &clamp, &x);
        let labels: usize = inputs(&machine).iter().map(|&l| machine.layer(l).len()).sum();
        let model = Model::from(machine);
        let found = model.classify(&data).unwrap();
        assert_eq!((found.method, found.classes.len()), (ClassMethod::Exact, Q), "{name}");
        assert!(found.std_errors.is_none() && found.errors.is_none());
        assert_same(&name, &expected, &found.probabilities);
        for (row, &best) in expected.rows().into_iter().zip(&found.predicted) {
            assert!(row.iter().all(|p| *p <= row[best] + 1e-9), "{name}");
        }
        // Completing the labels is the same verb.
        let completing = Completing::default();
        let filled = model.complete_with(&data, None, &completing, &mut Silent).unwrap();
        assert_eq!(filled.n_missing, 7, "{name}");
        let columns: Vec<usize> = (labels..labels + Q).collect();
        assert_same(&name, &expected, &filled.values.select(Axis(1), &columns));
        assert!(filled.values.iter().all(|v| v.is_finite()));
    }
}

#[test]
fn missing_cells_are_summed_out() {
    for (name, machine) in machines() {
        let finite = |&l: &LayerId| machine.layer(l).units.is_finite();
        if !inputs(&machine).iter().all(finite) || inputs(&machine).len() > 1 {
            continue;
        }
        let (data, x) = some_rows(&machine, 5);
        let l = inputs(&machine)[0];
        let (n, group) = (machine.layer(l).n_units(), machine.layer(l).units.group());
        // Another unit is missing in each row.
        let held = Array2::from_shape_fn((5, n), |(row, unit)| unit != row % n);
        let mask = Array2::from_shape_fn((5, n * group), |(row, c)| held[(row, c / group)]);
        let clamp = Clamp::none().with_mask(l, held.view());
        let expected = enumerated(&machine, &clamp, &x);
        let found = Model::from(machine).classify(&data.with_mask(mask.view()).unwrap()).unwrap();
        assert_eq!(found.method, ClassMethod::Exact, "{name}");
        assert_same(&name, &expected, &found.probabilities);
    }
}

/// A bound misses the sum of each class by a divergence, and the logarithm of a probability by at most the
/// largest of them.
#[test]
fn mean_field_is_as_good_as_its_bounds() {
    for (name, machine) in machines() {
        let (data, x) = some_rows(&machine, 7);
        let clamp = Clamp::layers(inputs(&machine));
        let expected = enumerated(&machine, &clamp, &x);
        let sampler = Sampler::new(machine.clone(), Arithmetic::F32);
        let mut gaps = vec![0.0_f64; 7];
        for y in 0..Q {
            let given = with_class(&machine, &x, y);
            let work = RowWork::default();
            let bounds =
                row_sums::bounds(&sampler, &Clamp::visible(&machine), &given, &work).unwrap().0;
            for (row, s) in log_sums(&machine, &clamp, &x, y).into_iter().enumerate() {
                gaps[row] = gaps[row].max(s - bounds.rows[row]);
            }
        }
        let found = by(&Model::from(machine), &data, ClassMethod::MeanField, 0).unwrap();
        assert_eq!(found.method, ClassMethod::MeanField);
        for (row, gap) in gaps.into_iter().enumerate() {
            for y in 0..Q {
                let off = found.probabilities[(row, y)].ln() - expected[(row, y)].ln();
                assert!(off.abs() <= gap + 1e-5, "{name}, row {row}: {off} of {gap}");
            }
        }
    }
}

/// The errors of annealed probabilities come from 8 chains, so that their ratios are distributed as
/// Student's t with 7 degrees of freedom: 0.5 % are beyond 4.
#[test]
fn annealed_classes_know_their_errors() {
    let (mut n, mut beyond) = (0, 0);
    for name in ["chain of spin", "chain of binary", "hidden lateral of categorical"] {
        let machine = with_labels(&machines::named(name), Q).unwrap();
        let mut step = Moments::zeros(&machine);
        let weights = step.weights.last_mut().unwrap();
        weights.iter_mut().enumerate().for_each(|(i, w)| *w = 2.0 * noise(33, i));
        let machine = moved(&machine, &step);
        let (data, x) = some_rows(&machine, 10);
        let expected = enumerated(&machine, &Clamp::layers(inputs(&machine)), &x);
        let model = Model::from(machine);
        for seed in 0..10 {
            let found = by(&model, &data, ClassMethod::Ais, seed).unwrap();
            let errors = found.std_errors.unwrap();
            for ((p, e), error) in found.probabilities.iter().zip(&expected).zip(&errors) {
                n += 1;
                beyond += usize::from((p - e).abs() > 4.0 * error + 1e-9);
            }
        }
        // One seed, one answer.
        let again = |seed| by(&model, &data, ClassMethod::Ais, seed).unwrap().probabilities;
        assert_eq!(again(3), again(3));
        assert_ne!(again(3), again(4));
    }
    let (n, share) = (f64::from(n), 0.005);
    let most = n * share + 4.0 * (n * share).sqrt();
    // Classes of one row share their chains' luck: three of them count as one.
    assert!((beyond as f64) < 3.0 * most, "{beyond} of {n}");
}

#[test]
fn classes_of_a_network_are_exact_where_that_is_affordable() {
    let dbn = labelled();
    let rows = all_values(dbn.layer(0));
    let data = dataset(&rows);
    let model = Model::from(dbn.clone());
    let found = model.classify(&data).unwrap();
    assert_eq!(found.method, ClassMethod::Exact);
    for (row, v) in rows.iter().enumerate() {
        let p: Vec<f64> = (0..Q).map(|y| joint(&dbn, v, y)).collect();
        let total: f64 = p.iter().sum();
        for y in 0..Q {
            assert_close(p[y] / total, found.probabilities[(row, y)], 1e-9, "network");
        }
    }
    let drawn = by(&model, &data, ClassMethod::Recognition, 1).unwrap();
    assert_eq!(drawn.method, ClassMethod::Recognition);
    let errors = drawn.std_errors.unwrap();
    // The mean of many draws is the truth of the recognition distribution; a hundred are near it.
    let many = Classifying { method: ClassMethod::Recognition, draws: 20_000, seed: 2 };
    let many = model.classify_with(&data, &many, &mut Silent).unwrap();
    for ((p, e), error) in drawn.probabilities.iter().zip(&many.probabilities).zip(&errors) {
        assert!((p - e).abs() < 4.5 * error + 1e-9, "{p} {e} {error}");
    }
}

#[test]
fn predictions_are_compared_with_labels_by_name() {
    let (_, machine) = machines().swap_remove(0);
    let (data, _) = some_rows(&machine, 7);
    let mut model = Model::from(machine);
    model.about.data.classes = ["ant", "bee", "cow"].map(str::to_owned).to_vec();
    let names = ["cow", "bee", "cow", "cow", "bee", "cow", "bee"];
    let labelled = data.clone().with_labels(Labels::from_texts(names)).unwrap();
    let found = model.classify(&labelled).unwrap();
    assert_eq!(found.probabilities, model.classify(&data).unwrap().probabilities);
    let errors = found.errors.unwrap();
    let wrong = names.iter().zip(&found.predicted).filter(|(n, p)| **n != found.classes[**p]);
    assert_close(wrong.count() as f64 / 7.0, errors.rate, 1e-12, "rate");
    assert_eq!((errors.n, errors.confusion.row(0).sum(), errors.confusion.row(2).sum()), (7, 0, 4));
    assert!(errors.lower <= errors.rate && errors.rate <= errors.upper);
    let unknown = data.clone().with_labels(Labels::from_texts(["yak"; 7])).unwrap();
    let error = model.classify(&unknown).unwrap_err();
    assert!(error.to_string().contains("yak") && error.to_string().contains("ant, bee, cow"));
}

#[test]
fn what_cannot_be_classified_is_refused() {
    let plain = Model::from(machines::named("rbm of binary"));
    let (labelled, data) = {
        let (_, machine) = machines().swap_remove(0);
        let data = some_rows(&machine, 3).0;
        (Model::from(machine), data)
    };
    assert!(matches!(plain.classify(&data), Err(Error::NoLabels)));
    assert!(by(&labelled, &data, ClassMethod::Recognition, 0).is_err());
    assert!(by(&Model::from(crate::model_dbn::labelled()), &data, ClassMethod::Ais, 0).is_err());
}

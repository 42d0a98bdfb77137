//! Several modalities, of which a row may lack some: marginals, gradients and conditional samples against enumeration, for
//! all pairs of unit kinds; pre-training around what is missing; retrieval.

use crate::machines::{assert_close, assert_gradient, noise, some_states};
use crate::model::conditional_means;
use crate::model_samples::{counts, visible_states};
use crate::statistics::assert_distributed;
use harmonium::engine::Arithmetic;
use harmonium::estimators::{Context, Estimator, ExactModel, ExactPosterior};
use harmonium::exact;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role, State};
use harmonium::model::{Nearness, Retrieved};
use harmonium::models::MultimodalDbm;
use harmonium::moments::Moments;
use harmonium::progress::Silent;
use harmonium::random::Stream;
use harmonium::sampling::{Clamp, Sampler};
use harmonium::schema::Feed;
use harmonium::units::Units;
use harmonium::{Dataset, Error, Method, Model, Plan, Sweeps};
use harmonium_data::{Binarize, Modality, Source, Table};
use ndarray::{Array2, Axis, array};

const KINDS: [(&str, Units, usize); 4] = [
    ("binary", Units::Binary, 2),
    ("spin", Units::Spin, 2),
    ("categorical", Units::Categorical { q: 3 }, 1),
    ("gaussian", Units::Gaussian, 2),
];

/// Every two kinds, the first under a hidden layer of its own, the second under none; parameters at random.
fn pairs() -> Vec<(String, Model)> {
    let mut all = Vec::new();
    for (i, &(a, first, n)) in KINDS.iter().enumerate() {
        for &(b, second, m) in &KINDS[i..] {
            let layer = |name: &str, units, n| Layer::new(name, Role::Visible, units, n).unwrap();
            let visible = vec![layer("one", first, n), layer("two", second, m)];
            let hidden = [("one".to_owned(), vec![2])];
            let blank = MultimodalDbm::over(visible, &hidden, 2).unwrap().into_machine();
            all.push((format!("{a} and {b}"), of_two(random(&blank, 90 + i as u64))));
        }
    }
    all
}

fn random(machine: &Machine, seed: u64) -> Machine {
    let mut layers = machine.layers().to_vec();
    for (l, layer) in layers.iter_mut().enumerate() {
        let at = |k: u64, i: usize| noise(seed * 10 + k, l * 40 + i);
        layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = 2.0 * at(1, i));
        layer.offset.iter_mut().enumerate().for_each(|(i, o)| *o = 0.2 + at(2, i));
        layer.own.iter_mut().enumerate().for_each(|(i, g)| *g = 1.5 + at(3, i));
    }
    let coupling = |c: &Coupling| {
        let (a, b) = c.between;
        let (n, m) = (machine.layer(a).len(), machine.layer(b).len());
        let w = |i: usize, j: usize| 4.0 * noise(seed * 10 + 4, a.0 * 900 + i * 31 + j);
        Coupling::between(a, b, Matrix::from_fn(n, m, w).unwrap())
    };
    Machine::new(layers, machine.couplings().iter().map(coupling).collect()).unwrap()
}

/// A model that knows its two modalities, one column for each entry.
fn of_two(machine: Machine) -> Model {
    let lens: Vec<usize> =
        machine.visible_layers().iter().map(|&l| machine.layer(l).len()).collect();
    let mut model = Model::from(machine);
    let modality =
        |name: &str, columns| Modality { name: name.into(), columns, ..Modality::default() };
    model.about.data.modalities =
        vec![modality("one", 0..lens[0]), modality("two", lens[0]..lens[0] + lens[1])];
    model
}

/// Rows of one modality of some states, as 32-bit numbers.
fn rows_of(machine: &Machine, x: &State, l: LayerId) -> (Array2<f64>, Dataset) {
    let n = machine.layer(l).len();
    let values = Array2::from_shape_fn((x.n_rows(), n), |(r, c)| f64::from(x.row(l, r)[c] as f32));
    let data = Dataset::from_array(values.view()).unwrap();
    (values, data)
}

/// The first modality of three rows is given, the second is missing: as rows of the model, and as a state with its clamp.
fn half(model: &Model, seed: u64) -> (Dataset, State, Clamp) {
    let machine = model.top().unwrap();
    let one = machine.visible_layers()[0];
    let mut x = some_states(machine, 3, seed);
    let (values, data) = rows_of(machine, &x, one);
    for row in 0..3 {
        x.set_row(one, row, &values.row(row).to_vec()).unwrap();
    }
    (model.join(vec![("one".into(), data)]).unwrap(), x, Clamp::layers([one]))
}

fn alone(machine: &Machine, x: &State, row: usize) -> State {
    let mut one = State::zeros(machine, 1).unwrap();
    machine.layer_ids().for_each(|l| one.set_row(l, 0, x.row(l, row)).unwrap());
    one
}

#[test]
fn a_missing_modality_is_summed_out_of_scores_and_filled_with_its_means() {
    for (name, model) in pairs() {
        let machine = model.top().unwrap();
        let (data, x, clamp) = half(&model, 31);
        let log_z = exact::log_partition(machine).unwrap();
        let sums = exact::log_sums(machine, &clamp, &x).unwrap();
        let score = model.score(&data, Method::Exact).unwrap();
        let filled = model.complete(&data).unwrap();
        let entries = model.entries_of("two").unwrap();
        for row in 0..3 {
            assert_close(sums[row] - log_z, score.rows[row], 1e-9, &name);
            let means = conditional_means(machine, &clamp, &alone(machine, &x, row));
            for i in entries.clone() {
                assert_close(means[i], filled[[row, i]], 1e-9, &name);
            }
        }
    }
}

/// $\ln p(\text{two} \mid \text{one})$ by enumeration.
#[test]
fn one_modality_is_scored_given_the_other() {
    for (name, model) in pairs() {
        let machine = model.top().unwrap();
        let (_, x, clamp) = half(&model, 32);
        let visible = machine.visible_layers();
        let (first, second) = (rows_of(machine, &x, visible[0]), rows_of(machine, &x, visible[1]));
        let mut whole = x.clone();
        for row in 0..3 {
            whole.set_row(visible[1], row, &second.0.row(row).to_vec()).unwrap();
        }
        let both = vec![("two".to_owned(), second.1), ("one".to_owned(), first.1)];
        let data = model.join(both).unwrap();
        let known = model.without_modality(&data, "two").unwrap();
        let found = model.score_given(&data, &known, 0, &mut Silent).unwrap();
        let above = exact::log_sums(machine, &Clamp::visible(machine), &whole).unwrap();
        let below = exact::log_sums(machine, &clamp, &whole).unwrap();
        for row in 0..3 {
            assert_close(above[row] - below[row], found.rows[row], 1e-9, &name);
        }
    }
}

#[test]
fn the_gradient_with_a_missing_modality_is_the_slope_of_what_is_seen() {
    for (name, model) in pairs() {
        let machine = model.top().unwrap();
        let (data, x, _) = half(&model, 33);
        // A row that has both stands beside those that lack one.
        let visible = machine.visible_layers();
        let parts = [(0, "one"), (1, "two")].map(|(v, name)| {
            let (_, rows) = rows_of(machine, &x, visible[v]);
            (name.to_owned(), rows.select_rows(&[0]).unwrap())
        });
        let both = model.join(parts.to_vec()).unwrap();
        let mut values = data.table().to_array();
        values.append(Axis(0), both.table().to_array().view()).unwrap();
        let data = Dataset::from_array(values.view()).unwrap();
        let feed = Feed::of(machine, &data).unwrap().filled_layers().unwrap();
        assert!(feed.has_holes());
        let batch = feed.batch(0..4, Stream::new(0));
        let side = |estimator: &mut dyn Estimator| {
            let sampler = Sampler::new(machine.clone(), Arithmetic::F64);
            let context =
                Context { sampler: &sampler, batch: &batch, k: 1, stream: Stream::new(0) };
            let mut moments = Moments::zeros(machine);
            estimator.estimate(&context).unwrap().add_to(machine, 1.0, &mut moments);
            moments
        };
        let gradient = side(&mut ExactPosterior::default()).minus(&side(&mut ExactModel));
        let state = batch.to_state(machine).unwrap();
        assert_gradient(&name, machine, &gradient, |m| {
            let logs = exact::log_probabilities(m, batch.clamp(), &state).unwrap();
            logs.iter().sum::<f64>() / logs.len() as f64
        });
    }
}

#[test]
fn samples_of_a_missing_modality_have_the_conditional_probabilities() {
    const N: usize = 1500;
    for (name, model) in pairs().into_iter().filter(|(name, _)| !name.contains("gaussian")) {
        let machine = model.top().unwrap();
        let (data, x, clamp) = half(&model, 34);
        let samples = model.given(&data, None).unwrap().sample(N, Sweeps(60), 5).unwrap();
        for row in 0..3 {
            let own = samples.slice_axis(Axis(0), (row * N..(row + 1) * N).into()).to_owned();
            let (states, p) = visible_states(machine, &clamp, &alone(machine, &x, row));
            assert_distributed(&name, &counts(machine, &states, &own), &p);
        }
    }
}

/// Two pictures of one hidden cause and numbers that follow it: half of the rows lack one of the two.
fn pictures_and_numbers(n: usize, holes: bool) -> Dataset {
    let cause = |row: usize| noise(40, row) > 0.0;
    let bits = Array2::from_shape_fn((n, 6), |(row, c)| {
        f32::from(u8::from((noise(41, row * 6 + c) < 0.4) == cause(row)))
    });
    let numbers = Array2::from_shape_fn((n, 2), |(row, c)| {
        let middle = if cause(row) { 1.0 } else { -1.0 };
        (middle + 0.8 * noise(42, row * 2 + c)) as f32
    });
    let mask =
        |which: usize| Array2::from_shape_fn((n, 1), |(row, _)| !(holes && row % 4 == which));
    let masked = |values: &Array2<f32>, which: usize| {
        let seen = mask(which);
        let there = Array2::from_shape_fn(values.dim(), |(row, _)| seen[[row, 0]]);
        Dataset::from_array(values.view()).unwrap().with_mask(there.view()).unwrap()
    };
    let pictures = masked(&bits, 0);
    let numbers = masked(&numbers, 1);
    Dataset::join(vec![Source::new("picture", pictures), Source::new("numbers", numbers)]).unwrap()
}

/// Pathways of bits and of real numbers, one of depth 0, are pre-trained and joined, with rows that lack a modality.
#[test]
fn pathways_learn_around_missing_modalities() {
    for holes in [false, true] {
        for depths in [[3, 2], [3, 0], [0, 2]] {
            let data = pictures_and_numbers(400, holes);
            let layers = harmonium::model::fitting_layers(&data, None, None).unwrap();
            let names: Vec<&str> = layers.iter().map(|l| l.name.as_str()).collect();
            assert_eq!(names, ["picture", "numbers"]);
            let hidden: Vec<(String, Vec<usize>)> =
                [("picture", depths[0]), ("numbers", depths[1])]
                    .into_iter()
                    .filter(|(_, n)| *n > 0)
                    .map(|(name, n)| (name.to_owned(), vec![n]))
                    .collect();
            let dbm = MultimodalDbm::over(layers, &hidden, 3).unwrap();
            let plan = Plan {
                pretrain_epochs: 30,
                learning_rate: 0.005,
                pretrain_learning_rate: 0.02,
                batch: 10,
                ..Plan::for_epochs(200)
            };
            let model = dbm.train(&data, &plan).unwrap();
            let names: Vec<&str> = model.modalities().iter().map(|m| m.name.as_str()).collect();
            assert_eq!(names, ["picture", "numbers"]);
            let test = pictures_and_numbers(200, false);
            let known = model.without_modality(&test, "picture").unwrap();
            let found = model.score_given(&test, &known, 0, &mut Silent).unwrap();
            let alone = found.baseline.unwrap();
            // The cause is known from the numbers: 6 bits that are right in 9 of 10 cases.
            assert!(
                found.mean > alone + 1.0,
                "holes {holes}, depths {depths:?}: {} is not above {alone}",
                found.mean
            );
        }
    }
}

#[test]
fn names_of_modalities_are_checked() {
    let data = pictures_and_numbers(20, false);
    let layers = harmonium::model::fitting_layers(&data, None, None).unwrap();
    let wrong = [("sound".to_owned(), vec![3])];
    let refused = MultimodalDbm::over(layers.clone(), &wrong, 3);
    assert!(matches!(refused, Err(Error::NoModality { .. })), "{refused:?}");
    assert!(MultimodalDbm::over(layers[..1].to_vec(), &[], 3).is_err());
    let (_, model) = pairs().remove(0);
    let three = Dataset::from_array(array![[0.0_f32, 1.0, 1.0]].view()).unwrap();
    let wide = model.join(vec![("one".into(), three.clone())]);
    assert!(matches!(wide, Err(Error::ColumnCount { expected: 2, found: 3, .. })), "{wide:?}");
    assert!(matches!(model.join(vec![("three".into(), three)]), Err(Error::NoModality { .. })));
    assert!(model.join(Vec::new()).is_err());
}

#[test]
fn ranks_are_those_of_sorted_rows() {
    let nearness = array![[0.9, 0.5, 0.1], [0.2, 0.2, 0.2], [0.3, 0.8, 0.1]];
    let found = Retrieved { nearness, by: Nearness::Features };
    assert_eq!(found.nearest(2, 2), [1, 0]);
    let own = found.judge(|q, a| q == a);
    // Ranks 1, 2 (one of three equal ones, on average) and 3.
    assert_eq!((own.median_rank, own.n_queries, own.recall_at_10), (2.0, 3, 1.0));
    let expected = (1.0 + (1.0 + 0.5 + 1.0 / 3.0) / 3.0 + 1.0 / 3.0) / 3.0;
    assert_close(expected, own.mean_average_precision, 1e-12, "average precision");
    let none = found.judge(|_, _| false);
    assert!(none.median_rank.is_nan() && none.n_queries == 0);
}

/// Where the query says nothing, a row is as near as its units are more probable in the model than in the data.
#[test]
fn nearness_by_the_conditional_is_a_ratio_of_probabilities() {
    let layer = |name: &str| Layer::new(name, Role::Visible, Units::Binary, 2).unwrap();
    let blank = MultimodalDbm::over(vec![layer("one"), layer("two")], &[], 1).unwrap();
    let mut layers = blank.machine().layers().to_vec();
    layers[1].bias = vec![1.0, -0.5];
    let machine = Machine::new(layers, blank.machine().couplings().to_vec()).unwrap();
    let mut model = of_two(machine);
    model.about.data.means = vec![0.5, 0.5, 0.3, 0.6];
    let bits = Table::from_bytes(vec![1, 0, 0, 1], 2, 1).unwrap();
    let rows = || Dataset::new(bits.clone(), Binarize::Threshold(0.5)).unwrap();
    let queries = model.join(vec![("one".into(), rows())]).unwrap();
    let among = model.join(vec![("two".into(), rows())]).unwrap();
    let found =
        model.retrieve(&queries, ("two", &among), Nearness::Conditional, &mut Silent).unwrap();
    let p = |b: f64| 1.0 / (1.0 + (-b).exp());
    let first = (p(1.0) / 0.3_f64).ln() + ((1.0 - p(-0.5)) / 0.4_f64).ln();
    let second = ((1.0 - p(1.0)) / 0.7_f64).ln() + (p(-0.5) / 0.6_f64).ln();
    for q in 0..2 {
        assert_close(first, found.nearness[[q, 0]], 1e-5, "the first row");
        assert_close(second, found.nearness[[q, 1]], 1e-5, "the second row");
    }
}

/// Rows of a modality that was learned together find their partners.
fn partners_are_found_by(by: Nearness) {
    let data = pictures_and_numbers(400, false);
    let layers = harmonium::model::fitting_layers(&data, None, None).unwrap();
    let hidden = [("picture".into(), vec![3]), ("numbers".into(), vec![2])];
    let dbm = MultimodalDbm::over(layers, &hidden, 3).unwrap();
    let plan = Plan {
        pretrain_epochs: 30,
        learning_rate: 0.005,
        pretrain_learning_rate: 0.02,
        batch: 10,
        ..Plan::for_epochs(200)
    };
    let model = dbm.train(&data, &plan).unwrap();
    let test = data.select_rows(&(0..100).collect::<Vec<_>>()).unwrap();
    let found = model.retrieve(&test, ("numbers", &test), by, &mut Silent).unwrap();
    let judged = found.judge(|q, a| q == a);
    // Ranks by chance are uniform up to 100; the median of 100 of them is 50.5 with a standard deviation of 5. Rows of the same cause, about
    // 50, differ in noise alone, so that the best there is would be 25.
    assert!(judged.median_rank < 50.5 - 2.0 * 5.0, "{by:?}: {judged:?}");
}

#[test]
fn partners_are_found_by_features_more_often_than_by_chance() {
    partners_are_found_by(Nearness::Features);
}

#[test]
#[ignore = "mean field over free real numbers settles in one mode whatever the query: bits and categories are found, real modalities are not"]
fn partners_are_found_by_conditionals_more_often_than_by_chance() {
    partners_are_found_by(Nearness::Conditional);
}

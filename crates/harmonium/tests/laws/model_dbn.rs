//! The verbs of a deep belief network against sums over all its states.

use crate::dbn::{all_values, conditional, dataset, networks, paths};
use crate::machines::assert_close;
use crate::model::assert_near;
use crate::statistics::assert_distributed;
use harmonium::data::Labels;
use harmonium::engine::Arithmetic;
use harmonium::machine::State;
use harmonium::model::{Behind, Completing, Drawing, Extracting, Scoring, Show};
use harmonium::models::{Dbn, Directed};
use harmonium::progress::Silent;
use harmonium::sampling::Clamp;
use harmonium::{Dataset, Error, Method, Model, Sweeps, exact};
use ndarray::{Array2, Axis, arr2};

/// $\ln p_\text{top}$ of the layer below the top with a class.
fn top_with_class(dbn: &Dbn, below: &[f64], class: usize) -> f64 {
    let mut x = State::zeros(dbn.top(), 1).unwrap();
    x.set_row(Dbn::BELOW_TOP, 0, below).unwrap();
    let label: Vec<f64> = (0..3).map(|k| f64::from(u8::from(k == class))).collect();
    x.set_row(Dbn::LABELS, 0, &label).unwrap();
    let clamp = Clamp::layers([Dbn::BELOW_TOP, Dbn::LABELS]);
    exact::log_probabilities(dbn.top(), &clamp, &x).unwrap()[0]
}

/// $p(v, y)$ of a network with labels, summed over all paths.
pub(crate) fn joint(dbn: &Dbn, v: &[f64], class: usize) -> f64 {
    let top = dbn.directed().len();
    let of = |(path, _, _): &(Vec<Vec<f64>>, f64, f64)| {
        let down = dbn.directed().iter().enumerate().map(|(l, part)| {
            let (high, low) = (&path[l + 1][..], &path[l][..]);
            conditional(&part.generative, (Directed::ABOVE, high), (Directed::BELOW, low))
        });
        down.product::<f64>() * top_with_class(dbn, &path[top], class).exp()
    };
    paths(dbn, v).iter().map(of).sum()
}

fn with_classes(dbn: Dbn) -> Model {
    let mut model = Model::from(dbn);
    model.about.data.classes = ["a", "b", "c"].map(str::to_owned).to_vec();
    model
}

pub(crate) fn labelled() -> Dbn {
    networks().into_iter().find(|(name, _)| *name == "labels").unwrap().1
}

fn counts(states: &[Vec<f64>], rows: &Array2<f64>) -> Vec<f64> {
    let mut counts = vec![0.0; states.len()];
    for row in rows.rows() {
        counts[states.iter().position(|s| *s == row.to_vec()).unwrap()] += 1.0;
    }
    counts
}

#[test]
fn samples_have_the_probabilities_of_the_network() {
    for (name, dbn) in networks() {
        let states = all_values(dbn.layer(0));
        let p: Vec<f64> =
            states.iter().map(|v| paths(&dbn, v).iter().map(|path| path.1).sum()).collect();
        let model = Model::from(dbn.clone());
        let samples = model.sample(3000, Sweeps(60), 1).unwrap();
        assert_distributed(name, &counts(&states, &samples), &p);
        // Means given the hidden units average to the same marginals.
        let arithmetic = Some(Arithmetic::F64);
        let drawing = Drawing {
            n: 3000,
            sweeps: Some(60),
            seed: 2,
            show: Show::Means,
            arithmetic,
            ..Drawing::default()
        };
        let means = model.freely().draw(&drawing, &mut Silent).unwrap().values;
        for c in 0..dbn.layer(0).len() {
            let expected: f64 = states.iter().zip(&p).map(|(v, p)| v[c] * p).sum();
            let values = means.column(c).to_vec();
            assert_near(name, &values, expected);
            let inside = |v: &f64| dbn.directed().is_empty() || (v.fract() != 0.0);
            assert!(values.iter().all(inside), "{name}: a value among the means");
        }
    }
}

#[test]
fn samples_of_a_class_have_its_probabilities() {
    let model = with_classes(labelled());
    let dbn = labelled();
    let states = all_values(dbn.layer(0));
    for (class, of) in ["a", "b", "c"].into_iter().enumerate() {
        let p: Vec<f64> = states.iter().map(|v| joint(&dbn, v, class)).collect();
        let total: f64 = p.iter().sum();
        let p: Vec<f64> = p.iter().map(|p| p / total).collect();
        let samples = model.of_class(of).unwrap().sample(3000, Sweeps(60), 3).unwrap();
        assert_distributed(of, &counts(&states, &samples), &p);
    }
    let rows = dataset(&states);
    assert!(matches!(model.given(&rows, None), Err(Error::Topology { .. })));
}

#[test]
fn completed_labels_are_the_probabilities_of_the_classes() {
    let dbn = labelled();
    let model = with_classes(dbn.clone());
    let states = all_values(dbn.layer(0));
    let data = dataset(&states);
    let completing = Completing { seed: 8, ..Completing::default() };
    let found = model.complete_with(&data, None, &completing, &mut Silent).unwrap();
    assert_eq!((found.values.dim(), found.n_missing), ((states.len(), 6), states.len()));
    let classified = model.classify(&data).unwrap();
    for (s, v) in states.iter().enumerate() {
        for class in 0..3 {
            let (a, b) = (found.values[[s, 3 + class]], classified.probabilities[[s, class]]);
            assert_close(b, a, 1e-12, &format!("{v:?}, class {class}"));
        }
        assert_eq!(found.values.row(s).to_vec()[..3], v[..], "what was observed");
    }
    let plain = Model::from(networks().swap_remove(1).1);
    let data = dataset(&all_values(networks()[1].1.layer(0)));
    assert!(matches!(plain.complete(&data), Err(Error::Topology { .. })));
}

#[test]
fn features_are_recognition_means() {
    for (name, dbn) in networks() {
        let states = all_values(dbn.layer(0));
        let model = Model::from(dbn.clone());
        let found = model.features(&dataset(&states)).unwrap();
        for (row, v) in states.iter().enumerate() {
            // Means upwards, each layer given the means below it.
            let (mut below, mut expected) = (v.clone(), Vec::new());
            for (l, part) in dbn.directed().iter().enumerate() {
                let mut mean = vec![0.0; dbn.layer(l + 1).len()];
                for h in all_values(dbn.layer(l + 1)) {
                    let from = (Directed::BELOW, &below[..]);
                    let p = conditional(&part.recognition, from, (Directed::ABOVE, &h));
                    mean.iter_mut().zip(&h).for_each(|(m, h)| *m += p * h);
                }
                expected.extend_from_slice(&mean);
                below = mean;
            }
            let mut x = State::zeros(dbn.top(), 1).unwrap();
            x.set_row(Dbn::BELOW_TOP, 0, &below).unwrap();
            let clamp = Clamp::layers([Dbn::BELOW_TOP]);
            let top = exact::moments(dbn.top(), &clamp, &x, &[1.0]).unwrap();
            expected.extend_from_slice(&top.bias[dbn.top_hidden().0]);
            assert_eq!(found.ncols(), expected.len());
            for (m, f) in expected.iter().zip(found.row(row)) {
                assert!((m - f).abs() < 1e-5, "{name}, {v:?}: {m} != {f}");
            }
        }
        let layer = Some(dbn.layer(dbn.depth()).name.clone());
        let extracting = Extracting { layer, ..Extracting::default() };
        let top = model.features_with(&dataset(&states), &extracting, &mut Silent).unwrap();
        let start = found.ncols() - dbn.layer(dbn.depth()).len();
        assert_eq!(top.values, found.slice_axis(Axis(1), (start..).into()), "{name}");
    }
}

/// The recognition distribution knows nothing of missing values: they are refused everywhere.
#[test]
fn missing_values_are_refused() {
    for (name, dbn) in networks() {
        let mut rows = all_values(dbn.layer(0));
        rows[1].iter_mut().for_each(|v| *v = f64::NAN);
        let data = dataset(&rows);
        let model = with_classes(dbn);
        assert!(model.features(&data).is_err(), "{name}: features");
        for method in [Method::Exact, Method::Bound, Method::Importance] {
            assert!(model.score(&data, method).is_err(), "{name}: {method}");
        }
        assert!(model.complete(&data).is_err(), "{name}: complete");
    }
}

#[test]
fn scores_of_rows_are_sums_over_paths() {
    for (name, dbn) in networks() {
        let states = all_values(dbn.layer(0));
        let (model, data) = (Model::from(dbn.clone()), dataset(&states));
        let exact: Vec<f64> =
            states.iter().map(|v| paths(&dbn, v).iter().map(|p| p.1).sum::<f64>().ln()).collect();
        for method in [Method::Exact, Method::Auto] {
            let found = model.score(&data, method).unwrap();
            assert_eq!(found.method, Method::Exact, "{name}");
            for (a, b) in exact.iter().zip(&found.rows) {
                assert_close(*a, *b, 1e-10, name);
            }
        }
        let mean = exact.iter().sum::<f64>() / exact.len() as f64;
        let drawn = |method| {
            let scoring = Scoring { method, draws: 2000, ..Scoring::default() };
            model.score_with(&data, &scoring, &mut Silent).unwrap()
        };
        let (bound, importance) = (drawn(Method::Bound), drawn(Method::Importance));
        // The bound is E_q[ln p(v, h) - ln q(h | v)].
        let expected = states.iter().map(|v| {
            let term = |(_, p, q): &(Vec<Vec<f64>>, f64, f64)| q * (p.ln() - q.ln());
            paths(&dbn, v).iter().map(term).sum::<f64>()
        });
        let expected = expected.sum::<f64>() / exact.len() as f64;
        let tolerance = |error: f64| 4.0 * error + 1e-9;
        let error = bound.std_error().unwrap();
        assert!((bound.mean - expected).abs() < tolerance(error), "{name}: bound {error}");
        let error = importance.std_error().unwrap();
        assert!((importance.mean - mean).abs() < tolerance(error), "{name}: importance {error}");
        assert!(bound.mean < mean + tolerance(bound.std_error().unwrap()), "{name}");
        for score in [&bound, &importance] {
            let (lower, upper) = score.interval().unwrap();
            assert!(lower <= mean + 1e-9 && upper.is_none(), "{name}: {lower} above {mean}");
            assert!(matches!(score.behind, Behind::Drawn { .. }));
            // The spread over the rows is that of the rows of this very score.
            let n = score.rows.len() as f64;
            let spread: f64 = score.rows.iter().map(|r| (r - score.mean).powi(2)).sum();
            let expected = (spread / (n - 1.0) / n).sqrt();
            assert_close(expected, score.data_std_error.unwrap(), 1e-9, name);
        }
        for method in [Method::Ais, Method::Pseudo, Method::FreeEnergy] {
            assert!(matches!(model.score(&data, method), Err(Error::Topology { .. })), "{name}");
        }
    }
}

#[test]
fn labelled_rows_are_scored_with_their_labels() {
    let dbn = labelled();
    let model = with_classes(dbn.clone());
    let states = all_values(dbn.layer(0));
    let classes: Vec<u32> = (0..8).map(|k| k % 3).collect();
    let data: Dataset = dataset(&states).with_labels(Labels::from_values(classes.clone())).unwrap();
    let found = model.score(&data, Method::Exact).unwrap();
    for ((v, class), log) in states.iter().zip(&classes).zip(&found.rows) {
        assert_close(joint(&dbn, v, *class as usize).ln(), *log, 1e-10, "with a label");
    }
    let rate = found.error_rate.unwrap();
    let best = |v: &Vec<f64>| {
        let top = dbn.directed().len();
        let p = |class: usize| {
            let of = |(path, _, q): &(Vec<Vec<f64>>, f64, f64)| {
                let logs: Vec<f64> = (0..3).map(|k| top_with_class(&dbn, &path[top], k)).collect();
                q * logs[class].exp() / logs.iter().map(|l| l.exp()).sum::<f64>()
            };
            paths(&dbn, v).iter().map(of).sum::<f64>()
        };
        (0..3).max_by(|&a, &b| p(a).total_cmp(&p(b))).unwrap()
    };
    let wrong = states.iter().zip(&classes).filter(|(v, class)| best(v) != **class as usize);
    assert!((rate - wrong.count() as f64 / 8.0).abs() <= 1.0 / 8.0, "{rate}");
    assert_eq!(model.score(&dataset(&states), Method::Exact).unwrap().error_rate, None);
    let one_row = Dataset::from_array(arr2(&[[0.0, 1.0, 0.0]]).view()).unwrap();
    assert_eq!(model.score(&one_row, Method::Exact).unwrap().data_std_error, None);
    let one_draw = Scoring { method: Method::Importance, draws: 1, ..Scoring::default() };
    for method in [Method::Importance, Method::Bound] {
        let scoring = Scoring { method, ..one_draw.clone() };
        let score = model.score_with(&one_row, &scoring, &mut Silent).unwrap();
        assert_eq!((score.std_error(), score.data_std_error), (None, None));
        let (lower, upper) = score.interval().unwrap();
        assert!(lower.is_finite() && lower < score.mean && upper.is_none(), "{lower}");
    }
}

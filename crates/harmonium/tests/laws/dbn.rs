//! Deep belief networks against sums over all their states.

use crate::machines::{assert_close, noise};
use crate::statistics::{assert_distributed, assert_mean};
use harmonium::engine::Arithmetic;
use harmonium::evaluation::{dbn as score, likelihood};
use harmonium::exact;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role, State};
use harmonium::models::{Dbn, Directed, Rbm};
use harmonium::optim::Schedule;
use harmonium::progress::Silent;
use harmonium::random::{Site, Stream};
use harmonium::sampling::{Clamp, ClassSums, DbnSampler, DbnState, Label, Pass};
use harmonium::training::{
    DbnLearner, DbnShape, EpochData, Learner, Plan, Rule, Stack, Trainer, UpDown, drive,
    initialise, sleep_gradient, train, wake_gradient,
};
use harmonium::units::Units;
use harmonium_data::{Binarize, Dataset, Labels, Table, synthetic};

type LayerOf = (&'static str, Units, usize);

/// A two-layer machine, or three with labels, with strong weights and offsets.
fn machine(visible: &[LayerOf], hidden: LayerOf, seed: u64) -> Machine {
    let layer = |(l, &(name, units, n)): (usize, &LayerOf), role| {
        let mut layer = Layer::new(name, role, units, n).unwrap();
        let at = |k: u64, i: usize| noise(seed * 10 + k, l * 40 + i);
        layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = 2.0 * at(1, i));
        layer.offset.iter_mut().enumerate().for_each(|(i, m)| *m = 0.2 + at(2, i));
        layer.own.iter_mut().enumerate().for_each(|(i, g)| *g = 1.5 + at(3, i));
        layer
    };
    let mut layers: Vec<Layer> =
        visible.iter().enumerate().map(|l| layer(l, Role::Visible)).collect();
    layers.push(layer((2, &hidden), Role::Hidden));
    let top = layers.len() - 1;
    let couple = |a: usize| {
        let w = |i, j| 4.0 * noise(seed * 10 + 5 + a as u64, i * 31 + j);
        let weights = Matrix::from_fn(layers[a].len(), layers[top].len(), w).unwrap();
        Coupling::between(LayerId(a), LayerId(top), weights)
    };
    let couplings = (0..top).map(couple).collect();
    Machine::new(layers, couplings).unwrap().with_constant(0.3).unwrap()
}

const B: Units = Units::Binary;

/// Networks with recognition and generation untied: one, two and three hidden layers, other
/// visible units, labels.
pub(crate) fn networks() -> Vec<(&'static str, Dbn)> {
    let untied = |below: LayerOf, above: LayerOf, seed: u64| Directed {
        generative: machine(&[below], above, seed),
        recognition: machine(&[below], above, seed + 50),
    };
    let (h1, h2, h3) = (("hidden1", B, 3), ("hidden2", B, 2), ("hidden3", B, 3));
    let v = |units, n| ("visible", units, n);
    let labels = ("labels", Units::Categorical { q: 3 }, 1);
    let c = Units::Categorical { q: 3 };
    let dbn = |directed, top| Dbn::new(directed, top).unwrap();
    vec![
        ("an RBM", dbn(vec![], machine(&[v(B, 4)], h1, 1))),
        ("two layers", dbn(vec![untied(v(B, 4), h1, 2)], machine(&[h1], h2, 3))),
        (
            "three layers",
            dbn(vec![untied(v(B, 3), h1, 4), untied(h1, h2, 5)], machine(&[h2], h3, 6)),
        ),
        ("categories", dbn(vec![untied(v(c, 2), h1, 7)], machine(&[h1], h2, 8))),
        ("spins", dbn(vec![untied(v(Units::Spin, 3), h1, 9)], machine(&[h1], h2, 10))),
        ("labels", dbn(vec![untied(v(B, 3), h1, 11)], machine(&[h1, labels], h2, 12))),
    ]
}

/// All values of a layer.
pub(crate) fn all_values(layer: &Layer) -> Vec<Vec<f64>> {
    let alone = Machine::new(vec![layer.clone()], vec![]).unwrap();
    let x = State::zeros(&alone, 1).unwrap();
    let states = exact::states(&alone, &Clamp::none(), &x, 0).unwrap();
    (0..states.n_rows()).map(|r| states.row(LayerId(0), r).to_vec()).collect()
}

/// $p(x_\text{to} \mid x_\text{from})$ in a two-layer machine, by normalising over all values.
pub(crate) fn conditional(m: &Machine, from: (LayerId, &[f64]), to: (LayerId, &[f64])) -> f64 {
    let mut x = State::zeros(m, 1).unwrap();
    x.set_row(from.0, 0, from.1).unwrap();
    x.set_row(to.0, 0, to.1).unwrap();
    let log = -m.energies(&x).unwrap()[0];
    (log - exact::log_sums(m, &Clamp::layers([from.0]), &x).unwrap()[0]).exp()
}

/// $p_\text{top}$ of the layer below the top, hidden units and labels summed out.
fn top_marginal(dbn: &Dbn, below: &[f64]) -> f64 {
    let mut x = State::zeros(dbn.top(), 1).unwrap();
    x.set_row(Dbn::BELOW_TOP, 0, below).unwrap();
    exact::log_probabilities(dbn.top(), &Clamp::layers([Dbn::BELOW_TOP]), &x).unwrap()[0].exp()
}

/// All values of the hidden layers below the top, with $p(v, h)$ and $q(h \mid v)$.
pub(crate) fn paths(dbn: &Dbn, v: &[f64]) -> Vec<(Vec<Vec<f64>>, f64, f64)> {
    let mut paths = vec![(vec![v.to_vec()], 1.0, 1.0)];
    for (l, part) in dbn.directed().iter().enumerate() {
        let above = all_values(dbn.layer(l + 1));
        paths = paths
            .into_iter()
            .flat_map(|(path, p, q)| {
                above
                    .iter()
                    .map(move |h| {
                        let (low, high) =
                            ((Directed::BELOW, &path[l][..]), (Directed::ABOVE, &h[..]));
                        let mut longer = path.clone();
                        longer.push(h.clone());
                        let down = conditional(&part.generative, high, low);
                        (longer, p * down, q * conditional(&part.recognition, low, high))
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    let top = dbn.directed().len();
    paths
        .into_iter()
        .map(|(path, p, q)| (path.clone(), p * top_marginal(dbn, &path[top]), q))
        .collect()
}

pub(crate) fn dataset(rows: &[Vec<f64>]) -> Dataset {
    let values: Vec<f32> = rows.iter().flatten().map(|x| *x as f32).collect();
    Dataset::new(Table::from_real(values, rows[0].len()).unwrap(), Binarize::None).unwrap()
}

#[test]
fn the_exact_likelihood_is_the_sum_over_all_paths() {
    for (name, dbn) in networks() {
        let rows = all_values(dbn.layer(0));
        let found = score::exact(&dbn, &dataset(&rows)).unwrap();
        let mut total = 0.0;
        for (row, log) in rows.iter().zip(&found.rows) {
            let p: f64 = paths(&dbn, row).iter().map(|path| path.1).sum();
            assert_close(p.ln(), *log, 1e-10, name);
            total += log.exp();
        }
        assert_close(total, 1.0, 1e-10, name);
    }
}

#[test]
fn labels_are_part_of_the_joint_likelihood() {
    let (name, dbn) = networks().pop().unwrap();
    let mut total = 0.0;
    for v in all_values(dbn.layer(0)) {
        let alone = score::exact(&dbn, &dataset(std::slice::from_ref(&v))).unwrap().rows[0];
        let data = dataset(&vec![v; 3]).with_labels(Labels::from_values(vec![0, 1, 2])).unwrap();
        let joint: f64 = score::exact(&dbn, &data).unwrap().rows.iter().map(|l| l.exp()).sum();
        assert_close(alone.exp(), joint, 1e-10, name);
        total += joint;
    }
    assert_close(total, 1.0, 1e-10, name);
}

#[test]
fn the_bound_is_below_the_likelihood_and_draws_estimate_both() {
    for (name, dbn) in networks() {
        let rows = all_values(dbn.layer(0));
        let data = dataset(&rows);
        let exactly = score::exact(&dbn, &data).unwrap();
        let log_z = exact::log_partition(dbn.top()).unwrap();
        let one = |s| score::importance(&dbn, &data, log_z, 1, Stream::new(s)).unwrap();
        let singles: Vec<_> = (0..3000).map(one).collect();
        for (r, row) in rows.iter().enumerate() {
            let paths = paths(&dbn, row);
            let elbo: f64 = paths.iter().map(|(_, p, q)| q * (p / q).ln()).sum();
            assert!(elbo <= exactly.rows[r] + 1e-12, "{name}: {elbo} above {}", exactly.rows[r]);
            let bounds: Vec<f64> = singles.iter().map(|s| s.bounds[r]).collect();
            assert_mean(&format!("{name}, bound of row {r}"), &bounds, elbo);
            // Importance weights are unbiased for p(v). A path that q hardly takes may carry most of
            // it, so the standard error is that of all paths and not that of those drawn.
            let weights = singles.iter().map(|s| s.estimates[r].exp());
            let (mean, p_v) = (weights.sum::<f64>() / 3000.0, exactly.rows[r].exp());
            let square: f64 = paths.iter().map(|(_, p, q)| p * p / q).sum();
            let error = ((square - p_v * p_v).max(0.0) / 3000.0).sqrt();
            assert!((mean - p_v).abs() < 5.0 * error + 1e-12, "{name}, row {r}: {mean}, not {p_v}");
        }
        let few = score::importance(&dbn, &data, log_z, 1000, Stream::new(1)).unwrap();
        assert!(few.bound <= few.estimate + 1e-12, "{name}: Jensen's inequality");
        let away = (few.estimate - exactly.mean).abs();
        let error = few.estimate_std_error.unwrap();
        assert!(away <= 5.0 * error + 1e-10, "{name}: {few:?} {}", exactly.mean);
    }
}

#[test]
fn a_layer_that_starts_upside_down_changes_neither_the_likelihood_nor_the_bound() {
    let rbm = machine(&[("visible", B, 4)], ("hidden1", B, 3), 21);
    let rows = all_values(rbm.layer(LayerId(0)));
    let data = dataset(&rows);
    let alone = likelihood::exact(&rbm, &data).unwrap();
    let mut dbn = Dbn::new(vec![], rbm).unwrap();
    for depth in 2..4 {
        dbn = dbn.deepened().unwrap();
        assert_eq!(dbn.depth(), depth);
        let deep = score::exact(&dbn, &data).unwrap();
        let log_z = exact::log_partition(dbn.top()).unwrap();
        let drawn = score::importance(&dbn, &data, log_z, 3, Stream::new(4)).unwrap();
        for r in 0..rows.len() {
            assert_close(alone.rows[r], deep.rows[r], 1e-10, "likelihood");
            if depth == 2 {
                // The recognition distribution is the posterior: every draw weighs the same.
                assert_close(alone.rows[r], drawn.bounds[r], 1e-10, "bound");
            }
        }
    }
}

#[test]
fn samples_have_the_exact_marginals() {
    const N: usize = 20_000;
    for (name, dbn) in networks() {
        let top = dbn.top();
        let zero = State::zeros(top, 1).unwrap();
        let states = exact::states(top, &Clamp::none(), &zero, 0).unwrap();
        let p = exact::probabilities(top, &states).unwrap();
        let rows = all_values(dbn.layer(0));
        let marginals = score::exact(&dbn, &dataset(&rows)).unwrap();
        let marginals: Vec<f64> = marginals.rows.iter().map(|l| l.exp()).collect();
        // The top RBM at its exact distribution, then a sweep, then down.
        let mut x = State::zeros(top, N).unwrap();
        for row in 0..N {
            let mut u = Stream::new(5).uniform(Site::new(row, 0, 0), 0);
            let at = p
                .iter()
                .position(|p| {
                    u -= p;
                    u < 0.0
                })
                .unwrap_or(p.len() - 1);
            for l in top.layer_ids() {
                x.set_row(l, row, states.row(l, at)).unwrap();
            }
        }
        for precision in [Arithmetic::F64, Arithmetic::F32, Arithmetic::I16] {
            let sampler = DbnSampler::new(dbn.clone(), precision);
            let mut moved = x.clone();
            sampler.top().gibbs(&Clamp::none(), &mut moved, 1, Stream::new(6)).unwrap();
            let drawn = sampler.generate(&moved, Pass::Samples(Stream::new(7))).unwrap();
            let mut counts = vec![0.0; rows.len()];
            for r in 0..N {
                counts[rows.iter().position(|v| v == drawn.row(0, r)).unwrap()] += 1.0;
            }
            assert_distributed(&format!("{name} in {precision:?}"), &counts, &marginals);
        }
    }
}

#[test]
fn means_on_the_last_step_are_those_of_the_samples() {
    for (name, dbn) in networks().into_iter().filter(|n| n.1.depth() > 1) {
        let sampler = DbnSampler::new(dbn.clone(), Arithmetic::F64);
        let top = State::zeros(dbn.top(), 4000).unwrap();
        let stream = Stream::new(8);
        let means = sampler.generate(&top, Pass::LastMeans(stream)).unwrap();
        let samples = sampler.generate(&top, Pass::Samples(stream)).unwrap();
        let len = dbn.layer(0).len();
        for i in 0..len {
            let gap: Vec<f64> =
                (0..4000).map(|r| samples.row(0, r)[i] - means.row(0, r)[i]).collect();
            assert_mean(name, &gap, 0.0);
        }
    }
}

/// Every state of the layers below the top's hidden one, weighted by $q(h \mid v)/N$.
fn complete(dbn: &Dbn) -> (DbnState, Vec<f64>) {
    let rows = all_values(dbn.layer(0));
    let all: Vec<_> = rows.iter().flat_map(|v| paths(dbn, v)).collect();
    let weights = all.iter().map(|p| p.2 / rows.len() as f64).collect();
    let layer = |l: usize| all.iter().flat_map(|p| p.0[l].clone()).collect::<Vec<f64>>();
    let mut x = DbnState::from_rows(dbn, dbn.layer(0).len(), &layer(0)).unwrap();
    (1..dbn.depth()).for_each(|l| x.set_layer(l, &layer(l)).unwrap());
    (x, weights)
}

/// $\sum_r w_r \ln p(x_\text{to} \mid x_\text{from})$.
fn expected_log(
    m: &Machine,
    x: &DbnState,
    l: usize,
    w: &[f64],
    (from, to): (LayerId, LayerId),
) -> f64 {
    let log = |r| conditional(m, (from, x.row(l + from.0, r)), (to, x.row(l + to.0, r))).ln();
    w.iter().enumerate().map(|(r, w)| w * log(r)).sum()
}

/// The same machine with parameter `i` of layer or coupling `k` moved.
fn moved(m: &Machine, k: usize, i: usize, by: f64) -> Machine {
    let (mut layers, mut weights) =
        (m.layers().to_vec(), m.couplings()[0].weights.entries().to_vec());
    if k < 2 {
        layers[k].bias[i] += by;
    } else {
        weights[i] += by;
    }
    let matrix = Matrix::from_rows(layers[0].len(), layers[1].len(), weights).unwrap();
    Machine::new(layers, vec![Coupling::between(LayerId(0), LayerId(1), matrix)]).unwrap()
}

#[test]
fn wake_and_sleep_steps_are_gradients_of_the_conditionals() {
    const STEP: f64 = 1e-5;
    for (name, dbn) in networks().into_iter().filter(|n| n.1.depth() > 1) {
        let (x, w) = complete(&dbn);
        let sampler = DbnSampler::new(dbn.clone(), Arithmetic::F64);
        for (l, part) in dbn.directed().iter().enumerate() {
            let wake = wake_gradient(&sampler, &x, l, &w).unwrap();
            let sleep = sleep_gradient(&sampler, &x, l, &w).unwrap();
            for (m, gradient, way) in [
                (&part.generative, wake, (Directed::ABOVE, Directed::BELOW)),
                (&part.recognition, sleep, (Directed::BELOW, Directed::ABOVE)),
            ] {
                let groups = [&gradient.bias[0], &gradient.bias[1], &gradient.weights[0]];
                for (k, group) in groups.into_iter().enumerate() {
                    for (i, found) in group.iter().enumerate() {
                        let at = |by| expected_log(&moved(m, k, i, by), &x, l, &w, way);
                        let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                        assert!((slope - found).abs() < 1e-7, "{name} {k} {i}: {slope} {found}");
                    }
                }
            }
        }
    }
}

#[test]
fn real_values_have_a_density_and_a_precision_that_is_learned() {
    const STEP: f64 = 1e-5;
    let (v, h1, h2) = (("visible", Units::Gaussian, 2), ("hidden1", B, 3), ("hidden2", B, 2));
    let part = Directed { generative: machine(&[v], h1, 31), recognition: machine(&[v], h1, 32) };
    let dbn = Dbn::new(vec![part], machine(&[h1], h2, 33)).unwrap();
    let rows = [vec![0.25, -1.5], vec![1.0, 0.5], vec![-0.75, 2.0]];
    let found = score::exact(&dbn, &dataset(&rows)).unwrap();
    for (row, log) in rows.iter().zip(&found.rows) {
        let density: f64 = paths(&dbn, row).iter().map(|path| path.1).sum();
        assert_close(density.ln(), *log, 1e-10, "density");
    }
    let all: Vec<_> = rows.iter().flat_map(|v| paths(&dbn, v)).collect();
    let w: Vec<f64> = all.iter().map(|p| p.2).collect();
    let layer = |l: usize| all.iter().flat_map(|p| p.0[l].clone()).collect::<Vec<f64>>();
    let mut x = DbnState::from_rows(&dbn, 2, &layer(0)).unwrap();
    x.set_layer(1, &layer(1)).unwrap();
    let sampler = DbnSampler::new(dbn.clone(), Arithmetic::F64);
    let gradient = wake_gradient(&sampler, &x, 0, &w).unwrap();
    let generative = &dbn.directed()[0].generative;
    for (i, found) in gradient.own[0].iter().enumerate() {
        let at = |by: f64| {
            let mut layers = generative.layers().to_vec();
            layers[0].own[i] += by;
            let m = Machine::new(layers, generative.couplings().to_vec()).unwrap();
            expected_log(&m, &x, 0, &w, (Directed::ABOVE, Directed::BELOW))
        };
        let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
        assert!((slope - found).abs() < 1e-7 * (1.0 + slope.abs()), "{i}: {slope} {found}");
    }
}

#[test]
fn sums_over_labels_are_exact() {
    for (name, dbn) in networks() {
        let sums = ClassSums::of_top(&dbn).unwrap();
        let top = dbn.top();
        let rows = all_values(top.layer(Dbn::BELOW_TOP));
        let mut x = State::zeros(top, rows.len()).unwrap();
        for (r, row) in rows.iter().enumerate() {
            x.set_row(Dbn::BELOW_TOP, r, row).unwrap();
        }
        let unknown = vec![Label::Unknown; rows.len()];
        let held = Clamp::layers([Dbn::BELOW_TOP]);
        let expected = exact::log_sums(top, &held, &x).unwrap();
        let means = sums.hidden_means(&x, &unknown);
        let hidden = dbn.top_hidden();
        let n = top.layer(hidden).len();
        for (r, found) in sums.free(&x, &unknown).into_iter().enumerate() {
            assert_close(expected[r], found, 1e-10, name);
            let mut weights = vec![0.0; rows.len()];
            weights[r] = 1.0;
            let moments = exact::moments(top, &held, &x, &weights).unwrap();
            for (m, found) in moments.bias[hidden.0].iter().zip(&means[r * n..]) {
                assert_close(*m, *found, 1e-10, name);
            }
        }
        if dbn.labels().is_none() {
            continue;
        }
        let p = sums.class_probabilities(&x);
        for (r, y) in (0..rows.len()).flat_map(|r| (0..3).map(move |y| (r, y))) {
            let one: Vec<f64> = (0..3).map(|k| f64::from(u8::from(k == y))).collect();
            (0..rows.len()).for_each(|r| x.set_row(Dbn::LABELS, r, &one).unwrap());
            let both = Clamp::layers([Dbn::BELOW_TOP, Dbn::LABELS]);
            let joint = exact::log_sums(top, &both, &x).unwrap()[r];
            assert_close((joint - expected[r]).exp(), p[r * 3 + y], 1e-10, name);
            let known = sums.free(&x, &vec![Label::Known(y); rows.len()]);
            assert_close(joint, known[r], 1e-10, name);
        }
    }
}

#[test]
fn classes_are_averaged_over_the_recognition_distribution() {
    let (_, dbn) = networks().pop().unwrap();
    let sums = ClassSums::of_top(&dbn).unwrap();
    let v = vec![1.0, 0.0, 1.0];
    let mut expected = [0.0; 3];
    for (path, _, q) in paths(&dbn, &v) {
        let mut x = State::zeros(dbn.top(), 1).unwrap();
        x.set_row(Dbn::BELOW_TOP, 0, &path[1]).unwrap();
        let p = sums.class_probabilities(&x);
        expected.iter_mut().zip(p).for_each(|(e, p)| *e += q * p);
    }
    let data = dataset(&[v]);
    let drawn: Vec<Vec<f64>> = (0..2000)
        .map(|s| score::class_draws(&dbn, &data, 1, Stream::new(s)).unwrap().means)
        .collect();
    for (y, e) in expected.into_iter().enumerate() {
        let found: Vec<f64> = drawn.iter().map(|d| d[y]).collect();
        assert_mean(&format!("class {y}"), &found, e);
    }
    let (_, alone) = networks().swap_remove(0);
    let data = dataset(&[vec![0.0; 4]]);
    assert!(score::class_draws(&alone, &data, 1, Stream::new(0)).is_err());
}

fn bars() -> Dataset {
    let table = synthetic::bars_and_stripes(3, synthetic::Repeats::Counted).unwrap();
    Dataset::new(table, Binarize::None).unwrap()
}

fn plan() -> Plan {
    Plan { epochs: 40, batch: 4, chains: 20, learning_rate: 0.05, ..Plan::default() }
}

fn shape(hidden: &[usize], n_classes: usize) -> DbnShape {
    DbnShape { visible: (B, 9), hidden: hidden.to_vec(), n_classes }
}

/// A network learned layer by layer, without refinement.
fn stacked(shape: DbnShape, data: &Dataset, plan: &Plan) -> Dbn {
    let mut learner = DbnLearner::new(shape, data, plan, &Plan::for_epochs(0)).unwrap();
    drive(&mut learner, &mut [], &mut Silent).unwrap();
    learner.dbn().unwrap()
}

#[test]
fn the_first_layer_is_the_rbm_that_would_be_trained_alone() {
    let data = bars();
    let dbn = stacked(shape(&[5, 4], 0), &data, &plan());
    let alone = train(Rbm::binary(9, 5).unwrap().into_machine(), &data, &plan(), &mut []).unwrap();
    let first = &dbn.directed()[0];
    assert!(first.is_tied());
    assert_eq!(first.generative.couplings(), alone.machine.couplings());
    for (a, b) in first.generative.layers().iter().zip(alone.machine.layers()) {
        assert_eq!((&a.bias, &a.offset), (&b.bias, &b.offset));
    }
}

#[test]
fn a_layer_above_learns_from_samples_drawn_anew() {
    let data = bars();
    let stack = Stack::new(shape(&[5, 4], 0), &data, &plan()).unwrap();
    let first = stack.first().unwrap();
    let samples = stack.data(&first);
    let machine = stack.initial(&first, &samples).unwrap();
    let dbn = stack.next(Dbn::new(vec![], machine).unwrap()).unwrap();
    let samples = stack.data(&dbn);
    let (a, b) = (samples.in_epoch(3).unwrap(), samples.in_epoch(4).unwrap());
    assert_eq!(a.table(), samples.in_epoch(3).unwrap().table());
    assert_ne!(a.table(), b.table());
    // Over many epochs their means are those of the recognition distribution.
    let sampler = DbnSampler::new(dbn.clone(), Arithmetic::F64);
    let mut row = vec![0.0; 9];
    data.present_into(7, Stream::new(0), &mut row);
    let mut x = DbnState::from_rows(&dbn, 9, &row).unwrap();
    sampler.recognise(&mut x, Pass::Means).unwrap();
    for unit in 0..5 {
        let drawn: Vec<f64> = (0..2000)
            .map(|e| f64::from(samples.in_epoch(e).unwrap().table().at(7, unit)))
            .collect();
        assert_mean("a unit", &drawn, x.row(1, 0)[unit]);
    }
}

#[test]
fn stopping_inside_a_layer_and_going_on_changes_nothing() {
    let data = bars().with_labels(Labels::from_values([0, 1].repeat(8))).unwrap();
    let stack = Stack::new(shape(&[5, 4], 2), &data, &plan()).unwrap();
    let mut dbn = stack.first().unwrap();
    let samples = stack.data(&dbn);
    let machine = stack.initial(&dbn, &samples).unwrap();
    dbn = stack.next(Dbn::new(vec![], machine).unwrap()).unwrap();
    let samples = stack.data(&dbn);
    let machine = stack.initial(&dbn, &samples).unwrap();
    let plan = stack.plan(2);
    let mut whole = Trainer::new(machine.clone(), samples.presented(), &plan).unwrap();
    whole.run(&mut []).unwrap();
    let samples = stack.data(&dbn);
    let mut part = Trainer::new(machine, samples.presented(), &plan).unwrap();
    let mut stop =
        harmonium::training::Every::new(13, |_: &_| std::ops::ControlFlow::Break("enough".into()));
    part.run(&mut [&mut stop]).unwrap();
    let samples = stack.data(&dbn);
    let mut rest = Trainer::resume(&part.checkpoint(), samples.presented(), &plan).unwrap();
    rest.run(&mut []).unwrap();
    assert_eq!(whole.checkpoint(), rest.checkpoint());
}

#[test]
fn stopping_inside_the_refinement_and_going_on_changes_nothing() {
    let data = bars().with_labels(Labels::from_values([0, 1].repeat(8))).unwrap();
    let dbn = stacked(shape(&[5, 4], 2), &data, &plan());
    for rule in [Rule::Cd, Rule::Pcd, Rule::Pt] {
        let plan = Plan { epochs: 6, rule, replicas: 3, ..plan() };
        let mut whole = UpDown::new(dbn.clone(), &data, &plan).unwrap();
        while !whole.is_done() {
            whole.step().unwrap();
        }
        let mut part = UpDown::new(dbn.clone(), &data, &plan).unwrap();
        for _ in 0..7 {
            part.step().unwrap();
        }
        let mut rest = UpDown::resume(&part.checkpoint(), &data, &plan).unwrap();
        while !rest.is_done() {
            rest.step().unwrap();
        }
        assert_eq!(whole.checkpoint(), rest.checkpoint());
        assert!(!rest.dbn().directed()[0].is_tied());
    }
}

#[test]
fn a_stack_that_starts_upside_down_learns_beyond_its_first_layer() {
    // A coarse first RBM, stopped early; the second learns what it misses.
    let data = bars();
    let plan = Plan {
        epochs: 600,
        learning_rate: 0.3,
        rule: Rule::Exact,
        l2: 0.0,
        momentum: Schedule::Constant(0.5),
        ..plan()
    };
    let early = Plan { epochs: 300, ..plan.clone() };
    let mut rbm = Rbm::binary(9, 6).unwrap().into_machine();
    initialise(&mut rbm, &data, &early).unwrap();
    let mut trainer = Trainer::new(rbm, &data, &early).unwrap();
    trainer.run(&mut []).unwrap();
    let alone = likelihood::exact(trainer.machine(), &data).unwrap().mean;
    let dbn = Dbn::new(vec![], trainer.machine().clone()).unwrap().deepened().unwrap();
    let stack = Stack::new(shape(&[6, 9], 0), &data, &plan).unwrap();
    let samples = stack.data(&dbn);
    let mut trainer = Trainer::new(dbn.top().clone(), samples.presented(), &plan).unwrap();
    trainer.run(&mut []).unwrap();
    let (directed, _) = dbn.into_parts();
    let deep = Dbn::new(directed, trainer.machine().clone()).unwrap();
    let found = score::exact(&deep, &data).unwrap().mean;
    assert!(found > alone + 0.01, "{found} is not beyond {alone}");
}

#[test]
fn what_is_no_belief_network_is_refused() {
    let (v, h1, h2) = (("visible", B, 3), ("hidden1", B, 2), ("hidden2", B, 2));
    let rbm = |a, b| machine(&[a], b, 1);
    let refused = |directed, top| Dbn::new(directed, top).unwrap_err().to_string();
    let said = refused(vec![Directed::tied(rbm(v, h1))], rbm(h2, h1));
    assert!(said.contains("`hidden1` of 2") && said.contains("`hidden2` of 2"), "{said}");
    let spins = ("hidden1", Units::Spin, 2);
    assert!(refused(vec![Directed::tied(rbm(v, spins))], rbm(spins, h2)).contains("binary"));
    let two = Directed { generative: rbm(v, h1), recognition: rbm(v, h2) };
    assert!(refused(vec![two], rbm(h1, h2)).contains("same layers"));
    let alone = Machine::new(vec![rbm(v, h1).layers()[0].clone()], vec![]).unwrap();
    assert!(refused(vec![], alone).contains("an RBM on top"));
    let labelled = machine(&[h1, ("labels", Units::Categorical { q: 3 }, 1)], h2, 2);
    let dbn = Dbn::new(vec![Directed::tied(rbm(v, h1))], labelled).unwrap();
    assert!(dbn.clone().deepened().unwrap_err().to_string().contains("without labels"));
    let data = dataset(&[vec![0.0, 1.0]]);
    assert!(score::exact(&dbn, &data).unwrap_err().to_string().contains("2 columns"));
    let data = dataset(&[vec![0.0, 1.0, 0.5]]);
    assert!(score::importance(&dbn, &data, 0.0, 1, Stream::new(0)).is_err());
    let exactly = Plan { rule: Rule::Exact, ..Plan::default() };
    let data = dataset(&[vec![0.0, 1.0, 1.0]]);
    assert!(UpDown::new(dbn, &data, &exactly).is_err());
}

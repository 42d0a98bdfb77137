//! Feed-forward nets: slopes against finite differences, masks, norms, resuming, threads, and what a machine becomes.

use crate::machines::{assert_close, noise};
use crate::statistics::assert_mean;
use harmonium::evaluation::log_partition::Settings;
use harmonium::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role};
use harmonium::model::Finetuning;
use harmonium::models::{Activation, Body, Dense, Loss, Network, OUTPUT, Target};
use harmonium::network::{
    Answers, ClassWeights, NetworkLearner, NetworkPlan, NetworkRows, Shape, classifier,
};
use harmonium::optim::Schedule;
use harmonium::progress::Silent;
use harmonium::random::Stream;
use harmonium::run::{About, Model, SavedCheckpoint};
use harmonium::schema::Schema;
use harmonium::training::{Learner, OptimizerKind, drive};
use harmonium::units::Units;
use harmonium::{Binarize, Dataset};
use harmonium_data::{Labels, Table};
use harmonium_kernels::neurons::{Dropout, Rows, drop_units};

fn on_threads<R: Send>(n: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(work)
}

fn real_table(n_rows: usize, n_columns: usize, at: impl Fn(usize) -> f32) -> Table {
    Table::from_real((0..n_rows * n_columns).map(at).collect(), n_columns).unwrap()
}

/// Layers over Gaussian inputs: `sizes` from the input to the output.
fn net(sizes: &[usize], activation: Activation, target: Target, seed: u64) -> Network {
    let input = Layer::new("visible", Role::Visible, Units::Gaussian, sizes[0]).unwrap();
    net_over(vec![input], &sizes[1..], activation, target, seed)
}

fn net_over(
    inputs: Vec<Layer>,
    sizes: &[usize],
    activation: Activation,
    target: Target,
    seed: u64,
) -> Network {
    let mut below: usize = inputs.iter().map(Layer::len).sum();
    let mut layers = Vec::new();
    for (l, &n) in sizes.iter().enumerate() {
        let last = l + 1 == sizes.len();
        let scale = 2.0 / (below as f64).sqrt();
        let weight = |i, j| scale * noise(seed + l as u64, i * 101 + j);
        layers.push(Dense {
            name: if last { OUTPUT.into() } else { format!("hidden{}", l + 1) },
            activation: if last { Activation::Linear } else { activation },
            weights: Matrix::from_fn(below, n, weight).unwrap(),
            bias: (0..n).map(|j| 0.5 * noise(seed + 90 + l as u64, j)).collect(),
        });
        below = n;
    }
    Network::new(inputs, None, layers, target).unwrap()
}

fn rows<'d>(network: &Network, data: &'d Dataset, targets: Option<&'d Dataset>) -> NetworkRows<'d> {
    let schema = Schema::of(&network.data_layers().unwrap(), data).unwrap();
    NetworkRows::new(network, &schema, data, targets, &mut Silent).unwrap()
}

/// The net in double precision, written down as the formulas are: the mean loss with these masks.
fn plain_loss(
    network: &Network,
    inputs: &[Vec<f64>],
    targets: &[Vec<f64>],
    shares: &[f64],
    masks: Option<&[Vec<Vec<f64>>]>,
    l2: f64,
) -> f64 {
    let mut total = 0.0;
    for (r, (input, target)) in inputs.iter().zip(targets).enumerate() {
        let mut x = input.clone();
        for (l, layer) in network.layers().iter().enumerate() {
            if let Some(masks) = masks {
                x.iter_mut().enumerate().for_each(|(i, x)| *x *= masks[l][r][i]);
            }
            let mut z = layer.bias.clone();
            for (i, x) in x.iter().enumerate() {
                z.iter_mut().enumerate().for_each(|(j, z)| *z += x * layer.weights.at(i, j));
            }
            x = z
                .iter()
                .map(|&z| match layer.activation {
                    Activation::Logistic => 1.0 / (1.0 + (-z).exp()),
                    Activation::Relu => z.max(0.0),
                    _ => z,
                })
                .collect();
        }
        for (units, loss) in network.losses() {
            let (z, t) = (&x[units.clone()], &target[units]);
            total += shares[r]
                * match loss {
                    Loss::Softmax => {
                        let sum = z.iter().map(|z| z.exp()).sum::<f64>().ln();
                        z.iter().zip(t).map(|(z, t)| t * (sum - z)).sum::<f64>()
                    }
                    Loss::Sigmoid => {
                        z.iter().zip(t).map(|(z, t)| (1.0 + z.exp()).ln() - t * z).sum::<f64>()
                    }
                    Loss::Squared => {
                        z.iter().zip(t).map(|(z, t)| 0.5 * (z - t).powi(2)).sum::<f64>()
                    }
                };
        }
    }
    let squares = |l: &Dense| l.weights.entries().iter().map(|w| w * w).sum::<f64>();
    total + 0.5 * l2 * network.layers().iter().map(squares).sum::<f64>()
}

/// The same net with one number moved.
fn moved(network: &Network, l: usize, k: usize, by: f64) -> Network {
    let mut layers = network.layers().to_vec();
    let (n_below, n) = layers[l].weights.shape();
    if k < n_below * n {
        let mut entries = layers[l].weights.entries().to_vec();
        entries[k] += by;
        layers[l].weights = Matrix::from_rows(n_below, n, entries).unwrap();
    } else {
        layers[l].bias[k - n_below * n] += by;
    }
    let posterior = network.posterior().cloned();
    Network::new(network.inputs().to_vec(), posterior, layers, network.target()).unwrap()
}

/// What one step of rate 1 without momentum took away: the slopes, as they were learned from.
fn slopes(learner: &NetworkLearner<'_>, network: &Network, l: usize) -> Vec<f64> {
    let state = learner.checkpoint().state;
    let (layer, optimizer) = (&network.layers()[l], state.nested("optimizer"));
    let (n_below, n) = layer.weights.shape();
    let key = |what| format!("velocity.{}.{what}", layer.name);
    let weights = optimizer.get(&key("weights"), n_below * n).unwrap();
    // They stand unit by unit.
    let mut all: Vec<f64> = (0..n_below * n).map(|k| -weights[k % n * n_below + k / n]).collect();
    all.extend(optimizer.get(&key("bias"), n).unwrap().iter().map(|v| -v));
    all
}

fn one_step(batch: usize) -> NetworkPlan {
    NetworkPlan {
        epochs: 1,
        batch,
        learning_rate: 1.0,
        decay: Schedule::Constant(1.0),
        momentum: Schedule::Constant(0.0),
        center: false,
        ..NetworkPlan::default()
    }
}

/// Data, targets and classes for a net of any target.
struct Given {
    data: Dataset,
    targets: Option<Dataset>,
    inputs: Vec<Vec<f64>>,
    outputs: Vec<Vec<f64>>,
}

fn given(network: &Network, n_rows: usize) -> Given {
    let (n, m) = (network.n_data(), network.n_outputs());
    let bits = network.inputs().iter().all(|l| l.units == Units::Binary);
    let value = |k: usize| {
        let x = noise(77, k) as f32;
        if bits { f32::from(u8::from(x > 0.0)) } else { 2.0 * x }
    };
    let data = Dataset::new(real_table(n_rows, n, value), Binarize::None).unwrap();
    let inputs: Vec<Vec<f64>> =
        (0..n_rows).map(|r| (0..n).map(|i| f64::from(value(r * n + i))).collect()).collect();
    match network.target() {
        Target::Classes => {
            let classes: Vec<u32> = (0..n_rows).map(|r| (r * 7 % 3) as u32 % m as u32).collect();
            let outputs = classes
                .iter()
                .map(|&c| (0..m).map(|k| f64::from(u8::from(k == c as usize))).collect())
                .collect();
            let data = data.with_labels(Labels::from_values(classes)).unwrap();
            Given { data, targets: None, inputs, outputs }
        }
        Target::Input => Given { outputs: inputs.clone(), data, targets: None, inputs },
        target => {
            let value = |k: usize| {
                let x = noise(78, k) as f32;
                if target == Target::Tags { f32::from(u8::from(x > 0.1)) } else { x }
            };
            let table = Dataset::new(real_table(n_rows, m, value), Binarize::None).unwrap();
            let outputs = (0..n_rows)
                .map(|r| (0..m).map(|i| f64::from(value(r * m + i))).collect())
                .collect();
            Given { data, targets: Some(table), inputs, outputs }
        }
    }
}

/// Whether all slopes of a step are those of the loss, by central differences.
fn assert_slopes(
    what: &str,
    network: &Network,
    learned: &[Vec<f64>],
    loss: impl Fn(&Network) -> f64,
) {
    let h = 1e-5;
    let mut largest = 0.0_f64;
    let mut worst = 0.0_f64;
    for (l, learned) in learned.iter().enumerate() {
        for (k, found) in learned.iter().enumerate() {
            let expected =
                (loss(&moved(network, l, k, h)) - loss(&moved(network, l, k, -h))) / (2.0 * h);
            largest = largest.max(expected.abs());
            worst = worst.max((found - expected).abs());
        }
    }
    assert!(largest > 1e-3, "{what}: no slopes to speak of");
    assert!(worst < 2e-6 * largest.max(0.1), "{what}: {worst:.2e} of {largest:.2e}");
}

#[test]
fn slopes_are_those_of_the_loss_for_every_activation_and_target() {
    for activation in [Activation::Logistic, Activation::Relu, Activation::Linear] {
        for target in [Target::Classes, Target::Tags, Target::Values] {
            for l2 in [0.0, 0.1] {
                let network = net(&[4, 5, 3, 3], activation, target, 3);
                let given = given(&network, 7);
                let rows = rows(&network, &given.data, given.targets.as_ref());
                let plan = NetworkPlan { l2, ..one_step(7) };
                let mut learner = NetworkLearner::new(network.clone(), rows, &plan).unwrap();
                learner.step().unwrap();
                let learned: Vec<_> = (0..3).map(|l| slopes(&learner, &network, l)).collect();
                let shares = [1.0 / 7.0; 7];
                assert_slopes(
                    &format!("{activation:?} {target:?} {l2}"),
                    &network,
                    &learned,
                    |n| plain_loss(n, &given.inputs, &given.outputs, &shares, None, l2),
                );
            }
        }
    }
}

/// A net that gives its input back: bits, categories and real numbers, each by its own loss.
#[test]
fn slopes_of_an_autoencoder_are_those_of_each_kind_of_unit() {
    let inputs = vec![
        Layer::new("bits", Role::Visible, Units::Binary, 3).unwrap(),
        Layer::new("kinds", Role::Visible, Units::Categorical { q: 3 }, 2).unwrap(),
        Layer::new("reals", Role::Visible, Units::Gaussian, 2).unwrap(),
    ];
    let network = net_over(inputs, &[4, 11], Activation::Logistic, Target::Input, 5);
    assert_eq!(network.losses().len(), 4);
    let n_rows = 6;
    let row = |r: usize| -> Vec<f32> {
        let mut row: Vec<f32> =
            (0..3).map(|k| f32::from(u8::from(noise(1, r * 3 + k) > 0.0))).collect();
        for unit in 0..2 {
            row.extend((0..3).map(|k| f32::from(u8::from((r + unit) % 3 == k))));
        }
        row.extend((0..2).map(|k| noise(2, r * 2 + k) as f32));
        row
    };
    let table = Table::from_real((0..n_rows).flat_map(row).collect(), 11).unwrap();
    let data = Dataset::new(table, Binarize::None).unwrap();
    let inputs: Vec<Vec<f64>> =
        (0..n_rows).map(|r| row(r).iter().map(|x| f64::from(*x)).collect()).collect();
    let mut learner =
        NetworkLearner::new(network.clone(), rows(&network, &data, None), &one_step(6)).unwrap();
    learner.step().unwrap();
    let learned: Vec<_> = (0..2).map(|l| slopes(&learner, &network, l)).collect();
    assert_slopes("autoencoder", &network, &learned, |n| {
        plain_loss(n, &inputs, &inputs, &[1.0 / 6.0; 6], None, 0.0)
    });
}

/// Weights of samples and classes are shares of the loss, whatever their scale.
#[test]
fn weights_of_rows_and_classes_are_shares_of_the_loss() {
    let network = net(&[3, 4, 3], Activation::Logistic, Target::Classes, 6);
    let given = given(&network, 8);
    let own: Vec<f64> = (0..8).map(|r| 1.0 + f64::from(r % 3)).collect();
    let data = given.data.clone().with_weights(own.clone()).unwrap();
    let classes: Vec<usize> = data.labels().unwrap().values().iter().map(|c| *c as usize).collect();
    let mut totals = [0.0; 3];
    classes.iter().zip(&own).for_each(|(c, w)| totals[*c] += w);
    for class_weights in
        [ClassWeights::Even, ClassWeights::Each(vec![1.0, 0.0, 5.0]), ClassWeights::Balanced]
    {
        let factor = |c: usize| match &class_weights {
            ClassWeights::Even => 1.0,
            ClassWeights::Each(each) => each[c],
            ClassWeights::Balanced => 1.0 / totals[c],
        };
        let weights: Vec<f64> = (0..8).map(|r| own[r] * factor(classes[r])).collect();
        let total: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.iter().map(|w| w / total).collect();
        let plan = NetworkPlan { class_weights: class_weights.clone(), ..one_step(8) };
        let mut learner =
            NetworkLearner::new(network.clone(), rows(&network, &data, None), &plan).unwrap();
        learner.step().unwrap();
        let learned: Vec<_> = (0..2).map(|l| slopes(&learner, &network, l)).collect();
        assert_slopes(&class_weights.to_string(), &network, &learned, |n| {
            plain_loss(n, &given.inputs, &given.outputs, &shares, None, 0.0)
        });
    }
}

/// With the masks of the step, drawn again from where they are used, slopes are those of the masked loss.
#[test]
fn slopes_under_dropout_are_those_of_the_masked_net() {
    const STEP: u64 = 0;
    for activation in [Activation::Logistic, Activation::Relu, Activation::Linear] {
        let sizes = [5, 6, 4, 3];
        let network = net(&sizes, activation, Target::Classes, 9);
        let given = given(&network, 9);
        let plan = NetworkPlan { dropout: 0.5, input_dropout: 0.2, seed: 4, ..one_step(9) };
        let rows_ = rows(&network, &given.data, None);
        let mut learner = NetworkLearner::new(network.clone(), rows_, &plan).unwrap();
        learner.step().unwrap();
        // The order of the rows in the batch, and the masks where they stand.
        let mut order: Vec<u32> = (0..9).collect();
        Stream::new(4).fork(1).fork(0).shuffle(&mut order);
        let stream = Stream::new(4).fork(20).fork(STEP);
        let keeps = [52429, 32768, 32768];
        let mut masks = vec![vec![Vec::new(); 9]; 3];
        for l in 0..3 {
            let dropout = Dropout { stream, lane: l as u32, keep: keeps[l] };
            let (units, n) = if l == 0 { (9, sizes[0]) } else { (sizes[l], 9) };
            let mut x = vec![1.0_f32; units * n];
            drop_units(&mut x, Rows { n, stride: n }, dropout, 0);
            for at in 0..9 {
                // The weights that are learned are the net's divided by the probability of keeping.
                let keep = f64::from(keeps[l]) / 65536.0;
                let of = |i: usize| if l == 0 { x[at * n + i] } else { x[i * n + at] };
                masks[l][order[at] as usize] =
                    (0..sizes[l]).map(|i| f64::from(of(i)) / keep).collect();
            }
        }
        assert!(masks.iter().flatten().flatten().any(|m| *m == 0.0));
        let learned: Vec<Vec<f64>> = (0..3)
            .map(|l| {
                let keep = f64::from(keeps[l]) / 65536.0;
                let n = sizes[l] * sizes[l + 1];
                let of = slopes(&learner, &network, l).into_iter().enumerate();
                // Slopes along W/p are p times those along W.
                of.map(|(k, s)| if k < n { s / keep } else { s }).collect()
            })
            .collect();
        assert_slopes(&format!("{activation:?}"), &network, &learned, |n| {
            plain_loss(n, &given.inputs, &given.outputs, &[1.0 / 9.0; 9], Some(&masks), 0.0)
        });
    }
}

/// Centered, weights move while a unit keeps what it receives at the mean of the units below: slopes are those along
/// $W_{ij}$ with $b_j$ moved by $-\mu_i$, and the net that comes out is the one that went in.
#[test]
fn centered_slopes_keep_what_units_receive_at_the_mean() {
    for activation in [Activation::Logistic, Activation::Relu, Activation::Linear] {
        let sizes = [4, 5, 3, 3];
        let network = net(&sizes, activation, Target::Classes, 14);
        let given = given(&network, 7);
        let plan = NetworkPlan { center: true, ..one_step(7) };
        let rows_ = rows(&network, &given.data, None);
        let mut learner = NetworkLearner::new(network.clone(), rows_, &plan).unwrap();
        for (a, b) in learner.network().layers().iter().zip(network.layers()) {
            let numbers = |l: &Dense| [l.weights.entries(), &l.bias].concat();
            for (a, b) in numbers(a).iter().zip(numbers(b)) {
                assert_close(*a, b, 1e-6, "the same net");
            }
        }
        learner.step().unwrap();
        let state = learner.checkpoint().state;
        let offsets: Vec<Vec<f64>> =
            (0..3).map(|l| state.get(&format!("offset.{l}"), sizes[l]).unwrap().to_vec()).collect();
        assert!(offsets.iter().flatten().any(|mu| mu.abs() > 0.1));
        for i in 0..4 {
            let mean = given.inputs.iter().map(|x| x[i]).sum::<f64>() / 7.0;
            assert_close(offsets[0][i], mean, 1e-6, "the mean of the input");
        }
        let loss =
            |n: &Network| plain_loss(n, &given.inputs, &given.outputs, &[1.0 / 7.0; 7], None, 0.0);
        for l in 0..3 {
            let (n_below, n) = (sizes[l], sizes[l + 1]);
            for (k, found) in slopes(&learner, &network, l).iter().enumerate() {
                let by = |h: f64| {
                    let there = moved(&network, l, k, h);
                    if k >= n_below * n {
                        return loss(&there);
                    }
                    loss(&moved(&there, l, n_below * n + k % n, -h * offsets[l][k / n]))
                };
                let expected = (by(1e-5) - by(-1e-5)) / 2e-5;
                assert_close(*found, expected, 1e-6, &format!("{activation:?}, layer {l}, {k}"));
            }
        }
    }
}

/// A linear net has, on average over masks, the output that it has without them: dropping and dividing by the
/// probability of keeping belong together. The slope of an output bias is the mean of output minus target.
#[test]
fn dropout_keeps_the_mean_of_a_linear_net() {
    let network = net(&[6, 8, 2], Activation::Linear, Target::Values, 12);
    let given = given(&network, 5);
    let slope = |plan: &NetworkPlan| {
        let plan = &NetworkPlan { center: plan.seed % 2 == 1, ..plan.clone() };
        let rows = rows(&network, &given.data, given.targets.as_ref());
        let mut learner = NetworkLearner::new(network.clone(), rows, plan).unwrap();
        learner.step().unwrap();
        let all = slopes(&learner, &network, 1);
        [all[16], all[17]]
    };
    let whole = slope(&one_step(5));
    let masked: Vec<[f64; 2]> = (0..4000)
        .map(|seed| slope(&NetworkPlan { dropout: 0.5, input_dropout: 0.2, seed, ..one_step(5) }))
        .collect();
    for k in 0..2 {
        let values: Vec<f64> = masked.iter().map(|m| m[k]).collect();
        assert!(values.iter().any(|v| (v - whole[k]).abs() > 0.05), "masks change the output");
        assert_mean(&format!("output {k}"), &values, whole[k]);
    }
}

#[test]
fn norms_stay_below_their_limit_after_every_step() {
    let network = net(&[12, 20, 15, 4], Activation::Relu, Target::Classes, 20);
    let given = given(&network, 60);
    for optimizer in [OptimizerKind::Sgd, OptimizerKind::Adam] {
        let limit = 0.8;
        let plan = NetworkPlan {
            epochs: 6,
            batch: 10,
            learning_rate: if optimizer == OptimizerKind::Sgd { 0.5 } else { 0.05 },
            max_norm: Some(limit),
            optimizer,
            dropout: 0.5,
            ..NetworkPlan::default()
        };
        let mut learner =
            NetworkLearner::new(network.clone(), rows(&network, &given.data, None), &plan).unwrap();
        let mut met = 0;
        while !learner.is_done() {
            learner.step().unwrap();
            for norm in learner.largest_norms() {
                assert!(norm <= limit * (1.0 + 1e-6), "{norm}");
                met += usize::from(norm > limit * (1.0 - 1e-6));
            }
        }
        assert!(met > 20, "the limit was met {met} times");
    }
}

fn digits(n: usize) -> Dataset {
    some_digits(0..n)
}

fn some_digits(rows: std::ops::Range<usize>) -> Dataset {
    let (table, labels) = harmonium_data::digits::digits().unwrap();
    let labels = Labels::from_values(labels.into_iter().map(u32::from).collect());
    let data = Dataset::new(table, Binarize::Sample).unwrap().with_labels(labels).unwrap();
    data.select_rows(&rows.collect::<Vec<_>>()).unwrap()
}

fn digit_net(hidden: &[usize]) -> Network {
    let input = Layer::new("visible", Role::Visible, Units::Binary, 64).unwrap();
    let shape = Shape { hidden: hidden.to_vec(), ..Shape::classes(10, 1) };
    harmonium::network::random(&[input], &shape).unwrap()
}

fn digit_plan(optimizer: OptimizerKind) -> NetworkPlan {
    NetworkPlan {
        epochs: 3,
        batch: 30,
        optimizer,
        learning_rate: if optimizer == OptimizerKind::Sgd { 0.1 } else { 0.001 },
        dropout: 0.5,
        input_dropout: 0.2,
        max_norm: Some(3.0),
        l2: 1e-4,
        layer_rates: vec![0.5],
        ..NetworkPlan::default()
    }
}

fn bytes(body: Body) -> Vec<u8> {
    Model { body, about: About::default() }.to_bytes().unwrap()
}

/// Stopped after any step, written, read and resumed: the bytes of a training that never stopped.
#[test]
fn resuming_equals_never_having_stopped() {
    let (data, network) = (digits(100), digit_net(&[20, 12]));
    for optimizer in [OptimizerKind::Sgd, OptimizerKind::Adam] {
        let plan = digit_plan(optimizer);
        let learner =
            || NetworkLearner::new(network.clone(), rows(&network, &data, None), &plan).unwrap();
        let mut whole = learner();
        drive(&mut whole, &mut [], &mut Silent).unwrap();
        for stop in [1, 4, 6] {
            let mut part = learner();
            (0..stop).for_each(|_| assert!(part.step().is_ok()));
            let saved = SavedCheckpoint {
                checkpoint: part.checkpoint(),
                about: About::default(),
                events_length: 0,
            };
            let read = SavedCheckpoint::from_bytes(&saved.to_bytes().unwrap()).unwrap();
            let rows = rows(&network, &data, None);
            let mut rest = NetworkLearner::resume(&read.checkpoint, rows, &plan).unwrap();
            drive(&mut rest, &mut [], &mut Silent).unwrap();
            assert!(bytes(rest.body()) == bytes(whole.body()), "{optimizer:?} after {stop}");
            assert_eq!(rest.checkpoint().state, whole.checkpoint().state);
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let (data, network) = (digits(150), digit_net(&[200, 130]));
    let plan = NetworkPlan { batch: 70, epochs: 2, ..digit_plan(OptimizerKind::Sgd) };
    let trained = |threads| {
        on_threads(threads, || {
            let rows = rows(&network, &data, None);
            let mut learner = NetworkLearner::new(network.clone(), rows, &plan).unwrap();
            assert!(learner.is_parallel(), "large enough for several threads");
            drive(&mut learner, &mut [], &mut Silent).unwrap();
            bytes(learner.body())
        })
    };
    let one = trained(1);
    assert!(trained(2) == one);
    assert!(trained(5) == one);
}

/// What comes out of training is a net without masks: its probabilities are those of the plain formulas.
#[test]
fn answers_are_those_of_the_formulas() {
    for target in [Target::Classes, Target::Tags, Target::Values] {
        let network = net(&[4, 70, 3], Activation::Logistic, target, 31);
        let given = given(&network, 5);
        let rows = rows(&network, &given.data, given.targets.as_ref());
        let answers = Answers::of(&network, &rows, &mut Silent).unwrap();
        let mean = answers.loss(&rows).unwrap().0;
        let expected = plain_loss(&network, &given.inputs, &given.outputs, &[0.2; 5], None, 0.0);
        assert_close(mean, expected, 1e-5, "loss");
        if target == Target::Classes {
            for row in answers.values.chunks(3) {
                assert_close(row.iter().sum(), 1.0, 1e-12, "probabilities");
            }
        }
    }
}

/// A machine of several layers with strong weights and offsets, coupled as `pairs` say.
fn machine(layers: &[(&str, Role, Units, usize)], pairs: &[(usize, usize)]) -> Machine {
    let make = |(l, &(name, role, units, n)): (usize, &(&str, Role, Units, usize))| {
        let mut layer = Layer::new(name, role, units, n).unwrap();
        layer.bias.iter_mut().enumerate().for_each(|(i, b)| *b = noise(40 + l as u64, i));
        layer
            .offset
            .iter_mut()
            .enumerate()
            .for_each(|(i, m)| *m = 0.3 + 0.4 * noise(50 + l as u64, i));
        layer
    };
    let layers: Vec<Layer> = layers.iter().enumerate().map(make).collect();
    let couple = |&(a, b): &(usize, usize)| {
        let w = |i, j| 1.5 * noise(60 + (a * 10 + b) as u64, i * 31 + j);
        let weights = Matrix::from_fn(layers[a].len(), layers[b].len(), w).unwrap();
        Coupling::between(LayerId(a), LayerId(b), weights)
    };
    let couplings = pairs.iter().map(couple).collect();
    Machine::new(layers, couplings).unwrap()
}

const V: Role = Role::Visible;
const H: Role = Role::Hidden;
const B: Units = Units::Binary;

/// Before it learns, the hidden layers of a net say what those of its machine say: exactly for an RBM, at the fixed
/// point of mean field for deep machines.
#[test]
fn a_net_begins_with_the_features_of_its_machine() {
    let labels = ("labels", V, Units::Categorical { q: 3 }, 1);
    let machines = [
        ("rbm", machine(&[("visible", V, B, 6), ("hidden", H, B, 4)], &[(0, 1)])),
        ("turned", machine(&[("visible", V, B, 6), ("hidden", H, B, 4)], &[(1, 0)])),
        ("spins", machine(&[("visible", V, B, 6), ("hidden", H, Units::Spin, 4)], &[(0, 1)])),
        (
            "gaussian",
            machine(&[("visible", V, Units::Gaussian, 6), ("hidden", H, B, 4)], &[(0, 1)]),
        ),
        (
            "two tables",
            machine(
                &[("a", V, B, 2), ("b", V, Units::Categorical { q: 2 }, 2), ("hidden", H, B, 4)],
                &[(0, 2), (2, 1)],
            ),
        ),
        (
            "dbm",
            machine(
                &[("visible", V, B, 6), ("hidden1", H, B, 4), ("hidden2", H, B, 3)],
                &[(0, 1), (1, 2)],
            ),
        ),
        (
            "labels",
            machine(&[("visible", V, B, 6), labels, ("hidden", H, B, 4)], &[(0, 2), (1, 2)]),
        ),
    ];
    for (name, machine) in machines {
        let body = Body::from(machine);
        let network = classifier(&body, &Shape::classes(3, 0)).unwrap();
        let n = network.n_data();
        let value = |k: usize| match name {
            "gaussian" => noise(70, k) as f32,
            "two tables" if k % 6 >= 2 => f32::from(u8::from((k % 6 + k / 6).is_multiple_of(2))),
            _ => f32::from(u8::from(noise(70, k) > 0.0)),
        };
        let data = Dataset::new(real_table(7, n, value), Binarize::None).unwrap();
        let own = Model::from(body).features(&data).unwrap();
        let found = Model::from(network.clone()).features(&data).unwrap();
        if name == "labels" {
            // The labels are taken at their offset: not the features of the machine, which sums over them.
            assert_eq!(found.dim(), own.dim());
            continue;
        }
        assert_eq!(found.dim(), own.dim(), "{name}");
        for (found, own) in found.iter().zip(&own) {
            // A spin's mean is 2p − 1.
            let own = if name == "spins" { 0.5 * (own + 1.0) } else { *own };
            assert_close(*found, own, 2e-5, name);
        }
    }
}

#[test]
fn a_net_begins_with_the_recognition_of_its_deep_belief_network() {
    for (name, dbn) in crate::dbn::networks() {
        if ["categories", "spins"].contains(&name) {
            continue;
        }
        let n = dbn.layer(0).len();
        let value = |k: usize| f32::from(u8::from(noise(71, k) > 0.0));
        let data = Dataset::new(real_table(6, n, value), Binarize::None).unwrap();
        let labelled = dbn.labels().is_some();
        let body = Body::from(dbn);
        let network = classifier(&body, &Shape::classes(3, 0)).unwrap();
        let own = Model::from(body).features(&data).unwrap();
        let found = Model::from(network).features(&data).unwrap();
        let known = if labelled { 3 } else { own.ncols() };
        for (found, own) in found.rows().into_iter().zip(own.rows()) {
            for k in 0..known {
                assert_close(found[k], own[k], 2e-5, name);
            }
        }
    }
}

/// The output of a net starts as what the labels of its machine make of hidden means.
#[test]
fn weights_of_labels_become_the_output() {
    let labels = ("labels", V, Units::Categorical { q: 3 }, 1);
    let machine = machine(&[("visible", V, B, 5), labels, ("hidden", H, B, 4)], &[(0, 2), (1, 2)]);
    let network = classifier(&machine.clone().into(), &Shape::classes(3, 0)).unwrap();
    let (output, hidden) = (&network.layers()[1], machine.layer(LayerId(2)));
    for y in 0..3 {
        let mut bias = machine.layer(LayerId(1)).bias[y];
        for j in 0..4 {
            let w = machine.couplings()[1].weights.entries()[y * 4 + j];
            assert_close(output.weights.at(j, y), w, 1e-12, "weight");
            bias -= w * hidden.offset[j];
        }
        assert_close(output.bias[y], bias, 1e-12, "bias");
    }
    let other = classifier(&machine.into(), &Shape::classes(4, 0)).unwrap();
    assert_eq!(other.n_outputs(), 4);
}

/// Data that machines learn as bits drawn anew is shown to a net as the probabilities themselves.
#[test]
fn nets_see_probabilities_where_machines_see_draws() {
    let grey =
        Table::from_bytes(vec![0, 51, 102, 255, 255, 0, 204, 153, 10, 20, 30, 40], 4, 255).unwrap();
    let sampled = Dataset::new(grey, Binarize::Sample).unwrap();
    let input = Layer::new("visible", V, B, 4).unwrap();
    let network = net_over(vec![input], &[4], Activation::Linear, Target::Values, 0);
    let answers = Answers::of(&network, &rows(&network, &sampled, None), &mut Silent).unwrap();
    for r in 0..3 {
        let mut grey = [0.0; 4];
        sampled.means_into(r, &mut grey);
        for j in 0..4 {
            let dense = &network.layers()[0];
            let z: f64 = (0..4).map(|i| grey[i] * dense.weights.at(i, j)).sum();
            assert_close(answers.values[r * 4 + j], z + dense.bias[j], 1e-5, "value");
        }
    }
}

/// With validation rows the result is the net of the best epoch, which is said.
#[test]
fn the_best_validated_net_is_the_result() {
    let (train, valid) = (digits(200), some_digits(1000..1200));
    let network = digit_net(&[40]);
    // So fast that it does not end where it was best.
    let plan = NetworkPlan {
        epochs: 25,
        batch: 20,
        learning_rate: 0.6,
        decay: Schedule::Constant(1.0),
        ..NetworkPlan::default()
    };
    let finetuning =
        Finetuning::of_network(network, None, &train, &plan).unwrap().validated_by(&valid);
    let whole = finetuning.run(None, &mut [], &mut Silent).unwrap();
    let (score, epoch) = whole.best.clone().unwrap();
    assert_eq!(whole.model.about.epoch, epoch);
    let errors = whole.model.classify(&valid).unwrap().errors.unwrap();
    assert_close(errors.rate, score.value, 1e-12, "the score is that of the result");
    let ends = |epochs| {
        let plan = NetworkPlan { epochs, ..plan.clone() };
        let finetuning = Finetuning { plan, valid: None, ..finetuning.clone() };
        let model = finetuning.run(None, &mut [], &mut Silent).unwrap().model;
        model.classify(&valid).unwrap().errors.unwrap().rate
    };
    assert_close(ends(epoch), score.value, 1e-12, "the net of that epoch");
    let patient = finetuning.run(Some(3), &mut [], &mut Silent).unwrap();
    assert_eq!(patient.model.about.epoch, patient.best.unwrap().1);
}

#[test]
fn nets_are_read_as_they_are_written() {
    let dbm = machine(
        &[("visible", V, B, 6), ("hid.den1", H, B, 4), ("hidden2", H, B, 3)],
        &[(0, 1), (1, 2)],
    );
    let nets = [
        net(&[4, 5, 3], Activation::Relu, Target::Tags, 1),
        classifier(&dbm.into(), &Shape { hidden: vec![5], ..Shape::classes(3, 0) }).unwrap(),
    ];
    for network in nets {
        let model = Model::from(network);
        let bytes = model.to_bytes().unwrap();
        assert_eq!(Model::from_bytes(&bytes).unwrap(), model);
        for cut in [bytes.len() / 3, bytes.len() - 8] {
            assert!(Model::from_bytes(&bytes[..cut]).is_err());
        }
        // Every claim about the shape has to be kept.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for (from, to) in
            [("n_units\\\":5", "n_units\\\":6"), ("relu", "logi"), ("hidden2", "hidden9")]
        {
            if text.contains(from) {
                let wrong = replaced(&bytes, from.as_bytes(), to.as_bytes());
                assert!(Model::from_bytes(&wrong).is_err(), "{from}");
            }
        }
    }
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|w| w == from).unwrap();
    let mut bytes = bytes.to_vec();
    bytes[at..at + to.len()].copy_from_slice(to);
    bytes
}

/// Everything that cannot be done says what was found and what to do.
#[test]
fn what_does_not_fit_is_refused_with_a_hint() {
    let refused = |result: Result<(), harmonium::Error>, words: &[&str]| {
        let error = result.unwrap_err();
        words.iter().for_each(|w| assert!(error.to_string().contains(w), "{error} lacks `{w}`"));
        assert!(!error.hint().is_empty());
    };
    let network = digit_net(&[10]);
    let learn = |network: &Network, data: &Dataset, plan: &NetworkPlan| {
        let schema = Schema::of(&network.data_layers().unwrap(), data)?;
        let rows = NetworkRows::new(network, &schema, data, None, &mut Silent)?;
        NetworkLearner::new(network.clone(), rows, plan).map(|_| ())
    };
    let plan = NetworkPlan::default();
    let data = digits(50);
    refused(learn(&network, &data.clone().without_labels(), &plan), &["no labels"]);
    let one = data.clone().with_labels(Labels::from_values(vec![3; 50])).unwrap();
    refused(learn(&network, &one, &plan), &["one class"]);
    let many = data.clone().with_labels(Labels::from_values((0..50).collect())).unwrap();
    refused(learn(&network, &many, &plan), &["50 classes", "10"]);
    let narrow = net(&[5, 3], Activation::Relu, Target::Classes, 0);
    refused(learn(&narrow, &data, &plan), &["64 columns", "5"]);
    for (wrong, word) in [
        (NetworkPlan { dropout: 1.0, ..plan.clone() }, "dropout"),
        (NetworkPlan { batch: 0, ..plan.clone() }, "batch"),
        (NetworkPlan { max_norm: Some(-1.0), ..plan.clone() }, "max-norm"),
        (NetworkPlan { layer_rates: vec![1.0; 3], ..plan.clone() }, "layer-rates"),
        (
            NetworkPlan { class_weights: ClassWeights::Each(vec![1.0]), ..plan.clone() },
            "class-weights",
        ),
        (NetworkPlan { learning_rate: f64::NAN, ..plan.clone() }, "learning-rate"),
    ] {
        refused(learn(&network, &data, &wrong), &[word]);
    }
    let model = Model::from(network.clone());
    for asked in [
        model.log_partition(&Settings::default(), &mut Silent).map(|_| ()),
        model.score(&data, harmonium::Method::Auto).map(|_| ()),
        model.sample(3, harmonium::Sweeps(10), 0).map(|_| ()),
        model.given(&data, None).map(|_| ()),
    ] {
        refused(asked, &["feed-forward net"]);
    }
    refused(classifier(&model.body, &Shape::classes(2, 0)).map(|_| ()), &["found a net"]);
    let lateral = harmonium::models::ising_torus(3, 0.1).unwrap();
    refused(classifier(&Body::from(lateral), &Shape::classes(2, 0)).map(|_| ()), &["fine-tuning"]);
}

/// A rate that is far too high is found out, and the net is the last good one.
#[test]
fn numbers_that_run_away_end_the_training() {
    let network = net(&[4, 5, 3], Activation::Linear, Target::Values, 1);
    let given = given(&network, 20);
    let rows = rows(&network, &given.data, given.targets.as_ref());
    let plan = NetworkPlan { epochs: 50, batch: 5, learning_rate: 1e3, ..NetworkPlan::default() };
    let mut learner = NetworkLearner::new(network, rows, &plan).unwrap();
    let stop = drive(&mut learner, &mut [], &mut Silent).unwrap();
    assert_eq!(stop.word(), "diverged");
    let Body::Network(last) = learner.body() else { panic!("a net") };
    let all = last.layers().iter().flat_map(|l| l.weights.entries().iter().chain(&l.bias));
    assert!(all.into_iter().all(|x| x.is_finite()));
}

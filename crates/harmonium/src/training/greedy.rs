//! Greedy pre-training: a deep machine starts as a stack of shallow ones
//! (Salakhutdinov & Hinton 2009, section 3.1).
//!
//! Every hidden layer has a *stage*: itself, the layers below it, and the couplings between them.
//! Stages are learned from the data upwards by contrastive divergence; the data of a stage are
//! samples of the hidden layers below, drawn from the stages already learned. Each coupling
//! belongs to one stage.
//!
//! **The doubling rule.** In its stage a layer sees only some of its neighbours. So that it is
//! driven as strongly as it will be in the whole machine, it counts what it receives several times,
//! $$p_s(x_l \mid \text{rest}) \propto e^{\kappa_s\theta_s^\top x_l},\qquad
//!   \theta_s = b_s + \sum_{m\in s} W_{lm}\tilde x_m,\qquad
//!   \kappa_s = \frac{\text{neighbours of } l}{\text{neighbours of } l \text{ in the stage}},$$
//! as if each neighbour it has stood there $\kappa_s$ times, with tied weights. On a chain this is
//! the rule of the paper at both ends:
//!
//! | stage | upwards | downwards |
//! |---|---|---|
//! | first: $v, h^1$ | doubled, with the bias of $h^1$ | plain: $v$ has one neighbour |
//! | in between: $h^{l}, h^{l+1}$ | doubled | doubled: an RBM with weights $2W$, of which half is kept |
//! | last: $h^{L-1}, h^L$ | plain: $h^L$ has one neighbour | doubled, with the bias of $h^{L-1}$ |
//!
//! A label layer above belongs to the last stage and changes nothing else: there $h^L$ sees all
//! its neighbours.
//!
//! **Composing.** The machine takes over all weights, and the bias of a layer is the sum of its
//! biases in the stages,
//! $$\theta_l = \sum_s \theta_s = \sum_s \tfrac{1}{\kappa_s}\,\kappa_s\theta_s:$$
//! a weighted geometric mean of what the stages say about the layer, half of each where two meet.
//! A layer that is in one stage only keeps its conditional to the letter.
//!
//! Nothing of this is an approximation of a likelihood: it is a place to start from.

use super::plan::{Plan, Posterior, Rule};
use super::trainer::{Stop, Trainer, View, purpose};
use super::{Observer, initialise};
use crate::error::Error;
use crate::machine::{Coupling, Engine, Layer, LayerId, Machine, Precision, Role, State};
use crate::optim::Schedule;
use crate::sampling::{Clamp, average_block, gibbs};
use crate::schema::{Feed, Schema};
use crate::units::Units;
use harmonium_data::{Binarize, Dataset, Table};
use harmonium_kernels::dense::add_scaled;
use harmonium_kernels::random::Stream;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// Rows that are carried up at a time.
const ROWS: usize = 512;

/// Where pre-training is; what its watcher sees after each update.
pub struct Pretraining<'a, 't, 'd> {
    /// The hidden layer whose stage is learned.
    pub layer: &'a str,
    /// Its number, counted from 1, and how many there are.
    pub stage: (usize, usize),
    /// The training of the stage: its machine, its last update.
    pub view: &'a View<'t, 'd>,
    /// False after an update; true once more after the last of an epoch.
    pub epoch_ended: bool,
}

/// Replaces the parameters of `machine` by those of a stack of stages, each learned for
/// `plan.pretrain_epochs` epochs by CD-1 with `plan.pretrain_learning_rate`; everything else is as
/// `plan` says.
///
/// `watch` is called after each update and may end the pre-training with a reason; then, or if
/// numbers run away, `machine` is as it was.
///
/// # Errors
///
/// If the machine is no stack (see [`Error::Topology`]), the data does not fit it, a setting is out
/// of range, or memory ends.
pub fn pretrain(
    machine: &mut Machine,
    data: &Dataset,
    plan: &Plan,
    watch: &mut dyn FnMut(&Pretraining<'_, '_, '_>) -> ControlFlow<String>,
) -> Result<Stop, Error> {
    plan.check()?;
    let schema = Schema::of(machine, data)?;
    let feed = Feed::new(machine, &schema, data)?.whole()?;
    let mut stages = stages(machine)?;
    let n_stages = stages.len();
    for s in 0..n_stages {
        let (done, rest) = stages.split_at_mut(s);
        let stage = &mut rest[0];
        let plan = Plan {
            // Other weights and other samples in each stage, and in the training that follows.
            seed: plan.seed ^ (s as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            epochs: plan.pretrain_epochs,
            pretrain_epochs: 0,
            learning_rate: plan.pretrain_learning_rate,
            rule: Rule::Cd,
            k: Schedule::Constant(1.0),
            posterior: Posterior::Auto,
            ..plan.clone()
        };
        let draw = Stream::new(plan.seed).fork(purpose::GREEDY);
        let data = stage.data(machine, done, (&schema, &feed), draw)?;
        initialise(&mut stage.machine, &data, &plan)?;
        for (layer, copies) in stage.machine.layers_mut().iter_mut().zip(&stage.copies) {
            // The bias counts as often as the rest.
            layer.bias.iter_mut().for_each(|b| *b /= copies);
        }
        let layer = machine.layer(stage.top()).name.clone();
        let mut told = Told { layer: &layer, stage: (s + 1, n_stages), watch: &mut *watch };
        let mut trainer =
            Trainer::with_copies(stage.machine.clone(), (&*data).into(), &plan, &stage.copies, 0)?;
        match trainer.run(&mut [&mut told])? {
            Stop::Finished => stage.machine = trainer.finish(Stop::Finished).machine,
            stopped => return Ok(stopped),
        }
    }
    compose(machine, &stages, plan.center)?;
    Ok(Stop::Finished)
}

/// A hidden layer with what is below it.
struct Stage {
    /// The layers below are visible here, the hidden layer is the last.
    machine: Machine,
    /// The layers in the whole machine.
    layers: Vec<LayerId>,
    /// The couplings in the whole machine.
    couplings: Vec<usize>,
    /// $\kappa$ of each layer.
    copies: Vec<f64>,
}

/// One stage for each hidden layer, in their order.
fn stages(machine: &Machine) -> Result<Vec<Stage>, Error> {
    let refused = |found: String| Error::Topology {
        model: "a stack for greedy pre-training",
        expected: "binary hidden layers, each coupled with layers before it; nothing lateral, no coupling between visible layers",
        found,
    };
    let hidden = |l: LayerId| machine.layer(l).role == Role::Hidden;
    let name = |l: LayerId| &machine.layer(l).name;
    if let Some(c) = machine
        .couplings()
        .iter()
        .find(|c| c.is_lateral() || (!hidden(c.between.0) && !hidden(c.between.1)))
    {
        let (a, b) = c.between;
        return Err(refused(format!("`{}` and `{}` are coupled", name(a), name(b))));
    }
    let degree =
        |l: LayerId| machine.couplings().iter().filter(|c| c.other_end(l).is_some()).count();
    let mut stages = Vec::new();
    for h in machine.layer_ids().filter(|&l| hidden(l)) {
        if machine.layer(h).units != Units::Binary {
            let found = format!("`{}` has {} units", name(h), machine.layer(h).units.name());
            return Err(refused(found));
        }
        let mut layers: Vec<LayerId> = machine
            .layer_ids()
            .filter(|&m| machine.coupled(h, m) && (!hidden(m) || m < h))
            .collect();
        if layers.is_empty() {
            return Err(refused(format!("`{}` has nothing below it", name(h))));
        }
        layers.push(h);
        let inside = |l: LayerId| layers.iter().position(|&m| m == l).map(LayerId);
        let mut couplings = Vec::new();
        let mut own = Vec::new();
        for (i, c) in machine.couplings().iter().enumerate() {
            // Only those of the hidden layer: two layers below may be coupled in their own stage.
            if let (Some(a), Some(b), Some(_)) =
                (inside(c.between.0), inside(c.between.1), c.other_end(h))
            {
                couplings.push(i);
                own.push(Coupling { between: (a, b), weights: c.weights.clone() });
            }
        }
        let here = |l: LayerId| if l == h { layers.len() - 1 } else { 1 };
        let copies = layers.iter().map(|&l| degree(l) as f64 / here(l) as f64).collect();
        let as_data = |&l: &LayerId| Layer {
            role: if l == h { Role::Hidden } else { Role::Visible },
            ..machine.layer(l).clone()
        };
        let machine = Machine::new(layers.iter().map(as_data).collect(), own)?;
        stages.push(Stage { machine, layers, couplings, copies });
    }
    Ok(stages)
}

impl Stage {
    /// The hidden layer.
    fn top(&self) -> LayerId {
        self.layers[self.layers.len() - 1]
    }

    /// What the stage learns from: the data itself where it holds nothing else, otherwise the data
    /// and the probabilities of hidden units below, from which each presentation is drawn anew.
    fn data<'d>(
        &self,
        machine: &Machine,
        done: &[Self],
        (schema, feed): (&Schema, &Feed<'d>),
        draw: Stream,
    ) -> Result<Cow<'d, Dataset>, Error> {
        let data = feed.data();
        let below = &self.layers[..self.layers.len() - 1];
        if below.iter().all(|&l| machine.layer(l).role == Role::Visible) {
            let own = |l: &LayerId| schema.layer(&machine.layer(*l).name);
            let columns = below.iter().filter_map(own).flat_map(|f| f.encoding.columns());
            // Otherwise the data has columns of other layers too.
            if columns.map(ExactSizeIterator::len).sum::<usize>() == data.n_columns() {
                return Ok(feed.shared());
            }
        }
        let kept = |l: LayerId| {
            matches!(machine.layer(l).units, Units::Binary | Units::Categorical { .. })
        };
        if let Some(&l) = below.iter().find(|&&l| !kept(l)) {
            let layer = machine.layer(l);
            return Err(Error::Topology {
                model: "a stack for greedy pre-training",
                expected: "binary or categorical units wherever a layer joins others above the first",
                found: format!("`{}` has {} units", layer.name, layer.units.name()),
            });
        }
        let n_columns: usize = below.iter().map(|&l| machine.layer(l).len()).sum();
        let mut bytes = Vec::new();
        let size = n_columns.saturating_mul(data.n_rows());
        let too_much = |_| Error::Memory { what: "the data of a stage".into(), bytes: size as f64 };
        bytes.try_reserve_exact(size).map_err(too_much)?;
        let engines: Vec<Engine> = done
            .iter()
            .map(|s| Engine::with_copies(&s.machine, Precision::F32, &s.copies))
            .collect();
        for start in (0..data.n_rows()).step_by(ROWS) {
            let rows = start..(start + ROWS).min(data.n_rows());
            let values = carried_up(machine, done, &engines, below, feed, rows.clone(), draw)?;
            for row in 0..rows.len() {
                for &l in below {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "probabilities times 255"
                    )]
                    bytes.extend(values.row(l, row).iter().map(|p| (255.0 * p).round() as u8));
                }
            }
        }
        let weights = (0..data.n_rows()).map(|row| data.weight(row)).collect();
        let presented = Table::from_bytes(bytes, n_columns, u8::MAX)
            .and_then(|table| Dataset::new(table, Binarize::Sample)?.with_weights(weights));
        presented.map(Cow::Owned).map_err(|e| Error::Presentation {
            layer: machine.layer(self.top()).name.clone(),
            reason: e.to_string(),
        })
    }
}

/// Rows of data in the visible layers of the whole machine, and every hidden layer that is learned
/// sampled from its stage; those of `wanted` hold probabilities instead.
fn carried_up(
    machine: &Machine,
    done: &[Stage],
    engines: &[Engine],
    wanted: &[LayerId],
    feed: &Feed<'_>,
    rows: std::ops::Range<usize>,
    draw: Stream,
) -> Result<State, Error> {
    let mut x = feed.batch(rows.clone(), draw).to_state(machine)?;
    for (s, (stage, engine)) in done.iter().zip(engines).enumerate() {
        let mut own = State::zeros(&stage.machine, rows.len())?;
        for (inside, &l) in stage.layers.iter().enumerate() {
            own.set_layer(LayerId(inside), x.layer(l));
        }
        let clamp = Clamp::visible(&stage.machine);
        let (top, inside) = (stage.top(), LayerId(stage.layers.len() - 1));
        // Rows of different pieces see different variates.
        let stream = draw.fork(s as u64 + 1).fork(rows.start as u64);
        if wanted.contains(&top) {
            average_block(engine, &clamp, &mut own, &[inside]);
        } else {
            gibbs(&stage.machine, engine, &clamp, &mut own, 1, stream)?;
        }
        x.set_layer(top, own.layer(inside));
    }
    Ok(x)
}

/// Writes the stack into the machine.
fn compose(machine: &mut Machine, stages: &[Stage], center: bool) -> Result<(), Error> {
    let mut offsets: Vec<Vec<f64>> = machine.layers().iter().map(|l| vec![0.0; l.len()]).collect();
    machine.recenter(&offsets)?;
    for layer in machine.layers_mut() {
        layer.bias.fill(0.0);
        layer.precision.fill(0.0);
    }
    for stage in stages {
        let plain = stage.machine.without_offsets()?;
        let centered = stage.machine.layers();
        for (((&l, own), centered), copies) in
            stage.layers.iter().zip(plain.layers()).zip(centered).zip(&stage.copies)
        {
            let layer = &mut machine.layers_mut()[l.0];
            add_scaled(&mut layer.bias, 1.0, &own.bias);
            add_scaled(&mut layer.precision, 1.0 / copies, &own.precision);
            // A hidden layer's own stage comes before those that take it for data.
            if center && offsets[l.0].iter().all(|o| *o == 0.0) {
                offsets[l.0].clone_from(&centered.offset);
            }
        }
        for (&i, own) in stage.couplings.iter().zip(plain.couplings()) {
            let weights = machine.couplings_mut()[i].weights.entries_mut();
            weights.copy_from_slice(own.weights.entries());
        }
    }
    machine.recenter(&offsets)?;
    let constant = machine.constant();
    machine.add_to_constant(-constant);
    Ok(())
}

/// Hands updates of a stage on to the one who watches.
struct Told<'a> {
    layer: &'a str,
    stage: (usize, usize),
    watch: &'a mut dyn FnMut(&Pretraining<'_, '_, '_>) -> ControlFlow<String>,
}

impl Told<'_> {
    fn tell(&mut self, view: &View<'_, '_>, epoch_ended: bool) -> ControlFlow<String> {
        let Self { layer, stage, watch } = self;
        watch(&Pretraining { layer, stage: *stage, view, epoch_ended })
    }
}

impl Observer for Told<'_> {
    fn updated(&mut self, view: &View<'_, '_>) -> ControlFlow<String> {
        self.tell(view, false)
    }

    fn epoch_ended(&mut self, view: &View<'_, '_>) -> ControlFlow<String> {
        self.tell(view, true)
    }
}

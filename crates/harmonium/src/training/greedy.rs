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

use super::guard::Steering;
use super::initialise;
use super::learner::{Checkpoint, Learner, Stage, StepReport, Watched};
use super::objective::Objective;
use super::plan::{Plan, Posterior, Rule};
use super::trainer::{Trainer, purpose};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::estimators::Snapshot;
use crate::machine::{Batch, Coupling, Layer, LayerId, Machine, Role, State};
use crate::models::Body;
use crate::optim::{Progress, Schedule};
use crate::sampling::{Clamp, Sampler};
use crate::schema::{Feed, Schema};
use crate::units::BitCoordinates;
use harmonium_data::{Binarize, Dataset, Table};
use harmonium_kernels::dense::add_scaled;
use harmonium_kernels::random::Stream;
use std::borrow::Cow;

/// Rows that are carried up at a time.
const ROWS: usize = 512;

/// A deep machine that is pre-trained stage by stage, `plan.pretrain_epochs` epochs each by CD-1 with
/// `plan.pretrain_learning_rate`, and then trained as a whole; everything else is as `plan` says.
pub struct Pretrained<'d> {
    /// The machine before pre-training.
    machine: Machine,
    data: &'d Dataset,
    plan: Plan,
    stages: Vec<Part>,
    /// The stage under way, from 0; their number once the whole machine is trained.
    at: usize,
    trainer: Trainer<'d>,
}

impl<'d> Pretrained<'d> {
    /// Prepares the first stage. `machine` has its first parameters, see [`initialise`].
    ///
    /// # Errors
    ///
    /// If the machine is not a stack (see [`Error::Topology`]), the data does not fit it, a setting is
    /// out of range, or memory ends.
    pub fn new(machine: Machine, data: &'d Dataset, plan: &Plan) -> Result<Self, Error> {
        plan.check()?;
        let mut stages = stages(&machine)?;
        let trainer = begin(&machine, &mut stages, 0, data, plan)?;
        Ok(Self { machine, data, plan: plan.clone(), stages, at: 0, trainer })
    }

    /// Continues from a checkpoint of a training with the same data and plan.
    ///
    /// # Errors
    ///
    /// If the checkpoint does not fit the data or the plan.
    pub fn resume(
        machine: Machine,
        checkpoint: &Checkpoint,
        data: &'d Dataset,
        plan: &Plan,
    ) -> Result<Self, Error> {
        let mut stages = stages(&machine)?;
        let (at, trainer) = if let Some(Stage::Pretrain(stage)) = checkpoint.stage {
            let at = stage.saturating_sub(1);
            for (s, part) in stages.iter_mut().enumerate().take(stage) {
                checkpoint.state.machine_into(&part_name(s), &mut part.machine)?;
            }
            let (done, rest) = stages.split_at(at);
            let Some(part) = rest.first() else {
                let what = "the stages of pre-training".into();
                return Err(Error::Shape { what, expected: done.len(), found: stage });
            };
            let own = stage_plan(plan, at);
            let stage_data = part.data(&machine, done, data, draw(&own))?;
            let inner = Checkpoint {
                body: Body::Machine(part.machine.clone()),
                state: checkpoint.state.nested(CURRENT),
                ..checkpoint.clone()
            };
            let copies = &part.copies;
            (at, Trainer::resume_with_copies(&inner, stage_data.into(), &own, copies)?)
        } else {
            (stages.len(), Trainer::resume(checkpoint, data, plan)?)
        };
        Ok(Self { machine, data, plan: plan.clone(), stages, at, trainer })
    }

    /// The machine that is moved: that of the stage under way with the layers it consists of, or the
    /// whole.
    pub fn current(&self) -> Watched<'_> {
        self.trainer.current()
    }

    /// Goes on to the next stage, or to the whole machine.
    fn advance(&mut self) -> Result<(), Error> {
        self.stages[self.at].machine = self.trainer.machine().clone();
        self.at += 1;
        self.trainer = if self.at < self.stages.len() {
            begin(&self.machine, &mut self.stages, self.at, self.data, &self.plan)?
        } else {
            compose(&mut self.machine, &self.stages, self.plan.center)?;
            Trainer::new(self.machine.clone(), self.data, &self.plan)?
        };
        Ok(())
    }

    /// Whether only the composition of the stages is left: nothing more will be learned.
    fn only_composes(&self) -> bool {
        self.plan.epochs == 0 && self.at + 1 == self.stages.len() && self.trainer.is_done()
    }

    /// The machine that the stages give.
    fn composed(&self) -> Result<Machine, Error> {
        let (mut machine, mut stages) = (self.machine.clone(), self.stages.clone());
        stages[self.at].machine = self.trainer.machine().clone();
        compose(&mut machine, &stages, self.plan.center)?;
        Ok(machine)
    }
}

/// Where the state of the stage under way is in a checkpoint.
const CURRENT: &str = "current";

/// Where the parameters of stage `s`, from 0, are in a checkpoint.
fn part_name(s: usize) -> String {
    format!("stages.{s}")
}

impl Learner for Pretrained<'_> {
    fn step(&mut self) -> Result<StepReport, Error> {
        while self.trainer.is_done() && self.at < self.stages.len() {
            self.advance()?;
        }
        self.trainer.step()
    }

    fn progress(&self) -> Progress {
        self.trainer.progress()
    }

    fn is_done(&self) -> bool {
        (self.at == self.stages.len() && self.trainer.is_done()) || self.only_composes()
    }

    fn stage(&self) -> Option<Stage> {
        (self.at < self.stages.len()).then_some(Stage::Pretrain(self.at + 1))
    }

    fn described(&self) -> Option<(String, usize)> {
        let part = self.stages.get(self.at)?;
        Some((self.machine.layer(part.top()).name.clone(), self.stages.len()))
    }

    fn body(&self) -> Body {
        if self.at == self.stages.len() {
            return self.trainer.body();
        }
        let composed = if self.only_composes() { self.composed().ok() } else { None };
        Body::Machine(composed.unwrap_or_else(|| self.machine.clone()))
    }

    fn steer(&mut self, steering: Steering) -> Result<(), Error> {
        self.trainer.steer(steering)
    }

    fn checkpoint(&self) -> Checkpoint {
        let inner = self.trainer.checkpoint();
        if self.at == self.stages.len() {
            return inner;
        }
        let mut state = Snapshot::default();
        state.nest(CURRENT, inner.state);
        for (s, part) in self.stages[..self.at].iter().enumerate() {
            state.insert_machine(&part_name(s), &part.machine);
        }
        state.insert_machine(&part_name(self.at), self.trainer.machine());
        Checkpoint { body: self.body(), stage: self.stage(), state, ..inner }
    }

    fn check(&self) -> Result<(), Error> {
        self.trainer.check()
    }

    fn watched(&self) -> Option<Watched<'_>> {
        // A stage is a place to start from: only the whole machine is worth measuring.
        (self.at == self.stages.len()).then(|| self.current())
    }

    fn is_parallel(&self) -> bool {
        self.trainer.is_parallel()
    }
}

/// The plan of stage `s`, from 0: other weights and other samples in each stage, and in the training
/// that follows.
fn stage_plan(plan: &Plan, s: usize) -> Plan {
    Plan {
        seed: plan.seed ^ (s as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        epochs: plan.pretrain_epochs,
        pretrain_epochs: 0,
        learning_rate: plan.pretrain_learning_rate,
        objective: Objective::Generative,
        rule: Rule::Cd,
        k: Schedule::Constant(1.0),
        posterior: Posterior::Auto,
        ..plan.clone()
    }
}

/// The variates with which the data of a stage is carried up.
fn draw(stage_plan: &Plan) -> Stream {
    Stream::new(stage_plan.seed).fork(purpose::GREEDY)
}

/// The trainer of stage `s`, those before it being learned.
fn begin<'d>(
    machine: &Machine,
    stages: &mut [Part],
    s: usize,
    data: &'d Dataset,
    plan: &Plan,
) -> Result<Trainer<'d>, Error> {
    let plan = stage_plan(plan, s);
    let (done, rest) = stages.split_at_mut(s);
    let part = &mut rest[0];
    let data = part.data(machine, done, data, draw(&plan))?;
    initialise(&mut part.machine, &data, &plan)?;
    for (layer, copies) in part.machine.layers_mut().iter_mut().zip(&part.copies) {
        // The bias counts as often as the rest.
        layer.bias.iter_mut().for_each(|b| *b /= copies);
    }
    Trainer::with_copies(part.machine.clone(), data.into(), &plan, &part.copies, 0)
}

/// A hidden layer with what is below it.
#[derive(Clone)]
struct Part {
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
fn stages(machine: &Machine) -> Result<Vec<Part>, Error> {
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
        if !machine.layer(h).units.is_zero_or_one() {
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
        stages.push(Part { machine, layers, couplings, copies });
    }
    Ok(stages)
}

impl Part {
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
        data: &'d Dataset,
        draw: Stream,
    ) -> Result<Cow<'d, Dataset>, Error> {
        let schema = Schema::of(machine, data)?;
        let feed = Feed::new(machine, &schema, data)?.filled_layers()?;
        let below = &self.layers[..self.layers.len() - 1];
        let columns_of = |l: LayerId| {
            let own = schema.layer(&machine.layer(l).name);
            own.map_or(&[][..], |filling| filling.encoding.columns())
        };
        if below.iter().all(|&l| machine.layer(l).role == Role::Visible) {
            let columns: Vec<_> = below.iter().flat_map(|&l| columns_of(l)).cloned().collect();
            let n_columns: usize = columns.iter().map(ExactSizeIterator::len).sum();
            if n_columns == data.n_columns() {
                return Ok(Cow::Borrowed(data));
            }
            // Otherwise the data has columns of other layers too; labels are carried.
            if n_columns > 0 && below.iter().all(|&l| !columns_of(l).is_empty()) {
                return self.with_something(machine, data.select_columns(&columns)).map(Cow::Owned);
            }
        }
        let mut parts: Option<Dataset> = None;
        let mut add = |part: Dataset| -> Result<(), Error> {
            parts = Some(match parts.take() {
                None => part,
                Some(before) => before.beside(part).map_err(|e| self.not_presented(machine, &e))?,
            });
            Ok(())
        };
        // Layers of the data stand there as they are; runs of the others are carried up together.
        let mut start = 0;
        while start < below.len() {
            let own = columns_of(below[start]);
            if !own.is_empty() {
                let own = data.select_columns(own);
                add(own.map_err(|e| self.not_presented(machine, &e))?)?;
                start += 1;
                continue;
            }
            let run = below[start..].iter().take_while(|&&l| columns_of(l).is_empty()).count();
            add(self.carried(machine, done, &feed, &below[start..start + run], draw)?)?;
            start += run;
        }
        let whole =
            parts.ok_or_else(|| Error::Empty { what: "what a stage learns from".into() })?;
        let weights = (0..data.n_rows()).map(|row| data.weight(row)).collect();
        self.with_something(machine, whole.with_weights(weights)).map(Cow::Owned)
    }

    /// Those of the rows in which something is known.
    fn with_something(
        &self,
        machine: &Machine,
        data: Result<Dataset, harmonium_data::Error>,
    ) -> Result<Dataset, Error> {
        let chosen = data.and_then(|data| {
            if !data.has_missing() {
                return Ok(data);
            }
            let table = data.table();
            let known = |&row: &usize| (0..table.n_columns()).any(|c| !table.is_missing(row, c));
            let rows: Vec<usize> = (0..data.n_rows()).filter(known).collect();
            if rows.len() == data.n_rows() { Ok(data) } else { data.select_rows(&rows) }
        });
        chosen.map_err(|e| self.not_presented(machine, &e))
    }

    fn not_presented(&self, machine: &Machine, error: &harmonium_data::Error) -> Error {
        let layer = machine.layer(self.top()).name.clone();
        Error::Presentation { layer, reason: error.to_string() }
    }

    /// The probabilities of the layers `run` of the stages below, from which each presentation is drawn anew. A layer of
    /// which nothing below is known in a row is missing there.
    fn carried(
        &self,
        machine: &Machine,
        done: &[Self],
        feed: &Feed<'_>,
        run: &[LayerId],
        draw: Stream,
    ) -> Result<Dataset, Error> {
        let kept =
            |l: LayerId| machine.layer(l).units.bit_coordinates() == Some(BitCoordinates::PLAIN);
        if let Some(&l) = run.iter().find(|&&l| !kept(l)) {
            let layer = machine.layer(l);
            return Err(Error::Topology {
                model: "a stack for greedy pre-training",
                expected: "binary or categorical units wherever a layer joins others above the first",
                found: format!("`{}` has {} units", layer.name, layer.units.name()),
            });
        }
        let n_rows = feed.data().n_rows();
        let n_columns: usize = run.iter().map(|&l| machine.layer(l).len()).sum();
        let mut bytes = Vec::new();
        let size = n_columns.saturating_mul(n_rows);
        let too_much = |_| Error::Memory { what: "the data of a stage".into(), bytes: size as f64 };
        bytes.try_reserve_exact(size).map_err(too_much)?;
        let lay = |s: &Part| Sampler::with_copies(s.machine.clone(), Arithmetic::F32, &s.copies);
        let samplers: Vec<Sampler> = done.iter().map(lay).collect();
        let under: Vec<Vec<LayerId>> = run.iter().map(|&l| data_under(machine, l)).collect();
        let mut known = Vec::new();
        for start in (0..n_rows).step_by(ROWS) {
            let rows = start..(start + ROWS).min(n_rows);
            let batch = feed.batch(rows.clone(), draw);
            let values = carried_up(machine, done, &samplers, run, &batch, (rows.start, draw))?;
            for row in 0..rows.len() {
                for (&l, under) in run.iter().zip(&under) {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "probabilities times 255"
                    )]
                    bytes.extend(values.row(l, row).iter().map(|p| (255.0 * p).round() as u8));
                    if feed.has_holes() {
                        let holds = |&v: &LayerId| {
                            (0..machine.layer(v).n_units()).any(|u| batch.clamp().holds(v, row, u))
                        };
                        let any = under.iter().any(holds);
                        known.extend(std::iter::repeat_n(any, machine.layer(l).len()));
                    }
                }
            }
        }
        let mut presented = Table::from_bytes(bytes, n_columns, u8::MAX)
            .and_then(|table| Dataset::new(table, Binarize::Sample));
        if feed.has_holes() {
            let mask = ndarray::Array2::from_shape_vec((n_rows, n_columns), known);
            let mask = mask.unwrap_or_default();
            presented = presented.and_then(|data| data.with_mask(mask.view()));
        }
        presented.map_err(|e| self.not_presented(machine, &e))
    }
}

/// The visible layers that a layer is, or that stand below it.
fn data_under(machine: &Machine, l: LayerId) -> Vec<LayerId> {
    if machine.layer(l).role == Role::Visible {
        return vec![l];
    }
    let hidden = |m: LayerId| machine.layer(m).role == Role::Hidden;
    let below = machine.layer_ids().filter(|&m| machine.coupled(l, m) && (!hidden(m) || m < l));
    below.flat_map(|m| data_under(machine, m)).collect()
}

/// Sweeps that fill what is missing in a row of a stage before its hidden layer is read.
const HOLE_SWEEPS: usize = 10;

/// What a batch holds of the layers of a stage: its hidden layers below are held, its data where there is some.
fn held_below(machine: &Machine, stage: &Part, batch: &Batch) -> Clamp {
    let mut clamp = Clamp::visible(&stage.machine);
    for (inside, &l) in stage.layers.iter().enumerate() {
        let layer = machine.layer(l);
        if layer.role == Role::Visible && !batch.clamp().holds_layer(l) {
            let held = |(row, unit)| batch.clamp().holds(l, row, unit);
            let mask = ndarray::Array2::from_shape_fn((batch.n_rows(), layer.n_units()), held);
            clamp = clamp.with_mask(LayerId(inside), mask.view());
        }
    }
    clamp
}

/// Rows of data in the visible layers of the whole machine, and every hidden layer that is learned
/// sampled from its stage; those of `wanted` hold probabilities instead.
fn carried_up(
    machine: &Machine,
    done: &[Part],
    samplers: &[Sampler],
    wanted: &[LayerId],
    batch: &Batch,
    (first, draw): (usize, Stream),
) -> Result<State, Error> {
    let mut x = batch.to_state(machine)?;
    for (s, (stage, sampler)) in done.iter().zip(samplers).enumerate() {
        let mut own = State::zeros(&stage.machine, batch.n_rows())?;
        for (inside, &l) in stage.layers.iter().enumerate() {
            own.set_layer(LayerId(inside), x.layer(l));
        }
        let (top, inside) = (stage.top(), LayerId(stage.layers.len() - 1));
        // Rows of different pieces see different variates.
        let stream = draw.fork(s as u64 + 1).fork(first as u64);
        let clamp = held_below(machine, stage, batch);
        if clamp != Clamp::visible(&stage.machine) {
            sampler.gibbs(&clamp, &mut own, HOLE_SWEEPS, stream.fork(1))?;
        }
        let clamp = Clamp::visible(&stage.machine);
        if wanted.contains(&top) {
            sampler.average_block(&clamp, &mut own, &[inside]);
        } else {
            sampler.gibbs(&clamp, &mut own, 1, stream)?;
        }
        x.set_layer(top, own.layer(inside));
    }
    Ok(x)
}

/// Writes the stack into the machine.
fn compose(machine: &mut Machine, stages: &[Part], center: bool) -> Result<(), Error> {
    let mut offsets: Vec<Vec<f64>> = machine.layers().iter().map(|l| vec![0.0; l.len()]).collect();
    machine.recenter(&offsets)?;
    for layer in machine.layers_mut() {
        layer.bias.fill(0.0);
        layer.own.fill(0.0);
    }
    for stage in stages {
        let plain = stage.machine.without_offsets()?;
        let centered = stage.machine.layers();
        for (((&l, own), centered), copies) in
            stage.layers.iter().zip(plain.layers()).zip(centered).zip(&stage.copies)
        {
            let layer = &mut machine.layers_mut()[l.0];
            add_scaled(&mut layer.bias, 1.0, &own.bias);
            add_scaled(&mut layer.own, 1.0 / copies, &own.own);
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

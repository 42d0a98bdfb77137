//! Gibbs sampling between a base and a machine, with the weight of what is left when some layers
//! are summed out.
//!
//! The free layers are split in two. $S$ is the largest set of layers that see neither each other
//! nor themselves, but for Gaussian units, which are integrated together; $K$ is the rest. With $E_\beta = (1-\beta)E_\text{base} + \beta E$,
//!
//! $$\ln p^*_\beta(x_K) = \sum_{l \in S} \Gamma_l\bigl((1-\beta) b^\text{base}_l + \beta\theta_l\bigr)
//!   - E_\text{base}(x_K) - \beta A(x_K), \qquad A = E(x_K, x_S = 0) - E_\text{base}(x_K)$$
//!
//! where $\Gamma$ is `log_partition` of the units and $\theta$ their input. Differences of
//! $\ln p^*$ in $\beta$ are what annealed importance sampling and Bennett's ratio are made of; the
//! $\theta$ that they need is also what samples $S$, so a sweep with its weight costs two products.
//! What is held by a clamp is part of the energy: then all this is about the posterior.

use super::gibbs::mark;
use super::walk::{Heat, Response, Walk};
use super::{Clamp, Sampler, free_layers};
use crate::engine::{Operand, Packed, TILES, with_scratch};
use crate::error::Error;
use crate::machine::{Base, LayerId, Machine, Meaning, State, add_input, pair_energy};
use crate::units::{BitCoordinates, Draw, Storage};
use harmonium_kernels::dense::dot;
use harmonium_kernels::line::{TILE, Wide};
use harmonium_kernels::random::{Site, Stream};
use harmonium_kernels::response::{FARTHEST, Warmth, anneal, sample, temper};
use harmonium_kernels::softplus::sum_softplus;
use rayon::prelude::*;

/// Numbers to work on below which waking other threads costs more than they save.
const WORTH_THREADS: usize = 50_000;

/// A machine between its base and itself, seen through the layers that are not summed out.
pub(crate) struct Collapsed<'a> {
    sampler: &'a Sampler,
    base: &'a Base,
    clamp: &'a Clamp,
    summed: Vec<LayerId>,
    /// Gaussian units that are integrated together, by their number in the engine.
    integrated: Vec<usize>,
    kept: Vec<LayerId>,
    /// $E$ of what is held, the same at every step: one for each row, or for all.
    held: Vec<f64>,
    /// For each kept layer $b^\text{base} - b$, what is held being part of $b$; by row if there
    /// is such a part.
    gaps: Vec<Vec<f64>>,
    /// Sums of four neighbours of them for each of the ways they can be set, where rows share them.
    fours: Vec<Vec<[f64; 16]>>,
    /// The machine without offsets: its weights among kept layers, if there are any.
    folded: Machine,
    pairs: Vec<usize>,
    sources: Vec<Operand>,
    theta: Vec<Wide>,
    panels: Vec<Panel>,
}

/// What a visit of 64 units gives, in buffers that stay.
#[derive(Default)]
struct Panel {
    /// Their bits, for each row.
    words: Vec<u64>,
    /// What they add to the weight of each row, in eight parts.
    sums: Vec<[f32; 8]>,
    /// The longest step of a natural parameter.
    farthest: f32,
    tempered: Vec<Wide>,
    bits: Vec<u32>,
}

/// Which variates a step uses.
#[derive(Clone, Copy)]
pub(crate) struct Variates {
    pub(crate) stream: Stream,
    pub(crate) sweep: usize,
}

impl<'a> Collapsed<'a> {
    /// Prepares for rows like those of `x`, of which only what is held is looked at. A clamp holds
    /// whole layers here, and all Gaussian layers that see each other or none of them.
    pub(crate) fn new(
        sampler: &'a Sampler,
        base: &'a Base,
        clamp: &'a Clamp,
        x: &State,
    ) -> Result<Self, Error> {
        sampler.check(clamp, x)?;
        let machine = sampler.machine();
        let folded = machine.without_offsets()?;
        let (mut summed, kept) = split(machine, &free_layers(machine, clamp));
        let is_kept = |l: LayerId| kept.contains(&l);
        let joints = sampler.engine().joints().iter().enumerate();
        let joints = joints.filter(|(_, joint)| joint.layers().iter().all(|l| summed.contains(l)));
        let integrated: Vec<usize> = joints.map(|(k, _)| k).collect();
        summed.retain(|l| sampler.engine().layers()[l.0].joint.is_none());
        let couplings = folded.couplings().iter().enumerate();
        // What Gaussian units send each other is the same in the base.
        let couplings = couplings.filter(|(_, c)| !folded.joins_reals(c));
        let pairs = couplings.filter(|(_, c)| is_kept(c.between.0) && is_kept(c.between.1));
        let pairs = pairs.map(|(i, _)| i).collect();
        let holds = folded.layer_ids().any(|l| clamp.holds_layer(l));
        let by_row = holds || base.differs_by_row();
        let rows = if by_row { x.n_rows() } else { 1 };
        let held = (0..rows).map(|row| held_energy(&folded, clamp, x, row)).collect();
        let gap = |&l: &LayerId| {
            let one = |row: usize| gap_in_row(&folded, base, clamp, x, (l, row));
            (0..rows).flat_map(one).collect::<Vec<f64>>()
        };
        let gaps: Vec<Vec<f64>> = kept.iter().map(gap).collect();
        let sums = |four: &[f64]| {
            let on = |set: usize| four.iter().enumerate().filter(move |(k, _)| set >> k & 1 == 1);
            std::array::from_fn(|set| on(set).map(|(_, gap)| gap).sum::<f64>())
        };
        let fours = |gaps: &Vec<f64>| gaps.chunks(4).filter(|_| !by_row).map(sums).collect();
        let fours = gaps.iter().map(fours).collect();
        Ok(Self {
            sampler,
            base,
            clamp,
            summed,
            integrated,
            kept,
            held,
            gaps,
            fours,
            folded,
            pairs,
            sources: Vec::new(),
            theta: Vec::new(),
            panels: Vec::new(),
        })
    }

    /// Whether a step from a row to another is as likely as the step back: no two layers that
    /// are sampled one after the other see each other.
    pub(crate) fn is_reversible(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The free layers that are not summed out.
    pub(crate) fn kept(&self) -> &[LayerId] {
        &self.kept
    }

    /// $\ln Z$ of the base over the free layers, in one row.
    pub(crate) fn base_log_partition(&self, row: usize) -> f64 {
        self.base.log_partition_of(&self.folded, &free_layers(&self.folded, self.clamp), row)
    }

    /// $\ln p^*_\beta(x_K) + E_\text{base}(x_K)$ of each row, at the $\beta$ of each row in each
    /// of `betas`: differences between them are what matters.
    pub(crate) fn log_densities(&mut self, x: &mut State, betas: &[&[f64]]) -> Vec<Vec<f64>> {
        self.densities(x, betas, None)
    }

    /// Adds $\ln p^*_\text{to}(x_K) - \ln p^*_\text{from}(x_K)$ to the weight of each row, then
    /// sweeps all rows once at `to`.
    pub(crate) fn step(
        &mut self,
        x: &mut State,
        (from, to): (f64, f64),
        log_weights: &mut [f64],
        variates: Variates,
    ) {
        mark(x, self.clamp, Meaning::Values);
        let slopes = self.slopes(x);
        log_weights.iter_mut().zip(slopes).for_each(|(w, a)| *w -= (to - from) * a);
        let betas = [vec![from; x.n_rows()], vec![to; x.n_rows()]];
        for l in self.summed.clone() {
            if let Some(engine) = self.in_kernels(l) {
                self.step_bits((engine, l), x, (from, to), &betas, log_weights, variates);
                continue;
            }
            let mut logs = [vec![0.0; x.n_rows()], vec![0.0; x.n_rows()]];
            self.sum_units(x, l, &[&betas[0], &betas[1]], &mut logs, Some(variates));
            add_difference(&logs, log_weights);
        }
        if !self.integrated.is_empty() {
            let mut logs = [vec![0.0; x.n_rows()], vec![0.0; x.n_rows()]];
            self.integrate(x, &[&betas[0], &betas[1]], &mut logs, Some(variates));
            add_difference(&logs, log_weights);
        }
        self.sample_kept(x, &betas[1], variates);
    }

    fn worth_threads(&self, n_rows: usize) -> bool {
        n_rows * self.theta.len() > WORTH_THREADS && rayon::current_num_threads() > 1
    }

    /// The layout of the kernels, if layer `l` is bits to them, with one base for all rows.
    fn in_kernels(&self, l: LayerId) -> Option<&'a Packed> {
        let bits = self.sampler.engine().layers()[l.0].units.storage() == Storage::Bits;
        self.sampler.engine().packed().filter(|_| bits && !self.base.differs_by_row())
    }

    /// Adds to the weights what layer `l` sums to, and samples it at the second temperature. Steps
    /// so short that a series gives the difference need no logarithm.
    fn step_bits(
        &mut self,
        (engine, l): (&Packed, LayerId),
        x: &mut State,
        (from, to): (f64, f64),
        betas: &[Vec<f64>; 2],
        log_weights: &mut [f64],
        variates: Variates,
    ) {
        let base = self.prepare(engine, x, l);
        let (n_rows, layer) = (x.n_rows(), &engine.layers()[l.0]);
        #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
        let (warmth, c) = (
            Warmth { to: to as f32, step: (to - from) as f32 },
            (layer.shift / layer.scale) as f32,
        );
        let Variates { stream, sweep } = variates;
        // Columns beyond the last have neither weights nor a base: they stay where they are.
        self.visit(engine, l, n_rows, |tile, theta, panel| {
            let draw = (stream, Site::new(0, sweep, l.0), u32::try_from(tile).unwrap_or(u32::MAX));
            let (sums, bits) = (&mut panel.sums, &mut panel.bits);
            let far = anneal(theta, &line_of(&base, tile), warmth, c, draw, sums, bits);
            // Written so that no number at all counts as far.
            panel.farthest = if far <= panel.farthest { panel.farthest } else { far };
        });
        self.take_words(x, l);
        if self.panels.iter().all(|p| p.farthest <= FARTHEST) {
            for panel in &self.panels {
                for (weight, parts) in log_weights.iter_mut().zip(&panel.sums) {
                    *weight += parts.iter().map(|x| f64::from(*x)).sum::<f64>();
                }
            }
            return;
        }
        let mut logs = [vec![0.0; n_rows], vec![0.0; n_rows]];
        self.add_softplus(l, n_rows, &base, &[&betas[0], &betas[1]], &mut logs);
        add_difference(&logs, log_weights);
    }

    /// Sweeps each row at its own $\beta$.
    pub(crate) fn sweep(&mut self, x: &mut State, betas: &[f64], variates: Variates) {
        mark(x, self.clamp, Meaning::Values);
        self.densities(x, &[betas], Some(variates));
        self.sample_kept(x, betas, variates);
    }

    fn sample_kept(&self, x: &mut State, betas: &[f64], variates: Variates) {
        let Variates { stream, sweep } = variates;
        let heat = Heat::Mixed { base: self.base, betas };
        let walk = Walk { engine: self.sampler.engine(), clamp: self.clamp, heat, step: 1.0 };
        walk.visit_all(x, &self.kept, Response::Sample { stream, sweep });
    }

    /// The densities, and samples of the summed layers at the last of `betas` if asked for.
    fn densities(
        &mut self,
        x: &mut State,
        betas: &[&[f64]],
        draw: Option<Variates>,
    ) -> Vec<Vec<f64>> {
        let slopes = self.slopes(x);
        let of = |beta: &&[f64]| beta.iter().zip(&slopes).map(|(b, a)| -b * a).collect();
        let mut logs: Vec<Vec<f64>> = betas.iter().map(of).collect();
        for l in self.summed.clone() {
            if let Some(engine) = self.in_kernels(l) {
                let base = self.bits_of(engine, x, l, betas.last().copied().zip(draw));
                self.add_softplus(l, x.n_rows(), &base, betas, &mut logs);
            } else {
                self.sum_units(x, l, betas, &mut logs, draw);
            }
        }
        self.integrate(x, betas, &mut logs, draw);
        logs
    }

    /// $A$ of each row.
    fn slopes(&self, x: &State) -> Vec<f64> {
        let slope = |row: usize| {
            let mut slope = self.held[if self.held.len() > 1 { row } else { 0 }];
            for ((&l, gaps), fours) in self.kept.iter().zip(&self.gaps).zip(&self.fours) {
                let layer = self.folded.layer(l);
                let start = if gaps.len() > layer.len() { row * layer.len() } else { 0 };
                slope += self.own_gap(x, l, row, &gaps[start..start + layer.len()], fours);
            }
            for &i in &self.pairs {
                let c = &self.folded.couplings()[i];
                let (a, b) = (x.row(c.between.0, row), x.row(c.between.1, row));
                slope -= pair_energy(&c.weights, a, b);
            }
            slope
        };
        let dear = !self.pairs.is_empty();
        if dear && x.n_rows() * self.folded.n_parameters() > WORTH_THREADS {
            return (0..x.n_rows()).into_par_iter().map(slope).collect();
        }
        (0..x.n_rows()).map(slope).collect()
    }

    /// $E_l(x) - E^\text{base}_l(x)$ of one row, what is held being part of $E_l$.
    fn own_gap(&self, x: &State, l: LayerId, row: usize, gap: &[f64], fours: &[[f64; 16]]) -> f64 {
        let layer = self.folded.layer(l);
        let Some(bits) = x.layers[l.0].bits() else {
            // What units own is the same in the base.
            return dot(gap, x.row(l, row));
        };
        let mut on = 0.0;
        for (&word, fours) in bits.row(row).iter().zip(fours.chunks(16)) {
            let at = |k: usize| (word >> (4 * k) & 15) as usize;
            on += fours.iter().enumerate().map(|(k, sums)| sums[at(k)]).sum::<f64>();
        }
        if fours.is_empty() {
            for (&word, gap) in bits.row(row).iter().zip(gap.chunks(64)) {
                let mut word = word;
                while word != 0 {
                    on += gap[word.trailing_zeros() as usize];
                    word &= word - 1;
                }
            }
        }
        match layer.units.bit_coordinates() {
            None | Some(BitCoordinates::PLAIN) => on,
            Some(bits) => bits.scale * on + bits.shift * gap.iter().sum::<f64>(),
        }
    }

    /// Computes $s\theta$ of layer `l`, whose units are bits in the kernels, and samples it if asked
    /// for, at the $\beta$ of each row. Returns $s b$ of the base.
    fn bits_of(
        &mut self,
        engine: &Packed,
        x: &mut State,
        l: LayerId,
        draw: Option<(&[f64], Variates)>,
    ) -> Vec<f64> {
        let base = self.prepare(engine, x, l);
        let Some((betas, Variates { stream, sweep })) = draw else {
            self.visit(engine, l, x.n_rows(), |_, _, _| {});
            return base;
        };
        #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
        let betas: Vec<f32> = betas.iter().map(|b| *b as f32).collect();
        self.visit(engine, l, x.n_rows(), |tile, theta, panel| {
            panel.tempered.clear();
            panel.tempered.extend_from_slice(theta);
            temper(&mut panel.tempered, &betas, &line_of(&base, tile));
            let site = Site::new(0, sweep, l.0);
            let number = u32::try_from(tile).unwrap_or(u32::MAX);
            sample(&panel.tempered, stream, site, number, &mut panel.bits);
        });
        self.take_words(x, l);
        base
    }

    /// Gets ready for [`Collapsed::visit`]; returns $s b$ of the base.
    fn prepare(&mut self, engine: &Packed, x: &mut State, l: LayerId) -> Vec<f64> {
        let (n_rows, layer) = (x.n_rows(), &engine.layers()[l.0]);
        engine.prepare(l, x, &mut self.sources);
        self.theta.resize(layer.len.div_ceil(TILE) * n_rows, Wide::ZERO);
        self.panels.resize_with(layer.len.div_ceil(TILES * TILE), Panel::default);
        for panel in &mut self.panels {
            panel.words.clear();
            panel.words.resize(n_rows, 0);
            panel.sums.clear();
            panel.sums.resize(n_rows, [0.0; 8]);
            panel.bits.resize(n_rows, 0);
            panel.farthest = 0.0;
        }
        self.base.bias_in(l, 0).iter().map(|b| layer.scale * b).collect()
    }

    /// Computes $s\theta$ of layer `l` tile by tile, and lets `respond` make bits of it.
    fn visit(
        &mut self,
        engine: &Packed,
        l: LayerId,
        n_rows: usize,
        respond: impl Fn(usize, &[Wide], &mut Panel) + Sync + Send,
    ) {
        let parallel = self.worth_threads(n_rows);
        let sources = &self.sources;
        let visit = |(p, (theta, panel)): (usize, (&mut [Wide], &mut Panel))| {
            with_scratch(|scratch| engine.theta_panel(l, p, sources, theta, scratch));
            for (half, theta) in theta.chunks_exact(n_rows).enumerate() {
                respond(p * TILES + half, theta, panel);
                for (word, &bits) in panel.words.iter_mut().zip(&panel.bits) {
                    *word |= u64::from(bits) << (half * TILE);
                }
            }
        };
        let size = TILES * n_rows.max(1);
        if parallel {
            let theta = self.theta.par_chunks_mut(size);
            theta.zip(&mut self.panels).enumerate().for_each(visit);
        } else {
            self.theta.chunks_mut(size).zip(&mut self.panels).enumerate().for_each(visit);
        }
    }

    /// Takes over the bits that a visit made.
    fn take_words(&self, x: &mut State, l: LayerId) {
        let n_rows = x.n_rows();
        let bits = x.layers[l.0].bits_mut(n_rows);
        self.panels.iter().enumerate().for_each(|(p, panel)| bits.set_panel(p, &panel.words));
    }

    /// Adds what a layer sums to whose $s\theta$ is known.
    fn add_softplus(
        &self,
        l: LayerId,
        n_rows: usize,
        base: &[f64],
        betas: &[&[f64]],
        logs: &mut [Vec<f64>],
    ) {
        let layer = &self.sampler.engine().layers()[l.0];
        let row_sums = |row: usize| {
            let (mut own, mut mixed) = (vec![0.0; layer.len], vec![0.0; layer.len]);
            for (tile, own) in own.chunks_mut(TILE).enumerate() {
                let tile = &self.theta[tile * n_rows + row].0;
                own.iter_mut().zip(tile).for_each(|(o, t)| *o = f64::from(*t));
            }
            let sum = |beta: &&[f64]| {
                let beta = beta[row];
                let pairs = mixed.iter_mut().zip(&own).zip(base);
                pairs.for_each(|((m, t), b)| *m = b + beta * (t - b));
                // ln 2cosh(t) = ln(1 + exp(2t)) - t, and a spin's numbers here are 2t.
                let shift = layer.shift / layer.scale;
                let linear = if shift == 0.0 { 0.0 } else { shift * mixed.iter().sum::<f64>() };
                sum_softplus(&mixed) + linear
            };
            betas.iter().map(sum).collect::<Vec<f64>>()
        };
        add_rows(n_rows * layer.len, n_rows, logs, row_sums);
    }

    /// Adds what layer `l` sums to, by the verbs of its units.
    fn sum_units(
        &mut self,
        x: &mut State,
        l: LayerId,
        betas: &[&[f64]],
        logs: &mut [Vec<f64>],
        draw: Option<Variates>,
    ) {
        let layer = self.folded.layer(l);
        let (n_rows, len) = (x.n_rows(), layer.len());
        let theta = self.sampler.natural_parameters(x, l);
        let mix = |row: usize, beta: f64| {
            let mix = |(own, base): (&f64, &f64)| (1.0 - beta) * base + beta * own;
            let own = &theta[row * len..(row + 1) * len];
            own.iter().zip(self.base.bias_in(l, row)).map(mix).collect::<Vec<f64>>()
        };
        let row_sums = |row: usize| {
            let sum = |beta: &&[f64]| layer.units.log_partition(&mix(row, beta[row]), layer.own());
            betas.iter().map(sum).collect::<Vec<f64>>()
        };
        add_rows(n_rows * len, n_rows, logs, row_sums);
        let (Some(Variates { stream, sweep }), Some(last)) = (draw, betas.last()) else { return };
        let mut values = vec![0.0; n_rows * len];
        let respond = |(row, out): (usize, &mut [f64])| {
            out.copy_from_slice(&mix(row, last[row]));
            let draw = Draw { stream, site: Site::new(row, sweep, l.0), start: 0 };
            layer.units.sample_in_place(out, layer.own(), draw);
        };
        if n_rows * len > WORTH_THREADS {
            values.par_chunks_exact_mut(len).enumerate().for_each(respond);
        } else {
            values.chunks_exact_mut(len).enumerate().for_each(respond);
        }
        x.set_layer(l, &values);
    }

    /// Adds what Gaussian units that see each other sum to, and samples them if asked for. In
    /// coordinates in which they are independent the input of the base and that of the machine are
    /// mixed after each was brought there.
    fn integrate(
        &self,
        x: &mut State,
        betas: &[&[f64]],
        logs: &mut [Vec<f64>],
        draw: Option<Variates>,
    ) {
        let engine = self.sampler.engine();
        let n_rows = x.n_rows();
        for joint in self.integrated.iter().map(|&k| &engine.joints()[k]) {
            let (Some(density), n) = (joint.density(), joint.len()) else { continue };
            let mut inputs = vec![0.0; n_rows * n];
            for (l, range) in joint.parts() {
                let theta = self.sampler.natural_parameters(x, l);
                for (all, own) in inputs.chunks_exact_mut(n).zip(theta.chunks_exact(range.len())) {
                    all[range.clone()].copy_from_slice(own);
                }
            }
            let base_in = |row: usize| {
                let fields = joint.layers().iter().flat_map(|&l| self.base.bias_in(l, row));
                let mut fields: Vec<f64> = fields.copied().collect();
                density.whiten(&mut fields);
                fields
            };
            let shared = (!self.base.differs_by_row()).then(|| base_in(0));
            let of_row = |(row, input): (usize, &mut [f64])| {
                let own;
                let base = if let Some(base) = &shared {
                    base
                } else {
                    own = base_in(row);
                    &own
                };
                density.whiten(input);
                let mixed = |beta: f64| {
                    input.iter().zip(base).map(move |(t, b)| (1.0 - beta) * b + beta * t)
                };
                let sum = |beta: &&[f64]| {
                    density.constant() + 0.5 * mixed(beta[row]).map(|u| u * u).sum::<f64>()
                };
                let sums: Vec<f64> = betas.iter().map(sum).collect();
                if let (Some(Variates { stream, sweep }), Some(last)) = (draw, betas.last()) {
                    let mut values: Vec<f64> = mixed(last[row]).collect();
                    let mut normals = vec![0.0; n];
                    for (l, range) in joint.parts() {
                        stream.normals_into(Site::new(row, sweep, l.0), &mut normals[range]);
                    }
                    values.iter_mut().zip(&normals).for_each(|(u, z)| *u += z);
                    density.colour(&mut values);
                    input.copy_from_slice(&values);
                }
                sums
            };
            let sums: Vec<Vec<f64>> = if n_rows * n * n > WORTH_THREADS {
                inputs.par_chunks_exact_mut(n).enumerate().map(of_row).collect()
            } else {
                inputs.chunks_exact_mut(n).enumerate().map(of_row).collect()
            };
            for (row, sums) in sums.iter().enumerate() {
                logs.iter_mut().zip(sums).for_each(|(log, sum)| log[row] += sum);
            }
            if draw.is_some() {
                for (l, range) in joint.parts() {
                    let rows = inputs.chunks_exact(n).flat_map(|row| &row[range.clone()]);
                    x.set_layer(l, &rows.copied().collect::<Vec<f64>>());
                }
            }
        }
    }
}

/// $E$ of what is held in one row, of a machine without offsets.
fn held_energy(folded: &Machine, clamp: &Clamp, x: &State, row: usize) -> f64 {
    let is_held = |l: LayerId| clamp.holds_layer(l);
    let own = folded.layer_ids().filter(|&l| is_held(l));
    let own: f64 = own.map(|l| folded.layer(l).energy(x.row(l, row))).sum();
    let inside = folded.couplings().iter();
    let inside = inside.filter(|c| is_held(c.between.0) && is_held(c.between.1));
    let pairs = inside.map(|c| {
        let (a, b) = c.between;
        pair_energy(&c.weights, x.row(a, row), x.row(b, row))
    });
    folded.constant() + own - pairs.sum::<f64>()
}

/// $b^\text{base} - b$ of a layer in one row, what is held being part of $b$.
fn gap_in_row(
    folded: &Machine,
    base: &Base,
    clamp: &Clamp,
    x: &State,
    (l, row): (LayerId, usize),
) -> Vec<f64> {
    let mut field = folded.layer(l).bias.clone();
    for c in folded.couplings().iter().filter(|c| !folded.joins_reals(c)) {
        if let Some(m) = c.other_end(l).filter(|&m| clamp.holds_layer(m)) {
            add_input(c, l, x.row(m, row), &mut field);
        }
    }
    base.bias_in(l, row).iter().zip(field).map(|(base, own)| base - own).collect()
}

/// One tile of numbers.
fn line_of(numbers: &[f64], tile: usize) -> Wide {
    let mut line = Wide::ZERO;
    #[expect(clippy::cast_possible_truncation, reason = "the kernels' precision")]
    line.0.iter_mut().zip(&numbers[tile * TILE..]).for_each(|(l, b)| *l = *b as f32);
    line
}

fn add_difference(logs: &[Vec<f64>; 2], log_weights: &mut [f64]) {
    for ((weight, before), after) in log_weights.iter_mut().zip(&logs[0]).zip(&logs[1]) {
        *weight += after - before;
    }
}

/// Adds numbers of each row, in parallel if the `work` is worth it.
fn add_rows(
    work: usize,
    n_rows: usize,
    logs: &mut [Vec<f64>],
    row_sums: impl Fn(usize) -> Vec<f64> + Sync + Send,
) {
    let sums: Vec<Vec<f64>> = if work > WORTH_THREADS && rayon::current_num_threads() > 1 {
        (0..n_rows).into_par_iter().with_min_len(8).map(row_sums).collect()
    } else {
        (0..n_rows).map(row_sums).collect()
    };
    for (row, sums) in sums.iter().enumerate() {
        logs.iter_mut().zip(sums).for_each(|(log, sum)| log[row] += sum);
    }
}

/// The layers that are not summed out where nothing is held.
pub(crate) fn kept_layers(machine: &Machine) -> Vec<LayerId> {
    split(machine, &free_layers(machine, &Clamp::none())).1
}

/// The free layers that are summed out, and those that are kept: the most entries that see
/// neither each other nor themselves go, where Gaussian layers that see each other count as one.
fn split(machine: &Machine, free: &[LayerId]) -> (Vec<LayerId>, Vec<LayerId>) {
    let mut joined = machine.real_blocks();
    joined.retain(|block| block.iter().all(|l| free.contains(l)));
    let is_alone =
        |l: LayerId| !machine.has_lateral(l) && !joined.iter().flatten().any(|m| *m == l);
    let alone = free.iter().filter(|&&l| is_alone(l)).map(|&l| vec![l]);
    let candidates: Vec<Vec<LayerId>> = alone.chain(joined.iter().cloned()).collect();
    let (summed, _) = machine.heaviest_uncoupled(&candidates, |l| machine.layer(l).len() as f64);
    let kept = free.iter().copied().filter(|l| !summed.contains(l)).collect();
    (summed, kept)
}

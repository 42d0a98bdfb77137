//! What is enumerated, what is summed in closed form, and the numbers the walk needs.

use crate::error::Error;
use crate::gaussian::Block;
use crate::machine::{LayerId, Machine, State};
use crate::sampling::Clamp;
use crate::units::{OwnParameters, Units};

/// Which layers are summed in closed form.
pub(super) struct Split {
    pub(super) summed: Vec<LayerId>,
    pub(super) log2_terms: f64,
}

impl Split {
    /// The split with the fewest terms: all free Gaussian layers, and the discrete layers of the
    /// heaviest set that sees neither itself nor a Gaussian layer.
    pub(super) fn new(machine: &Machine, clamp: &Clamp, row: usize) -> Self {
        let bits = |l: LayerId| {
            let layer = machine.layer(l);
            let free = (0..layer.n_units()).filter(|&u| !clamp.holds(l, row, u)).count();
            let choices = layer.units.configurations().map_or(1, |c| c.0.len());
            free as f64 * (choices as f64).log2()
        };
        let free: Vec<LayerId> = machine.layer_ids().filter(|&l| !clamp.holds_layer(l)).collect();
        let (gaussian, discrete): (Vec<LayerId>, Vec<LayerId>) =
            free.iter().partition(|&&l| !machine.layer(l).units.is_finite());
        let seen = machine.layers_seen();
        let sees_sum = |l: LayerId| seen[l.0].iter().any(|m| *m == l || gaussian.contains(m));
        let candidates = discrete.iter().filter(|&&l| !sees_sum(l)).map(|&l| vec![l]);
        let candidates: Vec<Vec<LayerId>> = candidates.collect();
        let total: f64 = discrete.iter().map(|&l| bits(l)).sum();
        let (best, saved) = machine.heaviest_uncoupled(&candidates, bits);
        Self { summed: [gaussian, best].concat(), log2_terms: total - saved }
    }
}

/// What an entry of a layer is in the sum.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry {
    /// Held at this value.
    Clamped(f64),
    /// Number of the enumerated entry.
    Enumerated(usize),
    /// Number of the summed entry.
    Summed(usize),
}

/// One unit that is enumerated: it walks through `levels` values.
pub(super) struct Walked {
    /// Its first enumerated entry.
    pub(super) start: usize,
    /// The change of its entries from one value to the next.
    pub(super) steps: Vec<Vec<(usize, f64)>>,
    /// The change of its own energy.
    pub(super) own: Vec<f64>,
}

/// Runs of summed units of one kind, in the order of their entries.
pub(super) struct Run {
    pub(super) units: Units,
    pub(super) entries: std::ops::Range<usize>,
    /// Their own parameters, a row for each that the kind declares.
    own: Vec<f64>,
}

impl Run {
    pub(super) fn own(&self) -> OwnParameters<'_> {
        OwnParameters::new(&self.own, self.entries.len())
    }
}

/// An entry of a finite kind that owns parameters, whose statistics are summed over its values.
pub(super) struct Owner {
    pub(super) layer: LayerId,
    pub(super) index: usize,
    pub(super) entry: Entry,
    pub(super) units: Units,
    own: Vec<f64>,
}

impl Owner {
    pub(super) fn own(&self) -> OwnParameters<'_> {
        OwnParameters::new(&self.own, 1)
    }
}

/// A sum over the free units of one row, ready to be walked.
pub(super) struct Problem {
    /// Per layer and entry.
    pub(super) entries: Vec<Vec<Entry>>,
    pub(super) units: Vec<Walked>,
    /// Values of the enumerated entries with every unit at its first value.
    pub(super) values: Vec<f64>,
    /// $-E$ there, without the summed units.
    pub(super) log_weight: f64,
    /// Field on the enumerated entries there.
    pub(super) field: Vec<f64>,
    /// Couplings between enumerated entries, row-major and symmetric.
    pub(super) inner: Vec<f64>,
    /// $\theta$ of the summed entries there; of Gaussian ones $L^{-1}\theta$, in which they are
    /// independent and have unit variance.
    pub(super) theta: Vec<f64>,
    /// Couplings from enumerated to summed entries, row-major; in the same coordinates.
    pub(super) outer: Vec<f64>,
    pub(super) runs: Vec<Run>,
    pub(super) owners: Vec<Owner>,
    /// The Gaussian entries, which come last.
    pub(super) gaussian: Block,
}

impl Problem {
    /// Prepares the sum over the free units of one row of `x`; `machine` has zero offsets.
    pub(super) fn new(
        machine: &Machine,
        clamp: &Clamp,
        x: &State,
        row: usize,
    ) -> Result<Self, Error> {
        let split = Split::new(machine, clamp, row);
        let mut start = State::zeros(machine, 1)?;
        let mut problem = Self {
            entries: machine.layers().iter().map(|l| vec![Entry::Clamped(0.0); l.len()]).collect(),
            units: Vec::new(),
            values: Vec::new(),
            log_weight: 0.0,
            field: Vec::new(),
            inner: Vec::new(),
            theta: Vec::new(),
            outer: Vec::new(),
            runs: Vec::new(),
            owners: Vec::new(),
            gaussian: Block::default(),
        };
        // Discrete summed layers first, so that the Gaussian entries are the last ones.
        let mut order: Vec<LayerId> = machine.layer_ids().collect();
        order.sort_by_key(|&l| !machine.layer(l).units.is_finite());
        for l in order {
            let values = problem.place(machine, clamp, (x, row), l, split.summed.contains(&l));
            start.set_row(l, 0, &values)?;
        }
        problem.log_weight = -machine.energy_of_row(&start, 0);
        problem.field = vec![0.0; problem.values.len()];
        problem.theta = vec![0.0; problem.n_summed()];
        for l in machine.layer_ids() {
            let theta = machine.theta(l, &start, 0)?;
            for (entry, theta) in problem.entries[l.0].iter().zip(theta) {
                match *entry {
                    Entry::Clamped(_) => {}
                    Entry::Enumerated(i) => problem.field[i] = theta,
                    Entry::Summed(i) => problem.theta[i] = theta,
                }
            }
        }
        problem.couple(machine)?;
        problem.find_owners(machine);
        Ok(problem)
    }

    pub(super) fn n_summed(&self) -> usize {
        self.runs.last().map_or(0, |r| r.entries.end)
    }

    /// Number of summed entries that are not Gaussian.
    pub(super) fn n_discrete(&self) -> usize {
        let discrete = self.runs.iter().filter(|r| r.units.is_finite());
        discrete.map(|r| r.entries.end).max().unwrap_or(0)
    }

    /// Gives the entries of a layer their places; returns where the layer starts.
    fn place(
        &mut self,
        machine: &Machine,
        clamp: &Clamp,
        (x, row): (&State, usize),
        l: LayerId,
        summed: bool,
    ) -> Vec<f64> {
        let layer = machine.layer(l);
        let group = layer.units.group();
        let mut values = x.row(l, row).to_vec();
        let first = self.n_summed();
        let mut n_summed = first;
        for unit in 0..layer.n_units() {
            let range = unit * group..(unit + 1) * group;
            if clamp.holds(l, row, unit) {
                for i in range {
                    self.entries[l.0][i] = Entry::Clamped(values[i]);
                }
            } else if summed {
                for i in range {
                    self.entries[l.0][i] = Entry::Summed(n_summed);
                    n_summed += 1;
                    values[i] = 0.0;
                }
            } else if let Some(levels) = layer.units.configurations() {
                let levels = levels.0;
                let start = self.values.len();
                for (k, i) in range.clone().enumerate() {
                    self.entries[l.0][i] = Entry::Enumerated(start + k);
                    values[i] = levels[0][k];
                }
                self.values.extend_from_slice(&levels[0]);
                let step = |w: &[Vec<f64>]| {
                    let change = w[1].iter().zip(&w[0]).map(|(b, a)| b - a).enumerate();
                    change.filter(|c| c.1 != 0.0).map(|(k, d)| (start + k, d)).collect()
                };
                let own = layer.own().piece(range);
                let energy = |x: &[f64]| layer.units.own_energy(own, x);
                let climb = |w: &[Vec<f64>]| energy(&w[1]) - energy(&w[0]);
                let own = levels.windows(2).map(climb).collect();
                let steps = levels.windows(2).map(step).collect();
                self.units.push(Walked { start, steps, own });
            }
        }
        if n_summed > first {
            let free = |i: &usize| matches!(self.entries[l.0][*i], Entry::Summed(_));
            let free: Vec<usize> = (0..layer.len()).filter(free).collect();
            let rows = layer.own.chunks_exact(layer.len());
            let own = rows.flat_map(|row| free.iter().map(|&i| row[i])).collect();
            self.runs.push(Run { units: layer.units, entries: first..n_summed, own });
        }
        values
    }

    /// Lists the entries whose statistics are sums over their values.
    fn find_owners(&mut self, machine: &Machine) {
        for layer in machine.layer_ids().filter(|&l| machine.layer(l).units.sums_own()) {
            let (units, len) = (machine.layer(layer).units, machine.layer(layer).len());
            for (index, &entry) in self.entries[layer.0].iter().enumerate() {
                let rows = machine.layer(layer).own.chunks_exact(len);
                let own = rows.map(|row| row[index]).collect();
                self.owners.push(Owner { layer, index, entry, units, own });
            }
        }
    }

    /// Gathers the couplings between free entries.
    fn couple(&mut self, machine: &Machine) -> Result<(), Error> {
        let (n, m) = (self.values.len(), self.n_summed());
        self.inner = vec![0.0; n * n];
        self.outer = vec![0.0; n * m];
        let discrete = self.n_discrete();
        let mut precision = vec![0.0; m - discrete];
        let mut pairs: Vec<(usize, usize, f64)> = Vec::new();
        for (layer, entries) in machine.layers().iter().zip(&self.entries) {
            let curvature = layer.units.curvature(layer.own()).unwrap_or_default();
            for (g, entry) in curvature.iter().zip(entries) {
                if let Entry::Summed(i) = entry {
                    precision[i - discrete] = *g;
                }
            }
        }
        for c in machine.couplings() {
            let (a, b) = (c.between.0.0, c.between.1.0);
            c.weights.for_each(|i, j, w| match (self.entries[a][i], self.entries[b][j]) {
                (Entry::Enumerated(i), Entry::Enumerated(j)) => {
                    self.inner[i * n + j] += w;
                    self.inner[j * n + i] += w;
                }
                (Entry::Enumerated(i), Entry::Summed(j))
                | (Entry::Summed(j), Entry::Enumerated(i)) => self.outer[i * m + j] += w,
                (Entry::Summed(i), Entry::Summed(j)) => {
                    pairs.push((i - discrete, j - discrete, w));
                }
                _ => {}
            });
        }
        self.gaussian = Block::coupled(&precision, &pairs)?;
        self.gaussian.whiten(&mut self.theta[discrete..]);
        for row in self.outer.chunks_exact_mut(m.max(1)) {
            self.gaussian.whiten(&mut row[discrete..]);
        }
        Ok(())
    }
}

//! Changes of coordinates that keep $E(x)$ pointwise, and so $p(x)$ and $\ln Z$.

use super::coupling::{Edges, Matrix, Triangle, Weights};
use super::{LayerId, Machine, add_input, pair_energy};
use crate::error::Error;
use crate::units::Units;
use harmonium_kernels::dense::dot;

impl Machine {
    /// Moves the offsets without moving the energy.
    ///
    /// With $\delta = \mu' - \mu$ the biases become $b_l + \sum_m W_{lm}\delta_m + J_l\delta_l$,
    /// and $E_0$ takes up the constants.
    ///
    /// # Errors
    ///
    /// If `offsets` has not one finite entry for each entry of each layer.
    pub fn recenter(&mut self, offsets: &[Vec<f64>]) -> Result<(), Error> {
        if offsets.len() != self.layers.len() {
            let (expected, found) = (self.layers.len(), offsets.len());
            return Err(Error::Shape { what: "the number of offsets".into(), expected, found });
        }
        for (layer, new) in self.layers.iter().zip(offsets) {
            if new.len() != layer.len() {
                let (expected, found) = (layer.len(), new.len());
                let (layer, what) = (layer.name.clone(), "offset");
                return Err(Error::ParameterCount { layer, what, expected, found });
            }
            if let Some(entry) = new.iter().position(|x| !x.is_finite()) {
                let (place, value) = (layer.name.clone(), new[entry]);
                return Err(Error::ParameterValue { place, what: "offset", entry, value });
            }
        }
        let shift: Vec<Vec<f64>> = self
            .layers
            .iter()
            .zip(offsets)
            .map(|(l, new)| new.iter().zip(&l.offset).map(|(n, o)| n - o).collect())
            .collect();
        for c in &self.couplings {
            let (a, b) = (c.between.0.0, c.between.1.0);
            if shift[a].iter().chain(&shift[b]).all(|d| *d == 0.0) {
                continue;
            }
            // W delta at the old offsets of the other end, once per end.
            let mut from_b = vec![0.0; self.layers[a].len()];
            add_input(c, c.between.0, &shift[b], &mut from_b);
            self.constant +=
                dot(&from_b, &offsets[a]) - pair_energy(&c.weights, &shift[a], &shift[b]);
            self.layers[a].bias.iter_mut().zip(&from_b).for_each(|(x, d)| *x += d);
            if !c.is_lateral() {
                let mut from_a = vec![0.0; self.layers[b].len()];
                add_input(c, c.between.1, &shift[a], &mut from_a);
                self.constant += dot(&from_a, &offsets[b]);
                self.layers[b].bias.iter_mut().zip(&from_a).for_each(|(x, d)| *x += d);
            }
        }
        for (layer, new) in self.layers.iter_mut().zip(offsets) {
            layer.offset.clone_from(new);
        }
        Ok(())
    }

    /// The same energy with all offsets at zero: what sums over states work with.
    ///
    /// # Errors
    ///
    /// Never for a machine that was built: zero offsets always fit.
    pub fn without_offsets(&self) -> Result<Self, Error> {
        let mut machine = self.clone();
        let zeros: Vec<Vec<f64>> = self.layers.iter().map(|l| vec![0.0; l.len()]).collect();
        machine.recenter(&zeros)?;
        Ok(machine)
    }

    /// The same distribution with the spins of layer `l` written as bits, $s = 2x - 1$.
    ///
    /// # Errors
    ///
    /// If the layer does not hold spins.
    pub fn spins_to_bits(&self, l: LayerId) -> Result<Self, Error> {
        self.in_coordinates(l, Units::Spin, Units::Binary, 2.0, -1.0)
    }

    /// The same distribution with the bits of layer `l` written as spins, $x = (s + 1)/2$.
    ///
    /// # Errors
    ///
    /// If the layer does not hold bits.
    pub fn bits_to_spins(&self, l: LayerId) -> Result<Self, Error> {
        self.in_coordinates(l, Units::Binary, Units::Spin, 0.5, 0.5)
    }

    /// The same distribution with zeros and ones of layer `l` exchanged, $x = 1 - x'$.
    ///
    /// # Errors
    ///
    /// If the layer does not hold bits.
    pub fn flip_bits(&self, l: LayerId) -> Result<Self, Error> {
        self.in_coordinates(l, Units::Binary, Units::Binary, -1.0, 1.0)
    }

    /// Writes $x = \text{scale}\cdot x' + \text{shift}$ into the energy of layer `l`.
    fn in_coordinates(
        &self,
        l: LayerId,
        from: Units,
        to: Units,
        scale: f64,
        shift: f64,
    ) -> Result<Self, Error> {
        let mut machine = self.clone();
        let layer = &mut machine.layers[l.0];
        if layer.units != from {
            return Err(Error::Topology {
                model: "this change of coordinates",
                expected: from.name(),
                found: format!("layer `{}` has {} units", layer.name, layer.units.name()),
            });
        }
        machine.constant -= shift * layer.bias.iter().sum::<f64>();
        layer.units = to;
        layer.bias.iter_mut().for_each(|b| *b *= scale);
        layer.offset.iter_mut().for_each(|m| *m = (*m - shift) / scale);
        for c in machine.couplings.iter_mut().filter(|c| c.other_end(l).is_some()) {
            let factor = if c.is_lateral() { scale * scale } else { scale };
            c.weights.entries_mut().iter_mut().for_each(|w| *w *= factor);
        }
        Ok(machine)
    }

    /// The same distribution with the units of layer `l` in another order: unit `i` of the result
    /// is unit `order[i]` of this machine.
    ///
    /// # Errors
    ///
    /// If `order` is not a permutation of the units.
    pub fn permute(&self, l: LayerId, order: &[usize]) -> Result<Self, Error> {
        let layer = self.layer(l);
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..layer.n_units()) {
            let (what, expected) = ("a permutation".into(), layer.n_units());
            return Err(Error::Shape { what, expected, found: order.len() });
        }
        let group = layer.units.group();
        let entry = |i: usize| order[i / group] * group + i % group;
        let pick = |v: &[f64]| {
            let rows = v.chunks_exact(layer.len());
            rows.flat_map(|row| (0..row.len()).map(|i| row[entry(i)])).collect::<Vec<_>>()
        };
        let mut machine = self.clone();
        let target = &mut machine.layers[l.0];
        target.bias = pick(&layer.bias);
        target.offset = pick(&layer.offset);
        target.own = pick(&layer.own);
        for c in machine.couplings.iter_mut().filter(|c| c.other_end(l).is_some()) {
            let rows = c.between.0 == l;
            c.weights = match &c.weights {
                Weights::Between(w) => {
                    let (n_rows, n_columns) = w.shape();
                    Weights::Between(Matrix::from_fn(n_rows, n_columns, |i, j| {
                        if rows { w.at(entry(i), j) } else { w.at(i, entry(j)) }
                    })?)
                }
                Weights::Lateral(t) => {
                    Weights::Lateral(Triangle::from_fn(t.n(), |i, j| t.at(entry(i), entry(j)))?)
                }
                Weights::Sparse(edges) => {
                    let mut place = vec![0; edges.n()];
                    (0..edges.n()).for_each(|i| place[entry(i)] = i);
                    let moved = edges.iter().map(|(i, j, w)| (place[i], place[j], w));
                    Weights::Sparse(Edges::new(edges.n(), moved)?)
                }
            };
        }
        Ok(machine)
    }
}

//! The parameters of a machine as named tensors.
//!
//! `layers.<name>.bias`, `.offset` and one for each parameter that the units own (`.precision` of
//! Gaussian ones); and
//! `couplings.<a>.<b>.weights`, a matrix, or the row of the strict upper triangle where a layer is
//! coupled with itself. A sparse lateral coupling has a row of weights and
//! `couplings.<a>.<a>.edges`, two entries of the layer for each. A dot in a layer's name is written `%2E`, so that no two names meet.

use super::damaged;
use super::metadata::{CouplingEntry, LayerEntry, MachineEntry};
use super::tensors::{Tensor, Tensors};
use crate::error::Error;
use crate::machine::{Coupling, Edges, Layer, LayerId, Machine, Matrix, Triangle, Weights};
use std::collections::{BTreeMap, BTreeSet};

/// The tensors of a machine.
pub(super) fn tensors_of(machine: &Machine) -> BTreeMap<String, Tensor<'_>> {
    let mut tensors = BTreeMap::new();
    for layer in machine.layers() {
        let own = [("bias", &layer.bias), ("offset", &layer.offset)];
        for (what, values) in own {
            tensors.insert(own_name(&layer.name, what), Tensor::row(values));
        }
        for (k, parameter) in layer.units.own_parameters().iter().enumerate() {
            let name = own_name(&layer.name, parameter.name);
            tensors.insert(name, Tensor::row(layer.own().row(k)));
        }
    }
    for coupling in machine.couplings() {
        let (a, b) = coupling.between;
        let name = weights_name(&machine.layer(a).name, &machine.layer(b).name);
        let entries = coupling.weights.entries();
        let tensor = match &coupling.weights {
            Weights::Between(matrix) => Tensor::matrix(matrix.shape(), entries),
            Weights::Lateral(_) | Weights::Sparse(_) => Tensor::row(entries),
        };
        tensors.insert(name, tensor);
        if let Weights::Sparse(edges) = &coupling.weights {
            let ends = edges.pairs().iter().flat_map(|&(i, j)| [i as f64, j as f64]).collect();
            let name = edges_name(&machine.layer(a).name);
            tensors.insert(name, Tensor::owned((edges.pairs().len(), 2), ends));
        }
    }
    tensors
}

/// Takes the machine that `graph` describes out of `tensors`.
///
/// # Errors
///
/// If a tensor is missing or of another shape, or the parts do not make a machine.
pub(super) fn take_machine(graph: &MachineEntry, tensors: &mut Tensors) -> Result<Machine, Error> {
    let ids = check_names(graph)?;
    let mut layers = Vec::with_capacity(graph.layers.len());
    for entry in &graph.layers {
        layers.push(take_layer(entry, tensors)?);
    }
    let mut couplings = Vec::with_capacity(graph.couplings.len());
    for entry in &graph.couplings {
        couplings.push(take_coupling(entry, &ids, &layers, tensors)?);
    }
    Machine::new(layers, couplings)
        .and_then(|machine| machine.with_constant(graph.constant))
        .map_err(|error| damaged(error.to_string()))
}

/// The layers by name; no layer and no coupling may occur twice.
fn check_names(graph: &MachineEntry) -> Result<BTreeMap<&str, LayerId>, Error> {
    let mut ids = BTreeMap::new();
    for (i, LayerEntry { name, .. }) in graph.layers.iter().enumerate() {
        if ids.insert(name.as_str(), LayerId(i)).is_some() {
            return Err(damaged(format!("layer `{name}` occurs twice")));
        }
    }
    let mut pairs = BTreeSet::new();
    for CouplingEntry { between: (a, b), .. } in &graph.couplings {
        if !pairs.insert((a.min(b), a.max(b))) {
            return Err(damaged(format!("the coupling of `{a}` and `{b}` occurs twice")));
        }
    }
    Ok(ids)
}

fn take_layer(entry: &LayerEntry, tensors: &mut Tensors) -> Result<Layer, Error> {
    let LayerEntry { name, role, units, n_units } = entry;
    let len = n_units.checked_mul(units.group()).ok_or_else(|| {
        damaged(format!("layer `{name}` claims {n_units} units of {} entries", units.group()))
    })?;
    let mut take = |what| tensors.take(&own_name(name, what), &[len]);
    let (bias, offset) = (take("bias")?, take("offset")?);
    let mut own = Vec::new();
    for parameter in units.own_parameters() {
        own.extend(take(parameter.name)?);
    }
    Ok(Layer { name: name.clone(), role: *role, units: *units, bias, own, offset })
}

fn take_coupling(
    entry: &CouplingEntry,
    ids: &BTreeMap<&str, LayerId>,
    layers: &[Layer],
    tensors: &mut Tensors,
) -> Result<Coupling, Error> {
    let (first, second) = (&entry.between.0, &entry.between.1);
    let find = |name: &String| {
        ids.get(name.as_str()).copied().ok_or_else(|| {
            damaged(format!("the coupling of `{first}` and `{second}` names no layer of the file"))
        })
    };
    let between = (find(first)?, find(second)?);
    if entry.lateral != (between.0 == between.1) {
        return Err(damaged(format!(
            "the coupling of `{first}` and `{second}` is lateral or not, but says otherwise"
        )));
    }
    if entry.edges.is_some() && !entry.lateral {
        return Err(damaged(format!(
            "the coupling of `{first}` and `{second}` has edges, but is not lateral"
        )));
    }
    let name = weights_name(first, second);
    let (rows, columns) = (layers[between.0.0].len(), layers[between.1.0].len());
    let weights = if let Some(n_edges) = entry.edges {
        let ends = tensors.take(&edges_name(first), &[n_edges, 2])?;
        let values = tensors.take(&name, &[n_edges])?;
        Weights::Sparse(edges_of(rows, &ends, &values)?)
    } else if entry.lateral {
        let n_pairs = rows.checked_mul(rows.saturating_sub(1)).map(|n| n / 2);
        let n_pairs = n_pairs.ok_or_else(|| damaged(format!("tensor `{name}` is too large")))?;
        let values = tensors.take(&name, &[n_pairs])?;
        let mut weights = Weights::Lateral(Triangle::zeros(rows)?);
        weights.entries_mut().copy_from_slice(&values);
        weights
    } else {
        let values = tensors.take(&name, &[rows, columns])?;
        Weights::Between(Matrix::from_rows(rows, columns, values)?)
    };
    Ok(Coupling { between, weights })
}

/// Edges whose ends were stored as numbers.
fn edges_of(n: usize, ends: &[f64], weights: &[f64]) -> Result<Edges, Error> {
    let mut edges = Vec::with_capacity(weights.len());
    for (&[i, j], &w) in ends.as_chunks::<2>().0.iter().zip(weights) {
        let entry = |x: f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
            let whole = x as usize;
            let fits = x >= 0.0 && x < n as f64 && whole as f64 == x;
            fits.then_some(whole).ok_or_else(|| {
                damaged(format!("an edge ends at {x}, which is not an entry of a layer of {n}"))
            })
        };
        edges.push((entry(i)?, entry(j)?, w));
    }
    if !edges.is_sorted_by_key(|e| (e.0, e.1)) || edges.iter().any(|e| e.0 > e.1) {
        return Err(damaged("its edges are not in rising order, the smaller end first"));
    }
    Edges::new(n, edges).map_err(|error| damaged(error.to_string()))
}

fn own_name(layer: &str, what: &str) -> String {
    format!("layers.{}.{what}", escaped(layer))
}

fn weights_name(first: &str, second: &str) -> String {
    format!("couplings.{}.{}.weights", escaped(first), escaped(second))
}

fn edges_name(layer: &str) -> String {
    format!("couplings.{0}.{0}.edges", escaped(layer))
}

/// A name without dots, and different for different names.
pub(super) fn escaped(name: &str) -> String {
    name.replace('%', "%25").replace('.', "%2E")
}

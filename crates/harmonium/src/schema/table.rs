//! From the values of visible layers back to a table.

use super::{Encoding, Schema};
use crate::error::Error;
use crate::machine::{Layer, LayerId, Machine, State};

/// How the values of visible layers stand in the columns of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The entries of the visible layers side by side, in the order of the layers: what samples,
    /// means and probabilities are written as.
    Entries,
    /// The columns that the schema names, and the class of the label behind them: the inverse of
    /// what a [`Feed`](super::Feed) does. The category of a unit is that of its largest entry.
    Columns,
}

/// Rows of a table, with what is known of its columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// What the columns are called; empty if unknown.
    pub names: Vec<String>,
    /// Values of each row.
    pub n_columns: usize,
    /// All values, row by row.
    pub values: Vec<f64>,
}

impl Schema {
    /// The visible layers of `x` as a table.
    ///
    /// # Errors
    ///
    /// If the state does not fit the machine, or the schema names a layer that the machine does not
    /// have in this form.
    pub fn table(&self, machine: &Machine, x: &State, layout: Layout) -> Result<Listing, Error> {
        x.check(machine)?;
        match layout {
            Layout::Entries => Ok(self.entries(machine, x)),
            Layout::Columns => self.columns(machine, x),
        }
    }

    fn columns(&self, machine: &Machine, x: &State) -> Result<Listing, Error> {
        let labelled = self.layers.iter().any(|f| matches!(f.encoding, Encoding::Label { .. }));
        let n_columns = self.n_columns() + usize::from(labelled);
        let mut values = vec![f64::NAN; x.n_rows() * n_columns];
        for filling in &self.layers {
            let wrong = |expected, found| Error::Shape {
                what: format!("the schema of layer `{}`", filling.layer),
                expected,
                found,
            };
            let l = machine.layer_ids().find(|&l| machine.layer(l).name == filling.layer);
            let l: LayerId = l.ok_or_else(|| wrong(0, 1))?;
            let label = n_columns - 1..n_columns;
            let (columns, group) = match &filling.encoding {
                Encoding::Entries { columns } => (&columns[..], 1),
                Encoding::Codes { columns } => (&columns[..], filling.units.group()),
                Encoding::Label { .. } => (std::slice::from_ref(&label), filling.units.group()),
            };
            let found: usize = columns.iter().map(ExactSizeIterator::len).sum();
            if found * group != machine.layer(l).len() {
                return Err(wrong(machine.layer(l).len() / group, found));
            }
            for (row, out) in values.chunks_exact_mut(n_columns).enumerate() {
                let units = x.row(l, row).chunks_exact(group);
                for (c, unit) in columns.iter().cloned().flatten().zip(units) {
                    out[c] = if group == 1 { unit[0] } else { largest(unit) as f64 };
                }
            }
        }
        let names = self.column_names(n_columns).unwrap_or_default();
        Ok(Listing { names, n_columns, values })
    }

    /// The names of all columns, and of the label behind them, if all are known.
    fn column_names(&self, n_columns: usize) -> Option<Vec<String>> {
        let mut names = vec![None; n_columns];
        for filling in &self.layers {
            let columns = filling.encoding.columns().iter().cloned().flatten();
            columns.zip(&filling.names).for_each(|(c, name)| names[c] = Some(name.clone()));
            if let (Encoding::Label { .. }, Some(last)) = (&filling.encoding, names.last_mut()) {
                *last = Some("label".to_owned());
            }
        }
        names.into_iter().collect()
    }

    /// The names of the first `n_columns` columns, where they are known.
    pub(crate) fn data_names(&self, n_columns: usize) -> Vec<Option<String>> {
        let mut names = vec![None; n_columns];
        for filling in &self.layers {
            let columns = filling.encoding.columns().iter().cloned().flatten();
            for (c, name) in columns.zip(&filling.names).filter(|(c, _)| *c < n_columns) {
                names[c] = Some(name.clone());
            }
        }
        names
    }

    fn entries(&self, machine: &Machine, x: &State) -> Listing {
        let visible = machine.visible_layers();
        let n_columns = visible.iter().map(|&l| machine.layer(l).len()).sum();
        let mut values = Vec::with_capacity(x.n_rows() * n_columns);
        for row in 0..x.n_rows() {
            visible.iter().for_each(|&l| values.extend_from_slice(x.row(l, row)));
        }
        let names = visible.iter().map(|&l| self.entry_names(machine.layer(l)));
        let names: Option<Vec<Vec<String>>> = names.collect();
        Listing { names: names.unwrap_or_default().concat(), n_columns, values }
    }

    /// The names of the entries of a layer: `column`, `column=category` or `label=class`.
    fn entry_names(&self, layer: &Layer) -> Option<Vec<String>> {
        let filling = self.layer(&layer.name)?;
        let names: Vec<String> = match &filling.encoding {
            Encoding::Entries { .. } => filling.names.clone(),
            Encoding::Codes { .. } => {
                let q = layer.units.group();
                let of = |name: &String| (0..q).map(|k| format!("{name}={k}")).collect::<Vec<_>>();
                filling.names.iter().flat_map(of).collect()
            }
            Encoding::Label { classes } => classes.iter().map(|c| format!("label={c}")).collect(),
        };
        Some(names).filter(|n| n.len() == layer.len())
    }
}

/// The position of the largest entry, the first of several.
fn largest(unit: &[f64]) -> usize {
    let later = |best: usize, i: usize| if unit[i] > unit[best] { i } else { best };
    (0..unit.len()).fold(0, later)
}

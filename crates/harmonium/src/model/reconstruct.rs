//! The way back from features: the means of the visible units given the hidden ones.
//!
//! $E[v \mid h]$ of a machine, with means in the place of $h$; of a deep belief network one pass down from its first
//! hidden layer, the only one that visible units see.

use super::sample::{visible_means, visible_values};
use super::{arithmetic, pieces};
use crate::engine::Arithmetic;
use crate::error::Error;
use crate::machine::{Clamp, LayerId, Machine, Role, State};
use crate::models::Body;
use crate::run::Model;
use crate::sampling::Sampler;
use ndarray::{Array2, ArrayView2, Axis, concatenate};

/// Rows looked at together.
const ROWS: usize = 512;

impl Model {
    /// The means of the visible units for each row of features, as [`Model::features`] gives them: all
    /// hidden layers side by side.
    ///
    /// # Errors
    ///
    /// If there are more or fewer features than hidden units, or memory ends.
    pub fn reconstruct(&self, features: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
        let hidden: Vec<usize> = self.body.hidden().iter().map(|l| l.len).collect();
        let expected = hidden.iter().sum();
        if features.ncols() != expected || expected == 0 {
            let what = "a row of features".into();
            return Err(Error::Shape { what, expected, found: features.ncols() });
        }
        match &self.body {
            Body::Machine(machine) => downwards(machine, features),
            Body::Dbn(dbn) => match dbn.directed().first() {
                Some(lowest) => {
                    let first = features.slice_axis(Axis(1), (0..hidden[0]).into());
                    downwards(&lowest.generative, first)
                }
                None => downwards(dbn.top(), features),
            },
            Body::Network(_) => Err(Error::NoDistribution),
        }
    }
}

/// The visible means of a machine whose hidden layers are held.
fn downwards(machine: &Machine, features: ArrayView2<'_, f64>) -> Result<Array2<f64>, Error> {
    let sampler = Sampler::new(machine.clone(), arithmetic(None, Arithmetic::F32));
    let hidden: Vec<LayerId> =
        machine.layer_ids().filter(|&l| machine.layer(l).role == Role::Hidden).collect();
    let mut found = Vec::new();
    for rows in pieces(features.nrows(), ROWS) {
        let mut x = State::zeros(machine, rows.len())?;
        for (row, of) in rows.enumerate() {
            let (values, mut start) = (features.row(of).to_vec(), 0);
            for &l in &hidden {
                let end = start + machine.layer(l).len();
                x.set_row(l, row, &values[start..end])?;
                start = end;
            }
        }
        let x = visible_means(&sampler, &Clamp::none(), x)?;
        found.push(visible_values(machine, &x));
    }
    let views: Vec<_> = found.iter().map(|piece| piece.view()).collect();
    concatenate(Axis(0), &views).map_err(|_| Error::Empty { what: "the features".into() })
}

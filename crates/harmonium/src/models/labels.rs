//! A layer of labels beside the visible one: what makes a machine a classifier.

use crate::error::Error;
use crate::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role};
use crate::units::Units;

/// The machine with a visible layer `labels` of one categorical unit, coupled with the top hidden
/// layer, or with the visible one where there is no other; all its weights zero.
///
/// # Errors
///
/// If the machine has a layer of that name, or memory ends.
pub fn with_labels(machine: &Machine, n_classes: usize) -> Result<Machine, Error> {
    let labels = Layer::new("labels", Role::Visible, Units::Categorical { q: n_classes }, 1)?;
    // After the visible layer, where the columns of the data stand.
    let mut layers = machine.layers().to_vec();
    layers.insert(1, labels);
    let moved = |l: LayerId| if l.0 == 0 { l } else { LayerId(l.0 + 1) };
    let mut couplings = machine.couplings().to_vec();
    for c in &mut couplings {
        c.between = (moved(c.between.0), moved(c.between.1));
    }
    let top = LayerId(if layers.len() > 2 { layers.len() - 1 } else { 0 });
    let weights = Matrix::zeros(n_classes, layers[top.0].len())?;
    couplings.push(Coupling::between(LayerId(1), top, weights));
    Machine::new(layers, couplings)?.with_constant(machine.constant())
}

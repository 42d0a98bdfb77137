//! A layer of labels beside the visible one: what makes a machine a classifier.

use crate::error::Error;
use crate::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role};
use crate::units::Units;

/// The machine with a visible layer `labels` of one categorical unit, coupled with the top hidden
/// layer, or with the visible ones where there is no other; all its weights zero.
///
/// # Errors
///
/// If the machine has a layer of that name, or memory ends.
pub fn with_labels(machine: &Machine, n_classes: usize) -> Result<Machine, Error> {
    let labels = Layer::new("labels", Role::Visible, Units::Categorical { q: n_classes }, 1)?;
    // After the visible layers, where the columns of the data stand.
    let mut layers = machine.layers().to_vec();
    let place = layers.iter().take_while(|l| l.role == Role::Visible).count();
    layers.insert(place, labels);
    let moved = |l: LayerId| if l.0 < place { l } else { LayerId(l.0 + 1) };
    let mut couplings = machine.couplings().to_vec();
    for c in &mut couplings {
        c.between = (moved(c.between.0), moved(c.between.1));
    }
    let beside = if layers.len() > place + 1 { layers.len() - 1..layers.len() } else { 0..place };
    for other in beside {
        let weights = Matrix::zeros(n_classes, layers[other].len())?;
        couplings.push(Coupling::between(LayerId(place), LayerId(other), weights));
    }
    Machine::new(layers, couplings)?.with_constant(machine.constant())
}

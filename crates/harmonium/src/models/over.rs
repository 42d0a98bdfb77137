//! The named models over several visible layers: what a table of mixed columns needs.
//!
//! All units of a layer are of one kind and size, so the columns of a table fill one visible layer for each kind
//! and size. Every one of them is coupled with the first hidden layer as the only visible layer of [`Rbm`](super::Rbm),
//! [`Bm`](super::Bm) and [`Dbm`](super::Dbm) is; a coupling inside the visible units is one inside each layer and between
//! each two. With one visible layer these are exactly those models.

use super::{Lateral, coupling};
use crate::error::Error;
use crate::machine::{Coupling, Layer, LayerId, Machine, Role, Triangle};
use crate::units::Units;

/// What stands on the visible layers; hidden units are binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Above<'h> {
    /// One hidden layer of so many units: an RBM.
    Rbm(usize),
    /// At most one hidden layer, and couplings inside layers: a general Boltzmann machine.
    Bm(usize, Lateral),
    /// A chain of hidden layers: a DBM.
    Dbm(&'h [usize]),
}

impl Above<'_> {
    fn hidden(self) -> Result<Vec<Layer>, Error> {
        let layer = |name: String, n: usize| Layer::new(name, Role::Hidden, Units::Binary, n);
        match self {
            Self::Bm(0, Lateral::Visible) => Ok(Vec::new()),
            Self::Rbm(n) | Self::Bm(n, _) => Ok(vec![layer("hidden".into(), n)?]),
            Self::Dbm(sizes) => {
                (1..).zip(sizes).map(|(i, &n)| layer(format!("hidden{i}"), n)).collect()
            }
        }
    }

    fn lateral(self) -> (bool, bool) {
        match self {
            Self::Bm(_, Lateral::Visible) => (true, false),
            Self::Bm(_, Lateral::Hidden) => (false, true),
            Self::Bm(_, Lateral::Both) => (true, true),
            Self::Rbm(_) | Self::Dbm(_) => (false, false),
        }
    }
}

/// A model over these visible layers, all parameters of its couplings zero.
///
/// # Errors
///
/// If there is no visible layer, a layer is empty, two have one name, or memory ends.
pub fn over(visible: Vec<Layer>, above: Above<'_>) -> Result<Machine, Error> {
    let n = visible.len();
    if n == 0 {
        return Err(Error::Empty { what: "the list of visible layers".into() });
    }
    let mut layers = visible;
    layers.extend(above.hidden()?);
    let mut couplings = Vec::new();
    if layers.len() > n {
        for l in 0..n {
            couplings.push(coupling(&layers, l, n)?);
        }
    }
    for l in n + 1..layers.len() {
        couplings.push(coupling(&layers, l - 1, l)?);
    }
    let (in_visible, in_hidden) = above.lateral();
    if in_visible {
        for a in 0..n {
            couplings.push(inside(&layers, a)?);
            for b in a + 1..n {
                couplings.push(coupling(&layers, a, b)?);
            }
        }
    }
    if in_hidden {
        for l in n..layers.len() {
            couplings.push(inside(&layers, l)?);
        }
    }
    Machine::new(layers, couplings)
}

fn inside(layers: &[Layer], l: usize) -> Result<Coupling, Error> {
    Ok(Coupling::lateral(LayerId(l), Triangle::zeros(layers[l].len())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Bm, Dbm, Rbm};

    fn one() -> Vec<Layer> {
        vec![Layer::new("visible", Role::Visible, Units::Spin, 3).unwrap()]
    }

    #[test]
    fn over_one_visible_layer_they_are_the_named_models() {
        let (visible, hidden) = ((Units::Spin, 3), (Units::Binary, 2));
        let rbm = Rbm::new(visible, hidden).unwrap().into_machine();
        assert_eq!(over(one(), Above::Rbm(2)).unwrap(), rbm);
        for lateral in [Lateral::Visible, Lateral::Hidden, Lateral::Both] {
            let bm = Bm::new(visible, hidden, lateral).unwrap().into_machine();
            assert_eq!(over(one(), Above::Bm(2, lateral)).unwrap(), bm);
        }
        let ising = Bm::new(visible, (Units::Binary, 0), Lateral::Visible).unwrap().into_machine();
        assert_eq!(over(one(), Above::Bm(0, Lateral::Visible)).unwrap(), ising);
        let dbm = Dbm::new(visible, &[hidden, (Units::Binary, 4)]).unwrap().into_machine();
        assert_eq!(over(one(), Above::Dbm(&[2, 4])).unwrap(), dbm);
        assert!(over(Vec::new(), Above::Rbm(2)).is_err() && over(one(), Above::Rbm(0)).is_err());
    }

    #[test]
    fn every_visible_layer_meets_the_first_hidden_one() {
        let mut visible = one();
        visible.push(Layer::new("numbers", Role::Visible, Units::Gaussian, 2).unwrap());
        let dbm = over(visible.clone(), Above::Dbm(&[2, 4])).unwrap();
        let pairs: Vec<_> =
            dbm.couplings().iter().map(|c| (c.between.0.0, c.between.1.0)).collect();
        assert_eq!(pairs, [(0, 2), (1, 2), (2, 3)]);
        let bm = over(visible, Above::Bm(2, Lateral::Both)).unwrap();
        let pairs: Vec<_> = bm.couplings().iter().map(|c| (c.between.0.0, c.between.1.0)).collect();
        assert_eq!(pairs, [(0, 2), (1, 2), (0, 0), (0, 1), (1, 1), (2, 2)]);
    }
}

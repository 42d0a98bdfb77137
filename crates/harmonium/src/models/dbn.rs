//! The deep belief network (Hinton, Osindero & Teh 2006): directed layers under an RBM.
//!
//! $$p(v, h_1, \dots, h_L) = p(v \mid h_1)\, p(h_1 \mid h_2) \cdots p(h_{L-2} \mid h_{L-1})\;
//!   p_\text{top}(h_{L-1}, h_L)$$
//!
//! Each conditional is that of an RBM, $\theta_l = b_l + W(x_{l+1} - \mu_{l+1})$, and so is each
//! factor $q(x_{l+1} \mid x_l)$ of the *recognition* distribution that runs the other way. A stack
//! of RBMs uses one RBM for both; wake–sleep learning unties them. The top RBM may have a
//! categorical layer of labels beside its visible layer: $p_\text{top}(h_{L-1}, y, h_L)$.

use super::rbm::is_rbm;
use super::{described, has_exactly};
use crate::error::Error;
use crate::machine::{Coupling, Layer, LayerId, Machine, Matrix, Role, Weights};
use crate::units::Storage;

/// A directed layer: the way down and the way up between two layers.
///
/// Both are RBMs whose first layer is the lower one. Of the generative one only the conditional of
/// the lower layer is used, of the recognition one only that of the upper.
#[derive(Clone, Debug, PartialEq)]
pub struct Directed {
    /// $p(x_l \mid x_{l+1})$.
    pub generative: Machine,
    /// $q(x_{l+1} \mid x_l)$.
    pub recognition: Machine,
}

impl Directed {
    /// The lower layer.
    pub const BELOW: LayerId = LayerId(0);
    /// The upper layer.
    pub const ABOVE: LayerId = LayerId(1);

    /// One RBM for both ways.
    pub fn tied(rbm: Machine) -> Self {
        Self { generative: rbm.clone(), recognition: rbm }
    }

    /// Whether both ways still share their parameters.
    pub fn is_tied(&self) -> bool {
        self.generative == self.recognition
    }
}

/// Directed layers, each on the next, and an RBM on top. Without directed layers it is that RBM.
#[derive(Clone, Debug, PartialEq)]
pub struct Dbn {
    directed: Vec<Directed>,
    top: Machine,
}

impl Dbn {
    /// The layer of the top RBM that the directed layers end in.
    pub const BELOW_TOP: LayerId = LayerId(0);
    /// The layer of labels in the top RBM, where there is one.
    pub const LABELS: LayerId = LayerId(1);

    /// Joins directed layers, from the data upwards, and the RBM on top of them.
    ///
    /// # Errors
    ///
    /// If a part is not an RBM, the units of a hidden layer below the top are not binary, or a layer
    /// is not the one that the part above it stands on.
    pub fn new(directed: Vec<Directed>, top: Machine) -> Result<Self, Error> {
        let wrong = |expected, found| Err(Error::Topology { model: "a DBN", expected, found });
        for part in &directed {
            for machine in [&part.generative, &part.recognition] {
                if !is_rbm(machine) {
                    return wrong("an RBM for each directed layer", described(machine));
                }
            }
            let [below, above] = [Directed::BELOW, Directed::ABOVE].map(|l| {
                (
                    part.generative.layer(l),
                    same(part.generative.layer(l), part.recognition.layer(l)),
                )
            });
            if !(below.1 && above.1) {
                let found =
                    format!("found others between `{}` and `{}`", below.0.name, above.0.name);
                return wrong("the same layers for recognition and generation", found);
            }
            if !above.0.units.is_zero_or_one() {
                let found = format!("found {} units in `{}`", above.0.units.name(), above.0.name);
                return wrong("binary units in the layers that directed ones meet in", found);
            }
        }
        if !is_top(&top) {
            let expected = "an RBM on top, with at most one categorical unit of labels beside its \
                            visible layer";
            return wrong(expected, described(&top));
        }
        let dbn = Self { directed, top };
        for l in 0..dbn.directed.len() {
            let (below, above) =
                (dbn.directed[l].generative.layer(Directed::ABOVE), dbn.layer(l + 1));
            if !same(below, above) {
                let shown = |l: &Layer| format!("`{}` of {}", l.name, l.len());
                let found = format!("found {} under {}", shown(below), shown(above));
                return wrong("each layer to be the one that the next stands on", found);
            }
        }
        Ok(dbn)
    }

    /// The directed layers, from the data upwards.
    pub fn directed(&self) -> &[Directed] {
        &self.directed
    }

    /// The RBM on top.
    pub fn top(&self) -> &Machine {
        &self.top
    }

    /// Number of hidden layers.
    pub fn depth(&self) -> usize {
        self.directed.len() + 1
    }

    /// Layer 0 is visible, the layers 1 to [`Dbn::depth`] are hidden. Its parameters are those of
    /// generation.
    ///
    /// # Panics
    ///
    /// If there is no such layer.
    pub fn layer(&self, l: usize) -> &Layer {
        assert!(l <= self.depth(), "layer {l} of a DBN with {} hidden layers", self.depth());
        match self.directed.get(l) {
            Some(part) => part.generative.layer(Directed::BELOW),
            None if l == self.directed.len() => self.top.layer(Self::BELOW_TOP),
            None => self.top.layer(self.top_hidden()),
        }
    }

    /// The hidden layer of the top RBM.
    pub fn top_hidden(&self) -> LayerId {
        LayerId(self.top.layers().len() - 1)
    }

    /// The layer of labels, if there is one.
    pub fn labels(&self) -> Option<&Layer> {
        (self.top.layers().len() == 3).then(|| self.top.layer(Self::LABELS))
    }

    /// The layers that data fills, the visible one and the labels if there are any, as a machine
    /// without couplings: what a [`Schema`](crate::schema::Schema) of the network speaks about.
    ///
    /// # Errors
    ///
    /// If two layers have one name.
    pub fn data_layers(&self) -> Result<Machine, Error> {
        let visible = Layer { role: Role::Visible, ..self.layer(0).clone() };
        let layers = [visible].into_iter().chain(self.labels().cloned());
        Machine::new(layers.collect(), Vec::new())
    }

    /// Number of classes; 0 without labels.
    pub fn n_classes(&self) -> usize {
        self.labels().map_or(0, Layer::len)
    }

    /// Number of parameters in use: weights that are tied count once.
    pub fn n_parameters(&self) -> usize {
        let both = |d: &Directed| {
            let weights = |m: &Machine| m.couplings()[0].weights.entries().len();
            let (below, above) =
                (d.generative.layer(Directed::BELOW), d.recognition.layer(Directed::ABOVE));
            let own = below.bias.len() + below.own.len() + above.bias.len();
            own + weights(&d.generative) + if d.is_tied() { 0 } else { weights(&d.recognition) }
        };
        self.directed.iter().map(both).sum::<usize>() + self.top.n_parameters()
    }

    /// Gives the parts away.
    pub fn into_parts(self) -> (Vec<Directed>, Machine) {
        (self.directed, self.top)
    }

    /// The top RBM becomes a directed layer, tied, and `next` stands on it.
    ///
    /// # Errors
    ///
    /// If `next` does not fit, or the top has labels.
    pub fn stacked(mut self, next: Machine) -> Result<Self, Error> {
        self.directed.push(Directed::tied(self.top));
        Self::new(self.directed, next)
    }

    /// The same distribution with one more layer: the top RBM becomes a directed layer, and the
    /// RBM that stands on it is itself upside down.
    ///
    /// Its marginal over their common layer is the old one, so $p(v)$ does not change, and the
    /// recognition distribution is still the true posterior of the layer it leads to: from here,
    /// whatever raises the likelihood of the new top RBM on samples of that layer raises the bound
    /// (Hinton, Osindero & Teh 2006, section 4).
    ///
    /// # Errors
    ///
    /// If the top has labels.
    pub fn deepened(self) -> Result<Self, Error> {
        let name = format!("hidden{}", self.depth() + 1);
        let next = upside_down(&self.top, name)?;
        self.stacked(next)
    }

    /// The weights of generation as a chain of layers, to look at: the network does not have the
    /// distribution of this machine. A layer of labels is left out.
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn generative_chain(&self) -> Result<Machine, Error> {
        let role = |l: usize| if l == 0 { Role::Visible } else { Role::Hidden };
        let layers: Vec<Layer> =
            (0..=self.depth()).map(|l| Layer { role: role(l), ..self.layer(l).clone() }).collect();
        let directed = self.directed.iter().map(|part| &part.generative.couplings()[0]);
        let top = self.top.couplings().iter().filter(|c| c.other_end(Self::BELOW_TOP).is_some());
        let couplings = directed.chain(top).enumerate().map(|(below, c)| {
            let downwards = c.between.0 > c.between.1;
            let (a, b) = (LayerId(below), LayerId(below + 1));
            let between = if downwards { (b, a) } else { (a, b) };
            Coupling { between, ..c.clone() }
        });
        Machine::new(layers, couplings.collect())
    }

    /// The parts, to change their parameters.
    pub(crate) fn parts_mut(&mut self) -> (&mut [Directed], &mut Machine) {
        (&mut self.directed, &mut self.top)
    }
}

/// Whether two layers hold the same values.
fn same(a: &Layer, b: &Layer) -> bool {
    (&a.name, a.units, a.len()) == (&b.name, b.units, b.len())
}

/// Whether a machine is an RBM, perhaps with one categorical unit of labels.
fn is_top(machine: &Machine) -> bool {
    let roles: Vec<Role> = machine.layers().iter().map(|l| l.role).collect();
    let labels = || {
        let layer = machine.layer(Dbn::LABELS);
        layer.n_units() == 1 && layer.units.storage() == Storage::OneHot
    };
    let with_labels = roles == [Role::Visible, Role::Visible, Role::Hidden]
        && has_exactly(machine, &[(0, 2), (1, 2)])
        && labels();
    is_rbm(machine) || with_labels
}

/// The RBM with its layers exchanged; the layer that is hidden now is called `name`.
fn upside_down(rbm: &Machine, name: String) -> Result<Machine, Error> {
    let [below, above] = rbm.layers() else {
        return Err(Error::Topology {
            model: "a deeper DBN",
            expected: "a top RBM without labels",
            found: described(rbm),
        });
    };
    let lower = Layer { role: Role::Visible, ..above.clone() };
    let upper = Layer { role: Role::Hidden, name, ..below.clone() };
    let Weights::Between(w) = &rbm.couplings()[0].weights else {
        unreachable!("two layers of an RBM are coupled by a matrix");
    };
    let down = rbm.couplings()[0].between == (LayerId(0), LayerId(1));
    let turned =
        Matrix::from_fn(
            above.len(),
            below.len(),
            |i, j| if down { w.at(j, i) } else { w.at(i, j) },
        )?;
    let coupling = Coupling::between(LayerId(0), LayerId(1), turned);
    Machine::new(vec![lower, upper], vec![coupling])?.with_constant(rbm.constant())
}

//! A machine together with its layout for sampling.
//!
//! Samplers and inference multiply a layout of the machine's parameters, not the machine itself
//! ([`crate::engine`]). A [`Sampler`] owns both, so that they always belong together. While the
//! layout learns, the machine is written from it when somebody asks for it.
//!
//! | verb | what it does |
//! |---|---|
//! | [`gibbs`](Sampler::gibbs), [`anneal`](Sampler::anneal) | samples, at one temperature or falling ones |
//! | [`mean_field`](Sampler::mean_field), [`start_outwards`](Sampler::start_outwards), [`infer`](Sampler::infer), [`conditional_means`](Sampler::conditional_means) | means of what is free |
//! | [`settle`](Sampler::settle) | modes |
//! | [`chains`](Sampler::chains) | chains that survive from one use to the next |
//!
//! ```
//! use harmonium::engine::Arithmetic;
//! use harmonium::machine::State;
//! use harmonium::models::Rbm;
//! use harmonium::random::Stream;
//! use harmonium::sampling::{Clamp, Sampler};
//!
//! let machine = Rbm::binary(6, 4)?.into_machine();
//! let mut x = State::zeros(&machine, 10)?;
//! let sampler = Sampler::new(machine, Arithmetic::F32);
//! sampler.gibbs(&Clamp::none(), &mut x, 100, Stream::new(1))?;
//! # Ok::<(), harmonium::Error>(())
//! ```

use crate::engine::{Arithmetic, Engine, Packed};
use crate::machine::{Coupling, LayerId, Machine, State, Weights};
use harmonium_kernels::line::Wide;
use std::sync::OnceLock;

/// A machine and its layout for sampling.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// The machine; where the engine is ahead of it, as it was when somebody last asked.
    machine: Machine,
    engine: Engine,
    /// What the engine has learned since.
    learned: Learned,
}

/// Whether the engine knows more than the machine.
#[derive(Clone, Debug)]
enum Learned {
    /// The engine was made from the machine as it is.
    Nothing,
    /// The engine has changed its parameters; what it would write back, once somebody asked.
    Ahead(OnceLock<Machine>),
}

impl Sampler {
    /// Lays out `machine` for the numbers of an arithmetic; in double precision where its parameters
    /// are too large for another.
    pub fn new(machine: Machine, arithmetic: Arithmetic) -> Self {
        let arithmetic = if fits_single(&machine) { arithmetic } else { Arithmetic::F64 };
        let copies = vec![1.0; machine.layers().len()];
        Self::with_copies(machine, arithmetic, &copies)
    }

    /// Lays out `machine` such that layer $l$ responds to $\kappa_l\theta_l$, with a $\kappa$ of
    /// `copies` for each layer: it stands for a layer that sees $\kappa_l$ tied copies of each
    /// neighbour. What units of one layer send each other counts once in any case.
    pub fn with_copies(machine: Machine, arithmetic: Arithmetic, copies: &[f64]) -> Self {
        let engine = Engine::with_copies(&machine, arithmetic, copies);
        Self { machine, engine, learned: Learned::Nothing }
    }

    /// For machines that learn and sweep about once between two updates: copies that an update
    /// would have to renew are made on the way to each product instead.
    #[must_use]
    pub(crate) fn expecting_updates(mut self) -> Self {
        self.engine.expect_updates();
        self
    }

    /// The machine as it is now.
    pub fn machine(&self) -> &Machine {
        let (Learned::Ahead(now), Some(packed)) = (&self.learned, self.engine.packed()) else {
            return &self.machine;
        };
        // Numbers that ran away are not written back: the machine is then the last good one.
        if now.get().is_none() && !packed.is_finite() {
            return &self.machine;
        }
        now.get_or_init(|| {
            let mut machine = self.machine.clone();
            packed.write_back(&mut machine);
            machine
        })
    }

    /// Gives the machine away.
    pub fn into_machine(mut self) -> Machine {
        self.catch_up();
        self.machine
    }

    /// In which numbers it multiplies.
    pub fn arithmetic(&self) -> Arithmetic {
        self.engine.arithmetic()
    }

    /// Replaces the machine. Where the graph is another one, or its parameters are too large for the
    /// arithmetic, everything is laid out anew, and every
    /// layer counts what it receives once.
    pub fn set_machine(&mut self, machine: Machine) {
        let fits = self.arithmetic() == Arithmetic::F64 || fits_single(&machine);
        if fits && same_graph(&self.machine, &machine) {
            self.machine = machine;
            self.engine.refresh(&self.machine);
            self.learned = Learned::Nothing;
        } else {
            *self = Self::new(machine, self.arithmetic());
        }
    }

    /// Changes the parameters of the machine, not its graph; the layout follows.
    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut Machine) -> R) -> R {
        self.catch_up();
        let result = change(&mut self.machine);
        self.engine.refresh(&self.machine);
        result
    }

    /// The layout, to learn in it: the machine follows when somebody asks. Nothing in double
    /// precision.
    pub(crate) fn learn(&mut self) -> Option<&mut Packed> {
        if let Learned::Ahead(now) = &mut self.learned {
            if let Some(seen) = now.take() {
                self.machine = seen;
            }
        } else {
            self.learned = Learned::Ahead(OnceLock::new());
        }
        self.engine.packed_mut()
    }

    /// Whether all parameters are finite; those of the machine itself always are.
    pub(crate) fn is_finite(&self) -> bool {
        let ahead = |now: &OnceLock<Machine>| now.get().is_none();
        let unseen = matches!(&self.learned, Learned::Ahead(now) if ahead(now));
        !unseen || self.engine.packed().is_none_or(Packed::is_finite)
    }

    /// Gives up what the engine has learned since somebody last asked for the machine.
    pub(crate) fn fall_back(&mut self) {
        if let Learned::Ahead(now) = &mut self.learned {
            if let Some(seen) = now.take() {
                self.machine = seen;
            }
            self.learned = Learned::Nothing;
            self.engine.refresh(&self.machine);
        }
    }

    /// Takes up what the layout of an earlier run knew beyond the machine that it wrote, which is
    /// this one: nothing is left to write back.
    pub(crate) fn restore(&mut self) -> Option<(&Machine, &mut Packed)> {
        Some((&self.machine, self.engine.packed_mut()?))
    }

    /// Writes what the engine has learned into the machine.
    fn catch_up(&mut self) {
        if let Learned::Ahead(_) = self.learned {
            self.machine = self.machine().clone();
            self.learned = Learned::Nothing;
        }
    }

    /// The layers, their kinds and which of them are coupled, at no cost while the engine learns.
    /// Its parameters may be those of an earlier step: nothing may read them here.
    pub(crate) fn graph(&self) -> &Machine {
        &self.machine
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Computes the natural parameters of layer `l` on the calling thread, 32 units of all rows
    /// after the other, if it is laid out for the kernels: what the benches time.
    #[doc(hidden)]
    pub fn products(&self, l: LayerId) -> Option<impl FnMut(&mut State, &mut [Wide]) + '_> {
        self.engine.packed().map(|packed| packed.products(l))
    }
}

/// Whether sums over all units stay far below what single precision can hold.
fn fits_single(machine: &Machine) -> bool {
    const FAR_BELOW: f64 = 1e30;
    let n_entries: usize = machine.layers().iter().map(crate::machine::Layer::len).sum();
    machine.largest_parameter() * n_entries as f64 <= FAR_BELOW
}

/// Whether two machines have the same layers and couplings, whatever their parameters are.
fn same_graph(a: &Machine, b: &Machine) -> bool {
    let layers =
        |m: &Machine| -> Vec<_> { m.layers().iter().map(|l| (l.units, l.len())).collect() };
    let pattern = |a: &Coupling, b: &Coupling| {
        let weights = match (&a.weights, &b.weights) {
            (Weights::Between(_), Weights::Between(_))
            | (Weights::Lateral(_), Weights::Lateral(_)) => true,
            (Weights::Sparse(a), Weights::Sparse(b)) => a.pairs() == b.pairs(),
            _ => false,
        };
        a.between == b.between && weights
    };
    let (mine, other) = (a.couplings(), b.couplings());
    layers(a) == layers(b)
        && mine.len() == other.len()
        && mine.iter().zip(other).all(|(a, b)| pattern(a, b))
}

//! The most probable state of the units that are free.
//!
//! Exactly by junction tree where that is affordable. Elsewhere the best of several searches, and a bound that
//! no state exceeds: where the two meet the state is proved.

use super::given::Given;
use super::infer::{ASKED_TERMS, MOST_ENTRIES, Place, UNASKED_TERMS};
use crate::error::Error;
use crate::graph::{BucketTree, Elimination, Values};
use crate::inference::{Iteration, Mode, Search, alternating, annealed, max_product, tempered};
use crate::progress::Listener;

/// How the most probable state is sought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Maximiser {
    /// Exactly where that is affordable, else by the best of max-product, alternating maximisation and annealing.
    #[default]
    Auto,
    /// By junction tree.
    Exact,
    /// By max-product messages, with the bound of spanning trees.
    MaxProduct,
    /// By alternating maximisation from many starts.
    Alternating,
    /// By simulated annealing.
    Annealing,
    /// By parallel tempering.
    Tempering,
}

impl Maximiser {
    /// All of them, by the names they have on the command line.
    pub const NAMES: [(Self, &'static str); 6] = [
        (Self::Auto, "auto"),
        (Self::Exact, "exact"),
        (Self::MaxProduct, "max-product"),
        (Self::Alternating, "alternating"),
        (Self::Annealing, "annealing"),
        (Self::Tempering, "tempering"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(way, _)| *way == self).map_or("", |(_, name)| name)
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(way, _)| *way)
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Maximising {
    /// How.
    pub by: Maximiser,
    /// Bytes that the tables of a junction tree may take; by default a quarter of the memory.
    pub memory: Option<f64>,
    /// Starts of alternating maximisation, chains of annealing, ladders of tempering; by default as many as the size of
    /// the graph allows.
    pub starts: Option<usize>,
    /// Sweeps of annealing and tempering; by default as many as the size of the graph allows.
    pub sweeps: Option<usize>,
    /// The root of all randomness.
    pub seed: u64,
}

/// The best state that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct MostProbable {
    /// What found it.
    pub by: Maximiser,
    /// The states of the free units and what is known about them.
    pub mode: Mode,
    /// $E$ of the state.
    pub energy: f64,
    /// The state of each unit, by the numbers of the variables; nothing for units that are real.
    pub states: Vec<Option<usize>>,
    /// The values of all layers.
    pub layers: Vec<Vec<f64>>,
}

impl Given<'_> {
    /// The most probable state of the units that are free, given one row of what is known.
    ///
    /// # Errors
    ///
    /// If free units are real, several rows are given, the method that was asked for takes too much, memory ends or the
    /// listener cancels.
    pub fn most_probable(
        &self,
        maximising: &Maximising,
        listener: &mut dyn Listener,
    ) -> Result<MostProbable, Error> {
        let place = Place::new(self)?;
        let (by, mode) = place.maximise(maximising, listener)?;
        let mut values = Values::new(place.machine, &place.x, 0);
        for (node, &chosen) in place.graph.nodes().iter().zip(&mode.states) {
            values.set(node, |state| f64::from(u8::from(state == chosen)));
        }
        let state_of = |&(l, unit): &(crate::machine::LayerId, usize)| {
            let units = place.machine.layer(l).units;
            let group = units.group();
            let entries = &values.layers[l.0][unit * group..(unit + 1) * group];
            units.configurations()?.0.iter().position(|s| s == entries)
        };
        let states = self.model.variables().iter().map(state_of).collect();
        let energy = -place.machine.check_finite("minus the energy", mode.log_weight)?;
        Ok(MostProbable { by, mode, energy, states, layers: values.layers })
    }
}

impl Place<'_> {
    fn maximise(
        &self,
        maximising: &Maximising,
        listener: &mut dyn Listener,
    ) -> Result<(Maximiser, Mode), Error> {
        let by = maximising.by;
        Ok((
            by,
            match by {
                Maximiser::Auto => return self.by_anything(maximising, listener),
                Maximiser::Exact => self.exact_mode(maximising, ASKED_TERMS, listener)?,
                Maximiser::MaxProduct => self.by_messages(maximising.seed, listener)?,
                Maximiser::Alternating => self.by_alternating(maximising, listener)?,
                Maximiser::Annealing | Maximiser::Tempering => {
                    self.by_chains(by, maximising, listener)?
                }
            },
        ))
    }

    fn by_anything(
        &self,
        maximising: &Maximising,
        listener: &mut dyn Listener,
    ) -> Result<(Maximiser, Mode), Error> {
        match self.exact_mode(maximising, UNASKED_TERMS, listener) {
            Ok(mode) => return Ok((Maximiser::Exact, mode)),
            Err(error @ Error::Cancelled { .. }) => return Err(error),
            // Too large: the other roads are open.
            Err(_) => {}
        }
        let mut by = Maximiser::Alternating;
        let mut best = self.by_alternating(maximising, listener)?;
        for way in [Maximiser::MaxProduct, Maximiser::Annealing] {
            if best.is_proved() {
                break;
            }
            let found = match way {
                Maximiser::MaxProduct => self.by_messages(maximising.seed, listener),
                _ => self.by_chains(way, maximising, listener),
            };
            let found = match found {
                // A graph that is too large for its resistances has no bound, and still a best state.
                Err(Error::Topology { .. }) => continue,
                found => found?,
            };
            if found.log_weight > best.log_weight {
                by = way;
            }
            best = best.or(found);
        }
        Ok((by, best))
    }

    fn exact_mode(
        &self,
        maximising: &Maximising,
        limit: f64,
        listener: &mut dyn Listener,
    ) -> Result<Mode, Error> {
        let tree = BucketTree::narrower(&self.graph, MOST_ENTRIES)?;
        let memory = maximising.memory.unwrap_or_else(Elimination::usual_budget);
        let pieces = tree.samples_within(memory);
        let log2_terms = pieces.map_or(tree.log2_terms(), |p| p.log2_terms());
        if log2_terms > limit {
            return Err(Error::TooManyTerms { log2_terms, limit });
        }
        let elimination = Elimination::new(&self.graph, &tree).within(memory);
        Ok(Mode::exact(&self.graph, elimination.mode(listener)?))
    }

    fn by_messages(&self, seed: u64, listener: &mut dyn Listener) -> Result<Mode, Error> {
        let iteration = Iteration::of_messages(&self.graph);
        max_product(&self.graph, &Iteration { seed, ..iteration }, listener)
    }

    fn by_alternating(
        &self,
        maximising: &Maximising,
        listener: &mut dyn Listener,
    ) -> Result<Mode, Error> {
        let search = asked(Search::of_alternating(&self.graph), maximising);
        alternating(&self.graph, &search, listener)
    }

    fn by_chains(
        &self,
        by: Maximiser,
        maximising: &Maximising,
        listener: &mut dyn Listener,
    ) -> Result<Mode, Error> {
        let Some(rest) = &self.rest else { return Ok(Mode::exact(&self.graph, Vec::new())) };
        if by == Maximiser::Tempering {
            let search = asked(Search::of_tempering(&self.graph), maximising);
            return tempered(&rest.machine, &search, listener);
        }
        let search = asked(Search::of_annealing(&self.graph), maximising);
        annealed(&rest.machine, &search, listener)
    }
}

/// What was asked for, else what is usual.
fn asked(usual: Search, maximising: &Maximising) -> Search {
    Search {
        starts: maximising.starts.unwrap_or(usual.starts),
        sweeps: maximising.sweeps.unwrap_or(usual.sweeps),
        seed: maximising.seed,
    }
}

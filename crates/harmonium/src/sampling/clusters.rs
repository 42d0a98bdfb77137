//! Cluster moves of ferromagnets: whole islands of equal spins turn at once.
//!
//! With $x_u \in \{a_u, b_u\}$ written as spins $s_u$ the energy of the free units is
//! $-\sum_{(u,v)} J_{uv} s_u s_v - \sum_u h_u s_u$. If signs $\epsilon_u$ exist with
//! $\epsilon_u \epsilon_v J_{uv} \ge 0$ for all pairs (a gauge), the spins $\sigma_u = \epsilon_u s_u$
//! are a ferromagnet. A bond joins equal neighbours with probability $1 - e^{-2|J_{uv}|}$, and a ghost
//! spin joins a spin that stands along its field with $1 - e^{-2|h_u|}$. Every island that is not tied
//! to the ghost then turns with probability ½. This leaves $p(x)$ where it is (Swendsen & Wang, Physical
//! Review Letters 58, 1987), and crosses the barrier between two magnetisations in one step.

use super::Clamp;
use crate::error::Error;
use crate::graph::{Edge, Pairwise, Topology};
use crate::machine::{LayerId, Machine, State};
use harmonium_kernels::random::{Site, Stream};
use rayon::prelude::*;

/// The ferromagnet that the free units of a row are, in the right gauge.
#[derive(Clone, Debug)]
pub struct Clusters {
    spins: Vec<Spin>,
    bonds: Vec<Bond>,
}

/// A free unit as a spin.
#[derive(Clone, Copy, Debug)]
struct Spin {
    layer: LayerId,
    entry: usize,
    /// What it holds when $\sigma = +1$.
    up: f64,
    /// The sum of its two values: less the one it is the other.
    both: f64,
    /// Whether the field favours $\sigma = +1$.
    favours_up: bool,
    /// How probably the ghost joins it when it stands along the field.
    tied: f64,
}

/// Two spins that like to be equal.
#[derive(Clone, Copy, Debug)]
struct Bond {
    between: (usize, usize),
    /// How probably it joins them when they are.
    closed: f64,
}

impl Clusters {
    /// The free units of row `row` of `x`; `None` unless each has two values and a gauge exists.
    ///
    /// # Errors
    ///
    /// If clamp or state do not fit the machine, or memory ends.
    pub fn new(
        machine: &Machine,
        clamp: &Clamp,
        x: &State,
        row: usize,
    ) -> Result<Option<Self>, Error> {
        x.check(machine)?;
        clamp.check(machine, x.n_rows())?;
        let two = |l: LayerId| {
            let units = machine.layer(l).units;
            units.group() == 1 && units.configurations().is_some_and(|all| all.0.len() == 2)
        };
        if !machine.layer_ids().all(|l| clamp.holds_layer(l) || two(l)) {
            return Ok(None);
        }
        let graph = Pairwise::new(machine, clamp, x, row)?;
        if graph.nodes().iter().any(|node| node.values.len() != 2) {
            return Ok(None);
        }
        Ok(Self::of_graph(&graph))
    }

    fn of_graph(graph: &Pairwise) -> Option<Self> {
        let strength = |e: &Edge| {
            let g = |s, t| graph.log_pair(e, (s, t));
            (g(1, 1) + g(0, 0) - g(1, 0) - g(0, 1)) / 4.0
        };
        let mut fields: Vec<f64> =
            graph.nodes().iter().map(|n| (n.log_fields[1] - n.log_fields[0]) / 2.0).collect();
        let mut strengths = Vec::with_capacity(graph.edges().len());
        for e in graph.edges() {
            let g = |s, t| graph.log_pair(e, (s, t));
            let (u, v) = e.between;
            fields[u] += (g(1, 1) + g(1, 0) - g(0, 1) - g(0, 0)) / 4.0;
            fields[v] += (g(1, 1) + g(0, 1) - g(1, 0) - g(0, 0)) / 4.0;
            strengths.push(strength(e));
        }
        let turned = gauge(graph, &strengths)?;
        let spins =
            graph.nodes().iter().zip(&fields).zip(&turned).map(|((node, h), &turned)| Spin {
                layer: node.layer,
                entry: node.unit,
                up: node.values[usize::from(!turned)],
                both: node.values[0] + node.values[1],
                favours_up: (*h > 0.0) != turned,
                tied: -(-2.0 * h.abs()).exp_m1(),
            });
        let bonds = graph.edges().iter().zip(&strengths).filter(|(_, j)| **j != 0.0);
        let bonds =
            bonds.map(|(e, j)| Bond { between: e.between, closed: -(-2.0 * j.abs()).exp_m1() });
        Some(Self { spins: spins.collect(), bonds: bonds.collect() })
    }

    /// Pairs that see each other: what a move costs.
    pub fn n_bonds(&self) -> usize {
        self.bonds.len()
    }

    /// One move in every row of `x`, whose held units stand as in the row that this was made of.
    ///
    /// # Panics
    ///
    /// If the state is one of another machine.
    pub fn advance(&self, x: &mut State, stream: Stream) {
        Self::advance_rows(std::slice::from_ref(self), &vec![0; x.n_rows()], x, stream);
    }

    /// One move in each row of `x`, row `r` being a state of `ferromagnets[of[r]]`.
    pub(crate) fn advance_rows(ferromagnets: &[Self], of: &[usize], x: &mut State, stream: Stream) {
        let seen: &State = x;
        let turns: Vec<Vec<usize>> = (0..seen.n_rows())
            .into_par_iter()
            .map_init(Scratch::default, |scratch, row| {
                let ferromagnet = &ferromagnets[of[row]];
                scratch.draw(ferromagnet, row, stream);
                ferromagnet.turning(seen, row, scratch)
            })
            .collect();
        for (row, turning) in turns.into_iter().enumerate() {
            for u in turning {
                let Spin { layer, entry, both, .. } = ferromagnets[of[row]].spins[u];
                let layer = &mut x.layers[layer.0];
                let at = row * layer.len + entry;
                let values = layer.numbers_mut();
                values[at] = both - values[at];
            }
        }
    }

    /// The spins that turn in one row.
    fn turning(&self, x: &State, row: usize, scratch: &mut Scratch) -> Vec<usize> {
        let Scratch { up, parents, bonds, ties, coins } = scratch;
        let ghost = self.spins.len();
        up.clear();
        #[expect(clippy::float_cmp, reason = "a unit holds one of its two values")]
        up.extend(self.spins.iter().map(|s| x.row(s.layer, row)[s.entry] == s.up));
        parents.clear();
        parents.extend(0..=ghost);
        for (bond, v) in self.bonds.iter().zip(bonds) {
            let (a, b) = bond.between;
            if up[a] == up[b] && *v < bond.closed {
                join(parents, a, b);
            }
        }
        for (u, (spin, v)) in self.spins.iter().zip(ties).enumerate() {
            if up[u] == spin.favours_up && *v < spin.tied {
                join(parents, u, ghost);
            }
        }
        let fixed = root(parents, ghost);
        let turns = |u: &usize| {
            let island = root(parents, *u);
            island != fixed && coins[island] < 0.5
        };
        (0..ghost).filter(turns).collect()
    }
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    up: Vec<bool>,
    parents: Vec<usize>,
    bonds: Vec<f64>,
    ties: Vec<f64>,
    coins: Vec<f64>,
}

impl Scratch {
    /// The variates of one row.
    fn draw(&mut self, of: &Clusters, row: usize, stream: Stream) {
        self.bonds.resize(of.bonds.len(), 0.0);
        self.ties.resize(of.spins.len(), 0.0);
        self.coins.resize(of.spins.len(), 0.0);
        let lanes = [&mut self.bonds, &mut self.ties, &mut self.coins];
        for (lane, variates) in lanes.into_iter().enumerate() {
            stream.uniforms_into(Site::new(row, 0, lane), variates);
        }
    }
}

/// For each node whether its sign is turned, such that no coupling is negative; `None` if there is no
/// such choice.
fn gauge(graph: &Pairwise, strengths: &[f64]) -> Option<Vec<bool>> {
    let topology: Topology = graph.topology();
    let mut turned: Vec<Option<bool>> = vec![None; topology.n()];
    let mut open = Vec::new();
    for start in 0..topology.n() {
        if turned[start].is_some() {
            continue;
        }
        turned[start] = Some(false);
        open.push((start, false));
        while let Some((u, sign)) = open.pop() {
            for link in topology.links(u).iter().filter(|link| strengths[link.edge] != 0.0) {
                let wanted = sign != (strengths[link.edge] < 0.0);
                match turned[link.node] {
                    None => {
                        turned[link.node] = Some(wanted);
                        open.push((link.node, wanted));
                    }
                    Some(known) if known != wanted => return None,
                    Some(_) => {}
                }
            }
        }
    }
    Some(turned.into_iter().flatten().collect())
}

/// The spin that stands for the island of `u`.
fn root(parents: &mut [usize], mut u: usize) -> usize {
    while parents[u] != u {
        parents[u] = parents[parents[u]];
        u = parents[u];
    }
    u
}

fn join(parents: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(parents, a), root(parents, b));
    parents[a.max(b)] = a.min(b);
}

//! Who sees whom: an undirected graph, its colourings, its sides and how narrow it can be.

use std::collections::VecDeque;

/// An undirected graph by rows: for each node the nodes it sees, in the order of the edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// `starts[u]..starts[u + 1]` of the links belong to node `u`.
    starts: Vec<usize>,
    links: Vec<Link>,
}

/// One end of an edge, seen from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The node at the other end.
    pub node: usize,
    /// The number of the edge.
    pub edge: usize,
}

impl Topology {
    /// `n` nodes and the pairs of them that see each other.
    ///
    /// # Panics
    ///
    /// If a pair names a node that is not there.
    pub fn new(n: usize, pairs: impl Iterator<Item = (usize, usize)> + Clone) -> Self {
        let mut starts = vec![0; n + 1];
        for (i, j) in pairs.clone() {
            starts[i + 1] += 1;
            starts[j + 1] += 1;
        }
        for i in 0..n {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut links = vec![Link { node: 0, edge: 0 }; starts[n]];
        for (edge, (i, j)) in pairs.enumerate() {
            for (from, to) in [(i, j), (j, i)] {
                links[next[from]] = Link { node: to, edge };
                next[from] += 1;
            }
        }
        Self { starts, links }
    }

    /// Number of nodes.
    pub fn n(&self) -> usize {
        self.starts.len() - 1
    }

    /// What node `u` sees.
    pub fn links(&self, u: usize) -> &[Link] {
        &self.links[self.starts[u]..self.starts[u + 1]]
    }

    /// Where the links of node `u` are among those of all nodes.
    pub(crate) fn places(&self, u: usize) -> std::ops::Range<usize> {
        self.starts[u]..self.starts[u + 1]
    }

    /// The links of all nodes, one node after the other.
    pub(crate) fn all_links(&self) -> &[Link] {
        &self.links
    }

    /// The nodes that node `u` sees.
    pub fn neighbours(&self, u: usize) -> impl Iterator<Item = usize> + '_ {
        self.links(u).iter().map(|l| l.node)
    }

    /// The nodes, each after one that it sees unless it is the first of its connected part; and how many parts
    /// there are.
    pub fn outwards(&self) -> (Vec<usize>, usize) {
        let mut order = Vec::with_capacity(self.n());
        let mut seen = vec![false; self.n()];
        let mut n_parts = 0;
        for start in 0..self.n() {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            n_parts += 1;
            let mut next = order.len();
            order.push(start);
            while next < order.len() {
                for v in self.neighbours(order[next]) {
                    if !std::mem::replace(&mut seen[v], true) {
                        order.push(v);
                    }
                }
                next += 1;
            }
        }
        (order, n_parts)
    }

    /// Whether no edge closes a circle.
    pub fn is_forest(&self) -> bool {
        self.links.len() / 2 + self.outwards().1 == self.n()
    }

    /// Sets of nodes that do not see each other: those of [`colours`].
    pub fn colours(&self) -> Vec<Vec<usize>> {
        colours(self.n(), |u| self.neighbours(u))
    }

    /// For each node which of two sides it is on, if nodes see only those of the other side. The
    /// first node of each connected part is on the side `false`.
    pub fn sides(&self) -> Option<Vec<bool>> {
        let mut side: Vec<Option<bool>> = vec![None; self.n()];
        let mut queue = VecDeque::new();
        for start in 0..self.n() {
            if side[start].is_none() {
                side[start] = Some(false);
                queue.push_back(start);
            }
            while let Some(i) = queue.pop_front() {
                for j in self.neighbours(i) {
                    if side[j].is_none() {
                        side[j] = side[i].map(|s| !s);
                        queue.push_back(j);
                    } else if side[j] == side[i] {
                        return None;
                    }
                }
            }
        }
        Some(side.into_iter().flatten().collect())
    }

    /// A bound from below on the neighbours that some node has when it is summed out, in any
    /// order: in a part of the graph where all have $k$ neighbours, the first to go has as many.
    /// Found by taking out the node with the fewest, again and again. An edge that is listed twice
    /// counts twice.
    pub fn least_width(&self) -> usize {
        let mut degrees: Vec<usize> = (0..self.n()).map(|u| self.links(u).len()).collect();
        let most = degrees.iter().copied().max().unwrap_or(0);
        // Nodes by how many are left around them; entries that are out of date are passed over.
        let mut by_degree: Vec<Vec<usize>> = vec![Vec::new(); most + 1];
        degrees.iter().enumerate().for_each(|(u, &degree)| by_degree[degree].push(u));
        let mut left = vec![true; self.n()];
        let (mut width, mut least) = (0, 0);
        while least <= most {
            let Some(node) = by_degree[least].pop() else {
                least += 1;
                continue;
            };
            if !left[node] || degrees[node] != least {
                continue;
            }
            left[node] = false;
            width = width.max(least);
            for v in self.neighbours(node).filter(|&v| left[v]) {
                degrees[v] -= 1;
                by_degree[degrees[v]].push(v);
            }
            least = least.saturating_sub(1);
        }
        width
    }
}

/// Sets of nodes that do not see each other, by greedy colouring.
///
/// Nodes are taken neighbour after neighbour, so a graph that admits two colours gets two (an open
/// grid, a torus of even length), and any other at most one more than its largest degree.
pub fn colours<I: Iterator<Item = usize>>(
    n_nodes: usize,
    neighbours: impl Fn(usize) -> I,
) -> Vec<Vec<usize>> {
    let mut colour_of: Vec<Option<usize>> = vec![None; n_nodes];
    let mut seen = vec![false; n_nodes];
    // The last node that met a neighbour of each colour.
    let mut taken_by: Vec<usize> = Vec::new();
    let mut queue = VecDeque::new();
    for start in 0..n_nodes {
        if !std::mem::replace(&mut seen[start], true) {
            queue.push_back(start);
        }
        while let Some(node) = queue.pop_front() {
            for other in neighbours(node) {
                match colour_of[other] {
                    Some(colour) => taken_by[colour] = node,
                    None if !std::mem::replace(&mut seen[other], true) => queue.push_back(other),
                    None => {}
                }
            }
            let colour = taken_by.iter().position(|&u| u != node).unwrap_or(taken_by.len());
            if colour == taken_by.len() {
                taken_by.push(n_nodes);
            }
            colour_of[node] = Some(colour);
        }
    }
    let mut sets = vec![Vec::new(); taken_by.len()];
    for (node, colour) in colour_of.into_iter().enumerate() {
        sets[colour.unwrap_or_default()].push(node);
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A torus of the given length; each node names the edges to its right and downwards.
    fn torus(n: usize) -> Topology {
        let at = |r: usize, c: usize| (r % n) * n + c % n;
        let near = move |u: usize| {
            let (r, c) = (u / n, u % n);
            [at(r + 1, c), at(r, c + 1)].into_iter().filter(move |&v| v != u).map(move |v| (u, v))
        };
        Topology::new(n * n, (0..n * n).flat_map(near))
    }

    fn complete(n: usize) -> Topology {
        Topology::new(n, (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))))
    }

    #[test]
    fn nodes_of_a_colour_do_not_see_each_other() {
        for n in [1, 2, 3, 4, 7, 16] {
            let graph = torus(n);
            let sets = graph.colours();
            assert_eq!(sets.iter().map(Vec::len).sum::<usize>(), n * n);
            for set in &sets {
                assert!(set.iter().all(|&u| graph.neighbours(u).all(|v| !set.contains(&v))));
            }
            if n.is_multiple_of(2) {
                assert_eq!(sets.len(), 2, "an even torus is a chessboard");
            }
            assert!(sets.len() <= 5);
        }
    }

    #[test]
    fn nodes_without_edges_have_one_colour_and_cliques_have_many() {
        assert_eq!(Topology::new(5, std::iter::empty()).colours().len(), 1);
        assert_eq!(complete(5).colours().len(), 5);
        assert!(Topology::new(0, std::iter::empty()).colours().is_empty());
    }

    #[test]
    fn sides_exist_where_no_circle_is_odd() {
        let even = torus(4).sides().unwrap();
        assert!((0..16).all(|u| torus(4).neighbours(u).all(|v| even[u] != even[v])));
        assert_eq!(torus(3).sides(), None);
        assert_eq!(complete(3).sides(), None);
        let apart = Topology::new(4, [(0, 1), (2, 3)].into_iter());
        assert_eq!(apart.sides(), Some(vec![false, true, false, true]));
    }

    #[test]
    fn forests_have_no_circles_and_parts_are_counted() {
        let star = Topology::new(5, (1..5).map(|u| (0, u)));
        assert!(star.is_forest() && star.outwards() == (vec![0, 1, 2, 3, 4], 1));
        let apart = Topology::new(5, [(0, 3), (1, 2)].into_iter());
        assert!(apart.is_forest() && apart.outwards() == (vec![0, 3, 1, 2, 4], 3));
        assert!(!torus(4).is_forest() && !complete(3).is_forest());
        assert!(Topology::new(0, std::iter::empty()).is_forest());
    }

    #[test]
    fn the_width_is_bounded_by_the_densest_part() {
        assert_eq!(Topology::new(5, (0..4).map(|i| (i, i + 1))).least_width(), 1);
        assert_eq!(complete(6).least_width(), 5);
        let tail = (0..6).flat_map(|i| (i + 1..6).map(move |j| (i, j))).chain([(5, 6), (6, 7)]);
        assert_eq!(Topology::new(8, tail).least_width(), 5);
    }
}

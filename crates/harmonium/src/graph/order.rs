//! Orders in which the nodes of a graph are summed out.
//!
//! Summing out a node leaves a table over the nodes it sees, which then see each other. The largest
//! table decides what an order costs. The greedy order takes the node whose neighbours need the
//! fewest new edges (min-fill: Rose 1972; Kjærulff 1990).

use super::Topology;

/// An order of nodes, and what summing them out in it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The nodes, the first to go first.
    pub nodes: Vec<usize>,
    /// Binary logarithm of the number of terms.
    pub log2_terms: f64,
}

impl Order {
    /// The better of the greedy order and that in which the nodes stand, which is good for grids
    /// and tori; `None` if both need a table of more than two to the power of `most_log2` entries.
    /// Node `u` has `n_states[u]` states.
    pub fn narrow(graph: &Topology, n_states: &[usize], most_log2: f64) -> Option<Self> {
        let greedy = Self::by(graph, n_states, most_log2, |left, cost, graph| {
            left.iter().copied().min_by_key(|&u| (cost[u], graph.degree(u)))
        });
        let as_they_stand =
            Self::by(graph, n_states, most_log2, |left, _, _| left.first().copied());
        let orders = [greedy, as_they_stand].into_iter().flatten();
        orders.min_by(|a, b| a.log2_terms.total_cmp(&b.log2_terms))
    }

    /// The order in which `next` chooses among the nodes that are left, given how many edges each
    /// would need.
    fn by(
        graph: &Topology,
        n_states: &[usize],
        most_log2: f64,
        next: impl Fn(&[usize], &[usize], &Adjacency) -> Option<usize>,
    ) -> Option<Self> {
        let n = graph.n();
        let mut graph = Adjacency::new(graph);
        let mut cost: Vec<usize> = (0..n).map(|u| graph.new_edges(u)).collect();
        let mut left: Vec<usize> = (0..n).collect();
        let (mut nodes, mut terms) = (Vec::with_capacity(n), 0.0_f64);
        while let Some(node) = next(&left, &cost, &graph) {
            let neighbours = graph.neighbours(node);
            let entries: f64 = neighbours.iter().map(|&v| n_states[v] as f64).product();
            if entries.log2() > most_log2 {
                return None;
            }
            terms += n_states[node] as f64 * entries;
            left.retain(|&u| u != node);
            nodes.push(node);
            graph.eliminate(node, &neighbours);
            let mut touched = neighbours.clone();
            touched.extend(neighbours.iter().flat_map(|&u| graph.neighbours(u)));
            touched.sort_unstable();
            touched.dedup();
            touched.into_iter().for_each(|u| cost[u] = graph.new_edges(u));
        }
        Some(Self { nodes, log2_terms: terms.max(1.0).log2() })
    }
}

/// Which nodes see each other, as bits: quick to join and to take out.
struct Adjacency {
    n_words: usize,
    words: Vec<u64>,
}

impl Adjacency {
    fn new(topology: &Topology) -> Self {
        let n = topology.n();
        let n_words = n.div_ceil(64);
        let mut graph = Self { n_words, words: vec![0; n * n_words] };
        for u in 0..n {
            topology.neighbours(u).for_each(|v| graph.join(u, v));
        }
        graph
    }

    fn row(&self, u: usize) -> &[u64] {
        &self.words[u * self.n_words..(u + 1) * self.n_words]
    }

    fn join(&mut self, i: usize, j: usize) {
        self.words[i * self.n_words + j / 64] |= 1 << (j % 64);
        self.words[j * self.n_words + i / 64] |= 1 << (i % 64);
    }

    fn degree(&self, u: usize) -> u32 {
        self.row(u).iter().map(|w| w.count_ones()).sum()
    }

    fn neighbours(&self, u: usize) -> Vec<usize> {
        let bits = |(k, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |b| word >> b & 1 == 1).map(move |b| 64 * k + b)
        };
        self.row(u).iter().enumerate().flat_map(bits).collect()
    }

    /// Twice the number of edges that would join the neighbours of `u`.
    fn new_edges(&self, u: usize) -> usize {
        let mine = self.row(u);
        let missing = |v: usize| {
            let theirs = mine.iter().zip(self.row(v));
            theirs.map(|(a, b)| (a & !b).count_ones() as usize).sum::<usize>() - 1
        };
        self.neighbours(u).into_iter().map(missing).sum()
    }

    /// Joins the neighbours of `node` with each other and takes it out.
    fn eliminate(&mut self, node: usize, neighbours: &[usize]) {
        for (k, &i) in neighbours.iter().enumerate() {
            neighbours[..k].iter().for_each(|&j| self.join(i, j));
            self.words[i * self.n_words + node / 64] &= !(1 << (node % 64));
        }
        let n = self.n_words;
        self.words[node * n..(node + 1) * n].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(width: usize, height: usize) -> Topology {
        let right = (0..width * height).filter(move |u| u % width + 1 < width);
        let down = 0..width * (height - 1);
        Topology::new(
            width * height,
            right.map(|u| (u, u + 1)).chain(down.map(move |u| (u, u + width))),
        )
    }

    #[test]
    fn an_order_takes_every_node_once() {
        let graph = grid(4, 5);
        let order = Order::narrow(&graph, &[2; 20], 22.0).unwrap();
        let mut nodes = order.nodes.clone();
        nodes.sort_unstable();
        assert!(nodes.into_iter().eq(0..20));
    }

    #[test]
    fn no_order_is_narrower_than_the_least_width() {
        let complete: Vec<_> = (0..6).flat_map(|i| (0..i).map(move |j| (j, i))).collect();
        let halves: Vec<_> = (0..4).flat_map(|i| (4..30).map(move |j| (i, j))).collect();
        let path: Vec<_> = (1..20).map(|i| (i - 1, i)).collect();
        for (n, pairs, width) in
            [(6, &complete, 5), (30, &halves, 4), (20, &path, 1), (7, &vec![], 0)]
        {
            let graph = Topology::new(n, pairs.iter().copied());
            assert_eq!(graph.least_width(), width);
            let order = Order::narrow(&graph, &vec![2; n], 22.0).expect("small graphs are narrow");
            assert!(order.log2_terms >= width as f64 + 1.0, "{n} nodes: {}", order.log2_terms);
        }
    }

    #[test]
    fn a_tree_costs_pairs_and_a_grid_its_shorter_side() {
        let chain = Topology::new(9, (0..8).map(|i| (i, i + 1)));
        let order = Order::narrow(&chain, &[3; 9], 22.0).unwrap();
        assert!((order.log2_terms - (8.0 * 9.0 + 3.0_f64).log2()).abs() < 1e-12);
        let wide = Order::narrow(&grid(3, 12), &[2; 36], 22.0).unwrap();
        assert!(wide.log2_terms <= (36.0 * 2.0_f64.powi(4)).log2());
        // A table over three of four nodes with five states each has 125 entries.
        let pairs = (0..4).flat_map(|i| (i + 1..4).map(move |j| (i, j)));
        let clique = Topology::new(4, pairs);
        assert!(Order::narrow(&clique, &[5; 4], 125.0_f64.log2() + 1e-9).is_some());
        assert_eq!(Order::narrow(&clique, &[5; 4], 6.9), None);
    }
}

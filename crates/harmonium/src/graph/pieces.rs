//! Which tables are kept on the way up, and which are made once more on the way down.
//!
//! Marginals, samples and the most probable state need the tables of the way up again on the way down,
//! from the last to the first. Where they do not all fit into a budget, the tree is cut into pieces and only the table at the
//! top of each is kept; on the way down the others of a piece are made again when it is its turn. Pieces
//! that are still too large are cut again. Each cut takes one more way up (checkpointing: Griewank, Optimization Methods
//! and Software 1, 1992).

use super::BucketTree;

/// A part of a tree of tables that is worked on as one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    /// Its nodes, in the order in which they go.
    pub(super) nodes: Vec<usize>,
    /// What it is cut into, in the order of their last nodes; empty if all its tables are kept.
    pub(super) parts: Vec<Piece>,
}

impl Piece {
    /// The nodes whose tables are kept between its parts: the last of each but the topmost.
    pub(super) fn tops(&self) -> impl Iterator<Item = usize> + '_ {
        let below = self.parts.len().saturating_sub(1);
        self.parts[..below].iter().filter_map(|part| part.nodes.last().copied())
    }
}

/// How the way down of an elimination keeps to a number of bytes, and what that takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pieces {
    pub(super) top: Piece,
    bytes: f64,
    terms: f64,
}

impl Pieces {
    /// Bytes of all tables that are there at one time.
    pub fn bytes(&self) -> f64 {
        self.bytes
    }

    /// Binary logarithm of the number of terms of all ways up.
    pub fn log2_terms(&self) -> f64 {
        self.terms.max(1.0).log2()
    }

    /// Whether tables are made more than once.
    pub fn recompute(&self) -> bool {
        !self.top.parts.is_empty()
    }
}

impl BucketTree {
    /// How marginals are found with tables of at most so many bytes; `None` if they cannot be.
    pub fn marginals_within(&self, bytes: f64) -> Option<Pieces> {
        // Beside the tables stands what is known of the bucket at hand.
        let bucket = |&u: &usize| 4.0 * 8.0 * self.n_terms(u);
        self.pieces(bytes, self.order.nodes.iter().map(bucket).fold(0.0, f64::max))
    }

    /// How samples, or the most probable state, are found with tables of at most so many bytes; `None` if
    /// they cannot be.
    pub fn samples_within(&self, bytes: f64) -> Option<Pieces> {
        self.pieces(bytes, 0.0)
    }

    /// `aside` are bytes that are needed beside the tables.
    fn pieces(&self, bytes: f64, aside: f64) -> Option<Pieces> {
        // A node whose factors are many needs room for their product while its table is made.
        let product = |&u: &usize| 2.0 * 8.0 * self.n_terms(u);
        let aside = self.order.nodes.iter().map(product).fold(aside, f64::max);
        let top = self.cut(&self.order.nodes, bytes - aside)?;
        let terms: f64 = self.order.nodes.iter().map(|&u| self.n_terms(u)).sum();
        let bytes = self.most_bytes(&top) + aside;
        Some(Pieces { terms: terms + self.terms_again(&top), bytes, top })
    }

    fn bytes_of(&self, nodes: &[usize]) -> f64 {
        nodes.iter().map(|&u| self.bytes(u)).sum()
    }

    /// Bytes of the tables that are made inside a piece: that of its last node is there before it, or is one
    /// number.
    fn bytes_inside(&self, nodes: &[usize]) -> f64 {
        self.bytes_of(&nodes[..nodes.len().saturating_sub(1)])
    }

    /// A piece whose tables, with those that are kept of pieces around it, take no more than `bytes`.
    fn cut(&self, nodes: &[usize], bytes: f64) -> Option<Piece> {
        let total = self.bytes_inside(nodes);
        if total <= bytes {
            return Some(Piece { nodes: nodes.to_vec(), parts: Vec::new() });
        }
        // The smaller the parts, the more tables are kept: as small as half of the budget allows.
        let mut best: Option<Vec<usize>> = None;
        let mut size = 0.5 * total;
        while size >= 1.0 {
            let tops = self.tops(nodes, size);
            if self.bytes_of(&tops) > 0.5 * bytes {
                break;
            }
            if !tops.is_empty() {
                best = Some(tops);
            }
            size *= 0.5;
        }
        let tops = best?;
        let left = bytes - self.bytes_of(&tops);
        let parts = self.parts(nodes, &tops);
        let parts = parts.iter().map(|part| self.cut(part, left)).collect::<Option<_>>()?;
        Some(Piece { nodes: nodes.to_vec(), parts })
    }

    /// Nodes of a piece whose tables are kept so that those between them take about `size` bytes.
    fn tops(&self, nodes: &[usize], size: f64) -> Vec<usize> {
        let mut below = vec![0.0; self.n_states.len()];
        let mut inside = vec![false; self.n_states.len()];
        nodes.iter().for_each(|&u| inside[u] = true);
        let mut tops = Vec::new();
        for &node in nodes {
            let mut children: Vec<usize> =
                self.children[node].iter().copied().filter(|&c| inside[c]).collect();
            children.sort_by(|&a, &b| f64::total_cmp(&below[b], &below[a]).then(a.cmp(&b)));
            let mut sum = self.bytes(node) + children.iter().map(|&c| below[c]).sum::<f64>();
            for child in children {
                if sum <= size {
                    break;
                }
                sum -= below[child];
                tops.push(child);
            }
            below[node] = sum;
        }
        tops
    }

    /// The nodes below each of `tops`, and those that are left; in the order in which their last ones go.
    fn parts(&self, nodes: &[usize], tops: &[usize]) -> Vec<Vec<usize>> {
        let mut is_top = vec![false; self.n_states.len()];
        tops.iter().for_each(|&u| is_top[u] = true);
        // From the last to the first: a node belongs to the part of the one that takes up its table.
        let mut part_of = vec![None; self.n_states.len()];
        let mut parts: Vec<Vec<usize>> = vec![Vec::new()];
        for &node in nodes.iter().rev() {
            let parent = self.parents[node].and_then(|p| part_of[p]);
            let part = match parent {
                Some(part) if !is_top[node] => part,
                _ if is_top[node] => {
                    parts.push(Vec::new());
                    parts.len() - 1
                }
                _ => 0,
            };
            part_of[node] = Some(part);
            parts[part].push(node);
        }
        parts.iter_mut().for_each(|part| part.reverse());
        parts.reverse();
        parts
    }

    fn most_bytes(&self, piece: &Piece) -> f64 {
        if piece.parts.is_empty() {
            return self.bytes_inside(&piece.nodes);
        }
        let tops: f64 = piece.tops().map(|u| self.bytes(u)).sum();
        tops + piece.parts.iter().map(|part| self.most_bytes(part)).fold(0.0, f64::max)
    }

    /// Terms of the ways up inside the parts of a piece.
    fn terms_again(&self, piece: &Piece) -> f64 {
        let of = |part: &Piece| {
            let made = &part.nodes[..part.nodes.len() - 1];
            made.iter().map(|&u| self.n_terms(u)).sum::<f64>() + self.terms_again(part)
        };
        piece.parts.iter().map(of).sum()
    }
}

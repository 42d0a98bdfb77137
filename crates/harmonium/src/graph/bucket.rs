//! The product of everything in a bucket, piece by piece.
//!
//! A bucket is a node $u$ with the nodes it sees, $N_u$, and factors over some of them:
//! $$w_s(x_N) = \prod_g g(x_u = s, x_N).$$
//! Results range over $N_u$, the states of its last node running fastest. They are made in pieces of a
//! fixed size, so it does not matter how many threads make them. Where a factor is read for an entry
//! of a piece is the sum of a number for the piece and one from a list, so nothing is divided.

use rayon::prelude::*;

/// Entries of a piece, as near as the numbers of states allow.
const PIECE: usize = 1 << 11;

/// How the numbers of a table are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As they are: products are products.
    Plain,
    /// As logarithms: where the factors of a bucket differ by more than a number can hold.
    Logs,
}

/// What becomes of the states of a node when it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    /// Their sum.
    Sum,
    /// The largest.
    Max,
}

/// A factor of a bucket.
pub(super) struct Factor<'a> {
    pub(super) values: &'a [f64],
    /// From one state of the bucket's node to the next; 0 if the factor does not know the node.
    pub(super) step: usize,
    /// From one state to the next of each node the bucket sees.
    pub(super) strides: Vec<usize>,
}

/// All factors of a bucket, in one form, ready to be multiplied.
pub(super) struct Bucket<'a> {
    form: Form,
    /// States of the node that is summed out.
    n_states: usize,
    lookups: Vec<Lookup<'a>>,
    /// Entries of a piece, and the pieces.
    piece: usize,
    n_pieces: usize,
}

struct Lookup<'a> {
    values: &'a [f64],
    step: usize,
    /// For each entry of a piece where it is read; `None` if entries follow each other.
    low: Option<Vec<u32>>,
    /// For each piece where it starts.
    high: Vec<usize>,
}

/// All sums of the strides of some nodes times their states, the last node running fastest.
fn offsets(strides: &[usize], n_states: &[usize]) -> Vec<usize> {
    let mut all = vec![0];
    for (&stride, &n) in strides.iter().zip(n_states) {
        all = all.iter().flat_map(|&at| (0..n).map(move |s| at + s * stride)).collect();
    }
    all
}

impl<'a> Bucket<'a> {
    /// A bucket whose node has `n_states` states and sees nodes with the states `seen`.
    pub(super) fn new(
        form: Form,
        n_states: usize,
        seen: &[usize],
        factors: Vec<Factor<'a>>,
    ) -> Self {
        let (mut piece, mut first) = (1, seen.len());
        while first > 0 && piece * seen[first - 1] <= PIECE {
            first -= 1;
            piece *= seen[first];
        }
        let lookup = |factor: Factor<'a>| {
            let low = offsets(&factor.strides[first..], &seen[first..]);
            let follow = low.iter().enumerate().all(|(i, &at)| i == at);
            // A piece is small, but a factor may be too large for short numbers.
            #[expect(clippy::cast_possible_truncation, reason = "tables have at most 2^32 entries")]
            let low = (!follow).then(|| low.into_iter().map(|at| at as u32).collect());
            let high = offsets(&factor.strides[..first], &seen[..first]);
            Lookup { values: factor.values, step: factor.step, low, high }
        };
        let n_pieces = seen[..first].iter().product();
        Self { form, n_states, lookups: factors.into_iter().map(lookup).collect(), piece, n_pieces }
    }

    /// How the numbers are meant.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Writes $w_s$ of one piece, state after state.
    fn weights_into(&self, piece: usize, out: &mut [f64]) {
        let neutral = if self.form == Form::Plain { 1.0 } else { 0.0 };
        for (state, out) in out.chunks_exact_mut(self.piece).enumerate() {
            let mut fresh = true;
            for lookup in &self.lookups {
                let values = &lookup.values[lookup.high[piece] + state * lookup.step..];
                match (&lookup.low, self.form, fresh) {
                    (None, _, true) => out.copy_from_slice(&values[..out.len()]),
                    (None, Form::Plain, _) => out.iter_mut().zip(values).for_each(|(o, v)| *o *= v),
                    (None, Form::Logs, _) => out.iter_mut().zip(values).for_each(|(o, v)| *o += v),
                    (Some(low), _, true) => {
                        out.iter_mut().zip(low).for_each(|(o, &at)| *o = values[at as usize]);
                    }
                    (Some(low), Form::Plain, _) => {
                        out.iter_mut().zip(low).for_each(|(o, &at)| *o *= values[at as usize]);
                    }
                    (Some(low), Form::Logs, _) => {
                        out.iter_mut().zip(low).for_each(|(o, &at)| *o += values[at as usize]);
                    }
                }
                fresh = false;
            }
            if fresh {
                out.fill(neutral);
            }
        }
    }

    /// $\sum_s w_s$ or $\max_s w_s$, or its logarithm, of each entry.
    pub(super) fn fold_into(&self, fold: Fold, out: &mut [f64]) {
        let of_piece = |(piece, out): (usize, &mut [f64])| {
            let mut weights = vec![0.0; self.n_states * self.piece];
            self.weights_into(piece, &mut weights);
            self.fold_states(fold, &weights, out);
        };
        if self.n_pieces == 1 {
            of_piece((0, out));
        } else {
            out.par_chunks_mut(self.piece).enumerate().for_each(of_piece);
        }
    }

    fn fold_states(&self, fold: Fold, weights: &[f64], out: &mut [f64]) {
        let (first, rest) = weights.split_at(self.piece);
        out.copy_from_slice(first);
        for more in rest.chunks_exact(self.piece) {
            let pairs = out.iter_mut().zip(more);
            match (fold, self.form) {
                (Fold::Max, _) => pairs.for_each(|(o, w)| *o = o.max(*w)),
                (Fold::Sum, Form::Plain) => pairs.for_each(|(o, w)| *o += w),
                (Fold::Sum, Form::Logs) => pairs.for_each(|(o, w)| {
                    let most = o.max(*w);
                    *o = most + (o.min(*w) - most).exp().ln_1p();
                }),
            }
        }
    }

    /// $p(x_N)\,w_s(x_N) / \sum_t w_t(x_N)$ of each state and entry: what the node does, given the
    /// probabilities of those it sees. The states of the node run slowest.
    pub(super) fn joint(&self, seen: &[f64]) -> Vec<f64> {
        let n = seen.len();
        let mut joint = vec![0.0; self.n_states * n];
        let of_piece = |piece: usize| {
            let mut weights = vec![0.0; self.n_states * self.piece];
            let mut sums = vec![0.0; self.piece];
            self.weights_into(piece, &mut weights);
            self.fold_states(Fold::Sum, &weights, &mut sums);
            let seen = &seen[piece * self.piece..(piece + 1) * self.piece];
            for weights in weights.chunks_exact_mut(self.piece) {
                for ((w, s), p) in weights.iter_mut().zip(&sums).zip(seen) {
                    *w = match self.form {
                        Form::Plain => p * (*w / s),
                        Form::Logs => p * (*w - s).exp(),
                    };
                }
            }
            weights
        };
        // A few pieces at a time, so that they take little memory beside the table.
        for first in (0..self.n_pieces).step_by(64) {
            let some = first..self.n_pieces.min(first + 64);
            let made: Vec<Vec<f64>> = some.clone().into_par_iter().map(of_piece).collect();
            for (piece, weights) in some.zip(&made) {
                for (state, weights) in weights.chunks_exact(self.piece).enumerate() {
                    let at = state * n + piece * self.piece;
                    joint[at..at + self.piece].copy_from_slice(weights);
                }
            }
        }
        joint
    }
}

/// Sums a table over some nodes down to those that `keep` names; both in the same order, the last
/// running fastest. `nodes` are pairs of a node and its number of states.
pub(super) fn marginal(table: &[f64], nodes: &[(usize, usize)], keep: &[usize]) -> Vec<f64> {
    let mut left = nodes.to_vec();
    let mut now: Option<Vec<f64>> = None;
    while let Some(axis) = left.iter().position(|(node, _)| !keep.contains(node)) {
        let n = left[axis].1;
        let inner: usize = left[axis + 1..].iter().map(|x| x.1).product();
        let from: &[f64] = now.as_deref().unwrap_or(table);
        let mut sums = vec![0.0; from.len() / n];
        let add = |(sums, from): (&mut [f64], &[f64])| {
            for more in from.chunks_exact(inner) {
                sums.iter_mut().zip(more).for_each(|(s, w)| *s += w);
            }
        };
        if inner == 1 {
            for (sum, from) in sums.iter_mut().zip(from.chunks_exact(n)) {
                *sum = from.iter().sum();
            }
        } else {
            sums.chunks_exact_mut(inner).zip(from.chunks_exact(n * inner)).for_each(add);
        }
        left.remove(axis);
        now = Some(sums);
    }
    now.unwrap_or_else(|| table.to_vec())
}

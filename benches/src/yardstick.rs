//! What a careful dense program does: single precision, products by the `gemm` crate, with the best instructions of the
//! machine or with AVX2 at most, buffers made once, and the library's own kernels for what units make of their natural parameters.
//!
//! Where there is a choice, the yardstick gets the faster one: rows are padded so that they do not
//! fall on one cache set, variates are resolved to 16 bits, biases start the sums, momentum is part
//! of the gradient's product, and centering is left out.

use harmonium_kernels::line::{TILE, Wide, flat, flat_mut};
use harmonium_kernels::random::{Site, Stream};
pub(crate) use harmonium_kernels::real::Yardstick;
use harmonium_kernels::real::{View, multiply_on};
use harmonium_kernels::response::{probabilities, sample, sample_means};
use rayon::prelude::*;
use std::ops::Range;

/// Entries below which an epilogue stays on one thread.
const WORTH_THREADS: usize = 20_000;

/// Lines whose bits are drawn at a time.
const STRIP: usize = 32;

/// Rows of numbers, each starting at a fresh line.
#[derive(Clone, Debug)]
pub(crate) struct Dense {
    pub(crate) n_rows: usize,
    pub(crate) n_columns: usize,
    /// Lines from one row to the next, and those that hold entries.
    stride: usize,
    used: usize,
    lines: Vec<Wide>,
    /// What multiplies where this is the result.
    by: Yardstick,
}

impl Dense {
    pub(crate) fn zeros(n_rows: usize, n_columns: usize) -> Self {
        let used = n_columns.div_ceil(TILE);
        let stride = if used >= 8 { used | 1 } else { used };
        let lines = vec![Wide::ZERO; n_rows * stride];
        Self { n_rows, n_columns, stride, used, lines, by: Yardstick::Best }
    }

    /// The same, multiplied by other instructions where it is a result.
    pub(crate) fn by(mut self, yardstick: Yardstick) -> Self {
        self.by = yardstick;
        self
    }

    pub(crate) fn from_fn(
        n_rows: usize,
        n_columns: usize,
        entry: impl Fn(usize, usize) -> f32,
    ) -> Self {
        let mut it = Self::zeros(n_rows, n_columns);
        for i in 0..n_rows {
            it.row_mut(i).iter_mut().enumerate().for_each(|(j, x)| *x = entry(i, j));
        }
        it
    }

    pub(crate) fn row(&self, i: usize) -> &[f32] {
        &flat(&self.lines[i * self.stride..])[..self.n_columns]
    }

    pub(crate) fn row_mut(&mut self, i: usize) -> &mut [f32] {
        &mut flat_mut(&mut self.lines[i * self.stride..])[..self.n_columns]
    }

    /// Some rows, to be multiplied.
    pub(crate) fn factor(&self, rows: Range<usize>) -> (&[f32], View) {
        let view = View::strided(rows.len(), self.n_columns, self.stride * TILE);
        (flat(&self.lines[rows.start * self.stride..rows.end * self.stride]), view)
    }

    /// Some rows, transposed.
    pub(crate) fn transposed(&self, rows: Range<usize>) -> (&[f32], View) {
        let (values, view) = self.factor(rows);
        (values, view.transposed())
    }

    /// All rows.
    pub(crate) fn all(&self) -> (&[f32], View) {
        self.factor(0..self.n_rows)
    }

    /// Overwrites some rows with `keep` times themselves plus `scale a b`.
    pub(crate) fn multiply(
        &mut self,
        threads: usize,
        rows: Range<usize>,
        a: (&[f32], View),
        b: (&[f32], View),
        factors: (f32, f32),
    ) {
        let view = View::strided(rows.len(), self.n_columns, self.stride * TILE);
        let lines = &mut self.lines[rows.start * self.stride..rows.end * self.stride];
        multiply_on((threads, self.by), (flat_mut(lines), view), a, b, factors);
    }

    /// Overwrites some rows with `bias + a b`: natural parameters.
    pub(crate) fn respond(
        &mut self,
        threads: usize,
        rows: Range<usize>,
        bias: &[f32],
        a: (&[f32], View),
        b: (&[f32], View),
    ) {
        rows.clone().for_each(|i| self.row_mut(i).copy_from_slice(bias));
        self.multiply(threads, rows, a, b, (1.0, 1.0));
    }

    /// Does `work` with the lines of each of some rows, on as many threads.
    fn each_row(
        &mut self,
        threads: usize,
        rows: Range<usize>,
        work: impl Fn(usize, &mut [Wide]) + Sync,
    ) {
        let (stride, used) = (self.stride, self.used);
        let lines = &mut self.lines[rows.start * stride..rows.end * stride];
        let run = |first: usize, lines: &mut [Wide]| {
            for (k, row) in lines.chunks_exact_mut(stride).enumerate() {
                work(first + k, &mut row[..used]);
            }
        };
        if threads < 2 || lines.len() * TILE < WORTH_THREADS {
            return run(rows.start, lines);
        }
        let part = rows.len().div_ceil(threads);
        let parts = lines.par_chunks_mut(part * stride).enumerate();
        parts.for_each(|(p, lines)| run(rows.start + p * part, lines));
    }

    /// Natural parameters become probabilities.
    pub(crate) fn make_probabilities(&mut self, threads: usize, rows: Range<usize>) {
        self.each_row(threads, rows, |_, lines| probabilities(lines));
    }

    /// Natural parameters become zeros and ones.
    pub(crate) fn make_samples(&mut self, threads: usize, rows: Range<usize>, stream: Stream) {
        self.each_row(threads, rows, |row, lines| {
            let mut bits = [0; STRIP];
            for (k, lines) in lines.chunks_mut(STRIP).enumerate() {
                let (site, bits) = (site(row, k), &mut bits[..lines.len()]);
                sample(lines, stream, site, 0, bits);
                unpack(bits, lines);
            }
        });
    }

    /// Zeros and ones with the probabilities in the rows of `means` from `first` on.
    pub(crate) fn sample_means(
        &mut self,
        threads: usize,
        means: &Self,
        first: usize,
        stream: Stream,
    ) {
        self.each_row(threads, 0..self.n_rows, |row, lines| {
            let mut bits = [0; STRIP];
            let p = &means.lines[(first + row) * means.stride..][..means.used];
            for (k, (lines, p)) in lines.chunks_mut(STRIP).zip(p.chunks(STRIP)).enumerate() {
                let (site, bits) = (site(row, k), &mut bits[..lines.len()]);
                sample_means(p, stream, site, 0, bits);
                unpack(bits, lines);
            }
        });
    }

    /// `self += other`, entry by entry.
    pub(crate) fn add(&mut self, threads: usize, other: &Self) {
        self.each_row(threads, 0..self.n_rows, |row, lines| {
            let other = &other.lines[row * other.stride..][..lines.len()];
            let numbers = flat_mut(lines).iter_mut().zip(flat(other));
            numbers.for_each(|(x, y)| *x += y);
        });
    }

    /// Changes the sign of some rows.
    pub(crate) fn negate(&mut self, threads: usize, rows: Range<usize>) {
        self.each_row(threads, rows, |_, lines| {
            flat_mut(lines).iter_mut().for_each(|x| *x = -*x);
        });
    }

    /// Copies rows of `other` from `first` on over the first `n` rows.
    pub(crate) fn copy_rows(&mut self, n: usize, other: &Self, first: usize) {
        let from = &other.lines[first * other.stride..(first + n) * other.stride];
        self.lines[..n * self.stride].copy_from_slice(from);
    }

    /// Adds the sum of some rows to `sums`, or takes it away.
    fn add_sums(&self, rows: Range<usize>, sign: f32, sums: &mut [f32]) {
        for i in rows {
            sums.iter_mut().zip(self.row(i)).for_each(|(s, x)| *s += sign * x);
        }
    }
}

/// Where the variates of a strip begin: one line is one row of variates.
fn site(row: usize, strip: usize) -> Site {
    Site::new(STRIP * strip, row, 0)
}

fn unpack(bits: &[u32], lines: &mut [Wide]) {
    for (bits, line) in bits.iter().zip(lines) {
        for (l, x) in line.0.iter_mut().enumerate() {
            *x = if bits & 1 << l == 0 { 0.0 } else { 1.0 };
        }
    }
}

/// Where the model side comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Persistent chains.
    Persistent,
    /// Chains that start at the data.
    Contrastive,
}

/// A restricted machine that learns with dense products: PCD or CD with momentum.
#[derive(Debug)]
pub(crate) struct DenseRbm {
    side: Side,
    /// Sweeps of the chains for each update.
    k: usize,
    batch: usize,
    rate: f32,
    momentum: f32,
    weights: Dense,
    velocity: Dense,
    bias: [Vec<f32>; 2],
    bias_velocity: [Vec<f32>; 2],
    data: Dense,
    /// Rows of the data, then those of the model.
    visible: Dense,
    hidden: Dense,
    samples: Dense,
    stream: Stream,
    steps: u64,
    /// Layers that were sampled so far.
    draws: u64,
}

impl DenseRbm {
    /// As many chains as a batch has rows; `data` is presented in its order, again and again.
    pub(crate) fn new(
        (side, k): (Side, usize),
        batch: usize,
        weights: Dense,
        visible_bias: Vec<f32>,
        data: Dense,
    ) -> Self {
        let (n_visible, n_hidden) = (weights.n_rows, weights.n_columns);
        let stream = Stream::new(7);
        let start = |i, j| if stream.uniform(Site::new(i, 0, 1), j) < 0.5 { 1.0 } else { 0.0 };
        Self {
            side,
            k,
            batch,
            rate: 0.01,
            momentum: 0.5,
            velocity: Dense::zeros(n_visible, n_hidden),
            weights,
            bias: [visible_bias, vec![0.0; n_hidden]],
            bias_velocity: [vec![0.0; n_visible], vec![0.0; n_hidden]],
            data,
            visible: Dense::zeros(2 * batch, n_visible),
            hidden: Dense::zeros(2 * batch, n_hidden),
            samples: Dense::from_fn(batch, n_hidden, start),
            stream,
            steps: 0,
            draws: 0,
        }
    }

    /// The same with other instructions for its products.
    pub(crate) fn by(mut self, yardstick: Yardstick) -> Self {
        for result in [&mut self.visible, &mut self.hidden, &mut self.velocity] {
            result.by = yardstick;
        }
        self
    }

    /// One update of all parameters.
    pub(crate) fn step(&mut self, threads: usize) {
        let b = self.batch;
        let n_batches = self.data.n_rows / b;
        #[expect(clippy::cast_possible_truncation, reason = "a remainder of a small number")]
        let first = (self.steps % n_batches as u64) as usize * b;
        self.steps += 1;
        self.visible.copy_rows(b, &self.data, first);
        if self.side == Side::Contrastive {
            self.infer_hidden(threads, 0..b);
            self.sample_hidden(threads, 0);
        }
        for _ in 1..self.k {
            self.sample_visible(threads);
            self.infer_hidden(threads, b..2 * b);
            self.sample_hidden(threads, b);
        }
        self.sample_visible(threads);
        match self.side {
            Side::Persistent => {
                self.infer_hidden(threads, 0..2 * b);
                self.sample_hidden(threads, b);
            }
            Side::Contrastive => self.infer_hidden(threads, b..2 * b),
        }
        self.learn(threads);
    }

    /// Variates that nobody had yet.
    fn fresh(&mut self) -> Stream {
        self.draws += 1;
        self.stream.fork(self.draws)
    }

    fn sample_visible(&mut self, threads: usize) {
        let (rows, stream) = (self.batch..2 * self.batch, self.fresh());
        let (h, w) = (self.samples.all(), self.weights.transposed(0..self.weights.n_rows));
        self.visible.respond(threads, rows.clone(), &self.bias[0], h, w);
        self.visible.make_samples(threads, rows, stream);
    }

    fn infer_hidden(&mut self, threads: usize, rows: Range<usize>) {
        let (v, w) = (self.visible.factor(rows.clone()), self.weights.all());
        self.hidden.respond(threads, rows.clone(), &self.bias[1], v, w);
        self.hidden.make_probabilities(threads, rows);
    }

    fn sample_hidden(&mut self, threads: usize, first: usize) {
        let stream = self.fresh();
        self.samples.sample_means(threads, &self.hidden, first, stream);
    }

    fn learn(&mut self, threads: usize) {
        let b = self.batch;
        let scale = self.rate / b as f32;
        self.hidden.negate(threads, b..2 * b);
        let sums = |velocity: &mut Vec<f32>, rows: &Dense, model_sign| {
            velocity.iter_mut().for_each(|v| *v *= self.momentum / scale);
            rows.add_sums(0..b, 1.0, velocity);
            rows.add_sums(b..2 * b, model_sign, velocity);
            velocity.iter_mut().for_each(|v| *v *= scale);
        };
        let [visible, hidden] = &mut self.bias_velocity;
        sums(visible, &self.visible, -1.0);
        sums(hidden, &self.hidden, 1.0);
        for (bias, velocity) in self.bias.iter_mut().zip(&self.bias_velocity) {
            bias.iter_mut().zip(velocity).for_each(|(b, v)| *b += v);
        }
        let (v, h) = (self.visible.transposed(0..2 * b), self.hidden.all());
        self.velocity.multiply(threads, 0..self.weights.n_rows, v, h, (self.momentum, scale));
        self.weights.add(threads, &self.velocity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_yardstick_learns_what_the_data_says() {
        // Rows are all ones or all zeros, half and half: so must be what the machine draws.
        let rules = [
            (Side::Persistent, 1),
            (Side::Contrastive, 1),
            (Side::Persistent, 3),
            (Side::Contrastive, 3),
        ];
        for (rule, threads) in rules.into_iter().zip([1, 2, 2, 1]) {
            let stream = Stream::new(1);
            #[expect(clippy::cast_possible_truncation, reason = "single precision")]
            let normal = |i, j| stream.normal(Site::new(i, 0, 0), j) as f32 * 0.1;
            let data = Dense::from_fn(200, 70, |i, _| (i % 2) as f32);
            let mut rbm =
                DenseRbm::new(rule, 50, Dense::from_fn(70, 40, normal), vec![0.0; 70], data);
            rbm.rate = 0.05;
            for _ in 0..400 {
                rbm.step(threads);
            }
            // A row that mixes both kinds has 35 ± 4 ones; few chains are under way between them.
            let ones = |i: usize| rbm.visible.row(i).iter().sum::<f32>();
            let mixed = (50..100).filter(|&i| (18.0..=52.0).contains(&ones(i))).count();
            assert!(mixed <= 5, "{rule:?}: {mixed} of 50 rows mix ones and zeros");
            let all: f32 = (50..100).map(|i| rbm.visible.row(i)[0]).sum();
            assert!((10.0..40.0).contains(&all), "{rule:?}: {all} of 50 rows are ones");
        }
    }
}

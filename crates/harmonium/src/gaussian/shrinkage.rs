//! How far sample correlations are to be believed.
//!
//! $$R_\lambda = (1 - \lambda) R + \lambda I$$
//!
//! with few rows sample correlations are mostly noise, and without shrinkage they could not be inverted.
//! $\lambda$ is the one at which each row is most probable given the mean and the correlations of all the others,
//! $$\sum_i \ln N\bigl(\tfrac{n}{n-1}z_i;\, 0, R_\lambda^{(-i)}\bigr), \qquad
//!   R_\lambda^{(-i)} = G - \tfrac{\beta}{n - 1} z_i z_i^\top,\quad
//!   G = \beta R + \lambda I,\quad \beta = (1 - \lambda)\tfrac{n}{n - 1},$$
//! which takes one factor of $G$ for all rows (Hoffbeck & Landgrebe 1996; Theiler 2012): with
//! $r_i = z_i^\top G^{-1} z_i$ and $k_i = 1 - \tfrac\beta{n-1} r_i$ a row has the determinant $\det G\,k_i$ and the square
//! $(\tfrac{n}{n-1})^2\, r_i / k_i$. The squared error of Ledoit & Wolf (2004) asks for other things: it gives away directions in
//! which columns hardly vary, and these decide a likelihood.

use super::Block;
use std::collections::BTreeMap;

/// The largest and the smallest $\lambda$ that is tried.
const RANGE: (f64, f64) = (1e-6, 1.0);
/// Steps of the first look, and how often the best of them is then looked at more closely.
const STEPS: usize = 12;
const REFINEMENTS: usize = 6;

/// Standardised rows: zero where a value is missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// Row after row.
    pub(crate) rows: Vec<f64>,
    /// Which values of each row there are; nothing where all are.
    pub(crate) seen: Vec<Option<Vec<usize>>>,
    /// What each row counts.
    pub(crate) weights: Vec<f64>,
}

/// $\lambda$ for the `d` by `d` correlations `r`, estimated from rows that count as `effective` rows of
/// equal weight; `sample` are these rows or some of them.
pub(crate) fn shrinkage(r: &[f64], d: usize, effective: f64, sample: &Sample) -> f64 {
    if d < 2 || effective < 3.0 {
        return 1.0;
    }
    let groups = by_what_is_seen(sample);
    let score = |log: f64| left_out(r, d, log.exp(), effective, sample, &groups);
    let (low, high) = (RANGE.0.ln(), RANGE.1.ln());
    let mut step = (high - low) / STEPS as f64;
    let at = |k: usize| low + step * k as f64;
    let better = |a: (f64, f64), b: (f64, f64)| if b.1 > a.1 { b } else { a };
    let looked = (0..=STEPS).map(|k| (at(k), score(at(k))));
    let mut best = looked.fold((high, f64::NEG_INFINITY), better);
    for _ in 0..REFINEMENTS {
        step *= 0.5;
        for near in [best.0 - step, best.0 + step] {
            if near > low && near < high {
                best = better(best, (near, score(near)));
            }
        }
    }
    best.0.exp().min(1.0)
}

/// Rows that have the same values, by what they have.
fn by_what_is_seen(sample: &Sample) -> BTreeMap<&Option<Vec<usize>>, Vec<usize>> {
    let mut groups: BTreeMap<&Option<Vec<usize>>, Vec<usize>> = BTreeMap::new();
    for (row, seen) in sample.seen.iter().enumerate() {
        groups.entry(seen).or_default().push(row);
    }
    groups
}

/// The weighted mean of the log-density of each row given the others, without constants.
fn left_out(
    r: &[f64],
    d: usize,
    lambda: f64,
    effective: f64,
    sample: &Sample,
    groups: &BTreeMap<&Option<Vec<usize>>, Vec<usize>>,
) -> f64 {
    let beta = (1.0 - lambda) * effective / (effective - 1.0);
    let entry = |i: usize, j: usize| beta * r[i * d + j] + if i == j { lambda } else { 0.0 };
    let (mut sum, mut total) = (0.0, 0.0);
    for (seen, rows) in groups {
        let all: Vec<usize> = (0..d).collect();
        let seen = seen.as_ref().unwrap_or(&all);
        let n = seen.len();
        let matrix = seen.iter().flat_map(|&i| seen.iter().map(move |&j| entry(i, j))).collect();
        let Ok(block) = Block::new(matrix, n) else { return f64::NEG_INFINITY };
        let mut z = vec![0.0; n];
        for &row in rows {
            let values = &sample.rows[row * d..(row + 1) * d];
            z.iter_mut().zip(seen).for_each(|(z, &i)| *z = values[i]);
            block.whiten(&mut z);
            let square: f64 = z.iter().map(|u| u * u).sum();
            let left = 1.0 - beta * square / (effective - 1.0);
            if left <= 0.0 {
                return f64::NEG_INFINITY;
            }
            let far = effective / (effective - 1.0);
            let log = block.log_det() + left.ln() + far * far * square / left;
            sum -= 0.5 * sample.weights[row] * log;
            total += sample.weights[row];
        }
    }
    if total > 0.0 { sum / total } else { f64::NEG_INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harmonium_kernels::random::{Site, Stream};

    /// `n` rows of `d` columns that share one factor, standardised.
    fn sample(n: usize, d: usize, share: f64) -> (Vec<f64>, Sample) {
        let mut z = vec![0.0; n * (d + 1)];
        Stream::new(5).normals_into(Site::default(), &mut z);
        let mut rows: Vec<f64> = z
            .chunks_exact(d + 1)
            .flat_map(|row| {
                (1..=d)
                    .map(|i| share.sqrt() * row[0] + (1.0 - share).sqrt() * row[i])
                    .collect::<Vec<_>>()
            })
            .collect();
        for i in 0..d {
            let of = |rows: &[f64]| rows.iter().skip(i).step_by(d).copied().collect::<Vec<f64>>();
            let values = of(&rows);
            let mean = values.iter().sum::<f64>() / n as f64;
            let var = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
            rows.iter_mut().skip(i).step_by(d).for_each(|x| *x = (*x - mean) / var.sqrt());
        }
        let r = (0..d * d).map(|k| {
            rows.chunks_exact(d).map(|row| row[k / d] * row[k % d]).sum::<f64>() / n as f64
        });
        (r.collect(), Sample { seen: vec![None; n], weights: vec![1.0; n], rows })
    }

    /// Leaving a row out by formula is leaving it out.
    #[test]
    fn a_row_left_out_by_formula_is_a_row_left_out() {
        let (n, d, lambda) = (9, 4, 0.1);
        let (r, sample) = sample(n, d, 0.5);
        let groups = by_what_is_seen(&sample);
        let found = left_out(&r, d, lambda, n as f64, &sample, &groups);
        let mut expected = 0.0;
        for out in 0..n {
            let others = || {
                sample.rows.chunks_exact(d).enumerate().filter(|(row, _)| *row != out).map(|x| x.1)
            };
            let mean = |i: usize| others().map(|z| z[i]).sum::<f64>() / (n - 1) as f64;
            let entry = |k: usize| {
                let (a, b) = (mean(k / d), mean(k % d));
                let sum: f64 = others().map(|z| (z[k / d] - a) * (z[k % d] - b)).sum();
                let unit = f64::from(u8::from(k / d == k % d));
                (1.0 - lambda) * sum / (n - 1) as f64 + lambda * unit
            };
            let block = Block::new((0..d * d).map(entry).collect(), d).unwrap();
            let mut z: Vec<f64> = (0..d).map(|i| sample.rows[out * d + i] - mean(i)).collect();
            block.whiten(&mut z);
            let square: f64 = z.iter().map(|u| u * u).sum();
            expected -= 0.5 * (block.log_det() + square) / n as f64;
        }
        assert!((found - expected).abs() < 1e-10, "{found} is not {expected}");
    }

    #[test]
    fn noise_is_shrunk_and_correlations_of_many_rows_are_not() {
        let of = |n, d, share| {
            let (r, sample) = sample(n, d, share);
            shrinkage(&r, d, n as f64, &sample)
        };
        assert!(of(20, 10, 0.0) > 0.3, "columns that have nothing in common");
        assert!(of(400, 4, 0.8) < 0.05, "many rows of strong correlations");
        assert!(of(6, 10, 0.5) < 1.0, "fewer rows than columns");
    }

    #[test]
    fn rows_with_holes_count_by_what_they_have() {
        let (r, whole) = sample(60, 3, 0.7);
        let mut holed = whole.clone();
        for row in 0..20 {
            holed.seen[row] = Some(vec![0, 2]);
            holed.rows[3 * row + 1] = 0.0;
        }
        let (a, b) = (shrinkage(&r, 3, 60.0, &whole), shrinkage(&r, 3, 60.0, &holed));
        assert!(a < 0.2 && b < 0.2, "{a}, {b}");
    }
}

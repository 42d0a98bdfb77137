//! How well numbers order rows by what they are, tag by tag.
//!
//! Average precision is the mean, over the rows that have a tag, of the share of rows with it among all that
//! stand no lower. Rows that have the same number stand in an order that says nothing: they count by
//! expectation over all their orders, for a run of $m$ equal numbers with $r$ hits, $h$ hits and $b$ rows before it:
//!
//! $$\frac1R \sum_\text{runs} \frac rm \sum_{i=1}^m \frac{h + 1 + (i - 1)\frac{r - 1}{m - 1}}{b + i}$$

use serde::Serialize;

/// Rows that [`Ranking::precision_at_50`] looks at.
const FIRST: usize = 50;

/// How well numbers order rows and tags.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ranking {
    /// Mean over tags of the average precision with which each orders the rows.
    pub by_tag: f64,
    /// Mean over rows of the average precision with which each orders its tags.
    pub by_row: f64,
    /// Mean over tags of the share of hits among the first 50 rows.
    pub precision_at_50: f64,
    /// Tags that a row has, over which means are taken.
    pub n_tags: usize,
}

impl Ranking {
    /// Compares numbers with targets, row by row, `n_tags` of each; a target from one half on is a hit.
    ///
    /// # Panics
    ///
    /// If they are not as many, or do not fill whole rows.
    pub fn new(values: &[f64], targets: &[f32], n_tags: usize) -> Self {
        assert!(values.len() == targets.len() && values.len().is_multiple_of(n_tags.max(1)));
        let n_rows = values.len() / n_tags.max(1);
        let at = |row: usize, tag: usize| {
            let k = row * n_tags + tag;
            (values[k], targets[k] >= 0.5)
        };
        let tags = (0..n_tags).map(|tag| sorted((0..n_rows).map(|row| at(row, tag)).collect()));
        let tags: Vec<Vec<Run>> = tags.filter(|runs| runs.iter().any(|r| r.hits > 0)).collect();
        let rows = (0..n_rows).map(|row| sorted((0..n_tags).map(|tag| at(row, tag)).collect()));
        let rows: Vec<f64> = rows
            .filter(|runs| runs.iter().any(|r| r.hits > 0))
            .map(|r| average_precision(&r))
            .collect();
        let mean = |xs: &[f64]| xs.iter().sum::<f64>() / xs.len().max(1) as f64;
        let of_tags: Vec<f64> = tags.iter().map(|runs| average_precision(runs)).collect();
        let first: Vec<f64> = tags.iter().map(|runs| precision_at(runs, FIRST)).collect();
        let n_tags = tags.len();
        Self { by_tag: mean(&of_tags), by_row: mean(&rows), precision_at_50: mean(&first), n_tags }
    }
}

/// Items of one number.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    n: usize,
    hits: usize,
}

/// Runs of equal numbers, the largest first.
fn sorted(mut items: Vec<(f64, bool)>) -> Vec<Run> {
    items.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut runs: Vec<(f64, Run)> = Vec::new();
    for (value, hit) in items {
        if runs.last().is_none_or(|(last, _)| *last != value) {
            runs.push((value, Run::default()));
        }
        if let Some((_, run)) = runs.last_mut() {
            run.n += 1;
            run.hits += usize::from(hit);
        }
    }
    runs.into_iter().map(|(_, run)| run).collect()
}

fn average_precision(runs: &[Run]) -> f64 {
    let (mut before, mut hits, mut sum) = (0.0, 0.0, 0.0);
    for run in runs {
        let (m, r) = (run.n as f64, run.hits as f64);
        let others = if run.n > 1 { (r - 1.0) / (m - 1.0) } else { 0.0 };
        for i in (0..run.n).filter(|_| run.hits > 0) {
            sum += r / m * (hits + 1.0 + i as f64 * others) / (before + i as f64 + 1.0);
        }
        (before, hits) = (before + m, hits + r);
    }
    if hits > 0.0 { sum / hits } else { 0.0 }
}

fn precision_at(runs: &[Run], k: usize) -> f64 {
    let (mut left, mut hits) = (k as f64, 0.0);
    for run in runs {
        let taken = left.min(run.n as f64);
        hits += taken * run.hits as f64 / run.n as f64;
        left -= taken;
    }
    hits / k as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All orders of items that agree with their numbers, by brute force.
    fn expected(items: &[(f64, bool)], score: impl Fn(&[bool]) -> f64) -> f64 {
        fn orders(rest: &[(f64, bool)], so_far: &mut Vec<bool>, all: &mut Vec<Vec<bool>>) {
            let Some(most) = rest.iter().map(|i| i.0).reduce(f64::max) else {
                all.push(so_far.clone());
                return;
            };
            for (k, item) in rest.iter().enumerate().filter(|(_, item)| item.0 == most) {
                let mut left = rest.to_vec();
                left.remove(k);
                so_far.push(item.1);
                orders(&left, so_far, all);
                so_far.pop();
            }
        }
        let mut all = Vec::new();
        orders(items, &mut Vec::new(), &mut all);
        all.iter().map(|order| score(order)).sum::<f64>() / all.len() as f64
    }

    fn plain_average_precision(order: &[bool]) -> f64 {
        let (mut hits, mut sum) = (0.0, 0.0);
        for (i, hit) in order.iter().enumerate().filter(|(_, hit)| **hit) {
            assert!(hit);
            hits += 1.0;
            sum += hits / (i as f64 + 1.0);
        }
        sum / hits
    }

    #[test]
    fn ties_count_by_expectation() {
        let cases: [&[(f64, bool)]; 4] = [
            &[(0.9, true), (0.8, false), (0.7, true)],
            &[(0.5, true), (0.5, false), (0.5, true), (0.1, false), (0.1, true)],
            &[(0.3, false), (0.3, true), (0.3, false), (0.3, false), (0.3, true), (0.3, true)],
            &[(0.1, true), (0.9, false), (0.9, false), (0.9, true), (0.1, false), (0.1, false)],
        ];
        for items in cases {
            let runs = sorted(items.to_vec());
            let found = average_precision(&runs);
            assert!((found - expected(items, plain_average_precision)).abs() < 1e-12, "{items:?}");
            for k in 1..=items.len() {
                let first =
                    |order: &[bool]| order[..k].iter().filter(|h| **h).count() as f64 / k as f64;
                assert!((precision_at(&runs, k) - expected(items, first)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn tags_that_no_row_has_do_not_count() {
        let found = Ranking::new(&[0.9, 0.1, 0.2, 0.8], &[1.0, 0.0, 0.0, 0.0], 2);
        assert_eq!((found.by_tag, found.by_row, found.n_tags), (1.0, 1.0, 1));
        assert!((found.precision_at_50 - 1.0 / 50.0).abs() < 1e-12);
    }
}

//! Tables that nodes leave, relative to their largest entry.
//!
//! While all factors of a bucket together stay above the smallest number there is, they are multiplied as
//! they are, else their logarithms are added: nothing is lost by underflow.

use super::bucket::Form;
use rayon::prelude::*;

/// Products of factors that differ by less than this, as a logarithm, do not underflow.
pub(super) const PLAIN_RANGE: f64 = 690.0;
/// Entries of a table that are looked at together.
const TOGETHER: usize = 1 << 14;

/// A function of the nodes that a node sees, or of the node and some of them.
pub(super) struct Table {
    pub(super) form: Form,
    pub(super) values: Vec<f64>,
    /// Logarithm of what the values are to be multiplied by.
    pub(super) log_scale: f64,
    /// Logarithm of the largest value over the smallest.
    pub(super) log_range: f64,
}

/// $e^{f(s) + \sum_v g_v(s, x_v)}$ for each state $s$ and all $x$, the states of the last node running
/// fastest.
pub(super) fn product(fields: &[f64], pairs: &[(usize, Vec<f64>)], n_states: &[usize]) -> Table {
    let ends = |logs: &[f64]| {
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
        (most, most - least)
    };
    let all = || std::iter::once(fields).chain(pairs.iter().map(|p| p.1.as_slice()));
    let log_range: f64 = all().map(|logs| ends(logs).1).sum();
    let log_scale: f64 = all().map(|logs| ends(logs).0).sum();
    let form = if log_range <= PLAIN_RANGE { Form::Plain } else { Form::Logs };
    let relative = |logs: &[f64]| -> Vec<f64> {
        let most = ends(logs).0;
        let value = |l: &f64| if form == Form::Plain { (l - most).exp() } else { l - most };
        logs.iter().map(value).collect()
    };
    let factors: Vec<Vec<f64>> = pairs.iter().map(|p| relative(&p.1)).collect();
    let mut values = Vec::new();
    for (s, &field) in relative(fields).iter().enumerate() {
        let mut of_state = vec![field];
        for ((node, _), factors) in pairs.iter().zip(&factors).rev() {
            let m = n_states[*node];
            let mut more = Vec::with_capacity(m * of_state.len());
            for factor in &factors[s * m..(s + 1) * m] {
                match form {
                    Form::Plain => more.extend(of_state.iter().map(|v| v * factor)),
                    Form::Logs => more.extend(of_state.iter().map(|v| v + factor)),
                }
            }
            of_state = more;
        }
        values.extend(of_state);
    }
    Table { form, values, log_scale, log_range }
}

impl Table {
    /// The same relative to its largest value, and as plain numbers where these can hold it.
    pub(super) fn relative(form: Form, mut values: Vec<f64>, log_scale: f64) -> Self {
        let ends = |part: &[f64]| {
            part.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &v| {
                (f64::min(least, v), f64::max(most, v))
            })
        };
        let join = |a: (f64, f64), b: (f64, f64)| (f64::min(a.0, b.0), f64::max(a.1, b.1));
        let (least, most) = if values.len() <= TOGETHER {
            ends(&values)
        } else {
            let none = || (f64::INFINITY, f64::NEG_INFINITY);
            values.par_chunks(TOGETHER).map(ends).reduce(none, join)
        };
        let (log_most, log_range) = match form {
            Form::Plain => (most.ln(), (most / least).ln()),
            Form::Logs => (most, most - least),
        };
        let plain = form == Form::Plain || log_range <= PLAIN_RANGE;
        let change = |part: &mut [f64]| match (form, plain) {
            (Form::Plain, _) => part.iter_mut().for_each(|v| *v /= most),
            (Form::Logs, true) => part.iter_mut().for_each(|v| *v = (*v - most).exp()),
            (Form::Logs, false) => part.iter_mut().for_each(|v| *v -= most),
        };
        if values.len() <= TOGETHER {
            change(&mut values);
        } else {
            values.par_chunks_mut(TOGETHER).for_each(change);
        }
        let form = if plain { Form::Plain } else { Form::Logs };
        Self { form, values, log_scale: log_scale + log_most, log_range }
    }

    /// The logarithm of an entry, without the scale.
    pub(super) fn log(&self, at: usize) -> f64 {
        match self.form {
            Form::Plain => self.values[at].ln(),
            Form::Logs => self.values[at],
        }
    }

    pub(super) fn logs(&self) -> Vec<f64> {
        self.values.par_iter().with_min_len(TOGETHER).map(|v| v.ln()).collect()
    }
}

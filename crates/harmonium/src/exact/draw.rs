//! Independent samples from the distribution itself.
//!
//! The enumerated units are drawn by inverting the cumulative sum over their states, the others
//! from their conditionals: no chain, so nothing to forget.

use super::enumerate::Position;
use super::problem::{Entry, Problem};
use crate::error::Error;
use crate::machine::{Machine, State};
use crate::units::Draw;
use harmonium_kernels::random::{Site, Stream};

impl Problem {
    /// Draws all free units of these rows of a state of `machine`; what is drawn depends on the row.
    pub(super) fn draw(
        &self,
        machine: &Machine,
        rows: &[usize],
        stream: Stream,
        x: &mut State,
    ) -> Result<(), Error> {
        let choice = |&row: &usize| stream.fork(0).uniform(Site::new(row, 0, 0), 0);
        let choices: Vec<f64> = rows.iter().map(choice).collect();
        for (&row, position) in rows.iter().zip(self.positions(&choices)) {
            let summed = self.draw_summed(&position, row, stream.fork(1));
            for l in machine.layer_ids() {
                let value = |entry: &Entry| match *entry {
                    Entry::Clamped(value) => value,
                    Entry::Enumerated(i) => position.values[i],
                    Entry::Summed(i) => summed[i],
                };
                let values: Vec<f64> = self.entries[l.0].iter().map(value).collect();
                x.set_row(l, row, &values)?;
            }
        }
        Ok(())
    }

    /// Samples of the summed entries given the enumerated ones.
    fn draw_summed(&self, position: &Position, row: usize, stream: Stream) -> Vec<f64> {
        let mut values = position.theta.clone();
        for (lane, run) in self.runs.iter().enumerate().filter(|(_, r)| r.units.is_finite()) {
            let draw = Draw { stream, site: Site::new(row, 0, lane), start: 0 };
            run.units.sample_in_place(&mut values[run.entries.clone()], run.own(), draw);
        }
        let start = values.len() - self.gaussian.len();
        let mut normals = vec![0.0; self.gaussian.len()];
        stream.normals_into(Site::new(row, 0, self.runs.len()), &mut normals);
        values[start..].iter_mut().zip(&normals).for_each(|(u, z)| *u += z);
        self.gaussian.colour(&mut values[start..]);
        values
    }
}

//! `harmonium complete`: fills what is missing with its probability given the rest.
//!
//! The observed units are held while Gibbs sampling runs; the means of the missing ones are
//! averaged over the second half of the sweeps (Rao–Blackwell: means, not samples, are averaged).

use super::belief;
use super::sample::visible_rows;
use crate::args::{Common, CompleteArgs};
use crate::failure::Failure;
use crate::output::{self, Kind, Rows};
use crate::render::progress;
use crate::{load, render};
use harmonium::machine::{Base, Engine, LayerId, Machine, Precision, Role, State};
use harmonium::random::Stream;
use harmonium::run::Stored;
use harmonium::sampling::{Clamp, conditional_means, gibbs, independent};
use harmonium::schema::Schema;
use harmonium_data::{Dataset, Options, open};
use ndarray::{Array2, ArrayView2};
use serde_json::json;

/// Which cells of a table are observed.
pub(super) type Mask = Array2<bool>;

/// Samples with holes: the observed values and where they are.
pub(super) struct Observed {
    /// Values of each visible layer, 0 where missing.
    layers: Vec<(LayerId, Vec<f64>)>,
    clamp: Clamp,
    n_rows: usize,
    n_missing: usize,
}

impl Observed {
    /// Every cell that the mask or a NaN does not take away.
    pub(super) fn new(machine: &Machine, data: &Dataset, mask: &Mask) -> Result<Self, Failure> {
        let visible = machine.visible_layers();
        let schema = Schema::of(machine, data)?;
        let columns = |l: &LayerId| schema.layer(&machine.layer(*l).name).map(|f| &f.encoding);
        let given: Vec<LayerId> = visible
            .iter()
            .copied()
            .filter(|l| columns(l).is_some_and(|e| !e.columns().is_empty()))
            .collect();
        let n_entries: usize = given.iter().map(|&l| machine.layer(l).len()).sum();
        if data.n_columns() != n_entries {
            return Err(Failure::new(
                format!(
                    "the data has {} columns, the visible layers ({}) take {n_entries}",
                    data.n_columns(),
                    load::visible_names(machine)
                ),
                "choose columns with `--columns A..B`; categories must be one-hot here",
            ));
        }
        let n_rows = data.n_rows();
        let mut observed = Self { layers: Vec::new(), clamp: Clamp::none(), n_rows, n_missing: 0 };
        let rows = data.to_array(Stream::new(0)).into_raw_vec_and_offset().0;
        let mut start = 0;
        for l in visible {
            let (len, group) = (machine.layer(l).len(), machine.layer(l).units.group());
            let mut held = Array2::default((n_rows, machine.layer(l).n_units()));
            let mut values = vec![0.0; n_rows * len];
            if !given.contains(&l) {
                // A layer the data does not have is missing as a whole.
                observed.n_missing += n_rows * (len / group);
                observed.layers.push((l, values));
                observed.clamp = observed.clamp.with_mask(l, held.view());
                continue;
            }
            for row in 0..n_rows {
                let cells = &rows[row * n_entries + start..row * n_entries + start + len];
                for unit in 0..len / group {
                    let range = unit * group..(unit + 1) * group;
                    let seen = range.clone().all(|i| mask[[row, start + i]] && !cells[i].is_nan());
                    held[[row, unit]] = seen;
                    observed.n_missing += usize::from(!seen);
                    if seen {
                        values[row * len + range.start..row * len + range.end]
                            .copy_from_slice(&cells[range]);
                    }
                }
            }
            check_values(machine, l, &values, held.view())?;
            observed.layers.push((l, values));
            observed.clamp = observed.clamp.with_mask(l, held.view());
            start += len;
        }
        Ok(observed)
    }

    /// Chains that start at the observed values, the rest drawn from the biases.
    pub(super) fn start(
        &self,
        machine: &Machine,
        stream: Stream,
    ) -> Result<(State, Clamp), Failure> {
        let base = Base::of_biases(machine);
        let mut x = independent(machine, &base, self.n_rows, stream.fork(0))?;
        for (l, values) in &self.layers {
            let (len, group) = (machine.layer(*l).len(), machine.layer(*l).units.group());
            for row in 0..self.n_rows {
                let mut cells = x.row(*l, row).to_vec();
                for (i, cell) in cells.iter_mut().enumerate() {
                    if self.clamp.holds(*l, row, i / group) {
                        *cell = values[row * len + i];
                    }
                }
                x.set_row(*l, row, &cells)?;
            }
        }
        Ok((x, self.clamp.clone()))
    }
}

/// Whether every observed value is one its units can take.
fn check_values(
    machine: &Machine,
    l: LayerId,
    values: &[f64],
    held: ArrayView2<'_, bool>,
) -> Result<(), Failure> {
    let layer = machine.layer(l);
    let (len, group) = (layer.len(), layer.units.group());
    let Some(possible) = layer.units.configurations() else { return Ok(()) };
    for (k, unit) in values.chunks_exact(group).enumerate() {
        let (row, u) = (k * group / len, k % (len / group));
        if held[[row, u]] && !possible.0.iter().any(|c| c == unit) {
            return Err(Failure::new(
                format!(
                    "{} units of layer `{}` cannot hold {:?} (row {row}, unit {u})",
                    layer.units.name(),
                    layer.name,
                    unit
                ),
                "binarise the data as the model was trained, e.g. `--binarize 0.5`",
            ));
        }
    }
    Ok(())
}

/// Opens a mask: 1 is observed; one row holds for all.
pub(super) fn mask(path: &str, data: &Dataset) -> Result<Mask, Failure> {
    let table = open(path, &Options::default())?.table;
    let (n, m) = (table.n_rows(), table.n_columns());
    if m != data.n_columns() || (n != data.n_rows() && n != 1) {
        return Err(Failure::new(
            format!("the mask is {n}x{m}, the data {}x{}", data.n_rows(), data.n_columns()),
            "a mask has a column per column of the data, and a row per row, or one row for all",
        ));
    }
    for row in 0..n {
        if let Some(c) = (0..m).find(|&c| ![0.0, 1.0].contains(&table.at(row, c))) {
            return Err(Failure::new(
                format!("the mask holds {} (row {row}, column {c})", table.at(row, c)),
                "a mask holds 1 for observed and 0 for missing",
            ));
        }
    }
    let observed = |(row, c)| table.at(row % n, c) == 1.0;
    Ok(Mask::from_shape_fn((data.n_rows(), m), observed))
}

/// Everything is observed but what is NaN.
fn no_mask(data: &Dataset) -> Mask {
    Mask::from_elem((data.n_rows(), data.n_columns()), true)
}

pub(crate) fn run(args: &CompleteArgs, common: &Common) -> Result<(), Failure> {
    Kind::of(&args.output.out)?;
    output::check_free(&args.output.out, args.output.force)?;
    if args.sweeps == 0 {
        return Err(Failure::new(
            "`--sweeps 0` averages over nothing",
            "ask for at least one sweep",
        ));
    }
    let (stored, remembered) = load::stored(&args.model)?;
    let model = match stored {
        Stored::Machine(model) => model,
        Stored::Dbn(model) => return belief::complete(args, common, &model, &remembered),
    };
    let machine = &model.machine;
    let mut reading = args.reading.or(&remembered.reading);
    // Missing cells cannot be drawn or thresholded: bits are left as they are.
    if args.mask.is_none() && args.reading.binarize.is_none() {
        reading.binarize = Some("none".into());
    }
    let input = load::data(&args.data, &reading)?;
    let mask = match &args.mask {
        Some(path) => mask(path, &input.dataset)?,
        None => no_mask(&input.dataset),
    };
    let observed = Observed::new(machine, &input.dataset, &mask)?;
    if observed.n_missing == 0 {
        load::note_on_stderr("nothing is missing: the data is written as it is");
    }
    let filled = fill(args, common, machine, &observed)?;
    let rows: Rows = visible_rows(machine, &filled, &remembered);
    output::write(&args.output.out, &rows, args.output.force)?;
    if common.json {
        return render::json(&json!({
            "out": args.output.out,
            "n": rows.n_rows(),
            "missing": observed.n_missing,
            "sweeps": args.sweeps,
        }));
    }
    render::result(&format!(
        "{} missing units of {} rows filled with their probabilities in `{}`",
        observed.n_missing,
        rows.n_rows(),
        args.output.out
    ))
}

/// Means of the missing units, averaged over the chains' second half.
fn fill(
    args: &CompleteArgs,
    common: &Common,
    machine: &Machine,
    observed: &Observed,
) -> Result<State, Failure> {
    let stream = Stream::new(common.seed());
    let (mut x, clamp) = observed.start(machine, stream)?;
    let engine = Engine::with_precision(machine, common.precision(Precision::F32));
    let visible: Vec<LayerId> =
        machine.layer_ids().filter(|&l| machine.layer(l).role == Role::Visible).collect();
    let mut sums: Vec<Vec<f64>> = visible.iter().map(|&l| vec![0.0; x.layer(l).len()]).collect();
    let bar = progress::bar(2 * args.sweeps as u64, "completing", common);
    for sweep in 0..2 * args.sweeps {
        gibbs(machine, &engine, &clamp, &mut x, 1, stream.fork(3).fork(sweep as u64))?;
        bar.inc(1);
        if sweep >= args.sweeps {
            let means = conditional_means(machine, &engine, &clamp, &x, &visible)?;
            for (sum, &l) in sums.iter_mut().zip(&visible) {
                sum.iter_mut().zip(means.layer(l)).for_each(|(s, m)| *s += m);
            }
        }
    }
    bar.finish_and_clear();
    for (sum, &l) in sums.iter().zip(&visible) {
        let len = machine.layer(l).len();
        for row in 0..x.n_rows() {
            let mean = |i: usize| sum[row * len + i] / args.sweeps as f64;
            let group = machine.layer(l).units.group();
            let held = |i: usize| clamp.holds(l, row, i / group);
            let cells: Vec<f64> =
                (0..len).map(|i| if held(i) { x.row(l, row)[i] } else { mean(i) }).collect();
            x.set_row(l, row, &cells)?;
        }
    }
    Ok(x)
}

//! `harmonium sample`: draws from a model, free or with part of each sample given.

use super::belief;
use super::complete::{Observed, mask};
use crate::args::{Common, SampleArgs};
use crate::failure::Failure;
use crate::load::Remembered;
use crate::output::{self, Kind, Rows};
use crate::render::progress;
use crate::{load, render};
use harmonium::engine::{Arithmetic, Engine};
use harmonium::machine::{Machine, Role, State};
use harmonium::random::Stream;
use harmonium::run::Stored;
use harmonium::sampling::{Chains, Clamp, MeanField, gibbs, infer};
use serde_json::json;

/// Sweeps between two looks at the progress.
const PIECE: usize = 50;

pub(crate) fn run(args: &SampleArgs, common: &Common) -> Result<(), Failure> {
    let kind = Kind::of(&args.output.out)?;
    output::check_free(&args.output.out, args.output.force)?;
    if args.n == 0 {
        return Err(Failure::new("`--n 0` asks for nothing", "ask for at least one sample"));
    }
    let (stored, remembered) = load::stored(&args.model)?;
    let model = match stored {
        Stored::Machine(model) => model,
        Stored::Dbn(model) => return belief::sample(args, common, &model, &remembered),
    };
    if args.class.is_some() {
        return Err(Failure::new(
            "`--class` draws from deep belief networks",
            "for other models give the label with `--given` and `--mask`",
        ));
    }
    let machine = &model.machine;
    let stream = Stream::new(common.seed());
    let (mut x, clamp) = start(args, machine, &remembered, stream)?;
    let engine = Engine::with_arithmetic(machine, common.precision(Arithmetic::I16));
    let bar = progress::bar(args.sweeps as u64, "sampling", common);
    for done in (0..args.sweeps).step_by(PIECE) {
        let n = PIECE.min(args.sweeps - done);
        gibbs(machine, &engine, &clamp, &mut x, n, stream.fork(2).fork(done as u64))?;
        bar.inc(n as u64);
    }
    bar.finish_and_clear();
    // A picture of probabilities is easier to read than one of drawn bits; but where visible units
    // see each other, only what was drawn shows how.
    let visible = machine.visible_layers();
    let lateral = visible.iter().any(|&l| visible.iter().any(|&m| machine.coupled(l, m)));
    if args.means || (kind == Kind::Png && !lateral) {
        x = visible_means(machine, &engine, &clamp, x)?;
    }
    let rows = visible_rows(machine, &x, &remembered);
    output::write(&args.output.out, &rows, args.output.force)?;
    if common.json {
        return render::json(
            &json!({ "out": args.output.out, "n": rows.n_rows(), "sweeps": args.sweeps }),
        );
    }
    render::result(&format!(
        "{} samples after {} sweeps in `{}`",
        rows.n_rows(),
        args.sweeps,
        args.output.out
    ))
}

/// Free chains, or one chain per given row with its observed part held.
fn start(
    args: &SampleArgs,
    machine: &Machine,
    remembered: &Remembered,
    stream: Stream,
) -> Result<(State, Clamp), Failure> {
    let (Some(given), Some(path)) = (&args.given, &args.mask) else {
        let chains = Chains::new(machine, args.n, stream.fork(0))?;
        return Ok((chains.state().clone(), Clamp::none()));
    };
    let input = load::data_for(given, &args.reading, remembered)?;
    let observed = mask(path, &input.dataset)?;
    Observed::new(machine, &input.dataset, &observed)?.start(machine, stream)
}

/// The means of the visible units given the hidden ones.
pub(super) fn visible_means(
    machine: &Machine,
    engine: &Engine,
    clamp: &Clamp,
    mut x: State,
) -> Result<State, Failure> {
    let hidden = machine.layer_ids().filter(|&l| machine.layer(l).role == Role::Hidden);
    let free = machine.visible_layers().iter().all(|&l| clamp.frees_layer(l));
    let held = if free { Clamp::layers(hidden) } else { clamp.clone() };
    if free {
        infer(machine, engine, &held, &mut x, MeanField::default())?;
    }
    Ok(x)
}

/// The visible layers side by side.
pub(super) fn visible_rows(machine: &Machine, x: &State, remembered: &Remembered) -> Rows {
    let visible = machine.visible_layers();
    let n_columns = visible.iter().map(|&l| machine.layer(l).len()).sum();
    let mut values = Vec::with_capacity(x.n_rows() * n_columns);
    for row in 0..x.n_rows() {
        visible.iter().for_each(|&l| values.extend_from_slice(x.row(l, row)));
    }
    Rows { values, n_columns, image: remembered.image(n_columns) }
}

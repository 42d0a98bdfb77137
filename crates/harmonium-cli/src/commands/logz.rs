//! `harmonium logz`: the logarithm of the partition function, with its interval.

use crate::args::{AnnealingArgs, Common, LogzArgs};
use crate::failure::Failure;
use crate::load::Remembered;
use crate::render::progress;
use crate::{load, render};
use harmonium::engine::Arithmetic;
use harmonium::evaluation::log_partition::{
    Bracket, LogPartition, Method, Settings, Starts, choose, log_partition,
};
use harmonium::machine::Machine;
use serde_json::{Value, json};

pub(crate) fn run(args: &LogzArgs, common: &Common) -> Result<(), Failure> {
    let (model, remembered) = load::model(&args.model)?;
    let machine = &model.machine;
    let method = match args.method.as_str() {
        "exact" => Method::Exact,
        "ais" => Method::Ais,
        "sandwich" => Method::Sandwich,
        "bar" => Method::Bar,
        _ => choose(machine)?,
    };
    let found = find(machine, method, &args.annealing, &remembered, common)?;
    if common.json {
        return render::json(&as_json(&found)?);
    }
    render::result(&describe(&found, args.annealing.width))
}

/// Searches for ln Z and shows how far it is.
pub(super) fn find(
    machine: &Machine,
    method: Method,
    annealing: &AnnealingArgs,
    remembered: &Remembered,
    common: &Common,
) -> Result<LogPartition, Failure> {
    let settings = Settings {
        method: Some(method),
        betas: annealing.betas,
        chains: annealing.chains,
        width: annealing.width,
        means: means_for(machine, remembered),
        seed: common.seed(),
        precision: Arithmetic::I16,
        ..Settings::default()
    };
    let bar = progress::bar(0, "ln Z", common);
    let found = log_partition(machine, &settings, &mut |done, total| {
        if bar.length() != Some(total) {
            bar.reset();
            bar.set_length(total);
        }
        bar.set_position(done);
    });
    bar.finish_and_clear();
    Ok(found?)
}

/// The training data's means, if the model remembers one for each visible entry.
pub(super) fn means_for(machine: &Machine, remembered: &Remembered) -> Option<Vec<f64>> {
    let entries: usize = machine.visible_layers().iter().map(|&l| machine.layer(l).len()).sum();
    let means = &remembered.means;
    (means.len() == entries && means.iter().all(|m| m.is_finite())).then(|| means.clone())
}

fn as_json(found: &LogPartition) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(found)
        .map_err(|e| Failure::new(format!("cannot write the result: {e}"), "report this"))?;
    if let Some(map) = value.as_object_mut() {
        map.retain(|_, v| !v.is_null());
        map.insert("width".into(), json!(found.width()));
    }
    Ok(value)
}

/// The result in words.
pub(super) fn describe(found: &LogPartition, asked: Option<f64>) -> String {
    let LogPartition { log_z, std_error, lower, upper, chains, betas, .. } = found;
    let work = match found.method {
        Method::Exact => return format!("ln Z = {log_z:.6} (exact)"),
        Method::Ais => format!("annealing, {chains} chains over {betas} temperatures"),
        Method::Sandwich => {
            format!("annealing from both ends, {chains} chains over {betas} temperatures")
        }
        Method::Bar => format!("parallel tempering, {chains} ladders of {betas} rungs"),
    };
    let kind = match (found.bracket, found.starts) {
        (Bracket::Bound, _) => "both ends are bounds, 97.5 % each",
        (Bracket::Heuristic, Some(Starts::Tempered)) => {
            "the lower end is a bound, the upper one as good as the tempered chains it starts from"
        }
        (Bracket::Heuristic, _) if found.method == Method::Ais => {
            "the lower end is a bound, the upper one as good as the chains mixed"
        }
        (Bracket::Heuristic, _) => "as good as the chains mixed",
    };
    let mut lines = vec![
        format!("ln Z = {log_z:.4} ± {std_error:.4} nats ({work})"),
        format!("between {lower:.4} and {upper:.4}: {kind}"),
    ];
    if let Some(n) = found.effective_samples {
        lines.push(format!("the weights count as {n:.1} of {chains} chains"));
    }
    if let Some(swaps) = found.least_swaps {
        lines.push(format!("at least {:.0} % of swaps accepted", 100.0 * swaps));
    }
    if let (Some(false), Some(asked)) = (found.width_reached, asked) {
        let (width, more) = (found.width(), found.width() - asked);
        lines.push(format!(
            "{width:.4} nats wide: {more:.4} more than asked for, and the work ran out"
        ));
    }
    lines.join("\n  ")
}

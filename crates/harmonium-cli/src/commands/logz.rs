//! `harmonium logz`: the logarithm of the partition function, with its interval.

use crate::args::{AnnealingArgs, Common, LogzArgs};
use crate::failure::Failure;
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::evaluation::log_partition::{Bracket, LogPartition, Method, Settings, Starts};

pub(crate) fn run(args: &LogzArgs, common: &Common) -> Result<(), Failure> {
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    let method = match args.method.as_str() {
        "exact" => Some(Method::Exact),
        "ais" => Some(Method::Ais),
        "sandwich" => Some(Method::Sandwich),
        "bar" => Some(Method::Bar),
        _ => None,
    };
    let settings = Settings { method, ..settings(&args.annealing, common) };
    let found = model.log_partition(&settings, &mut terminal)?;
    drop(terminal);
    warn(&found);
    if common.json {
        return render::json(&found.to_json());
    }
    render::result(&describe(&found, args.annealing.width))
}

/// How much work goes into ln Z.
pub(super) fn settings(annealing: &AnnealingArgs, common: &Common) -> Settings {
    Settings {
        betas: annealing.betas,
        chains: annealing.chains,
        width: annealing.width,
        seed: common.seed(),
        ..Settings::default()
    }
}

/// Says on stderr why an interval is not settled, and what would help.
pub(super) fn warn(found: &LogPartition) {
    if !found.is_unsettled() {
        return;
    }
    let why: Vec<String> = found.doubts.iter().map(ToString::to_string).collect();
    let LogPartition { chains, betas, .. } = found;
    let more = match found.method {
        Method::Bar => format!(
            "--width {:.1} doubles the work up to seven times; --method sandwich bounds from below",
            0.5 * found.width()
        ),
        _ => format!("try --betas {} --chains {}, or --method bar", 4 * betas, 2 * chains),
    };
    render::aside(&format!(
        "warning: ln Z is unsettled, and its interval may miss: {}\nhint: {more}",
        why.join("; ")
    ));
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
        (Bracket::Unsettled, _) => {
            "unsettled: widened to hold all that the chains said, and may still miss"
        }
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
    if let (Some(trips), Method::Bar) = (found.round_trips, found.method) {
        lines.push(format!("replicas went through their ladder and back {trips} times"));
    }
    if let (Some(false), Some(asked)) = (found.width_reached, asked) {
        let (width, more) = (found.width(), found.width() - asked);
        lines.push(format!(
            "{width:.4} nats wide: {more:.4} more than asked for, and the work ran out"
        ));
    }
    lines.join("\n  ")
}

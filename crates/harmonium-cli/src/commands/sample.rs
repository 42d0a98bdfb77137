//! `harmonium sample`: draws from a model, free or with part of each sample given.

use crate::args::{Common, SampleArgs};
use crate::failure::Failure;
use crate::load::Labelling;
use crate::output::{self, Kind};
use crate::render::progress::Terminal;
use crate::{load, render};
use harmonium::evaluation::verdict::Verdict;
use harmonium::model::{Drawing, Drawn, Found, Sampling, Show};
use serde_json::json;

pub(crate) fn run(args: &SampleArgs, common: &Common) -> Result<(), Failure> {
    Kind::of(&args.output.out)?;
    output::check_free(&args.output.out, args.output.force)?;
    if args.n == 0 {
        return Err(Failure::new("`--n 0` asks for nothing", "ask for at least one sample"));
    }
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    let rows = if args.given.is_empty() && args.known.known.is_empty() {
        None
    } else {
        let asked = load::Asked {
            data: None,
            given: &args.given,
            reading: &args.reading,
            labelling: Labelling::AsRead,
            labels: None,
            mask: args.mask.as_deref(),
            known: &args.known,
        };
        Some(load::rows(&model, &asked, &mut terminal)?)
    };
    let drawing = Drawing {
        // One sample for each row that is given.
        n: if args.given.is_empty() { args.n } else { 1 },
        method: method(args)?,
        sweeps: args.sweeps,
        seed: common.seed(),
        show: if args.means { Show::Means } else { Show::Values },
        arithmetic: common.arithmetic(),
    };
    let given = match (&rows, &args.class) {
        (Some(rows), _) => model.given(&rows.data, None)?,
        (None, Some(name)) => model.of_class(name)?,
        (None, None) => model.freely(),
    };
    let drawn = given.draw(&drawing, &mut terminal)?;
    match rows.filter(|_| !args.given.is_empty()) {
        _ if args.of.is_some() => {
            let name = args.of.as_deref().unwrap_or_default();
            output::write_modality(&args.output, &model, (name, args.top), &drawn.values)?;
        }
        Some(rows) => output::write_filled(&args.output, &model, &rows, &drawn.values)?,
        None if args.means => output::write_means(&args.output, &model, &drawn.values)?,
        None => output::write_samples(&args.output, &model, &drawn.values)?,
    }
    let n = drawn.values.nrows();
    if let Some(text) = drawn.warning() {
        render::warn(&format!("{text}; {}", remedy(&drawn)));
    }
    if common.json {
        let mut value = drawn.to_json();
        value["out"] = json!(args.output.out);
        value["class"] = json!(args.class);
        return render::json(&value);
    }
    render::result(&format!("{n} samples {} in `{}`", how(&drawn), args.output.out))
}

/// The method that was asked for.
fn method(args: &SampleArgs) -> Result<Sampling, Failure> {
    Ok(match args.method.as_str() {
        "exact" if args.sweeps.is_some() => {
            return Err(Failure::new(
                "`--method exact` makes no sweeps",
                "leave out `--sweeps`, or ask for `--method gibbs`",
            ));
        }
        "exact" => Sampling::Exact,
        "gibbs" => Sampling::Gibbs,
        "tempered" => Sampling::Tempered,
        _ => Sampling::Auto,
    })
}

/// How samples were found, in words.
fn how(drawn: &Drawn) -> String {
    let sweeps = drawn.sweeps;
    let way = match drawn.method {
        Found::Exact => return "drawn exactly".into(),
        Found::Gibbs => format!("after {sweeps} sweeps"),
        Found::Cluster => format!("after {sweeps} sweeps with cluster moves"),
        Found::Tempered => format!("after {sweeps} rounds of tempering"),
        other => format!("by {}", other.name()),
    };
    let worth = drawn.trust.effective_samples.map_or(String::new(), |n| format!(", worth {n:.0}"));
    format!("{way} ({}{worth})", drawn.trust.verdict)
}

/// The flag that would help.
fn remedy(drawn: &Drawn) -> String {
    let sweeps = 4 * drawn.sweeps.max(250);
    match drawn.method {
        Found::Tempered => format!("`--method tempered --sweeps {sweeps}` may help"),
        _ if drawn.trust.verdict == Verdict::Unknown => {
            format!("`--sweeps {sweeps}` would tell")
        }
        _ => format!("`--method tempered`, or `--sweeps {sweeps}`, may help"),
    }
}

//! Holes in tables as people have them: filled from defaults, beside scikit-learn's imputers.
//!
//! `cargo xtask reproduce imputation [--set NAME,...] [--fill] [--python PROGRAM] [--data DIR]`
//!
//! One in ten of the seen cells is hidden (`benches/peers/imputation.py` says which), harmonium is trained on what is left with no setting
//! but its defaults, and `complete` fills the holes. Errors of numbers are root mean squares over the standard deviation of the cells that
//! are left, words are counted, both as means over columns. Then another model is trained on four of five rows with their own holes
//! alone, and the rest are scored beside independent columns; `--fill` leaves that out.

use crate::programs::{Programs, json, number, side_by_side};
use crate::{Fallible, Outcome};
use serde_json::Value;

const SETS: [&str; 5] = ["penguins", "birds", "weather", "cars", "seattle"];

pub(crate) fn run(words: &[&str]) -> Outcome {
    let (programs, words) = Programs::find("imputation", words)?;
    let (mut sets, mut scored) = (SETS.map(str::to_owned).to_vec(), true);
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "--set" => {
                let names = words.next().ok_or("`--set` needs a value")?;
                sets = names.split(',').map(str::to_owned).collect();
            }
            "--fill" => scored = false,
            other => {
                return Err(format!("`{other}` is not a flag of `reproduce imputation`").into());
            }
        }
    }
    if let Some(unknown) = sets.iter().find(|set| !SETS.contains(&set.as_str())) {
        return Err(format!("there is no table `{unknown}`, only {}", SETS.join(", ")).into());
    }
    if !programs.data.join("tables").is_dir() {
        let data = programs.data.display();
        return Err(format!(
            "`{data}` has no folder `tables`\nhint: name the data folder with --data"
        )
        .into());
    }
    println!(
        "table, hidden cells: error of numbers, share of right words; by the mean and the mode, the ten nearest rows, ridge regressions in turn, harmonium"
    );
    for (set, line) in sets.iter().zip(side_by_side(sets.len(), |k| filled(&programs, &sets[k]))?) {
        println!("{set:9} {line}");
    }
    if scored {
        println!(
            "table, rows to test: mean log-likelihood of a row in nats; harmonium [interval], independent columns"
        );
        for (set, line) in
            sets.iter().zip(side_by_side(sets.len(), |k| likely(&programs, &sets[k]))?)
        {
            println!("{set:9} {line}");
        }
    }
    Ok(())
}

/// The errors of one table.
fn filled(programs: &Programs, set: &str) -> Fallible<String> {
    let folder = programs.folder(set)?;
    let tables = programs.data.join("tables");
    let script = || {
        let mut script = programs.script("imputation.py");
        script.arg(set).arg(&folder).arg(&tables);
        script
    };
    let about = json(&mut script())?;
    let (holed, model, filled) =
        (folder.join("holed.csv"), folder.join("run"), folder.join("filled.csv"));
    let mut learn = programs.harmonium(&["train", "rbm", "--force"]);
    let learned = json(learn.arg(&holed).arg("--out").arg(&model))?;
    let mut fill = programs.harmonium(&["complete", "--force"]);
    json(fill.arg(&model).arg(&holed).arg("--out").arg(&filled))?;
    let found = json(script().arg(&filled))?;
    let shown = |who: &str| {
        let of = |what: &str| match &found[who][what] {
            Value::Null => "    -".to_owned(),
            value => format!("{:.3}", value.as_f64().unwrap_or(f64::NAN)),
        };
        format!("{} {}", of("numbers"), of("words"))
    };
    Ok(format!(
        "{:>6} {}  {}  {}  {}  ({} trained for {:.0} s)",
        about["hidden"],
        shown("simple"),
        shown("neighbours"),
        shown("iterative"),
        shown("harmonium"),
        learned["repeat"]
            .as_str()
            .unwrap_or("the model")
            .split(" --")
            .skip(1)
            .collect::<Vec<_>>()
            .join(" "),
        learned["seconds"].as_f64().unwrap_or(f64::NAN)
    ))
}

/// The likelihood of held-out rows of one table.
fn likely(programs: &Programs, set: &str) -> Fallible<String> {
    let folder = programs.folder(set)?;
    let mut script = programs.script("imputation.py");
    json(script.arg(set).arg(&folder).arg(programs.data.join("tables")))?;
    let (train, test, model) =
        (folder.join("train.csv"), folder.join("test.csv"), folder.join("scored"));
    let mut learn = programs.harmonium(&["train", "rbm", "--force"]);
    json(learn.arg(&train).arg("--out").arg(&model))?;
    let mut score = programs.harmonium(&["score", "--unknown", "missing"]);
    let found = json(score.arg(&model).arg(&test))?;
    Ok(format!(
        "{:>6} {:.3} [{:.3}, {:.3}] {:.3}",
        found["n"],
        number(&found, "log_likelihood")?,
        number(&found, "lower")?,
        number(&found, "upper")?,
        number(&found, "baseline")?
    ))
}

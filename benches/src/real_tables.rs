//! Tables of real numbers: an RBM from its defaults beside one full Gaussian and scikit-learn's Gaussian mixture.
//!
//! `cargo xtask reproduce real-tables [--set NAME,...] [--splits N] [--standard] [--python PROGRAM] [--data DIR]`
//!
//! Ten fixed splits of each table, 70 and 30 of a hundred rows. harmonium sees `train.csv` and no setting but a seed; the mixture chooses
//! its components and the form of its covariance on a fifth of the training rows and learns all of them. Scores are mean log-likelihoods
//! of the test rows in the units of the data, in nats. With `--standard` columns are standardised beforehand by the training rows, and the
//! scores taken back to the units of the data: nothing should change.

use crate::programs::{Programs, json, mean_and_error, number, side_by_side};
use crate::{Fallible, Outcome};

const SETS: [&str; 5] = ["iris", "wine", "penguins", "breast-cancer", "digits"];

struct Asked {
    sets: Vec<String>,
    splits: usize,
    standard: bool,
    programs: Programs,
}

/// The scores of one split.
struct Scores {
    ours: f64,
    gaussian: f64,
    mixture: f64,
    columns: f64,
}

pub(crate) fn run(words: &[&str]) -> Outcome {
    let asked = parse(words)?;
    println!(
        "{:13} {:>7} {:>16} {:>16} {:>16} {:>22} {:>18}",
        "table",
        "splits",
        "harmonium",
        "one Gaussian",
        "mixture",
        "over Gaussian / column",
        "over mixture"
    );
    for set in &asked.sets {
        let scores = side_by_side(asked.splits, |split| score(&asked, set, split))?;
        let of = |f: &dyn Fn(&Scores) -> f64| mean_and_error(scores.iter().map(f));
        let (ours, gaussian, mixture) = (of(&|s| s.ours), of(&|s| s.gaussian), of(&|s| s.mixture));
        let over = of(&|s| (s.ours - s.gaussian) / s.columns);
        let ahead = of(&|s| s.ours - s.mixture);
        println!(
            "{set:13} {:>7} {} {} {} {:>13.3} ± {:.3} {:>10.3} ± {:.3}",
            scores.len(),
            shown(ours),
            shown(gaussian),
            shown(mixture),
            over.0,
            over.1,
            ahead.0,
            ahead.1
        );
    }
    Ok(())
}

fn shown((mean, error): (f64, f64)) -> String {
    format!("{mean:>8.3} ± {error:.3}")
}

/// Both sides of one split.
fn score(asked: &Asked, set: &str, split: usize) -> Fallible<Scores> {
    let programs = &asked.programs;
    let folder = programs.folder(&format!("{set}-{split}"))?;
    let penguins = programs.data.join("tables/penguins_raw.csv");
    let mut python = programs.script("real_tables.py");
    let theirs = json(python.arg(set).arg(split.to_string()).arg(&folder).arg(penguins))?;
    let of = |name: &str| {
        folder.join(format!("{name}{}.csv", if asked.standard { "-standard" } else { "" }))
    };
    let (train, test, model) = (of("train"), of("test"), folder.join("run"));
    let mut learn = programs.harmonium(&["train", "rbm", "--force", "--seed", &split.to_string()]);
    json(learn.arg(&train).arg("--out").arg(&model))?;
    let ours = json(programs.harmonium(&["score"]).arg(&model).arg(&test))?;
    let jacobian = if asked.standard { number(&theirs, "jacobian")? } else { 0.0 };
    let scores = Scores {
        ours: number(&ours, "log_likelihood")? + jacobian,
        gaussian: number(&theirs, "gaussian")?,
        mixture: number(&theirs, "mixture")?,
        columns: number(&theirs, "columns")?,
    };
    eprintln!(
        "{set} {split}: harmonium {:.3}, one Gaussian {:.3}, mixture {:.3} ({})",
        scores.ours, scores.gaussian, scores.mixture, theirs["chosen"]
    );
    Ok(scores)
}

fn parse(words: &[&str]) -> Fallible<Asked> {
    let (programs, words) = Programs::find("real-tables", words)?;
    let sets = SETS.map(str::to_owned).to_vec();
    let mut asked = Asked { sets, splits: 10, standard: false, programs };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        let mut value = || words.next().copied().ok_or(format!("`{word}` needs a value"));
        match word {
            "--set" => asked.sets = value()?.split(',').map(str::to_owned).collect(),
            "--splits" => asked.splits = value()?.parse()?,
            "--standard" => asked.standard = true,
            other => {
                return Err(format!("`{other}` is not a flag of `reproduce real-tables`").into());
            }
        }
    }
    if let Some(unknown) = asked.sets.iter().find(|set| !SETS.contains(&set.as_str())) {
        return Err(format!("there is no table `{unknown}`, only {}", SETS.join(", ")).into());
    }
    let penguins = asked.programs.data.join("tables/penguins_raw.csv");
    if asked.sets.iter().any(|set| set == "penguins") && !penguins.is_file() {
        let penguins = penguins.display();
        return Err(format!("`{penguins}` is absent\nhint: name the data folder with --data, or choose tables with --set").into());
    }
    Ok(asked)
}

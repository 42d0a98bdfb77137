//! The table as it stands in the docs, and the curves.

use super::Places;
use super::rows::{Made, ROWS};
use crate::Outcome;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;

/// Between these lines of the page the table is replaced.
const BEGIN: &str = "[//]: # (table)";
const END: &str = "[//]: # (end of table)";

/// The rows that have run, and those that have not.
pub(super) fn table(places: &Places) -> String {
    let mut text = String::from(
        "| row | | published | test error, % | 95 % interval | validation, % | epochs | best | minutes |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for row in ROWS {
        let published =
            row.published.0.map_or("–".to_owned(), |p| format!("{p:.2} ({})", row.published.1));
        let _ = write!(text, "| `{}` | {} | {published} ", row.name, row.what);
        let Some(found) = places.result(&row) else {
            text += "| not run | | | | | |\n";
            continue;
        };
        let percent = |key: &str| {
            found[key].as_f64().map_or("–".to_owned(), |x| format!("{:.2}", 100.0 * x))
        };
        let whole = |key: &str| found[key].as_u64().map_or("–".to_owned(), |n| n.to_string());
        let seconds = found["seconds"].as_f64().unwrap_or(0.0)
            + found["pretrain_seconds"].as_f64().unwrap_or(0.0);
        let interval = if found["lower"].is_null() {
            "–".into()
        } else {
            format!("{} to {}", percent("lower"), percent("upper"))
        };
        let _ = writeln!(
            text,
            "| **{}** | {interval} | {} | {} | {} | {:.0} |",
            percent("error_rate"),
            percent("valid_error"),
            whole("epochs"),
            whole("best_epoch"),
            seconds / 60.0
        );
    }
    text
}

/// Puts the table into the page and draws the curves.
pub(super) fn write(places: &Places) -> Outcome {
    let path = places.root.join("docs/guides/mnist-table.md");
    let page = fs::read_to_string(&path)?;
    let (before, rest) = page.split_once(BEGIN).ok_or("the page has no place for the table")?;
    let (_, after) = rest.split_once(END).ok_or("the place of the table does not end")?;
    fs::write(&path, format!("{before}{BEGIN}\n\n{}\n{END}{after}", table(places)))?;
    fs::write(places.root.join("docs/images/mnist-table.svg"), curves(places))?;
    Ok(())
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 44.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 16.0;
/// Errors that are drawn, in percent, on a logarithmic scale.
const ERRORS: (f64, f64) = (0.7, 5.0);
const COLOURS: [&str; 8] =
    ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5"];

/// The validation error of every net over its epochs, as SVG.
fn curves(places: &Places) -> String {
    let series: Vec<(&str, Vec<(f64, f64)>)> = ROWS
        .iter()
        .filter(|row| matches!(row.made, Made::Net { .. }) && !row.name.starts_with("labels"))
        .map(|row| (row.name, errors(places, row.name)))
        .filter(|(_, points)| points.len() > 1)
        .collect();
    let most = series.iter().flat_map(|s| &s.1).map(|p| p.0).fold(10.0, f64::max);
    let x = |epoch: f64| LEFT + epoch / most * (WIDTH - LEFT - RIGHT);
    let y = |error: f64| {
        let share = (error.clamp(ERRORS.0, ERRORS.1) / ERRORS.0).ln() / (ERRORS.1 / ERRORS.0).ln();
        HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>Validation error over epochs</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for error in [0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0] {
        let at = y(error);
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {at:.1}H{:.1}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{error}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0
        );
    }
    for k in 0..=5 {
        let epoch = (most * f64::from(k) / 5.0).round();
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{epoch}</text>",
            x(epoch),
            HEIGHT - BOTTOM + 16.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">epoch</text><text x=\"14\" y=\"{:.1}\" \
         transform=\"rotate(-90 14 {:.1})\" text-anchor=\"middle\">validation error, %</text>",
        f64::midpoint(LEFT, WIDTH - RIGHT),
        HEIGHT - 8.0,
        HEIGHT / 2.0,
        HEIGHT / 2.0
    );
    for (k, (name, points)) in series.iter().enumerate() {
        let colour = COLOURS[k % COLOURS.len()];
        let path: Vec<String> =
            points.iter().map(|p| format!("{:.1} {:.1}", x(p.0), y(p.1))).collect();
        let at = TOP + 14.0 + 18.0 * k as f64;
        let best = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        let _ = writeln!(
            svg,
            "<path d=\"M{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/><rect x=\"{:.1}\" y=\"{:.1}\" \
             width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{at:.1}\">{name} {best:.2}</text>",
            path.join("L"),
            WIDTH - RIGHT + 14.0,
            at - 9.0,
            WIDTH - RIGHT + 30.0
        );
    }
    svg + "</svg>\n"
}

/// Epochs and validation errors in percent, from the events of a run.
fn errors(places: &Places, name: &str) -> Vec<(f64, f64)> {
    let events = fs::read_to_string(places.run(name).join("events.jsonl")).unwrap_or_default();
    let point = |line: &str| {
        let event: Value = serde_json::from_str(line).ok()?;
        Some((event["epoch"].as_f64()?, 100.0 * event["error_rate.valid"].as_f64()?))
    };
    events.lines().filter_map(point).collect()
}

//! What is printed and written.

use super::contenders::{Contender, Item, PEERS};
use super::options::{Json, Options};
use super::{Fallible, Row};
use crate::turns::median;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// Prints the table, or the JSON in its place, and writes the JSON where a file was named.
pub(super) fn report(
    machine: &Map<String, Value>,
    results: &[(Item, Vec<Row>)],
    options: &Options,
) -> Fallible<()> {
    let object = as_json(machine, results, options);
    match &options.json {
        Json::Stdout => println!("{object}"),
        Json::No => print!("{}", as_text(machine, results, options)),
        Json::File(file) => {
            std::fs::write(file, format!("{object:#}\n"))?;
            print!("{}", as_text(machine, results, options));
        }
    }
    Ok(())
}

/// Median over rounds of this row's seconds divided by the first row's in the same round.
fn ratio(row: &Row, first: &Row) -> Option<f64> {
    let ratios: Vec<f64> = row.seconds.iter().zip(&first.seconds).map(|(r, f)| r / f).collect();
    (!ratios.is_empty()).then(|| median(ratios))
}

fn as_json(machine: &Map<String, Value>, results: &[(Item, Vec<Row>)], options: &Options) -> Value {
    let items: Vec<Value> = results
        .iter()
        .map(|(item, rows)| {
            let rows: Vec<Value> = rows
                .iter()
                .map(|row| {
                    json!({
                        "name": row.contender.name(),
                        "seconds": (!row.seconds.is_empty()).then(|| median(row.seconds.clone())),
                        "rounds": row.seconds,
                        "ratio": ratio(row, &rows[0]),
                        "check": row.check,
                        "trouble": row.trouble,
                    })
                })
                .collect();
            json!({
                "item": item.letter(),
                "work": item.title(options.epochs),
                "remark": item.remark(),
                "rows": rows,
            })
        })
        .collect();
    let differs: Map<String, Value> =
        PEERS.iter().map(|peer| (peer.name.into(), peer.differs.into())).collect();
    json!({ "machine": machine, "betas_run": options.betas, "items": items, "differs": differs })
}

fn as_text(
    machine: &Map<String, Value>,
    results: &[(Item, Vec<Row>)],
    options: &Options,
) -> String {
    let mut text = String::new();
    for (item, rows) in results {
        let _ = writeln!(text, "({}) {}", item.letter(), item.title(options.epochs));
        let _ = writeln!(text, "    {}", item.remark());
        let _ = writeln!(text, "    {:<20} {:>10} {:>8}", "", "seconds", "ratio");
        for row in rows {
            text += &line(row, &rows[0]);
        }
        text.push('\n');
    }
    text += "ratio = peer / harmonium, median over rounds; above 1 harmonium is faster\n\nHow they differ\n";
    let took_part = |name| {
        let names = results.iter().flat_map(|(_, rows)| rows).map(|row| row.contender.name());
        names.into_iter().any(|n| n == name)
    };
    for peer in PEERS.iter().filter(|peer| took_part(peer.name)) {
        let _ = writeln!(text, "    {}: {}", peer.name, peer.differs);
    }
    text += "    harmonium: not centered, constant rate, no penalty, as the peers do; \"defaults\" is what it does unasked\n";
    text += "\nMachine\n";
    for (key, value) in machine {
        let _ = writeln!(text, "    {key}: {}", plain(value));
    }
    text
}

fn line(row: &Row, first: &Row) -> String {
    let name = row.contender.name();
    let mut line = match &row.seconds[..] {
        [] => format!("    {name:<20} {:>10} {:>8}", "-", "-"),
        seconds => {
            let is_first =
                matches!(row.contender, Contender::Ours(super::contenders::Variant::Plain));
            let ratio = if is_first { None } else { ratio(row, first) };
            let ratio = ratio.map_or("-".into(), |r| format!("{r:.2}x"));
            format!("    {name:<20} {:>10.3} {ratio:>8}", median(seconds.to_vec()))
        }
    };
    for (what, value) in &row.check {
        let value = value.as_f64().unwrap_or(f64::NAN);
        let _ = write!(line, "  {} {value:.4}", what.replace('_', " "));
    }
    if let Some(trouble) = &row.trouble {
        let _ = write!(line, "  {trouble}");
    }
    line + "\n"
}

/// A value as one would write it on a line.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "no".into(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(" "),
        Value::Object(map) => {
            map.iter().map(|(k, v)| format!("{k} {}", plain(v))).collect::<Vec<_>>().join(", ")
        }
        Value::Null => "unknown".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::contenders::Variant;
    use super::*;

    fn row(seconds: &[f64]) -> Row {
        let mut row = Row::new(Contender::Ours(Variant::Plain));
        row.seconds = seconds.to_vec();
        row
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        // The machine was slow in the second round, for both.
        let (first, peer) = (row(&[1.0, 10.0, 1.0]), row(&[3.0, 20.0, 2.0]));
        assert_eq!(ratio(&peer, &first), Some(2.0));
        assert_eq!(ratio(&row(&[5.0]), &first), Some(5.0), "a slow peer ran once");
        assert_eq!(ratio(&row(&[]), &first), None);
    }
}

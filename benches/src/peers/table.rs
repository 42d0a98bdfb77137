//! What is printed and written.

use super::contenders::{Item, PEERS, Variant};
use super::options::Options;
use super::{Fallible, Row};
use crate::machine;
use crate::report::Json;
use crate::turns::{self, median};
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

/// How many times as long as harmonium with the same settings this row took.
fn ratio(item: Item, row: &Row, rows: &[Row]) -> Option<f64> {
    let beside = row.contender.beside(item);
    let ours = rows.iter().find(|row| row.contender.is(beside))?;
    turns::ratio(&row.seconds, &ours.seconds)
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
                        "ratio": ratio(*item, row, rows),
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
        let _ = writeln!(text, "    {:<22} {:>10} {:>8}", "", "seconds", "ratio");
        for row in rows {
            text += &line(*item, row, rows);
        }
        text.push('\n');
    }
    text += "ratio = peer / harmonium, in training with momentum or without as the peer has it; median over rounds; \
             above 1 harmonium is faster\n\nHow they differ\n";
    let took_part = |name| {
        let names = results.iter().flat_map(|(_, rows)| rows).map(|row| row.contender.name());
        names.into_iter().any(|n| n == name)
    };
    for peer in PEERS.iter().filter(|peer| took_part(peer.name)) {
        let _ = writeln!(text, "    {}: {}", peer.name, peer.differs);
    }
    text += "    harmonium: not centered, constant rate, no penalty, as the peers do; \"defaults\" is what it does unasked\n";
    text + &machine::as_text(machine)
}

fn line(item: Item, row: &Row, rows: &[Row]) -> String {
    let name = row.contender.name();
    let mut line = match &row.seconds[..] {
        [] => format!("    {name:<22} {:>10} {:>8}", "-", "-"),
        seconds => {
            let ratio =
                if row.contender.is(Variant::Plain) { None } else { ratio(item, row, rows) };
            let ratio = ratio.map_or("-".into(), |r| format!("{r:.2}x"));
            format!("    {name:<22} {:>10.3} {ratio:>8}", median(seconds.to_vec()))
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

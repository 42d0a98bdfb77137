//! `harmonium data`: what is in a file, and how it would be learned.

use crate::args::{Common, DataCommandArgs};
use crate::failure::Failure;
use crate::render;
use crate::render::progress::Terminal;
use harmonium::progress::Listener;
use harmonium_data::frame::{Code, Codebook, Coded};
use harmonium_data::{Found, Labels, Opened, Summary};
use serde_json::{Value, json};

pub(crate) fn run(args: &DataCommandArgs, common: &Common) -> Result<(), Failure> {
    let reading = args.reading.reading()?;
    // Not used to look at the data, but a word that means nothing is refused here too.
    reading.binarize()?;
    let mut terminal = Terminal::new(common);
    let loaded = match reading.look(&args.data)? {
        Found::Columns(opened) => return columns(&opened, common, &mut terminal),
        Found::Numbers(loaded) => loaded,
    };
    loaded.about.notes.iter().for_each(|note| terminal.note(note));
    let s = Summary::of(&loaded.table);
    let image = loaded.table.image();
    let groups = loaded.table.one_hot_groups();
    // Classes that occur: numbers may be left out.
    let n_classes = loaded.labels.as_ref().map(|l| l.compact().0.len());
    if common.json {
        return render::json(&json!({
            "name": loaded.about.name,
            "format": loaded.about.format.to_string(),
            "rows": s.n_rows,
            "columns": s.n_columns,
            "image": image.map(|i| [i.height, i.width]),
            "min": finite(s.min),
            "max": finite(s.max),
            "mean": s.mean,
            "zeros": s.zeros,
            "missing": s.missing,
            "constant_columns": s.n_constant,
            "distinct_values": s.n_distinct,
            "full_scale": s.full_scale,
            "labels": n_classes,
            "visible": s.visible.to_string(),
            "binarize": s.binarize.to_string(),
            "why": s.why,
            "groups": groups.iter().map(|g| [g.start, g.end]).collect::<Vec<_>>(),
            "hash": format!("{:016x}", loaded.about.content_hash),
        }));
    }
    let shape =
        image.map(|i| format!(", pictures of {}x{}", i.height, i.width)).unwrap_or_default();
    let distinct = s.n_distinct.map_or("more than 256".into(), |n| n.to_string());
    let labels = n_classes.map_or("none".into(), |n| format!("{n} classes"));
    let one_hot = groups.first().map_or(String::new(), |first| {
        let n: usize = groups.iter().map(ExactSizeIterator::len).sum();
        format!(
            "
  categories        {} in {n} columns, of which exactly one is 1 in every row: the first in columns {} to {}
                    `train --groups auto` learns each as one categorical unit, which wastes nothing on other rows",
            groups.len(),
            first.start,
            first.end - 1
        )
    });
    render::result(&format!(
        "{} ({})
  rows              {}
  columns           {}{shape}
  range             {} to {}, mean {:.4}
  zeros             {:.1} %
  missing           {:.1} %
  constant columns  {}
  distinct values   {distinct}
  labels            {labels}
  visible units     {} with `--binarize {}`
                    {}{one_hot}",
        loaded.about.name,
        loaded.about.format,
        s.n_rows,
        s.n_columns,
        s.min,
        s.max,
        s.mean,
        100.0 * s.zeros,
        100.0 * s.missing,
        s.n_constant,
        s.visible,
        s.binarize,
        s.why,
    ))
}

/// The same of a table of columns.
fn columns(opened: &Opened, common: &Common, terminal: &mut Terminal) -> Result<(), Failure> {
    opened.about.notes.iter().for_each(|note| terminal.note(note));
    let (about, n_rows) = (&opened.about, opened.dataset.n_rows());
    let Some(book) = opened.dataset.book() else { return Ok(()) };
    if common.json {
        return render::json(&as_json(opened, book));
    }
    let text = render::columns::text(book, n_rows);
    render::result(&format!("{} ({})\n{text}", about.name, about.format))
}

fn as_json(opened: &Opened, book: &Codebook) -> Value {
    let learned = |column: &Coded| {
        let mut value = json!({
            "name": column.name, "kind": column.kind, "why": column.why, "missing": column.n_missing,
        });
        match &column.code {
            Code::Number { curve, center, scale, .. } => {
                value["curve"] = json!(curve);
                value["center"] = json!(center);
                value["scale"] = json!(scale);
            }
            Code::Count { max } => value["largest"] = json!(max),
            _ => value["values"] = json!(column.levels()),
        }
        value
    };
    let left_out: Vec<Value> =
        book.left_out.iter().map(|c| json!({ "name": c.name, "why": c.why })).collect();
    let (table, about) = (opened.dataset.table(), &opened.about);
    let n_cells = (table.n_rows() * table.n_columns()) as f64;
    json!({
        "name": about.name,
        "format": about.format.to_string(),
        "rows": table.n_rows(),
        "columns": book.columns.len() + book.left_out.len(),
        "learned": book.columns.iter().map(learned).collect::<Vec<_>>(),
        "left_out": left_out,
        "missing": table.n_missing() as f64 / n_cells,
        "labels": opened.dataset.labels().map(Labels::n_classes),
        "hash": format!("{:016x}", about.content_hash),
    })
}

fn finite(x: f32) -> Option<f32> {
    Some(x).filter(|x| x.is_finite())
}

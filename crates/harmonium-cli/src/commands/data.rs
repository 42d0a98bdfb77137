//! `harmonium data`: what is in a file, and how it would be learned.

use crate::args::{Common, DataCommandArgs};
use crate::failure::Failure;
use crate::render;
use crate::render::progress::Terminal;
use harmonium::progress::Listener;
use harmonium_data::{Summary, open};
use serde_json::json;

pub(crate) fn run(args: &DataCommandArgs, common: &Common) -> Result<(), Failure> {
    let reading = args.reading.reading()?;
    // Not used to look at the data, but a word that means nothing is refused here too.
    reading.binarize()?;
    let mut terminal = Terminal::new(common);
    let loaded = open(&args.data, &reading.options()?)?;
    loaded.about.notes.iter().for_each(|note| terminal.note(note));
    let s = Summary::of(&loaded.table);
    let image = loaded.table.image();
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
            "hash": format!("{:016x}", loaded.about.content_hash),
        }));
    }
    let shape =
        image.map(|i| format!(", pictures of {}x{}", i.height, i.width)).unwrap_or_default();
    let distinct = s.n_distinct.map_or("more than 256".into(), |n| n.to_string());
    let labels = n_classes.map_or("none".into(), |n| format!("{n} classes"));
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
                    {}",
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

fn finite(x: f32) -> Option<f32> {
    Some(x).filter(|x| x.is_finite())
}

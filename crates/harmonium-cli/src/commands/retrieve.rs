//! `harmonium retrieve`: which rows of one modality belong to rows of another.

use crate::args::{Common, RetrieveArgs};
use crate::failure::Failure;
use crate::output::{self, Kind};
use crate::render::progress::Terminal;
use crate::{load, modalities, render};
use harmonium::model::{Nearness, Retrieval, Retrieved};
use harmonium::random::Stream;
use harmonium::{Dataset, Model};
use harmonium_data::{Options, open_labels_of};
use ndarray::Array2;
use serde_json::json;

/// Queries whose nearest pictures are drawn.
const MOST_DRAWN: usize = 40;

pub(crate) fn run(args: &RetrieveArgs, common: &Common) -> Result<(), Failure> {
    if let Some(out) = &args.out {
        Kind::of(out)?;
        output::check_free(out, args.force)?;
    }
    let mut terminal = Terminal::new(common);
    let model = load::model(&args.model, &mut terminal)?;
    let (wanted, _) = modalities::named(&args.among)?;
    let queries = modalities::given(&model, &args.query, &args.reading, &mut terminal)?;
    let one = std::slice::from_ref(&args.among);
    let among = modalities::given(&model, one, &args.reading, &mut terminal)?;
    let by = match args.by.as_str() {
        "features" => Nearness::Features,
        _ => Nearness::Conditional,
    };
    let found = model.retrieve(&queries, (wanted, &among), by, &mut terminal)?;
    let judged = judge(args, &found)?;
    drop(terminal);
    if let Some(out) = &args.out {
        write(args, out, &model, (wanted, &among), &found)?;
    }
    let (n_queries, n_among) = found.nearness.dim();
    if common.json {
        let mut value = json!({
            "by": args.by, "queries": n_queries, "among": n_among, "out": args.out,
            "mean_average_precision": null, "median_rank": null,
        });
        if let (Some(judged), Some(all)) = (&judged, value.as_object_mut()) {
            let told = serde_json::to_value(judged).unwrap_or_default();
            all.extend(told.as_object().cloned().unwrap_or_default());
        }
        return render::json(&value);
    }
    let told = judged.map_or_else(
        || "what belongs together is not known: give as many rows on both sides, or `--labels`".into(),
        |j| {
            format!(
                "mean average precision {:.4}, precision at 10 {:.4}, recall at 10 {:.4}, median rank {:.1} of {n_among} \
                 (chance {:.0})",
                j.mean_average_precision,
                j.precision_at_10,
                j.recall_at_10,
                j.median_rank,
                f64::midpoint(n_among as f64, 1.0),
            )
        },
    );
    render::result(&format!("{n_queries} queries by {}: {told}", args.by))
}

/// How well partners are found: rows of one class, or of one number where both sides have as many.
fn judge(args: &RetrieveArgs, found: &Retrieved) -> Result<Option<Retrieval>, Failure> {
    let (n_queries, n_among) = found.nearness.dim();
    let Some(path) = &args.labels else {
        return Ok((n_queries == n_among).then(|| found.judge(|q, a| q == a)));
    };
    if n_queries != n_among {
        return Err(Failure::new(
            format!("there are {n_queries} queries among {n_among} rows"),
            "`--labels` holds for both sides, which must have as many rows",
        ));
    }
    let (labels, _) = open_labels_of(path, &Options::default(), n_queries)?;
    let classes = labels.values();
    Ok(Some(found.judge(|q, a| classes[q] == classes[a])))
}

/// The numbers of the nearest rows, or their pictures, those of a query in a row.
fn write(
    args: &RetrieveArgs,
    out: &str,
    model: &Model,
    (wanted, among): (&str, &Dataset),
    found: &Retrieved,
) -> Result<(), Failure> {
    let (n_queries, n_among) = found.nearness.dim();
    let top = args.top.clamp(1, n_among);
    if Kind::of(out)? != Kind::Png {
        let nearest: Vec<Vec<usize>> = (0..n_queries).map(|q| found.nearest(q, top)).collect();
        let rows = Array2::from_shape_fn((n_queries, top), |(q, k)| nearest[q][k] as f64);
        return output::write_values(out, args.force, &rows, None);
    }
    let Some(image) = model.picture_of(wanted)? else {
        return Err(Failure::new(
            format!("`{wanted}` are not pictures"),
            "write the numbers of the nearest rows to a .csv file",
        ));
    };
    let values = among.of_modality(model.modality(wanted)?)?.to_array(Stream::new(0));
    let mut tiles = Vec::new();
    for q in 0..n_queries.min(MOST_DRAWN) {
        tiles.extend(found.nearest(q, top).into_iter().map(|a| values.row(a).to_vec()));
    }
    output::write_mosaic(out, args.force, &tiles, image, top)
}

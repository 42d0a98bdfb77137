//! A conditional log-likelihood in words.

use harmonium::evaluation::log_partition::Bracket;
use harmonium::evaluation::row_sums::How;
use harmonium::model::Conditional;

/// The mean of a row and of a cell, with their interval, beside cells on their own.
pub(crate) fn text(score: &Conditional) -> String {
    let Conditional { mean, lower, upper, n_asked, .. } = score;
    let n = score.rows.len();
    let bracket = match score.bracket {
        Bracket::Bound => "a bound",
        Bracket::Heuristic => "heuristic",
        Bracket::Unsettled => "unsettled",
    };
    let interval = match score.how {
        How::Exact => String::from("exact"),
        _ => format!("[{lower:.3}, {upper:.3}], {bracket}"),
    };
    let rows = score.data_std_error.map_or(String::new(), |e| format!(", ± {e:.2} over the rows"));
    let cells = match score.how {
        How::Exact => String::new(),
        _ => {
            format!(" [{:.4}, {:.4}]", score.in_cells(*lower), score.in_cells(*upper))
        }
    };
    let baseline = match score.baseline {
        Ok(b) => format!("; each cell on its own: {b:.3}, {:.4} a cell", score.in_cells(b)),
        Err(why) => format!("; no baseline: {why}"),
    };
    format!(
        "ln p(asked | known) = {mean:.3} nats a row ({interval}{rows}), {:.4}{cells} a cell, over {n} rows and \
         {n_asked} cells{baseline}",
        score.per_cell()
    )
}

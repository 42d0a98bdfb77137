//! One verdict from all findings, in words and as JSON.

use super::remedy::advice;
use harmonium::findings::{Finding, Level, verdict};
use serde_json::{Value, json};
use std::fmt::Write;

/// The word for a level.
fn word(level: Level) -> &'static str {
    match level {
        Level::Problem => "problem",
        Level::Warning => "warning",
        Level::Note | Level::Good => "good",
    }
}

/// The verdict and what it rests on: problems and warnings with what helps, else the first finding.
pub(crate) fn text(found: &[Finding]) -> String {
    let Some(level) = verdict(found) else {
        return "verdict: nothing could be judged".to_owned();
    };
    let mut text = format!("verdict: {}", word(level));
    let bad = found.iter().filter(|f| f.level <= Level::Warning).count();
    for finding in &found[..bad.max(1)] {
        let help = advice(&finding.remedies);
        let space = if help.is_empty() { "" } else { " " };
        let _ = write!(text, "\n  {}{space}{help}", finding.what);
    }
    text
}

/// The same as JSON: `verdict`, and `findings` with everything that was found.
pub(crate) fn json(found: &[Finding]) -> Value {
    let finding =
        |f: &Finding| json!({ "level": f.level, "what": f.what, "advice": advice(&f.remedies) });
    json!({
        "verdict": verdict(found).map(word),
        "findings": found.iter().map(finding).collect::<Vec<_>>(),
    })
}

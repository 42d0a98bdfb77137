//! The page: what stands where.

use super::charts::charts;
use super::histogram::{describe, histogram};
use super::markup::{escape, figure, fixed, number, plural, prose, table};
use super::{Contents, pictures};
use crate::render::remedy::advice;
use anyhow::Result;
use harmonium::findings::{Finding, Level, Named};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// A section of the page; empty ones are left out.
struct Section {
    id: &'static str,
    title: &'static str,
    body: String,
}

/// The whole report, as one file that loads nothing.
///
/// # Errors
///
/// If the tiles of a picture have no common shape.
pub(crate) fn html(contents: &Contents) -> Result<String> {
    let sections = [
        section("findings", "Findings", findings_list(&contents.findings, &contents.notes)),
        section("scores", "Scores", facts(&contents.scores)),
        section("mixing", "Do chains mix?", facts(&contents.mixing)),
        section("curves", "Curves", curves(contents)),
        section("mistakes", "Mistakes", mistakes(contents)?),
        section("filters", "Filters", filters(contents)?),
        section(
            "samples",
            "Samples beside data",
            pictures::samples(&contents.evidence, contents.image)?.unwrap_or_default(),
        ),
        section("weights", "Weights and activity", histograms(contents)),
        section("data", "Data", facts(&contents.data)),
        section("configuration", "Configuration", configuration(&contents.config)),
    ];
    let shown: Vec<Section> = sections.into_iter().filter(|s| !s.body.is_empty()).collect();
    let mut page = head(&contents.title);
    page += &opening(contents, &shown);
    for Section { id, title, body } in &shown {
        let _ = write!(page, "<section id=\"{id}\">\n<h2>{title}</h2>\n{body}</section>\n");
    }
    let version = env!("CARGO_PKG_VERSION");
    let _ = write!(page, "<footer>harmonium {version}</footer>\n</body>\n</html>\n");
    Ok(page)
}

fn section(id: &'static str, title: &'static str, body: String) -> Section {
    Section { id, title, body }
}

/// The policy forbids everything that a report could load, whatever a name in it may hold.
fn head(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        escape(title)
    )
}

fn opening(contents: &Contents, sections: &[Section]) -> String {
    let mut html = format!("<header>\n<h1>{}</h1>\n", escape(&contents.title));
    if !contents.description.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", prose(&contents.description));
    }
    if let Some(last) = contents.evidence.epochs.last() {
        let epochs = plural(usize::try_from(last.epoch).unwrap_or(usize::MAX), "epoch");
        let steps = plural(usize::try_from(last.step).unwrap_or(usize::MAX), "step");
        let time = duration(last.seconds);
        let _ = writeln!(html, "<p class=\"quiet\">{epochs}, {steps}, {time}</p>");
    }
    html += "<nav>";
    for Section { id, title, .. } in sections {
        let _ = write!(html, "<a href=\"#{id}\">{title}</a>");
    }
    html + "</nav>\n</header>\n"
}

/// A time as people say it.
fn duration(seconds: f64) -> String {
    let whole = |x: f64| fixed(x.floor(), 0);
    if seconds < 60.0 {
        format!("{} s", number((10.0 * seconds).round() / 10.0))
    } else if seconds < 3600.0 {
        format!("{} min {} s", whole(seconds / 60.0), whole(seconds % 60.0))
    } else {
        format!("{} h {} min", whole(seconds / 3600.0), whole(seconds % 3600.0 / 60.0))
    }
}

fn findings_list(found: &[Finding], notes: &[String]) -> String {
    let mut html = String::new();
    if !found.is_empty() {
        html += "<ul class=\"findings\">\n";
        for Finding { level, what, remedies } in found {
            let (class, icon, word) = badge(*level);
            let _ = writeln!(
                html,
                "<li><span class=\"badge {class}\"><span aria-hidden=\"true\">{icon}</span>{word}</span>\
                 <p>{} {}</p></li>",
                prose(what),
                prose(&advice(remedies))
            );
        }
        html += "</ul>\n";
    }
    if !notes.is_empty() {
        html += "<h3>What the run said</h3>\n<ul>\n";
        for note in notes {
            let _ = writeln!(html, "<li>{}</li>", prose(note));
        }
        html += "</ul>\n";
    }
    html
}

/// Class, icon and word of a level: no colour stands alone.
fn badge(level: Level) -> (&'static str, &'static str, &'static str) {
    match level {
        Level::Problem => ("problem", "✕", "Problem"),
        Level::Warning => ("warning", "!", "Warning"),
        Level::Note => ("note", "i", "Note"),
        Level::Good => ("good", "✓", "Good"),
    }
}

fn facts(rows: &[(String, String)]) -> String {
    if rows.is_empty() { String::new() } else { table(rows) }
}

fn curves(contents: &Contents) -> String {
    let mut html = String::new();
    for chart in charts(&contents.evidence.epochs) {
        if let Some(svg) = chart.svg() {
            html += &figure(&chart.title, chart.meaning, &svg);
        }
    }
    grid(&html)
}

fn filters(contents: &Contents) -> Result<String> {
    let mut html = String::new();
    for layer in &contents.filters {
        html += &pictures::filters(layer, contents.image)?.unwrap_or_default();
    }
    Ok(html)
}

fn mistakes(contents: &Contents) -> Result<String> {
    let pictures = pictures::mistakes(&contents.mistakes, contents.image)?;
    if pictures.is_empty() {
        return Ok(pictures);
    }
    let what = "Rows whose label is not the class that was found, the surest first: the label, an arrow, the class and \
                its probability.";
    Ok(format!("<p>{what}</p>\n<div class=\"tiles\">\n{pictures}</div>\n"))
}

fn histograms(contents: &Contents) -> String {
    let mut html = String::new();
    for Named { name, values } in &contents.evidence.weights {
        let title = format!("Weights of {name}");
        if let Some(svg) = histogram(&title, "weight", values, None) {
            html += &figure(&title, &describe(values, "weight"), &svg);
        }
    }
    for Named { name, values } in &contents.evidence.activities {
        let title = format!("Activity of {name}");
        let svg =
            histogram(&title, "mean activity of a unit over the data", values, natural(values));
        if let Some(svg) = svg {
            html += &figure(&title, &describe(values, "unit"), &svg);
        }
    }
    grid(&html)
}

/// The range that means of such values can take, if they have one.
fn natural(values: &[f64]) -> Option<(f64, f64)> {
    let inside = |lo: f64, hi: f64| values.iter().all(|x| (lo..=hi).contains(x));
    [(0.0, 1.0), (-1.0, 1.0)].into_iter().find(|(lo, hi)| inside(*lo, *hi))
}

fn grid(figures: &str) -> String {
    if figures.is_empty() {
        return String::new();
    }
    format!("<div class=\"grid\">\n{figures}</div>\n")
}

fn configuration(config: &str) -> String {
    if config.trim().is_empty() {
        return String::new();
    }
    let config = escape(config.trim_end());
    format!(
        "<details>\n<summary><code>run.toml</code></summary>\n<pre>{config}</pre>\n</details>\n"
    )
}

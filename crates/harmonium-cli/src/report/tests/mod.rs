//! Whole pages: from invented numbers, and from a machine that learned digits.

mod digits;

use super::*;
use harmonium::findings::{Named, findings};
use harmonium::run::{Ending, Epoch};
use harmonium::training::{Measurement, Plan};
use std::collections::BTreeSet;

const FOLDER: &str = "HARMONIUM_TEST_REPORTS";

/// Metrics of every kind, in epoch `i`.
fn metrics(i: u64) -> Vec<Measurement> {
    let curve = |top: f64| top - 12.0 * (-0.4 * i as f64).exp();
    let metrics = [
        ("log_likelihood.train", curve(-20.0)),
        ("log_likelihood.valid", curve(-20.8)),
        ("free_energy_gap", 0.4),
        ("free_energy.train", -30.0),
        ("free_energy.chains", -31.0),
        ("reconstruction_error", 0.1),
        ("dead_units", 1.0),
        ("saturated_units", 0.0),
        ("odd<script>.\"one\"", 1.0),
    ];
    metrics.map(|(name, value)| Measurement { name: name.into(), value, std_error: None }).into()
}

fn epoch(i: u64) -> Epoch {
    Epoch {
        epoch: i + 1,
        step: 18 * (i + 1),
        seconds: 0.2,
        learning_rate: 0.05,
        gradient_norm: 0.3,
        update_ratio: 2e-3,
        mean_field_sweeps: Some(9.0),
        measurements: metrics(i).into(),
        ..Epoch::default()
    }
}

/// A report that holds everything there is, with names that try to be markup.
fn full() -> Contents {
    let tile = |i: usize| (0..64).map(|p| ((p * (i + 3)) as f64 / 7.0).sin()).collect::<Vec<f64>>();
    let unit = |i: usize| tile(i).into_iter().map(|x| 0.5 + 0.5 * x).collect::<Vec<f64>>();
    let named = |name: &str, values| Named { name: name.into(), values };
    let layer = |layer: &str, n, activity| {
        let tiles = (0..n).map(tile).collect();
        Filters { layer: layer.into(), tiles, activity }
    };
    let evidence = Evidence {
        plan: Plan::default(),
        epochs: (0..20).map(epoch).collect(),
        ending: Ending::Stopped("it was 'enough'".into()),
        data_samples: (0..40).map(unit).collect(),
        model_samples: (40..70).map(unit).collect(),
        weights: vec![named("visible – hidden", tile(9)), named("hidden1 – <2>", tile(11))],
        activities: vec![named("hidden1", unit(5))],
        ..Evidence::default()
    };
    Contents {
        title: "a <run> & \"more\"".into(),
        description: "An RBM of 64 binary and 30 binary units: <b>2,014</b> parameters.".into(),
        findings: findings(&evidence),
        evidence,
        notes: vec!["a note with <i> & `code <x>`".into()],
        scores: vec![("test & co".into(), "−20.1 < x < −19.9".into())],
        mixing: vec![("energy".into(), "R-hat 1.002 < 1.01".into())],
        config: "title = \"</pre><script>alert(1)</script>\"\nepochs = 20\n".into(),
        data: vec![("rows <n>".into(), "1,797 & more".into())],
        image: Some(Image { height: 8, width: 8 }),
        filters: vec![layer("hidden'1", 30, vec![]), layer("hidden2", 5, vec![0.1; 5])],
        mistakes: vec![Mistake {
            values: vec![0.5; 64],
            label: "<4>".into(),
            found: ("9".into(), 0.75),
        }],
    }
}

/// Checks that every tag is closed in its order, and gives all tags with their attributes.
fn tags(html: &str) -> Vec<String> {
    const VOID: [&str; 3] = ["meta", "img", "!DOCTYPE"];
    let (mut open, mut found) = (Vec::new(), Vec::new());
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "</{name}> closes something else");
        } else {
            found.push(tag.to_owned());
            if !tag.ends_with('/') && !VOID.contains(&name) {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "{open:?} are not closed");
    found
}

/// Checks a page, and writes it into the folder `HARMONIUM_TEST_REPORTS` to be looked at.
fn check(name: &str, page: &str) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        std::fs::write(std::path::Path::new(&folder).join(name), page).unwrap();
    }
    assert!(page.starts_with("<!DOCTYPE html>"));
    for far in
        ["http://", "https://", "//cdn", "@import", "url(", "<script", "<link", "NaN", "inf\""]
    {
        assert!(!page.contains(far), "the page holds {far}");
    }
    let tags = tags(page);
    let ids: Vec<&str> =
        tags.iter().filter_map(|t| t.split(" id=\"").nth(1)?.split('"').next()).collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "an id occurs twice: {ids:?}");
    for link in tags.iter().filter_map(|t| t.split("href=\"#").nth(1)?.split('"').next()) {
        assert!(unique.contains(link), "#{link} leads nowhere");
    }
    for image in tags.iter().filter(|t| t.starts_with("img")) {
        assert!(image.contains("alt=\"") && image.contains("src=\"data:image/png;base64,"));
    }
    for drawing in tags.iter().filter(|t| t.starts_with("svg")) {
        assert!(drawing.contains("role=\"img\"") && drawing.contains("aria-label=\""));
    }
}

#[test]
fn a_full_report_is_whole_and_loads_nothing() {
    let page = html(&full()).unwrap();
    check("full.html", &page);
    for id in [
        "findings",
        "scores",
        "mixing",
        "curves",
        "mistakes",
        "filters",
        "samples",
        "weights",
        "data",
        "configuration",
    ] {
        assert!(page.contains(&format!("<section id=\"{id}\">")), "{id} is missing");
    }
    assert_eq!((page.matches("<img ").count(), page.matches("<svg ").count()), (5, 13));
    assert!(page.contains("&lt;/pre&gt;&lt;script&gt;alert(1)"));
    assert!(page.contains("Not a likelihood"));
    assert!(page.contains("20 epochs, 360 steps, 0.2 s"));
}

#[test]
fn equal_runs_give_equal_pages() {
    assert_eq!(html(&full()).unwrap(), html(&full()).unwrap());
}

#[test]
fn an_empty_run_still_has_a_page() {
    let page = html(&Contents { title: "nothing".into(), ..Contents::default() }).unwrap();
    check("empty.html", &page);
    assert!(!page.contains("<section"));
}

#[test]
fn a_run_that_broke_has_a_page() {
    let mut contents = full();
    let evidence = &mut contents.evidence;
    for epoch in &mut evidence.epochs {
        epoch.measurements.0.iter_mut().for_each(|m| m.value = f64::NAN);
        (epoch.gradient_norm, epoch.update_ratio) = (f64::NAN, f64::NAN);
    }
    evidence.model_samples[0][0] = f64::NAN;
    evidence.weights[0].values = vec![f64::NAN; 3];
    evidence.ending = Ending::Diverged("the gradient holds a number that is not finite".into());
    contents.findings = findings(evidence);
    contents.filters[0].tiles[0][0] = f64::INFINITY;
    let page = html(&contents).unwrap();
    check("broken.html", &page);
    assert!(page.contains("Training diverged"));
}

#[test]
fn samples_that_are_no_pictures_have_a_page() {
    let mut contents = full();
    contents.image = None;
    contents.evidence.model_samples.clear();
    check("strips.html", &html(&contents).unwrap());
}

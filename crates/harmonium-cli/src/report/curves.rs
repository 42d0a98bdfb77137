//! Curves over time, with their names and last values beside them.

use super::axis::{Axis, Spacing};
use super::markup::{escape, number};
use super::plot::{CHARACTER, Frame, WIDTH, open};
use std::fmt::Write as _;

/// Width of a character of the labels at the ends, which are bold.
const BOLD: f64 = 7.2;
/// Height of a line of labels.
const LINE: f64 = 13.0;
/// More points than that are no longer marked one by one.
const MARKED: usize = 60;
/// Points of a path: about two per pixel that they can take.
const DRAWN: usize = 800;
/// Points that have an explanation.
const EXPLAINED: usize = 150;

/// A curve and its name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    /// What the legend calls it.
    pub(super) name: String,
    /// Its points, from left to right.
    pub(super) points: Vec<(f64, f64)>,
}

/// Curves over one axis of time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curves<'a> {
    /// What a listener is told about the drawing.
    pub(super) title: &'a str,
    /// What runs from left to right: epochs or steps.
    pub(super) x_label: &'a str,
    /// The unit of the values.
    pub(super) y_label: &'a str,
    /// How values are spread.
    pub(super) spacing: Spacing,
    /// A value to compare with, and what it means.
    pub(super) reference: Option<(f64, &'a str)>,
    /// What is drawn.
    pub(super) series: Vec<Series>,
}

impl Curves<'_> {
    /// The drawing; nothing if no point can be shown.
    pub(super) fn svg(&self) -> Option<String> {
        let values = self.series.iter().flat_map(|s| &s.points).map(|p| p.1);
        let shared = values.clone().chain(self.reference.map(|r| r.0));
        let y = Axis::roomy(shared, self.spacing);
        let x = Axis::tight(self.series.iter().flat_map(|s| &s.points).map(|p| p.0));
        if !values.clone().any(|v| y.shows(v)) {
            return None;
        }
        let ends = self.end_labels(&y);
        let widest = ends.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
        let whole = values.clone().all(|v| v.fract() == 0.0);
        let y_ticks = if whole { y.whole_ticks(5) } else { y.ticks(5) };
        let frame = Frame::new(x, y, y_ticks, 12.0 + widest as f64 * BOLD);
        let mut svg = open(&self.spoken());
        svg += &frame.axes(&frame.x.whole_ticks(6), self.x_label, self.y_label);
        svg += &self.legend();
        svg += &self.reference_line(&frame);
        for (i, series) in self.series.iter().enumerate() {
            let _ = writeln!(svg, "<g class=\"series s{}\">", i % 4);
            svg += &path(&frame, &thin(&series.points, DRAWN));
            svg += &self.marks(&frame, series);
            svg += "</g>\n";
        }
        svg += &place_ends(&frame, &ends);
        Some(svg + "</svg>\n")
    }

    /// What is said instead of the drawing: every curve with its first and last value.
    fn spoken(&self) -> String {
        let mut text = self.title.to_owned();
        for series in &self.series {
            if let (Some(first), Some(last)) = (series.points.first(), series.points.last()) {
                let (from, to) = (number(first.1), number(last.1));
                let _ = write!(text, "; {}: from {from} to {to}", series.name);
                let _ = write!(text, " at {} {}", self.x_label, number(last.0));
            }
        }
        text
    }

    /// The series and last value of each curve that has one.
    fn end_labels(&self, y: &Axis) -> Vec<(End, String)> {
        let mut ends = Vec::new();
        for (i, series) in self.series.iter().enumerate() {
            let Some(last) = series.points.iter().rev().find(|p| y.shows(p.1)) else { continue };
            let value = number(last.1);
            let text =
                if self.series.len() == 1 { value } else { format!("{} {value}", series.name) };
            ends.push((End { series: i, value: last.1 }, text));
        }
        ends
    }

    fn legend(&self) -> String {
        if self.series.len() < 2 {
            return String::new();
        }
        let mut svg = String::new();
        let mut right = WIDTH - 4.0;
        for (i, series) in self.series.iter().enumerate().rev() {
            let left = right - series.name.chars().count() as f64 * CHARACTER;
            let _ = writeln!(
                svg,
                "<g class=\"series s{}\"><path class=\"line\" d=\"M{:.1} 9H{:.1}\"/></g>\
                 <text x=\"{left:.1}\" y=\"13\">{}</text>",
                i % 4,
                left - 26.0,
                left - 5.0,
                escape(&series.name)
            );
            right = left - 40.0;
        }
        svg
    }

    fn reference_line(&self, frame: &Frame) -> String {
        let Some((value, meaning)) = self.reference.filter(|r| frame.y.contains(r.0)) else {
            return String::new();
        };
        let (y, (left, right)) = (frame.y.place(value), frame.x.pixels);
        format!(
            "<path class=\"reference\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>\
             <text class=\"quiet halo\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
            left + 6.0,
            // Above the line, or below it where the drawing ends.
            if y - frame.y.pixels.1 < LINE { y + 12.0 } else { y - 4.0 },
            escape(meaning)
        )
    }

    /// A dot with an explanation at each point, or at some of very many.
    fn marks(&self, frame: &Frame, series: &Series) -> String {
        let class = if series.points.len() <= MARKED { "dot" } else { "spot" };
        let stride = series.points.len().div_ceil(EXPLAINED).max(1);
        let mut svg = String::new();
        for &(x, y) in series.points.iter().step_by(stride).filter(|p| frame.y.shows(p.1)) {
            let title = format!("{} {}, {}: {}", self.x_label, number(x), series.name, number(y));
            let (cx, cy) = (frame.x.place(x), frame.y.place(y));
            let _ = writeln!(
                svg,
                "<circle class=\"{class}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"2\"><title>{}</title></circle>",
                escape(&title)
            );
        }
        svg
    }
}

/// Where a curve ends.
struct End {
    series: usize,
    value: f64,
}

/// Writes the last values right of the curves, moved apart where they would overlap.
fn place_ends(frame: &Frame, ends: &[(End, String)]) -> String {
    let mut placed: Vec<(f64, usize, &str)> =
        ends.iter().map(|(e, text)| (frame.y.place(e.value), e.series, text.as_str())).collect();
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lowest = frame.y.pixels.0;
    let mut limit = f64::NEG_INFINITY;
    for (y, ..) in &mut placed {
        *y = y.max(limit);
        limit = *y + LINE;
    }
    let mut limit = lowest;
    for (y, ..) in placed.iter_mut().rev() {
        *y = y.min(limit);
        limit = *y - LINE;
    }
    let x = frame.x.pixels.1 + 8.0;
    placed.iter().fold(String::new(), |svg, (y, series, text)| {
        let (i, y, text) = (series % 4, y + 4.0, escape(text));
        svg + &format!("<text class=\"end e{i}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>\n")
    })
}

/// A line through the points, interrupted where one cannot be shown.
fn path(frame: &Frame, points: &[(f64, f64)]) -> String {
    let mut d = String::new();
    let mut pen = 'M';
    for &(x, y) in points {
        if frame.y.shows(y) {
            let _ = write!(d, "{pen}{:.1} {:.1}", frame.x.place(x), frame.y.place(y));
        }
        pen = if frame.y.shows(y) { 'L' } else { 'M' };
    }
    format!("<path class=\"line\" d=\"{d}\"/>\n")
}

/// At most about `most` points that look the same: the least and the largest of each stretch.
fn thin(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let mut kept = Vec::with_capacity(most + 2);
    for stretch in points.chunks(points.len().div_ceil(most / 2)) {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let pair = stretch.iter().min_by(by_value).zip(stretch.iter().max_by(by_value));
        if let Some((low, high)) = pair {
            let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
            kept.extend([*first, *second]);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves(values: &[&[f64]]) -> Curves<'static> {
        let series = values.iter().enumerate().map(|(i, v)| Series {
            name: ["train", "validation <1>"][i % 2].into(),
            points: (1..).map(f64::from).zip(v.iter().copied()).collect(),
        });
        Curves {
            title: "Score",
            x_label: "epoch",
            y_label: "nats",
            spacing: Spacing::Linear,
            reference: None,
            series: series.collect(),
        }
    }

    #[test]
    fn curves_have_names_last_values_and_explanations() {
        let svg = curves(&[&[-3.0, -2.0, -1.5], &[-3.5, -2.5, -1.75]]).svg().unwrap();
        assert!(svg.contains(">train −1.5<") && svg.contains(">validation &lt;1&gt; −1.75<"));
        assert!(svg.contains("<title>epoch 2, train: −2</title>"));
        assert!(svg.contains("aria-label=\"Score; train: from −3 to −1.5 at epoch 3;"));
        assert!(!svg.contains("<1>"));
    }

    #[test]
    fn a_number_that_is_none_interrupts_the_line() {
        let svg = curves(&[&[1.0, f64::NAN, 2.0, 3.0]]).svg().unwrap();
        let start = svg.find("class=\"line\" d=\"").unwrap();
        let path = svg[start..].split('"').nth(3).unwrap();
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1));
        assert!(!svg.contains("NaN") && svg.contains(">3<"));
    }

    #[test]
    fn nothing_to_show_is_no_drawing() {
        assert_eq!(curves(&[&[f64::NAN, f64::INFINITY]]).svg(), None);
        assert_eq!(curves(&[&[]]).svg(), None);
    }

    #[test]
    fn last_values_do_not_overlap() {
        let curves = curves(&[&[1.0, 5.0], &[1.0, 5.001], &[0.0, 5.0]]);
        let svg = curves.svg().unwrap();
        let mut heights: Vec<f64> = Vec::new();
        for text in svg.split("<text class=\"end").skip(1) {
            let after = text.split("y=\"").nth(1).unwrap();
            heights.push(after.split('"').next().unwrap().parse().unwrap());
        }
        assert_eq!(heights.len(), 3);
        assert!(heights.windows(2).all(|w| w[1] - w[0] >= LINE - 0.11), "{heights:?}");
    }

    #[test]
    fn thinning_keeps_the_extremes() {
        let mut points: Vec<(f64, f64)> = (0..50_000).map(|i| (f64::from(i), 0.0)).collect();
        (points[777].1, points[40_000].1) = (9.0, -9.0);
        let thinned = thin(&points, 800);
        assert!(thinned.len() <= 802 && thinned.windows(2).all(|w| w[0].0 <= w[1].0));
        assert!(thinned.contains(&(777.0, 9.0)) && thinned.contains(&(40_000.0, -9.0)));
    }
}

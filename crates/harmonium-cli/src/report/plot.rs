//! The frame of a small drawing in SVG: its axes, ticks and labels.
//!
//! Colours, dashes and fonts are those of the page's style sheet, so a drawing follows the light
//! or dark scheme of its reader. What the mouse rests on is explained by a `<title>`.

use super::axis::{Axis, Tick};
use super::markup::escape;
use std::fmt::Write as _;

/// Width of a drawing in its own pixels; the page stretches it.
pub(super) const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 236.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 36.0;
/// Width of a character of the labels, at most.
pub(super) const CHARACTER: f64 = 6.3;

/// Two axes and what they leave free.
pub(super) struct Frame {
    /// From left to right.
    pub(super) x: Axis,
    /// From bottom to top.
    pub(super) y: Axis,
    y_ticks: Vec<Tick>,
}

impl Frame {
    /// Lays the axes out, with `right` pixels kept free on that side.
    pub(super) fn new(x: Axis, y: Axis, y_ticks: Vec<Tick>, right: f64) -> Self {
        let widest = y_ticks.iter().map(|t| t.label.chars().count()).max().unwrap_or(0);
        let left = 12.0 + widest as f64 * CHARACTER;
        let x = x.over(left, WIDTH - right);
        Self { x, y: y.over(HEIGHT - BOTTOM, TOP), y_ticks }
    }

    /// Grid, ticks and labels.
    pub(super) fn axes(&self, x_ticks: &[Tick], x_label: &str, y_label: &str) -> String {
        let ((left, right), (bottom, top)) = (self.x.pixels, self.y.pixels);
        let mut svg = String::from("<g class=\"axes\">\n");
        for tick in &self.y_ticks {
            let y = self.y.place(tick.value);
            let _ = writeln!(
                svg,
                "<path class=\"gridline\" d=\"M{left:.1} {y:.1}H{right:.1}\"/>\
                 <text class=\"right\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                left - 6.0,
                y + 4.0,
                tick.label
            );
        }
        for tick in x_ticks {
            let x = self.x.place(tick.value);
            let _ = writeln!(
                svg,
                "<path class=\"tick\" d=\"M{x:.1} {bottom:.1}v4\"/>\
                 <text class=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                bottom + 16.0,
                tick.label
            );
        }
        let _ = writeln!(
            svg,
            "<path class=\"base\" d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\"/>\
             <text class=\"middle quiet\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
             <text class=\"quiet\" x=\"2\" y=\"13\">{}</text></g>",
            f64::midpoint(left, right),
            HEIGHT - 5.0,
            escape(x_label),
            escape(y_label)
        );
        svg
    }
}

/// The start of a drawing, with what is said instead of it.
pub(super) fn open(spoken: &str) -> String {
    let spoken = escape(spoken);
    format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{spoken}\">\n")
}

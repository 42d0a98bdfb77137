//! How often values occur.

use super::axis::Axis;
use super::markup::{count, escape, fixed, number, plural};
use super::plot::{Frame, open};
use std::fmt::Write as _;

/// An odd number, so that a range symmetric about zero has a bar in its middle.
const BINS: usize = 41;

/// A drawing over the range of the values, at least over `range`; nothing if no value is finite.
pub(super) fn histogram(
    title: &str,
    x_label: &str,
    values: &[f64],
    range: Option<(f64, f64)>,
) -> Option<String> {
    let finite = || values.iter().copied().filter(|x| x.is_finite());
    finite().next()?;
    let ends = range.map_or_else(Vec::new, |(lo, hi)| vec![lo, hi]);
    let x = Axis::tight(finite().chain(ends));
    let (bins, (lo, hi)) = (bins(&x, finite()), x.ends());
    let most = bins.iter().max().copied().unwrap_or(1);
    let y = Axis::tight([0.0, most as f64 * 1.05].into_iter());
    let y_ticks = y.whole_ticks(4);
    let frame = Frame::new(x, y, y_ticks, 16.0);
    let n = plural(finite().count(), "value");
    let mut svg = open(&format!("{title}: {n} between {} and {}", number(lo), number(hi)));
    svg += &frame.axes(&frame.x.ticks(6), x_label, "count");
    for (bin, n) in bins.into_iter().enumerate().filter(|(_, n)| *n > 0) {
        svg += &bar(&frame, bin, n);
    }
    Some(svg + "</svg>\n")
}

/// Mean, spread and range in words.
pub(super) fn describe(values: &[f64], noun: &str) -> String {
    let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    if finite.is_empty() {
        return format!("{}, none of them finite", plural(values.len(), noun));
    }
    let n = finite.len() as f64;
    let mean = finite.iter().sum::<f64>() / n;
    let deviation = (finite.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    let (lo, hi) = Axis::tight(finite.into_iter()).ends();
    format!(
        "{}: mean {}, standard deviation {}, from {} to {}",
        plural(values.len(), noun),
        number(mean),
        number(deviation),
        number(lo),
        number(hi)
    )
}

fn bins(x: &Axis, values: impl Iterator<Item = f64>) -> [usize; BINS] {
    let mut bins = [0; BINS];
    let unit = x.clone().over(0.0, BINS as f64);
    values.for_each(|v| bins[count(unit.place(v)).min(BINS - 1)] += 1);
    bins
}

fn bar(frame: &Frame, bin: usize, n: usize) -> String {
    let ((left, right), (lo, hi)) = (frame.x.pixels, frame.x.ends());
    let (top, bottom) = (frame.y.place(n as f64), frame.y.pixels.0);
    let edge = |i: usize, from: f64, to: f64| from + (to - from) * i as f64 / BINS as f64;
    let (from, to) = (edge(bin, left, right), edge(bin + 1, left, right));
    let title = format!(
        "{} to {}: {}",
        number(edge(bin, lo, hi)),
        number(edge(bin + 1, lo, hi)),
        fixed(n as f64, 0)
    );
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<rect class=\"bar\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\">\
         <title>{}</title></rect>",
        to - from - 1.0,
        (bottom - top).max(0.8),
        escape(&title)
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_bar() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i) / 999.0).collect();
        let axis = Axis::tight(values.iter().copied());
        assert_eq!(bins(&axis, values.iter().copied()).iter().sum::<usize>(), 1000);
        let svg = histogram("Weights", "weight", &values, None).unwrap();
        assert_eq!(svg.matches("<rect").count(), BINS);
        assert!(svg.contains("aria-label=\"Weights: 1000 values between 0 and 1\""));
    }

    #[test]
    fn a_wanted_range_is_shown_in_full() {
        let svg = histogram("Activity", "mean", &[0.5; 3], Some((0.0, 1.0))).unwrap();
        assert_eq!(svg.matches("<rect").count(), 1);
        assert!(svg.contains(">0.0<") && svg.contains(">1.0<"), "{svg}");
    }

    #[test]
    fn values_that_are_none_are_left_out() {
        assert_eq!(histogram("w", "w", &[f64::NAN], None), None);
        let svg = histogram("w", "w", &[f64::NAN, 2.0], None).unwrap();
        assert!(svg.contains("1 value between"));
        assert_eq!(describe(&[f64::NAN], "weight"), "1 weight, none of them finite");
        let text = describe(&[1.0, 3.0, 5.0], "weight");
        assert_eq!(text, "3 weights: mean 3, standard deviation 1.633, from 1 to 5");
    }
}

//! How one column becomes numbers, and numbers become its cells again.

use super::Cells;
use std::collections::BTreeMap;
use std::fmt;

/// How the cells of a column are written as numbers.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "code", rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum Code {
    /// $z = (f(x) - \text{center}) / \text{scale}$.
    Number {
        /// $f$.
        curve: Curve,
        /// The mean of $f(x)$ in the training table.
        center: f64,
        /// Its standard deviation there.
        scale: f64,
        /// Digits behind the point with which cells are written, at most.
        decimals: usize,
        /// Whether all of them are written, zeros at the end included.
        #[cfg_attr(feature = "serde", serde(default))]
        padded: bool,
    },
    /// The place of the cell's word in a list.
    Level {
        /// The words, in their order; two of them make a bit.
        levels: Vec<String>,
    },
    /// The number itself, a whole one.
    Count {
        /// The largest that the units can hold.
        max: usize,
    },
}

/// The largest value of a unit that counts.
pub(super) const MOST_COUNTED: usize = 1023;

/// What is done to a number before it is centered and scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum Curve {
    /// Nothing.
    Linear,
    /// $\ln x$.
    Log,
    /// $\ln(1 + x)$: where zeros occur.
    Log1p,
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linear => "x",
            Self::Log => "ln x",
            Self::Log1p => "ln(1 + x)",
        })
    }
}

impl Curve {
    /// $f(x)$; nothing where it does not exist.
    pub fn apply(self, x: f64) -> Option<f64> {
        match self {
            Self::Linear => Some(x),
            Self::Log => (x > 0.0).then(|| x.ln()),
            Self::Log1p => (x > -1.0).then(|| x.ln_1p()),
        }
    }

    /// $f^{-1}(y)$; a column that has zeros and nothing below them keeps to that.
    pub fn invert(self, y: f64) -> f64 {
        match self {
            Self::Linear => y,
            Self::Log => y.exp(),
            Self::Log1p => y.exp_m1().max(0.0),
        }
    }

    /// $\ln f'(x)$ where $f(x) = y$.
    fn log_slope(self, y: f64) -> f64 {
        match self {
            Self::Linear => 0.0,
            Self::Log | Self::Log1p => -y,
        }
    }

    /// The logarithm that takes all of these numbers, if one does.
    pub(super) fn logarithm(numbers: &[f64]) -> Option<Self> {
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        if least > 0.0 {
            return Some(Self::Log);
        }
        (least == 0.0).then_some(Self::Log1p)
    }
}

/// Digits behind the point beyond which a cell says more than single precision can.
const MOST_DECIMALS: usize = 6;

impl Code {
    /// A number with the center and the scale of the numbers that a column holds.
    pub(super) fn fit_number(cells: &Cells, curve: Curve) -> Self {
        let values: Vec<f64> =
            cells.iter().flatten().filter_map(number).filter_map(|x| curve.apply(x)).collect();
        let n = values.len().max(1) as f64;
        let center = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - center).powi(2)).sum::<f64>() / n;
        let scale = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        let written: Vec<usize> = cells.iter().flatten().map(decimals).collect();
        let decimals = written.iter().copied().max().unwrap_or(0).min(MOST_DECIMALS);
        // One number of digits everywhere is a format; 5 beside 5.1 is the shortest way to write both.
        let padded = written.iter().all(|d| *d == written[0]) && written.first() == Some(&decimals);
        Self::Number { curve, center, scale, decimals, padded }
    }

    /// Counts with room for half as many again; the largest value is one less than a power of two, so that
    /// columns of about the same size share a layer. Nothing for numbers beyond [`MOST_COUNTED`].
    pub(super) fn fit_counts(cells: &Cells) -> Option<Self> {
        let most = cells.iter().flatten().filter_map(whole).max().unwrap_or(0);
        Some(Self::Count { max: counting_room(most)? })
    }

    /// The words that a column holds: numbers by their size, other words by the alphabet.
    pub(super) fn fit_levels(cells: &Cells) -> Self {
        let mut levels: Vec<&str> = cells.iter().flatten().collect();
        levels.sort_unstable_by(|a, b| match (number(a), number(b)) {
            (Some(x), Some(y)) => x.total_cmp(&y).then_with(|| a.cmp(b)),
            (x, y) => y.is_some().cmp(&x.is_some()).then_with(|| a.cmp(b)),
        });
        levels.dedup();
        Self::Level { levels: levels.into_iter().map(str::to_owned).collect() }
    }

    /// Turns cells to numbers, one after the other.
    pub(super) fn encoder(&self) -> Encoder<'_> {
        match self {
            Self::Number { curve, center, scale, .. } => {
                Encoder::Number { curve: *curve, center: *center, scale: *scale }
            }
            Self::Level { levels } => {
                Encoder::Level { places: levels.iter().map(String::as_str).zip(0..).collect() }
            }
            Self::Count { max } => Encoder::Count { max: *max },
        }
    }

    /// See [`Encoder::encode`].
    #[cfg(test)]
    pub(super) fn encode(&self, cell: &str) -> Option<f64> {
        self.encoder().encode(cell)
    }

    /// $\ln |dz/dx|$ where the number is $z$: what a density in the units of the cells has more than one
    /// of $z$.
    pub(super) fn log_slope(&self, z: f64) -> f64 {
        match self {
            Self::Number { curve, center, scale, .. } => {
                curve.log_slope(center + scale * z) - scale.ln()
            }
            Self::Level { .. } | Self::Count { .. } => 0.0,
        }
    }

    /// The number in the units of the cells; a level is its place.
    pub(super) fn value(&self, z: f64) -> f64 {
        match self {
            Self::Number { curve, center, scale, .. } => curve.invert(center + scale * z),
            Self::Level { .. } | Self::Count { .. } => z,
        }
    }

    /// The cell of a number.
    pub(super) fn decode(&self, z: f64) -> String {
        match self {
            Self::Number { decimals, padded, .. } => {
                let mut text = format!("{:.decimals$}", self.value(z));
                if !padded && text.contains('.') {
                    text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
                }
                // No cell says minus zero.
                let zero = text.starts_with('-') && text[1..].bytes().all(|b| b"0.".contains(&b));
                if zero { text[1..].to_owned() } else { text }
            }
            Self::Count { max } => format!("{:.0}", z.clamp(0.0, *max as f64)),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "rounded and clamped"
            )]
            Self::Level { levels } => {
                let last = levels.len().saturating_sub(1);
                levels.get((z.round().max(0.0) as usize).min(last)).cloned().unwrap_or_default()
            }
        }
    }
}

/// A code made ready for many cells.
pub(super) enum Encoder<'c> {
    Number { curve: Curve, center: f64, scale: f64 },
    Level { places: BTreeMap<&'c str, u32> },
    Count { max: usize },
}

impl Encoder<'_> {
    /// The number of a cell; nothing for a word that the code does not know, or a number that it cannot
    /// take.
    pub(super) fn encode(&self, cell: &str) -> Option<f64> {
        match self {
            Self::Number { curve, center, scale } => {
                let z = (curve.apply(number(cell)?)? - center) / scale;
                // Tables hold 32-bit numbers.
                (z.abs() < f64::from(f32::MAX)).then_some(z)
            }
            Self::Level { places } => places.get(cell.trim()).copied().map(f64::from),
            Self::Count { max } => whole(cell).filter(|k| k <= max).map(|k| k as f64),
        }
    }
}

/// The number in a cell, if it is a finite one.
pub(super) fn number(cell: &str) -> Option<f64> {
    cell.trim().parse().ok().filter(|x: &f64| x.is_finite())
}

/// The whole number from 0 on in a cell.
pub(super) fn whole(cell: &str) -> Option<usize> {
    let x = number(cell).filter(|x| x.fract() == 0.0 && (0.0..1e9).contains(x))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and small")]
    Some(x as usize)
}

/// The largest value of units that count up to `most`: half as many again, rounded up to one less than a power of
/// two. Nothing where that is too many.
pub fn counting_room(most: usize) -> Option<usize> {
    let room = (most + most.div_ceil(2)).max(7);
    let max = (room + 1).next_power_of_two() - 1;
    if max <= MOST_COUNTED { Some(max) } else { (most <= MOST_COUNTED).then_some(MOST_COUNTED) }
}

/// Digits behind the point; none in numbers with an exponent.
fn decimals(cell: &str) -> usize {
    match cell.trim().split_once('.') {
        Some((_, digits)) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(texts: &[&str]) -> Cells {
        texts.iter().map(|t| Some(*t)).collect()
    }

    #[test]
    fn numbers_come_back_with_their_decimals() {
        let shortest = ["5.1", "4.95", "-3", "0.5", "10", "1200"];
        let code = Code::fit_number(&cells(&shortest), Curve::Linear);
        for cell in shortest {
            assert_eq!(code.decode(code.encode(cell).unwrap()), cell);
        }
        let padded = ["5.10", "4.95", "-3.00", "0.50"];
        let code = Code::fit_number(&cells(&padded), Curve::Linear);
        for cell in padded {
            assert_eq!(code.decode(code.encode(cell).unwrap()), cell);
        }
        assert_eq!(code.encode("word"), None);
        assert_eq!(code.encode("1e300"), None, "beyond what tables hold");
        let near = code.encode("-0.001").unwrap();
        assert_eq!(code.decode(near), "0.00", "not minus zero");
        let whole = Code::fit_number(&cells(&["100", "250"]), Curve::Linear);
        assert_eq!(whole.decode(whole.encode("100").unwrap()), "100");
        let long = Code::fit_number(&cells(&["10.357019999999999", "3"]), Curve::Linear);
        assert_eq!(long.decode(long.encode("10.357019999999999").unwrap()), "10.35702");
    }

    #[test]
    fn a_slope_is_that_of_the_code() {
        for curve in [Curve::Linear, Curve::Log, Curve::Log1p] {
            let code = Code::fit_number(&cells(&["1.5", "4.25", "9"]), curve);
            let h = 1e-6;
            for x in [0.7, 2.0, 30.0] {
                let at = |x: f64| code.encode(&format!("{x:.17}")).unwrap();
                let slope = (at(x + h) - at(x - h)) / (2.0 * h);
                let found = code.log_slope(at(x));
                assert!((found - slope.ln()).abs() < 1e-6, "{curve:?} at {x}: {found}");
                assert!((code.value(at(x)) - x).abs() < 1e-9 * x);
            }
        }
    }

    #[test]
    fn levels_are_in_the_order_people_expect() {
        let Code::Level { levels } = Code::fit_levels(&cells(&["10", "b", "9", "a", "9"])) else {
            panic!("levels")
        };
        assert_eq!(levels, ["9", "10", "a", "b"]);
    }
}

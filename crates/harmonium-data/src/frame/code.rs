//! How one column becomes numbers, and numbers become its cells again.

use super::Cells;

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
        /// Digits behind the point with which cells are written.
        decimals: usize,
    },
    /// The place of the cell's word in a list.
    Level {
        /// The words, in their order; two of them make a bit.
        levels: Vec<String>,
    },
}

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

impl Curve {
    /// $f(x)$; nothing where it does not exist.
    pub fn apply(self, x: f64) -> Option<f64> {
        match self {
            Self::Linear => Some(x),
            Self::Log => (x > 0.0).then(|| x.ln()),
            Self::Log1p => (x > -1.0).then(|| x.ln_1p()),
        }
    }

    /// $f^{-1}(y)$.
    pub fn invert(self, y: f64) -> f64 {
        match self {
            Self::Linear => y,
            Self::Log => y.exp(),
            Self::Log1p => y.exp_m1(),
        }
    }

    /// $\ln f'(x)$.
    pub fn log_slope(self, x: f64) -> f64 {
        match self {
            Self::Linear => 0.0,
            Self::Log => -x.ln(),
            Self::Log1p => -x.ln_1p(),
        }
    }
}

/// Digits behind the point beyond which a cell says more than single precision can.
const MOST_DECIMALS: usize = 6;

impl Code {
    /// A number with the center and the scale of the numbers that a column holds.
    pub(super) fn fit_number(cells: &Cells, curve: Curve) -> Self {
        let values: Vec<f64> =
            cells.iter().flatten().filter_map(number).filter_map(|x| curve.apply(x)).collect();
        let n = values.len() as f64;
        let center = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - center).powi(2)).sum::<f64>() / n;
        let scale = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        let decimals = cells.iter().flatten().map(decimals).max().unwrap_or(0).min(MOST_DECIMALS);
        Self::Number { curve, center, scale, decimals }
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

    /// The number of a cell; nothing for a word that the code does not know, or a number that it cannot
    /// take.
    pub(super) fn encode(&self, cell: &str) -> Option<f64> {
        match self {
            Self::Number { curve, center, scale, .. } => {
                let z = (curve.apply(number(cell)?)? - center) / scale;
                z.is_finite().then_some(z)
            }
            Self::Level { levels } => levels.iter().position(|l| l == cell).map(|i| i as f64),
        }
    }

    /// $\ln |dz/dx|$ at a cell: what a density in the units of the cells has more than one of $z$.
    pub(super) fn log_slope(&self, cell: &str) -> f64 {
        match self {
            Self::Number { curve, scale, .. } => {
                number(cell).map_or(0.0, |x| curve.log_slope(x)) - scale.ln()
            }
            Self::Level { .. } => 0.0,
        }
    }

    /// The cell of a number.
    pub(super) fn decode(&self, z: f64) -> String {
        match self {
            Self::Number { curve, center, scale, decimals } => {
                let text = format!("{:.decimals$}", curve.invert(center + scale * z));
                // No cell says minus zero.
                let zero = text.starts_with('-') && text[1..].bytes().all(|b| b"0.".contains(&b));
                if zero { text[1..].to_owned() } else { text }
            }
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

/// The number in a cell, if it is a finite one.
pub(super) fn number(cell: &str) -> Option<f64> {
    cell.trim().parse().ok().filter(|x: &f64| x.is_finite())
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
        let code = Code::fit_number(&cells(&["5.1", "4.95", "-3", "0.5"]), Curve::Linear);
        for cell in ["5.10", "4.95", "-3.00", "0.50"] {
            assert_eq!(code.decode(code.encode(cell).unwrap()), cell);
        }
        assert_eq!(code.encode("word"), None);
        let near = code.encode("-0.001").unwrap();
        assert_eq!(code.decode(near), "0.00", "not minus zero");
    }

    #[test]
    fn a_slope_is_that_of_the_code() {
        for curve in [Curve::Linear, Curve::Log, Curve::Log1p] {
            let code = Code::fit_number(&cells(&["1.5", "4.25", "9"]), curve);
            let h = 1e-6;
            for x in [0.7, 2.0, 30.0] {
                let at = |x: f64| code.encode(&format!("{x:.17}")).unwrap();
                let slope = (at(x + h) - at(x - h)) / (2.0 * h);
                let found = code.log_slope(&x.to_string());
                assert!((found - slope.ln()).abs() < 1e-6, "{curve:?} at {x}: {found}");
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

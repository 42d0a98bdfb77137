//! Numbers as they stand in a sentence.

/// A number with four significant digits.
pub fn number(x: f64) -> String {
    significant(x, 4)
}

/// A number of which only the size matters: two significant digits.
pub fn rough(x: f64) -> String {
    significant(x, 2)
}

fn significant(x: f64, digits: u8) -> String {
    if !x.is_finite() {
        return if x.is_nan() { "not a number" } else { "infinite" }.into();
    }
    let size = x.abs();
    if size == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e7).contains(&size) {
        return scientific(x, usize::from(digits.min(3)) - 1);
    }
    let whole_digits = size.log10().floor() + 1.0;
    let decimals = (f64::from(digits) - whole_digits).clamp(0.0, 7.0);
    without_zeros(&fixed(x, count(decimals)))
}

/// A number with a fixed number of decimals, thousands grouped.
pub fn fixed(x: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", x.abs());
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let zero = digits.bytes().all(|b| matches!(b, b'0' | b'.'));
    let mut text = String::from(if x < 0.0 && !zero { "\u{2212}" } else { "" });
    for (i, digit) in whole.chars().enumerate() {
        // Four digits read well without a comma.
        if i > 0 && whole.len() > 4 && (whole.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

/// A number as a power of ten, with at most this many decimals.
pub fn scientific(x: f64, decimals: usize) -> String {
    let text = format!("{x:.decimals$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e{exponent}", without_zeros(mantissa)).replace('-', "\u{2212}")
}

/// The text without zeros at the end of its decimals.
fn without_zeros(text: &str) -> String {
    if !text.contains('.') {
        return text.into();
    }
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// `1 epoch`, `2 epochs`.
pub fn plural(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", fixed(n as f64, 0), if n == 1 { "" } else { "s" })
}

/// A number with one significant digit, for advice: 0.0333 is 0.03.
pub(super) fn one_digit(x: f64) -> f64 {
    format!("{x:.0e}").parse().unwrap_or(x)
}

/// A small whole number that was computed as a real one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "such casts saturate, and negative numbers become zero"
)]
pub fn count(x: f64) -> usize {
    x as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (x, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (84.213_45, "84.21"),
            (-84.0, "−84"),
            (0.001, "0.001"),
            (0.000_512_3, "0.0005123"),
            (1797.0, "1797"),
            (196_000.4, "196,000"),
            (2.5e-6, "2.5e−6"),
            (-1.0e9, "−1e9"),
            (f64::NAN, "not a number"),
            (f64::INFINITY, "infinite"),
        ] {
            assert_eq!(number(x), text);
        }
        assert_eq!((rough(0.005_859), rough(-123.4)), ("0.0059".into(), "−123".into()));
        assert_eq!(fixed(-0.001, 1), "0.0");
        assert_eq!(fixed(-1_234_567.891, 2), "−1,234,567.89");
        assert_eq!((plural(1, "unit"), plural(20, "unit")), ("1 unit".into(), "20 units".into()));
        assert_eq!((one_digit(0.033_3), one_digit(38.0)), (0.03, 40.0));
    }
}

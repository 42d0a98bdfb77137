//! Text, numbers and bytes as they stand in a page.

use std::fmt::Write as _;

/// The text with every character that means something to HTML written out.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() && !c.is_whitespace() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Escaped text in which what stands between backticks is code.
pub(super) fn prose(text: &str) -> String {
    let mut parts = escape(text).split('`').map(String::from).collect::<Vec<_>>();
    if parts.len().is_multiple_of(2) {
        return escape(text);
    }
    for code in parts.iter_mut().skip(1).step_by(2) {
        *code = format!("<code>{code}</code>");
    }
    parts.concat()
}

/// A number with four significant digits, for people.
pub(super) fn number(x: f64) -> String {
    significant(x, 4)
}

/// A number of which only the size matters: two significant digits.
pub(super) fn rough(x: f64) -> String {
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
    fixed(x, count(decimals)).trim_decimals()
}

/// A number with so many decimals, thousands grouped.
pub(super) fn fixed(x: f64, decimals: usize) -> String {
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

/// A number as a power of ten, with at most so many decimals.
pub(super) fn scientific(x: f64, decimals: usize) -> String {
    let text = format!("{x:.decimals$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = mantissa.to_owned().trim_decimals();
    format!("{mantissa}e{exponent}").replace('-', "\u{2212}")
}

trait TrimDecimals {
    /// The text without zeros at the end of its decimals.
    fn trim_decimals(self) -> Self;
}

impl TrimDecimals for String {
    fn trim_decimals(self) -> Self {
        if !self.contains('.') {
            return self;
        }
        self.trim_end_matches('0').trim_end_matches('.').into()
    }
}

/// A small whole number that was computed as a real one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "such casts saturate, and negative numbers become zero"
)]
pub(super) fn count(x: f64) -> usize {
    x as usize
}

/// `1 epoch`, `2 epochs`.
pub(super) fn plural(n: usize, noun: &str) -> String {
    format!("{} {noun}{}", fixed(n as f64, 0), if n == 1 { "" } else { "s" })
}

/// Bytes as base64 (RFC 4648, section 4): six bits a character, padded with `=`.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let six = (bits >> (18 - 6 * i)) & 63;
            text.push(if i <= group.len() { char::from(ALPHABET[six as usize]) } else { '=' });
        }
    }
    text
}

/// A table of two columns.
pub(super) fn table(rows: &[(String, String)]) -> String {
    let mut html = String::from("<table>\n");
    for (name, value) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
            escape(name),
            escape(value)
        );
    }
    html + "</table>\n"
}

/// A drawing or picture under its title and caption.
pub(super) fn figure(title: &str, caption: &str, content: &str) -> String {
    let (title, caption) = (escape(title), escape(caption));
    format!("<figure><figcaption><b>{title}</b>{caption}</figcaption>\n{content}</figure>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(
            escape("<b a=\"1\" c='2'>&amp;"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;"
        );
        assert_eq!(escape("a\u{0}b\nc"), "a\u{fffd}b\nc");
        assert_eq!(prose("use `--k <5>`, & go"), "use <code>--k &lt;5&gt;</code>, &amp; go");
        assert_eq!(prose("a lone ` stays"), "a lone ` stays");
    }

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
    }

    #[test]
    fn base64_follows_the_standard() {
        // The test vectors of RFC 4648, section 10.
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[255, 254, 253]), "//79");
    }
}

//! Text, numbers and bytes as they stand in a page.

pub(super) use harmonium::findings::words::{count, fixed, number, plural, scientific};

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

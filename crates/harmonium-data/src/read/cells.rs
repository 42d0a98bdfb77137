//! The cells of a line.
//!
//! Lines are cut here and not by a CSV library so that every error can name the line that the
//! reader of the file sees, whatever blank lines, comments and line ends came before it. The
//! price: a quoted cell cannot go on in the next line, which no table of numbers needs.

/// The cells of one line, in one buffer.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Cells {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, cell: usize) -> Option<&[u8]> {
        let end = *self.ends.get(cell)?;
        let start = cell.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.text[start..end])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|cell| self.get(cell))
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Takes the last cell away if nothing is in it.
    pub(crate) fn drop_empty_end(&mut self) {
        if self.iter().last().is_some_and(<[u8]>::is_empty) {
            self.ends.pop();
        }
    }

    /// Cuts a line at runs of blanks and tabs.
    pub(crate) fn cut_at_blanks(&mut self, line: &[u8]) {
        self.clear();
        for cell in line.split(u8::is_ascii_whitespace).filter(|cell| !cell.is_empty()) {
            self.text.extend_from_slice(cell);
            self.ends.push(self.text.len());
        }
    }

    /// Cuts a line at each delimiter outside quotes; `""` inside quotes is a quote.
    pub(crate) fn cut_at(&mut self, line: &[u8], delimiter: u8) {
        self.clear();
        let mut rest = line;
        loop {
            let (cell, after) = match trim(rest, delimiter) {
                [b'"', inner @ ..] if self.take_quoted(inner).is_some() => {
                    let used = quoted_length(inner).unwrap_or(inner.len());
                    (&b""[..], &inner[used..])
                }
                other => (other, other),
            };
            let end = after.iter().position(|&b| b == delimiter);
            let until = end.unwrap_or(after.len());
            if !cell.is_empty() {
                self.text.extend_from_slice(cell[..until].trim_ascii_end());
            }
            self.ends.push(self.text.len());
            match end {
                Some(end) => rest = &after[end + 1..],
                None => return,
            }
        }
    }

    /// Takes over what stands before the closing quote, if there is one.
    fn take_quoted(&mut self, inner: &[u8]) -> Option<()> {
        let length = quoted_length(inner)?;
        let mut quotes = 0;
        for &b in &inner[..length - 1] {
            quotes = if b == b'"' { quotes + 1 } else { 0 };
            if quotes % 2 == 0 {
                self.text.push(b);
            }
        }
        Some(())
    }
}

/// Without leading blanks, which a tab is not where it cuts.
fn trim(text: &[u8], delimiter: u8) -> &[u8] {
    let blank = |b: &u8| b.is_ascii_whitespace() && *b != delimiter;
    let start = text.iter().position(|b| !blank(b)).unwrap_or(text.len());
    &text[start..]
}

/// Bytes up to and with the closing quote; `None` if it is missing.
fn quoted_length(inner: &[u8]) -> Option<usize> {
    let mut place = 0;
    loop {
        place += inner[place..].iter().position(|&b| b == b'"')?;
        if inner.get(place + 1) != Some(&b'"') {
            return Some(place + 1);
        }
        place += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(line: &str, delimiter: u8) -> Vec<String> {
        let mut cells = Cells::default();
        cells.cut_at(line.as_bytes(), delimiter);
        cells.iter().map(|c| String::from_utf8_lossy(c).into_owned()).collect()
    }

    #[test]
    fn cells_are_cut_outside_quotes() {
        assert_eq!(cut("1, 2 ,3", b','), ["1", "2", "3"]);
        assert_eq!(cut("", b','), [""]);
        assert_eq!(cut(",", b','), ["", ""]);
        assert_eq!(cut("\"a,b\", \"c\"\"d\" ,e", b','), ["a,b", "c\"d", "e"]);
        assert_eq!(cut("\"\"\"\",\"\"", b','), ["\"", ""]);
        assert_eq!(cut("\"open,2", b','), ["\"open", "2"]);
        assert_eq!(cut("1\t\t 3", b'\t'), ["1", "", "3"]);
        assert_eq!(cut("it\"s;2", b';'), ["it\"s", "2"]);
    }
}

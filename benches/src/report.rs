//! What a bench is asked, and what it prints: a table on stdout, and the same as JSON on request.

use crate::{Fallible, Outcome, machine};
use serde_json::{Value, json};
use std::iter::Peekable;
use std::path::PathBuf;
use std::str::FromStr;

/// Where the JSON goes.
#[derive(Debug, PartialEq)]
pub(crate) enum Json {
    No,
    /// On stdout, in place of the table.
    Stdout,
    /// In a file, besides the table.
    File(PathBuf),
}

impl Json {
    /// What follows `--json`: a file, or nothing.
    pub(crate) fn parse<'a>(words: &mut Peekable<impl Iterator<Item = &'a str>>) -> Self {
        words
            .next_if(|next| !next.starts_with("--"))
            .map_or(Self::Stdout, |file| Self::File(file.into()))
    }
}

/// What was typed after the name of a bench.
pub(crate) struct Flags {
    usage: &'static str,
    json: Json,
    switches: Vec<String>,
    values: Vec<(String, String)>,
}

impl Flags {
    /// Reads flags that stand in `usage`: with a capital word after them they take a value.
    pub(crate) fn parse(words: &[&str], usage: &'static str) -> Fallible<Self> {
        let mut flags = Self { usage, json: Json::No, switches: Vec::new(), values: Vec::new() };
        let mut words = words.iter().copied().peekable();
        while let Some(word) = words.next() {
            if word == "--json" {
                flags.json = Json::parse(&mut words);
            } else if usage.contains(&format!("[{word}]")) {
                flags.switches.push(word.into());
            } else if word.starts_with("--") && usage.contains(&format!("[{word} ")) {
                let value = words.next().ok_or(format!("{word} needs a value\n{usage}"))?;
                flags.values.push((word.into(), value.into()));
            } else {
                return Err(format!("`{word}` is not known\n{usage}").into());
            }
        }
        Ok(flags)
    }

    /// Whether a switch was given.
    pub(crate) fn has(&self, switch: &str) -> bool {
        self.switches.iter().any(|s| s == switch)
    }

    /// The values given after `flag`, separated by commas, or `default`.
    pub(crate) fn list<T: FromStr + Clone>(&self, flag: &str, default: &[T]) -> Fallible<Vec<T>> {
        let Some((_, text)) = self.values.iter().rfind(|(f, _)| f == flag) else {
            return Ok(default.to_vec());
        };
        let read = |word: &str| {
            word.parse().map_err(|_| format!("{flag} cannot be `{word}`\n{}", self.usage).into())
        };
        text.split(',').map(read).collect()
    }

    /// The report these flags ask for.
    pub(crate) fn report(&mut self, bench: &'static str) -> Report {
        Report { bench, json: std::mem::replace(&mut self.json, Json::No), rows: Vec::new() }
    }
}

/// A table under way.
pub(crate) struct Report {
    bench: &'static str,
    json: Json,
    rows: Vec<Value>,
}

impl Report {
    /// A line of the table without a number in the JSON.
    pub(crate) fn say(&self, line: &str) {
        if self.json != Json::Stdout {
            println!("{line}");
        }
    }

    /// A line of the table, shown at once, and what it says.
    pub(crate) fn row(&mut self, line: &str, value: Value) {
        self.say(line);
        self.rows.push(value);
    }

    /// Adds the notes and the machine, and writes the JSON where it was wanted.
    pub(crate) fn finish(self, notes: &[&str]) -> Outcome {
        let machine = machine::describe();
        self.say("");
        notes.iter().for_each(|note| self.say(note));
        self.say(machine::as_text(&machine).trim_end());
        let object =
            json!({ "bench": self.bench, "machine": machine, "notes": notes, "rows": self.rows });
        match self.json {
            Json::No => {}
            Json::Stdout => println!("{object}"),
            Json::File(file) => std::fs::write(file, format!("{object:#}\n"))?,
        }
        Ok(())
    }
}

/// A ratio, with a mark where the library is the slower one.
pub(crate) fn times(ratio: f64) -> String {
    if ratio < 0.995 { format!("!{ratio:.2}x") } else { format!("{ratio:.2}x") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: &str = "usage: bench [--quick] [--batch N,…] [--json [FILE]]";

    #[test]
    fn flags_are_those_of_the_usage() {
        let flags = Flags::parse(&["--batch", "1,20", "--quick", "--json"], USAGE).expect("known");
        assert!(flags.has("--quick") && flags.json == Json::Stdout);
        assert_eq!(flags.list("--batch", &[7_usize]).expect("numbers"), [1, 20]);
        let flags = Flags::parse(&["--json", "x.json"], USAGE).expect("known");
        assert_eq!(flags.json, Json::File("x.json".into()));
        assert_eq!(flags.list("--batch", &[7_usize]).expect("numbers"), [7]);
        for words in [&["--fast"][..], &["--batch"], &["quick"]] {
            assert!(Flags::parse(words, USAGE).is_err(), "{words:?}");
        }
        let words = Flags::parse(&["--batch", "many"], USAGE).expect("known");
        assert!(words.list("--batch", &[7_usize]).is_err());
    }

    #[test]
    fn what_is_slower_is_marked() {
        assert_eq!((times(0.99), times(1.5)), ("!0.99x".into(), "1.50x".into()));
    }
}

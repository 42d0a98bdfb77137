//! A page of the documentation: which commands it shows, and which of its figures they print.
//!
//! Marks are comments of HTML, which readers do not see:
//!
//! - `<!--run NAME-->` before a block of code: its commands are run, one after the other;
//!   `<!--run NAME long-->` if they take more than two minutes, `quick` if they take a second or two.
//!   Commands that the text need not show stand in the mark itself, a line each.
//! - `<!--shown: WHY-->` before a block that cannot be run here.
//! - `<!--data FOLDER …-->`: the files of these folders of the shared data lie where the commands run.
//! - A number followed by `<!--=NAME.key-->` is that key of the JSON which the last command of NAME prints;
//!   followed by `<!--=NAME"words"2-->` it is the second number on the first line that has these words,
//!   and by `<!--=NAME"words"2-5max-->` the largest (or `min`, the least) of the second to the fifth.
//!   `"one > two"` is the first line with `two` after one with `one`.

use std::ops::Range;

/// How long a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Quick,
    Normal,
    Long,
}

/// Commands that are run one after the other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) class: Class,
    pub(crate) commands: Vec<String>,
}

/// Where a printed number is found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A path through a JSON object.
    Key(Vec<String>),
    /// A number on the first line with these words.
    Line(String, Pick),
}

/// Which of the numbers on a line, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    Nth(usize),
    Least(usize, usize),
    Largest(usize, usize),
}

impl Pick {
    fn of(text: &str) -> Option<Self> {
        let number = |text: &str| text.parse().ok().filter(|&n: &usize| n > 0);
        let range = |text: &str| {
            let (first, last) = text.split_once('-')?;
            Some((number(first)?, number(last)?)).filter(|(first, last)| first <= last)
        };
        match (text.strip_suffix("min"), text.strip_suffix("max")) {
            (Some(text), _) => range(text).map(|(first, last)| Self::Least(first, last)),
            (_, Some(text)) => range(text).map(|(first, last)| Self::Largest(first, last)),
            _ => number(text).map(Self::Nth),
        }
    }
}

/// A number on the page, and what it should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Figure {
    pub(crate) line: usize,
    pub(crate) span: Range<usize>,
    pub(crate) run: String,
    pub(crate) place: Place,
}

/// The marks of a page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) runs: Vec<Run>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) data: Vec<String>,
    /// What is wrong with the marks.
    pub(crate) wrong: Vec<String>,
}

/// What the last mark says about the block that follows it.
enum Next {
    Run(String, Class),
    Shown,
}

impl Page {
    pub(crate) fn of(text: &str) -> Self {
        let mut page = Self::default();
        let (mut at, mut next) = (0, None);
        while let Some(found) = text[at..].find(['`', '<']).map(|i| at + i) {
            let rest = &text[found..];
            let line = 1 + text[..found].matches('\n').count();
            if rest.starts_with("```") && (found == 0 || text[..found].ends_with('\n')) {
                let body = rest.find('\n').map_or(text.len(), |i| found + i + 1);
                let end = text[body..].find("\n```").map_or(text.len(), |i| body + i + 1);
                page.block(line, &text[body..end], next.take());
                at = text.len().min(end + 3);
            } else if rest.starts_with("<!--") {
                let end = rest.find("-->").map_or(text.len(), |i| found + i);
                let mark = text[found + 4..end].trim();
                if let Some(words) = mark.strip_prefix('=') {
                    page.figure(line, number_before(text, found), words);
                } else if let Some(said) = page.mark(line, mark) {
                    next = Some(said);
                }
                at = text.len().min(end + 3);
            } else {
                at = found + 1;
            }
        }
        page.check();
        page
    }

    fn wrong(&mut self, line: usize, what: &str) {
        self.wrong.push(format!("line {line}: {what}"));
    }

    /// A block of code: every command in one must be run, or say why it is not.
    fn block(&mut self, line: usize, body: &str, next: Option<Next>) {
        let commands = commands(body);
        let ours =
            |command: &String| ["harmonium ", "cargo "].iter().any(|p| command.starts_with(p));
        match next {
            Some(Next::Run(name, class)) => self.runs.push(Run { name, class, commands }),
            None if commands.iter().any(ours) => {
                self.wrong(line, "these commands are neither run nor said to be shown only");
            }
            Some(Next::Shown) | None => {}
        }
    }

    /// Takes up a mark; gives back what it says about the block that follows.
    fn mark(&mut self, line: usize, mark: &str) -> Option<Next> {
        let (head, body) = mark.split_once('\n').unwrap_or((mark, ""));
        let words: Vec<&str> = head.split_whitespace().collect();
        match words[..] {
            ["shown:", _, ..] => Some(Next::Shown),
            ["data", ref folders @ ..] => {
                self.data.extend(folders.iter().map(ToString::to_string));
                None
            }
            ["run", name, ref class @ ..] => {
                let class = match class {
                    [] => Class::Normal,
                    ["quick"] => Class::Quick,
                    ["long"] => Class::Long,
                    _ => {
                        self.wrong(line, &format!("`{head}`: a run is quick, long or neither"));
                        return None;
                    }
                };
                if body.is_empty() {
                    return Some(Next::Run(name.into(), class));
                }
                self.runs.push(Run { name: name.into(), class, commands: commands(body) });
                None
            }
            _ => {
                self.wrong(line, &format!("`{head}` is not a mark"));
                None
            }
        }
    }

    fn figure(&mut self, line: usize, span: Option<Range<usize>>, words: &str) {
        let place = words.split_once(['.', '"']).and_then(|(run, rest)| {
            let place = match rest.rsplit_once('"') {
                None => Place::Key(rest.split('.').map(str::to_string).collect()),
                Some((text, pick)) => Place::Line(text.into(), Pick::of(pick)?),
            };
            Some((run.to_string(), place))
        });
        match (span, place) {
            (Some(span), Some((run, place))) => {
                self.figures.push(Figure { line, span, run, place });
            }
            (None, _) => self.wrong(line, &format!("no number stands before `={words}`")),
            (_, None) => self.wrong(line, &format!("`={words}` names no place in an output")),
        }
    }

    /// Names are unique, and figures name runs.
    fn check(&mut self) {
        for (i, run) in self.runs.iter().enumerate() {
            if self.runs[..i].iter().any(|other| other.name == run.name) {
                self.wrong.push(format!("two runs are called `{}`", run.name));
            }
            if run.commands.is_empty() {
                self.wrong.push(format!("run `{}` has no commands", run.name));
            }
        }
        for figure in &self.figures {
            if !self.runs.iter().any(|run| run.name == figure.run) {
                self.wrong.push(format!("line {}: no run is called `{}`", figure.line, figure.run));
            }
        }
    }
}

/// The number that ends before `end`, bold or in percent, with its sign.
fn number_before(text: &str, end: usize) -> Option<Range<usize>> {
    let end = text[..end].trim_end_matches(['*', '%', ' ', '`']).len();
    let digits = text[..end].trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let start = digits.strip_suffix(['−', '-']).unwrap_or(digits).len();
    text[digits.len()..end].parse::<f64>().ok().map(|_| start..end)
}

/// The lines of a shell script: comments left out, continued lines joined.
fn commands(script: &str) -> Vec<String> {
    let joined = script.replace("\\\n", " ");
    let plain = joined.lines().map(|line| match line.split_once(" #") {
        Some((command, _)) => command,
        None if line.starts_with('#') => "",
        None => line,
    });
    let words = plain.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    words.filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read() {
        let text = "<!--data mnist-->\n<!--run a quick-->\n```sh\nharmonium x \\\n    --y  # why\n```\n\
                    It is **−1.25**<!--=a.log_z-->, 99 %<!--=b\"two words\"3-->.\n\
                    <!--run b long\nharmonium z\ncargo xtask q\n-->\n<!--shown: why not-->\n```\nharmonium w\n```\n";
        let page = Page::of(text);
        assert_eq!(page.wrong, [""; 0]);
        assert_eq!(page.data, ["mnist"]);
        let run = |name: &str, class, commands: &[&str]| {
            let commands = commands.iter().map(ToString::to_string).collect();
            Run { name: name.into(), class, commands }
        };
        let b = run("b", Class::Long, &["harmonium z", "cargo xtask q"]);
        assert_eq!(page.runs, [run("a", Class::Quick, &["harmonium x --y"]), b]);
        assert_eq!(&text[page.figures[0].span.clone()], "−1.25");
        assert_eq!(page.figures[0].place, Place::Key(vec!["log_z".into()]));
        assert_eq!(&text[page.figures[1].span.clone()], "99");
        assert_eq!(page.figures[1].place, Place::Line("two words".into(), Pick::Nth(3)));
    }

    #[test]
    fn numbers_are_picked() {
        assert_eq!(Pick::of("2-5max"), Some(Pick::Largest(2, 5)));
        assert_eq!(Pick::of("2-2min"), Some(Pick::Least(2, 2)));
        for wrong in ["", "0", "max", "5-2max", "2-5", "x"] {
            assert_eq!(Pick::of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |text: &str| Page::of(text).wrong.join(" ");
        assert!(wrong("```sh\nharmonium x\n```\n").contains("neither run nor"));
        assert_eq!(wrong("```sh\nls\n```\n"), "");
        assert!(wrong("a <!--=b.c-->").contains("no number"));
        assert!(wrong("1 <!--=b.c-->").contains("no run is called `b`"));
        assert!(wrong("1 <!--=b-->").contains("names no place"));
        assert!(wrong("<!--walk b-->").contains("not a mark"));
        assert!(wrong("<!--run b slow-->").contains("quick, long or neither"));
        assert!(wrong("<!--run b\nx\n--><!--run b\ny\n-->").contains("two runs"));
    }
}

//! The documentation says what the program prints.
//!
//! Every page is read for marks (`page`), its commands are run in a clean folder (`run`), and every
//! figure with a mark is compared with what was printed. The test runs what takes a second or two;
//! `cargo xtask reproduce docs` runs the rest, `--long` also what takes more than two minutes, and
//! `--write` puts what was printed onto the page.

#![cfg(unix)]
#![expect(clippy::print_stdout, reason = "says what was run")]

mod page;
mod run;

use page::{Class, Page};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How much is run, from `HARMONIUM_DOCS`: `all` or `long`, with `write` to mend the pages.
struct Asked {
    slowest: Class,
    write: bool,
    pages: Vec<String>,
}

impl Asked {
    fn from_environment() -> Self {
        let words = std::env::var("HARMONIUM_DOCS").unwrap_or_default();
        let pages = std::env::var("HARMONIUM_DOCS_PAGES").unwrap_or_default();
        let slowest = match &words {
            words if words.contains("long") => Class::Long,
            words if words.contains("all") => Class::Normal,
            _ => Class::Quick,
        };
        let pages = pages.split_whitespace().map(str::to_string).collect();
        Self { slowest, write: words.contains("write"), pages }
    }

    fn wants(&self, page: &Path) -> bool {
        let name = page.display().to_string();
        self.pages.is_empty() || self.pages.iter().any(|part| name.contains(part))
    }
}

/// README and everything below `docs`, in order.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![run::root().join("README.md")];
    let mut folders = vec![run::root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of pages") {
            let path = entry.expect("a page").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// Figures that agree, that could not be compared because their commands were not run, and
/// sentences about those that differ.
#[derive(Default)]
struct Tally {
    agree: usize,
    not_run: usize,
    differ: Vec<String>,
}

fn check(path: &Path, asked: &Asked, tally: &mut Tally) {
    let mut text = std::fs::read_to_string(path).expect("a page");
    let page = Page::of(&text);
    let name = path.strip_prefix(run::root()).unwrap_or(path).display().to_string();
    tally.differ.extend(page.wrong.iter().map(|wrong| format!("{name}: {wrong}")));
    let wanted = |class: Class| class <= asked.slowest;
    let mut outputs = BTreeMap::new();
    if page.runs.iter().any(|run| wanted(run.class)) {
        println!("{name}");
        let Some(folder) = run::clean_folder(&page.data) else {
            println!("  skipped: {} not found in ../shared/data", page.data.join(", "));
            return;
        };
        for run in page.runs.iter().filter(|run| wanted(run.class)) {
            match run::output(run, folder.path()) {
                Ok(output) => drop(outputs.insert(run.name.as_str(), output)),
                Err(error) => tally.differ.push(format!("{name}: run `{}`: {error}", run.name)),
            }
        }
    }
    let mut changes = Vec::new();
    for figure in &page.figures {
        let Some(output) = outputs.get(figure.run.as_str()) else {
            tally.not_run += 1;
            continue;
        };
        let written = &text[figure.span.clone()];
        match run::number_at(output, &figure.place).map(|value| run::written_like(value, written)) {
            Some(printed) if printed == written => tally.agree += 1,
            Some(printed) => {
                let run = &figure.run;
                let said = format!(
                    "{name}:{}: {written} is written, {printed} printed by `{run}`",
                    figure.line
                );
                if asked.write {
                    println!("  {said}: rewritten");
                } else {
                    tally.differ.push(said);
                }
                changes.push((figure.span.clone(), printed));
            }
            None => tally.differ.push(format!(
                "{name}:{}: `{}` prints nothing at {:?}",
                figure.line, figure.run, figure.place
            )),
        }
    }
    if asked.write && !changes.is_empty() {
        for (span, printed) in changes.into_iter().rev() {
            text.replace_range(span, &printed);
        }
        std::fs::write(path, text).expect("the page can be written");
    }
}

#[test]
fn pages_say_what_is_printed() {
    let asked = Asked::from_environment();
    let mut tally = Tally::default();
    for page in pages().iter().filter(|page| asked.wants(page)) {
        check(page, &asked, &mut tally);
    }
    let Tally { agree, not_run, differ } = tally;
    println!("{agree} figures agree, {} differ or fail, {not_run} were not run", differ.len());
    assert!(differ.is_empty(), "\n{}", differ.join("\n"));
    assert!(agree > 0 || !asked.pages.is_empty(), "no figure was compared");
}

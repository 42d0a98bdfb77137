//! Runs the commands of a page in a clean folder, and finds numbers in what they print.

use crate::page::{Pick, Place, Run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The root of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder with nothing in it but links to the files of `data`. `None` if some of them are missing.
pub(crate) fn clean_folder(data: &[String]) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    for name in data {
        for entry in std::fs::read_dir(root().join("../shared/data").join(name)).ok()? {
            let path = entry.ok()?.path().canonicalize().ok()?;
            let link = folder.path().join(path.file_name()?);
            std::os::unix::fs::symlink(&path, link).ok()?;
        }
    }
    Some(folder)
}

/// Runs the commands in `folder` and gives back what the last of them prints.
pub(crate) fn output(run: &Run, folder: &Path) -> Result<String, String> {
    let mut last = String::new();
    for command in &run.commands {
        let start = Instant::now();
        let done = shell(command, folder).output().map_err(|e| format!("`{command}`: {e}"))?;
        println!("  {:6.1} s  {command}", start.elapsed().as_secs_f64());
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(format!("`{command}` fails: {}", said.trim()));
        }
        last = String::from_utf8_lossy(&done.stdout).into_owned();
    }
    Ok(last)
}

/// A shell that runs a command in the folder, with our program as `harmonium`; the project's chores run
/// where the project is.
fn shell(command: &str, folder: &Path) -> Command {
    let ours = std::env::var("HARMONIUM_PROGRAM");
    let ours = ours.unwrap_or_else(|_| env!("CARGO_BIN_EXE_harmonium").into());
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("harmonium() {{ \"{ours}\" \"$@\"; }}\n{command}")]);
    let chore = command.starts_with("cargo ");
    shell.current_dir(if chore { root() } else { folder.to_owned() }).env("NO_COLOR", "1");
    shell
}

/// The number at a place of an output.
pub(crate) fn number_at(output: &str, place: &Place) -> Option<f64> {
    match place {
        Place::Key(path) => {
            let object: Value = serde_json::from_str(output.trim()).ok()?;
            inside(&object, path)?.as_f64()
        }
        Place::Line(words, pick) => {
            let mut lines = output.lines();
            let mut find = |words: &str| lines.find(|line| line.contains(words));
            let line = words.split(" > ").map(&mut find).last()??;
            let numbers = numbers(line);
            let range = |first: usize, last: usize| numbers.get(first - 1..last);
            match *pick {
                Pick::Nth(n) => numbers.get(n - 1).copied(),
                Pick::Least(first, last) => range(first, last)?.iter().copied().reduce(f64::min),
                Pick::Largest(first, last) => range(first, last)?.iter().copied().reduce(f64::max),
            }
        }
    }
}

/// What stands at a path through JSON. Keys may have dots in them, so the longest that fits is taken.
fn inside<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    if path.is_empty() {
        return Some(value);
    }
    let step = |n: usize| {
        let key = path[..n].join(".");
        let next = key.parse::<usize>().map_or_else(|_| value.get(&key), |n| value.get(n));
        inside(next?, &path[n..])
    };
    (1..=path.len()).rev().find_map(step)
}

/// The numbers on a line, in their order.
fn numbers(line: &str) -> Vec<f64> {
    let plain = line.replace('−', "-");
    let part = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let words = plain.split(|c: char| !part(c));
    words.filter_map(|word| word.trim_end_matches(['.', '-']).parse().ok()).collect()
}

/// A number as it is written on a page: with the decimals and the minus of `written`.
pub(crate) fn written_like(value: f64, written: &str) -> String {
    let decimals = written.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(digits) if digits.chars().all(|c| c == '0' || c == '.') => digits.into(),
        Some(digits) if !written.starts_with('-') => format!("−{digits}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found() {
        let key = |path: &[&str]| Place::Key(path.iter().map(ToString::to_string).collect());
        assert_eq!(number_at("{\"a\": {\"b\": [1, -2.5]}}\n", &key(&["a", "b", "1"])), Some(-2.5));
        assert_eq!(number_at("{\"a\": null}", &key(&["a"])), None);
        assert_eq!(number_at("{\"a.b\": 3}", &key(&["a", "b"])), Some(3.0));
        let text = "nothing\nln Z = −12.50 ± 0.1 (exact)\n";
        let at = |words: &str, pick| number_at(text, &Place::Line(words.into(), pick));
        assert_eq!(at("ln Z", Pick::Nth(1)), Some(-12.5));
        assert_eq!(at("ln Z", Pick::Nth(2)), Some(0.1));
        assert_eq!(at("ln Z", Pick::Nth(3)), None);
        assert_eq!(at("nothing > ln Z", Pick::Largest(1, 2)), Some(0.1));
        assert_eq!(at("nothing > ln Z", Pick::Least(1, 2)), Some(-12.5));
        assert_eq!(at("ln Z > nothing", Pick::Nth(1)), None, "it comes before");
        assert_eq!(at("ln Z", Pick::Least(2, 3)), None);
        assert_eq!(numbers("between -3 and 4.5, 8x9"), [-3.0, 4.5, 8.0, 9.0]);
    }

    #[test]
    fn numbers_are_written_as_they_stand() {
        assert_eq!(written_like(-1.256, "−1.25"), "−1.26");
        assert_eq!(written_like(-1.256, "-1.2"), "-1.3");
        assert_eq!(written_like(7.5001, "8.12"), "7.50");
        assert_eq!(written_like(-0.001, "0.12"), "0.00");
        assert_eq!(written_like(41.6, "40"), "42");
    }
}

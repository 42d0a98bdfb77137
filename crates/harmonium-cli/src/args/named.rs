//! Flags that carry the name of a modality: `--variable image=images`, `--hidden tags=200`.
//!
//! Names are those that `--modality`, `--given`, `--query` and `--among` declare. A reading flag whose value begins with one of
//! them and `=` holds for that modality alone; before clap reads the line it becomes `--reading-of NAME:FLAG=VALUE`.

use harmonium_data::check_name;
use std::ffi::OsString;

/// Flags that declare names.
const DECLARING: [&str; 4] = ["--modality", "--given", "--query", "--among"];
/// Reading flags that may carry a name.
const READING: [&str; 10] = [
    "--variable",
    "--columns",
    "--label-column",
    "--packed-bits",
    "--binarize",
    "--full-scale",
    "--image",
    "--kind",
    "--rows",
    "--names",
];
/// Reading flags without a value of their own, of which a name may be one.
const SWITCHES: [&str; 3] = ["--transpose", "--invert", "--no-labels"];

/// A flag with its value.
struct Flag<'a> {
    name: &'a str,
    value: &'a str,
    /// Whether the value is an argument of its own.
    apart: bool,
}

fn flag(args: &[String], at: usize) -> Option<Flag<'_>> {
    let arg = args[at].as_str();
    if let Some((name, value)) = arg.split_once('=').filter(|(name, _)| name.starts_with("--")) {
        return Some(Flag { name, value, apart: false });
    }
    let value = args.get(at + 1)?.as_str();
    arg.starts_with("--").then_some(Flag { name: arg, value, apart: true })
}

/// The line as clap reads it.
pub(super) fn rewritten(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let args: Vec<OsString> = args.collect();
    // What is not text holds no name.
    let texts: Option<Vec<String>> = args.iter().map(|a| a.to_str().map(str::to_owned)).collect();
    let Some(texts) = texts else { return args };
    let mut names: Vec<&str> = Vec::new();
    for at in 0..texts.len() {
        let declared = flag(&texts, at).filter(|f| DECLARING.contains(&f.name));
        let name = declared.and_then(|f| f.value.split_once('=')).map(|(name, _)| name);
        names.extend(name.filter(|name| check_name(name).is_ok()));
    }
    if names.is_empty() {
        return args;
    }
    let mut line = Vec::new();
    let mut at = 0;
    while at < texts.len() {
        let found = flag(&texts, at).and_then(|f| Some((named(&f, &names)?, f.apart)));
        if let Some((own, apart)) = found {
            line.extend(own.map(OsString::from));
            at += if apart { 2 } else { 1 };
        } else {
            line.push(args[at].clone());
            at += 1;
        }
    }
    line
}

/// A flag that carries a name, as clap reads it.
fn named(flag: &Flag<'_>, names: &[&str]) -> Option<[String; 2]> {
    let word = flag.name.trim_start_matches("--");
    if SWITCHES.contains(&flag.name) && !flag.apart && names.contains(&flag.value) {
        return Some(["--reading-of".into(), format!("{}:{word}=true", flag.value)]);
    }
    let (name, value) = flag.value.split_once('=')?;
    if !names.contains(&name) {
        return None;
    }
    if flag.name == "--hidden" {
        return Some(["--pathway".into(), flag.value.to_owned()]);
    }
    READING.contains(&flag.name).then(|| ["--reading-of".into(), format!("{name}:{word}={value}")])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        let args = text.split(' ').map(OsString::from);
        let line: Vec<String> =
            rewritten(args).into_iter().map(|a| a.into_string().unwrap()).collect();
        line.join(" ")
    }

    #[test]
    fn flags_of_a_modality_are_told_from_those_of_all() {
        assert_eq!(
            line(
                "h --modality image=a.npz --modality tags=a.npz --variable image=x --hidden image=5,4 --rows s=0"
            ),
            "h --modality image=a.npz --modality tags=a.npz --reading-of image:variable=x --pathway image=5,4 --rows s=0"
        );
        assert_eq!(
            line("h --given=tags=t.npy --packed-bits=tags=449 --transpose=tags --invert"),
            "h --given=tags=t.npy --reading-of tags:packed-bits=449 --reading-of tags:transpose=true --invert"
        );
    }

    #[test]
    fn other_lines_stay_as_they_are() {
        for text in ["h train rbm d --hidden 5 --kind a=gaussian", "h --given a.b=c --rows a.b=c"] {
            assert_eq!(line(text), text);
        }
    }
}

//! `infer` on the real binary: methods side by side, evidence, files of results, and words for what cannot be.

use assert_cmd::Command;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn run(folder: &Path, line: &str) -> (i32, String, String) {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let output = command.args(line.split_whitespace()).current_dir(folder).output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn json(folder: &Path, line: &str) -> Value {
    let (code, out, err) = run(folder, &format!("{line} --json"));
    assert_eq!(code, 0, "{line}: {err}");
    serde_json::from_str(&out).expect("one JSON object on stdout")
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("`{key}` is not a number in {value}"))
}

fn answer<'v>(found: &'v Value, method: &str) -> &'v Value {
    let answers = found["answers"].as_array().expect("a list");
    answers.iter().find(|a| a["method"] == method).expect("every method answers")
}

fn refuses(folder: &Path, line: &str, words: &str, hint: &str) {
    let (code, out, err) = run(folder, line);
    assert_eq!(code, 2, "{line}: {out}");
    assert!(err.contains(words), "`{words}` is not in: {err}");
    let said = err.split("hint: ").nth(1).unwrap_or_default();
    assert!(said.contains(hint), "`{hint}` is not in: {said}");
}

/// A file of the shared data, unless that folder is absent.
fn shared(file: &str) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !folder.is_dir() {
        eprintln!("SKIPPED: ../shared/data is absent");
        return None;
    }
    Some(folder.join(file))
}

#[test]
fn all_methods_stand_side_by_side() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let found = json(at, "infer ising:4,0.2 --method all --betas 50 --chains 50");
    let exact = number(answer(&found, "exact"), "log_z");
    assert!((exact - 11.771_470).abs() < 1e-6, "{exact}");
    assert_eq!((&found["method"], &found["bound"]), (&"exact".into(), &"exact".into()));
    assert!((number(answer(&found, "junction-tree"), "log_z") - exact).abs() < 1e-9);
    let (trw, lower) = (answer(&found, "trw"), answer(&found, "mean-field"));
    assert_eq!((&trw["bound"], &lower["bound"]), (&"upper".into(), &"lower".into()));
    assert!(number(trw, "log_z") >= exact && number(lower, "log_z") <= exact);
    for method in ["bp", "tap", "gibbs"] {
        assert!(number(answer(&found, method), "largest_error") < 0.05, "{method}");
    }
    assert!(answer(&found, "gibbs")["log_z"].is_null());
    assert!(answer(&found, "ais")["largest_error"].is_null());
    assert!(number(answer(&found, "ais"), "lower") < exact + 0.5);
    let (code, out, _) = run(at, "infer ising:4,0.2 --method all --betas 50 --chains 50");
    assert_eq!(code, 0);
    for words in
        ["method", "junction-tree", "trust ln Z of exact", "one fixed point", "lower", "upper"]
    {
        assert!(out.contains(words), "`{words}` is not in:\n{out}");
    }
    // Strong couplings of both signs: what does not converge says so, and the rest answers.
    fs::write(at.join("glass.uai"), glass()).expect("written");
    let found = json(at, "infer glass.uai --method all --betas 50 --chains 50");
    for method in ["bp", "tap"] {
        let answer = answer(&found, method);
        assert!(answer["log_z"].is_null() && answer["converged"] == false, "{answer}");
        assert!(answer["error"].as_str().expect("words").contains("does not converge"), "{answer}");
    }
    refuses(at, "infer glass.uai --method tap", "TAP does not converge", "many weak couplings");
    refuses(
        at,
        "infer glass.uai --method bp",
        "belief propagation does not converge",
        "junction-tree",
    );
}

/// A torus of 6×6 with strong couplings and fields of both signs.
fn glass() -> String {
    let n = 6;
    let mut scopes = String::new();
    let mut tables = String::new();
    let mut seed = 12_345_u64;
    let mut noise = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as f64 / f64::from(1_u32 << 31) - 0.5
    };
    for u in 0..n * n {
        let (r, c) = (u / n, u % n);
        for v in [(r + 1) % n * n + c, r * n + (c + 1) % n] {
            let _ = writeln!(scopes, "2 {u} {v}");
            let e = (20.0 * noise()).exp();
            let _ = writeln!(tables, "4 {e} 1 1 {e}");
        }
    }
    for u in 0..n * n {
        let _ = writeln!(scopes, "1 {u}");
        let _ = writeln!(tables, "2 1 {}", (4.0 * noise()).exp());
    }
    format!("MARKOV {} {} {}\n{scopes}{tables}", n * n, "2 ".repeat(n * n), 3 * n * n)
}

#[test]
fn evidence_is_given_by_number_and_by_name() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    fs::write(at.join("a.evid"), "2  0 1  5 0").expect("written");
    let by_file = json(at, "infer ising:4,0.4 --evidence a.evid");
    let by_name = json(at, "infer ising:4,0.4 --where visible[0]=1 --where visible[5]=-1");
    let by_both = json(at, "infer ising:4,0.4 --where visible[0]=1 --evidence a.evid");
    let free = number(&json(at, "infer ising:4,0.4"), "log_z");
    for found in [&by_file, &by_name, &by_both] {
        assert_eq!(found["n_units"], 14);
        assert_eq!(found["log_z"], by_file["log_z"]);
        assert_eq!(found["units"], by_file["units"]);
        let log_evidence = number(found, "log_z") - free;
        assert!((number(found, "log_evidence") - log_evidence).abs() < 1e-9);
    }
    fs::write(at.join("row.csv"), "1,,,,,-1,,,,,,,,,,\n").expect("written");
    let by_row = json(at, "infer ising:4,0.4 --given row.csv");
    assert_eq!(by_row["log_z"], by_file["log_z"]);
    for (line, words, hint) in [
        (
            "--where visible[99]=1",
            "no unit `visible[99]`; it has visible[0] to visible[15]",
            "inspect",
        ),
        ("--where visible[0]=2", "`visible[0]` cannot be `2`: it takes -1 or 1", "spins"),
        ("--where visible[0]", "UNIT=VALUE", "--help"),
        ("--where visible[0]=1 --where visible[0]=-1", "its probability is 0", "one value"),
        ("--evidence a.evid --where visible[5]=1", "given as 1 and as 0", "one value"),
        ("--evidence none.evid", "none.evid", "spelling"),
    ] {
        refuses(at, &format!("infer ising:4,0.4 {line}"), words, hint);
    }
    fs::write(at.join("b.evid"), "1 16 0").expect("written");
    refuses(
        at,
        "infer ising:4,0.4 --evidence b.evid",
        "no variable 16; it has 16 variables",
        "visible[3]",
    );
    fs::write(at.join("c.evid"), "1 3 2").expect("written");
    refuses(at, "infer ising:4,0.4 --evidence c.evid", "variable 3 cannot be 2", "numbered from 0");
    fs::write(at.join("d.evid"), "2 3 1 3 0").expect("written");
    refuses(at, "infer ising:4,0.4 --evidence d.evid", "its probability is 0", "one value");
    fs::write(at.join("two.csv"), "1,,,,,-1,,,,,,,,,,\n1,,,,,-1,,,,,,,,,,\n").expect("written");
    refuses(at, "infer ising:4,0.4 --given two.csv", "has 2 rows", "one row");
}

#[test]
fn results_are_written_as_their_endings_say() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let line = "infer ising:3,0.4 --where visible[0]=1 --map --out a.PR --out a.MAR --out a.MAP --marginals m.csv --pairs p.csv";
    let found = json(at, line);
    let read = |name: &str| fs::read_to_string(at.join(name)).expect("it is there");
    let pr: f64 = read("a.PR").strip_prefix("PR\n").expect("its name").trim().parse().expect("it");
    assert!((pr * std::f64::consts::LN_10 - number(&found, "log_z")).abs() < 1e-9);
    let mar = read("a.MAR");
    assert!(mar.starts_with("MAR\n9 2 0 1 2 "), "what is given is certain: {mar}");
    assert_eq!(mar.split_whitespace().count(), 2 + 9 * 3);
    assert_eq!(read("a.MAP"), "MAP\n9 1 1 1 1 1 1 1 1 1\n", "a ferromagnet follows");
    let map = &found["map"];
    assert_eq!((&map["proved"], &map["method"]), (&true.into(), &"exact".into()));
    assert!((number(map, "energy") + 18.0 * 0.4).abs() < 1e-12, "{map}");
    let csv = read("m.csv");
    assert!(csv.starts_with("unit,value,probability\nvisible[1],-1,"), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 8 * 2);
    let sum: f64 =
        csv.lines().skip(1).filter_map(|l| l.rsplit(',').next()?.parse::<f64>().ok()).sum();
    assert!((sum - 8.0).abs() < 1e-9);
    assert_eq!(read("p.csv").lines().count(), 1 + 14 * 4, "bonds between free units");
    refuses(at, line, "is there already", "--force");
    assert_eq!(json(at, &format!("{line} --force"))["log_z"], found["log_z"]);
    refuses(at, "infer ising:3,0.4 --marginals m.txt", "no ending", ".csv or .MAR");
    refuses(at, "infer ising:3,0.4 --out m.txt", "no ending", ".PR, .MAR or .MAP");
    refuses(
        at,
        "infer ising:3,0.4 --method gibbs --pairs q.csv",
        "no probabilities of pairs",
        "junction-tree",
    );
    let found = json(at, "infer ising:3,0.4 --method gibbs --marginals g.csv");
    assert!(read("g.csv").starts_with("unit,value,probability,std_error\n"), "{found}");
}

#[test]
fn what_is_too_wide_says_what_it_would_take() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let line = "infer ising:40,0.5,0.1 --method junction-tree";
    refuses(at, line, "these 1600 units would need a table of", "mean-field");
    refuses(at, "infer ising:40,0.5,0.1 --method exact", "terms", "ais");
    refuses(
        at,
        "infer ising:8,0.5 --method junction-tree --memory 1kB",
        "junction tree",
        "--memory",
    );
    refuses(at, "infer ising:8,0.5 --memory many", "is not a size", "2GB");
    refuses(at, "infer ising:4,0.5 --map-method exact", "--map", "");
    // Within less memory, the same.
    let whole = json(at, "infer ising:5x60,0.3,0.1 --method junction-tree");
    let less = json(at, "infer ising:5x60,0.3,0.1 --method junction-tree --memory 2MB");
    assert_eq!(answer(&less, "junction-tree")["recomputed"], true);
    assert_eq!(answer(&whole, "junction-tree")["recomputed"], false);
    assert!(number(answer(&less, "junction-tree"), "bytes") <= 2e6);
    assert_eq!((&whole["log_z"], &whole["units"]), (&less["log_z"], &less["units"]));
}

#[test]
fn parts_that_do_not_see_each_other_are_independent() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let text = "MARKOV 5 2 2 2 2 2 4  2 0 1  2 3 4  1 2  1 0\n4 1 2 3 4  4 5 1 1 2  2 1 3  2 1 2\n";
    fs::write(at.join("apart.uai"), text).expect("written");
    let found = json(at, "infer apart.uai --method all --betas 50 --chains 50");
    let exact = ((1.0 + 2.0 + 2.0 * (3.0 + 4.0)) * 9.0 * 4.0_f64).ln();
    for method in ["exact", "junction-tree", "bp", "trw"] {
        let log_z = number(answer(&found, method), "log_z");
        assert!((log_z - exact).abs() < 1e-9, "{method}: {log_z}, not {exact}");
    }
    assert_eq!(answer(&found, "bp")["bound"], "exact", "a forest");
}

#[test]
fn marginals_of_the_competition_are_reproduced() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    for name in ["uai-grids/Grids_12.uai", "uai-grids/Segmentation_12.uai"] {
        let Some(path) = shared(name) else { return };
        let path = path.display();
        let line =
            format!("infer {path} --evidence {path}.evid --out a.MAR --out a.PR --force --quiet");
        let (code, _, err) = run(at, &line);
        assert_eq!(code, 0, "{err}");
        let numbers = |file: &str| -> Vec<f64> {
            let text = fs::read_to_string(file).expect("it is there");
            text.split_whitespace().filter_map(|w| w.parse().ok()).collect()
        };
        let (found, expected) =
            (numbers(&at.join("a.MAR").display().to_string()), numbers(&format!("{path}.MAR")));
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-6, "{name}: {found}, not {expected}");
        }
    }
}

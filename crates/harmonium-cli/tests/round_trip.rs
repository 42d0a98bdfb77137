//! A thousand sampled rows of a mixed table: kinds, words, decimals and marginals are those of the table.

use assert_cmd::Command;
use std::fmt::Write;
use std::path::Path;
use tempfile::TempDir;

const DRAWN: usize = 1000;

fn run(folder: &Path, line: &str) -> String {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let words = line.split(' ').chain(["--quiet", "--json"]);
    let output = command.args(words).current_dir(folder).output().expect("it runs");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it speaks UTF-8")
}

fn cells(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).expect("written");
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// A number below `n` that depends on its place alone.
fn scattered(place: usize, n: usize) -> usize {
    let mut x = (place as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) % n as u64) as usize
}

/// Birds of three kinds: a length in tenths that depends on the kind, a flag that does too, a colour that does not, and a
/// lopsided mass. A few cells are missing.
fn birds(n: usize) -> String {
    let mut text = String::from("kind,length,at night,colour,mass\n");
    for i in 0..n {
        let kind = [0, 0, 0, 1, 1, 2][scattered(10 * i, 6)];
        let noise = |k: usize| {
            (0..6).map(|j| scattered(1000 * i + 10 * k + j, 100) as f64).sum::<f64>() / 100.0 - 3.0
        };
        let length = 20.0 + 6.0 * kind as f64 + 1.5 * noise(1);
        let night = if scattered(10 * i + 1, 10) < [1, 5, 8][kind] { "True" } else { "False" };
        let colour = ["brown", "grey", "white", "black"][scattered(10 * i + 2, 7) / 2];
        let mass = (0.8 * noise(2) + 5.0).exp();
        let length = if i % 17 == 3 { "NA".to_owned() } else { format!("{length:.1}") };
        let _ =
            writeln!(text, "{},{length},{night},{colour},{mass:.0}", ["owl", "duck", "gull"][kind]);
    }
    text
}

/// Mean and variance.
fn moments(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n)
}

#[test]
fn a_thousand_sampled_rows_are_like_those_of_the_table() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("birds.csv"), birds(600)).expect("written");
    run(
        at,
        "train rbm birds.csv --hidden 10 --epochs 150 --learning-rate 0.02 --k 5 --chains 500 --out r",
    );
    run(at, &format!("sample r --n {DRAWN} --out drawn.csv --seed 5"));
    let (table, drawn) = (cells(&at.join("birds.csv")), cells(&at.join("drawn.csv")));
    assert_eq!((table[0].clone(), drawn.len()), (drawn[0].clone(), DRAWN + 1));
    for column in [0, 2, 3] {
        let mut words: Vec<&String> = table[1..].iter().map(|row| &row[column]).collect();
        words.sort_unstable();
        words.dedup();
        assert!(drawn[1..].iter().all(|row| words.contains(&&row[column])), "column {column}");
        for word in words {
            let share = |rows: &[Vec<String>]| {
                rows.iter().filter(|row| row[column] == *word).count() as f64 / rows.len() as f64
            };
            let (p, found) = (share(&table[1..]), share(&drawn[1..]));
            // Of the rows of both: the table is a sample as well.
            let error = (p * (1.0 - p) * (1.0 / 600.0 + 1.0 / DRAWN as f64)).sqrt();
            let off = (found - p) / error;
            assert!(off.abs() < 4.0, "`{word}`: {found} is {off:.1} standard errors from {p}");
        }
    }
    for (column, decimals) in [(1, 1), (4, 0)] {
        let numbers = |rows: &[Vec<String>]| {
            let seen = rows.iter().filter(|row| row[column] != "NA");
            moments(seen.map(|row| row[column].parse().expect("a number")))
        };
        let written = |cell: &str| cell.split_once('.').map_or(0, |(_, after)| after.len());
        assert!(drawn[1..].iter().all(|row| written(&row[column]) == decimals), "column {column}");
        let ((m, v), (found, w)) = (numbers(&table[1..]), numbers(&drawn[1..]));
        let off = (found - m) / (v / 600.0 + w / DRAWN as f64).sqrt();
        assert!(off.abs() < 4.0, "{found} is {off:.1} standard errors from {m}");
        assert!((w / v).ln().abs() < 0.5, "variances {w} and {v}");
    }
}

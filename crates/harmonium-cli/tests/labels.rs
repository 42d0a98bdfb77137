//! Models with labels through the real binary: where labels come from, and what they are good for.

#![expect(clippy::format_collect, reason = "small files for tests")]

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn said(folder: &Path, line: &str) -> (i32, String, String) {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let output = command.args(line.split_whitespace()).current_dir(folder).output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// What a command says as JSON, and its notes.
fn heard(folder: &Path, line: &str) -> (Value, String) {
    let (code, out, err) = said(folder, &format!("{line} --json"));
    assert_eq!(code, 0, "{line}: {err}");
    (serde_json::from_str(&out).expect("one JSON object on stdout"), err)
}

fn json(folder: &Path, line: &str) -> Value {
    heard(folder, line).0
}

fn refused(folder: &Path, line: &str, words: &str) {
    let (code, out, err) = said(folder, line);
    assert_eq!((code, out.as_str()), (2, ""), "{line}: {err}");
    assert!(err.contains("error: ") && err.contains("\nhint: "), "{line}: {err}");
    assert!(err.contains(words) && !err.contains("panicked"), "{line}: {err}");
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).expect("written").lines().map(str::to_owned).collect()
}

/// Height and width of a PNG file.
fn size(path: &Path) -> (u32, u32) {
    let bytes = fs::read(path).expect("written");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (number(20), number(16))
}

/// Bars (the first half) and stripes of 3×3, with a class for each row.
fn classes() -> Vec<&'static str> {
    (0..16).map(|row| if row < 8 { "bar" } else { "stripe" }).collect()
}

/// A folder with bars and stripes as a table with and without a column of classes, and a file of labels.
fn files() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    json(path, "convert bars-and-stripes:3 plain.csv");
    let rows = lines(&path.join("plain.csv"));
    let header: String = (0..9).map(|c| format!("p{c},")).collect();
    let table: String =
        rows.iter().zip(classes()).map(|(row, class)| format!("{row},{class}\n")).collect();
    let named = format!("{header}kind\n{table}");
    fs::write(path.join("named.csv"), named).expect("it can be written");
    let labels: String = classes().iter().map(|class| format!("{class}\n")).collect();
    fs::write(path.join("labels.csv"), &labels).expect("it can be written");
    fs::write(path.join("headed.csv"), format!("kind\n{labels}")).expect("it can be written");
    folder
}

const LEARN: &str = "--epochs 1000 --batch 4 --learning-rate 0.1";

fn rate(value: &Value) -> f64 {
    value["error_rate"].as_f64().expect("a rate")
}

#[test]
fn a_column_of_labels_is_learned_and_used_everywhere() {
    let folder = files();
    let path = folder.path();
    let line = format!("train rbm named.csv --hidden 12 {LEARN}");
    let (_, notes) = heard(path, &format!("{line} --label-column kind --out r"));
    assert!(notes.contains("2 classes") && notes.contains("column `kind`"), "{notes}");
    json(path, &format!("{line} --label-column -1 --out numbered"));
    json(path, &format!("train rbm plain.csv --hidden 12 {LEARN} --labels labels.csv --out filed"));
    let seen = json(path, "inspect r");
    assert_eq!(seen["classes"], serde_json::json!(["bar", "stripe"]), "{seen}");

    // The model remembers its column; a table without it has no labels.
    let found = json(path, "classify r named.csv --out c.csv");
    assert_eq!((&found["n"], &found["method"]), (&16.into(), &"exact".into()));
    // Two patterns are bars as well as stripes, each in two copies.
    assert!(rate(&found) <= 0.25, "{found}");
    assert!(found["std_error"].as_f64().is_some());
    let confusion = found["confusion"][0].as_array().expect("a row");
    assert_eq!(confusion.iter().filter_map(Value::as_u64).sum::<u64>(), 8);
    let written = lines(&path.join("c.csv"));
    assert_eq!((written.len(), written[0].as_str()), (17, "class,bar,stripe"));
    assert!(written[1..].iter().all(|l| l.starts_with("bar,0.") || l.starts_with("stripe,0.")));
    let (bare, notes) = heard(path, "classify r plain.csv --out p.npy");
    assert!(bare["error_rate"].is_null() && notes.contains("has no labels"), "{bare} {notes}");
    assert_eq!(bare["predicted"], found["predicted"]);
    for model in ["numbered", "filed"] {
        let again = json(path, &format!("classify {model} plain.csv --labels labels.csv"));
        assert_eq!(again["confusion"], found["confusion"], "{model}");
    }

    // With labels the joint likelihood is scored, without them they are summed out.
    let nats = |line: &str| json(path, line)["log_likelihood"].as_f64().expect("nats");
    let joint = nats("score r named.csv");
    let alone = nats("score r plain.csv");
    assert!(joint < alone, "{joint} {alone}");
    assert!((nats("score r named.csv --no-labels") - alone).abs() < 1e-12);
    assert!((nats("score r plain.csv --labels labels.csv") - joint).abs() < 1e-12);
    // The same numbers, whatever way the labels took.
    assert!((nats("score filed plain.csv --labels labels.csv") - joint).abs() < 1e-12);

    // A model without labels leaves the column out, and says so.
    json(path, &format!("train rbm plain.csv --hidden 12 {LEARN} --out u"));
    let (_, notes) = heard(path, "score u named.csv --label-column kind");
    assert!(notes.contains("learned no labels") && notes.contains("left out"), "{notes}");
    refused(path, "classify u plain.csv", "learned no labels");
    refused(path, "sample u --class bar --out x.csv", "no class");
}

#[test]
fn completing_fills_labels_by_their_names() {
    let folder = files();
    let path = folder.path();
    json(path, &format!("train rbm named.csv --label-column kind --hidden 12 {LEARN} --out r"));
    let found = json(path, "complete r plain.csv --out f.csv");
    assert_eq!(found["classes"], serde_json::json!(["bar", "stripe"]));
    assert_eq!(found["missing"], 16);
    json(path, "classify r plain.csv --out c.csv");
    let (filled, classes) = (lines(&path.join("f.csv")), lines(&path.join("c.csv")));
    for (row, line) in filled.iter().enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let expected: Vec<&str> = classes[row + 1].split(',').collect();
        assert_eq!((cells.len(), &cells[9..]), (11, &expected[1..]));
    }
    let (_, out, _) = said(path, "complete r plain.csv --out g.csv");
    assert!(out.contains("bar, stripe"), "{out}");
    // With labels known there is nothing left to fill.
    assert_eq!(json(path, "complete r named.csv --out h.csv")["missing"], 0);
    assert_eq!(json(path, "complete r plain.csv --labels labels.csv --out i.csv")["missing"], 0);
}

#[test]
fn every_kind_of_model_draws_and_tells_classes() {
    let folder = files();
    let path = folder.path();
    let of = |model: &str, flags: &str| format!("train {model} digits --labelled {flags}");
    let small = "--epochs 2 --quiet";
    for (model, flags) in [
        ("rbm", "--hidden 16"),
        ("dbm", "--hidden 16,8"),
        ("dbn", "--hidden 16,8"),
        ("bm", "--hidden 8 --lateral hidden"),
    ] {
        json(path, &format!("{} {small} --out {model}", of(model, flags)));
        let line = format!("sample {model} --class 7 --n 9 --sweeps 20");
        json(path, &format!("{line} --out {model}.png"));
        // Nine pictures of 8×8, three to a row, seven times as large, with lines between.
        let (height, width) = size(&path.join(format!("{model}.png")));
        assert!(height == width && height > 3 * 8 * 6, "{model}: {height}x{width}");
        refused(path, &format!("sample {model} --class seven --out x.png"), "0, 1, 2");
        json(path, &format!("complete {model} digits --no-labels --out {model}-c.png"));
        let (height, width) = size(&path.join(format!("{model}-c.png")));
        assert!(width < 2 * height && height < 2 * width, "{model}: {height}x{width}");
        let found = json(path, &format!("classify {model} digits"));
        assert_eq!(found["classes"].as_array().map(Vec::len), Some(10), "{model}");
        assert_eq!(found["n"], 1797);
        assert!((0.0..1.0).contains(&rate(&found)), "{model}: {found}");
    }
    refused(path, "sample rbm --class 11 --out x.csv", "0, 1, 2");
    refused(path, "train rbm digits --label-column -1 --hidden 4 --out x", "--labelled");
    refused(path, "train rbm shifter --labelled --hidden 4 --out x", "holds none");
    refused(path, "classify rbm digits --method recognition", "deep belief network");
    refused(path, "classify rbm digits --out x.png", "cannot be drawn");
}

#[test]
fn labels_of_the_digits_are_taken_only_when_asked_for() {
    let folder = files();
    let path = folder.path();
    json(path, "train rbm digits --hidden 4 --epochs 1 --out plain");
    assert_eq!(json(path, "inspect plain")["layers"].as_array().map(Vec::len), Some(2));
    json(path, "train rbm digits --labelled --hidden 4 --epochs 1 --out r");
    assert_eq!(json(path, "inspect r")["layers"].as_array().map(Vec::len), Some(3));
    // Resuming keeps the flag, and another one is refused.
    fs::remove_file(path.join("r/model.safetensors")).expect("it was there");
    json(path, "train rbm --out r --resume");
    refused(path, "train rbm --out plain --labelled --resume", "labelled");
}

#[test]
fn folders_are_classes() {
    let folder = files();
    let path = folder.path();
    // A picture for each pattern, in the folder of its class.
    let rows = lines(&path.join("plain.csv"));
    for (row, class) in classes().iter().enumerate() {
        fs::create_dir_all(path.join("all").join(class)).expect("a folder");
        fs::create_dir_all(path.join("flat")).expect("a folder");
        let bits: Vec<u8> = rows[row].split(',').map(|c| if c == "1" { 255 } else { 0 }).collect();
        for file in [path.join("all").join(class), path.join("flat")] {
            fs::write(file.join(format!("{row}.png")), picture(&bits)).expect("it can be written");
        }
    }
    let line = format!("train rbm all --hidden 12 {LEARN}");
    let (_, notes) = heard(path, &format!("{line} --valid all --out r"));
    assert!(notes.contains("2 classes") && notes.contains("names of the folders"), "{notes}");
    assert!(rate(&json(path, "classify r all")) <= 0.25);
    assert!(json(path, "classify r flat")["error_rate"].is_null());
    json(path, "sample r --class stripe --n 4 --sweeps 50 --out s.png");
    let (height, width) = size(&path.join("s.png"));
    assert_eq!(height, width);
    json(path, &format!("{line} --no-labels --out u"));
    assert_eq!(json(path, "inspect u")["layers"].as_array().map(Vec::len), Some(2));
}

#[test]
fn validation_rows_have_labels_or_sum_them_out() {
    let folder = files();
    let path = folder.path();
    let line = "train rbm named.csv --label-column kind --hidden 6 --epochs 5 --batch 4";
    // The result is the best validated model.
    let best = |run: &str| {
        let events = fs::read_to_string(path.join(run).join("events.jsonl")).expect("written");
        let events = events.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok());
        let scores = events.filter_map(|event| find(&event, "log_likelihood.valid"));
        scores.reduce(f64::max).expect("a validated epoch")
    };
    json(path, &format!("{line} --valid named.csv --out same"));
    json(path, &format!("{line} --valid plain.csv --valid-labels labels.csv --out given"));
    assert!(tensors(path, "same") == tensors(path, "given"), "the same rows, the same model");
    let text = String::from_utf8_lossy(&model(path, "given")).into_owned();
    assert!(!text.contains("labels.csv"), "no paths in a model");
    let (_, notes) = heard(path, &format!("{line} --valid plain.csv --out without"));
    assert!(notes.contains("summed out"), "{notes}");
    for (run, score) in [
        ("same", "score same named.csv"),
        ("given", "score given named.csv"),
        ("without", "score without plain.csv"),
    ] {
        let nats = json(path, score)["log_likelihood"].as_f64().expect("nats");
        let found = best(run);
        // While it learns, rows are multiplied in the numbers that the engine learns in.
        assert!((nats - found).abs() < 1e-4, "{run}: {nats} {found}");
    }
    refused(path, &format!("{line} --valid-labels labels.csv --out x"), "no validation data");
    fs::write(path.join("odd.csv"), "bar\n".repeat(15) + "dot\n").expect("it can be written");
    refused(path, &format!("{line} --valid plain.csv --valid-labels odd.csv --out x"), "`dot`");
}

fn model(path: &Path, run: &str) -> Vec<u8> {
    fs::read(path.join(run).join("model.safetensors")).expect("a model")
}

/// The parameters in a model file, behind its header.
fn tensors(path: &Path, run: &str) -> Vec<u8> {
    let bytes = model(path, run);
    let header = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    bytes[8 + usize::try_from(header).expect("a short header")..].to_vec()
}

/// The number behind a key, however deep it stands.
fn find(value: &Value, key: &str) -> Option<f64> {
    match value {
        Value::Object(map) => map
            .get(key)
            .and_then(|v| v.as_f64().or_else(|| v["value"].as_f64()))
            .or_else(|| map.values().find_map(|v| find(v, key))),
        Value::Array(list) => list.iter().find_map(|v| find(v, key)),
        _ => None,
    }
}

#[test]
fn a_header_over_words_is_not_a_label() {
    let folder = files();
    let path = folder.path();
    let line = "train rbm plain.csv --hidden 6 --epochs 2 --batch 4";
    let (_, notes) = heard(path, &format!("{line} --labels headed.csv --out r"));
    assert!(notes.contains("`kind`, was taken as a header"), "{notes}");
    json(path, &format!("{line} --labels labels.csv --out s"));
    assert_eq!(json(path, "inspect r")["classes"], serde_json::json!(["bar", "stripe"]));
    fs::write(path.join("short.csv"), "bar\nstripe\n").expect("it can be written");
    refused(path, &format!("{line} --labels short.csv --out x"), "2 labels for 16 rows");
}

/// A grey picture of 3×3 as a PNG file, stored without compression.
fn picture(pixels: &[u8]) -> Vec<u8> {
    let chunk = |kind: &[u8], data: &[u8]| {
        let body = [kind, data].concat();
        let length = u32::try_from(data.len()).expect("short").to_be_bytes();
        [&length[..], &body, &crc(&body).to_be_bytes()].concat()
    };
    let raw: Vec<u8> = pixels.chunks(3).flat_map(|row| [&[0], row].concat()).collect();
    let n = u16::try_from(raw.len()).expect("short");
    let (a, b) = raw.iter().fold((1_u32, 0_u32), |(a, b), &x| {
        let a = (a + u32::from(x)) % 65521;
        (a, (b + a) % 65521)
    });
    let zlib = [
        &[0x78, 1, 1][..],
        &n.to_le_bytes(),
        &(!n).to_le_bytes(),
        &raw,
        &(b << 16 | a).to_be_bytes(),
    ]
    .concat();
    let header = [&3_u32.to_be_bytes()[..], &3_u32.to_be_bytes(), &[8, 0, 0, 0, 0]].concat();
    let chunks = [chunk(b"IHDR", &header), chunk(b"IDAT", &zlib), chunk(b"IEND", b"")].concat();
    [&b"\x89PNG\r\n\x1a\n"[..], &chunks].concat()
}

fn crc(bytes: &[u8]) -> u32 {
    let step = |c: u32, _| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 };
    !bytes.iter().fold(u32::MAX, |c, &b| (0..8).fold(c ^ u32::from(b), step))
}

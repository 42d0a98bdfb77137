//! The commands of the contract on the real binary, and what they say to bad input.

#![expect(clippy::format_collect, reason = "small files for tests")]

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{}", self.err);
        serde_json::from_str(&self.out).expect("one JSON object on stdout")
    }

    /// Fails unless it went well and said `words`.
    fn says(&self, words: &str) {
        assert_eq!(self.code, 0, "{}", self.err);
        assert!(self.out.contains(words), "`{words}` is not in: {}", self.out);
    }

    /// Fails unless this is an error of our form that contains `words`.
    fn refuses(&self, words: &str) {
        assert_eq!((self.code, self.out.as_str()), (2, ""), "{}", self.err);
        assert!(self.err.contains("error: ") && self.err.contains("\nhint: "), "{}", self.err);
        assert!(self.err.contains(words), "`{words}` is not in: {}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }
}

fn harmonium(folder: &Path, line: &str) -> Said {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let output =
        command.args(line.split_whitespace()).current_dir(folder).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    Said {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// A folder with a small trained run in `r`.
fn trained() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let said = harmonium(
        folder.path(),
        "train rbm bars-and-stripes:3 --hidden 6 --epochs 200 --out r --json",
    );
    let value = said.json();
    assert_eq!((value["run"].as_str(), value["epochs"].as_u64()), (Some("r"), Some(200)));
    assert!(value["seconds"].is_number() && value["log_likelihood.train"].is_number(), "{value}");
    folder
}

fn file(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}

#[test]
fn diagnostics_of_chains_and_samples() {
    let folder = trained();
    let at = folder.path();
    harmonium(at, "sample r --n 100 --sweeps 50 --out test.npy").says("100 samples");
    let line =
        "inspect r --diagnostics --data test.npy --train bars-and-stripes:3 --chains 8 --sweeps 60";
    let all = harmonium(at, &format!("{line} --json")).json();
    assert_eq!(all["parameters"].as_u64(), Some(69));
    let found = &all["diagnostics"];
    assert_eq!((found["chains"].as_u64(), found["sweeps"].as_u64()), (Some(8), Some(60)));
    let scalars = found["scalars"].as_array().expect("a list");
    let names: Vec<&str> = scalars.iter().filter_map(|s| s["name"].as_str()).collect();
    let expected =
        ["energy", "activity of `visible`", "activity of `hidden`", "direction 1", "direction 2"];
    assert_eq!(names, expected);
    for scalar in scalars {
        for key in ["mean", "std_error", "autocorrelation_time", "effective_samples", "r_hat"] {
            assert!(scalar[key].is_number(), "{key}: {scalar}");
        }
    }
    let tempering = &found["tempering"];
    assert_eq!(tempering["swap_rates"].as_array().map(Vec::len), Some(19));
    let two = &found["two_sample"];
    assert_eq!((two["n_generated"].as_u64(), two["n_held_out"].as_u64()), (Some(100), Some(100)));
    assert_eq!(two["memorisation"]["n_train"].as_u64(), Some(16));
    // Data and samples are of one model, and there are only few patterns to be near to.
    assert_eq!(two["memorisation"]["alarm"].as_bool(), Some(false));
    let (accuracy, error) = (&two["adversarial"]["accuracy"], &two["adversarial"]["std_error"]);
    let off = accuracy.as_f64().expect("a number") - 0.5;
    assert!(off.abs() < 5.0 * error.as_f64().expect("a number"), "{two}");
    let same = harmonium(at, &format!("{line} --json --threads 2")).json();
    assert_eq!(same, all, "threads change nothing");
    let said = harmonium(at, line);
    for words in ["R-hat", "temperatures", "neighbours tell", "privacy loss", "69 parameters"] {
        said.says(words);
    }
    let seen = line.replace("test.npy", "bars-and-stripes:3");
    harmonium(at, &seen).says("worry: 100 % of the held-out rows are training rows too");
    harmonium(at, "report r").says("report.html");
    let page = fs::read_to_string(file(&folder, "r/report.html")).expect("it is there");
    assert!(page.contains("Do chains mix?") && page.contains("effective samples"));
    assert!(harmonium(at, "inspect r --json").json()["diagnostics"].is_null());
    for (line, words) in [
        ("inspect r --diagnostics --chains 1", "--chains 1"),
        ("inspect r --diagnostics --sweeps 3", "--sweeps 3"),
        ("inspect r --data test.npy", "--diagnostics"),
        ("inspect r --diagnostics --train test.npy", "--data"),
        ("inspect r --diagnostics --data digits --sweeps 8 --chains 2", "columns"),
    ] {
        harmonium(at, line).refuses(words);
    }
}

#[test]
fn a_day_of_work() {
    let folder = trained();
    let at = folder.path();
    let score = harmonium(at, "score r bars-and-stripes:3 --json").json();
    assert_eq!((score["method"].as_str(), score["n"].as_u64()), (Some("exact"), Some(16)));
    for key in ["log_likelihood", "std_error", "data_std_error", "lower", "upper"] {
        assert!(score[key].is_number(), "{key}: {score}");
    }
    let log_z = harmonium(at, "logz r --json").json();
    assert_eq!(log_z["log_z"], score["log_z"]);
    assert_eq!(
        (log_z["bracket"].as_str(), log_z["method"].as_str()),
        (Some("bound"), Some("exact"))
    );
    let pseudo = harmonium(at, "score r bars-and-stripes:3 --method pseudo --json").json();
    assert!(pseudo["pseudo_log_likelihood"].is_number() && pseudo["log_likelihood"].is_null());
    let free =
        harmonium(at, "score r bars-and-stripes:3 --method free-energy --out rows.csv --json")
            .json();
    let exact = -free["free_energy"].as_f64().unwrap() - score["log_z"].as_f64().unwrap();
    assert!(
        (exact - score["log_likelihood"].as_f64().unwrap()).abs() < 1e-9,
        "F and ln Z make ln p"
    );
    assert_eq!(fs::read_to_string(file(&folder, "rows.csv")).unwrap().lines().count(), 16);
    for ending in ["npy", "csv", "png"] {
        let line = format!("sample r --n 10 --sweeps 20 --out s.{ending} --json");
        assert_eq!(harmonium(at, &line).json()["n"].as_u64(), Some(10));
    }
    let drawn = harmonium(at, "data s.npy --json").json();
    assert_eq!(
        (drawn["rows"].as_u64(), drawn["columns"].as_u64(), drawn["visible"].as_str()),
        (Some(10), Some(9), Some("binary"))
    );
    let features = harmonium(at, "features r bars-and-stripes:3 --out f.npy --json").json();
    assert_eq!((features["n"].as_u64(), features["features"].as_u64()), (Some(16), Some(6)));
    let inspected = harmonium(at, "inspect r --json").json();
    assert_eq!(
        (inspected["parameters"].as_u64(), inspected["epoch"].as_u64()),
        (Some(69), Some(200))
    );
    assert!(harmonium(at, "convert r m.safetensors --json").code == 0);
    assert_eq!(harmonium(at, "logz m.safetensors --json").json(), log_z);
    assert_eq!(harmonium(at, "convert r m.json").code, 0);
    let parameters: Value =
        serde_json::from_slice(&fs::read(file(&folder, "m.json")).unwrap()).unwrap();
    assert_eq!(parameters["layers"][0]["bias"].as_array().map(Vec::len), Some(9));
    assert_eq!(harmonium(at, "convert s.npy t.csv").code, 0);
    assert_eq!(harmonium(at, "report r").code, 0);
    let page = fs::read_to_string(file(&folder, "r/report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("data:image/png;base64,"));
    assert!(harmonium(at, "completions bash").out.contains("harmonium"));
}

#[test]
fn missing_entries_are_filled_with_their_probabilities() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    // Two bits that always agree, and a third that never does.
    let rows: String = (0..60).map(|i| if i % 2 == 0 { "1,1,0\n" } else { "0,0,1\n" }).collect();
    fs::write(file(&folder, "train.csv"), rows).unwrap();
    let line = "train rbm train.csv --hidden 4 --rule exact --learning-rate 0.3 --epochs 400 --l2 0 --out r";
    assert_eq!(harmonium(at, line).code, 0);
    fs::write(file(&folder, "holes.csv"), "1,,0\n?,0,1\n").unwrap();
    let filled = harmonium(at, "complete r holes.csv --sweeps 300 --out filled.csv --json").json();
    assert_eq!(filled["missing"].as_u64(), Some(2));
    let text = fs::read_to_string(file(&folder, "filled.csv")).unwrap();
    let cells: Vec<f64> = text.split([',', '\n']).filter_map(|c| c.parse().ok()).collect();
    assert!(cells[1] > 0.95 && cells[3] < 0.05, "{text}");
    assert_eq!(
        (cells[0], cells[2], cells[4], cells[5]),
        (1.0, 0.0, 0.0, 1.0),
        "what is there stays"
    );
    fs::write(file(&folder, "mask.csv"), "1,0,1\n").unwrap();
    let masked = harmonium(at, "complete r train.csv --mask mask.csv --out m.csv --json").json();
    assert_eq!(masked["missing"].as_u64(), Some(60));
    let sampled =
        harmonium(at, "sample r --given train.csv --mask mask.csv --sweeps 50 --out g.npy --json");
    assert_eq!(sampled.json()["n"].as_u64(), Some(60));
    // Cells that are missing are summed out: of the two patterns one is left for each row.
    let score = harmonium(at, "score r holes.csv --json").json();
    let mean = score["log_likelihood"].as_f64().unwrap();
    assert!((mean - 0.5_f64.ln()).abs() < 0.05, "{mean}");
    // A machine learns around them, too, its layers one by one or together; a directed stack does not.
    let line = "train rbm holes.csv --hidden 2 --visible binary --epochs 2 --out t";
    assert_eq!(harmonium(at, line).code, 0);
    let stack =
        "train dbm holes.csv --hidden 2,2 --pretrain-epochs 1 --visible binary --epochs 1 --out d";
    assert_eq!(harmonium(at, stack).code, 0);
    let directed = "train dbn holes.csv --hidden 2,2 --visible binary --epochs 1 --out n";
    harmonium(at, directed).refuses("row");
    harmonium(at, "complete r train.csv --mask holes.csv --out x.csv").refuses("mask");
}

#[test]
fn threads_do_not_change_a_byte() {
    let folder = TempDir::new().unwrap();
    for threads in ["1", "2"] {
        let line = format!(
            "train dbm digits --hidden 12,6 --epochs 2 --seed 5 --threads {threads} --out r{threads}"
        );
        assert_eq!(harmonium(folder.path(), &line).code, 0);
    }
    let model = |n: &str| fs::read(file(&folder, &format!("r{n}/model.safetensors"))).unwrap();
    assert_eq!(model("1"), model("2"));
}

#[test]
fn every_model_and_kind_of_unit_trains() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(
        file(&folder, "real.csv"),
        (0..40).map(|i| format!("{}.5,{}\n", i % 7, -(i % 3))).collect::<String>(),
    )
    .unwrap();
    fs::write(
        file(&folder, "spin.csv"),
        (0..40).map(|i| if i % 3 == 0 { "-1,1,1\n" } else { "1,1,-1\n" }).collect::<String>(),
    )
    .unwrap();
    fs::write(
        file(&folder, "kinds.csv"),
        (0..40).map(|i| format!("{},{}\n", i % 4, i % 3)).collect::<String>(),
    )
    .unwrap();
    for (i, line) in [
        "bm bars-and-stripes:2 --hidden 3 --lateral visible,hidden --posterior exact",
        "bm bars-and-stripes:2 --hidden 3 --lateral hidden --posterior gibbs",
        "bm bars-and-stripes:2 --hidden 0 --lateral visible",
        "dbm bars-and-stripes:2 --hidden 4,3 --posterior mean-field",
        "rbm real.csv --hidden 3",
        "rbm spin.csv --hidden 3",
        "rbm kinds.csv --hidden 3 --visible categorical",
        "rbm digits --hidden 5 --visible gaussian --rule cd --optimizer adam",
        "rbm bars-and-stripes:2 --hidden 3 --rule pt --replicas 3 --k 1:3 --decay 1@0,0.1@2",
        "rbm bars-and-stripes:2 --hidden 3 --rule ptt --chains 20 --reservoir 60 --freeze-below 0.4 --rollback-below 0.2",
    ]
    .iter()
    .enumerate()
    {
        let said = harmonium(at, &format!("train {line} --epochs 3 --out run{i} --json"));
        assert_eq!(said.code, 0, "{line}: {}", said.err);
        for command in ["inspect", "report"] {
            let said = harmonium(at, &format!("{command} run{i}"));
            assert_eq!(said.code, 0, "{command} after {line}: {}", said.err);
        }
        let data = line.split_whitespace().nth(1).unwrap();
        let said = harmonium(at, &format!("score run{i} {data}"));
        assert_eq!(said.code, 0, "score after {line}: {}", said.err);
        let said = harmonium(at, &format!("sample run{i} --n 5 --sweeps 5 --out s{i}.npy"));
        assert_eq!(said.code, 0, "sample after {line}: {}", said.err);
    }
}

#[test]
fn settings_come_from_flags_then_the_file_then_defaults() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(file(&folder, "c.toml"), "hidden = [4]\nepochs = 3\nbatch = 5\nmomentum = \"0.5\"\n")
        .unwrap();
    let line = "train rbm bars-and-stripes:2 --config c.toml --epochs 2 --out r";
    assert_eq!(harmonium(at, line).code, 0);
    let run = fs::read_to_string(file(&folder, "r/run.toml")).unwrap();
    for expected in [
        "epochs = 2",
        "batch = 5",
        "momentum = \"0.5\"",
        "hidden = [4]",
        "l2 = 0.0002",
        "seed = 0",
        "data-hash",
        "library-version",
    ] {
        assert!(run.contains(expected), "{expected} is not in {run}");
    }
    // A run's own settings repeat it to the byte.
    assert_eq!(harmonium(at, "train rbm --config r/run.toml --out again").code, 0);
    let model = |run: &str| fs::read(file(&folder, &format!("{run}/model.safetensors"))).unwrap();
    assert_eq!(model("r"), model("again"));
    fs::write(file(&folder, "bad.toml"), "hiden = [4]\n").unwrap();
    harmonium(at, "train rbm bars-and-stripes:2 --config bad.toml --out x").refuses("hiden");
    fs::write(file(&folder, "bad.toml"), "hidden = \n").unwrap();
    harmonium(at, "train rbm bars-and-stripes:2 --config bad.toml --out x").refuses("line 1");
    fs::write(file(&folder, "bad.toml"), "epochs = \"many\"\n").unwrap();
    harmonium(at, "train rbm bars-and-stripes:2 --config bad.toml --out x").refuses("wrong type");
    assert!(!file(&folder, "x").exists(), "nothing is written before everything is known");
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = trained();
    let at = folder.path();
    let before = fs::read(file(&folder, "r/model.safetensors")).unwrap();
    harmonium(at, "train rbm bars-and-stripes:3 --hidden 6 --epochs 1 --out r").refuses("r");
    assert_eq!(fs::read(file(&folder, "r/model.safetensors")).unwrap(), before);
    fs::write(file(&folder, "s.npy"), "mine").unwrap();
    harmonium(at, "sample r --n 2 --sweeps 1 --out s.npy").refuses("--force");
    harmonium(at, "features r bars-and-stripes:3 --out s.npy").refuses("--force");
    harmonium(at, "convert r s.npy").refuses("--force");
    assert_eq!(fs::read(file(&folder, "s.npy")).unwrap(), b"mine");
    assert_eq!(harmonium(at, "sample r --n 2 --sweeps 1 --out s.npy --force").code, 0);
    harmonium(at, "report r --out s.npy").refuses("--force");
    harmonium(at, "demo --hidden 2 --epochs 1 --out r").refuses("--force");
    // Somebody's documents are not a run directory, whatever is forced.
    fs::create_dir(file(&folder, "docs")).unwrap();
    fs::write(file(&folder, "docs/thesis.txt"), "years").unwrap();
    harmonium(at, "train rbm digits --hidden 2 --epochs 1 --out docs --force").refuses("docs");
    assert_eq!(
        harmonium(at, "train rbm bars-and-stripes:3 --hidden 6 --epochs 1 --out r --force").code,
        0
    );
}

#[test]
fn resuming_keeps_to_what_the_run_was_started_with() {
    let folder = trained();
    let at = folder.path();
    let done = harmonium(at, "train rbm --out r --resume --json");
    assert!(done.err.contains("finished"), "{}", done.err);
    assert_eq!(done.json()["epochs"].as_u64(), Some(200));
    harmonium(at, "train rbm --out r --resume --epochs 300").refuses("--epochs");
    harmonium(at, "train rbm --out r --resume --seed 9").refuses("--seed");
    harmonium(at, "train dbm --out r --resume").refuses("dbm");
    harmonium(at, "train rbm --out nowhere --resume").refuses("no data");
}

#[test]
fn bad_words_get_a_way_out() {
    let folder = trained();
    let at = folder.path();
    for (line, words) in [
        ("train rbm nothing.csv --hidden 3 --out x", "nothing.csv"),
        ("train rbm digits --epochs 1 --out x", "--hidden"),
        ("train rbm digits --hidden 3,4 --out x", "one number"),
        ("train dbm digits --epochs 1 --out x", "--hidden"),
        ("train bm digits --hidden 3 --epochs 1 --out x", "--lateral"),
        ("train rbm digits --hidden 3 --lateral visible --out x", "--lateral"),
        ("train rbm digits --hidden 3 --learning-rate -1 --out x", "learning-rate"),
        ("train rbm digits --hidden 3 --momentum 2 --out x", "momentum"),
        ("train rbm digits --hidden 3 --decay x --out x", "x"),
        ("train rbm digits --hidden 3 --rule magic --out x", "magic"),
        ("train dbn digits --hidden 3,2 --patience 3 --out x", "one after the other"),
        ("train rbm digits --hidden 3 --patience 3 --valid-share 2 --out x", "valid-share"),
        ("train rbm digits --hidden 3 --visible spin --out x", "spin"),
        ("train rbm digits --hidden 3 --binarize 7 --out x", "7"),
        ("train rbm digits --hidden 3 --columns 60..70 --out x", "70"),
        ("train rbm digits --hidden 99999999999999 --out x", "bytes"),
        ("score r digits", "64 columns"),
        ("score nowhere digits", "nowhere"),
        ("logz digits.csv", "digits.csv"),
        ("sample r --n 0 --out s.npy", "--n 0"),
        ("sample r --out s.xyz", "s.xyz"),
        ("sample r --out s", "ending"),
        ("features r digits --out f.npy", "64 columns"),
        ("features r bars-and-stripes:3 --layer top --out f.npy", "top"),
        ("report nowhere", "nowhere"),
        ("data nowhere.csv", "nowhere.csv"),
        ("data bars-and-stripes:99", "99"),
        ("convert r x.doc", "x.doc"),
    ] {
        harmonium(at, line).refuses(words);
    }
    assert!(!file(&folder, "x").exists());
}

#[test]
fn damaged_models_are_named() {
    let folder = trained();
    let at = folder.path();
    let bytes = fs::read(file(&folder, "r/model.safetensors")).unwrap();
    fs::write(file(&folder, "cut.safetensors"), &bytes[..bytes.len() / 2]).unwrap();
    harmonium(at, "logz cut.safetensors").refuses("cut.safetensors");
    fs::write(file(&folder, "empty.safetensors"), b"").unwrap();
    harmonium(at, "inspect empty.safetensors").refuses("empty.safetensors");
    let text = String::from_utf8_lossy(&bytes[..2000]).into_owned();
    let place = text.find("format_version").expect("the version is in the header");
    let mut newer = bytes.clone();
    let digit = newer[place..].iter().position(u8::is_ascii_digit).unwrap();
    newer[place + digit] = b'9';
    fs::write(file(&folder, "newer.safetensors"), newer).unwrap();
    harmonium(at, "logz newer.safetensors").refuses("9");
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_failure() {
    let folder = trained();
    let line = format!("{} inspect r | true", env!("CARGO_BIN_EXE_harmonium"));
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg(line)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        output.status.success() && !String::from_utf8_lossy(&output.stderr).contains("panicked")
    );
}

#[test]
fn labels_are_learned_and_predicted() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let rows: String =
        (0..80).map(|i| if i % 2 == 0 { "1,1,0,0\n" } else { "0,0,1,1\n" }).collect();
    let labels: String = (0..80).map(|i| if i % 2 == 0 { "left\n" } else { "right\n" }).collect();
    fs::write(file(&folder, "d.csv"), &rows).unwrap();
    fs::write(file(&folder, "l.txt"), &labels).unwrap();
    let line = "train rbm d.csv --labels l.txt --hidden 4 --rule exact --learning-rate 0.3 --epochs 300 --out r --json";
    assert_eq!(harmonium(at, line).json()["epochs"].as_u64(), Some(300));
    let inspected = harmonium(at, "inspect r --json").json();
    assert_eq!(inspected["layers"][1]["name"], "labels");
    // Data without labels: the class is filled in as what is missing.
    assert_eq!(harmonium(at, "complete r d.csv --sweeps 100 --out p.csv").code, 0);
    let text = fs::read_to_string(file(&folder, "p.csv")).unwrap();
    for (i, line) in text.lines().enumerate() {
        let cells: Vec<f64> = line.split(',').map(|c| c.parse().unwrap()).collect();
        assert_eq!(cells.len(), 6);
        assert!(cells[4 + i % 2] > 0.9, "row {i}: {line}");
    }
    // ln p(data, label) = ln p(data) + ln p(label | data), and the last is almost certain.
    let mean = |line: &str| harmonium(at, line).json()["log_likelihood"].as_f64().unwrap();
    let (joint, alone) =
        (mean("score r d.csv --labels l.txt --json"), mean("score r d.csv --json"));
    assert!(joint <= alone && alone - joint < 0.1, "{joint} {alone}");
    for command in
        ["features r d.csv --out f.npy", "report r", "sample r --n 4 --sweeps 9 --out s.png"]
    {
        let said = harmonium(at, command);
        assert_eq!(said.code, 0, "{command}: {}", said.err);
    }
    fs::write(file(&folder, "short.txt"), "left\nright\n").unwrap();
    harmonium(at, "train rbm d.csv --labels short.txt --hidden 2 --out x")
        .refuses("2 labels for 80 rows");
    fs::write(file(&folder, "other.txt"), labels.replace("left", "up")).unwrap();
    harmonium(at, "score r d.csv --labels other.txt").refuses("up");
    fs::write(file(&folder, "one.txt"), labels.replace("left", "right")).unwrap();
    harmonium(at, "train rbm d.csv --labels one.txt --hidden 2 --out x").refuses("one class");
}

#[test]
fn built_in_machines_are_models() {
    let folder = TempDir::new().expect("a folder");
    let run = |line: &str| harmonium(folder.path(), line);
    let log_z = run("logz ising:4,0.4 --json").json()["log_z"].as_f64().expect("a number");
    assert!((log_z - 14.561_093).abs() < 1e-6, "{log_z}");
    let log_z = run("logz curie-weiss:20,1.5 --json").json()["log_z"].as_f64().expect("a number");
    assert!((log_z - 17.190_061).abs() < 1e-6, "{log_z}");
    let seen = run("inspect ising:32,0.4 --json").json();
    assert_eq!(seen["couplings"][0]["edges"], 2048);
    assert_eq!(seen["couplings"][0]["colours"], 2);
    assert!(run("inspect ising:32,0.4").out.contains("2048 edges in 2 colours"));
    run("sample ising:4,0.4 --n 50 --sweeps 50 --out s.npy --json").json();
    let score = run("score ising:4,0.4 s.npy --json").json();
    assert_eq!(score["method"], "exact", "{score}");
    assert!(score["log_likelihood"].as_f64().expect("a number") > -14.6, "{score}");
    run("ising:4").refuses("unrecognized");
    for (line, words) in [
        ("logz ising:4", "K is ``"),
        ("sample ising:0,1 --out t.npy", "L is `0`"),
        ("inspect ising:99999,1", "from 1 to 1024"),
        ("score curie-weiss:3,nan s.npy", "BETA is `nan`"),
        ("logz ising:32x32x2,0.4 --method exact", "terms"),
    ] {
        run(line).refuses(words);
    }
}

#[test]
fn uai_files_are_models_and_can_be_written() {
    let folder = TempDir::new().expect("a folder");
    let run = |line: &str| harmonium(folder.path(), line);
    let log_z =
        |model: &str| run(&format!("logz {model} --json")).json()["log_z"].as_f64().expect("it");
    run("convert ising:4,0.4 torus.uai").says("model in `torus.uai`");
    run("convert torus.uai torus.safetensors").says("model in `torus.safetensors`");
    run("convert torus.safetensors copy.safetensors").says("model in");
    for model in ["torus.uai", "torus.safetensors", "copy.safetensors"] {
        assert!((log_z(model) - 14.561_093).abs() < 1e-6, "{model}");
    }
    let bytes = |name: &str| fs::read(file(&folder, name)).expect("it was written");
    assert_eq!(bytes("torus.safetensors"), bytes("copy.safetensors"));
    run("convert ising:3,1 torus.uai").refuses("is there already");
    run("convert ising:3,400 strong.uai").refuses("would be e^");
    // A torus of side 4 is half of a complete bipartite graph, so it came back as an RBM.
    run("convert ising:6,0.4 six.uai").says("model in");
    run("convert six.uai torus.json --json").json();
    let json: Value = serde_json::from_slice(&bytes("torus.json")).expect("JSON");
    assert_eq!(json["couplings"][0]["edges"].as_array().map(Vec::len), Some(72));
    fs::write(file(&folder, "zero.uai"), "MARKOV 1 2 1 1 0 2 1 0").expect("a file");
    run("logz zero.uai").refuses("ln 0");
    run("convert zero.uai zero.safetensors").refuses("1e-30");
    run("convert missing.uai m.safetensors").refuses("missing.uai");
}

/// Killed while layers are pre-trained, a run starts over and ends in the same bytes.
#[test]
fn a_pretrained_run_names_its_layers_and_can_be_resumed() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let line = "train dbm bars-and-stripes:3 --hidden 6,4 --pretrain-epochs 5 --epochs 3";
    harmonium(at, &format!("{line} --out whole --json")).json();
    let events = fs::read_to_string(file(&folder, "whole/events.jsonl")).expect("events");
    for layer in ["hidden1", "hidden2"] {
        let named = format!("\"layer\":\"{layer}\"");
        assert_eq!(events.lines().filter(|l| l.contains(&named)).count(), 5, "{events}");
    }
    fs::create_dir(file(&folder, "killed")).expect("a folder");
    fs::copy(file(&folder, "whole/run.toml"), file(&folder, "killed/run.toml")).expect("a copy");
    let first: String = events.lines().take(3).map(|l| format!("{l}\n")).collect();
    fs::write(file(&folder, "killed/events.jsonl"), first).expect("a file");
    harmonium(at, "train dbm --out killed --resume --json").json();
    let bytes = |run: &str| fs::read(file(&folder, &format!("{run}/model.safetensors")));
    assert_eq!(bytes("whole").expect("a model"), bytes("killed").expect("a model"));
    harmonium(at, "train rbm digits --hidden 4 --pretrain-epochs 3 --out no")
        .refuses("`--pretrain-epochs`");
}

/// Every data side goes with every model side, and pseudo-likelihood with no hidden units.
#[test]
fn a_general_machine_learns_by_every_pair_of_sides() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    for posterior in ["exact", "mean-field", "gibbs"] {
        for rule in ["pcd", "cd", "pt", "exact"] {
            let line = format!(
                "train bm bars-and-stripes:2 --hidden 3 --lateral visible,hidden --epochs 3 \
                 --posterior {posterior} --rule {rule} --out {posterior}-{rule} --json"
            );
            harmonium(at, &line).json();
        }
    }
    let visible = "train bm bars-and-stripes:3 --hidden 0 --lateral visible --rule pseudo";
    harmonium(at, &format!("{visible} --epochs 50 --out visible --json")).json();
    harmonium(at, "train rbm bars-and-stripes:3 --hidden 2 --rule pseudo --out hidden")
        .refuses("fully visible");
}

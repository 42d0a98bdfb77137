//! Flags, configuration files, outputs and signals that are hostile or unlucky: each is refused with
//! a sentence before anything starts, and nothing panics or is lost.

use assert_cmd::Command;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    fn of(output: &std::process::Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Self { code, out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Fails unless this is an error of our form that contains `words`.
    fn refuses(&self, line: &str, words: &str) {
        assert_eq!((self.code, self.out.as_str()), (2, ""), "{line}: {}", self.err);
        assert!(self.err.contains("error: "), "{line}: {}", self.err);
        assert!(self.err.contains("\nhint: "), "{line}: {}", self.err);
        assert!(self.err.contains(words), "{line}: `{words}` is not in: {}", self.err);
    }

    fn works(&self, line: &str) {
        assert_eq!(self.code, 0, "{line}: {}", self.err);
    }
}

fn harmonium(folder: &Path, line: &str) -> Said {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let command = command.args(line.split_whitespace()).current_dir(folder);
    Said::of(&command.output().expect("it runs"))
}

fn folder() -> TempDir {
    TempDir::new().expect("a folder")
}

fn write(folder: &TempDir, name: &str, text: &str) {
    fs::write(folder.path().join(name), text).expect("it can be written");
}

const SMALL: &str = "train rbm bars-and-stripes:2 --hidden 2 --epochs 2";

#[test]
fn keys_of_a_configuration_have_their_types() {
    let folder = folder();
    for (text, words) in [
        ("seed = \"7\"", "`seed = \"7\"`"),
        ("seed = 7.5", "`seed = 7.5`"),
        ("seed = [1]", "`seed = [1]`"),
        ("seed = -7", "`seed = -7`"),
        ("precision = 5", "`precision = 5`"),
        ("precision = \"f16\"", "f16"),
        ("model = 5", "`model = 5`"),
        ("data = 5", "`data = 5`"),
        ("epochs = \"2\"", "`epochs = \"2\"`"),
        ("batch = -1", "`batch = -1`"),
        ("visible = \"grey\"", "`visible` is `grey`"),
        ("rule = \"magic\"", "`rule` is `magic`"),
        ("transpose = 1", "`transpose = 1`"),
    ] {
        write(&folder, "c.toml", &format!("{text}\n"));
        let line = format!("{SMALL} --config c.toml --out r");
        // What is asked by a flag would win over the file.
        let line = if text.starts_with("epochs") { line.replace("--epochs 2", "") } else { line };
        let line =
            if text.starts_with("data") { line.replace("bars-and-stripes:2", "") } else { line };
        harmonium(folder.path(), &line).refuses(text, words);
    }
    write(&folder, "c.toml", "lateral = [\"middle\"]\n");
    let line = "train bm bars-and-stripes:2 --hidden 2 --epochs 2 --config c.toml --out r";
    harmonium(folder.path(), line).refuses(line, "`lateral` is `middle`");
    assert!(!folder.path().join("r").exists());
    write(&folder, "c.toml", "seed = 7\nprecision = \"f32\"\nmodel = \"rbm\"\n");
    harmonium(folder.path(), &format!("{SMALL} --config c.toml --out r")).works("good types");
    let run = fs::read_to_string(folder.path().join("r/run.toml")).expect("it is there");
    assert!(run.contains("seed = 7") && run.contains("precision = \"f32\""), "{run}");
}

#[test]
fn a_run_is_resumed_however_its_numbers_are_spelt() {
    let folder = folder();
    let at = folder.path();
    let flags = "--decay 1 --momentum 0.9 --k 1 --l2 0 --binarize 0.5 --learning-rate 0.1";
    harmonium(at, &format!("{SMALL} {flags} --out r")).works(flags);
    for flags in [
        "--decay 1.0",
        "--decay 1.000",
        "--momentum 0.90",
        "--k 1.0",
        "--l2 0.0",
        "--l2 0e5",
        "--learning-rate 1e-1",
        "--binarize 0.50",
    ] {
        harmonium(at, &format!("train rbm --out r --resume {flags}")).works(flags);
    }
    for flags in ["--decay 1:0.5", "--momentum 0.91", "--k 2", "--l2 1e-300", "--binarize 0.6"] {
        let said = harmonium(at, &format!("train rbm --out r --resume {flags}"));
        said.refuses(flags, "differs from what the run was started with");
    }
    harmonium(at, &format!("{SMALL} --decay 1:0.01 --momentum 0.5@0,0.9@1 --out s")).works("s");
    let line = "train rbm --out s --resume --decay 1.0:0.010 --momentum 0.50@0,.9@1";
    harmonium(at, line).works(line);
}

#[test]
fn every_input_of_a_resumed_run_is_the_one_it_was_started_with() {
    let folder = folder();
    let at = folder.path();
    write(&folder, "d.csv", &"1,1,0\n0,0,1\n".repeat(20));
    write(&folder, "l.txt", &"left\nright\n".repeat(20));
    write(&folder, "v.csv", &"1,1,0\n0,0,1\n".repeat(10));
    harmonium(at, "train rbm d.csv --labels l.txt --hidden 2 --epochs 2 --out l").works("labels");
    harmonium(at, "train rbm d.csv --valid v.csv --hidden 2 --epochs 2 --out v").works("valid");
    for run in ["l", "v"] {
        harmonium(at, &format!("train rbm --out {run} --resume")).works(run);
    }
    write(&folder, "l.txt", &"right\nleft\n".repeat(20));
    write(&folder, "v.csv", &"1,0,0\n0,0,1\n".repeat(10));
    harmonium(at, "train rbm --out l --resume").refuses("l", "the labels are not");
    harmonium(at, "train rbm --out v --resume").refuses("v", "the validation data is not");
    write(&folder, "l.txt", &"left\nright\n".repeat(20));
    harmonium(at, "train rbm --out l --resume").works("the old labels");
    // A run of an earlier version has no fingerprint of its labels and goes on.
    let text = fs::read_to_string(at.join("v/run.toml")).expect("it is there");
    let older: Vec<&str> = text.lines().filter(|l| !l.starts_with("valid-hash")).collect();
    assert!(older.len() < text.lines().count(), "{text}");
    write(&folder, "v/run.toml", &older.join("\n"));
    harmonium(at, "train rbm --out v --resume").works("without a fingerprint");
}

#[test]
fn every_input_of_a_net_is_the_one_it_was_started_with() {
    let folder = folder();
    let at = folder.path();
    let (rows, labels) = ("1,1,0\n0,0,1\n".repeat(20), "left\nright\n".repeat(20));
    let changed = [
        ("v.csv", "1,0,0\n0,0,1\n".repeat(20), "the validation data is not"),
        ("w.txt", "right\nleft\n".repeat(20), "the labels of the validation data are not"),
        ("t.csv", "1,0\n1,1\n".repeat(20), "the targets are not"),
        ("l.txt", "right\nleft\n".repeat(20), "the labels are not"),
    ];
    let restore = || {
        write(&folder, "d.csv", &rows);
        write(&folder, "v.csv", &rows);
        write(&folder, "l.txt", &labels);
        write(&folder, "w.txt", &labels);
        write(&folder, "t.csv", &"1,0\n0,1\n".repeat(20));
    };
    restore();
    let net = "finetune none d.csv --hidden 3 --epochs 2";
    let valid = "--labels l.txt --valid v.csv --valid-labels w.txt";
    harmonium(at, &format!("{net} {valid} --out n")).works("classes");
    harmonium(at, &format!("{net} --targets t.csv --out t")).works("targets");
    harmonium(at, &format!("train rbm d.csv {valid} --hidden 2 --epochs 2 --out r")).works("rbm");
    for (file, text, said) in &changed {
        write(&folder, file, text);
        let run = if *file == "t.csv" { "t" } else { "n" };
        harmonium(at, &format!("finetune --out {run} --resume")).refuses(file, said);
        if *file == "w.txt" {
            harmonium(at, "train rbm --out r --resume").refuses(file, said);
        }
        restore();
        harmonium(at, &format!("finetune --out {run} --resume")).works(file);
    }
}

#[test]
fn numbers_that_no_machine_can_serve_are_refused_at_once() {
    let folder = folder();
    let at = folder.path();
    harmonium(at, &format!("{SMALL} --out r")).works("r");
    harmonium(at, "train dbn bars-and-stripes:2 --hidden 3,2 --epochs 1 --out dbn").works("dbn");
    write(&folder, "holes.csv", "1,?,0,1\n");
    let mut lines = Vec::new();
    for n in [
        "18446744073709551615",
        "9223372036854775808",
        "9223372036854775807",
        "4611686018427387904",
        "1000000000000",
    ] {
        for method in ["ais", "sandwich", "bar"] {
            lines.push(format!("logz r --method {method} --betas {n}"));
            lines.push(format!("logz r --method {method} --chains {n}"));
            lines.push(format!("logz r --method {method} --betas {n} --chains {n}"));
        }
        for flags in [
            "--chains N",
            "--rule pt --replicas N",
            "--rule ptt --reservoir N",
            "--rule pt --chains N",
            "--rule pt --chains N --replicas N",
            "--hidden N",
            "--visible categorical --binarize none --categories N",
        ] {
            let start = "train rbm bars-and-stripes:2 --epochs 1 --out x";
            let hidden = if flags.contains("--hidden") { "" } else { "--hidden 2" };
            lines.push(format!("{start} {hidden} {}", flags.replace('N', n)));
        }
        lines.push(format!("sample r --n {n} --sweeps 1 --out s.npy"));
        lines.push(format!("sample dbn --n {n} --sweeps 1 --out s.npy"));
        lines.push(format!("score dbn bars-and-stripes:2 --method importance --draws {n}"));
        lines.push(format!("inspect r --diagnostics --chains {n} --sweeps 9"));
        lines.push(format!("inspect r --diagnostics --sweeps {n} --chains 2"));
        lines.push(format!(
            "inspect r --diagnostics --chains {n} --sweeps 9 --data bars-and-stripes:2"
        ));
    }
    for n in ["18446744073709551615", "9223372036854775808", "9223372036854775807"] {
        lines.push(format!("complete r holes.csv --sweeps {n} --out c.csv"));
        lines.push(format!("sample r --n 1 --sweeps {n} --out s.npy"));
        for flag in ["batch", "epochs", "posterior-sweeps", "mean-field-sweeps"] {
            lines.push(format!("{} --{flag} {n} --out x", SMALL.replace("--epochs 2", "")));
        }
        let dbm = "train dbm bars-and-stripes:2 --hidden 2,2 --epochs 1 --out x";
        lines.push(format!("{dbm} --pretrain-epochs {n}"));
        lines.push(format!("{} --refine-epochs {n}", dbm.replace("dbm", "dbn")));
        lines.push(format!("{SMALL} --k {n} --out x"));
        lines.push(format!("data holes.csv --packed-bits {n}"));
    }
    for line in &lines {
        harmonium(at, line).refuses(line, "");
    }
    for name in ["x", "s.npy", "c.csv"] {
        assert!(!at.join(name).exists(), "{name}");
    }
    // Patience without end, and a batch of more rows than there are, are possible.
    let line = format!("{SMALL} --valid bars-and-stripes:2 --patience 9223372036854775807 --out p");
    harmonium(at, &line).works(&line);
    let line = format!("{SMALL} --batch 1000000 --out b");
    harmonium(at, &line).works(&line);
    let line = format!("{SMALL} --k 1000000000000 --out x");
    harmonium(at, &line).refuses(&line, "it must be from 1 to 1000000");
}

#[test]
fn words_that_mean_nothing_are_refused() {
    let folder = folder();
    let at = folder.path();
    for (line, words) in [
        ("data digits --binarize x", "x"),
        ("train rbm digits --hidden 2 --checkpoint-seconds nan --out x", "--checkpoint-seconds"),
        ("train rbm digits --hidden 2 --checkpoint-seconds inf --out x", "--checkpoint-seconds"),
        ("train rbm digits --hidden 2 --checkpoint-seconds -1 --out x", "--checkpoint-seconds"),
    ] {
        harmonium(at, line).refuses(line, words);
    }
    assert!(!at.join("x").exists());
}

#[test]
fn work_that_is_doubled_says_so() {
    let folder = folder();
    let line = "logz ising:8,0.4 --method ais --betas 10 --chains 10 --width 1e-6";
    let said = harmonium(folder.path(), line);
    said.works(line);
    let notes = said.err.matches("note: the interval is wider than 0.000001 nats").count();
    assert_eq!(notes, 7, "one for each doubling: {}", said.err);
    assert!(said.out.contains("the work ran out"), "{}", said.out);
}

#[test]
fn outputs_are_checked_before_the_work() {
    let folder = folder();
    let at = folder.path();
    // With so many sweeps, anything that is only found afterwards would not be found today.
    let forever = "--sweeps 1000000000000";
    for line in [
        format!("sample ising:4,0.4 {forever} --out nosuch/x.npy"),
        format!("sample ising:4,0.4 {forever} --force --out nosuch/x.npy"),
        "score ising:8,0.4 nosuch.npy --betas 1000000000 --method ais --out nosuch/x.csv".into(),
        "features ising:4,0.4 nosuch.npy --out nosuch/x.csv".into(),
        "complete ising:4,0.4 nosuch.npy --out nosuch/x.csv".into(),
        "convert ising:4,0.4 nosuch/x.uai".into(),
    ] {
        harmonium(at, &line).refuses(&line, "there is no folder `nosuch`");
    }
}

#[cfg(unix)]
#[test]
fn the_score_is_told_where_its_rows_cannot_be_written() {
    let folder = folder();
    let at = folder.path();
    harmonium(at, &format!("{SMALL} --out r")).works("r");
    // A device is not a regular file, and only writing finds that out.
    std::os::unix::fs::symlink("/dev/full", at.join("full.csv")).expect("a link");
    let said = harmonium(at, "score r bars-and-stripes:2 --out full.csv --force");
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.out.contains("mean log-likelihood"), "{}", said.out);
    assert!(said.err.contains("full.csv"), "{}", said.err);
}

#[cfg(unix)]
#[test]
fn of_several_that_write_one_new_file_one_succeeds() {
    let folder = folder();
    let at = folder.path();
    let spawn = |seed: u64| {
        std::process::Command::new(env!("CARGO_BIN_EXE_harmonium"))
            .args(["sample", "ising:4,0.4", "--n", "50", "--sweeps", "200", "--out", "same.npy"])
            .args(["--seed", &seed.to_string()])
            .current_dir(at)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("it starts")
    };
    let children: Vec<_> = (0..6).map(spawn).collect();
    let said: Vec<Said> =
        children.into_iter().map(|c| Said::of(&c.wait_with_output().expect("it ends"))).collect();
    assert_eq!(said.iter().filter(|s| s.code == 0).count(), 1, "exactly one has written it");
    for said in said.iter().filter(|s| s.code != 0) {
        said.refuses("same.npy", "same.npy");
    }
    let left: Vec<_> = fs::read_dir(at).expect("a folder").collect();
    assert_eq!(left.len(), 1, "no temporary file is left");
    // A link that points nowhere belongs to somebody; by force it is followed.
    std::os::unix::fs::symlink("elsewhere.npy", at.join("link.npy")).expect("a link");
    let line = "sample ising:4,0.4 --n 5 --sweeps 5 --out link.npy";
    harmonium(at, line).refuses(line, "is there already");
    harmonium(at, &format!("{line} --force")).works(line);
    assert!(at.join("link.npy").is_symlink() && at.join("elsewhere.npy").is_file());
}

/// What a shell runs, with our program as `$0`.
#[cfg(unix)]
fn shell(folder: &Path, script: &str) -> Said {
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_harmonium")])
        .current_dir(folder)
        .output();
    Said::of(&output.expect("it runs"))
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_or_closed_stderr_does_not_stop_the_work() {
    let folder = folder();
    let at = folder.path();
    // Resuming a run that has finished says so on stderr.
    write(&folder, "d.csv", &"1,1,0\n0,0,1\n".repeat(20));
    for (name, to) in [("full", "/dev/full"), ("closed", "&-")] {
        let line = format!("\"$0\" train rbm d.csv --hidden 2 --epochs 2 --out {name} 2>{to}");
        shell(at, &line).works(&line);
        let line = format!("\"$0\" train rbm --resume --out {name} 2>{to}");
        shell(at, &line).works(&line);
        let line = format!("\"$0\" logz nowhere 2>{to}");
        assert_eq!(shell(at, &line).code, 2, "{line}");
    }
    let said = shell(at, "\"$0\" logz ising:4,0.4 >/dev/full");
    said.refuses(">/dev/full", "cannot write the result");
}

/// The runtime puts `/dev/null` in the place of a closed stdout, and so do some callers on purpose: a
/// warning, and no failure.
#[cfg(target_os = "linux")]
#[test]
fn a_result_that_nobody_can_see_is_said_to_be_lost() {
    let folder = folder();
    for (to, lost) in [(">&-", true), ("1<>/dev/null", false), (">/dev/null", false), ("", false)] {
        for command in [
            "logz ising:4,0.4",
            "logz ising:4,0.4 --json",
            "completions bash",
            "--help",
            "--version",
        ] {
            let line = format!("\"$0\" {command} {to}");
            let said = shell(folder.path(), &line);
            if lost {
                said.refuses(&line, "stdout is closed");
            } else {
                said.works(&line);
            }
        }
    }
    // The work is done all the same.
    shell(folder.path(), "\"$0\" train rbm digits --hidden 2 --epochs 1 --out run >&-")
        .refuses("train", "stdout is closed");
    assert!(folder.path().join("run/model.safetensors").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn ignored_signals_stay_ignored() {
    let folder = folder();
    let at = folder.path();
    let train = "\"$0\" train rbm digits --hidden 100 --epochs 300 --quiet --json --out";
    for signal in ["HUP", "INT"] {
        let line =
            format!("trap '' {signal}; {train} {signal} & sleep 0.5; kill -{signal} $!; wait $!");
        let said = shell(at, &line);
        said.works(&line);
        assert!(said.out.contains("\"stop\":\"finished\""), "{}", said.out);
    }
    // One that is not ignored still stops the run and keeps it.
    let train = train.replace("--epochs 300", "--epochs 1000000");
    let line = format!("{train} term & sleep 0.5; kill -TERM $!; wait $!");
    let said = shell(at, &line);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("--resume"), "{}", said.err);
}

#[cfg(unix)]
#[test]
fn control_characters_do_not_reach_the_terminal() {
    let folder = folder();
    let at = folder.path();
    let name = "d\u{1b}[2J\u{7}.csv";
    let run = |args: &[&str]| {
        let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
        Said::of(&command.args(args).current_dir(at).output().expect("it runs"))
    };
    let shown = |said: &Said| {
        for text in [&said.out, &said.err] {
            assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
        }
        assert!(format!("{}{}", said.out, said.err).contains("\\u{1b}[2J\\u{7}"), "{}", said.err);
    };
    shown(&run(&["data", name]));
    write(&folder, name, &"1,1,0\n0,0,1\n".repeat(20));
    shown(&run(&["data", name]));
    shown(&run(&[
        "train",
        "rbm",
        name,
        "--hidden",
        "2",
        "--epochs",
        "1",
        "--out",
        "r\u{1b}[2J\u{7}",
    ]));
}

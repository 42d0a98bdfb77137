//! Tables as people have them, through the real binary: a table goes in, and the same table comes out.

#![expect(clippy::format_collect, reason = "small files for tests")]

use assert_cmd::Command;
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn said(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let output = command.args(words).current_dir(folder).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// What a command says as JSON, and its notes. Words are cut at blanks; `_` stands for one.
fn heard(folder: &Path, line: &str) -> (Value, String) {
    let words: Vec<String> = line.split(' ').map(|w| w.replace('_', " ")).collect();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.push("--json");
    let (code, out, err) = said(folder, &words);
    assert_eq!(code, 0, "{line}: {err}");
    (serde_json::from_str(&out).expect("one JSON object on stdout"), err)
}

fn refused(folder: &Path, line: &str) -> String {
    let words: Vec<String> = line.split(' ').map(|w| w.replace('_', " ")).collect();
    let (code, out, err) = said(folder, &words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((code, out.as_str()), (2, ""), "{line}: {err}");
    assert!(err.contains("error: ") && err.contains("\nhint: "), "{line}: {err}");
    assert!(!err.contains("panicked"), "{line}: {err}");
    err
}

/// Cells of a file, row by row; quotes are not needed in these tests.
fn cells(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).expect("written");
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Animals: owls are light and awake at night. Some masses are missing, names are ids.
fn animals(n: usize) -> String {
    let mut text = String::from("name,mass kg,kind,at night,legs,seen on,price\n");
    for i in 0..n {
        let (kind, mass, legs) =
            [("owl", 1.5, 2), ("cat", 4.2, 4), ("dog", 21.0, 4)][i * i % 7 % 3];
        let mass = mass + 0.1 * ((i * 37 % 11) as f64 - 5.0);
        let mass = if i % 9 == 4 { "NA".to_owned() } else { format!("{mass:.1}") };
        let night = if (kind == "owl") ^ (i % 10 == 3) { "True" } else { "False" };
        let price = 3.0_f64.powf((i * 53 % 17) as f64 / 2.0);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "N{i},{mass},{kind},{night},{legs},2024-03-{:02},{price:.2}",
            i % 28 + 1
        );
    }
    text
}

/// A folder with the table and a model of it.
fn trained() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("animals.csv"), animals(90)).expect("written");
    let line = "train rbm animals.csv --hidden 6 --epochs 60 --learning-rate 0.02 --out r";
    let (_, notes) = heard(folder.path(), line);
    for said in [
        "5 columns are learned, 2 left out",
        "kind      categorical",
        "at night  binary",
        "legs      binary",
        "mass kg   gaussian",
        "10 missing",
        "price     gaussian",
        "learned as ln x",
        "name      left out     90 different texts in 90 rows",
        "seen on   left out     dates",
    ] {
        assert!(notes.contains(said), "`{said}` is not in: {notes}");
    }
    folder
}

#[test]
fn a_table_goes_in_and_the_same_table_comes_out() {
    let folder = trained();
    let at = folder.path();
    let table = cells(&at.join("animals.csv"));
    // Samples have the columns that are learned, with the words and decimals of the table.
    heard(at, "sample r --n 200 --out drawn.csv");
    let drawn = cells(&at.join("drawn.csv"));
    assert_eq!(drawn[0], ["mass kg", "kind", "at night", "legs", "price"]);
    assert_eq!(drawn.len(), 201);
    for row in &drawn[1..] {
        assert_eq!(row[0].split_once('.').expect("a decimal").1.len(), 1, "{row:?}");
        assert!(["owl", "cat", "dog"].contains(&row[1].as_str()), "{row:?}");
        assert!(["True", "False"].contains(&row[2].as_str()) && "24".contains(&row[3]), "{row:?}");
        assert!(row[4].parse::<f64>().expect("a number") > 0.0, "prices were above zero");
    }
    // Completing changes missing cells alone.
    let (value, _) = heard(at, "complete r animals.csv --out whole.csv --errors errors.csv");
    assert_eq!(value["missing"], 10);
    let whole = cells(&at.join("whole.csv"));
    for (was, is) in table.iter().zip(&whole) {
        for (a, b) in was.iter().zip(is) {
            assert!(if a == "NA" { b.parse::<f64>().is_ok() } else { a == b }, "{was:?} {is:?}");
        }
    }
    let errors = cells(&at.join("errors.csv"));
    assert_eq!(errors[0], ["row", "column", "value", "probability", "low", "high", "error"]);
    for cell in &errors[1..] {
        let [low, value, high] = [4, 2, 5].map(|c| cell[c].parse::<f64>().expect("a number"));
        assert!(cell[1] == "mass kg" && low < value && value < high, "{cell:?}");
        let row: usize = cell[0].parse().expect("a row");
        assert_eq!((table[row][1].as_str(), &whole[row][1]), ("NA", &cell[2]));
    }
    assert_eq!(errors.len(), 11);
    heard(at, "complete r --where kind=cat --out cat.csv --errors cat-errors.csv");
    let words = cells(&at.join("cat-errors.csv"));
    let night: f64 = words
        .iter()
        .filter(|w| w[1] == "at night")
        .map(|w| w[3].parse::<f64>().unwrap_or(9.0))
        .sum();
    assert!((night - 1.0).abs() < 1e-3, "{words:?}");
    heard(at, "complete r animals.csv --alternatives 3 --out three.csv");
    let three = cells(&at.join("three.csv"));
    assert_eq!(three.len(), 1 + 3 * 90);
    let masses =
        |i: usize| three[1 + 3 * i..4 + 3 * i].iter().map(|row| &row[1]).collect::<Vec<_>>();
    assert!(masses(4)[0] != masses(4)[1] && masses(5)[0] == masses(5)[1], "{:?}", masses(4));
    // Scores and features have a header.
    let (score, _) = heard(at, "score r animals.csv --out scores.csv");
    assert!(score["log_slope"].is_number() && score["baseline"].is_number(), "{score}");
    let scores = cells(&at.join("scores.csv"));
    assert_eq!((scores[0][0].as_str(), scores.len()), ("log_likelihood", 91));
    let mean: f64 =
        scores[1..].iter().map(|r| r[0].parse::<f64>().unwrap_or(f64::NAN)).sum::<f64>() / 90.0;
    assert!((mean - score["log_likelihood"].as_f64().expect("a number")).abs() < 1e-9);
    heard(at, "features r animals.csv --out features.csv");
    assert_eq!(cells(&at.join("features.csv"))[0][0], "hidden.0");
    // What is written can be read again.
    heard(at, "score r drawn.csv");
    heard(at, "score r whole.csv");
}

#[test]
fn columns_are_found_by_their_names() {
    let folder = trained();
    let at = folder.path();
    let score = |file: &str| heard(at, &format!("score r {file}")).0["log_likelihood"].as_f64();
    let table = cells(&at.join("animals.csv"));
    let chosen = |order: &[usize]| {
        let row = |row: &Vec<String>| {
            order.iter().map(|&c| row[c].as_str()).collect::<Vec<_>>().join(",") + "\n"
        };
        table.iter().map(row).collect::<String>()
    };
    fs::write(at.join("turned.csv"), chosen(&[4, 6, 2, 1, 3])).expect("written");
    assert_eq!(score("animals.csv"), score("turned.csv"));
    // A column that is not there is missing data, and one that is unknown an error.
    fs::write(at.join("fewer.csv"), chosen(&[1, 2, 3])).expect("written");
    let (_, notes) = heard(at, "complete r fewer.csv --out fuller.csv");
    assert!(notes.contains("count as missing: `legs`, `price`"), "{notes}");
    assert_eq!(cells(&at.join("fuller.csv"))[0], ["mass kg", "kind", "at night", "legs", "price"]);
    fs::write(at.join("more.csv"), "kind,colour,mass kg\ncat,red,4.0\neel,blue,x\n")
        .expect("written");
    let error = refused(at, "score r more.csv");
    assert!(error.contains("column `colour` was not in the training table"), "{error}");
    let (_, notes) = heard(at, "score r more.csv --unknown missing");
    assert!(notes.contains("passed over: `colour`") && notes.contains("2 cells hold"), "{notes}");
}

#[test]
fn what_is_known_can_be_said_value_by_value() {
    let folder = trained();
    let at = folder.path();
    heard(at, "sample r --n 50 --where kind=owl --where at_night=True --out owls.csv");
    let owls = cells(&at.join("owls.csv"));
    assert!(owls.len() == 51 && owls[1..].iter().all(|row| row[1] == "owl" && row[2] == "True"));
    let score = |line: &str| {
        let (value, _) = heard(at, line);
        value["log_likelihood"].as_f64().expect("a number")
    };
    // The probabilities of all words of a column add up to one.
    let kinds = ["owl", "cat", "dog"].map(|k| score(&format!("score r --where kind={k}")).exp());
    assert!((kinds.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{kinds:?}");
    // With a value for every row, it is as if the table had it.
    let table = cells(&at.join("animals.csv"));
    let owls: String = table
        .iter()
        .enumerate()
        .map(|(i, row)| {
            let kind = if i == 0 { "kind" } else { "owl" };
            format!("{},{kind},{}\n", row[1], row[3])
        })
        .collect();
    fs::write(at.join("as-owls.csv"), owls).expect("written");
    let columns = "--where kind=owl";
    let without: String = table.iter().map(|row| format!("{},{}\n", row[1], row[3])).collect();
    fs::write(at.join("without.csv"), without).expect("written");
    let both = [score("score r as-owls.csv"), score(&format!("score r without.csv {columns}"))];
    assert!((both[0] - both[1]).abs() < 1e-12, "{both:?}");
    heard(at, "features r --where kind=cat --out cat.csv");
    heard(at, "complete r --where kind=cat --out cats.csv");
    let cats = cells(&at.join("cats.csv"));
    assert!(cats.len() == 2 && cats[1][0] == "cat", "{cats:?}");
    // Models of arrays name their columns by number.
    heard(at, "train rbm bars-and-stripes:3 --hidden 4 --epochs 5 --out bars");
    heard(at, "sample bars --where 4=1 --where 0=0 --n 20 --out bars.csv");
    assert!(cells(&at.join("bars.csv")).iter().all(|row| row[4] == "1" && row[0] == "0"));
}

#[test]
fn every_model_takes_a_mixed_table_or_says_why_not() {
    let folder = trained();
    let at = folder.path();
    heard(at, "train bm animals.csv --hidden 3 --lateral visible,hidden --epochs 3 --out bm");
    heard(at, "train dbm animals.csv --hidden 4,3 --epochs 3 --out dbm");
    heard(at, "sample dbm --n 3 --out deep.csv --sweeps 20");
    assert_eq!(cells(&at.join("deep.csv"))[0][0], "mass kg");
    let error = refused(at, "train dbn animals.csv --hidden 4,3 --epochs 3 --out dbn");
    assert!(error.contains("this table has 3: numbers, categories3, bits"), "{error}");
    let words: String = (0..60)
        .map(|i| format!("{},{}\n", ["a", "b", "c"][i % 3], ["x", "y", "z"][i * 7 % 10 % 3]))
        .collect();
    fs::write(at.join("words.csv"), format!("first,second\n{words}")).expect("written");
    heard(at, "train dbn words.csv --hidden 4,3 --epochs 3 --out dbn");
    heard(at, "sample dbn --n 3 --out words-drawn.csv --sweeps 20");
    assert_eq!(cells(&at.join("words-drawn.csv"))[0], ["first", "second"]);
    // A label is a kind, too.
    heard(at, "train rbm animals.csv --kind kind=label --hidden 4 --epochs 3 --out labelled");
    let (value, _) = heard(at, "classify labelled animals.csv");
    assert!(value["error_rate"].is_number() && value["classes"][2] == "owl", "{value}");
    heard(at, "sample labelled --class owl --n 4 --out some.csv");
    assert!(cells(&at.join("some.csv"))[1..].iter().all(|row| row[1] == "owl"));
    let again = heard(at, "train rbm --out labelled --resume").1;
    assert!(again.contains("nothing was left to do"), "{again}");
}

#[test]
fn kinds_are_said_by_flags_or_in_a_file() {
    let folder = trained();
    let at = folder.path();
    fs::write(
        at.join("run.toml"),
        "hidden = [3]\nepochs = 2\n[kinds]\nlegs = \"gaussian\"\nprice = \"ignore\"\n",
    )
    .expect("written");
    let line = "train rbm animals.csv --config run.toml --kind price=gaussian:linear --out k";
    let (_, notes) = heard(at, line);
    assert!(notes.contains("legs      gaussian     as asked for"), "{notes}");
    assert!(notes.contains("price     gaussian     as asked for, mean"), "{notes}");
    let stored = fs::read_to_string(at.join("k/run.toml")).expect("written");
    assert!(stored.contains("[kinds]") && stored.contains("legs = \"gaussian\""), "{stored}");
    let again = heard(at, "train rbm animals.csv --config k/run.toml --out again").0;
    assert_eq!(again["epochs"], 2);
    let same = |run: &str| fs::read(at.join(run).join("model.safetensors")).expect("written");
    assert!(same("k") == same("again"), "the same settings give the same bytes");
}

/// Tables of numbers are what they were: no codebook, and the bytes of an array of the same values.
#[test]
fn a_table_of_numbers_of_one_sort_is_an_array() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    heard(at, "convert bars-and-stripes:3 plain.csv");
    let plain = fs::read_to_string(at.join("plain.csv")).expect("written");
    fs::write(at.join("named.csv"), format!("a,b,c,d,e,f,g,h,i\n{plain}")).expect("written");
    let model = |data: &str, out: &str| {
        heard(at, &format!("train rbm {data} --hidden 4 --epochs 3 --out {out}"));
        let (inspected, _) = heard(at, &format!("inspect {out}"));
        inspected["layers"].clone()
    };
    assert_eq!(model("plain.csv", "p")[0]["name"], "visible");
    assert_eq!(model("named.csv", "n")[0]["name"], "visible");
    let samples = |run: &str| {
        heard(at, &format!("sample {run} --n 20 --out {run}.csv"));
        fs::read_to_string(at.join(format!("{run}.csv"))).expect("written")
    };
    assert_eq!(samples("p"), samples("n"), "a header changes nothing");
    // A column of zeros and ones beside other numbers makes it a table of columns.
    let mixed: String = (0..40).map(|i| format!("{},{}.5\n", i % 2, i * 7 % 13)).collect();
    fs::write(at.join("mixed.csv"), format!("on,length\n{mixed}")).expect("written");
    let (_, notes) = heard(at, "train rbm mixed.csv --hidden 4 --epochs 3 --out m");
    assert!(notes.contains("on      binary") && notes.contains("length  gaussian"), "{notes}");
    let (_, notes) =
        heard(at, "train rbm mixed.csv --visible gaussian --hidden 4 --epochs 3 --out g");
    assert!(!notes.contains("columns are learned"), "{notes}");
}

/// Tables that are broken when they are learned, the flags, and what must be said about each: where it is, and what
/// to do.
const BROKEN: [(&str, &[u8], &str, [&str; 2]); 22] = [
    ("nothing", b"", "", ["the data is empty", "at least one row"]),
    ("a header alone", b"a,b\n", "", ["0 rows, 2 columns", "at least one row"]),
    ("a row too short", b"a,b\nx,1\ny\n", "", ["line 3 has 1 columns", "same number of columns"]),
    (
        "a row too long",
        b"a,b\nx,1\ny,2,3\n",
        "",
        ["line 3 has 3 columns", "same number of columns"],
    ),
    (
        "a quote that stays open",
        b"a,b\nx,1\n\"y,2\nz,3\n",
        "",
        ["line 3 opens a quote", "close the quote"],
    ),
    ("other letters", b"a,b\nx,1\n\xffy,2\n", "", ["line 3 is not UTF-8", "as UTF-8"]),
    ("UTF-16", b"\xff\xfea\x00,\x00b\x00", "", ["UTF-16", "formats: "]),
    (
        "one name twice",
        b"a,b,a\nx,1,2\ny,3,4\n",
        "",
        ["columns 0 and 2 are both called `a`", "a name of its own"],
    ),
    (
        "a word among numbers",
        b"a,b\n1,x\n2,y\n3,x\n4,y\n5,x\n6,y\n7,x\n8,y\n9,x\n1O,y\n11,x\n12,y\n",
        "",
        ["row 10 (line 11), column `a` holds `1O`, and 11 other cells", "`--kind a=categorical`"],
    ),
    (
        "a number without end",
        b"a,b\n1,x\n2,y\n3,x\n4,y\n5,x\n6,y\n7,x\n8,y\n9,x\n1e999,y\n11,x\n12,y\n",
        "",
        ["row 10 (line 11), column `a` holds `1e999`", "correct the cell"],
    ),
    (
        "nothing to learn",
        b"id,day,same\nu1,2020-01-01,x\nu2,2020-01-02,x\nu3,2020-01-03,x\n",
        "",
        ["`same` (every value is `x`)", "`--kind NAME=KIND`"],
    ),
    (
        "decimal commas",
        b"a;b\n1,5;2,5\n3,5;4,5\n5,5;6,5\n7,5;1,5\n",
        "",
        [
            "no column can be learned: `a` (numbers with a decimal comma: write 1.5",
            "`--kind NAME=KIND`",
        ],
    ),
    (
        "a kind of no column",
        b"a,b\nx,1\ny,2\n",
        "--kind c=binary",
        ["there is no column `c`; there are a, b", "header of the table"],
    ),
    (
        "words as numbers",
        b"a,b\nx,1\ny,2\n",
        "--kind a=gaussian",
        [
            "row 1 (line 2), column `a` holds `x`, which is not a number",
            "`--kind NAME=categorical`",
        ],
    ),
    (
        "three values as two",
        b"a,b\nx,1\ny,2\nz,3\n",
        "--kind a=binary",
        ["column `a` has 3 different values", "binary columns have two"],
    ),
    (
        "numbers that do not count",
        b"a,b\nx,1\ny,2.5\nz,3\n",
        "--kind b=counts",
        [
            "row 2 (line 3), column `b` holds `2.5`, which is not a whole number from 0 to 1023",
            "`--kind b=gaussian`",
        ],
    ),
    (
        "more successes than trials",
        b"a,b\nx,1\ny,7\nz,3\n",
        "--kind b=binomial:5",
        ["holds `7`, which is not a whole number from 0 to 5", "correct the cell"],
    ),
    (
        "words in an order that nobody knows",
        b"a,b\nlow,1.5\nhigh,2.5\nmid,3.5\n",
        "--kind a=ordinal",
        ["column `a` holds `low`, which is not a number", "`--kind NAME=categorical`"],
    ),
    (
        "a kind that is none",
        b"a,b\nx,1\ny,2\nz,3\n",
        "--kind b=real",
        ["`real` is not a kind of a column", "it is binary, gaussian, categorical"],
    ),
    (
        "two labels",
        b"a,b,c\nx,1,2\ny,2,3\nx,2,4\n",
        "--kind a=label --kind b=label",
        ["columns `a` and `b` are both said to be the label", "learn the other as categorical"],
    ),
    (
        "a row without its class",
        b"a,b,c\nx,1,2.5\n,2,3.5\ny,2,4.5\n",
        "--kind a=label",
        ["row 2 (line 3), column `a`, the label, is missing", "learn the column as categorical"],
    ),
    (
        "a logarithm of less than nothing",
        b"a,b\nx,1.5\ny,-2.5\nx,3.5\n",
        "--kind b=gaussian:log",
        ["column `b` holds numbers below 0", "`gaussian:linear`"],
    ),
];

/// Tables that a model of animals cannot take, and what must be said about each.
const UNFIT: [(&str, &str, &str, [&str; 2]); 7] = [
    (
        "an unknown word",
        "kind,mass kg\ncat,4.0\neel,2.0\n",
        "",
        [
            "row 2 (line 3), column `kind` holds `eel`; the training table had cat, dog, owl",
            "`--unknown missing`",
        ],
    ),
    (
        "an unknown column",
        "kind,colour\ncat,red\n",
        "",
        ["column `colour` was not in the training table", "`--unknown missing`"],
    ),
    (
        "none of the columns",
        "x,y\n1.5,red\n",
        "--unknown missing",
        ["there is no column", "header"],
    ),
    (
        "a word for a number",
        "kind,mass kg\ncat,heavy\n",
        "",
        [
            "row 1 (line 2), column `mass kg` holds `heavy`, which is not a number",
            "correct the cell",
        ],
    ),
    (
        "a price below zero",
        "kind,price\ncat,-3\n",
        "",
        [
            "row 1 (line 2), column `price` holds -3, and the column is learned on a logarithmic scale",
            "`--unknown missing`",
        ],
    ),
    (
        "kinds of a trained model",
        "kind\ncat\n",
        "--kind kind=label",
        ["the kinds of the columns are", "leave `--kind` out"],
    ),
    (
        "a setting of arrays",
        "kind\ncat\n",
        "--transpose",
        ["`transpose` is about arrays", "leave it out"],
    ),
];

#[test]
fn broken_tables_are_told_where_and_what_to_do() {
    let folder = trained();
    let at = folder.path();
    for (what, bytes, flags, [said, hint]) in BROKEN {
        fs::write(at.join("broken.csv"), bytes).expect("written");
        let line = format!("train rbm broken.csv --hidden 2 --epochs 1 --out broken {flags}");
        let error = refused(at, line.trim_end());
        let (message, way_out) = error.split_once("\nhint: ").expect("a hint");
        // What the command line itself refuses has its way out in the sentence.
        let either = if flags.contains("=real") { message } else { way_out };
        assert!(message.contains(said) && either.contains(hint), "{what}: {error}");
        assert!(!at.join("broken").exists(), "{what}: nothing is left behind");
    }
    for (what, text, flags, [said, hint]) in UNFIT {
        fs::write(at.join("unfit.csv"), text).expect("written");
        let error = refused(at, format!("score r unfit.csv {flags}").trim_end());
        let (message, way_out) = error.split_once("\nhint: ").expect("a hint");
        assert!(message.contains(said) && way_out.contains(hint), "{what}: {error}");
    }
    // Numbers without names are no table.
    heard(at, "convert bars-and-stripes:3 bars.npy");
    let error = refused(at, "score r bars.npy");
    assert!(error.contains("trained on a table with named columns, and this has none"), "{error}");
}

/// Visits, grades and hits of people of whom some are ill.
fn people(n: usize) -> String {
    let mut text = String::from("visits,grade,hits,ill\n");
    for i in 0..n {
        let ill = i * i % 7 % 2;
        let visits = if ill == 1 { 3 + i * 37 % 11 } else { i * 53 % 3 };
        let (grade, hits) = (1 + (i * 31 % 3) + ill, (i * 17 % 5) + 3 * ill);
        let visits = if i % 9 == 4 { String::new() } else { visits.to_string() };
        let _ = writeln!(text, "{visits},{grade},{hits},{ill}");
    }
    text
}

#[test]
fn counts_levels_and_successes_are_learned_drawn_and_filled() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    fs::write(at.join("people.csv"), people(120)).expect("written");
    let (code, out, _) = said(at, &["data", "people.csv"]);
    assert_eq!(code, 0);
    for advice in ["`--kind visits=counts`", "`--kind grade=ordinal`"] {
        assert!(out.contains(advice), "`{advice}` is not in: {out}");
    }
    let kinds = "--kind visits=counts --kind grade=ordinal --kind hits=binomial:8";
    heard(
        at,
        &format!(
            "train rbm people.csv {kinds} --hidden 4 --epochs 400 --learning-rate 0.05 --out r"
        ),
    );
    let (score, _) = heard(at, "score r people.csv");
    assert_eq!(score["method"], "exact");
    let gain = score["log_likelihood"].as_f64().expect("a number")
        - score["baseline"].as_f64().expect("a number");
    assert!(gain > 0.0, "{score}");
    heard(at, "sample r --n 50 --out drawn.csv");
    for row in &cells(&at.join("drawn.csv"))[1..] {
        let number = |c: usize| row[c].parse::<usize>().expect("a whole number");
        assert!(number(0) <= 31 && (1..=4).contains(&number(1)) && number(2) <= 8, "{row:?}");
    }
    let (filled, _) = heard(at, "complete r people.csv --out whole.csv --errors errors.csv");
    assert_eq!(filled["missing"], 13);
    let whole = cells(&at.join("whole.csv"));
    assert!(whole[1..].iter().all(|row| row[0].parse::<usize>().is_ok()), "{whole:?}");
    fs::write(at.join("many.csv"), "visits,grade,hits,ill\n500,2,3,1\n").expect("written");
    let error = refused(at, "score r many.csv");
    assert!(error.contains("holds `500`, which is not a whole number from 0 to 31"), "{error}");
}

#[test]
fn bits_that_add_up_to_one_are_noticed_and_learned_as_categories() {
    let folder = TempDir::new().expect("a folder");
    let at = folder.path();
    let row = |i: usize| {
        let k = i * i % 7 % 3;
        let bit = |on: bool| if on { "1" } else { "0" };
        let cells = [
            bit(k == 0),
            bit(k == 1),
            bit(k == 2),
            bit((k == 0) ^ i.is_multiple_of(5)),
            bit(i.is_multiple_of(2)),
        ];
        format!("{}\n", cells.join(","))
    };
    fs::write(at.join("bits.csv"), (0..100).map(row).collect::<String>()).expect("written");
    let (seen, _) = heard(at, "data bits.csv");
    assert_eq!(seen["groups"], serde_json::json!([[0, 3]]));
    let line = "train rbm bits.csv --hidden 3 --epochs 20";
    let (_, notes) = heard(at, &format!("{line} --out bits"));
    assert!(notes.contains("`--groups auto` learns each as one categorical unit"), "{notes}");
    let (_, notes) = heard(at, &format!("{line} --groups auto --out groups"));
    assert!(notes.contains("each is learned as one categorical unit"), "{notes}");
    let score = |run: &str| {
        let (found, _) = heard(at, &format!("score {run} bits.csv"));
        found["log_likelihood"].as_f64().expect("a number")
    };
    assert!(score("groups") > score("bits"), "{} {}", score("groups"), score("bits"));
    heard(at, "sample groups --n 40 --out drawn.csv");
    for row in cells(&at.join("drawn.csv")) {
        let ones = row[..3].iter().filter(|c| c.parse::<f64>() == Ok(1.0)).count();
        assert_eq!(ones, 1, "{row:?}");
    }
    fs::write(at.join("two.csv"), "1,1,0,0,1\n".repeat(3)).expect("written");
    refused(at, "score groups two.csv");
}

#[test]
fn rows_are_held_against_normal_ones() {
    let folder = trained();
    let at = folder.path();
    fs::write(at.join("normal.csv"), animals(180)).expect("written");
    let odd = "name,mass kg,kind,at night,legs,seen on,price\nX,900.0,owl,False,4,2024-03-01,5\n";
    fs::write(at.join("odd.csv"), odd).expect("written");
    let (found, _) = heard(at, "score r odd.csv --anomaly normal.csv --out p.csv");
    assert_eq!((&found["n"], &found["n_normal"]), (&1.into(), &180.into()));
    assert_eq!(found["smallest_p"], 1.0 / 181.0);
    let p = cells(&at.join("p.csv"));
    assert_eq!(p[0], ["score", "p_value"]);
    assert!(p[1][1].parse::<f64>().expect("a number") < 0.006, "{p:?}");
    let (code, out, _) = said(at, &["score", "r", "odd.csv", "--anomaly", "normal.csv"]);
    assert!(code == 0 && out.contains("1 rows beside 180 normal ones"), "{out}");
    refused(at, "score r odd.csv --anomaly nowhere.csv");
}

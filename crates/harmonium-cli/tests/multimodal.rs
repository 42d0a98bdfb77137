//! Several modalities, hidden parts of pictures and retrieval, from the command line.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// What was said on stdout and stderr by a command that ends with `code`.
fn said(folder: &Path, line: &str, code: i32) -> (String, String) {
    let mut command = Command::cargo_bin("harmonium").expect("the binary is built");
    let output =
        command.args(line.split_whitespace()).current_dir(folder).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{line}: {err}");
    (out, err)
}

fn json(folder: &Path, line: &str) -> Value {
    let (out, _) = said(folder, &format!("{line} --json --quiet"), 0);
    serde_json::from_str(&out).expect("one object")
}

/// Bars in pictures of 4x4: which row is on is the tag; the key of row `i` is `k<i>`.
fn write_bars(at: &Path) {
    let (mut pictures, mut tags, mut shuffled, mut split) =
        (String::new(), String::new(), String::from("id,top,upper,lower,bottom\n"), String::new());
    for i in 0..120 {
        let bar = i % 4;
        let pixel = |p: usize| if p / 4 == bar { "1" } else { "0" };
        pictures.push_str(&(0..16).map(pixel).collect::<Vec<_>>().join(","));
        pictures.push('\n');
        let tag = |t: usize| if t == bar { "1" } else { "0" };
        tags.push_str(&(0..4).map(tag).collect::<Vec<_>>().join(","));
        tags.push('\n');
        split.push_str(if i < 100 { "train\n" } else { "test\n" });
        // Every fifth row has no tags.
        let j = 119 - i;
        if j % 5 != 0 {
            let own: Vec<&str> = (0..4).map(|t| if t == j % 4 { "1" } else { "0" }).collect();
            shuffled += &["k", &j.to_string(), ",", &own.join(","), "\n"].concat();
        }
    }
    let keyed = pictures.lines().enumerate().map(|(i, l)| format!("k{i},{l}\n"));
    let keyed = keyed.collect::<Vec<_>>().concat();
    let header = format!("id,{}\n", (0..16).map(|p| format!("p{p}")).collect::<Vec<_>>().join(","));
    fs::write(at.join("pictures.csv"), pictures).expect("data");
    fs::write(at.join("tags.csv"), tags).expect("data");
    fs::write(at.join("names.txt"), "top\nupper\nlower\nbottom\n").expect("names");
    fs::write(at.join("split.txt"), split).expect("a split");
    fs::write(at.join("keyed.csv"), header + &keyed).expect("data");
    fs::write(at.join("shuffled.csv"), shuffled).expect("data");
}

const TRAIN: &str = "train multimodal --modality image=pictures.csv --modality tags=tags.csv --names tags=names.txt \
                     --image image=4x4 --hidden image=8 --joint 8 --batch 10 --pretrain-epochs 50 --epochs 200 --learning-rate 0.05";

#[test]
fn tags_of_pictures_and_pictures_of_tags() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write_bars(at);
    said(at, &format!("{TRAIN} --rows split.txt=train --out r --quiet"), 0);
    let test = "--rows split.txt=test";
    // Tags by name.
    let found = json(
        at,
        &format!("complete r --given image=pictures.csv {test} --of tags --top 2 --out t.csv"),
    );
    assert_eq!(found["n"], 20);
    assert_eq!(found["top"][0][0][0], "top", "{found}");
    assert_eq!(found["top"][1][0][0], "upper", "{found}");
    let text = fs::read_to_string(at.join("t.csv")).expect("it was written");
    assert!(text.starts_with("top,0.") || text.starts_with("top,1."), "{text}");
    said(
        at,
        &format!("complete r --given image=pictures.csv {test} --of tags --out all.csv --quiet"),
        0,
    );
    let text = fs::read_to_string(at.join("all.csv")).expect("it was written");
    assert!(text.starts_with("top,upper,lower,bottom\n"), "{text}");
    // Pictures of tags.
    said(at, &format!("sample r --given tags=tags.csv {test} --of image --out p.npy --quiet"), 0);
    said(at, &format!("sample r --given tags=tags.csv {test} --of image --out p.png --quiet"), 0);
    // Conditional log-likelihoods are above those of each cell on its own.
    let both = format!("--given image=pictures.csv --given tags=tags.csv {test}");
    for of in ["tags", "image"] {
        let score = json(at, &format!("score r {both} --of {of}"));
        let of_score = |key: &str| score[key].as_f64().expect("a number");
        assert!(of_score("log_likelihood") > of_score("baseline") + 1.0, "{score}");
        assert!(of_score("lower") <= of_score("upper"), "{score}");
    }
    assert!(json(at, &format!("score r {both}"))["log_likelihood"].is_f64());
    let features =
        json(at, &format!("features r --given tags=tags.csv {test} --of joint --out f.npy"));
    assert_eq!(features["features"], 8);
    // Four kinds of pictures: five of twenty are as near as the partner.
    for by in ["conditional", "features"] {
        let found = json(
            at,
            &format!(
                "retrieve r --query tags=tags.csv --among image=pictures.csv {test} --by {by} --top 5 --out {by}.png"
            ),
        );
        assert!(found["median_rank"].as_f64().expect("a number") <= 4.0, "{found}");
    }
}

#[test]
fn a_run_of_several_modalities_is_resumed_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write_bars(at);
    said(at, &format!("{TRAIN} --rows split.txt=train --valid split.txt=test --out r --quiet"), 0);
    said(at, "train multimodal --out r --resume --quiet", 0);
    let config = fs::read_to_string(at.join("r/run.toml")).expect("it is there");
    let again = config.replace("out = \"r\"", "");
    fs::write(at.join("again.toml"), again).expect("a configuration");
    said(at, "train multimodal --config again.toml --out s --quiet", 0);
    let model = |run: &str| fs::read(at.join(run).join("model.safetensors")).expect("a model");
    assert!(model("r") == model("s"), "the same settings give the same bytes");
}

#[test]
fn rows_belong_together_by_a_key_and_may_lack_a_modality() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write_bars(at);
    said(
        at,
        "train multimodal --modality image=keyed.csv --modality tags=shuffled.csv --key id --hidden image=8 --joint 8 \
         --batch 10 --pretrain-epochs 50 --epochs 200 --learning-rate 0.05 --out r --quiet",
        0,
    );
    let found =
        json(at, "complete r --given image=keyed.csv --rows 0..8 --of tags --top 1 --out t.csv");
    assert_eq!((found["n"].as_u64(), found["missing"].as_u64()), (Some(8), Some(32)), "{found}");
    let inspected = json(at, "inspect r");
    assert_eq!(inspected["data_rows"], 120, "rows that lack tags are rows too: {inspected}");
}

#[test]
fn hidden_parts_are_imagined_and_scored() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    said(
        at,
        "train rbm bars-and-stripes:4 --hidden 12 --epochs 400 --learning-rate 0.1 --out r --quiet",
        0,
    );
    let found = json(
        at,
        "complete r bars-and-stripes:4 --rows 0..6 --hide lower-half --alternatives 3 --out h.png",
    );
    let conditional = &found["conditional"];
    let of = |key: &str| conditional[key].as_f64().expect("a number");
    assert_eq!((conditional["n"].as_u64(), conditional["cells"].as_u64()), (Some(6), Some(48)));
    assert!(of("log_likelihood") > of("baseline") + 1.0, "{conditional}");
    assert_eq!(found["alternatives"]["verdict"], "exact", "{found}");
    assert!(at.join("h.png").is_file());
    for part in ["upper-half", "left-half", "right-half", "rectangle:1,1,2,2"] {
        said(
            at,
            &format!(
                "complete r bars-and-stripes:4 --rows 0..2 --hide {part} --force --out h.png --quiet"
            ),
            0,
        );
    }
    fs::write(at.join("mask.csv"), format!("{}\n", ["1", "0"].repeat(8).join(",")))
        .expect("a mask");
    said(
        at,
        "complete r bars-and-stripes:4 --rows 0..2 --hide mask.csv --no-score --out m.npy --quiet",
        0,
    );
    let (_, err) =
        said(at, "complete r bars-and-stripes:4 --hide rectangle:3,0,2,1 --out x.png", 2);
    assert!(err.contains("4x4") && err.contains("hint:"), "{err}");
    let (_, err) = said(at, "complete r bars-and-stripes:4 --hide middle --out x.png", 2);
    assert!(err.contains("middle") && err.contains("hint:"), "{err}");
    let (_, err) =
        said(at, "complete r bars-and-stripes:4 --rows 30..40 --hide lower-half --out x.png", 2);
    assert!(err.contains("30..40") && err.contains("32"), "{err}");
}

#[test]
fn what_does_not_fit_is_said_with_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write_bars(at);
    let lines = [
        ("train multimodal --modality image=pictures.csv --joint 4 --out r", "modalities"),
        (
            "train multimodal --modality image=pictures.csv --modality tags=tags.csv --out r",
            "joint",
        ),
        ("train multimodal pictures.csv --joint 4 --out r", "NAME=DATA"),
        ("train rbm pictures.csv --joint 4 --epochs 1 --out r", "multimodal"),
        (
            "train multimodal --modality pictures.csv --modality tags=tags.csv --joint 4 --out r",
            "whose data",
        ),
        (
            "train multimodal --modality image=pictures.csv --modality tags=tags.csv --joint 4 --hidden 5 --out r",
            "NAME=N",
        ),
    ];
    for (line, word) in lines {
        let (_, err) = said(at, line, 2);
        assert!(err.contains("error:") && err.contains("hint:"), "{line}: {err}");
        assert!(err.contains(word), "{line}: {err}");
    }
    said(at, &format!("{TRAIN} --epochs 1 --out r --quiet").replace("--epochs 200 ", ""), 0);
    let (_, err) = said(at, "complete r --given sound=tags.csv --of tags --out t.csv", 2);
    assert!(err.contains("sound") && err.contains("image, tags"), "{err}");
    let (_, err) = said(at, "complete r --given image=tags.csv --of tags --out t.csv", 2);
    assert!(err.contains("16") && err.contains('4'), "{err}");
    let (_, err) = said(at, "complete r --given image=pictures.csv --of sound --out t.csv", 2);
    assert!(err.contains("sound"), "{err}");
}

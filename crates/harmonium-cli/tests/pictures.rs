//! Pictures on the way in and out: their shape, what is drawn in them, and what is lost.

use assert_cmd::Command;
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

/// Colours of a picture.
fn pixels(path: &Path) -> (u32, u32, Vec<u8>) {
    let mut decoder =
        png::Decoder::new(std::io::BufReader::new(fs::File::open(path).expect("it is there")));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().expect("a picture");
    let mut buffer = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut buffer).expect("pixels");
    (info.width, info.height, buffer)
}

fn shades(path: &Path) -> usize {
    let (.., pixels) = pixels(path);
    let mut seen: Vec<u8> =
        pixels.chunks_exact(3).filter(|p| p[0] == p[1] && p[1] == p[2]).map(|p| p[0]).collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len()
}

#[test]
fn means_are_grey_and_samples_black_and_white() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    said(at, "train rbm bars-and-stripes:3 --hidden 6 --epochs 50 --out r --quiet", 0);
    fs::write(at.join("given.csv"), "1,1,1,0,0,0,0,0,0\n".repeat(2)).expect("data");
    fs::write(at.join("mask.csv"), "1,1,1,0,0,0,0,0,0\n").expect("a mask");
    for given in ["--n 16", "--given given.csv --mask mask.csv"] {
        let sample = format!("sample r --sweeps 5 {given} --force --out");
        said(at, &format!("{sample} s.png"), 0);
        said(at, &format!("{sample} m.png --means"), 0);
        assert_eq!(shades(&at.join("s.png")), 2, "{given}: what was drawn is 0 or 1");
        assert!(shades(&at.join("m.png")) > 2, "{given}: probabilities are grey");
    }
}

#[test]
fn rows_that_are_said_to_be_pictures_are_drawn_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    // The letter L in three rows of two, listed down its columns.
    fs::write(at.join("l.csv"), "1,1,1,0,0,1\n0,0,1,0,1,1\n".repeat(20)).expect("data");
    said(at, "convert l.csv rows.png --columns 0..6 --image 3x2:column-major", 0);
    let (out, _) = said(at, "data l.csv --image 3x2:column-major --json", 0);
    assert!(out.contains("\"image\":[3,2]"), "{out}");
    said(at, "train rbm l.csv --image 3x2:column-major --hidden 3 --epochs 2 --out r --quiet", 0);
    said(at, "sample r --n 1 --sweeps 3 --out one.png", 0);
    let (width, height, _) = pixels(&at.join("one.png"));
    let zoom = width / 4;
    assert_eq!((width, height), (4 * zoom, 5 * zoom), "two by three, and lines around them");
    // The same rows score the same, since the model knows how they are read.
    let (out, _) = said(at, "score r l.csv --method exact --json", 0);
    assert!(out.contains("\"n\":40"), "{out}");
    let (_, err) = said(at, "data l.csv --image 4x2", 2);
    assert!(
        err.contains("6 values") && err.contains("4x2 has 8") && err.contains("hint:"),
        "{err}"
    );
    let (_, err) = said(at, "data l.csv --image square", 2);
    assert!(err.contains("HxW"), "{err}");
}

#[test]
fn lost_colour_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 2, 1);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().expect("a header");
    writer.write_image_data(&[200, 10, 10, 7, 7, 7]).expect("pixels");
    writer.finish().expect("an end");
    fs::create_dir(folder.path().join("p")).expect("a folder");
    fs::write(folder.path().join("p/a.png"), bytes).expect("a picture");
    let (_, err) = said(folder.path(), "data p", 0);
    assert!(err.contains("note: the picture is in colour"), "{err}");
}

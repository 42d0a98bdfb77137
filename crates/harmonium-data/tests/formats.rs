//! What each reader makes of small files.

#![cfg(feature = "readers")]

mod write;

use harmonium_data::{
    BlockValues, Error, Format, Image, Loaded, Options, decode, open, open_labels,
};
use std::path::PathBuf;
use write::{
    GREY, compressed, element, gz, idx, mat, mat_bytes, mat_struct, mat_text, matrix, npy, npz,
    png, samples,
};

fn read(bytes: &[u8], options: &Options) -> Loaded {
    decode(bytes, None, options).unwrap_or_else(|e| panic!("{e}"))
}

fn text(text: &str) -> Loaded {
    read(text.as_bytes(), &Options::default())
}

fn rows(loaded: &Loaded) -> Vec<Vec<f32>> {
    let row = |r| (0..loaded.table.n_columns()).map(|c| loaded.table.at(r, c)).collect();
    (0..loaded.table.n_rows()).map(row).collect()
}

fn with(change: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::default();
    change(&mut options);
    options
}

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("harmonium-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        let parent = path.parent().unwrap_or(&self.0);
        std::fs::create_dir_all(parent).expect("a folder for the test");
        std::fs::write(&path, bytes).expect("a file for the test");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_format_gives_the_same_table_and_fingerprint() {
    let hash = |l: &Loaded| l.about.content_hash;
    let all: Vec<(Format, Loaded)> =
        samples().iter().map(|(f, b)| (*f, read(b, &Options::default()))).collect();
    for (format, loaded) in &all {
        assert_eq!(loaded.about.format, *format, "recognised by content");
        assert_eq!(loaded.table.only_block(), Some(&BlockValues::Bytes(GREY.to_vec())), "{format}");
        assert_eq!(loaded.table.full_scale().to_bits(), 255.0_f32.to_bits(), "{format}");
        if *format != Format::SvmLight {
            assert_eq!(hash(loaded), hash(&all[0].1), "{format}");
        }
    }
    let svm = &all.last().unwrap().1;
    assert_eq!(svm.labels.as_ref().unwrap().values(), [1, 0, 1]);
    assert_eq!(svm.labels.as_ref().unwrap().name(0), "-1");
}

#[test]
fn zeros_and_ones_are_packed_in_every_format() {
    let bits = |l: &Loaded| l.table.is_bits();
    assert!(bits(&text("0,1\n1,1\n")));
    assert!(bits(&text("0.0 1.0\n1e0 -0.0\n")));
    assert!(bits(&read(&idx(8, &[2, 2], &[0, 255, 255, 0]), &Options::default())));
    assert!(bits(&read(&npy("|b1", false, "(2, 2)", &[1, 0, 0, 1]), &Options::default())));
    assert!(!bits(&text("0,1\n1,-1\n")));
    let gap = text("0,1\n1,\n");
    assert!(bits(&gap) && gap.table.n_missing() == 1 && gap.table.is_missing(1, 1));
    assert!(!bits(&read(&idx(8, &[2, 2], &[0, 255, 1, 0]), &Options::default())));
}

#[test]
fn numpy_types_and_orders() {
    let f16 = npy("<f2", false, "(1, 2)", &[0x00, 0x3c, 0x00, 0xc0]);
    assert_eq!(rows(&read(&f16, &Options::default())), [[1.0, -2.0]]);
    let big = npy(">i4", false, "(2,)", &[0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(rows(&read(&big, &Options::default())), [[256.0], [-1.0]]);
    let stack = npy("|u1", false, "(2, 1, 3)", &[1, 2, 3, 4, 5, 6]);
    let plain = read(&stack, &Options::default());
    assert_eq!(plain.table.image(), Some(Image { height: 1, width: 3 }));
    let turned = read(&stack, &with(|o| o.transpose = true));
    assert_eq!(rows(&turned), [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]);
    assert_eq!(turned.table.image(), Some(Image { height: 2, width: 1 }));
}

#[test]
fn packed_bits_come_back() {
    let packed = npy("|u1", false, "(2, 2)", &[0b1010_0000, 0b0100_0000, 0xff, 0xff]);
    let loaded = read(&packed, &with(|o| o.packed_bits = Some(10)));
    let expected = [1., 0., 1., 0., 0., 0., 0., 0., 0., 1.];
    assert_eq!(rows(&loaded), [expected, [1.0; 10]]);
    let turned = read(
        &packed,
        &with(|o| {
            o.packed_bits = Some(10);
            o.transpose = true;
        }),
    );
    assert_eq!((turned.table.n_rows(), turned.table.n_columns()), (10, 2));
    let error = decode(b"0.5 1\n", None, &with(|o| o.packed_bits = Some(16))).unwrap_err();
    assert!(matches!(error, Error::NotAByte { row: 0, column: 0, .. }));
}

#[test]
fn archives_list_what_they_hold() {
    let small = npy("|u1", false, "(1, 2)", &[1, 2]);
    let archive = npz(&[("a", small.clone()), ("b", small)]);
    let error = decode(&archive, None, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("`a` (1x2), `b` (1x2)"), "{error}");
    assert!(error.hint().contains("--variable"));
    let b = read(&gz(&archive), &with(|o| o.variable = Some("b".into())));
    assert_eq!(rows(&b), [[1.0, 2.0]]);
}

#[test]
fn texts_of_many_habits() {
    assert_eq!(rows(&text("a;b\n1;2\n")), [[1.0, 2.0]]);
    assert_eq!(rows(&text("  1   2\n\t3 4  \n\n")), [[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(rows(&text("1,2,\n3,4,\n")), [[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(rows(&text("\u{feff}1,2\r\n3,4\r\n")), [[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(rows(&text("\"1\",\"2\"\n\"3\",\"4\"")), [[1.0, 2.0], [3.0, 4.0]]);
    let gaps = text("x,y\n1,\n?,2\nNaN,NA\n");
    let missing = |r, c| gaps.table.at(r, c).is_nan();
    assert!(missing(0, 1) && missing(1, 0) && missing(2, 0) && missing(2, 1) && !missing(1, 1));
    let tabs = text("1\t2\t\n\t\t\n\t5\t6\n");
    assert_eq!((tabs.table.n_rows(), tabs.table.n_columns()), (3, 3));
    assert!(tabs.table.at(1, 1).is_nan() && tabs.table.at(2, 0).is_nan());
    assert_eq!(gaps.about.column_names.as_ref().unwrap(), &["x", "y"]);
}

#[test]
fn a_header_of_numbers_is_no_data() {
    let counted = text("0,1,2,3,4,5,6,7\n5,5,5,5,5,5,5,5\n");
    assert_eq!((counted.table.n_rows(), counted.about.notes.len()), (1, 1));
    assert_eq!(text("0,1,2\n5,5,5\n").table.n_rows(), 2);
    let indexed = text(",a,b\n0,5,6\n1,7,8\n");
    assert!(indexed.about.notes[0].contains("--columns 1.."));
}

#[test]
fn labels_may_be_words_anywhere_in_a_text() {
    let iris = "5.1,3.5,setosa\n7.0,3.2,versicolor\n4.9,3.0,setosa\n";
    let loaded = read(iris.as_bytes(), &with(|o| o.label_column = Some((-1).into())));
    assert_eq!(loaded.table.n_columns(), 2);
    assert_eq!(loaded.labels.unwrap().values(), [0, 1, 0]);
    let chosen = read(iris.as_bytes(), &with(|o| o.columns = Some(0..2)));
    assert_eq!(chosen.table.n_columns(), 2);
    let error = decode(iris.as_bytes(), None, &Options::default()).unwrap_err();
    assert!(matches!(error, Error::NotANumber { line: 1, column: 2, .. }), "{error}");
    assert!(error.hint().contains("--label-column"));
}

#[test]
fn mistakes_in_a_text_are_named_by_line() {
    let fails = |text: &str| decode(text.as_bytes(), None, &Options::default()).unwrap_err();
    let ragged = fails("1,2\n\n3,4,5\n");
    assert!(matches!(ragged, Error::Ragged { line: 3, expected: 2, found: 3 }), "{ragged}");
    assert!(matches!(fails("1,2\n3,x\n"), Error::NotANumber { line: 2, column: 1, .. }));
    assert!(matches!(fails("1,2\n3,inf\n"), Error::NotFinite { row: 1, column: 1 }));
    assert!(matches!(fails("a,b\n"), Error::Empty { .. }));
    assert!(matches!(fails(""), Error::Empty { .. }));
    assert!(matches!(fails("\n\n"), Error::Empty { .. }));
    assert!(matches!(fails("a\0b"), Error::UnknownFormat { .. }));
}

#[test]
fn columns_labels_and_inversion() {
    let options = with(|o| {
        o.columns = Some(1..usize::MAX);
        o.label_column = Some(0.into());
        o.invert = true;
    });
    let loaded = read(b"7 0 200\n8 255 3\n", &options);
    assert_eq!(rows(&loaded), [[255.0, 55.0], [0.0, 252.0]]);
    assert_eq!(loaded.labels.unwrap().values(), [7, 8]);
    let error = decode(b"1 2\n", None, &with(|o| o.columns = Some(0..3))).unwrap_err();
    assert!(matches!(error, Error::Columns { n_columns: 2, .. }));
    let turned = read(
        b"1 2 3\n4 5 6\n",
        &with(|o| {
            o.transpose = true;
            o.label_column = Some(1.into());
        }),
    );
    assert_eq!(rows(&turned), [[1.0], [2.0], [3.0]]);
    assert_eq!(turned.labels.unwrap().values(), [4, 5, 6]);
}

#[test]
fn the_full_scale_can_be_given() {
    let scale = |text: &str, options: &Options| read(text.as_bytes(), options).table.full_scale();
    assert_eq!(scale("0 16 3\n", &Options::default()).to_bits(), 16.0_f32.to_bits());
    assert_eq!(scale("0 200 3\n", &Options::default()).to_bits(), 255.0_f32.to_bits());
    let given = with(|o| o.full_scale = Some(16.0));
    assert_eq!(scale("0 15 3\n", &given).to_bits(), 16.0_f32.to_bits());
}

#[test]
fn arff_words_and_defaults() {
    let header = "@relation r\n@attribute x {2,5}\n@attribute 'my class' {dog, 'big cat'}\n@data\n";
    let loaded = read(format!("{header}5,'big cat'\n?,dog\n").as_bytes(), &Options::default());
    assert_eq!(rows(&loaded)[0], [5.0, 1.0]);
    assert!(loaded.table.at(1, 0).is_nan());
    let labelled = with(|o| o.label_column = Some(1.into()));
    let sparse = read(format!("{header}{{0 5, 1 'big cat'}}\n{{}}\n").as_bytes(), &labelled);
    assert_eq!(rows(&sparse), [[5.0], [2.0]], "what is left out is the first value");
    let labels = sparse.labels.unwrap();
    assert_eq!(labels.names().unwrap(), ["big cat", "dog"]);
    assert_eq!(labels.values(), [0, 1]);
    let words = "@relation r\n@attribute id string\n@attribute x real\n@data\n'row 1',2.5\n";
    let chosen = read(words.as_bytes(), &with(|o| o.columns = Some(1..2)));
    assert_eq!(rows(&chosen), [[2.5]]);
    for wrong in ["{7 1}\n", "3,dog\n", "5\n", "{0 5\n", "5,'dog\n"] {
        let text = format!("{header}{wrong}");
        assert!(decode(text.as_bytes(), None, &Options::default()).is_err(), "{wrong}");
    }
}

#[test]
fn matlab_cells_structs_words_and_sparse_arrays() {
    let cells: Vec<u8> = (0..4_u8).flat_map(|i| mat_bytes("", &[1, 2], &[i, 10 + i])).collect();
    let grid = matrix(1, "grid", &[2, 2], &cells);
    let loaded = read(&mat(std::slice::from_ref(&grid)), &Options::default());
    assert_eq!(rows(&loaded), [[0., 10.], [2., 12.], [1., 11.], [3., 13.]]);
    assert_eq!(loaded.labels.unwrap().values(), [0, 0, 1, 1]);
    assert_eq!(loaded.table.image(), Some(Image { height: 1, width: 2 }));

    let inner =
        mat_struct("", &[("deep", mat_bytes("", &[1, 1], &[9])), ("t", mat_text("", "hi"))]);
    let file = mat(&[compressed(&mat_struct("s", &[("a", inner)])), grid]);
    let deep = read(&file, &with(|o| o.variable = Some("s.a.deep".into())));
    assert_eq!(rows(&deep), [[9.0]]);
    let error = decode(&file, None, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("`s.a.deep` (1x1), `s.a.t` (1x2 text), `grid` (2x2 cells)"), "{error}");

    let words = |w: &[u32]| w.iter().flat_map(|d| d.to_le_bytes()).collect::<Vec<u8>>();
    let mut rest = element(5, &words(&[1, 0]));
    rest.extend(element(5, &words(&[0, 1, 2])));
    rest.extend(element(2, &[7, 8]));
    let sparse = mat(&[matrix(5, "x", &[3, 2], &rest)]);
    assert_eq!(rows(&read(&sparse, &Options::default())), [[0., 8.], [7., 0.], [0., 0.]]);
}

#[test]
fn matlab_files_of_other_versions_say_so() {
    let mut newer = b"MATLAB 7.3 MAT-file".to_vec();
    newer.resize(600, b' ');
    let error = decode(&newer, None, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("7.3") && error.hint().contains("-v7"), "{error}");
}

#[test]
fn svmlight_rows_and_widths() {
    let zero = read(b"+1 0:1 2:0.5\n-1 qid:3 1:2 # c\n", &Options::default());
    assert_eq!(rows(&zero), [[1.0, 0.0, 0.5], [0.0, 2.0, 0.0]]);
    let wide = read(b"3 2:1\n", &with(|o| o.columns = Some(0..4)));
    assert_eq!(rows(&wide), [[0.0, 1.0, 0.0, 0.0]]);
    for wrong in ["1 1:1\n2 x:1\n", "1 1:1 1:2\n", "1 1:1\n2:3 4:5\n", "1 1:1\n1 4000000000:1\n"] {
        assert!(decode(wrong.as_bytes(), None, &Options::default()).is_err(), "{wrong}");
    }
}

#[test]
fn pictures_become_grey() {
    let options = Options::default();
    let grey = png(1, 2, png::ColorType::Grayscale, &[7, 250]);
    assert_eq!(rows(&read(&grey, &options)), [[7.0, 250.0]]);
    let rgb = png(1, 2, png::ColorType::Rgb, &[255, 0, 0, 10, 10, 10]);
    assert_eq!(rows(&read(&rgb, &options)), [[76.0, 10.0]]);
    let rgba = png(1, 2, png::ColorType::Rgba, &[0, 0, 0, 0, 9, 9, 9, 255]);
    assert_eq!(rows(&read(&rgba, &options)), [[255.0, 9.0]]);
}

#[test]
fn folders_of_pictures() {
    let folder = Folder::new("flat");
    let picture = |g: u8| png(1, 2, png::ColorType::Grayscale, &[g, 100]);
    folder.file("10.png", &picture(10));
    folder.file("2.png", &picture(2));
    folder.file("notes.txt", b"not a picture");
    let path = folder.0.display().to_string();
    let loaded = open(&path, &Options::default()).unwrap();
    assert_eq!(rows(&loaded), [[2.0, 100.0], [10.0, 100.0]]);
    folder.file("30.png", &png(2, 1, png::ColorType::Grayscale, &[1, 2]));
    let error = open(&path, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("`30.png` has 2x1 pixels"), "{error}");

    let classes = Folder::new("classes");
    classes.file("dog/1.png", &picture(1));
    classes.file("cat/1.png", &picture(3));
    let loaded = open(&classes.0.display().to_string(), &Options::default()).unwrap();
    assert_eq!(rows(&loaded), [[3.0, 100.0], [1.0, 100.0]]);
    assert_eq!(loaded.labels.unwrap().names().unwrap(), ["cat", "dog"]);

    let empty = Folder::new("empty");
    let error = open(&empty.0.display().to_string(), &Options::default()).unwrap_err();
    assert!(matches!(error.cause(), Error::UnknownFormat { .. }));
}

#[test]
fn labels_from_every_kind_of_file() {
    let folder = Folder::new("labels");
    let labels = |name: &str, bytes: &[u8], options: &Options| {
        open_labels(&folder.file(name, bytes), options).unwrap_or_else(|e| panic!("{e}"))
    };
    let plain = Options::default();
    let expected = [3, 0, 1];
    assert_eq!(labels("a.idx", &idx(8, &[3], &[3, 0, 1]), &plain).values(), expected);
    assert_eq!(labels("a.npy", &npy("|u1", false, "(3,)", &[3, 0, 1]), &plain).values(), expected);
    assert_eq!(labels("a.txt", b"3\n0\n1\n", &plain).values(), expected);
    assert_eq!(labels("b.txt", b"3,0,1\n", &plain).values(), expected);
    assert_eq!(labels("c.txt", b"3 0 1\n", &plain).values(), expected);
    assert_eq!(labels("d.csv", b"class\n3\n0\n1\n", &plain).values(), expected);
    assert_eq!(
        labels("a.mat", &mat(&[mat_bytes("y", &[3, 1], &[3, 0, 1])]), &plain).values(),
        expected
    );
    assert_eq!(labels("e.csv", b"0,1\n1,0\n", &plain).values(), [1, 0]);
    let words = labels("f.txt", b"big cat\ndog\nbig cat\n", &plain);
    assert_eq!((words.values(), words.name(0)), (&[0, 1, 0][..], "big cat".into()));
    let column = with(|o| o.label_column = Some(1.into()));
    assert_eq!(labels("g.csv", b"5,x\n6,y\n", &column).values(), [0, 1]);
    let fails = |name: &str, bytes: &[u8]| open_labels(&folder.file(name, bytes), &plain);
    assert!(matches!(
        fails("h.csv", b"1,1\n1,0\n").unwrap_err().cause(),
        Error::NoLabel { row: 0, .. }
    ));
    assert!(fails("i.txt", b"").is_err());
}

/// Two classes that are one number in 32 bits.
const NEIGHBOURS: [u32; 3] = [16_777_216, 16_777_217, 16_777_216];

#[test]
fn labels_beyond_the_whole_numbers_of_a_table_stay_apart() {
    let folder = Folder::new("large-labels");
    let labels = |name: &str, bytes: &[u8], options: &Options| {
        open_labels(&folder.file(name, bytes), options).unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    let plain = Options::default();
    let four: Vec<u8> = NEIGHBOURS.iter().flat_map(|x| x.to_le_bytes()).collect();
    let big: Vec<u8> = NEIGHBOURS.iter().flat_map(|x| x.to_be_bytes()).collect();
    let eight: Vec<u8> = NEIGHBOURS.iter().flat_map(|&x| u64::from(x).to_le_bytes()).collect();
    let double: Vec<u8> = NEIGHBOURS.iter().flat_map(|&x| f64::from(x).to_le_bytes()).collect();
    let matlab = mat(&[matrix(6, "y", &[3, 1], &element(9, &double))]);
    for (name, bytes) in [
        ("u4.npy", npy("<u4", false, "(3,)", &four)),
        ("i4.npy", npy("<i4", false, "(3, 1)", &four)),
        ("i8.npy", npy("<i8", false, "(1, 3)", &eight)),
        ("f8.npy", npy("<f8", true, "(3,)", &double)),
        ("i4.npz", npz(&[("y", npy("<i4", false, "(3,)", &four))])),
        ("i4.idx", idx(0x0c, &[3], &big)),
        ("y.mat", matlab),
        ("y.txt", b"16777216\n16777217\n16777216\n".to_vec()),
    ] {
        assert_eq!(labels(name, &bytes, &plain).values(), NEIGHBOURS, "{name}");
    }
    let ids: Vec<u8> = [i64::MAX, i64::MAX - 1].iter().flat_map(|x| x.to_le_bytes()).collect();
    let ids = labels("ids.npy", &npy("<i8", false, "(2,)", &ids), &plain);
    assert_eq!(ids.names().unwrap(), ["9223372036854775806", "9223372036854775807"]);
    let pairs: Vec<u8> =
        NEIGHBOURS.iter().flat_map(|x| [1_u32.to_le_bytes(), x.to_le_bytes()].concat()).collect();
    let column = with(|o| o.label_column = Some(1.into()));
    let loaded = read(&npy("<i4", false, "(3, 2)", &pairs), &column);
    assert_eq!(loaded.labels.unwrap().values(), NEIGHBOURS);
    // A reader that knows 32-bit numbers only refuses instead.
    let arff = b"@relation r\n@attribute y numeric\n@data\n16777217\n16777216\n";
    let error = open_labels(&folder.file("y.arff", arff), &plain).unwrap_err();
    assert!(matches!(error.cause(), Error::NoLabel { row: 0, .. }), "{error}");
}

#[test]
fn labels_of_fractions_and_gaps_are_as_before() {
    let folder = Folder::new("odd-labels");
    let halves: Vec<u8> = [0.1_f64, 2.5, -1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let file = folder.file("f.npy", &npy("<f8", false, "(3,)", &halves));
    let labels = open_labels(&file, &Options::default()).unwrap();
    assert_eq!(labels.names().unwrap(), ["-1", "0.1", "2.5"]);
    let gap: Vec<u8> = [1.0_f64, f64::NAN].iter().flat_map(|x| x.to_le_bytes()).collect();
    let file = folder.file("g.npy", &npy("<f8", false, "(2,)", &gap));
    let error = open_labels(&file, &Options::default()).unwrap_err();
    assert!(matches!(error.cause(), Error::NoLabel { row: 1, .. }), "{error}");
}

#[test]
fn a_header_that_may_be_data_is_told() {
    let typo = text("O,1\n0,1\n1,0\n");
    assert_eq!(typo.table.n_rows(), 2);
    let note = typo.about.notes.first().expect("a note");
    assert!(note.contains("header") && note.contains("`O`"), "{note}");
    assert!(text("a,b\n0,1\n1,0\n").about.notes.is_empty());
    assert!(text("a,\n0,1\n1,0\n").about.notes.is_empty());
}

#[test]
fn built_in_sets_have_names() {
    let shape = |spec: &str| {
        let loaded = open(spec, &Options::default()).unwrap();
        (loaded.table.n_rows(), loaded.table.n_columns())
    };
    assert_eq!(shape("digits"), (1797, 64));
    assert_eq!(shape("bars-and-stripes:3"), (16, 9));
    assert_eq!(shape("bars-and-stripes:3:distinct"), (14, 9));
    assert_eq!(shape("shifter"), (768, 19));
    for wrong in ["bars-and-stripes", "bars-and-stripes:x", "bars-and-stripes:3:twice"] {
        let error = open(wrong, &Options::default()).unwrap_err();
        assert!(matches!(error, Error::BuiltIn { .. }) && error.hint().contains("shifter"));
    }
    let digits = open("digits", &Options::default()).unwrap();
    assert_eq!(digits.table.image(), Some(Image { height: 8, width: 8 }));
    assert_eq!(digits.labels.unwrap().n_classes(), 10);
}

#[test]
fn files_that_cannot_be_opened_are_named() {
    let error = open("no/such/file.csv", &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "`no/such/file.csv`: there is no such file");
    assert!(error.hint().contains("digits"));
    let folder = Folder::new("names");
    let path = folder.file("set.train.csv.gz", &gz(b"1 2\n"));
    assert_eq!(open(&path, &Options::default()).unwrap().about.name, "set.train");
    let folder = folder.0.display().to_string();
    assert!(open_labels(&folder, &Options::default()).unwrap_err().to_string().contains("folder"));
}

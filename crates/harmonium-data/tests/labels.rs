//! Where the labels of data come from, and when they are used.

#![cfg(feature = "readers")]

use harmonium_data::{LabelColumn, Options, Reading, Remembered, decode};
use std::path::PathBuf;

/// What a model of so many columns knows.
fn known(reading: &Reading, n_columns: usize) -> Remembered<'_> {
    Remembered { reading, book: None, n_columns: Some(n_columns) }
}

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("harmonium-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file for the test");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_label_column_has_a_name_where_the_file_has_names() {
    let named = |name: &str| Options {
        label_column: Some(LabelColumn::Name(name.into())),
        ..Options::default()
    };
    let table = "a,kind,b\n1,cat,2\n3,dog,4\n";
    let read = |bytes: &str| decode(bytes.as_bytes(), None, &named("kind")).unwrap();
    let loaded = read(table);
    assert_eq!((loaded.table.n_rows(), loaded.table.n_columns()), (2, 2));
    assert_eq!(loaded.labels.unwrap().class_names(), ["cat", "dog"]);
    assert_eq!(loaded.about.column_names.unwrap(), ["a", "b"]);
    // Words everywhere: only the name says that the first line is a header.
    let words = "kind,x\ncat,1\ndog,0\n";
    assert_eq!(read(words).labels.unwrap().len(), 2);
    let arff =
        "@relation r\n@attribute x numeric\n@attribute kind {cat,dog}\n@data\n1,cat\n0,dog\n";
    assert_eq!(read(arff).labels.unwrap().values(), [0, 1]);
    let error = decode(table.as_bytes(), None, &named("sort")).unwrap_err();
    assert!(error.to_string().contains("none of the 3 columns"), "{error}");
    assert!(error.hint().contains("a, kind, b"), "{}", error.hint());
    let idx = [0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 2, 5, 6];
    let error = decode(&idx, None, &named("kind")).unwrap_err();
    assert!(error.to_string().contains("no names"), "{error}");
}

#[test]
fn a_header_over_words_is_found_by_the_number_of_rows() {
    let folder = Folder::new("header");
    let path = folder.0.join("labels.csv").display().to_string();
    let path = path.as_str();
    let open = |text: &str, n_rows: usize| {
        std::fs::write(path, text).unwrap();
        harmonium_data::open_labels_of(path, &Options::default(), n_rows)
    };
    let (labels, note) = open("species\nrat\ncat\nrat\n", 3).unwrap();
    assert_eq!(
        (labels.values(), labels.class_names()),
        (&[1, 0, 1][..], vec!["cat".into(), "rat".into()])
    );
    assert!(note.unwrap().contains("`species`, was taken as a header"));
    // As many labels as rows: the first is one of them, and said to be odd.
    let (labels, note) = open("species\nrat\nrat\n", 3).unwrap();
    assert_eq!(labels.n_classes(), 2);
    assert!(note.unwrap().contains("not taken as a header"));
    // A class that occurs again is not a header.
    assert!(open("rat\ncat\nrat\n", 2).unwrap_err().to_string().contains("3 labels for 2 rows"));
    assert_eq!(open("cat\nrat\ncat\n", 3).unwrap().1, None);
    assert_eq!(open("7\n1\n1\n", 3).unwrap().1, None);
}

#[test]
fn labels_are_used_where_they_are_asked_for() {
    let open = |reading: Reading| reading.open("digits");
    let plain = open(Reading::default()).unwrap();
    assert!(plain.dataset.labels().is_none() && plain.unused_labels.is_some());
    let labelled = Reading { labelled: true, ..Reading::default() };
    let used = open(labelled.clone()).unwrap();
    assert_eq!(used.dataset.labels(), plain.labels());
    let neither = Reading { no_labels: true, ..labelled.clone() };
    assert!(open(neither).unwrap().dataset.labels().is_none());
    let column = Reading { label_column: Some((-1).into()), ..Reading::default() };
    let error = open(column).unwrap_err();
    assert!(error.to_string().contains("stand beside its columns"), "{error}");
    let error = labelled.open("shifter").unwrap_err();
    assert!(error.to_string().contains("holds none"), "{error}");
}

#[test]
fn data_without_the_labels_that_a_model_had_is_read_without() {
    let folder = Folder::new("without");
    let with = folder.file("with.csv", "a,b,kind\n1,0,cat\n0,1,dog\n");
    let without = folder.file("without.csv", "a,b\n1,0\n0,1\n1,1\n");
    let wide = folder.file("wide.csv", "a,b,c,d\n1,0,1,0\n0,1,1,1\n");
    let named = LabelColumn::Name("kind".into());
    for column in [named.clone(), LabelColumn::Number(-1)] {
        let remembered = Reading { label_column: Some(column), ..Reading::default() };
        let open = |path: &str| Reading::default().open_as(known(&remembered, 2), path);
        assert_eq!(open(&with).unwrap().dataset.labels().unwrap().len(), 2);
        let opened = open(&without).unwrap();
        assert_eq!((opened.dataset.n_columns(), opened.dataset.n_rows()), (2, 3));
        assert!(opened.dataset.labels().is_none());
        assert!(opened.about.notes.iter().any(|n| n.contains("has no labels")));
        // What does not fit either way stays as it was asked for.
        assert!(open(&wide).is_err() || open(&wide).unwrap().dataset.n_columns() == 3);
    }
    // A column that is asked for must be there.
    let asked = Reading { label_column: Some(named), ..Reading::default() };
    assert!(asked.open_as(known(&Reading::default(), 2), &without).is_err());
    let digits = Reading { labelled: true, ..Reading::default() };
    let opened = Reading::default().open_as(known(&digits, 16), "bars-and-stripes:4").unwrap();
    assert!(opened.labels().is_none());
}

//! Every real data set loads with the shape that its description gives.
//!
//! The sets lie beside the repository; where they are absent the tests say so and pass.

#![cfg(feature = "readers")]

use harmonium_data::{
    Binarize, BlockValues, Error, Format, Image, Loaded, Options, Summary, Visible, open,
    open_dataset, open_labels,
};
use std::io::Write;
use std::path::PathBuf;

/// The path of a file of the shared data, unless that folder is absent.
fn shared(file: &str) -> Option<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if !folder.is_dir() {
        // Written past the capture of the test harness, so that it is seen.
        let _ = writeln!(std::io::stderr(), "SKIPPED: ../shared/data is absent");
        return None;
    }
    Some(folder.join(file).display().to_string())
}

fn load(path: &str, options: &Options) -> Loaded {
    open(path, options).unwrap_or_else(|e| panic!("{e}\nhint: {}", e.hint()))
}

fn shape(loaded: &Loaded) -> (usize, usize) {
    (loaded.table.n_rows(), loaded.table.n_columns())
}

fn variable(name: &str) -> Options {
    Options { variable: Some(name.into()), ..Options::default() }
}

fn is_bits(loaded: &Loaded) -> bool {
    loaded.table.is_bits()
}

#[test]
fn mnist_and_fashion_mnist() {
    for set in ["mnist", "fashion-mnist"] {
        for (part, n) in [("t10k", 10_000), ("train", 60_000)] {
            let Some(images) = shared(&format!("{set}/{part}-images-idx3-ubyte.gz")) else {
                return;
            };
            let Some(labels) = shared(&format!("{set}/{part}-labels-idx1-ubyte.gz")) else {
                return;
            };
            let loaded = load(&images, &Options::default());
            assert_eq!((shape(&loaded), loaded.about.format), ((n, 784), Format::Idx));
            assert_eq!(loaded.table.image(), Some(Image { height: 28, width: 28 }));
            assert!((loaded.table.full_scale() - 255.0).abs() < f32::EPSILON);
            let labels = open_labels(&labels, &Options::default()).unwrap();
            assert_eq!((labels.len(), labels.n_classes()), (n, 10));
            if part == "t10k" {
                let summary = Summary::of(&loaded.table);
                assert_eq!(
                    (summary.visible, summary.binarize),
                    (Visible::Binary, Binarize::Sample)
                );
            }
            assert!(loaded.with_labels(labels).is_ok());
        }
    }
}

#[test]
fn labels_of_another_set_do_not_match() {
    let Some(labels) = shared("mnist/t10k-labels-idx1-ubyte.gz") else { return };
    let labels = open_labels(&labels, &Options::default()).unwrap();
    let error = load("digits", &Options::default()).with_labels(labels).unwrap_err();
    assert!(matches!(error, Error::LabelCount { n_rows: 1797, found: 10_000 }));
}

#[test]
fn a_threshold_while_reading_equals_a_threshold_afterwards() {
    let Some(path) = shared("mnist/t10k-images-idx3-ubyte.gz") else { return };
    for invert in [false, true] {
        let options = Options { invert, ..Options::default() };
        let grey = load(&path, &options);
        let after = harmonium_data::Dataset::new(grey.table, Binarize::Threshold(0.4)).unwrap();
        let streamed = open_dataset(&path, &options, Binarize::Threshold(0.4)).unwrap();
        assert_eq!(streamed.dataset.table(), after.table());
        assert_eq!(streamed.about.content_hash, grey.about.content_hash);
        assert!(!streamed.dataset.is_sampled());
    }
}

#[test]
fn binarized_mnist_is_unpacked() {
    let Some(path) = shared("binarized-mnist/binarized_mnist_packed.npz") else { return };
    for (name, n, share) in
        [("train", 50_000, 0.13), ("valid", 10_000, 0.13), ("test", 10_000, 0.13)]
    {
        let loaded = load(&path, &Options { packed_bits: Some(784), ..variable(name) });
        assert_eq!((shape(&loaded), is_bits(&loaded)), ((n, 784), true));
        let Some(BlockValues::Bits(bits)) = loaded.table.only_block() else { unreachable!() };
        let on = bits.count_ones() as f64 / (n as f64 * 784.0);
        assert!((on - share).abs() < 0.01, "{name}: {on}");
    }
    let error = open(&path, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("`train` (50000x98), `valid` (10000x98)"), "{error}");
    let error = open(&path, &variable("dev")).unwrap_err();
    assert!(error.to_string().contains("no table `dev`"), "{error}");
    let error = open(&path, &Options { packed_bits: Some(800), ..variable("test") }).unwrap_err();
    assert!(matches!(error.cause(), Error::PackedWidth { expected: 100, found: 98, .. }));
}

#[test]
fn digits_in_three_spellings() {
    let Some(csv) = shared("digits8x8/digits.csv.gz") else { return };
    let Some(tes) = shared("digits8x8/optdigits.tes") else { return };
    let Some(tra) = shared("digits8x8/optdigits.tra") else { return };
    assert_eq!(shape(&load(&csv, &Options::default())), (1797, 65));
    assert_eq!(shape(&load(&tra, &Options::default())), (3823, 65));
    let options = Options { label_column: Some((-1).into()), ..Options::default() };
    let (a, b) = (load(&csv, &options), load(&tes, &options));
    let built_in = load("digits", &Options::default());
    assert_eq!(shape(&a), (1797, 64));
    assert_eq!(a.about.content_hash, b.about.content_hash);
    assert_eq!(a.about.content_hash, built_in.about.content_hash);
    assert_eq!((&a.labels, &a.table), (&b.labels, &b.table));
    assert_eq!(a.labels, built_in.labels);
    assert!((a.table.full_scale() - 16.0).abs() < f32::EPSILON);
    let summary = Summary::of(&a.table);
    assert_eq!((summary.visible, summary.binarize), (Visible::Binary, Binarize::Sample));
}

#[test]
fn alphadigits_are_cells_of_pictures() {
    let Some(path) = shared("binaryalphadigs/binaryalphadigs.mat") else { return };
    let loaded = load(&path, &variable("dat"));
    assert_eq!((shape(&loaded), is_bits(&loaded)), ((36 * 39, 320), true));
    assert_eq!(loaded.table.image(), Some(Image { height: 20, width: 16 }));
    let labels = loaded.labels.as_ref().unwrap();
    assert_eq!((labels.n_classes(), labels.values()[39], labels.values()[38]), (36, 1, 0));
    let names = open_labels(&path, &variable("classlabels")).unwrap();
    assert_eq!((names.len(), names.name(names.values()[35])), (36, "Z".to_owned()));
    let error = open(&path, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("`dat` (36x39 cells)"), "{error}");
}

#[test]
fn caltech_silhouettes() {
    let Some(path) = shared("caltech101-silhouettes/caltech101_silhouettes_28_split1.mat") else {
        return;
    };
    for (part, n) in [("train", 4100), ("val", 2264), ("test", 2307)] {
        let options = Options { invert: true, ..variable(&format!("{part}_data")) };
        let loaded = load(&path, &options);
        assert_eq!((shape(&loaded), is_bits(&loaded)), ((n, 784), true));
        let labels = open_labels(&path, &variable(&format!("{part}_labels"))).unwrap();
        assert_eq!((labels.len(), labels.n_classes()), (n, 102));
        assert!(loaded.with_labels(labels).is_ok());
    }
}

#[test]
fn faces() {
    let Some(frey) = shared("frey-faces/frey_rawface.npy") else { return };
    let Some(olivetti) = shared("olivetti/olivettifaces.mat") else { return };
    let loaded = load(&frey, &Options::default());
    assert_eq!((shape(&loaded), loaded.about.format), ((1965, 560), Format::Npy));
    assert!((loaded.table.full_scale() - 255.0).abs() < f32::EPSILON);
    let faces = load(&olivetti, &variable("faces"));
    assert_eq!(shape(&faces), (4096, 400), "nothing is transposed in silence");
    let turned = load(&olivetti, &Options { transpose: true, ..variable("faces") });
    assert_eq!(shape(&turned), (400, 4096));
    assert_eq!(turned.table.at(7, 99).to_bits(), faces.table.at(99, 7).to_bits());
}

#[test]
fn usps_has_its_label_first() {
    for (part, n, zeros) in [("train", 7291, 1194), ("test", 2007, 359)] {
        let Some(path) = shared(&format!("usps/zip.{part}.gz")) else { return };
        assert_eq!(shape(&load(&path, &Options::default())), (n, 257));
        let loaded = load(&path, &Options { label_column: Some(0.into()), ..Options::default() });
        assert_eq!((shape(&loaded), loaded.about.format), ((n, 256), Format::Text));
        let labels = loaded.labels.as_ref().unwrap();
        assert_eq!(labels.values().iter().filter(|&&l| l == 0).count(), zeros);
        let summary = Summary::of(&loaded.table);
        assert_eq!(summary.visible, Visible::Gaussian);
        assert!(
            summary.min.to_bits() == (-1.0_f32).to_bits()
                && summary.max.to_bits() == 1.0_f32.to_bits()
        );
    }
}

#[test]
fn corel_is_sparse() {
    let Some(path) = shared("corel5k/corel5k.arff") else { return };
    let loaded = load(&path, &Options::default());
    assert_eq!((shape(&loaded), is_bits(&loaded)), ((5000, 873), true));
    let names = loaded.about.column_names.as_ref().unwrap();
    assert_eq!((names.len(), names[498].as_str()), (873, "Cluster499"));
    let tags = load(&path, &Options { columns: Some(499..873), ..Options::default() });
    let Some(BlockValues::Bits(bits)) = tags.table.only_block() else { unreachable!() };
    assert!((bits.count_ones() as f64 / 5000.0 - 3.522).abs() < 1e-3);
}

#[test]
fn wikipedia_is_a_struct() {
    let Some(path) = shared("wikipedia-image-text/wiki.mat") else { return };
    let turned = |name: &str| Options { transpose: true, ..variable(name) };
    assert_eq!(shape(&load(&path, &variable("data.X1"))), (128, 2866));
    assert_eq!(shape(&load(&path, &turned("data.X1"))), (2866, 128));
    assert_eq!(shape(&load(&path, &turned("data.X2"))), (2866, 100));
    assert_eq!(shape(&load(&path, &turned("data.split.ind_train"))), (2173, 1));
    assert_eq!(shape(&load(&path, &turned("data.split.ind_test"))), (693, 1));
    let labels = open_labels(&path, &turned("data.Y")).unwrap();
    assert_eq!((labels.len(), labels.n_classes()), (2866, 10));
    let error = open(&path, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("`data.X1` (128x2866)"), "{error}");
}

#[test]
fn density_sets() {
    let sets = [
        ("nltcs", 16, [16181, 2157, 3236]),
        ("plants", 69, [17412, 2321, 3482]),
        ("jester", 100, [9000, 1000, 4116]),
        ("baudio", 100, [15000, 2000, 3000]),
        ("mushrooms", 112, [2000, 500, 5624]),
        ("dna", 180, [1600, 400, 1186]),
        ("nips", 500, [400, 100, 1240]),
        ("moviereview", 1001, [1600, 150, 250]),
    ];
    for (set, n_columns, rows) in sets {
        for (part, n) in ["train", "valid", "test"].iter().zip(rows) {
            let Some(path) = shared(&format!("density/{set}/{set}.{part}.data")) else { return };
            let loaded = load(&path, &Options::default());
            assert_eq!((shape(&loaded), is_bits(&loaded)), ((n, n_columns), true), "{set} {part}");
        }
    }
}

#[test]
fn other_files_are_refused_with_their_name() {
    for file in ["corel5k/corel5k.xml", "density/moviereview/words.txt", "uai-grids/Grids_11.uai"] {
        let Some(path) = shared(file) else { return };
        let error = open(&path, &Options::default()).unwrap_err();
        assert!(error.to_string().contains(&path), "{error}");
        assert!(!error.hint().is_empty());
    }
}

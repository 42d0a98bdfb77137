//! Pictures: JPEG beside PNG, colour that becomes grey, and rows that are said to be pictures.

#![cfg(feature = "readers")]

mod write;

use harmonium_data::{Error, Format, Image, ImageLayout, Loaded, Options, decode, open};
use std::path::PathBuf;
use write::{jpeg, npy, png};

fn read(bytes: &[u8]) -> Loaded {
    decode(bytes, None, &Options::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn row(loaded: &Loaded, row: usize) -> Vec<f32> {
    (0..loaded.table.n_columns()).map(|c| loaded.table.at(row, c)).collect()
}

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn of(name: &str, files: &[(&str, Vec<u8>)]) -> Self {
        let path = std::env::temp_dir().join(format!("harmonium-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        for (name, bytes) in files {
            std::fs::write(path.join(name), bytes).expect("a file for the test");
        }
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_jpeg_of_flat_blocks_has_their_levels() {
    let levels: Vec<Vec<u8>> = [0, 100, 128, 255, 30, 200].map(|level| vec![level]).into();
    let loaded = read(&jpeg(2, 3, &levels));
    assert_eq!(loaded.about.format, Format::Jpeg);
    assert_eq!(loaded.table.image(), Some(Image { height: 16, width: 24 }));
    assert_eq!(loaded.table.full_scale(), 255.0);
    let pixels = row(&loaded, 0);
    for (i, level) in levels.iter().enumerate() {
        let at = (8 * (i / 3) + 5) * 24 + 8 * (i % 3) + 2;
        assert_eq!(pixels[at], f32::from(level[0]), "block {i}");
    }
    assert!(loaded.about.notes.is_empty(), "grey stays grey: {:?}", loaded.about.notes);
}

#[test]
fn colour_becomes_its_luma_and_is_noted() {
    let coloured = jpeg(1, 1, &[vec![120, 60, 200]]);
    let loaded = read(&coloured);
    assert_eq!(loaded.about.notes, ["the picture is in colour and was read as grey levels"]);
    assert!((row(&loaded, 0)[0] - 120.0).abs() <= 1.0, "luma is the first component");
    let grey = jpeg(1, 1, &[vec![120, 128, 128]]);
    assert!(read(&grey).about.notes.is_empty(), "three channels that agree are grey");
    let red = png(1, 1, png::ColorType::Rgb, &[250, 10, 10]);
    assert_eq!(read(&red).about.notes.len(), 1);
    let white = png(1, 2, png::ColorType::Rgba, &[9, 9, 9, 0, 40, 40, 40, 255]);
    assert_eq!(row(&read(&white), 0), [255.0, 40.0], "what is transparent is white");
}

#[test]
fn folders_may_mix_pictures() {
    let eight = png(8, 8, png::ColorType::Grayscale, &[50; 64]);
    let files = [
        ("1.jpg", jpeg(1, 1, &[vec![70, 110, 150]])),
        ("2.JPEG", jpeg(1, 1, &[vec![80]])),
        ("3.png", eight),
        // Named wrongly: content decides.
        ("4.png", jpeg(1, 1, &[vec![90]])),
    ];
    let folder = Folder::of("mixed-pictures", &files);
    let loaded = open(&folder.0.display().to_string(), &Options::default()).unwrap();
    let levels: Vec<f32> = (0..4).map(|r| loaded.table.at(r, 63)).collect();
    assert!((levels[0] - 70.0).abs() <= 1.0 && levels[1..] == [80.0, 50.0, 90.0], "{levels:?}");
    assert_eq!(loaded.about.notes, ["1 of 4 pictures are in colour and were read as grey levels"]);
    assert_eq!(loaded.about.format, Format::Jpeg);
}

#[test]
fn damaged_jpegs_are_errors() {
    let whole = jpeg(2, 2, &[vec![10], vec![250], vec![90], vec![7]]);
    for end in 3..whole.len() - 2 {
        if let Ok(loaded) = decode(&whole[..end], Some(Format::Jpeg), &Options::default()) {
            assert_eq!(row(&loaded, 0), row(&read(&whole), 0), "cut at {end}: nothing is made up");
        }
    }
    let mut claiming = whole.clone();
    let frame = whole.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    claiming[frame + 5..frame + 9].copy_from_slice(&[0x3f, 0xff, 0x3f, 0xff]);
    let error = decode(&claiming, None, &Options::default()).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

/// Six numbers as a picture of two rows, listed along rows or down columns.
#[test]
fn rows_are_pictures_in_either_order() {
    let file = npy("|u1", false, "(2, 6)", &[1, 4, 2, 5, 3, 6, 11, 14, 12, 15, 13, 16]);
    let layout = |text: &str| Options { image: Some(text.parse().unwrap()), ..Options::default() };
    let plain = decode(&file, None, &layout("2x3")).unwrap();
    assert_eq!(plain.table.image(), Some(Image { height: 2, width: 3 }));
    assert_eq!(row(&plain, 0), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let turned = decode(&file, None, &layout("2x3:column-major")).unwrap();
    assert_eq!(turned.table.image(), Some(Image { height: 2, width: 3 }));
    assert_eq!(row(&turned, 0), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(row(&turned, 1), [11.0, 12.0, 13.0, 14.0, 15.0, 16.0]);
    let error = decode(&file, None, &layout("3x3")).unwrap_err();
    assert!(error.to_string().contains("6 values") && error.hint().contains("--image"), "{error}");
}

/// Bits, holes, names and chosen columns go with their pixels.
#[test]
fn everything_about_a_pixel_moves_with_it() {
    let text = "y,a,b,c,d\n7,0,1,?,1\n8,1,0,0,1\n";
    let options = Options {
        image: Some(ImageLayout { height: 2, width: 2, column_major: true }),
        label_column: Some(0.into()),
        ..Options::default()
    };
    let loaded = decode(text.as_bytes(), None, &options).unwrap();
    let names = ["a", "c", "b", "d"].map(str::to_owned);
    assert_eq!(loaded.table.names().as_deref(), Some(&names[..]));
    assert_eq!(loaded.about.column_names.as_deref(), Some(&names[..]));
    assert!(loaded.table.is_missing(0, 1) && loaded.table.n_missing() == 1);
    assert!(loaded.table.is_bits(), "bits stay packed");
    assert_eq!(row(&loaded, 1), [1.0, 0.0, 0.0, 1.0]);
    assert_eq!(loaded.table.at(0, 2), 1.0);
}

//! Damaged and malicious files are errors with a way out, never a panic, never a huge allocation.

#![cfg(feature = "readers")]

mod bombs;
mod write;

use harmonium_data::{Error, Format, Options, decode};
use harmonium_kernels::random::{Site, Stream};
use proptest::prelude::*;
use write::{
    compressed, deflated_zeros, element, gz, idx, jpeg, mat, matrix, npy, npz, png, samples, zip_of,
};

fn all_samples() -> Vec<(Format, Vec<u8>)> {
    let mut all = samples();
    all.push((Format::Png, png(3, 4, png::ColorType::Rgb, &[7; 36])));
    all.push((Format::Jpeg, jpeg(1, 2, &[vec![90, 20, 200], vec![3, 128, 250]])));
    let cells: Vec<u8> = (0..4_u8).flat_map(|i| write::mat_bytes("", &[1, 2], &[i, 9])).collect();
    all.push((Format::Mat, mat(&[matrix(1, "c", &[2, 2], &cells)])));
    all
}

fn read(bytes: &[u8], format: Option<Format>) -> Result<usize, Error> {
    let result = decode(bytes, format, &Options::default()).map(|l| l.table.n_rows());
    if let Err(error) = &result {
        assert!(!error.to_string().is_empty() && !error.hint().is_empty());
    }
    result
}

#[test]
fn every_prefix_is_an_error_or_a_smaller_table() {
    for (format, bytes) in all_samples() {
        let whole = read(&bytes, None).unwrap();
        for end in 0..bytes.len() {
            for format in [None, Some(format)] {
                if let Ok(n_rows) = read(&bytes[..end], format) {
                    assert!(n_rows <= whole, "{format:?} cut at {end}");
                }
            }
        }
    }
}

#[test]
fn formats_that_count_their_rows_notice_a_missing_end() {
    let counted = [Format::Idx, Format::Npy, Format::Npz, Format::Mat];
    for (format, bytes) in all_samples().iter().filter(|(f, _)| counted.contains(f)) {
        let error = read(&bytes[..bytes.len() - 1], None).unwrap_err();
        assert!(error.hint().contains("again"), "{format}: {error}");
    }
}

#[test]
fn bytes_changed_at_random_never_panic() {
    for (k, (format, bytes)) in all_samples().into_iter().enumerate() {
        let stream = Stream::new(k as u64);
        for trial in 0..6000 {
            let site = Site { row: trial, ..Site::default() };
            let mut damaged = bytes.clone();
            for change in 0..=(trial as usize % 4) {
                let words = stream.words(site, u32::try_from(change).unwrap());
                let place = words[0] as usize % damaged.len();
                damaged[place] =
                    [0, 1, 0xff, 0x7f, words[1].to_le_bytes()[0]][words[2] as usize % 5];
            }
            let _ = read(&damaged, None);
            let _ = read(&damaged, Some(format));
        }
    }
}

#[test]
fn any_reader_on_the_file_of_any_other() {
    let formats = [
        Format::Idx,
        Format::Npy,
        Format::Npz,
        Format::Text,
        Format::Arff,
        Format::Mat,
        Format::Png,
        Format::SvmLight,
    ];
    for (_, bytes) in all_samples() {
        for format in formats {
            let _ = read(&bytes, Some(format));
        }
    }
}

#[test]
fn headers_may_claim_what_they_like() {
    let huge = u32::MAX;
    let claims = [
        idx(8, &[huge, huge, huge], &[1; 100]),
        idx(0x0e, &[huge; 8], &[1; 100]),
        idx(8, &[1, huge, huge], &[1; 100]),
        npy("|u1", false, "(1000000000000000000, 784)", &[0; 2000]),
        npy("<f8", true, "(1000000000000000000, 784)", &[0; 2000]),
        npy("<f8", false, "(1000000000000000000, 18446744073709551615)", &[0; 2000]),
        npz(&[("x", npy("|u1", false, "(1000000000000000000,)", &[0; 20]))]),
        mat(&[matrix(9, "x", &[i32::MAX as u32; 4], &element(2, &[1, 2]))]),
        mat(&[matrix(1, "x", &[i32::MAX as u32; 4], &[])]),
        mat(&[vec![14, 0, 0, 0, 255, 255, 255, 255]]),
        b"1 4294967295:1\n".to_vec(),
    ];
    for claim in claims {
        let error = read(&claim, None).unwrap_err();
        let known = matches!(
            error,
            Error::Truncated { .. } | Error::Damaged { .. } | Error::TooLarge { .. }
        );
        assert!(known, "{error}");
    }
}

#[test]
fn empty_claims_end_at_once() {
    for claim in [
        idx(8, &[u32::MAX, 0], &[]),
        idx(8, &[0, 5], &[]),
        npy("|u1", false, "(1000000000000000000, 0)", &[]),
        npy("|u1", true, "(0, 18446744073709551615, 18446744073709551615)", &[]),
    ] {
        assert!(matches!(read(&claim, None), Err(Error::Empty { .. })));
    }
}

#[test]
fn a_claim_of_many_pixels_is_refused() {
    let mut bytes = png(1, 1, png::ColorType::Grayscale, &[0]);
    bytes[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    assert!(read(&bytes, None).is_err());
}

#[test]
fn what_follows_the_announced_values_is_noticed() {
    for (format, bytes) in [
        (Format::Idx, gz(&[idx(8, &[1, 2], &[1, 2]), vec![0; 1 << 20]].concat())),
        (Format::Npy, [npy("|u1", false, "(1, 2)", &[1, 2]), vec![0]].concat()),
    ] {
        assert!(matches!(read(&bytes, None), Err(Error::Trailing { .. })), "{format}");
    }
}

#[test]
fn a_bomb_is_stopped_in_every_wrapping() {
    let gz_of = |start: &[u8]| {
        let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
        [&header, deflated_zeros(start).as_slice(), &[0; 8]].concat()
    };
    let array = npy("|u1", false, "(1000000000000, 1000)", &[]);
    let matrix = [14, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f];
    let zlib = [&[0x78, 0x9c], deflated_zeros(&matrix).as_slice()].concat();
    let length = u32::try_from(zlib.len()).unwrap().to_le_bytes();
    for bomb in [
        gz_of(&idx(8, &[u32::MAX, 1000], &[])),
        gz_of(&array),
        zip_of(&deflated_zeros(&array)),
        mat(&[[&[15, 0, 0, 0], length.as_slice(), &zlib].concat()]),
    ] {
        assert!(bomb.len() < 1 << 20);
        let result = read(&bomb, None);
        assert!(matches!(result, Err(Error::Bomb { .. })), "{result:?}");
    }
}

#[test]
fn arrays_nested_without_end_are_refused() {
    let mut inner = write::mat_bytes("", &[1, 1], &[1]);
    for _ in 0..500 {
        inner = matrix(1, "", &[1, 1], &inner);
    }
    assert!(matches!(read(&mat(&[inner]), None), Err(Error::Damaged { .. })));
}

#[test]
fn a_wide_sparse_table_of_nothing_is_refused() {
    let attributes = "@attribute a numeric\n".repeat(20_000);
    let arff = format!("@relation r\n{attributes}@data\n{}", "{}\n".repeat(4_000));
    assert!(matches!(read(arff.as_bytes(), None), Err(Error::TooLarge { .. })));
}

#[test]
fn every_bomb_is_refused_in_a_few_words() {
    for (name, bytes) in bombs::all() {
        let error = read(&bytes, None).unwrap_err();
        let message = format!("{error}\n{}", error.hint());
        assert!(message.len() < 4 << 10, "{name}: {} bytes", message.len());
    }
}

#[test]
#[ignore = "makes files of 200 MB in memory; run it by name"]
fn every_large_bomb_is_refused_in_a_few_words() {
    for (name, bytes) in bombs::large() {
        let start = std::time::Instant::now();
        let error = read(&bytes, None).unwrap_err();
        println!("{name}: {} bytes, {:.1?}: {error}", bytes.len(), start.elapsed());
        assert!(error.to_string().len() < 4 << 10, "{name}");
    }
}

#[test]
fn one_budget_holds_for_all_the_arrays_of_a_matlab_file() {
    let refused = |bytes: &[u8]| matches!(read(bytes, None), Err(Error::TooLarge { .. }));
    assert!(refused(&bombs::mat_names(2_000_000)), "names are counted");
    assert!(refused(&bombs::mat_sparse_arrays(200)), "sparse arrays are counted together");
    assert!(refused(&bombs::mat_long_paths(30_000, 30)), "paths are counted");
    let blocks = bombs::mat_blocks(3, 128 << 20);
    assert!(blocks.len() < 1 << 20);
    assert!(matches!(read(&blocks, None), Err(Error::Bomb { .. })), "blocks count together");
    for damaged in [bombs::mat_names_by_dimensions(20_000, 20_000), bombs::mat_long_name(5000)] {
        let result = read(&damaged, None);
        assert!(matches!(result, Err(Error::Damaged { .. })), "{result:?}");
    }
}

#[test]
fn ordinary_matlab_files_stay_within_the_budget() {
    // Ten thousand cells and a wide sparse table, neither of which is a bomb.
    let cells: Vec<u8> =
        (0..10_000).flat_map(|_| write::mat_bytes("", &[2, 2], &[1, 0, 0, 1])).collect();
    let many = mat(&[compressed(&matrix(1, "c", &[1, 10_000], &cells))]);
    assert_eq!(read(&many, None).unwrap(), 10_000);
    let rest = [element(5, &[0; 4]), element(5, &[0; 8]), element(9, &[0; 8])].concat();
    let sparse = mat(&[matrix(5, "s", &[1000, 1000], &rest)]);
    assert_eq!(read(&sparse, None).unwrap(), 1000);
}

#[test]
fn a_line_without_end_is_refused() {
    let error = read(&bombs::text_line((64 << 20) + 2), Some(Format::Text)).unwrap_err();
    assert!(matches!(error, Error::LongLine { line: 1, .. }), "{error}");
    for format in [Format::Arff, Format::SvmLight] {
        let error = read(&bombs::text_line((64 << 20) + 2), Some(format)).unwrap_err();
        assert!(matches!(error, Error::LongLine { .. }), "{error}");
    }
}

#[test]
fn what_is_listed_twice_is_refused() {
    let header = "@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n";
    let sparse = |row: &str| read(format!("{header}{row}\n").as_bytes(), None);
    assert_eq!(sparse("{0 1,1 2}").unwrap(), 1);
    let error = sparse("{1 1,1 2}").unwrap_err();
    assert!(error.to_string().contains("line 5: index 1 occurs twice"), "{error}");
    let twice = b"@relation r\n@attribute a {x,y,x}\n@data\nx\n";
    assert!(read(twice, None).unwrap_err().to_string().contains("listed twice"));
    assert!(read(b"1 2:1 2:3\n", None).is_err());
}

#[test]
fn an_archive_of_nothing_says_so() {
    let error = read(&npz(&[]), None).unwrap_err();
    assert_eq!(error.to_string(), "the file holds no arrays");
    assert!(!error.hint().contains("--variable"));
    assert_eq!(read(&mat(&[]), None).unwrap_err().to_string(), "the file holds no arrays");
}

/// Not a check: gives the fuzz targets a valid file of each kind to start from.
#[test]
#[ignore = "writes fuzz/corpus; run it by name before fuzzing"]
fn write_fuzz_seeds() {
    let fuzz = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (n, (format, bytes)) in all_samples().into_iter().enumerate() {
        let target = match format {
            Format::Text => "table".to_owned(),
            Format::Mat => "mat".to_owned(),
            other => other.to_string().to_lowercase(),
        };
        let folder = fuzz.join(target);
        std::fs::create_dir_all(&folder).unwrap();
        // Two bytes of options come first, none of them set.
        std::fs::write(folder.join(format!("seed-{n}")), [vec![0, 0], bytes].concat()).unwrap();
    }
    let folder = fuzz.join("frame");
    std::fs::create_dir_all(&folder).unwrap();
    let frames = [
        "name,mass,kind,awake\nA1,3.5,cat,True\nB2,NA,\"a, b\",False\nC3,4.1,cat,\nD4,1e3,\"say \"\"x\"\"\",True\n",
        "when;price;n\n2024-03-01;0,5;1\n2024-03-02;;2\n2024-03-03;100,25;3\n",
        "a\tb\r\n1\tx\r\n2\ty\r\n?\tx",
    ];
    for (n, text) in frames.iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{n}")), text).unwrap();
    }
    let line = ("line", bombs::text_line(60_000));
    let small = bombs::all().into_iter().filter(|(_, bytes)| bytes.len() < 64 << 10);
    for (name, bytes) in small.chain([line]) {
        let target = match &bytes[..4] {
            b"1,1," => "table",
            b"MATL" => "mat",
            b"PK\x03\x04" => "npz",
            b"@rel" => "arff",
            [0x1f, 0x8b, ..] => "svmlight",
            b"\x89PNG" => "png",
            _ => "npy",
        };
        let file = fuzz.join(target).join(format!("bomb-{}", name.replace(' ', "-")));
        std::fs::write(file, [vec![0, 0], bytes].concat()).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn noise_is_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes, None);
        for format in [Format::Idx, Format::Npy, Format::Npz, Format::Text, Format::Arff,
                       Format::Mat, Format::Png, Format::Jpeg, Format::SvmLight] {
            let _ = read(&bytes, Some(format));
        }
    }

    #[test]
    fn noisy_text_is_never_a_panic(text in "[-0-9.,;:{}?@#%'\"a-e \\t\\n\\\\é]{0,200}") {
        for format in [Format::Text, Format::Arff, Format::SvmLight] {
            let _ = read(text.as_bytes(), Some(format));
            let arff = format!("@relation r\n@attribute a numeric\n@attribute b {{x,'y z'}}\n@data\n{text}");
            let _ = read(arff.as_bytes(), None);
        }
    }

    #[test]
    fn noisy_options_are_never_a_panic(
        label in proptest::option::of(-6_isize..6),
        start in 0_usize..6,
        length in 0_usize..6,
        packed in proptest::option::of(0_usize..40),
        transpose: bool,
        invert: bool,
    ) {
        let columns = Some(start..start + length);
        let options = Options {
            label_column: label.map(Into::into), columns, packed_bits: packed, transpose, invert,
            ..Options::default()
        };
        for (format, bytes) in all_samples() {
            let _ = decode(&bytes, Some(format), &options);
        }
    }
}

//! What is written in a format is what is read from it.

#![cfg(feature = "readers")]

mod write;

use harmonium_data::{Loaded, Options, decode};
use proptest::prelude::*;
use write::{gz, idx, mat, matrix, npy, npz, png};

/// Rows, columns and that many values.
fn bytes_table() -> impl Strategy<Value = (usize, usize, Vec<u8>)> {
    (1_usize..6, 1_usize..9)
        .prop_flat_map(|(r, c)| (Just(r), Just(c), proptest::collection::vec(any::<u8>(), r * c)))
}

fn reals_table() -> impl Strategy<Value = (usize, usize, Vec<f32>)> {
    let value = prop_oneof![
        -1e6_f32..1e6,
        proptest::num::f32::NORMAL,
        Just(0.0_f32),
        Just(-1.0_f32),
        Just(1.0_f32),
        Just(f32::NAN)
    ];
    (1_usize..6, 1_usize..9).prop_flat_map(move |(r, c)| {
        (Just(r), Just(c), proptest::collection::vec(value.clone(), r * c))
    })
}

fn read(bytes: &[u8]) -> Loaded {
    decode(bytes, None, &Options::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Whether a table holds these values; 0 and 255 alone may come back as bits.
fn same(loaded: &Loaded, columns: usize, values: &[f32]) -> bool {
    let table = &loaded.table;
    let black_and_white = table.is_bits() && values.contains(&255.0) && !values.contains(&1.0);
    let scale = if black_and_white { 255.0 } else { 1.0 };
    table.n_columns() == columns
        && table.n_rows() * columns == values.len()
        && values.iter().enumerate().all(|(i, &x)| {
            let y = table.at(i / columns, i % columns) * scale;
            (x.is_nan() && y.is_nan()) || (x + 0.0).to_bits() == (y + 0.0).to_bits()
        })
}

fn by_columns<T: Copy>(rows: usize, columns: usize, values: &[T]) -> Vec<T> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| values[r * columns + c])).collect()
}

fn lines(columns: usize, values: &[f32], sep: &str) -> String {
    let row = |r: &[f32]| r.iter().map(f32::to_string).collect::<Vec<_>>().join(sep) + "\n";
    values.chunks(columns).map(row).collect()
}

fn arff_header(columns: usize) -> String {
    let attributes: Vec<String> =
        (0..columns).map(|i| format!("@attribute a{i} numeric\n")).collect();
    format!("@relation r\n{}@data\n", attributes.concat())
}

fn size(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn bytes_survive((r, c, values) in bytes_table()) {
        let expected: Vec<f32> = values.iter().map(|&b| f32::from(b)).collect();
        let turned = by_columns(r, c, &values);
        let shape = format!("({r}, {c})");
        for file in [
            idx(8, &[size(r), size(c)], &values),
            gz(&idx(8, &[size(r), size(c)], &values)),
            npy("|u1", false, &shape, &values),
            npy("|u1", true, &shape, &turned),
            npz(&[("a", npy("|u1", false, &shape, &values))]),
            mat(&[write::mat_bytes("a", &[size(r), size(c)], &turned)]),
            mat(&[write::compressed(&write::mat_bytes("a", &[size(r), size(c)], &turned))]),
        ] {
            prop_assert!(same(&read(&file), c, &expected));
        }
        let picture = png(size(r), size(c), png::ColorType::Grayscale, &values);
        prop_assert!(same(&read(&picture), r * c, &expected));
    }

    #[test]
    fn reals_survive((r, c, values) in reals_table()) {
        let little: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let big: Vec<u8> = values.iter().flat_map(|x| x.to_be_bytes()).collect();
        let doubles: Vec<u8> =
            by_columns(r, c, &values).iter().flat_map(|&x| f64::from(x).to_le_bytes()).collect();
        let shape = format!("({r}, {c})");
        for file in [
            idx(0x0d, &[size(r), size(c)], &big),
            npy("<f4", false, &shape, &little),
            npy(">f4", false, &shape, &big),
            npy("<f8", true, &shape, &doubles),
            mat(&[matrix(6, "a", &[size(r), size(c)], &write::element(9, &doubles))]),
        ] {
            prop_assert!(same(&read(&file), c, &values));
        }
    }

    #[test]
    fn texts_survive((_, c, values) in reals_table()) {
        for sep in [",", "\t", ";", "  "] {
            let plain = lines(c, &values, sep);
            prop_assert!(same(&read(plain.as_bytes()), c, &values), "{plain}");
            let header = (0..c).map(|i| format!("c{i}")).collect::<Vec<_>>().join(sep);
            let named = read(gz(format!("{header}\n{plain}").as_bytes()).as_slice());
            prop_assert!(same(&named, c, &values));
            prop_assert_eq!(named.about.column_names.map(|n| n.len()), Some(c));
        }
        let arff = arff_header(c) + &lines(c, &values, ",");
        prop_assert!(same(&read(arff.as_bytes()), c, &values));
    }

    #[test]
    fn sparse_texts_survive((_, c, values) in bytes_table()) {
        let values: Vec<f32> = values.iter().map(|&b| f32::from(b / 32) / 4.0).collect();
        let sparse = |row: &[f32], sep: &str, pair: &str, from: usize| {
            let entries = row.iter().enumerate().filter(|(_, x)| **x != 0.0);
            entries.map(|(i, x)| format!("{}{pair}{x}", i + from)).collect::<Vec<_>>().join(sep)
        };
        let braces = |row: &[f32]| format!("{{{}}}\n", sparse(row, ",", " ", 0));
        let arff = arff_header(c) + &values.chunks(c).map(braces).collect::<String>();
        let pairs = |row: &[f32]| format!("1 {}\n", sparse(row, " ", ":", 1));
        let svm: String = values.chunks(c).map(pairs).collect();
        prop_assert!(same(&read(arff.as_bytes()), c, &values));
        let options = Options { columns: Some(0..c), ..Options::default() };
        let loaded = decode(svm.as_bytes(), Some(harmonium_data::Format::SvmLight), &options);
        prop_assert!(same(&loaded.unwrap(), c, &values));
    }

    #[test]
    fn bits_survive_packing(n_bits in 1_usize..40, seed: u64) {
        let on = |r: usize, c: usize| (seed >> ((r * 7 + c) % 64)) & 1 == 1;
        let width = n_bits.div_ceil(8);
        let mut packed = vec![0_u8; 3 * width];
        for r in 0..3 {
            (0..n_bits).filter(|&c| on(r, c)).for_each(|c| packed[r * width + c / 8] |= 128 >> (c % 8));
        }
        let file = npy("|u1", false, &format!("(3, {width})"), &packed);
        let options = Options { packed_bits: Some(n_bits), ..Options::default() };
        let table = decode(&file, None, &options).unwrap().table;
        prop_assert!(table.is_bits());
        for r in 0..3 {
            prop_assert!((0..n_bits).all(|c| (table.at(r, c) > 0.5) == on(r, c)));
        }
    }
}

//! Small files that ask for much: each function makes one, as large as it is told.

#![allow(dead_code, reason = "each test file uses its own part of this module")]

use super::write::{compressed, deflated_zeros, element, gz, mat, matrix, npy, npz, png, zip_of};

/// A struct without elements: `n_names` field names, each of which would get a copy of `n_dims`
/// dimensions.
pub(crate) fn mat_names_by_dimensions(n_names: usize, n_dims: usize) -> Vec<u8> {
    let mut dims = vec![1; n_dims.max(2)];
    dims[0] = 0;
    mat(&[compressed(&matrix(2, "s", &dims, &field_names(n_names)))])
}

/// A struct of `n` field names of one letter each, and nothing in them.
pub(crate) fn mat_names(n: usize) -> Vec<u8> {
    mat(&[compressed(&matrix(2, "s", &[0, 0], &field_names(n)))])
}

fn field_names(n: usize) -> Vec<u8> {
    [element(5, &1_u32.to_le_bytes()), element(1, &vec![b'a'; n])].concat()
}

/// `n` compressed variables of `size` zeros, each below the size that is watched.
pub(crate) fn mat_blocks(n: usize, size: usize) -> Vec<u8> {
    let rows = u32::try_from(size).unwrap_or(u32::MAX);
    let block = compressed(&matrix(9, "x", &[rows, 1], &element(2, &vec![0; size])));
    mat(&vec![block; n])
}

/// A variable whose name has `n` letters, and whose values are missing.
pub(crate) fn mat_long_name(n: usize) -> Vec<u8> {
    let name = "a".repeat(n);
    mat(&[compressed(&matrix(9, &name, &[5, 5], &element(2, &[1])))])
}

/// A cell array of `n` sparse arrays of a million zeros each.
pub(crate) fn mat_sparse_arrays(n: usize) -> Vec<u8> {
    let rest = [element(5, &[]), element(5, &[0; 8]), element(9, &[])].concat();
    let cells = matrix(5, "", &[1 << 10, 1 << 10], &rest).repeat(n);
    let count = u32::try_from(n).unwrap_or(u32::MAX);
    mat(&[matrix(1, "c", &[1, count], &cells)])
}

/// Structs in structs, with long names: the path to each of the `n` innermost fields repeats them.
pub(crate) fn mat_long_paths(n: usize, depth: usize) -> Vec<u8> {
    let name = "n".repeat(1000);
    let leaf = matrix(9, "", &[1, 1], &element(2, &[1]));
    let inner_names = [element(5, &1_u32.to_le_bytes()), element(1, &vec![b'a'; n])].concat();
    let mut inner = matrix(2, "", &[1, 1], &[inner_names, leaf.repeat(n)].concat());
    for _ in 0..depth {
        let names = [element(5, &1000_u32.to_le_bytes()), element(1, name.as_bytes())].concat();
        inner = matrix(2, "", &[1, 1], &[names, inner].concat());
    }
    mat(&[compressed(&inner)])
}

/// An array of `n` dimensions of size 1.
pub(crate) fn npy_dimensions(n: usize) -> Vec<u8> {
    npy("|u1", true, &format!("({})", "1,".repeat(n)), &[1])
}

/// An array whose type has a name of `n` letters.
pub(crate) fn npy_long_type(n: usize) -> Vec<u8> {
    npy(&"q".repeat(n), false, "(1, 1)", &[1])
}

/// An archive of `n` arrays, so that one must be chosen.
pub(crate) fn npz_arrays(n: usize) -> Vec<u8> {
    let names: Vec<String> = (0..n).map(|i| format!("a{i}")).collect();
    let one = npy("|u1", false, "(1, 1)", &[1]);
    npz(&names.iter().map(|name| (name.as_str(), one.clone())).collect::<Vec<_>>())
}

/// An archive whose only array inflates to 300 MB.
pub(crate) fn npz_inflating() -> Vec<u8> {
    zip_of(&deflated_zeros(&npy("|u1", false, "(1000000000000, 1000)", &[])))
}

/// A table of `n` bytes without a line end.
pub(crate) fn text_line(n: usize) -> Vec<u8> {
    b"1,".iter().copied().cycle().take(n).collect()
}

/// A picture of one pixel that claims `side` times `side` of them, with the right checksum.
pub(crate) fn png_claiming(side: u32) -> Vec<u8> {
    let mut bytes = png(1, 1, png::ColorType::Rgb, &[7; 3]);
    bytes[16..20].copy_from_slice(&side.to_be_bytes());
    bytes[20..24].copy_from_slice(&side.to_be_bytes());
    let mut sum = flate2::Crc::new();
    sum.update(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&sum.sum().to_be_bytes());
    bytes
}

/// A nominal attribute of `n` values, all different.
pub(crate) fn arff_values(n: usize) -> Vec<u8> {
    let values: Vec<String> = (0..n).map(|i| i.to_string()).collect();
    format!("@relation r\n@attribute a {{{}}}\n@data\n0\n", values.join(",")).into_bytes()
}

/// A sparse row that lists `n` entries of a table of two columns.
pub(crate) fn arff_entries(n: usize) -> Vec<u8> {
    let row = "0 1,".repeat(n);
    let row = row.trim_end_matches(',');
    format!("@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n{{{row}}}\n")
        .into_bytes()
}

/// `n` rows without entries after one that has one.
pub(crate) fn svmlight_rows(n: usize) -> Vec<u8> {
    gz(&[b"1 1:1\n".to_vec(), b"1\n".repeat(n)].concat())
}

/// The bombs that once took gigabytes, in the sizes that did.
pub(crate) fn large() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("names by dimensions", mat_names_by_dimensions(20_000, 20_000)),
        ("names", mat_names(60_000_000)),
        ("blocks", mat_blocks(30, 200 << 20)),
        ("long name", mat_long_name(18 << 20)),
        ("sparse arrays", mat_sparse_arrays(100_000)),
        ("rows", svmlight_rows(100_000_000)),
    ]
}

/// Each bomb in a size that fits into a few megabytes and that a reader must refuse, with its name.
pub(crate) fn all() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("names by dimensions", mat_names_by_dimensions(20_000, 20_000)),
        ("names", mat_names(2_000_000)),
        ("blocks", mat_blocks(3, 128 << 20)),
        ("long name", mat_long_name(18 << 20)),
        ("sparse arrays", mat_sparse_arrays(200)),
        ("long paths", mat_long_paths(30_000, 30)),
        ("dimensions", npy_dimensions(30_000)),
        ("long type", npy_long_type(60_000)),
        ("arrays to choose from", npz_arrays(100)),
        ("inflating archive", npz_inflating()),
        ("nominal values", arff_values(1_100_000)),
        ("sparse entries", arff_entries(100_000)),
        ("rows", svmlight_rows(2_000_000)),
        ("picture", png_claiming(1 << 16)),
    ]
}

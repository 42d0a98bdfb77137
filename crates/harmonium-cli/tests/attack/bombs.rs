//! Small files that claim or unpack to much: they are refused, or read within a gigabyte or two and some
//! seconds.

use crate::program::{Attack, cases, run};
use crate::write;
use std::fs;
use tempfile::TempDir;

/// A compressed struct of as many field names and dimensions as asked for.
fn names_and_dimensions(names: usize, dimensions: usize) -> Vec<u8> {
    let dims = vec![1_u32; dimensions];
    let mut rest = write::element(5, &1_u32.to_le_bytes());
    rest.extend(write::element(1, &vec![0; names]));
    write::mat(&[write::compressed(&write::matrix(2, "s", &dims, &rest))])
}

/// Blocks of zeros, each far below the limit of one array.
fn blocks(n: usize, megabytes: u32) -> Vec<u8> {
    let zeros = vec![0; (megabytes << 20) as usize];
    let block = write::compressed(&write::mat_bytes("x", &[megabytes << 10, 1 << 10], &zeros));
    write::mat(&vec![block; n])
}

/// A struct inside a struct and so on.
fn nested(depth: usize) -> Vec<u8> {
    let mut array = write::mat_bytes("x", &[1, 1], &[1]);
    for _ in 0..depth {
        array = write::mat_struct("s", &[("a", array)]);
    }
    write::mat(&[write::compressed(&array)])
}

/// A model file whose header says this.
fn model(header: &str) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat()
}

/// Files by name, the larger ones only in the long version.
fn all() -> Vec<(&'static str, Vec<u8>)> {
    let large = usize::try_from(cases(1, 30)).expect("few");
    let megabytes = u32::try_from(cases(20, 200)).expect("few");
    let zeros = vec![b'0'; large * (10 << 20)];
    let npy = |shape: &str| write::npy("<f8", false, shape, &[0; 64]);
    vec![
        ("names.mat", names_and_dimensions(20_000, 20_000)),
        ("many-names.mat", names_and_dimensions(large * 2_000_000, 2)),
        ("dimensions.mat", names_and_dimensions(1, large * 100_000)),
        ("blocks.mat", blocks(large, megabytes)),
        ("nested.mat", nested(2_000)),
        ("line.csv.gz", write::gz(&zeros)),
        ("line.arff.gz", write::gz(&[&b"@relation x\n@attribute "[..], &zeros].concat())),
        ("rows.csv.gz", write::gz(&b"0,1\n".repeat(large * 1_000_000))),
        ("claim.npy", npy("(18446744073709551615, 2)")),
        ("claims.npy", npy("(4294967296, 4294967296)")),
        ("claim.npz", write::npz(&[("x", npy("(1000000000000, 1)"))])),
        ("zeros.npz", write::npz(&[("x", [npy("(8,)"), zeros].concat())])),
        ("claim.idx", write::idx(8, &[u32::MAX, u32::MAX, 1], &[0; 64])),
        (
            "claim.safetensors",
            model(r#"{"x":{"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,8]}}"#),
        ),
        ("nested.safetensors", model(&"[".repeat(1_000_000))),
        ("names.safetensors", model(&format!(r#"{{"{}":1}}"#, "x".repeat(10_000_000)))),
    ]
}

#[test]
fn bombs() {
    let folder = TempDir::new().expect("a folder");
    let mut attack = Attack::new("bombs");
    for (name, bytes) in all() {
        fs::write(folder.path().join(name), &bytes).expect("it can be written");
        let command = if name.ends_with(".safetensors") { "inspect" } else { "data" };
        let said = run(folder.path(), &[command, name], 20);
        attack.case(|| format!("{command} {name} ({} bytes)", bytes.len()), said.held());
        fs::remove_file(folder.path().join(name)).expect("it can be removed");
    }
    attack.finish();
}

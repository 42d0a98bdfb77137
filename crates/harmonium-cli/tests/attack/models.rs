//! Model files and checkpoints that were changed: flipped bits, cut and spliced bytes, other numbers in the
//! description.

use crate::program::{Attack, Numbers, cases, run};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Texts that stand for numbers where a number is expected.
const STRANGE: [&str; 8] =
    ["-1", "0", "1e400", "18446744073709551615", "null", "[]", "0.5", "9007199254740993"];

/// A folder with the model `m` and the checkpoint `c` of a run.
fn trained() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let words =
        ["train", "rbm", "bars-and-stripes:3", "--hidden", "4", "--epochs", "3", "--out", "r"];
    run(folder.path(), &words, 60).held().expect("it trains");
    for (from, to) in [("model", "m"), ("checkpoints/last", "c")] {
        let from = folder.path().join(format!("r/{from}.safetensors"));
        fs::copy(from, folder.path().join(to)).expect("it can be copied");
    }
    folder
}

/// A file that is almost the one that was written.
fn mutated(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let header = 8 + usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    match numbers.below(6) {
        0 => flip(&mut bytes, numbers, 0),
        1 => flip(&mut bytes, numbers, header),
        2 => bytes.truncate(numbers.below(header + 8)),
        3 => {
            let (at, n) = (numbers.below(bytes.len() - 40), 1 + numbers.below(40));
            let moved = numbers.below(bytes.len() - 40);
            let piece = bytes[moved..moved + n].to_vec();
            bytes.splice(at..at + n, piece);
        }
        4 => bytes[..8].copy_from_slice(&numbers.bits().to_le_bytes()),
        _ => renumber(&mut bytes, header, numbers),
    }
    bytes
}

/// Flips a bit or a few after the first `from` bytes.
fn flip(bytes: &mut [u8], numbers: &mut Numbers, from: usize) {
    for _ in 0..=numbers.below(3) {
        let at = from + numbers.below(bytes.len() - from);
        bytes[at] ^= 1 << numbers.below(8);
    }
}

/// Puts another number into the header, and its new length before it.
fn renumber(bytes: &mut Vec<u8>, header: usize, numbers: &mut Numbers) {
    let digits = |at: &usize| bytes[*at].is_ascii_digit() && !bytes[*at - 1].is_ascii_digit();
    let places: Vec<usize> = (9..header).filter(digits).collect();
    let start = places[numbers.below(places.len())];
    let length = bytes[start..header].iter().take_while(|b| b.is_ascii_digit()).count();
    let strange = STRANGE[numbers.below(STRANGE.len())].bytes();
    bytes.splice(start..start + length, strange.clone());
    let new = (header - 8 + strange.len() - length) as u64;
    bytes[..8].copy_from_slice(&new.to_le_bytes());
}

/// Asks something of the file `x`, which holds these bytes.
fn ask(folder: &Path, bytes: &[u8], command: &[&str]) -> crate::program::Said {
    fs::write(folder.join("x"), bytes).expect("it can be written");
    run(folder, command, 20)
}

#[test]
fn mutated_models() {
    let folder = trained();
    let bytes = fs::read(folder.path().join("m")).expect("there is a model");
    let commands: [&[&str]; 4] = [
        &["inspect", "x", "--json"],
        &["logz", "x", "--json"],
        &["score", "x", "bars-and-stripes:3", "--json"],
        &["sample", "x", "--n", "2", "--sweeps", "3", "--out", "y.csv", "--force"],
    ];
    let mut attack = Attack::new("mutated models");
    for n in 0..cases(80, 2200) {
        let mut numbers = Numbers(n);
        let (bytes, command) = (mutated(&bytes, &mut numbers), commands[numbers.below(4)]);
        let said = ask(folder.path(), &bytes, command);
        attack.case(|| format!("case {n}, {command:?}"), said.held());
    }
    attack.finish();
}

#[test]
fn mutated_checkpoints_are_refused() {
    let folder = trained();
    let whole = fs::read(folder.path().join("c")).expect("there is a checkpoint");
    let mut attack = Attack::new("mutated checkpoints");
    for n in 0..cases(40, 1000) {
        let bytes = mutated(&whole, &mut Numbers(n));
        if bytes != whole {
            let said = ask(folder.path(), &bytes, &["inspect", "x"]);
            attack.case(|| format!("case {n}"), said.refused());
        }
    }
    attack.finish();
}

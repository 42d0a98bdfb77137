//! A checkpoint comes back to the bit, and is a model as well.

use crate::folder::Folder;
use crate::machines::{Numbers, all, bits, machine, model};
use harmonium::Error;
use harmonium::estimators::Snapshot;
use harmonium::run::{Model, Overwrite, SavedCheckpoint};
use harmonium::training::Checkpoint;
use serde_json::json;
use std::collections::BTreeMap;

fn saved() -> SavedCheckpoint {
    let Model { body, about } = model();
    let mut state = Snapshot::default();
    let numbers = &mut Numbers(3);
    state.insert("negative.chains.visible", (0..30).map(|_| numbers.next()).collect());
    state.insert("optimizer.velocity.0", vec![]);
    state.insert("", vec![1.0]);
    state.insert("state.layers.visible.bias", vec![f64::MIN_POSITIVE / 8.0, -0.0, f64::MAX]);
    let observers = BTreeMap::from([
        ("early-stop".to_owned(), json!({"best": [-1.0 / 3.0, 2]})),
        ("history".to_owned(), json!([{"epoch": 1}])),
    ]);
    let checkpoint = Checkpoint { body, stage: None, epoch: 4, batches_done: 17, state, observers };
    SavedCheckpoint { checkpoint, about, events_length: u64::MAX - 1 }
}

#[test]
fn checkpoints_come_back_to_the_bit() {
    let saved = saved();
    let bytes = saved.to_bytes().unwrap();
    let read = SavedCheckpoint::from_bytes(&bytes).unwrap();
    assert_eq!(read, saved);
    assert_eq!(read.to_bytes().unwrap(), bytes);
    for (name, original) in all() {
        let body = original.clone().into();
        let checkpoint = Checkpoint { body, ..saved.checkpoint.clone() };
        let saved = SavedCheckpoint { checkpoint, ..saved.clone() };
        let read = SavedCheckpoint::from_bytes(&saved.to_bytes().unwrap()).unwrap();
        assert_eq!(read, saved, "{name}");
        assert_eq!(bits(machine(&read.checkpoint.body)), bits(&original), "{name}");
    }
}

#[test]
fn state_keeps_bits_that_are_no_numbers() {
    let mut saved = saved();
    let odd = [f64::NAN, -f64::NAN, f64::INFINITY, f64::from_bits(0x7FF0_0000_0000_0001)];
    saved.checkpoint.state.insert("odd", odd.to_vec());
    let read = SavedCheckpoint::from_bytes(&saved.to_bytes().unwrap()).unwrap();
    let bits = |xs: &[f64]| xs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&read.checkpoint.state.0["odd"]), bits(&odd));
}

#[test]
fn a_checkpoint_is_a_model_but_not_the_other_way_round() {
    let folder = Folder::new();
    let path = folder.join("c.safetensors");
    let saved = saved();
    saved.save(&path, Overwrite::No).unwrap();
    assert_eq!(SavedCheckpoint::load(&path).unwrap(), saved);
    assert_eq!(Model::load(&path).unwrap(), saved.model());
    model().write(&path, Overwrite::Yes).unwrap();
    let error = SavedCheckpoint::load(&path).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }));
    assert!(error.to_string().contains("without the state of a training"), "{error}");
}

#[test]
fn every_flipped_bit_of_a_checkpoint_is_an_error() {
    let mut bytes = saved().to_bytes().unwrap();
    let length = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let mut told = 0;
    for bit in 0..8 * bytes.len() {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = SavedCheckpoint::from_bytes(&bytes).unwrap_err();
        let told_so = error.to_string().contains("some of its bytes have changed");
        assert!(told_so || bit / 8 < 8 + length, "bit {bit} of the numbers: {error}");
        told += usize::from(told_so);
        assert!(Model::from_bytes(&bytes).is_err(), "bit {bit} read as a model");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(told >= 8 * (bytes.len() - 8 - length), "{told}");
    assert_eq!(SavedCheckpoint::from_bytes(&bytes).unwrap(), saved());
}

/// Models keep the bytes they always had.
#[test]
fn only_checkpoints_have_a_checksum() {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(text(&saved().to_bytes().unwrap()).contains("checksum"));
    assert!(!text(&saved().model().to_bytes().unwrap()).contains("checksum"));
}

/// Not a check: gives the fuzz target valid files to start from.
#[test]
#[ignore = "writes fuzz/corpus; run it by name before fuzzing"]
fn write_fuzz_seeds() {
    let manifest = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = manifest.join("../../fuzz/corpus/model_file");
    std::fs::create_dir_all(&folder).unwrap();
    saved().save(folder.join("checkpoint"), Overwrite::Yes).unwrap();
    for (n, (_, machine)) in all().into_iter().enumerate() {
        let model = Model { body: machine.into(), ..model() };
        model.write(folder.join(format!("seed-{n}")), Overwrite::Yes).unwrap();
    }
    for (name, claimed, header) in
        [("claim", 1 << 40, "{}".into()), ("nested", 50_000, "[".repeat(50_000))]
    {
        let claimed: u64 = claimed;
        let bytes = [&claimed.to_le_bytes()[..], header.as_bytes()].concat();
        std::fs::write(folder.join(format!("bomb-{name}")), bytes).unwrap();
    }
}

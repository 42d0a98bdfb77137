//! Damaged and hostile files: an error that says what is wrong, never a panic.

use crate::machines::{Numbers, bits, machine, model, sparse_model};
use harmonium::machine::{Clamp, Coupling, Layer, LayerId, Machine, Matrix, Role, Weights};
use harmonium::network::{Shape, random};
use harmonium::run::{Model, SavedCheckpoint};
use harmonium::units::Units;
use harmonium::{Error, exact};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A file with this header and this data, whatever they say.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), data].concat()
}

/// The header of a valid file as JSON, its description as JSON, and its data.
fn parts() -> (Value, Value, Vec<u8>) {
    let bytes = model().to_bytes().unwrap();
    let n = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let header: Value = serde_json::from_slice(&bytes[8..8 + n]).unwrap();
    let text = header["__metadata__"]["harmonium"].as_str().unwrap();
    let description = serde_json::from_str(text).unwrap();
    (header, description, bytes[8 + n..].to_vec())
}

/// The error for a file whose description was changed.
fn described(change: impl FnOnce(&mut Value)) -> Error {
    let (mut header, mut description, data) = parts();
    change(&mut description);
    header["__metadata__"]["harmonium"] = Value::String(description.to_string());
    Model::from_bytes(&file(&header.to_string(), &data)).unwrap_err()
}

/// The error for a file whose header was changed.
fn headed(change: impl FnOnce(&mut Value)) -> Error {
    let (mut header, _, data) = parts();
    change(&mut header);
    Model::from_bytes(&file(&header.to_string(), &data)).unwrap_err()
}

fn assert_says(error: &Error, words: &[&str]) {
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text:?} does not say {words:?}");
    assert!(!error.hint().is_empty());
}

#[test]
fn unchanged_parts_are_a_model() {
    let (header, _, data) = parts();
    assert_eq!(Model::from_bytes(&file(&header.to_string(), &data)).unwrap(), model());
}

/// The error for a sparse file whose description and numbers were changed.
fn sparse(change: impl FnOnce(&mut Value, &mut [f64])) -> Error {
    let bytes = sparse_model().to_bytes().unwrap();
    let n = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + n]).unwrap();
    let text = header["__metadata__"]["harmonium"].as_str().unwrap();
    let mut description: Value = serde_json::from_str(text).unwrap();
    let offsets = &header["couplings.v%2E1.v%2E1.edges"]["data_offsets"];
    let at = |k: usize| usize::try_from(offsets[k].as_u64().unwrap()).unwrap();
    let (mut data, range) = (bytes[8 + n..].to_vec(), at(0)..at(1));
    let ends = data[range.clone()].as_chunks::<8>().0.iter();
    let mut ends: Vec<f64> = ends.map(|b| f64::from_le_bytes(*b)).collect();
    change(&mut description, &mut ends);
    let bytes: Vec<u8> = ends.iter().flat_map(|x| x.to_le_bytes()).collect();
    data[range].copy_from_slice(&bytes);
    header["__metadata__"]["harmonium"] = Value::String(description.to_string());
    Model::from_bytes(&file(&header.to_string(), &data)).unwrap_err()
}

#[test]
fn edges_are_read_with_suspicion() {
    for bad in [-1.0, 0.5, 4.0, 1e300, f64::NAN, f64::INFINITY, -0.5] {
        assert_says(&sparse(|_, ends| ends[1] = bad), &["not an entry of a layer of 4"]);
    }
    assert_says(&sparse(|_, ends| ends[1] = ends[0]), &["leads back to where it starts"]);
    assert_says(&sparse(|_, ends| ends.swap(0, 1)), &["rising order"]);
    assert_says(&sparse(|_, ends| ends.copy_within(0..2, 2)), &["occurs twice"]);
    for n in [json!(0), json!(1_u64 << 60), json!(u64::MAX)] {
        assert_says(&sparse(|text, _| text["couplings"][0]["edges"] = n), &["must have shape"]);
    }
    assert_says(&sparse(|text, _| text["couplings"][1]["edges"] = json!(1)), &["is not lateral"]);
    assert_says(&sparse(|text, _| text["format_version"] = json!(1)), &["no sparse couplings"]);
}

#[test]
fn every_prefix_is_an_error() {
    let bytes = model().to_bytes().unwrap();
    for n in 0..bytes.len() {
        let error = Model::from_bytes(&bytes[..n]).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{n}: {error}");
        assert!(SavedCheckpoint::from_bytes(&bytes[..n]).is_err());
    }
    assert!(Model::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
}

#[test]
fn flipped_bits_give_an_error_or_a_valid_machine() {
    let bytes = model().to_bytes().unwrap();
    let numbers = &mut Numbers(4);
    let mut valid = 0;
    for round in 0..20_000 {
        let mut bytes = bytes.clone();
        for _ in 0..=round % 3 {
            let at = numbers.below(bytes.len());
            bytes[at] ^= 1 << numbers.below(8);
        }
        if let Ok(read) = Model::from_bytes(&bytes) {
            valid += 1;
            assert!(bits(machine(&read.body)).iter().all(|&b| f64::from_bits(b).is_finite()));
            assert_eq!(Model::from_bytes(&read.to_bytes().unwrap()).unwrap(), read);
        }
    }
    assert!(valid > 100, "only {valid} were still valid");
}

/// As many layers as a file may have, of one unit each: what is asked of every model that is shown takes
/// seconds, not minutes.
#[test]
fn ten_thousand_layers_are_looked_at_in_seconds() {
    let n = 10_000;
    let layer = |l: usize| {
        let role = if l == 0 { Role::Visible } else { Role::Hidden };
        Layer::new(format!("layer {l}"), role, Units::Binary, 1).unwrap()
    };
    let coupling = |l: usize| {
        let weights = Weights::Between(Matrix::from_rows(1, 1, vec![0.5]).unwrap());
        Coupling { between: (LayerId(l), LayerId(l + 1)), weights }
    };
    let start = Instant::now();
    let machine =
        Machine::new((0..n).map(layer).collect(), (0..n - 1).map(coupling).collect()).unwrap();
    let bytes = Model::from(machine.clone()).to_bytes().unwrap();
    assert_eq!(Model::from_bytes(&bytes).unwrap().body, machine.clone().into());
    let blocks = machine.schedule();
    assert_eq!(blocks.iter().map(Vec::len).collect::<Vec<_>>(), [5000, 5000]);
    let terms = exact::log2_terms(&machine, &Clamp::none(), 1).unwrap();
    assert!(terms < 20.0, "a chain is summed unit after unit, not in 2^{terms} terms");
    let took = start.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[test]
fn random_bytes_are_an_error() {
    let numbers = &mut Numbers(5);
    for n in 0..2000 {
        let mut bytes: Vec<u8> = (0..n % 200).map(|_| numbers.bits().to_le_bytes()[0]).collect();
        if let Some(prefix) = bytes.first_chunk_mut::<8>() {
            *prefix = (numbers.below(200) as u64).to_le_bytes();
        }
        assert!(Model::from_bytes(&bytes).is_err());
    }
}

#[test]
fn claims_beyond_the_file_are_not_believed() {
    for claimed in [u64::MAX, u64::MAX - 7, 1 << 63, 1 << 40, (16 << 20) + 1, 3] {
        let bytes = [&claimed.to_le_bytes()[..], b"{}"].concat();
        assert_says(&Model::from_bytes(&bytes).unwrap_err(), &[&claimed.to_string()]);
    }
    let name = "layers.visible.bias";
    for shape in
        [json!([1_u64 << 61]), json!([u64::MAX, u64::MAX]), json!([0, u64::MAX]), json!([2])]
    {
        assert_says(&headed(|h| h[name]["shape"] = shape), &[name, "shape"]);
    }
    for offsets in [json!([0, u64::MAX]), json!([u64::MAX - 8, u64::MAX]), json!([8, 0])] {
        assert_says(&headed(|h| h[name]["data_offsets"] = offsets), &["tensor `"]);
    }
    assert_says(&headed(|h| h[name]["shape"] = json!([-3])), &["header"]);
    assert_says(&headed(|h| h[name]["shape"] = json!([3.0])), &["header"]);
    assert_says(&headed(|h| h[name]["dtype"] = json!("F32")), &[name, "F64", "F32"]);
    for n_units in [0, 4, 1 << 40, u64::MAX] {
        let error = described(|d| d["layers"][0]["n_units"] = json!(n_units));
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
}

/// Eight tensors that end just below 2^64: adding the header to that must not overflow.
#[test]
fn sums_of_sizes_do_not_overflow() {
    let (mut header, _, data) = parts();
    let n = (1_u64 << 58) - 1;
    for i in 0..8 {
        let offsets = [i * n * 8, (i + 1) * n * 8];
        header[format!("state.{i}")] =
            json!({"dtype": "F64", "shape": [n], "data_offsets": offsets});
    }
    assert!(Model::from_bytes(&file(&header.to_string(), &data)).is_err());
}

#[test]
fn tensors_must_be_those_of_the_graph() {
    let take = |name: &str| headed(|h| drop(h.as_object_mut().unwrap().remove(name)));
    assert!(matches!(take("layers.hidden.bias"), Error::Damaged { .. }));
    let error = headed(|h| {
        let place = h.as_object_mut().unwrap().remove("layers.hidden.bias").unwrap();
        h["layers.other.bias"] = place;
    });
    assert_says(&error, &["layers.hidden.bias", "missing", "[2]"]);
    let empty = json!({"dtype": "F64", "shape": [0], "data_offsets": [0, 0]});
    assert_says(&headed(|h| h["stray"] = empty.clone()), &["`stray`", "belongs to no layer"]);
    assert_says(&headed(|h| h["state.x"] = empty), &["`state.x`", "belongs to no layer"]);
    let turned = headed(|h| h["couplings.visible.hidden.weights"]["shape"] = json!([2, 3]));
    assert_says(&turned, &["couplings.visible.hidden.weights", "[3, 2]", "[2, 3]"]);
    let lateral = headed(|h| h["couplings.hidden.hidden.weights"]["shape"] = json!([1, 1]));
    assert_says(&lateral, &["couplings.hidden.hidden.weights", "[1]", "[1, 1]"]);
}

#[test]
fn parameters_must_be_finite_and_precisions_positive() {
    let (header, _, data) = parts();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for name in
            ["layers.visible.bias", "layers.hidden.offset", "couplings.visible.hidden.weights"]
        {
            let mut data = data.clone();
            let at = usize::try_from(header[name]["data_offsets"][0].as_u64().unwrap()).unwrap();
            data[at..at + 8].copy_from_slice(&bad.to_le_bytes());
            let error = Model::from_bytes(&file(&header.to_string(), &data)).unwrap_err();
            assert_says(&error, &[&bad.to_string()]);
        }
    }
    let at = header["layers.visible.precision"]["data_offsets"][0].as_u64().unwrap();
    let at = usize::try_from(at).unwrap();
    for bad in [0.0, -1.0] {
        let mut data = data.clone();
        data[at..at + 8].copy_from_slice(&f64::to_le_bytes(bad));
        let error = Model::from_bytes(&file(&header.to_string(), &data)).unwrap_err();
        assert_says(&error, &["precision", "visible"]);
    }
    let error = described(|d| d["constant"] = json!(null));
    assert!(matches!(error, Error::Damaged { .. }));
}

#[test]
fn the_description_must_be_of_the_right_form() {
    let layer = |key: &'static str, value: Value| described(|d| d["layers"][0][key] = value);
    assert_says(&layer("units", json!("quantum")), &["quantum", "binary"]);
    assert_says(&layer("role", json!("seen")), &["seen", "visible"]);
    assert_says(&layer("units", json!({"categorical": {"q": 0}})), &["layers.visible.bias"]);
    assert_says(&layer("units", json!({"categorical": {"q": u64::MAX}})), &["visible"]);
    assert_says(&layer("name", json!("hidden")), &["hidden", "twice"]);
    assert_says(&layer("bend", json!(1)), &["bend"]);
    let coupling = |key: &'static str, value: Value| described(|d| d["couplings"][0][key] = value);
    assert_says(&coupling("between", json!(["visible", "h"])), &["`h`", "no layer"]);
    assert_says(&coupling("between", json!(["hidden"])), &["2"]);
    assert_says(&coupling("lateral", json!(true)), &["lateral"]);
    let double = described(|d| {
        let first = d["couplings"][0].clone();
        d["couplings"].as_array_mut().unwrap().push(first);
    });
    assert_says(&double, &["`visible` and `hidden`", "twice"]);
    let turned = described(|d| {
        let turned = json!({"between": ["hidden", "visible"], "lateral": false});
        d["couplings"].as_array_mut().unwrap().push(turned);
    });
    assert_says(&turned, &["`hidden` and `visible`", "twice"]);
    assert_says(&described(|d| d["new"] = json!(1)), &["new"]);
    assert_says(&described(|d| drop(d.as_object_mut().unwrap().remove("seed"))), &["seed"]);
    assert_says(&described(|d| d["seed"] = json!(-1)), &["-1"]);
    assert_says(&described(|d| d["layers"] = json!([])), &["no layer"]);
    let many = json!(vec![json!({"between": ["a", "b"], "lateral": false}); 10_001]);
    assert_says(&described(|d| d["couplings"] = many), &["10001", "10000"]);
}

#[test]
fn other_versions_and_kinds_say_so() {
    let newer = described(|d| {
        d["format_version"] = json!(4);
        d["something"] = json!("new");
    });
    assert!(matches!(newer, Error::NewerFormat { found: 4, supported: 3, .. }), "{newer}");
    assert!(newer.hint().contains("update"));
    assert_says(&described(|d| d["format_version"] = json!(0)), &["version 0"]);
    let bare = described(|d| d["format_version"] = json!(3));
    assert_says(&bare, &["version 3 of the format has a checksum"]);
    assert_says(&described(|d| d["checksum"] = json!("00")), &["checksum", "have changed"]);
    let error = described(|d| d["kind"] = json!("forest"));
    assert_says(&error, &["only `machine`, `dbn` and `network` can be read", "`forest`"]);
    assert_says(&described(|d| d["kind"] = json!("network")), &["does not describe a network"]);
    assert_says(&described(|d| d["kind"] = json!("dbn")), &["does not describe a dbn"]);
}

/// The error for a net whose description was changed.
fn net(change: impl FnOnce(&mut Value)) -> Error {
    let input = Layer::new("visible", Role::Visible, Units::Binary, 3).unwrap();
    let shape = Shape { hidden: vec![2], ..Shape::classes(4, 0) };
    let bytes = Model::from(random(&[input], &shape).unwrap()).to_bytes().unwrap();
    let n = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + n]).unwrap();
    let text = header["__metadata__"]["harmonium"].as_str().unwrap();
    let mut description: Value = serde_json::from_str(text).unwrap();
    change(&mut description["network"]);
    header["__metadata__"]["harmonium"] = Value::String(description.to_string());
    Model::from_bytes(&file(&header.to_string(), &bytes[8 + n..])).unwrap_err()
}

/// Whatever a file claims about a net, nothing is made room for that is not there.
#[test]
fn claims_about_nets_are_checked() {
    for claim in [4_u64, 1_000_000_000_000_000, u64::MAX] {
        assert!(matches!(net(|n| n["inputs"][0]["n_units"] = json!(claim)), Error::Damaged { .. }));
        assert!(matches!(net(|n| n["layers"][0]["n_units"] = json!(claim)), Error::Damaged { .. }));
    }
    assert_says(&net(|n| n["layers"] = json!([])), &["layers of a net"]);
    assert_says(&net(|n| n["inputs"] = json!([])), &["network.hidden1.weights"]);
    assert_says(&net(|n| n["target"] = json!("stars")), &["stars"]);
    assert_says(&net(|n| n["layers"][0]["activation"] = json!("step")), &["step"]);
    assert_says(&net(|n| n["layers"][1]["activation"] = json!("relu")), &["linear last layer"]);
    assert_says(&net(|n| n["layers"][1]["name"] = json!("hidden1")), &["network.hidden1.weights"]);
    assert_says(&net(|n| n["more"] = json!(1)), &["more"]);
    let dense = json!({"name": "a", "activation": "relu", "n_units": 1});
    assert_says(&net(|n| n["layers"] = json!(vec![dense; 10_001])), &["10001", "10000"]);
}

#[test]
fn hostile_json_is_an_error() {
    let nested = "[".repeat(100_000);
    for header in
        ["", "[]", "null", "{", "{}", "{\"a\":1}", nested.as_str(), "{\"__metadata__\":1}"]
    {
        assert!(Model::from_bytes(&file(header, &[])).is_err(), "{header:.20}");
    }
    let place = r#"{"dtype":"F64","shape":[0],"data_offsets":[0,0]}"#;
    let twice = format!(r#"{{"a":{place},"a":{place}}}"#);
    assert_says(&Model::from_bytes(&file(&twice, &[])).unwrap_err(), &["`a` occurs twice"]);
    let twice = r#"{"__metadata__":{"harmonium":"x","harmonium":"y"}}"#;
    assert_says(&Model::from_bytes(&file(twice, &[])).unwrap_err(), &["`harmonium` occurs twice"]);
    let twice = r#"{"__metadata__":{"harmonium":"x"},"__metadata__":{}}"#;
    assert_says(&Model::from_bytes(&file(twice, &[])).unwrap_err(), &["occurs twice"]);
    let other = format!(r#"{{"a":{place},"__metadata__":{{"format":"pt"}}}}"#);
    assert_says(&Model::from_bytes(&file(&other, &[])).unwrap_err(), &["`harmonium`"]);
    let text = |text: &str| {
        let header = json!({"__metadata__": {"harmonium": text}}).to_string();
        Model::from_bytes(&file(&header, &[])).unwrap_err()
    };
    for hostile in ["", "{}", "7", &nested, "{\"format_version\":1e400}", "{\"format_version\":1}"]
    {
        assert_says(&text(hostile), &["description"]);
    }
    let mut bytes = model().to_bytes().unwrap();
    bytes[20] = 0xFF;
    assert!(Model::from_bytes(&bytes).is_err(), "a header must be UTF-8");
}

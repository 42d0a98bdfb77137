//! What is written is what is read, and equal models give equal bytes.

use crate::folder::{Folder, names};
use crate::machines::{all, bits, machine, model, sparse_model};
use harmonium::Error;
use harmonium::machine::{Coupling, Weights};
use harmonium::run::{About, Model, Overwrite};
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

/// The JSON in a file.
fn metadata(bytes: &[u8]) -> (usize, String) {
    let (_, metadata) = SafeTensors::read_metadata(bytes).unwrap();
    let texts = metadata.metadata().as_ref().unwrap();
    (texts.len(), texts["harmonium"].clone())
}

#[test]
fn every_machine_comes_back_to_the_bit() {
    for (name, original) in all() {
        let model = Model::from(original.clone());
        let bytes = model.to_bytes().unwrap();
        let read = Model::from_bytes(&bytes).unwrap();
        assert_eq!(read, model, "{name}");
        assert_eq!(bits(machine(&read.body)), bits(&original), "{name}");
        assert_eq!(read.to_bytes().unwrap(), bytes, "{name}");
    }
}

#[test]
fn the_description_comes_back_to_the_bit() {
    let model = model();
    let read = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(read.about, model.about);
    let mean = |m: &Model, i: usize| m.about.data.means[i].to_bits();
    assert!((0..3).all(|i| mean(&read, i) == mean(&model, i)));
}

#[test]
fn other_programs_can_read_the_file() {
    for (name, machine) in all() {
        let bytes = Model::from(machine.clone()).to_bytes().unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let n_own: usize =
            machine.layers().iter().map(|l| if l.own.is_empty() { 2 } else { 3 }).sum();
        let is_sparse = |c: &&Coupling| matches!(c.weights, Weights::Sparse(_));
        let n_edges = machine.couplings().iter().filter(is_sparse).count();
        assert_eq!(file.len(), n_own + machine.couplings().len() + n_edges, "{name}");
        assert!(file.iter().all(|(_, tensor)| tensor.dtype() == Dtype::F64), "{name}");
    }
    let bytes = model().to_bytes().unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let shape = |name: &str| file.tensor(name).unwrap().shape().to_vec();
    assert_eq!(shape("layers.visible.bias"), [3]);
    assert_eq!(shape("layers.visible.precision"), [3]);
    assert_eq!(shape("couplings.visible.hidden.weights"), [3, 2]);
    assert_eq!(shape("couplings.hidden.hidden.weights"), [1]);
    assert!(file.tensor("layers.hidden.precision").is_err());
}

#[test]
fn there_is_one_metadata_key_of_sorted_json() {
    let (n_keys, text) = metadata(&model().to_bytes().unwrap());
    assert_eq!(n_keys, 1);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["format_version"], 1);
    assert_eq!(value["kind"], "machine");
    let start = r#"{"config":{"a":{"b":null,"z":1},"k":[1,2.5],"learning-rate":0.1,"rule":"pcd"},"constant":"#;
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains(
        r#""couplings":[{"between":["visible","hidden"],"lateral":false},{"between":["hidden","hidden"],"lateral":true}]"#
    ));
    assert!(text.contains(r#"{"n_units":3,"name":"visible","role":"visible","units":"gaussian"}"#));
    assert!(!text.contains("checkpoint"));
    assert!(text.contains("\"seed\":18446744073709551615"));
}

#[test]
fn only_sparse_couplings_need_the_second_version() {
    let bytes = sparse_model().to_bytes().unwrap();
    let value: Value = serde_json::from_str(&metadata(&bytes).1).unwrap();
    assert_eq!(value["format_version"], 2);
    let Weights::Sparse(edges) = &machine(&sparse_model().body).couplings()[0].weights.clone()
    else {
        panic!("the model is sparse");
    };
    let (n, file) = (edges.pairs().len(), SafeTensors::deserialize(&bytes).unwrap());
    assert_eq!(value["couplings"][0]["edges"], n);
    assert_eq!(file.tensor("couplings.v%2E1.v%2E1.edges").unwrap().shape(), [n, 2]);
    assert_eq!(file.tensor("couplings.v%2E1.v%2E1.weights").unwrap().shape(), [n]);
}

/// Pins the format: a change of these bytes needs a new format version.
#[test]
fn bytes_are_stable() {
    let body = harmonium::models::Rbm::binary(2, 1).unwrap().into();
    let about = About { library_version: "0".into(), ..About::default() };
    let bytes = Model { body, about }.to_bytes().unwrap();
    let header = concat!(
        r#"{"__metadata__":{"harmonium":"{\"config\":null,\"constant\":0.0,\"couplings\":[{\"between\":"#,
        r#"[\"visible\",\"hidden\"],\"lateral\":false}],\"data\":null,\"epoch\":0,\"format_version\":1,"#,
        r#"\"kind\":\"machine\",\"layers\":[{\"n_units\":2,\"name\":\"visible\",\"role\":\"visible\","#,
        r#"\"units\":\"binary\"},{\"n_units\":1,\"name\":\"hidden\",\"role\":\"hidden\",\"units\":"#,
        r#"\"binary\"}],\"library_version\":\"0\",\"seed\":0,\"step\":0}"},"#,
        r#""couplings.visible.hidden.weights":{"dtype":"F64","shape":[2,1],"data_offsets":[0,16]},"#,
        r#""layers.hidden.bias":{"dtype":"F64","shape":[1],"data_offsets":[16,24]},"#,
        r#""layers.hidden.offset":{"dtype":"F64","shape":[1],"data_offsets":[24,32]},"#,
        r#""layers.visible.bias":{"dtype":"F64","shape":[2],"data_offsets":[32,48]},"#,
        r#""layers.visible.offset":{"dtype":"F64","shape":[2],"data_offsets":[48,64]}}"#,
    );
    let found = std::str::from_utf8(&bytes[8..bytes.len() - 64]).unwrap();
    assert_eq!(found.trim_end(), header);
    assert_eq!(bytes[..8], (found.len() as u64).to_le_bytes());
}

#[test]
fn a_description_that_could_not_be_read_again_is_refused() {
    let deep = (0..200).fold(json!(0), |inner, _| json!([inner]));
    let long = Value::String("x".repeat(17 << 20));
    for config in [deep, long] {
        let about = About { config, ..About::default() };
        let error = Model { about, ..model() }.to_bytes().unwrap_err();
        assert!(matches!(error, Error::Unwritable { .. }), "{error}");
    }
}

#[test]
fn saving_overwrites_only_when_told() {
    let folder = Folder::new();
    let path = folder.join("m.safetensors");
    let (first, mut second) = (model(), model());
    second.about.seed = 5;
    first.save(&path).unwrap();
    for refused in [second.save(&path), second.write(&path, Overwrite::No)] {
        assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
    }
    let error = second.save(&path).unwrap_err();
    assert!(error.hint().contains("--force"));
    assert_eq!(Model::load(&path).unwrap(), first);
    second.write(&path, Overwrite::Yes).unwrap();
    assert_eq!(Model::load(&path).unwrap(), second);
    assert_eq!(names(folder.path()), ["m.safetensors"]);
}

#[test]
fn errors_name_the_file() {
    let folder = Folder::new();
    let missing = Model::load(folder.join("no.safetensors")).unwrap_err();
    assert!(missing.to_string().contains("no.safetensors"), "{missing}");
    assert!(missing.hint().contains("spelling"));
    let path = folder.join("cut.safetensors");
    let bytes = model().to_bytes().unwrap();
    for n in [0, 7, 8, 100, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..n]).unwrap();
        let error = Model::load(&path).unwrap_err();
        assert!(error.to_string().contains("cut.safetensors"), "{n}: {error}");
    }
    let error = Model::load("/dev/null").unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

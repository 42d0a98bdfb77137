//! The machine a table belongs to, and what took part.

use super::python::Python;
use super::{Fallible, Places};
use crate::machine::{self, said};
use serde_json::{Map, Value};

/// Processor, system and versions of everything that took part.
pub(super) fn describe(places: &Places, python: &Python) -> Fallible<Map<String, Value>> {
    let mut described = machine::describe();
    described.insert("threads".into(), 1.into());
    described.insert("pinned".into(), places.pin.join(" ").into());
    if let Some(Value::Object(versions)) = described.get_mut("versions") {
        let ours = said(&places.harmonium, &["--version"], &places.root);
        versions.insert("harmonium".into(), ours);
        versions.extend(python.versions()?);
    }
    Ok(described)
}

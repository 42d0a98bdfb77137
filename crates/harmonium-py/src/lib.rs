//! The Python door: converts arrays, releases the interpreter while the library works, and turns errors
//! into exceptions. What is asked and how it is shown is `python/harmonium`; what it means is the library.

#![forbid(unsafe_code)]

mod arrays;
mod data;
mod errors;
mod finetune;
mod frames;
mod learn;
mod modalities;
mod model;
mod train;
mod work;

use pyo3::prelude::*;

/// The compiled half of `harmonium`.
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::data::Data;
    #[pymodule_export]
    use super::finetune::{answer, finetune};
    #[pymodule_export]
    use super::frames::{columns, decoded};
    #[pymodule_export]
    use super::learn::learn_on;
    #[pymodule_export]
    use super::modalities::{
        join, modalities, observed_part, retrieve, score_given, without_modality,
    };
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::spelt;
    #[pymodule_export]
    use super::train::train;
    #[pymodule_export]
    use super::version;
    #[pymodule_export]
    use super::work::{set_threads, threads};
}

/// The version of the library.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// A sentence with its flags spelt as arguments.
#[pyfunction]
fn spelt(text: &str) -> String {
    errors::spelt(text)
}

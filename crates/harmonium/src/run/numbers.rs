//! The parameters of a model by the names they have in its file, to be read and replaced.

use super::header::{Header, Place};
use super::model_file::Model;
use crate::error::Error;
use std::collections::BTreeMap;

/// A parameter: its shape and its numbers, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// One number for a row, two for a matrix.
    pub shape: Vec<usize>,
    /// The numbers.
    pub values: Vec<f64>,
}

impl Model {
    /// All parameters by name: `layers.visible.bias`, `couplings.visible.hidden.weights`, ….
    ///
    /// # Errors
    ///
    /// As [`Model::to_bytes`].
    pub fn parameters(&self) -> Result<BTreeMap<String, Parameter>, Error> {
        let bytes = self.to_bytes()?;
        let (header, data) = Header::read(&bytes)?;
        let read = |place: &Place| {
            let (numbers, _) = data[place.range()].as_chunks();
            Parameter {
                shape: place.shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect(),
                values: numbers.iter().map(|number| f64::from_le_bytes(*number)).collect(),
            }
        };
        Ok(header.tensors.iter().map(|(name, place)| (name.clone(), read(place))).collect())
    }

    /// The same model with other numbers for some of its parameters.
    ///
    /// # Errors
    ///
    /// If it has no parameter of a name, or one of another size; or if the numbers are none that it could have.
    pub fn with_parameters(&self, numbers: &BTreeMap<String, Vec<f64>>) -> Result<Self, Error> {
        let mut bytes = self.to_bytes()?;
        let (header, data) = Header::read(&bytes)?;
        let start = bytes.len() - data.len();
        for (name, values) in numbers {
            let Some(place) = header.tensors.get(name) else {
                let known: Vec<&str> = header.tensors.keys().map(String::as_str).collect();
                let known = known.join("`, `");
                return Err(unfit(format!("there is no parameter `{name}`; there are `{known}`")));
            };
            let range = place.range();
            if range.len() != size_of_val(values.as_slice()) {
                return Err(unfit(format!(
                    "parameter `{name}` has shape {:?}, found {} numbers",
                    place.shape,
                    values.len()
                )));
            }
            let out = &mut bytes[start + range.start..start + range.end];
            let (out, _) = out.as_chunks_mut();
            out.iter_mut().zip(values).for_each(|(o, x)| *o = x.to_le_bytes());
        }
        Self::from_bytes(&bytes)
    }
}

fn unfit(reason: String) -> Error {
    Error::Parameters { reason }
}

#[cfg(test)]
mod tests {
    use crate::models::Rbm;
    use crate::run::Model;
    use std::collections::BTreeMap;

    #[test]
    fn numbers_are_replaced_by_name() {
        let model = Model::from(Rbm::binary(3, 2).unwrap());
        let name = "couplings.visible.hidden.weights";
        let found = model.parameters().unwrap();
        assert_eq!((&found[name].shape[..], found.len()), (&[3, 2][..], 5));
        let weights: Vec<f64> = (0..6).map(f64::from).collect();
        let new = BTreeMap::from([(name.to_owned(), weights.clone())]);
        let changed = model.with_parameters(&new).unwrap();
        assert_eq!(changed.parameters().unwrap()[name].values, weights);
        assert_eq!(changed.about, model.about);
        for (name, values) in
            [("layers.none.bias", vec![]), (name, vec![1.0]), (name, vec![f64::NAN; 6])]
        {
            let wrong = BTreeMap::from([(name.to_owned(), values)]);
            assert!(model.with_parameters(&wrong).is_err(), "{name}");
        }
    }
}

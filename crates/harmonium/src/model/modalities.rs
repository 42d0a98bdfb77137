//! Models of several modalities: rows of some of them in, what belongs to one of them out.
//!
//! Nothing here samples or scores: a modality is a run of columns, what is not given of it is missing, and the verbs of a
//! model know what to do about missing cells.

use crate::error::Error;
use crate::models::modality_of;
use crate::run::Model;
use harmonium_data::frame::Frame;
use harmonium_data::{Dataset, Image, Modality, Source};
use ndarray::{Array2, ArrayView2, Axis};
use std::ops::Range;

impl Model {
    /// The modalities that were learned together, if there were several.
    pub fn modalities(&self) -> &[Modality] {
        &self.about.data.modalities
    }

    /// A modality by its name.
    ///
    /// # Errors
    ///
    /// If there is none of that name.
    pub fn modality(&self, name: &str) -> Result<&Modality, Error> {
        let all = self.modalities();
        all.iter().find(|m| m.name == name).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|m| m.name.as_str()).collect();
            let modalities = if all.is_empty() { "none".into() } else { names.join(", ") };
            Error::NoModality { name: name.to_owned(), modalities }
        })
    }

    /// Rows of some modalities side by side, as the model takes them: of the others nothing is known.
    ///
    /// # Errors
    ///
    /// If a modality is given twice or is not there, has another number of columns, or their numbers of rows differ.
    pub fn join(&self, given: Vec<(String, Dataset)>) -> Result<Dataset, Error> {
        let Some((_, first)) = given.first() else {
            return Err(Error::Empty { what: "what is given".into() });
        };
        let n_rows = first.n_rows();
        for (i, (name, data)) in given.iter().enumerate() {
            let (expected, found) = (self.modality(name)?.columns.len(), data.n_columns());
            if expected != found {
                let detail = format!(", those of `{name}`");
                return Err(Error::ColumnCount { expected, found, detail });
            }
            if given[..i].iter().any(|(other, _)| other == name) {
                let name = name.clone();
                return Err(harmonium_data::Error::SameName { name, columns: (0, i) }.into());
            }
        }
        let mut given = given;
        let mut sources = Vec::new();
        for modality in self.modalities() {
            let place = given.iter().position(|(name, _)| *name == modality.name);
            let data = match place {
                Some(place) => given.swap_remove(place).1,
                None => Dataset::unknown(n_rows, modality.columns.len())?,
            };
            sources.push(Source::new(modality.name.clone(), data));
        }
        Ok(Dataset::join(sources)?)
    }

    /// The rows without what they say of one modality.
    ///
    /// # Errors
    ///
    /// If there is no such modality.
    pub fn without_modality(&self, data: &Dataset, name: &str) -> Result<Dataset, Error> {
        let columns = self.modality(name)?.columns.clone();
        let shape = (1, data.n_columns());
        let observed = Array2::from_shape_fn(shape, |(_, c)| !columns.contains(&c));
        Ok(data.clone().with_mask(observed.view())?)
    }

    /// Where the entries of a modality stand among all visible entries, as samples and completions have them.
    ///
    /// # Errors
    ///
    /// If there is no such modality.
    pub fn entries_of(&self, name: &str) -> Result<Range<usize>, Error> {
        self.modality(name)?;
        let (mut start, mut own) = (0, None::<Range<usize>>);
        for layer in self.body.visible() {
            let end = start + layer.len();
            if modality_of(&layer.name) == name {
                own = Some(own.map_or(start, |range| range.start)..end);
            }
            start = end;
        }
        Ok(own.unwrap_or_default())
    }

    /// What rows of visible entries say of a modality.
    ///
    /// # Errors
    ///
    /// If there is no such modality, or the rows have another number of entries.
    pub fn only(&self, values: ArrayView2<'_, f64>, name: &str) -> Result<Array2<f64>, Error> {
        let entries = self.entries_of(name)?;
        let n: usize = self.body.visible().iter().map(|l| l.len()).sum();
        if values.ncols() != n {
            let (what, found) = ("visible entries".to_owned(), values.ncols());
            return Err(Error::Shape { what, expected: n, found });
        }
        Ok(values.slice_axis(Axis(1), entries.into()).to_owned())
    }

    /// Entries of a modality as a table of the columns that were learned, where it was one.
    ///
    /// # Errors
    ///
    /// If there is no such modality, or the rows have another number of entries.
    pub fn table_of(&self, name: &str, own: ArrayView2<'_, f64>) -> Result<Option<Frame>, Error> {
        Ok(self.modality(name)?.codebook.as_ref().map(|book| book.decode(own)).transpose()?)
    }

    /// The shape of the pictures of a modality, if it has some: the one remembered, or a square.
    ///
    /// # Errors
    ///
    /// If there is no such modality.
    pub fn picture_of(&self, name: &str) -> Result<Option<Image>, Error> {
        let modality = self.modality(name)?;
        let (n, side) = (modality.columns.len(), modality.columns.len().isqrt());
        let square = (side * side == n && n > 3 && modality.names.is_empty())
            .then_some(Image { height: side, width: side });
        Ok(modality.picture().or(square))
    }
}

//! Where every reader puts its rows: options are applied here, once for all formats.

use super::number::{Kind, Run};
use crate::hash::ContentHash;
use crate::labels::{self, Labels};
use crate::options::Columns;
use crate::store::{Cut, Store, to_byte};
use crate::{BlockValues, Error, Image, LabelColumn, Options, Table};

/// What a format says about the rows besides their values.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The shape of the picture in each row.
    pub(crate) image: Option<Image>,
    /// The name of each column of the file.
    pub(crate) column_names: Option<Vec<String>>,
    /// What a reader had to guess, for people.
    pub(crate) notes: Vec<String>,
}

/// Everything that was read.
#[derive(Debug)]
pub(crate) struct ReadRows {
    pub(crate) table: Table,
    pub(crate) labels: Option<Labels>,
    pub(crate) column_names: Option<Vec<String>>,
    pub(crate) content_hash: u64,
    pub(crate) notes: Vec<String>,
    /// The entries of a vector as the file holds them, if they were asked for.
    pub(crate) entries: Option<Vec<String>>,
}

/// A table in the making.
#[derive(Debug)]
pub(crate) struct RowSink {
    options: Options,
    threshold: Option<f32>,
    full_scale: Option<u8>,
    layout: Option<Layout>,
    labels: Option<labels::LabelSink>,
    hash: ContentHash,
    /// Rows so far.
    count: usize,
    /// The entries as text, as long as they are wanted and form a vector.
    entries: Option<Vec<String>>,
    /// A buffer for a row of stored numbers.
    decoded: Vec<f32>,
}

/// What the first row fixes.
#[derive(Debug)]
struct Layout {
    /// Values in a row of the file.
    width: usize,
    /// The same after unpacking.
    n_columns: usize,
    columns: Columns,
    store: Store,
    /// Buffers for a row.
    bytes: Vec<u8>,
    reals: Vec<f32>,
}

impl RowSink {
    /// A table to be filled as `options` say. A threshold is applied at once where the format
    /// fixes the full scale before the first row.
    pub(crate) fn new(options: &Options, threshold: Option<f32>) -> Self {
        Self {
            options: options.clone(),
            threshold,
            full_scale: None,
            layout: None,
            labels: None,
            hash: ContentHash::default(),
            count: 0,
            entries: None,
            decoded: Vec::new(),
        }
    }

    /// The same for a vector of labels, whose entries are kept as text too: a table has room for
    /// whole numbers up to 2²⁴ only.
    pub(crate) fn for_labels(options: &Options) -> Self {
        let entries = (!options.invert).then(Vec::new);
        Self { entries, ..Self::new(options, None) }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.count
    }

    /// Finds the label column among the names of all columns, if it was asked for by its name.
    pub(crate) fn name_columns(&mut self, names: &[String]) -> Result<(), Error> {
        let Some(LabelColumn::Name(asked)) = &self.options.label_column else { return Ok(()) };
        if self.options.transpose || self.options.packed_bits.is_some() {
            return Err(Error::LabelName { asked: asked.clone(), available: Vec::new() });
        }
        let place = names.iter().position(|name| name.trim() == asked);
        let place = place
            .and_then(|place| isize::try_from(place).ok())
            .ok_or_else(|| Error::LabelName { asked: asked.clone(), available: names.to_vec() })?;
        self.options.label_column = Some(place.into());
        Ok(())
    }

    /// Says before the first row that bytes are grey levels up to `full_scale`.
    pub(crate) fn set_full_scale(&mut self, full_scale: u8) {
        self.full_scale = Some(full_scale);
    }

    /// For readers that can turn an array themselves: whether they should. Packed rows cannot
    /// be turned before they are unpacked, which happens here.
    pub(crate) fn take_transpose(&mut self) -> bool {
        self.options.packed_bits.is_none() && std::mem::take(&mut self.options.transpose)
    }

    /// Adds a row of bytes. `label` is what the format itself says the class is.
    pub(crate) fn push_bytes(&mut self, row: &[u8], label: Option<&str>) -> Result<(), Error> {
        self.prepare(row.len())?;
        // Bytes are exact in the table itself.
        self.entries = None;
        let Some(mut layout) = self.layout.take() else { return Ok(()) };
        let mut unpacked = Vec::new();
        let row = if self.options.packed_bits.is_some() {
            unpacked.extend((0..layout.n_columns).map(|c| row[c / 8] >> (7 - c % 8) & 1));
            &unpacked
        } else {
            row
        };
        self.push_label(&layout, label, |c| Ok(row[c].to_string()))?;
        let result = if layout.columns.is_everything(layout.n_columns) {
            self.store_bytes(&mut layout.store, row)
        } else {
            let mut kept = std::mem::take(&mut layout.bytes);
            kept.clear();
            kept.extend(layout.columns.indices().map(|c| row[c]));
            let result = self.store_bytes(&mut layout.store, &kept);
            layout.bytes = kept;
            result
        };
        self.layout = Some(layout);
        result
    }

    /// Adds a row of numbers as a file stores them.
    pub(crate) fn push_run(&mut self, run: &Run) -> Result<(), Error> {
        if run.kind == Kind::U8 {
            return self.push_bytes(run.bytes, None);
        }
        let mut row = std::mem::take(&mut self.decoded);
        run.kind.decode_into(run.bytes, run.endian, &mut row);
        self.push_with(&row, None, |c| Ok(run.text(c)))?;
        self.decoded = row;
        Ok(())
    }

    /// Adds a row of numbers, NaN where one is missing.
    pub(crate) fn push(&mut self, row: &[f32], label: Option<&str>) -> Result<(), Error> {
        self.entries = None;
        let line = self.count;
        self.push_with(row, label, |c| label_text(line, row[c]))
    }

    /// Adds a row of numbers, given what each is as a label.
    fn push_with(
        &mut self,
        row: &[f32],
        label: Option<&str>,
        text: impl Fn(usize) -> Result<String, Error>,
    ) -> Result<(), Error> {
        self.prepare(row.len())?;
        if self.options.packed_bits.is_some() {
            let n_rows = self.count;
            let byte = |(column, &value): (usize, &f32)| {
                to_byte(value).ok_or(Error::NotAByte { row: n_rows, column, value })
            };
            let bytes = row.iter().enumerate().map(byte).collect::<Result<Vec<u8>, Error>>()?;
            return self.push_bytes(&bytes, label);
        }
        let Some(mut layout) = self.layout.take() else { return Ok(()) };
        let text = |c: usize| if row[c].is_nan() { Ok(String::new()) } else { text(c) };
        self.push_label(&layout, label, text)?;
        self.keep_entries(&layout.columns, text)?;
        let mut kept = std::mem::take(&mut layout.reals);
        kept.clear();
        kept.extend(layout.columns.indices().map(|c| row[c]));
        if let Some(place) = kept.iter().position(|x| x.is_infinite()) {
            let column = layout.columns.indices().nth(place).unwrap_or(place);
            return Err(Error::NotFinite { row: self.count, column });
        }
        for &x in &kept {
            self.hash.value(x);
        }
        self.count += 1;
        let result = layout.store.push_reals(&kept);
        layout.reals = kept;
        self.layout = Some(layout);
        result
    }

    fn store_bytes(&mut self, store: &mut Store, row: &[u8]) -> Result<(), Error> {
        self.hash.bytes(row);
        self.count += 1;
        store.push_bytes(row)
    }

    /// Fixes the layout at the first row and checks the width of the others.
    fn prepare(&mut self, width: usize) -> Result<(), Error> {
        if let Some(layout) = &self.layout {
            if layout.width == width {
                return Ok(());
            }
            let line = self.count as u64 + 1;
            return Err(Error::Ragged { line, expected: layout.width, found: width });
        }
        let n_columns = match self.options.packed_bits {
            None => width,
            Some(n_bits) if n_bits.div_ceil(8) == width => n_bits,
            Some(n_bits) => {
                let expected = n_bits.div_ceil(8);
                return Err(Error::PackedWidth { n_bits, expected, found: width });
            }
        };
        // What is transposed later is chosen from later.
        let whole = Options::default();
        let options = if self.options.transpose { &whole } else { &self.options };
        let columns = Columns::resolve(options, n_columns)?;
        let n_kept = columns.indices().count();
        if n_kept == 0 {
            return Err(Error::Empty { n_rows: self.count, n_columns: 0 });
        }
        let store = Store::new(n_kept, self.cut());
        let (bytes, reals) = (Vec::new(), Vec::new());
        self.layout = Some(Layout { width, n_columns, columns, store, bytes, reals });
        Ok(())
    }

    fn cut(&self) -> Option<Cut> {
        let full_scale = self.full_scale.filter(|_| !self.options.transpose)?;
        Some(Cut {
            full_scale: self.options.full_scale.unwrap_or(f32::from(full_scale)),
            // One out of range is left to `Dataset::new`, which refuses it.
            threshold: self.threshold.filter(|&at| at > 0.0 && at <= 1.0)?,
            invert: self.options.invert,
        })
    }

    /// Keeps the entries of a column or of a single row.
    fn keep_entries(
        &mut self,
        columns: &Columns,
        text: impl Fn(usize) -> Result<String, Error>,
    ) -> Result<(), Error> {
        let Some(mut entries) = self.entries.take() else { return Ok(()) };
        if self.count == 0 || columns.indices().take(2).count() == 1 {
            for column in columns.indices() {
                entries.push(text(column)?);
            }
            self.entries = Some(entries);
        }
        Ok(())
    }

    fn push_label(
        &mut self,
        layout: &Layout,
        label: Option<&str>,
        text: impl Fn(usize) -> Result<String, Error>,
    ) -> Result<(), Error> {
        let row = self.count;
        let text = match (label, layout.columns.label) {
            (Some(text), _) => text.to_owned(),
            (None, Some(column)) => text(column)?,
            (None, None) => return Ok(()),
        };
        if is_missing(&text) {
            return Err(Error::NoLabel { row, reason: "the entry is missing".into() });
        }
        self.labels.get_or_insert_default().push(&text);
        Ok(())
    }

    /// The table as asked for.
    pub(crate) fn finish(self, facts: Facts) -> Result<ReadRows, Error> {
        let Some(layout) = self.layout else {
            return Err(Error::Empty { n_rows: 0, n_columns: 0 });
        };
        let stored = layout.store.finish(self.full_scale)?;
        if self.options.transpose {
            // Where the full scale is found only with the last value, the caller needs it too, and
            // the threshold is left to `Dataset::new`.
            let threshold = self.threshold.filter(|_| self.full_scale.is_some());
            return turn(&stored.table, &self.options, threshold, facts);
        }
        let mut table = stored.table;
        if let Some(image) = facts.image.filter(|_| layout.columns.is_everything(layout.n_columns))
        {
            table = table.with_image(image);
        }
        if let Some(full_scale) = self.options.full_scale {
            table = table.with_full_scale(full_scale)?;
        }
        if self.options.invert && !stored.cut {
            table = table.inverted();
        }
        let column_names: Option<Vec<String>> = facts
            .column_names
            .filter(|names| names.len() == layout.n_columns)
            .map(|names| layout.columns.indices().map(|c| names[c].clone()).collect());
        if let Some(names) = &column_names {
            table = table.with_names(names);
        }
        let mut column_names = column_names;
        if let Some(layout) = self.options.image {
            table = table.with_layout(layout)?;
            column_names = table.names();
        }
        let labels = self.labels.map(labels::LabelSink::finish);
        let content_hash =
            self.hash.finish_shape(table.n_rows(), table.n_columns(), labels.as_ref());
        let (notes, entries) = (facts.notes, self.entries);
        Ok(ReadRows { table, labels, column_names, content_hash, notes, entries })
    }
}

/// The rows of `table` through `options`, as if a file held them.
pub(crate) fn choose(
    table: &Table,
    labels: Option<&Labels>,
    options: &Options,
    facts: Facts,
) -> Result<ReadRows, Error> {
    let mut rows = RowSink::new(options, None);
    if let Some(BlockValues::Bytes(_)) = table.only_block() {
        rows.full_scale = to_byte(table.full_scale());
    }
    let mut values = vec![0.0; table.n_columns()];
    for r in 0..table.n_rows() {
        values.iter_mut().enumerate().for_each(|(c, v)| *v = table.at(r, c));
        let label = labels.map(|l| l.name(l.values()[r]));
        rows.push(&values, label.as_deref())?;
    }
    rows.finish(facts)
}

fn turn(
    table: &Table,
    options: &Options,
    threshold: Option<f32>,
    facts: Facts,
) -> Result<ReadRows, Error> {
    let options = Options { transpose: false, packed_bits: None, ..options.clone() };
    let mut rows = RowSink::new(&options, threshold);
    if let Some(BlockValues::Bytes(_)) = table.only_block() {
        rows.full_scale = to_byte(table.full_scale());
    }
    let mut values = vec![0.0; table.n_rows()];
    for c in 0..table.n_columns() {
        values.iter_mut().enumerate().for_each(|(r, v)| *v = table.at(r, c));
        rows.push(&values, None)?;
    }
    rows.finish(Facts { notes: facts.notes, ..Facts::default() })
}

/// The label that a number of a table is. From 2²⁴ on several whole numbers share one place in a
/// table, so that classes would be lost.
pub(crate) fn label_text(row: usize, value: f32) -> Result<String, Error> {
    if value.abs() < FIRST_SHARED {
        return Ok(value.to_string());
    }
    let reason = format!("{value} is {FIRST_SHARED} or more, where 32-bit numbers are not exact");
    Err(Error::NoLabel { row, reason })
}

/// 2²⁴, the first whole number that shares its 32-bit number with the next.
const FIRST_SHARED: f32 = 16_777_216.0;

/// Whether a cell stands for a missing entry.
pub(crate) fn is_missing(cell: &str) -> bool {
    let cell = cell.trim();
    matches!(cell, "" | "?" | "-nan")
        || ["nan", "na", "null"].iter().any(|w| cell.eq_ignore_ascii_case(w))
}

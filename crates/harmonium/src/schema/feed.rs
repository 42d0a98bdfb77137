//! The one door from rows of data to a batch.
//!
//! Every value is checked once, when the feed is made; after that rows are only copied. A table of
//! bits stays packed on its way into the batch, and a batch that is filled again keeps its memory.

use super::{Encoding, Schema, Takes, mismatch};
use crate::error::Error;
use crate::machine::{Batch, Clamp, Layer, LayerId, Machine};
use crate::units::Units;
use harmonium_data::Dataset;
use harmonium_kernels::random::Stream;
use std::borrow::Cow;
use std::ops::Range;

/// Rows of data for the visible layers of a machine.
#[derive(Clone, Debug)]
pub struct Feed<'d> {
    data: Cow<'d, Dataset>,
    inlets: Inlets,
    /// Whether probabilities are presented as they are, instead of bits drawn from them.
    means: bool,
}

/// Where each visible layer gets its values, checked against the machine.
#[derive(Clone, Debug)]
struct Inlets {
    layers: Vec<Inlet>,
    n_columns: usize,
    /// Holds the layers that are filled, as if nothing were missing in them.
    clamp: Clamp,
}

/// Where one visible layer gets its values.
#[derive(Clone, Debug)]
struct Inlet {
    id: LayerId,
    name: String,
    units: Units,
    len: usize,
    from: Origin,
    /// The first missing value: its row and column.
    hole: Option<(usize, usize)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Origin {
    /// The data does not have this layer.
    Nothing,
    /// One column per entry, as packed bits.
    Bits(Vec<Range<usize>>),
    /// One column per entry.
    Entries(Vec<Range<usize>>),
    /// One column per categorical unit.
    Codes(Vec<Range<usize>>),
    /// The label.
    Label,
}

impl<'d> Feed<'d> {
    /// Prepares the rows of `data` for the visible layers of `machine`, each found in `schema` by
    /// its name. Layers that the schema or the data lacks stay free, and so do missing values.
    ///
    /// # Errors
    ///
    /// If the schema does not fit the machine or the data, or a value is impossible for its units.
    pub fn new(
        machine: &Machine,
        schema: &Schema,
        data: impl Into<Cow<'d, Dataset>>,
    ) -> Result<Self, Error> {
        let data = data.into();
        let mut inlets = Inlets::new(machine, schema, data.n_columns())?;
        inlets.take_labels(&data)?;
        let fits = |i: &Inlet| match i.from {
            Origin::Nothing | Origin::Label => true,
            _ => data.is_bits() && !data.has_missing() && i.units.is_zero_or_one(),
        };
        if !inlets.layers.iter().all(fits) {
            let mut values = vec![0.0; data.n_columns()];
            for row in 0..data.n_rows() {
                data.present_into(row, Stream::new(0), &mut values);
                inlets.check(row, &values, data.is_means())?;
            }
        }
        if data.is_bits() {
            inlets.layers.iter_mut().for_each(Inlet::pack);
        }
        Ok(Self { data, inlets, means: false })
    }

    /// The same with the schema that follows from the data; see [`Schema::of`].
    ///
    /// # Errors
    ///
    /// As [`Schema::of`] and [`Feed::new`].
    pub fn of(machine: &Machine, data: impl Into<Cow<'d, Dataset>>) -> Result<Self, Error> {
        let data = data.into();
        Self::new(machine, &Schema::of(machine, &data)?, data)
    }

    /// The feed itself, if every visible layer is filled and no value is missing: what learning
    /// layer by layer needs.
    ///
    /// # Errors
    ///
    /// Says which columns there are too few of, or where the first missing value is.
    pub fn whole(self) -> Result<Self, Error> {
        self.inlets.check_filled()?;
        self.inlets.check_holes()?;
        Ok(self)
    }

    /// The feed itself, if every visible layer is filled and every unit has a value in some row: what
    /// a machine can learn from. Single values may be missing.
    ///
    /// # Errors
    ///
    /// Says which columns there are too few of, or which has no value at all.
    pub fn filled_layers(self) -> Result<Self, Error> {
        self.inlets.check_filled()?;
        self.check_columns()?;
        Ok(self)
    }

    /// The feed itself, but data whose bits are drawn anew at each presentation comes as the
    /// probabilities that they are drawn from.
    #[must_use]
    pub fn with_means(mut self) -> Self {
        self.means = self.data.is_sampled();
        if self.means {
            self.inlets.layers.iter_mut().for_each(Inlet::unpack);
        }
        self
    }

    /// Whether a value is missing in a layer that the data fills.
    pub fn has_holes(&self) -> bool {
        self.inlets.layers.iter().any(|i| i.hole.is_some())
    }

    /// The feed itself, if no value is missing in the layers that the data fills.
    ///
    /// # Errors
    ///
    /// Says where the first missing value is.
    pub fn without_holes(self) -> Result<Self, Error> {
        self.inlets.check_holes()?;
        Ok(self)
    }

    /// The feed itself, if every visible layer is filled, or all but the label: what a score that sums
    /// the label out needs.
    ///
    /// # Errors
    ///
    /// Says which columns there are too few of.
    pub fn filled_but_for_labels(self) -> Result<Self, Error> {
        if !self.lacks_labels_alone() {
            self.inlets.check_filled()?;
        }
        Ok(self)
    }

    /// Whether every visible layer is filled but that of the labels.
    pub fn lacks_labels_alone(&self) -> bool {
        let mut free = self.inlets.layers.iter().filter(|i| i.from == Origin::Nothing);
        let only = free.next().is_some_and(|i| i.name == super::LABELS);
        only && self.inlets.layers.len() > 1 && free.next().is_none()
    }

    /// The data.
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    /// Holds the layers that the data fills.
    pub fn clamp(&self) -> &Clamp {
        &self.inlets.clamp
    }

    /// The visible layers that the data fills.
    pub fn filled(&self) -> Vec<LayerId> {
        let filled = self.inlets.layers.iter().filter(|i| i.from != Origin::Nothing);
        filled.map(|i| i.id).collect()
    }

    /// Says which rows will be presented soon, so that they are near by then.
    pub fn fetch(&self, rows: impl Iterator<Item = usize>) {
        self.data.fetch(rows);
    }

    /// The rows named, as they are presented with `draw`.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn batch(&self, rows: impl IntoIterator<Item = usize>, draw: Stream) -> Batch {
        let mut batch = self.inlets.batch();
        self.refill(&mut batch, rows, draw);
        batch
    }

    /// The same into a batch that was made by a feed of the same machine: its memory is used again.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn refill(&self, batch: &mut Batch, rows: impl IntoIterator<Item = usize>, draw: Stream) {
        let (data, inlets) = (&*self.data, &self.inlets);
        inlets.start(batch);
        let mut buffers = std::mem::take(&mut batch.buffers);
        buffers.words.resize(inlets.n_columns.div_ceil(64), 0);
        let as_bits = inlets.layers.iter().any(|i| matches!(i.from, Origin::Bits(_)));
        let as_numbers =
            inlets.layers.iter().any(|i| matches!(i.from, Origin::Entries(_) | Origin::Codes(_)));
        for row in rows {
            if as_bits {
                data.present_bits_into(row, draw, &mut buffers.values, &mut buffers.words);
            }
            buffers.values.resize(inlets.n_columns, 0.0);
            if as_numbers && self.means {
                data.means_into(row, &mut buffers.values);
            } else if as_numbers {
                data.present_into(row, draw, &mut buffers.values);
            }
            let class = data.labels().map(|labels| labels.values()[row]);
            inlets.push(batch, &buffers.values, &buffers.words, class);
            batch.end_row(data.weight(row));
        }
        batch.buffers = buffers;
        inlets.finish(batch);
    }

    /// Whether every column that fills a layer has a value in some row.
    fn check_columns(&self) -> Result<(), Error> {
        let table = self.data.table();
        let empty = |c: &usize| (0..table.n_rows()).all(|row| table.is_missing(row, *c));
        let holed = self.inlets.layers.iter().filter(|i| i.hole.is_some());
        let mut columns = holed.flat_map(|i| i.columns().iter().cloned().flatten());
        match columns.find(empty) {
            None => Ok(()),
            Some(column) => Err(Error::EmptyColumn { column, n_rows: table.n_rows() }),
        }
    }

    /// The weighted mean of every entry of each visible layer, over the rows that have it and over
    /// presentations.
    pub fn means(&self) -> Vec<Vec<f64>> {
        self.counted_means().unwrap_or_else(|| self.statistics().0)
    }

    /// Means where the data can count them by columns.
    pub(crate) fn counted_means(&self) -> Option<Vec<Vec<f64>>> {
        let columns: Option<Vec<_>> = self
            .inlets
            .layers
            .iter()
            .map(|i| match &i.from {
                Origin::Bits(columns) | Origin::Entries(columns) if i.hole.is_none() => {
                    Some(columns)
                }
                _ => None,
            })
            .collect();
        let columns = columns?;
        let means = self.data.column_means();
        let pick =
            |of: &Vec<Range<usize>>| of.iter().flat_map(|c| &means[c.clone()]).copied().collect();
        Some(columns.into_iter().map(pick).collect())
    }

    /// The weighted mean and variance of every entry of each visible layer, row by row.
    pub(crate) fn statistics(&self) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let layers = &self.inlets.layers;
        let zeros = || layers.iter().map(|i| vec![0.0; i.len]).collect::<Vec<_>>();
        let (mut sums, mut squares, mut totals) = (zeros(), zeros(), zeros());
        let mut values = vec![0.0; self.inlets.n_columns];
        let mut entries = Vec::new();
        for row in 0..self.data.n_rows() {
            self.data.means_into(row, &mut values);
            let w = self.data.weight(row);
            let class = self.data.labels().map(|labels| labels.values()[row]);
            for (l, inlet) in layers.iter().enumerate() {
                entries.clear();
                inlet.entries_into(&values, class, f64::NAN, &mut entries);
                for (j, x) in entries.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
                    sums[l][j] += w * x;
                    squares[l][j] += w * x * x;
                    totals[l][j] += w;
                }
            }
        }
        let totals = totals.into_iter().flatten();
        let all = sums.iter_mut().flatten().zip(squares.iter_mut().flatten()).zip(totals);
        for ((sum, square), total) in all {
            *sum /= total;
            *square = (*square / total - *sum * *sum).max(0.0);
        }
        (sums, squares)
    }
}

impl Batch {
    /// A batch of samples of weight 1, given row by row. The columns of a row fill the visible
    /// layers in their order: one column per entry, or one per unit where categories are given as
    /// whole numbers.
    ///
    /// # Errors
    ///
    /// If the columns do not fit, the values do not fill whole rows, or one is missing or impossible
    /// for its units.
    pub fn from_rows(machine: &Machine, n_columns: usize, values: &[f64]) -> Result<Self, Error> {
        if !values.is_empty() {
            let schema = Schema::of_columns(machine, n_columns, None)?;
            Inlets::new(machine, &schema, n_columns)?.without_labels().check_filled()?;
        }
        Self::from_given_rows(machine, n_columns, values)
    }

    /// The same for rows that may leave layers free, the labels for example.
    pub(crate) fn from_given_rows(
        machine: &Machine,
        n_columns: usize,
        values: &[f64],
    ) -> Result<Self, Error> {
        if values.is_empty() {
            return Err(Error::Empty { what: "the batch".into() });
        }
        let schema = Schema::of_columns(machine, n_columns, None)?;
        let mut inlets = Inlets::new(machine, &schema, n_columns)?.without_labels();
        if !values.len().is_multiple_of(n_columns) {
            let (what, found) = (format!("rows of {n_columns} columns"), values.len());
            return Err(Error::Shape { what, expected: n_columns, found });
        }
        for (row, values) in values.chunks_exact(n_columns).enumerate() {
            inlets.check(row, values, false)?;
        }
        inlets.check_holes()?;
        let mut batch = inlets.batch();
        inlets.start(&mut batch);
        for values in values.chunks_exact(n_columns) {
            inlets.push(&mut batch, values, &[], None);
            batch.end_row(1.0);
        }
        Ok(batch)
    }
}

impl Inlets {
    /// Finds every visible layer in the schema. Labels are not there yet.
    fn new(machine: &Machine, schema: &Schema, n_columns: usize) -> Result<Self, Error> {
        if n_columns > schema.n_columns() {
            let expected = schema.n_columns();
            return Err(Error::ColumnCount { expected, found: n_columns, detail: String::new() });
        }
        let visible = machine.visible_layers().into_iter();
        let layers: Vec<Inlet> = visible
            .map(|id| Inlet::new(id, machine.layer(id), schema, n_columns))
            .collect::<Result<_, _>>()?;
        let filled = layers.iter().filter(|i| !matches!(i.from, Origin::Nothing | Origin::Label));
        let clamp = Clamp::layers(filled.map(|i| i.id));
        Ok(Self { layers, n_columns, clamp })
    }

    /// Lets the labels of the data in.
    fn take_labels(&mut self, data: &Dataset) -> Result<(), Error> {
        for inlet in self.layers.iter_mut().filter(|i| i.from == Origin::Label) {
            let Some(labels) = data.labels() else {
                inlet.from = Origin::Nothing;
                continue;
            };
            if labels.values().iter().any(|&class| class as usize >= inlet.len) {
                return Err(Error::Classes {
                    layer: inlet.name.clone(),
                    expected: inlet.len,
                    found: labels.n_classes(),
                });
            }
            self.clamp.hold_layer(inlet.id);
        }
        Ok(())
    }

    /// There are no labels: their layer stays free.
    fn without_labels(mut self) -> Self {
        let labels = self.layers.iter_mut().filter(|i| i.from == Origin::Label);
        labels.for_each(|i| i.from = Origin::Nothing);
        self
    }

    /// An empty batch.
    fn batch(&self) -> Batch {
        Batch::of_layers(self.layers.iter().map(|i| (i.id, i.len)))
    }

    /// Empties a batch for rows of this data.
    fn start(&self, batch: &mut Batch) {
        batch.restart(&self.clamp);
        for (i, inlet) in self.layers.iter().enumerate() {
            if inlet.from == Origin::Nothing {
                batch.leave_out(i);
            } else if inlet.hole.is_some() {
                batch.clamp_mut().start_mask(inlet.id, inlet.n_units());
            }
        }
    }

    /// Adds the values of a row to every layer.
    fn push(&self, batch: &mut Batch, values: &[f64], words: &[u64], class: Option<u32>) {
        for (i, inlet) in self.layers.iter().enumerate() {
            match &inlet.from {
                Origin::Nothing => {}
                Origin::Bits(columns) => self.push_bits(batch, i, columns, words),
                Origin::Label => batch.bits_of(i).push_row(|k| class == u32::try_from(k).ok()),
                Origin::Entries(_) | Origin::Codes(_) => {
                    let neutral = inlet.units.neutral_mean();
                    inlet.entries_into(values, class, neutral, batch.numbers_of(i));
                }
            }
            if inlet.hole.is_some() {
                let mut cells = inlet.columns().iter().cloned().flatten();
                let mut has = || cells.next().is_some_and(|c| !values[c].is_nan());
                let places = inlet.places();
                let all = |_| (0..places).fold(true, |all, _| has() && all);
                batch.clamp_mut().push_mask_row(inlet.id, all);
            }
        }
    }

    /// Adds a row of packed bits to a layer.
    fn push_bits(&self, batch: &mut Batch, i: usize, columns: &[Range<usize>], words: &[u64]) {
        let bits = batch.bits_of(i);
        if let [all] = columns
            && *all == (0..self.n_columns)
        {
            bits.push_words(words);
            return;
        }
        let mut columns = columns.iter().cloned().flatten();
        bits.push_row(|_| columns.next().is_some_and(|c| words[c / 64] >> (c % 64) & 1 == 1));
    }

    /// Says what the finished batch holds.
    fn finish(&self, batch: &mut Batch) {
        for inlet in self.layers.iter().filter(|i| i.hole.is_some()) {
            batch.clamp_mut().finish_mask(inlet.id);
        }
    }

    /// Whether each value of a row is one its units can take, or a mean of such values; notes those that are
    /// missing.
    fn check(&mut self, row: usize, values: &[f64], means: bool) -> Result<(), Error> {
        self.layers.iter_mut().try_for_each(|inlet| inlet.check(row, values, means))
    }

    /// Whether every layer is filled.
    fn check_filled(&self) -> Result<(), Error> {
        if self.layers.iter().any(|i| i.from == Origin::Nothing) {
            let taking = self.layers.iter().filter(|i| i.from != Origin::Label);
            let takes = taking.map(|i| Takes { name: &i.name, entries: i.len, units: i.n_units() });
            return Err(mismatch(&takes.collect::<Vec<_>>(), self.n_columns));
        }
        Ok(())
    }

    /// Whether no value is missing.
    fn check_holes(&self) -> Result<(), Error> {
        let hole = self.layers.iter().find_map(|i| Some((i, i.hole?)));
        let Some((inlet, (row, column))) = hole else { return Ok(()) };
        let (layer, value) = (inlet.name.clone(), f64::NAN);
        Err(Error::Value { units: "finite", layer, row, column, value })
    }
}

impl Inlet {
    fn new(id: LayerId, layer: &Layer, schema: &Schema, n_columns: usize) -> Result<Self, Error> {
        let (name, units, len) = (layer.name.clone(), layer.units, layer.len());
        let inlet = |from| Self { id, name: name.clone(), units, len, from, hole: None };
        let Some(filling) = schema.layer(&layer.name) else { return Ok(inlet(Origin::Nothing)) };
        let columns = filling.encoding.columns().to_vec();
        let (expected, from) = match filling.encoding {
            Encoding::Entries { .. } => (len, Origin::Entries(columns.clone())),
            Encoding::Codes { .. } => (layer.n_units(), Origin::Codes(columns.clone())),
            Encoding::Label { .. } => (0, Origin::Label),
        };
        let found = columns.iter().map(ExactSizeIterator::len).sum();
        let places = if expected == len { units.group() } else { 1 };
        let torn = columns.iter().any(|c| !c.len().is_multiple_of(places));
        if found != expected || torn || filling.units != units {
            let what = format!("the schema of layer `{name}`");
            return Err(Error::Shape { what, expected, found });
        }
        if columns.iter().all(|c| c.end <= n_columns) {
            return Ok(inlet(from));
        }
        if columns.iter().all(|c| c.start >= n_columns) {
            return Ok(inlet(Origin::Nothing));
        }
        let (expected, detail) = (schema.n_columns(), String::new());
        Err(Error::ColumnCount { expected, found: n_columns, detail })
    }

    fn n_units(&self) -> usize {
        self.len / self.units.group()
    }

    /// Takes its entries as packed bits, if it has them all.
    fn pack(&mut self) {
        if let (Origin::Entries(columns), None) = (&mut self.from, self.hole) {
            self.from = Origin::Bits(std::mem::take(columns));
        }
    }

    /// Takes its entries as numbers.
    fn unpack(&mut self) {
        if let Origin::Bits(columns) = &mut self.from {
            self.from = Origin::Entries(std::mem::take(columns));
        }
    }

    /// The columns of the table that fill it.
    fn columns(&self) -> &[Range<usize>] {
        match &self.from {
            Origin::Bits(columns) | Origin::Entries(columns) | Origin::Codes(columns) => columns,
            Origin::Nothing | Origin::Label => &[],
        }
    }

    /// How many neighbouring columns a unit takes.
    fn places(&self) -> usize {
        if matches!(self.from, Origin::Codes(_)) { 1 } else { self.units.group() }
    }

    /// Calls `f` with the values of each unit and their first column.
    fn each_unit(
        &self,
        values: &[f64],
        mut f: impl FnMut(&[f64], usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let places = self.places();
        // A unit lies in one range: that is checked when the inlet is made.
        let firsts = self.columns().iter().flat_map(|c| c.clone().step_by(places));
        firsts.into_iter().try_for_each(|first| f(&values[first..first + places], first))
    }

    fn check(&mut self, row: usize, values: &[f64], means: bool) -> Result<(), Error> {
        let mut hole = self.hole;
        let means = means && self.units == Units::Binary;
        self.each_unit(values, |unit, first| {
            if let Some(i) = unit.iter().position(|x| x.is_nan()) {
                hole = hole.or(Some((row, first + i)));
                return Ok(());
            }
            let impossible = if means {
                unit.iter().position(|x| !(0.0..=1.0).contains(x))
            } else {
                self.units.impossible(unit)
            };
            let Some(i) = impossible else { return Ok(()) };
            let units = if unit[i].is_finite() { self.units.name() } else { "finite" };
            let (layer, column, value) = (self.name.clone(), first + i, unit[i]);
            Err(Error::Value { units, layer, row, column, value })
        })?;
        self.hole = hole;
        Ok(())
    }

    /// Adds the entries of the layer in a row; those of a missing unit are `missing`.
    fn entries_into(&self, values: &[f64], class: Option<u32>, missing: f64, out: &mut Vec<f64>) {
        match &self.from {
            Origin::Nothing => out.extend(std::iter::repeat_n(missing, self.len)),
            Origin::Label => {
                let on = |i: usize| class.is_some_and(|c| c as usize == i);
                out.extend((0..self.len).map(|i| f64::from(u8::from(on(i)))));
            }
            Origin::Bits(columns) | Origin::Entries(columns) if self.hole.is_none() => {
                columns.iter().for_each(|c| out.extend_from_slice(&values[c.clone()]));
            }
            Origin::Bits(_) | Origin::Entries(_) | Origin::Codes(_) => {
                let group = self.units.group();
                let codes = matches!(self.from, Origin::Codes(_));
                let filled = self.each_unit(values, |unit, _| {
                    if unit.iter().any(|x| x.is_nan()) {
                        out.extend(std::iter::repeat_n(missing, group));
                    } else if codes {
                        out.extend((0..group).map(|i| f64::from(u8::from(i as f64 == unit[0]))));
                    } else {
                        out.extend_from_slice(unit);
                    }
                    Ok(())
                });
                debug_assert!(filled.is_ok(), "nothing is checked here");
            }
        }
    }
}

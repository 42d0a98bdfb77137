//! An array of any number of dimensions, cut into rows.
//!
//! The first dimension counts samples and the others make up a row, the last running fastest;
//! transposed, the last dimension counts samples and the others keep their order, so that a
//! stack of pictures (height, width, n) becomes n rows read as one sees them.

use super::number::{Endian, Kind, Run};
use super::rows::{Facts, RowSink};
use crate::{Error, Image};

/// Which index runs fastest in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The last.
    RowMajor,
    /// The first.
    ColumnMajor,
}

/// Values as they lie in a file.
#[derive(Clone, Debug)]
pub(crate) struct Array<'a> {
    pub(crate) kind: Kind,
    pub(crate) endian: Endian,
    pub(crate) order: Order,
    pub(crate) dims: Vec<u64>,
    /// Exactly as many as the dimensions and the type need.
    pub(crate) bytes: &'a [u8],
}

/// The picture that two dimensions (or three with a single channel) are.
pub(crate) fn image_of(inner: &[u64]) -> Option<Image> {
    match *inner {
        [h, w] | [h, w, 1] => {
            Some(Image { height: usize::try_from(h).ok()?, width: usize::try_from(w).ok()? })
        }
        _ => None,
    }
}

impl Array<'_> {
    /// Feeds the array to `rows`.
    pub(crate) fn push_rows(&self, rows: &mut RowSink) -> Result<Facts, Error> {
        let dims: Vec<usize> =
            self.dims.iter().map(|&d| usize::try_from(d).unwrap_or(usize::MAX)).collect();
        let strides = strides(&dims, self.order);
        let transpose = rows.take_transpose();
        let samples = match (dims.len(), transpose) {
            (0, _) => None,
            (n, true) => Some(n - 1),
            (_, false) => Some(0),
        };
        let inner: Vec<usize> = (0..dims.len()).filter(|i| Some(*i) != samples).collect();
        let n_rows = samples.map_or(1, |s| dims[s]);
        let n_columns = inner.iter().fold(1_usize, |n, &i| n.saturating_mul(dims[i]));
        if n_rows == 0 || n_columns == 0 {
            return Err(Error::Empty { n_rows, n_columns });
        }
        let step = samples.map_or(0, |s| strides[s]);
        let sizes: Vec<usize> = inner.iter().map(|&i| dims[i]).collect();
        let steps: Vec<usize> = inner.iter().map(|&i| strides[i]).collect();
        let places = Places::new(&sizes, &steps);
        let mut bytes = Vec::new();
        for row in 0..n_rows {
            bytes.clear();
            self.gather(row * step, &places, &mut bytes);
            rows.push_run(&Run { kind: self.kind, endian: self.endian, bytes: &bytes })?;
        }
        let shape: Vec<u64> = inner.iter().map(|&i| self.dims[i]).collect();
        Ok(Facts { image: image_of(&shape), ..Facts::default() })
    }

    /// The stored numbers of a row, one after the other.
    fn gather(&self, start: usize, places: &Places, out: &mut Vec<u8>) {
        let size = self.kind.size();
        for from in &places.starts {
            for i in 0..places.n {
                let place = start + from + i * places.step;
                out.extend_from_slice(&self.bytes[place * size..(place + 1) * size]);
            }
        }
    }

    /// The value at a place in memory.
    pub(crate) fn at(&self, place: usize) -> f32 {
        let size = self.kind.size();
        self.kind.decode(&self.bytes[place * size..(place + 1) * size], self.endian)
    }
}

fn strides(dims: &[usize], order: Order) -> Vec<usize> {
    let mut strides = vec![1_usize; dims.len()];
    match order {
        Order::RowMajor => {
            for i in (1..dims.len()).rev() {
                strides[i - 1] = strides[i].saturating_mul(dims[i]);
            }
        }
        Order::ColumnMajor => {
            for i in 1..dims.len() {
                strides[i] = strides[i - 1].saturating_mul(dims[i - 1]);
            }
        }
    }
    strides
}

/// Where the values of a row lie, the last dimension running fastest: from each start, `n` values
/// that lie `step` apart. The longest run is never listed value by value, so that a row of an array
/// costs little more than its values.
struct Places {
    starts: Vec<usize>,
    n: usize,
    step: usize,
}

impl Places {
    fn new(sizes: &[usize], steps: &[usize]) -> Self {
        let mut dims: Vec<(usize, usize)> =
            sizes.iter().copied().zip(steps.iter().copied()).filter(|d| d.0 != 1).collect();
        let (n, step) = dims.pop().unwrap_or((1, 0));
        let mut starts = vec![0];
        for (size, step) in dims {
            starts = starts.iter().flat_map(|p| (0..size).map(move |i| p + i * step)).collect();
        }
        Self { starts, n, step }
    }
}

//! An order of samples that depends on nothing but themselves.

use crate::{BlockValues, Dataset, Error, Table};

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
/// Most samples that whole weights may stand for.
const MOST_ROWS: f64 = 1e8;

impl Dataset {
    /// The same samples in the order of what they hold, so that it does not matter in which order they came. A
    /// sample whose weight is a whole number stands there as often; where one is not, all keep their weights.
    /// Samples without weight are left out.
    ///
    /// ```
    /// use harmonium_data::Dataset;
    /// let rows = ndarray::arr2(&[[1_u8, 0], [0, 1], [1, 1]]);
    /// let weighted = Dataset::from_array(rows.view())?.with_weights(vec![2.0, 0.0, 1.0])?;
    /// let repeated = Dataset::from_array(ndarray::arr2(&[[1_u8, 1], [1, 0], [1, 0]]).view())?;
    /// assert_eq!(weighted.in_canonical_order()?.table(), repeated.in_canonical_order()?.table());
    /// # Ok::<(), harmonium_data::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If memory ends.
    pub fn in_canonical_order(&self) -> Result<Self, Error> {
        let mut keys: Vec<(u64, usize)> = (0..self.n_rows())
            .filter(|&row| self.weight(row) > 0.0)
            .map(|row| (self.key(row), row))
            .collect();
        keys.sort_unstable();
        let total: f64 = keys.iter().map(|&(_, row)| self.weight(row)).sum();
        let whole = keys.iter().all(|&(_, row)| self.weight(row).fract() == 0.0);
        let rows = keys.iter().map(|&(_, row)| row);
        if !whole || total > MOST_ROWS {
            return self.select_rows(&rows.collect::<Vec<_>>());
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, few")]
        let times = |row: usize| self.weight(row) as usize;
        let rows: Vec<usize> = rows.flat_map(|row| std::iter::repeat_n(row, times(row))).collect();
        Ok(self.select_rows(&rows)?.without_weights())
    }

    /// A number that equal samples share, and different ones but for an accident of $2^{-64}$.
    fn key(&self, row: usize) -> u64 {
        let table: &Table = self.table();
        let mut key = Key(0x6861_726D_6F6E_6975);
        for block in table.blocks() {
            let n = block.columns().len();
            match block.values() {
                BlockValues::Bits(bits) => bits.row(row).iter().for_each(|&word| key.add(word)),
                BlockValues::Bytes(bytes) => {
                    let (words, rest) = bytes[row * n..(row + 1) * n].as_chunks();
                    words.iter().for_each(|word| key.add(u64::from_le_bytes(*word)));
                    rest.iter().for_each(|&byte| key.add(u64::from(byte)));
                }
                BlockValues::Real(reals) => {
                    let row = &reals[row * n..(row + 1) * n];
                    // Both zeros are one value.
                    row.iter().for_each(|x| key.add(u64::from((x + 0.0).to_bits())));
                }
            }
        }
        if let Some(missing) = table.missing() {
            missing.row(row).iter().for_each(|&word| key.add(word));
        }
        if let Some(labels) = self.labels() {
            key.add(u64::from(labels.values()[row]));
        }
        key.finish()
    }
}

/// A hash of words.
struct Key(u64);

impl Key {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(MULTIPLIER);
    }

    fn finish(self) -> u64 {
        let h = (self.0 ^ (self.0 >> 32)).wrapping_mul(MULTIPLIER);
        h ^ (h >> 29)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Dataset, Labels};
    use ndarray::Array2;

    /// Rows of `n` kinds, in an order of their own.
    fn rows(n: usize, step: usize) -> Array2<f32> {
        Array2::from_shape_fn((n, 70), |(r, c)| {
            let kind = r * step % n;
            if c == 3 && kind == 2 { f32::NAN } else { ((kind * 31 + c * 7) % 11) as f32 / 4.0 }
        })
    }

    #[test]
    fn the_order_in_which_rows_came_does_not_matter() {
        let order = |step: usize| {
            let data = Dataset::from_array(rows(13, step).view()).unwrap();
            let labels = (0..13).map(|r: usize| u32::try_from(r * step % 13 % 3).unwrap());
            let data = data.with_labels(Labels::from_values(labels.collect())).unwrap();
            let data = data.in_canonical_order().unwrap();
            (data.table().clone(), data.labels().cloned())
        };
        assert_eq!(order(1), order(5));
        assert_eq!(order(1), order(8));
    }

    #[test]
    fn whole_weights_are_repetitions_and_others_stay() {
        let data = Dataset::from_array(rows(5, 1).view()).unwrap();
        let weighted = data.clone().with_weights(vec![1.0, 0.0, 3.0, 1.0, 0.0]).unwrap();
        let repeated = data.select_rows(&[2, 0, 2, 3, 2]).unwrap();
        let (a, b) =
            (weighted.in_canonical_order().unwrap(), repeated.in_canonical_order().unwrap());
        assert_eq!((a.table(), a.weight(0)), (b.table(), 1.0));
        let parts = data.with_weights(vec![0.5, 0.0, 0.5, 1.0, 2.0]).unwrap();
        let parts = parts.in_canonical_order().unwrap();
        let total: f64 = (0..4).map(|row| parts.weight(row)).sum();
        assert_eq!((parts.n_rows(), total), (4, 4.0));
    }
}

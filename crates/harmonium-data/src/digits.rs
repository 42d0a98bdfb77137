//! The embedded default: 1,797 handwritten digits of 8×8 pixels with 17 grey levels.
//!
//! The test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI
//! Machine Learning Repository, 1998), licensed CC BY 4.0.

use crate::{Error, Image, Table};
use flate2::read::MultiGzDecoder;

/// Where the data comes from, for people.
pub const CREDIT: &str = "Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, \
                          UCI Machine Learning Repository (CC BY 4.0)";

const GZ: &[u8] = include_bytes!("../embedded/digits.csv.gz");
const PIXELS: usize = 64;

/// The digits and their labels.
///
/// # Errors
///
/// If the embedded file cannot be read, which a test rules out.
pub fn digits() -> Result<(Table, Vec<u8>), Error> {
    let damaged = |reason: String| Error::Damaged { format: "digits", reason };
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).from_reader(MultiGzDecoder::new(GZ));
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let record = record.map_err(|e| damaged(e.to_string()))?;
        let row: Vec<u8> = record
            .iter()
            .map(|cell| cell.trim().parse::<f32>().map(|x| x as u8))
            .collect::<Result<_, _>>()
            .map_err(|e| damaged(e.to_string()))?;
        if row.len() != PIXELS + 1 {
            return Err(damaged(format!("a row of {} cells instead of {}", row.len(), PIXELS + 1)));
        }
        pixels.extend_from_slice(&row[..PIXELS]);
        labels.push(row[PIXELS]);
    }
    let table = Table::from_bytes(pixels, PIXELS, 16)?.with_image(Image { height: 8, width: 8 });
    Ok((table, labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_digits_are_whole() {
        let (table, labels) = digits().unwrap();
        assert_eq!((table.n_rows(), table.n_columns(), labels.len()), (1797, 64, 1797));
        let range = (0..1797).flat_map(|r| (0..64).map(move |c| (r, c)));
        assert!(range.clone().all(|(r, c)| table.at(r, c) <= 16.0));
        assert!(range.into_iter().any(|(r, c)| table.at(r, c) == 16.0));
        assert_eq!(labels.iter().filter(|&&l| l == 0).count(), 178);
    }
}

//! The embedded default: 1,797 handwritten digits of 8×8 pixels with 17 grey levels.
//!
//! The test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI
//! Machine Learning Repository, 1998), licensed CC BY 4.0.

use crate::{Error, Format, Image, Labels, Options, Table, decode};

/// Where the data comes from, for people.
pub const CREDIT: &str = "Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, \
                          UCI Machine Learning Repository (CC BY 4.0)";

const GZ: &[u8] = include_bytes!("../embedded/digits.csv.gz");

/// The digits and their labels.
///
/// # Errors
///
/// If the embedded file cannot be read, which a test rules out.
pub fn digits() -> Result<(Table, Vec<u8>), Error> {
    let options = Options { label_column: Some((-1).into()), ..Options::default() };
    let loaded = decode(GZ, Some(Format::Text), &options)?;
    let labels = loaded.labels.iter().flat_map(Labels::values);
    let labels = labels.map(|&l| u8::try_from(l).unwrap_or(u8::MAX)).collect();
    Ok((loaded.table.with_image(Image { height: 8, width: 8 }), labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_digits_are_whole() {
        let (table, labels) = digits().unwrap();
        assert_eq!((table.n_rows(), table.n_columns(), labels.len()), (1797, 64, 1797));
        assert_eq!(table.full_scale().to_bits(), 16.0_f32.to_bits());
        let range = (0..1797).flat_map(|r| (0..64).map(move |c| (r, c)));
        assert!(range.clone().all(|(r, c)| table.at(r, c) <= 16.0));
        assert!(range.into_iter().any(|(r, c)| table.at(r, c) > 15.5));
        assert_eq!(labels.iter().map(|&l| u32::from(l == 0)).sum::<u32>(), 178);
    }
}

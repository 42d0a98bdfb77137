//! The first two bytes choose the options, the rest is the file.

use harmonium_data::{Format, ImageLayout, Options, decode};

/// Reads `data` and looks at every value of what comes out.
pub fn read(format: Format, data: &[u8]) {
    let [flags, number, file @ ..] = data else { return };
    let on = |bit: u8| flags >> bit & 1 == 1;
    let small = usize::from(number & 15);
    let options = Options {
        transpose: on(0),
        invert: on(1),
        label_column: on(2).then_some((small as isize - 8).into()),
        columns: on(3).then_some(small..small + usize::from(number >> 4)),
        packed_bits: on(4).then_some(usize::from(*number)),
        image: on(5).then_some(ImageLayout {
            height: small,
            width: usize::from(number >> 4),
            column_major: on(6),
        }),
        ..Options::default()
    };
    match decode(file, Some(format), &options) {
        Ok(loaded) => {
            let summary = harmonium_data::Summary::of(&loaded.table);
            assert_eq!(summary.n_rows, loaded.table.n_rows());
            assert!(loaded.labels.is_none_or(|l| l.len() == summary.n_rows));
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
    }
}

//! Tables of names, words, numbers and holes on any bytes: rows of numbers for a machine, or an error, never a panic, never a huge
//! allocation.

#![no_main]

use harmonium_data::frame::{Codebook, Kinds, Unknown, read_frame};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let found = read_frame(data).and_then(|frame| {
        let book = Codebook::fit(&frame, &Kinds::new())?;
        let encoded = book.encode(&frame, Unknown::Refuse)?;
        assert_eq!(encoded.dataset.n_rows(), frame.n_rows());
        Ok(())
    });
    if let Err(error) = found {
        assert!(!error.to_string().is_empty() && !error.hint().is_empty());
    }
});

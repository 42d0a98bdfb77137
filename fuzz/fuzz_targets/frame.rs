//! Tables of names, words, numbers and holes on any bytes: a table whose cells come back, or an error, never a panic, never a huge
//! allocation.

#![no_main]

use harmonium_data::frame::{Codebook, Kinds, Unknown, read_frame};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let frame = match read_frame(data) {
        Ok(frame) => frame,
        Err(error) => return assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
    };
    match Codebook::fit(&frame, &Kinds::new()) {
        Ok(book) => {
            let found = book.encode(&frame, Unknown::Refuse).expect("the table it was fitted to");
            assert_eq!(found.dataset.n_rows(), frame.n_rows());
            book.decode(found.dataset.table().to_array().mapv(f64::from).view()).expect("its own numbers");
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
    }
});

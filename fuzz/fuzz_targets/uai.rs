//! UAI files of any text: a machine or an error, never a panic, never a huge allocation.

#![no_main]

use harmonium::run::{read_uai, write_uai};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match read_uai(text) {
        Ok(model) => {
            // Factors that were multiplied may be too large to be written as one.
            let Ok(text) = write_uai(&model.machine) else { return };
            let n = model.machine.layers().iter().map(|l| l.len()).sum::<usize>();
            let again = read_uai(&text).map(|m| m.variables.concat().len());
            assert_eq!(again, Ok(n));
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
    }
});

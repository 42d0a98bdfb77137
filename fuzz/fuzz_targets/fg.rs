//! Factor graphs of any text: a machine or an error, never a panic, never a huge allocation.

#![no_main]

use harmonium::run::read_fg;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match read_fg(text) {
        Ok(model) => {
            let n = model.machine.layers().iter().map(|l| l.len()).sum::<usize>();
            assert_eq!(model.variables.concat().len(), n);
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
    }
});

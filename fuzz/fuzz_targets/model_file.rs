//! Model files and checkpoints of any bytes: a model or an error, never a panic, never a huge
//! allocation; and what was read is written and read alike.

#![no_main]

use harmonium::run::{Model, SavedCheckpoint};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    match Model::from_bytes(data) {
        Ok(model) => {
            // A header just below the limit may grow beyond it when it is written anew.
            let Ok(bytes) = model.to_bytes() else { return };
            assert_eq!(Model::from_bytes(&bytes).as_ref(), Ok(&model));
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
    }
    if let Ok(saved) = SavedCheckpoint::from_bytes(data) {
        let bytes = saved.to_bytes().unwrap_or_default();
        let again = SavedCheckpoint::from_bytes(&bytes).and_then(|again| again.to_bytes());
        assert!(bytes.is_empty() || again == Ok(bytes));
    }
});

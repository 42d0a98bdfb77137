//! Files of evidence of any text: variables with one state each, or an error; never a panic.

#![no_main]

use harmonium::models::Rbm;
use harmonium::run::{Model, read_evidence};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match read_evidence(text) {
        Ok(evidence) => {
            assert!(evidence.windows(2).all(|w| w[0].0 < w[1].0));
            let Ok(rbm) = Rbm::binary(4, 3) else { return };
            let model = Model::from(rbm);
            let fits = evidence.iter().all(|(variable, state)| *variable < 7 && *state < 2);
            assert_eq!(model.with_evidence(&evidence).is_ok(), fits);
        }
        Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
    }
});

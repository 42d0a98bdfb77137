//! The JPEG reader on any bytes: a table or an error, never a panic, never a huge allocation.

#![no_main]

use harmonium_data::Format;
use libfuzzer_sys::fuzz_target;

mod any_options;

fuzz_target!(|data: &[u8]| any_options::read(Format::Jpeg, data));

//! Fuzzes the reader `router`: see docs/fuzzing.md.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| fathom::readers::router(bytes));

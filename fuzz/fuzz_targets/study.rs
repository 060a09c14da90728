//! Any text as a study file.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| wearmark_fuzz::study::check_file(data));

//! Any bytes as a file that a run left.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| wearmark_fuzz::study::check_kept(data));

//! Any bytes as `biosnoop`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use formats::Format;

fuzz_target!(|data: &[u8]| wearmark_fuzz::check(Format::Biosnoop, data));

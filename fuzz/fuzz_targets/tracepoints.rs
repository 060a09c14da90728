//! Any bytes as `tracepoints`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use formats::Format;

fuzz_target!(|data: &[u8]| wearmark_fuzz::check(Format::Tracepoints, data));

//! Any bytes as `vscsi-stats`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use formats::Format;

fuzz_target!(|data: &[u8]| wearmark_fuzz::check(Format::VscsiStats, data));

//! Any text as a device profile.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| wearmark_fuzz::profile::check(data));

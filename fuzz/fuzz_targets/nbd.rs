//! What a client of NBD says, to an emulated block device.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| wearmark_fuzz::emulate::nbd::check(data));

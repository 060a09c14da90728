//! Requests of the kernel, to a directory on an emulated device.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| _ = wearmark_fuzz::emulate::fuse::check(data));

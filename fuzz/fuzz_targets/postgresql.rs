//! What a PostgreSQL server says, to our client.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| _ = wearmark_fuzz::dbms::postgresql::check(data));

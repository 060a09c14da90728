//! Requests to emulated devices: what the kernel sends through FUSE, what clients of NBD say.
//!
//! Whatever comes, each request has its reply, what it costs lies on the device, and the power can
//! be cut after it.

pub mod fuse;
pub mod nbd;

use emulate::Fate;

/// What a power cut leaves, by the first byte of an input.
fn fate(choice: u8) -> Fate {
    if choice & 1 == 0 { Fate::All } else { Fate::Some { seed: choice.into() } }
}

//! Devices served on real mounts.

mod directory;
mod nbd;
mod support;

//! A directory served through FUSE: the kernel's protocol (`wire.rs`), the files behind it
//! (`tree.rs`, `place.rs`, `data.rs`), where they lie on the device (`layout.rs`), and what a power
//! cut takes back (`images.rs`, `names.rs`, `power_cut.rs`).

mod data;
pub(crate) mod images;
pub(crate) mod layout;
pub mod lossy;
pub(crate) mod mount;
mod names;
pub(crate) mod place;
pub(crate) mod port;
pub(crate) mod power_cut;
mod tree;
mod unwritten;
pub(crate) mod wire;

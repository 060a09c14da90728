//! Log-structured file systems: everything is appended, and a cleaner makes room.

pub mod segments;
mod victims;

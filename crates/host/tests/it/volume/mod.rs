//! Volumes from outside.

mod content;
mod places;

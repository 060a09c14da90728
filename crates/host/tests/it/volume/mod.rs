//! Volumes from outside.

mod places;

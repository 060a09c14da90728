//! Volumes from outside.

mod closed_forms;
mod content;
mod load;
mod places;
mod table;

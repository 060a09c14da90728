//! Volumes from outside.

mod balance;
mod cache;
mod closed_forms;
mod content;
mod controller;
mod load;
mod overload;
mod paths;
mod places;
mod table;
mod upkeep;

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
mod slides;
mod table;
mod upkeep;

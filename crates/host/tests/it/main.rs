//! The host stack from outside.

mod fsync_cost;
mod page_cache;
mod replacement;
mod scheduler;
mod volume;

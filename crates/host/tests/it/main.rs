//! The host stack from outside.

mod copy_on_write;
mod fsync_cost;
mod log_structured;
mod page_cache;
mod replacement;
mod scheduler;
mod volume;

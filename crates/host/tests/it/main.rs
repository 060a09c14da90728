//! The host stack from outside.

mod fsync_cost;
mod log_structured;
mod page_cache;
mod replacement;

//! The VFS against the stock one, a kill in the middle, several processes, and what is captured.

mod block;
mod captured;
mod correctness;
mod postgresql;
mod server;
mod support;

//! The VFS against the stock one, a kill in the middle, several processes, and what is captured.

mod block;
mod captured;
mod correctness;
mod mariadb;
mod postgresql;
mod server;
mod server_cost;
mod support;

//! The VFS against the stock one, the capture's figures, a kill in the middle.

mod block;
mod sqlite;

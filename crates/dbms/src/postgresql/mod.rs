//! PostgreSQL's wire protocol 3.0 (PostgreSQL 15 manual, chapter 55), blocking, for a load
//! generator.
//!
//! A [`Connection`] belongs to one thread. What it is made for: prepared statements with parameters
//! and results in binary, several of them sent in one write with one Sync and answered in one read
//! ([`Connection::bind`], [`Connection::sync`], [`Connection::step`]). Once warm it allocates
//! nothing: there is one buffer for what goes out and one for what comes in, and rows are views of
//! the second. The simple protocol ([`Connection::query`]) is for administration, and
//! [`Connection::copy_in`] for loading.
//!
//! Invariants: after an error from the server the connection has read up to the end of the pipeline
//! and can be used again; after any other error it cannot. Tested by properties of the codec on cut
//! and changed messages, and against a server.

pub mod binary;
mod connection;
mod copy;
mod inbox;
mod login;
mod statement;

pub use connection::{Canceller, Connection, Status, Step};
pub use copy::CopyIn;
pub use inbox::Row;
pub use statement::{Bind, Statement};

//! The client side of the MariaDB protocol (client/server protocol 10, as MariaDB's knowledge base
//! describes it), over a unix socket or TCP.
//!
//! [`Connection`] is blocking and belongs to one thread. Commands are written into one buffer and
//! sent together; answers are read, in order, from another one; rows are views of it. Once the
//! buffers have grown to what the statements need, nothing is allocated per statement.
//!
//! **Sending several commands before reading.** The server reads one command after the other from
//! its socket and answers in order, so commands may be queued: `queue`, `queue`, `flush`,
//! `receive`, `receive`. A command that fails does not stop those behind it; who queues writes must
//! therefore work without autocommit, must not queue the COMMIT with them, and rolls back after a
//! failure. The queue is for a transaction's few hundred bytes: what does not fit into the socket's
//! buffers in both directions would make both sides wait for each other.
//!
//! Supported: TLS; the plugins mysql_native_password, caching_sha2_password, ed25519 (MariaDB's),
//! mysql_clear_password where nobody can read along, unix_socket; text queries of one or several
//! statements; prepared statements with binary parameters and rows; bulk execution
//! (`COM_STMT_BULK_EXECUTE`); `LOAD DATA LOCAL INFILE`; cached column definitions. Not
//! supported: compression, other login plugins.
//!
//! Invariants: whatever the peer sends ends in an answer or an error, never in a panic; nothing is
//! read beyond a packet's end; no packet longer than [`PACKET_MAX`] is taken. Tests: properties of
//! the codec with cut and changed answers (`codec_tests.rs`), a real server (`tests/it/mariadb`).

mod answer;
#[cfg(test)]
mod codec_tests;
mod connection;
mod fields;
mod frame;
mod load;
mod login;
mod row;
mod statement;

pub use answer::Done;
pub use connection::Connection;
pub use frame::PACKET_MAX;
pub use load::Source;
pub use row::{Cell, Row};
pub use statement::{Parameters, Statement, Type};

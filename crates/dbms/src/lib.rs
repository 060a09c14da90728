//! Private database servers, and the protocols that talk to them.
//!
//! `dbms` knows servers and nothing of workloads: it creates an instance of PostgreSQL or MariaDB
//! in directories of its own, runs it as an ordinary user, watches it, and removes it; and it
//! speaks each server's own protocol over a unix socket or TCP.

#![forbid(unsafe_op_in_unsafe_fn)]

mod error;
pub mod instance;
mod login;
pub mod lossy;
pub mod mariadb;
mod net;
pub mod postgresql;
mod secrets;
pub mod statistics;
mod system;
mod url;

pub use error::Error;
pub use instance::{Durability, Files, Instance, Places, Programs, ServerCpu, Settings};
pub use login::{Address, Login};
pub use net::{Limits, Stop, Tls, TlsMode, Wire};
pub use secrets::Environment;
pub use system::System;

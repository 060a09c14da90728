//! Real servers, started by the tests themselves in directories below the workspace's target.

mod errors;
mod instance;
mod lossy;
mod mariadb;
mod statistics;
mod support;

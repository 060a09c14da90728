//! Real servers, started by the tests themselves in directories below the workspace's target.

mod authority;
mod errors;
mod fuzz_seeds;
mod instance;
mod logins;
mod lossy;
mod mariadb;
mod statistics;
mod support;

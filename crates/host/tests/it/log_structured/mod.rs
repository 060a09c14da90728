//! Log-structured stores and file systems, against closed forms, tables and counts.

mod amplification;
mod f2fs;
mod log_on_log;
mod nilfs2;
mod oracle;
pub mod support;

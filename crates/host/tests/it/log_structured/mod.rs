//! Log-structured stores and file systems, against closed forms, tables and counts.

mod amplification;
mod f2fs;
mod nilfs2;
mod oracle;
pub mod support;

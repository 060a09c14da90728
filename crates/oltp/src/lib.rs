//! oltp

//! An engine that spills: external merge sort and Grace hash join through a temporary file.
//!
//! A DBMS fixes the size in which it reads and writes its temporary files (PostgreSQL: 8 KiB), so
//! the effect of the cluster size on a device cannot be measured on one. Here the memory, the
//! cluster size and the number of requests in flight are what the user says.

#![forbid(unsafe_op_in_unsafe_fn)]

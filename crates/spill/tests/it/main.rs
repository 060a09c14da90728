//! Sorts and joins whole: on real files, on failing devices, on device models.

mod cluster_size;
mod faults;
mod files;
mod support;
mod virtual_time;

//! Behaviour of the models: properties, oracles and closed forms.

mod closed_forms;
mod flash;
mod hdd;
mod hdd_queue;
mod measured_drives;
mod properties;
mod snapshots;
mod support;
mod write_cache_oracle;

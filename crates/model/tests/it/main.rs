//! Behaviour of the models: properties, oracles and closed forms.

mod closed_forms;
mod flash;
mod hdd;
mod hdd_queue;
mod kinds;
mod measured_drives;
mod observed;
mod profiles;
mod properties;
mod queued_cache;
mod read_cache;
mod snapshots;
mod support;
mod write_cache_oracle;

//! The flash model: golden latencies, arithmetic ceilings, the slow oracle, closed forms.

mod amplification;
mod block_layers;
mod disksim_ssd;
mod events;
mod golden;
mod observed;
mod oracle;
mod papers;
mod planes;
mod slc_cache;
mod slow_ftl;
mod soak;
mod steady;
mod streams;
mod support;
mod zones;

//! The flash model: golden latencies, arithmetic ceilings, the slow oracle, closed forms.

mod block_layers;
mod events;
mod golden;
mod support;

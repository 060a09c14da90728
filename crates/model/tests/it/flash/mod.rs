//! The flash model: golden latencies, arithmetic ceilings, the slow oracle, closed forms.

mod golden;
mod support;

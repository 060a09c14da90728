//! Advice over results, captures and profiles: reads what is there, hands figures to the crate
//! `advise`, and writes its answers as tables.
//!
//! - [`offers`]: what to buy, from the result of a study, a captured run or stated figures.
//! - [`placing`]: where data and log go, every placement simulated.
//! - [`doubt`]: how far a prediction may be off.
//! - [`life`]: how long a device lasts at a load, when its credits run out, when it is full.
//! - [`prices`]: whose price counts.
//! - [`text`]: answers as rows.

pub mod doubt;
pub mod life;
pub mod offers;
pub mod placing;
pub mod prices;
pub mod text;

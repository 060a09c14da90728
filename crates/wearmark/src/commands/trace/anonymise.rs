//! `wearmark trace anonymise`

use std::hash::{BuildHasher, RandomState};

use trace::surgery;

use super::{convert, input};
use crate::cli::Anonymise;
use crate::commands::Context;

/// Writes a trace that does not say whose it is.
pub fn run(arguments: &Anonymise, context: &Context) -> anyhow::Result<()> {
    let trace = input::read(&arguments.input, context)?.trace;
    // The standard library's hasher is keyed by the operating system's randomness.
    let seed = arguments.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    convert::write(&surgery::anonymise(trace, seed)?, &arguments.output, None)
}

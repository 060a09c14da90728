//! The stages of the pipeline, one file each: call the crate that does the work, save what it
//! returns under the stage's artifact.

pub mod fit;
pub mod oltp;
pub mod places;
pub mod probe;
pub mod replay;
pub mod scenarios;
pub mod validate;

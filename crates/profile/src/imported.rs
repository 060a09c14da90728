//! What comes of taking over the files of a simulator.

use crate::Profile;

/// A profile and what was left out of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The profile.
    pub profile: Profile,
    /// Parameters that are switched on in the files and that the model does not have.
    pub ignored: Vec<String>,
}

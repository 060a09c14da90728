//! Profiles by name: shipped ones and files.

use std::path::Path;

use profile::Profile;

use crate::Error;

/// Reads a profile: a shipped one by name, or a TOML file.
pub fn read_profile(name: &str) -> Result<Profile, Error> {
    Profile::from_toml(&read_text(name)?, name).map_err(Error::Model)
}

/// The text of a profile: a shipped one by name, or a TOML file.
pub fn read_text(name: &str) -> Result<String, Error> {
    let path = Path::new(name);
    match profile::find_shipped(name) {
        Some(text) => Ok(text.to_owned()),
        None => std::fs::read_to_string(path).map_err(|source| {
            if source.kind() == std::io::ErrorKind::NotFound {
                return Error::NoProfile { name: name.to_owned() };
            }
            Error::Io { path: path.into(), action: "read", source }
        }),
    }
}

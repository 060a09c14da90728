//! Profiles by name: shipped ones and files.

use std::path::Path;

use profile::Profile;
use units::Bytes;

use crate::Error;

/// Reads a profile: a shipped one by name, or a TOML file.
pub fn read_profile(name: &str) -> Result<Profile, Error> {
    Profile::from_toml(&read_text(name)?, name).map_err(Error::Model)
}

/// Reads a profile whose device is to be modelled here.
///
/// # Errors
/// As [`read_profile`], and where the model takes more memory than is free.
pub fn read_device(name: &str) -> Result<Profile, Error> {
    let profile = read_profile(name)?;
    fits_memory(&profile, profile.memory())?;
    Ok(profile)
}

/// Refuses models that take more memory than is free; `profile` is the largest of them.
pub(crate) fn fits_memory(profile: &Profile, needed: Bytes) -> Result<(), Error> {
    match free_memory() {
        Some(free) if needed > free => {
            Err(Error::NoMemory { profile: profile.name().to_owned(), needed, free })
        }
        _ => Ok(()),
    }
}

/// Memory that a process can have without swapping, where the kernel tells.
pub(crate) fn free_memory() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kib * 1024))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_larger_than_memory_is_refused_before_it_is_made() {
        let profile = read_device("generic-slc-8g").expect("17 MB are free");
        // 16 dies of two planes, 8 bytes a page, 20 a block.
        assert_eq!(profile.memory(), Bytes(8 * 2_097_152 + 20 * 8_192));
        let error = fits_memory(&profile, Bytes(u64::MAX)).expect_err("nobody has so much");
        assert!(error.to_string().contains("of memory, and"), "{error}");
    }
}

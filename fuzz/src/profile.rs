//! A device profile that may hold anything.

use profile::{Profile, diff};

/// Reads the text as a profile. One that is read says the same when it is written and read again.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Profile::from_toml(text, "fuzz") {
        Ok(profile) => {
            let written = profile.to_toml();
            let again = Profile::from_toml(&written, "again");
            assert_eq!(again.as_ref(), Ok(&profile), "{written}");
            assert!(diff(&profile, &profile).is_empty(), "{written}");
            let _ = profile.capacity();
            assert_eq!(profile.without_cache().check(), Ok(()));
        }
        Err(error) => {
            let hint = events::Hint::hint(&error).unwrap_or_default();
            for text in [error.to_string(), hint] {
                assert!(!text.contains(char::is_control), "one line: {text:?}");
            }
            assert!(error.to_string().starts_with("fuzz:"), "an error names its file: {error}");
        }
    }
}

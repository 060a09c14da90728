//! How errors look: one `error:` line with place and cause, then `hint:` with the next step.

use events::Hint;

/// The hint of the innermost error that has one.
fn hint(error: &anyhow::Error) -> Option<String> {
    macro_rules! first_of {
        ($($kind:ty),*) => {
            error.chain().find_map(|cause| {
                $(if let Some(found) = cause.downcast_ref::<$kind>() {
                    return found.hint();
                })*
                None
            })
        };
    }
    first_of!(
        serve::Error,
        study::Error,
        predict::Error,
        advise::Error,
        papers::Error,
        spill::Error,
        fit::FitError,
        probe::Error,
        io::Error,
        oltp::Error,
        dbms::Error,
        emulate::Error,
        capture::Error,
        profile::Error,
        profile::disksim::ImportError,
        profile::mqsim::ImportError,
        formats::Error,
        trace::generate::Invalid,
        trace::surgery::Error,
        Advice
    )
}

/// An error made on the spot by a command, with its hint.
#[derive(Debug)]
pub struct Advice {
    /// Place and cause.
    pub cause: String,
    /// The next step.
    pub hint: String,
}

impl Advice {
    /// As an error to return.
    pub fn error(cause: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        Self { cause: cause.into(), hint: hint.into() }.into()
    }
}

impl std::fmt::Display for Advice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for Advice {}

impl Hint for Advice {
    fn hint(&self) -> Option<String> {
        Some(self.hint.clone())
    }
}

/// The text for standard error: causes joined into one line, then the hint.
pub fn render(error: &anyhow::Error) -> String {
    format!("error: {}\nhint: {}", line(error), next_step(error))
}

/// Place and causes in one line.
pub fn line(error: &anyhow::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        // Many errors already quote their source; saying it twice helps nobody.
        if !causes.iter().any(|earlier| earlier.contains(&cause)) {
            causes.push(cause);
        }
    }
    events::one_line(&causes.join(": "))
}

/// What the user can do about it.
pub fn next_step(error: &anyhow::Error) -> String {
    hint(error).unwrap_or_else(|| general_hint(error))
}

/// Whether the user stopped a reading, which nothing is the result of.
pub fn is_interruption(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(cause.downcast_ref::<formats::Error>(), Some(formats::Error::Interrupted { .. }))
    })
}

/// What to do about an error whose crate has nothing better to say.
fn general_hint(error: &anyhow::Error) -> String {
    use std::io::ErrorKind;
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    match io.map(std::io::Error::kind) {
        Some(ErrorKind::IsADirectory) => "name a file, not a directory",
        Some(ErrorKind::NotFound) => "check the path",
        Some(ErrorKind::PermissionDenied) => "check the permissions of the path",
        Some(ErrorKind::StorageFull) => "free some space, or choose another place",
        _ => "'wearmark help' and a command's name explain what it takes",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_and_a_hint() {
        let error = Advice::error("x.toml:3: no such profile 'a'", "see 'wearmark profile list'");
        assert_eq!(
            render(&error.context("cannot simulate")),
            "error: cannot simulate: x.toml:3: no such profile 'a'\nhint: see 'wearmark profile \
             list'"
        );
    }

    #[test]
    fn a_cause_already_quoted_is_not_repeated() {
        let source = std::io::Error::other("disk on fire");
        let error = anyhow::Error::new(source).context("a: cannot read: disk on fire");
        assert_eq!(render(&error).lines().next(), Some("error: a: cannot read: disk on fire"));
    }
}

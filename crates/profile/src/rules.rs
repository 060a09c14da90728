//! Rules that parameters of every kind of device keep: what a time, a share or a count may be.

use crate::Parameter;

/// The first field that is impossible, as a TOML path, and why.
pub(crate) type Flaw = (String, String);

pub(crate) fn flaw(field: &str, cause: &str) -> Result<(), Flaw> {
    Err((field.to_owned(), cause.to_owned()))
}

pub(crate) fn check_capacity(capacity: Option<units::Bytes>) -> Result<(), Flaw> {
    match capacity {
        Some(units::Bytes(0)) => flaw("device.capacity", "a device holds at least one byte"),
        _ => Ok(()),
    }
}

pub(crate) fn optional(
    check: impl Fn(&str, &Parameter) -> Result<(), Flaw>,
    field: &str,
    parameter: Option<&Parameter>,
) -> Result<(), Flaw> {
    parameter.map_or(Ok(()), |parameter| check(field, parameter))
}

/// A time or a cost: finite, not negative, at most an hour in us.
pub(crate) fn time(field: &str, parameter: &Parameter) -> Result<(), Flaw> {
    evidence(field, parameter)?;
    match parameter.value {
        value if !value.is_finite() => flaw(field, "it is not a finite number"),
        value if value < 0.0 => flaw(field, "it is negative"),
        value if value > 3.6e9 => flaw(field, "it is longer than an hour"),
        _ => Ok(()),
    }
}

pub(crate) fn positive(field: &str, parameter: &Parameter) -> Result<(), Flaw> {
    evidence(field, parameter)?;
    match parameter.value {
        value if !value.is_finite() => flaw(field, "it is not a finite number"),
        value if value <= 0.0 => flaw(field, "it must be above zero"),
        _ => Ok(()),
    }
}

pub(crate) fn share(field: &str, parameter: &Parameter) -> Result<(), Flaw> {
    evidence(field, parameter)?;
    if (0.0..=1.0).contains(&parameter.value) {
        return Ok(());
    }
    flaw(field, "a share lies between 0 and 1")
}

pub(crate) fn count(field: &str, parameter: &Parameter, most: f64) -> Result<(), Flaw> {
    evidence(field, parameter)?;
    match parameter.value {
        value if value.fract() != 0.0 => flaw(field, "it must be a whole number"),
        value if value < 1.0 => flaw(field, "it must be at least 1"),
        value if value > most => flaw(field, &format!("it must be at most {most}")),
        _ => Ok(()),
    }
}

/// Every parameter says where it comes from.
fn evidence(field: &str, parameter: &Parameter) -> Result<(), Flaw> {
    if parameter.source.trim().is_empty() {
        return flaw(field, "its source is empty; name it, or the grounds for assuming it");
    }
    match parameter.error {
        Some(error) if !error.is_finite() || error < 0.0 => {
            flaw(field, "its error is not a positive number")
        }
        _ => Ok(()),
    }
}

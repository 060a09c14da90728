//! `[endurance]`: how much its maker lets somebody write to a drive before it counts as worn out.

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::Parameter;
use crate::rules::{Flaw, flaw, optional, positive};

/// Years of a rating in drive writes per day that names none, as makers of drives for servers mean
/// it.
const USUAL_YEARS: f64 = 5.0;

/// `[endurance]`: by bytes, by drive writes per day, or both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnduranceSpec {
    /// The size that the rating belongs to.
    pub size: Bytes,
    /// 10^12 bytes written by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_tb: Option<Parameter>,
    /// Of its size, every day of [`EnduranceSpec::years`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive_writes_per_day: Option<Parameter>,
    /// Years of the rating; 5 where it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub years: Option<Parameter>,
}

impl EnduranceSpec {
    /// Bytes that may be written: as stated, or from drive writes per day.
    pub fn written_bytes(&self) -> f64 {
        let stated = self.written_tb.as_ref().map(|written| written.value * 1e12);
        stated.or_else(|| self.written_by_drive_writes()).unwrap_or(0.0)
    }

    /// Bytes of a drive of its size, by drive writes per day.
    fn written_by_drive_writes(&self) -> Option<f64> {
        let years = self.years.as_ref().map_or(USUAL_YEARS, |years| years.value);
        let per_day = self.drive_writes_per_day.as_ref()?.value;
        Some(per_day * self.size.0 as f64 * 365.0 * years)
    }

    /// Where both are stated and differ by more than a tenth: bytes as stated over bytes by drive
    /// writes per day.
    pub fn contradiction(&self) -> Option<f64> {
        let stated = self.written_tb.as_ref()?.value * 1e12;
        let ratio = stated / self.written_by_drive_writes()?;
        (!(0.9..=1.1).contains(&ratio)).then_some(ratio)
    }
}

/// A rating rates something, and drive writes are those of a drive with a size.
pub(crate) fn check_endurance(endurance: &EnduranceSpec) -> Result<(), Flaw> {
    optional(positive, "endurance.written_tb", endurance.written_tb.as_ref())?;
    let per_day = endurance.drive_writes_per_day.as_ref();
    optional(positive, "endurance.drive_writes_per_day", per_day)?;
    optional(positive, "endurance.years", endurance.years.as_ref())?;
    if endurance.written_tb.is_none() && per_day.is_none() {
        return flaw("endurance.written_tb", "give this, or drive_writes_per_day");
    }
    if endurance.size.0 == 0 {
        return flaw("endurance.size", "a rating belongs to a drive of a size");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(written_tb: Option<f64>, per_day: Option<f64>) -> EnduranceSpec {
        let given = |value| Parameter::new(value, "a data sheet");
        EnduranceSpec {
            size: Bytes(1_920_000_000_000),
            written_tb: written_tb.map(given),
            drive_writes_per_day: per_day.map(given),
            years: None,
        }
    }

    #[test]
    fn drive_writes_become_bytes() {
        let by_day = rated(None, Some(1.0)).written_bytes();
        assert!((by_day / (1.92e12 * 1825.0) - 1.0).abs() < 1e-12, "{by_day}");
        assert_eq!(rated(Some(600.0), Some(1.0)).written_bytes(), 600e12, "as stated");
    }

    /// The comparison table of a magazine: 6,570 TB, 2.4 TB and 2.7 drive writes a day.
    #[test]
    fn ratings_that_contradict_each_other_are_found() {
        let mut both = rated(Some(6_570.0), Some(2.7));
        both.size = Bytes(2_400_000_000_000);
        let ratio = both.contradiction().expect("they differ");
        assert!((ratio - 0.5556).abs() < 1e-3, "{ratio}");
        both.drive_writes_per_day = rated(None, Some(1.5)).drive_writes_per_day;
        assert_eq!(both.contradiction(), None);
        assert_eq!(rated(Some(600.0), None).contradiction(), None);
    }

    #[test]
    fn a_rating_has_a_size_and_rates_something() {
        let field = |spec: &EnduranceSpec| check_endurance(spec).map_err(|(field, _)| field);
        assert_eq!(field(&rated(Some(1.0), None)), Ok(()));
        assert_eq!(field(&rated(None, None)).unwrap_err(), "endurance.written_tb");
        assert_eq!(field(&rated(Some(0.0), None)).unwrap_err(), "endurance.written_tb");
        let no_size = EnduranceSpec { size: Bytes(0), ..rated(Some(1.0), None) };
        assert_eq!(field(&no_size).unwrap_err(), "endurance.size");
    }
}

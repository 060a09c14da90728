//! When a disk is full.

use crate::error::{not_negative, positive};
use crate::{Answer, Error, Interval};

/// Days until `free_bytes` are used up at a growth in bytes per day.
///
/// # Errors
/// Where a figure cannot be.
pub fn full(free_bytes: f64, bytes_per_day: Interval) -> Result<Answer, Error> {
    not_negative("the free space", free_bytes)?;
    positive("the growth", bytes_per_day.high)?;
    let question = "days until the disk is full";
    let days = |per_day: f64| free_bytes / per_day;
    let answer = if bytes_per_day.value <= 0.0 {
        Answer::untold(question, "days", "nothing grows")
    } else {
        let high =
            if bytes_per_day.low > 0.0 { days(bytes_per_day.low) } else { Interval::UNBOUNDED };
        let ends = Interval::new(days(bytes_per_day.value), days(bytes_per_day.high), high);
        Answer::told(question, ends, "days")
    };
    Ok(answer
        .holding(format!(
            "{:.1} GB free, {:.2} GB more every day",
            free_bytes / 1e9,
            bytes_per_day.value / 1e9
        ))
        .changed("an SSD slows down before it is full: its spare is what stays free"))
}

/// Calendar date `YYYY-MM-DD` of this many days after another; none where it is no date.
///
/// The calendar is the Gregorian one throughout, counted in 400 years of 146,097 days from March.
pub fn date_after(date: &str, days: f64) -> Option<String> {
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let is_date =
        (1..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if parts.next().is_some() || !is_date || !days.is_finite() || days.abs() > 3e6 {
        return None;
    }
    let own = number(year, month, day);
    if civil(own) != (year, month, day) {
        return None;
    }
    let (year, month, day) = civil(own + days.floor() as i64);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}

/// Days since 0000-03-01.
fn number(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 1
}

/// Year, month and day of such a number.
fn civil(number: i64) -> (i64, i64, i64) {
    let (era, in_era) = (number.div_euclid(146_097), number.rem_euclid(146_097));
    let in_era_years = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * in_era_years + in_era_years / 4 - in_era_years / 100);
    let shifted = (5 * in_year + 2) / 153;
    let day = in_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + in_era_years + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_free_over_growth() {
        let found = full(100e9, Interval::new(2e9, 1e9, 4e9)).unwrap().figure.unwrap();
        assert_eq!((found.value, found.low, found.high), (50.0, 25.0, 100.0));
        assert!(full(-1.0, Interval::exact(1.0)).is_err());
        assert!(full(1.0, Interval::exact(0.0)).is_err());
    }

    #[test]
    fn dates_follow_the_calendar() {
        for (from, days, to) in [
            ("2026-11-24", 0.0, "2026-11-24"),
            ("2026-11-24", 50.9, "2027-01-13"),
            ("2024-02-28", 1.0, "2024-02-29"),
            ("2023-02-28", 1.0, "2023-03-01"),
            ("1900-02-28", 1.0, "1900-03-01"),
            ("2000-01-01", 146_097.0, "2400-01-01"),
        ] {
            assert_eq!(date_after(from, days).as_deref(), Some(to), "{from} + {days}");
        }
        for bad in ["2026-02-30", "2026-13-01", "2026-11", "yesterday", "2026-11-24-1"] {
            assert_eq!(date_after(bad, 1.0), None, "{bad}");
        }
    }
}

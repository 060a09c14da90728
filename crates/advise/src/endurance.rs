//! How long flash lasts at a rate of writes.
//!
//! Two limits, each where it is known: bytes that the maker rates a device for, and erases that its
//! blocks stand. Of a limit by erases the write amplification is a part; a rating has one of its
//! own inside. Writes go on all day as they are; erases are spread over the blocks.

use serde::{Deserialize, Serialize};

use crate::error::{not_negative, positive};
use crate::{Answer, Error, Interval};

/// Seconds of a day.
pub const DAY_S: f64 = 86_400.0;
/// Seconds of a year.
pub const YEAR_S: f64 = 365.25 * DAY_S;

/// What is used up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Bytes that the maker rates it for, written by the host.
    Rated {
        /// How many.
        bytes: f64,
    },
    /// Program and erase cycles of every block.
    Cycles {
        /// Of a block.
        cycles: f64,
        /// Bytes of all blocks, those in reserve included.
        flash_bytes: f64,
        /// Bytes programmed per byte written.
        amplification: Interval,
    },
}

/// What one file class writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassRate {
    /// `data`, `log`, `temp`; empty for all together.
    pub class: String,
    /// Bytes per second that reach the device.
    pub bytes_per_s: Interval,
}

/// Years of a device, and which class uses them up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lifetime {
    /// Years until the limit.
    pub years: Answer,
    /// Of each class: its share of what is written, and the years without it; none where nothing
    /// else writes.
    pub classes: Vec<ClassShare>,
}

/// One class of a [`Lifetime`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassShare {
    /// Its name.
    pub class: String,
    /// Of all bytes, 0 to 1.
    pub share: f64,
    /// Years of the device if the class were written elsewhere.
    pub years_without: Option<f64>,
}

/// Years until `amount` is used up at `per_s`.
pub fn years_until(amount: f64, per_s: f64) -> f64 {
    amount / per_s / YEAR_S
}

impl Limit {
    /// Bytes that the host may write, by its ends.
    fn written_bytes(&self) -> Interval {
        match *self {
            Self::Rated { bytes } => Interval::exact(bytes),
            Self::Cycles { cycles, flash_bytes, amplification } => {
                amplification.falling(|factor| cycles * flash_bytes / factor)
            }
        }
    }

    fn check(&self) -> Result<(), Error> {
        match *self {
            Self::Rated { bytes } => positive("rated bytes", bytes)?,
            Self::Cycles { cycles, flash_bytes, amplification } => {
                positive("cycles", cycles)?;
                positive("the write amplification", amplification.low)?;
                positive("the size of the flash", flash_bytes)?
            }
        };
        Ok(())
    }

    fn words(&self) -> String {
        match *self {
            Self::Rated { bytes } => {
                format!("{} TB that its maker rates it for", short(bytes / 1e12))
            }
            Self::Cycles { cycles, flash_bytes, amplification } => format!(
                "{cycles} cycles of {} GB of flash, {} bytes programmed per byte written",
                short(flash_bytes / 1e9),
                short(amplification.value)
            ),
        }
    }
}

/// Three digits, no more than needed.
fn short(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// Years until `limit` at the rates of `classes` together.
///
/// # Errors
/// Where a figure cannot be.
pub fn lifetime(limit: &Limit, classes: &[ClassRate]) -> Result<Lifetime, Error> {
    limit.check()?;
    for class in classes {
        not_negative(&format!("the rate of {}", class.class), class.bytes_per_s.low)?;
    }
    let sum = |without: Option<usize>| {
        let others = classes.iter().enumerate().filter(|(index, _)| Some(*index) != without);
        others.fold(Interval::exact(0.0), |sum, (_, class)| sum.plus(&class.bytes_per_s))
    };
    let all = sum(None);
    let question = "years until it is worn out";
    let years = if all.value <= 0.0 {
        Answer::untold(question, "years", "nothing is written: it does not wear by writes")
    } else {
        let bytes = limit.written_bytes();
        // The faster it is written, the shorter it lives; a rate of 0 at the end is no bound.
        let high =
            if all.low > 0.0 { years_until(bytes.high, all.low) } else { Interval::UNBOUNDED };
        let ends = (years_until(bytes.low, all.high), high);
        Answer::told(
            question,
            Interval::new(years_until(bytes.value, all.value), ends.0, ends.1),
            "years",
        )
    };
    let years = years
        .holding(limit.words())
        .holding(format!("{:.2} MB/s written around the clock", all.value / 1e6))
        .changed("half the writes, or hours of rest, last in proportion");
    let years = match limit {
        Limit::Rated { .. } => years.changed(
            "a rating has a write amplification of its own inside: random writes on a full \
             device may use it up sooner than it says",
        ),
        Limit::Cycles { .. } => years
            .changed("a lower write amplification lasts in proportion: more spare, less random"),
    };
    let share = |index: usize, class: &ClassRate| {
        let rest = sum(Some(index)).value;
        ClassShare {
            class: class.class.clone(),
            share: class.bytes_per_s.value / all.value.max(f64::MIN_POSITIVE),
            years_without: (rest > 0.0).then(|| years_until(limit.written_bytes().value, rest)),
        }
    };
    let classes = classes.iter().enumerate().map(|(index, class)| share(index, class)).collect();
    Ok(Lifetime { years, classes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bytes_per_s: Interval) -> [ClassRate; 1] {
        [ClassRate { class: "data".to_owned(), bytes_per_s }]
    }

    /// Wang et al. 2011, Table 6: the X25-E is rated for 2 PB; its years under TPC-C, from the mean
    /// physical write rates of figure 8.
    #[test]
    fn all_four_cells_of_the_endurance_table_of_2011() {
        for (mb_per_s, printed) in [(11.59, 5.47), (28.96, 2.19), (27.34, 2.32), (44.35, 1.43)] {
            let limit = Limit::Rated { bytes: 2e15 };
            let found = lifetime(&limit, &one(Interval::exact(mb_per_s * 1e6))).unwrap();
            let years = found.years.figure.unwrap().value;
            assert!((years / printed - 1.0).abs() < 0.01, "{mb_per_s} MB/s: {years} and {printed}");
        }
    }

    /// Table 5: 50 GB a day in sequence on 32 GB of 100,000 cycles last "more than 140 years".
    #[test]
    fn cycles_of_the_mtron_at_its_data_sheet_load() {
        let limit = Limit::Cycles {
            cycles: 100_000.0,
            flash_bytes: 32e9,
            amplification: Interval::exact(1.0),
        };
        let found = lifetime(&limit, &one(Interval::exact(50e9 / DAY_S))).unwrap();
        let years = found.years.figure.unwrap().value;
        assert!((years - 3.2e15 / 50e9 / 365.25).abs() < 1e-9, "{years}");
        assert!(years > 140.0);
    }

    #[test]
    fn ends_are_those_of_rate_and_amplification() {
        let limit = Limit::Cycles {
            cycles: 1000.0,
            flash_bytes: YEAR_S,
            amplification: Interval::new(2.0, 1.0, 4.0),
        };
        let years = lifetime(&limit, &one(Interval::new(100.0, 50.0, 200.0))).unwrap();
        let figure = years.years.figure.unwrap();
        for (found, expected) in [(figure.value, 5.0), (figure.low, 1.25), (figure.high, 20.0)] {
            assert!((found - expected).abs() < 1e-9, "{figure:?}");
        }
    }

    #[test]
    fn a_class_has_its_share_and_moving_it_away_helps_by_that() {
        let rate = |class: &str, per_s| ClassRate {
            class: class.to_owned(),
            bytes_per_s: Interval::exact(per_s),
        };
        let limit = Limit::Rated { bytes: 12.0 * YEAR_S };
        let found = lifetime(&limit, &[rate("data", 1.0), rate("log", 3.0)]).unwrap();
        assert!((found.years.figure.unwrap().value - 3.0).abs() < 1e-12);
        let log = &found.classes[1];
        assert_eq!((log.share, log.years_without), (0.75, Some(12.0)));
        let alone = lifetime(&limit, &[rate("log", 3.0)]).unwrap();
        assert_eq!(alone.classes[0].years_without, None);
        let open = ClassRate { class: String::new(), bytes_per_s: Interval::new(1.0, 0.0, 2.0) };
        let open = lifetime(&limit, &[open]).unwrap().years.figure.unwrap();
        assert_eq!((open.value, open.high), (12.0, Interval::UNBOUNDED));
        let idle = lifetime(&limit, &[rate("data", 0.0)]).unwrap();
        assert!(idle.years.figure.is_none(), "{idle:?}");
        assert!(lifetime(&limit, &[rate("data", -1.0)]).is_err());
        assert!(lifetime(&Limit::Rated { bytes: 0.0 }, &[]).is_err());
    }
}

//! How the load of a trace wears a device, and for how many years it may go on.
//!
//! Two limits, each where it is known: the bytes that its maker rates it for
//! (`[endurance]`), and the erases that its blocks stand (`[device.wear] pe_cycles`), at the rates
//! of the last half of the trace. Of a limit by erases the write amplification is a part; a rating
//! has one of its own inside. Both take the load to go on as it is, all day; erases are spread over
//! the blocks, as wear levelling does in the long run.
//!
//! The interval is that of the mean over the steps of the last half (Student's t, 95 %). It tells
//! how steady the trace is; whether next year's load is this one nobody can tell.

use advise::endurance::{DAY_S, YEAR_S, years_until};
use events::Warning;
use profile::{DeviceSpec, Profile};
use serde::Serialize;
use sim::{FlashMark, Outcome, WearMark};

/// Drive writes of a device that somebody wears hard enough to look twice.
const SHORT_YEARS: f64 = 1.0;

/// How a trace wears a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Life {
    /// Bytes that the requests write in a day.
    pub written_bytes_per_day: f64,
    /// The same in sizes of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_writes_per_day: Option<f64>,
    /// What its flash does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flash: Option<FlashWear>,
    /// Years until what its maker rates it for is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub years_by_rating: Option<f64>,
}

/// How the flash of a device wears.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlashWear {
    /// Bytes programmed per byte written, since the warm-up.
    pub write_amplification: f64,
    /// The same over the last half of that.
    pub steady_write_amplification: Within,
    /// Whether both halves agree within a tenth.
    pub steady: bool,
    /// Blocks of the device.
    pub blocks: u64,
    /// Blocks erased since the warm-up.
    pub erased_blocks: u64,
    /// Erases of the least worn block in the whole trace.
    pub least_worn_erases: u64,
    /// Mean of the blocks.
    pub mean_erases: f64,
    /// Erases of the most worn block.
    pub most_worn_erases: u64,
    /// Erases that a block stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<f64>,
    /// Years until every block stood them, at the rate of the last half.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub years: Option<Within>,
}

/// A value and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Within {
    /// The value.
    pub value: f64,
    /// Lower end; none where there are too few steps to tell.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Life {
    /// Of the wear that `outcome` found; `None` where nothing is written, or the time of it is not
    /// known.
    pub fn of(outcome: &Outcome, profile: &Profile) -> Option<Self> {
        let (first, last) = (outcome.wear.first()?, outcome.wear.last()?);
        let seconds = last.at_s - first.at_s;
        let written = (last.written_bytes - first.written_bytes) as f64;
        if seconds <= 0.0 || written <= 0.0 {
            return None;
        }
        let per_s = written / seconds;
        let rating = profile.endurance.as_ref();
        let size = rating.map(|rating| rating.size).or_else(|| profile.capacity());
        Some(Self {
            written_bytes_per_day: per_s * DAY_S,
            drive_writes_per_day: size.map(|size| per_s * DAY_S / size.0 as f64),
            flash: FlashWear::of(&outcome.wear, profile),
            years_by_rating: rating.map(|rating| years_until(rating.written_bytes(), per_s)),
        })
    }

    /// What the user should know before the figures.
    pub fn warnings(&self, device: &str) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let Some(flash) = &self.flash else { return warnings };
        if !flash.steady {
            let message = format!(
                "{device}: write amplification is {:.2} over all and {:.2} in the last half: it \
                 is not steady, and the years are those of the last half",
                flash.write_amplification, flash.steady_write_amplification.value
            );
            warnings.push(Warning::new("sim", "wear_unsteady", message).with_hint(
                "a longer trace, or --warm-up TIME to leave out the start; \
                 [device.precondition] of a profile fills the device before the trace",
            ));
        }
        if let Some(cycles) = flash.cycles
            && flash.most_worn_erases as f64 >= cycles
        {
            let message = format!(
                "{device}: blocks were erased {} times, and stand {cycles:.0}: the device wears \
                 out within the trace",
                flash.most_worn_erases
            );
            warnings.push(
                Warning::new("sim", "worn_out", message).with_hint(
                    "a larger device, more over-provisioning, or fewer writes per second",
                ),
            );
        } else if let Some(years) = flash.years
            && years.value < SHORT_YEARS
        {
            let message =
                format!("{device}: its flash lasts {} at this load", years_text(years.value));
            warnings.push(
                Warning::new("sim", "life_short", message).with_hint(
                    "a larger device, more over-provisioning, or fewer writes per second",
                ),
            );
        }
        warnings
    }
}

impl FlashWear {
    fn of(marks: &[WearMark], profile: &Profile) -> Option<Self> {
        let DeviceSpec::Flash(spec) = &profile.device else { return None };
        let geometry = spec.parameters().geometry;
        let blocks = u64::from(geometry.block_count());
        let (first, last) = (marks.first()?, marks.last()?);
        let amplification = |steps: &[WearMark]| {
            let (from, to) = (steps.first()?, steps.last()?);
            let written = (to.written_bytes - from.written_bytes) as f64;
            let programmed = to.flash?.programmed_bytes - from.flash?.programmed_bytes;
            (written > 0.0).then(|| programmed as f64 / written)
        };
        let end: FlashMark = last.flash?;
        let half = &marks[marks.len() / 2..];
        let write_amplification = amplification(marks)?;
        let steady_write_amplification = amplification(half)?;
        let cycles = spec.wear.pe_cycles.as_ref().map(|cycles| cycles.value);
        let erase_rate = |steps: &[WearMark]| {
            let (from, to) = (steps.first()?, steps.last()?);
            let erased = to.flash?.erased_blocks - from.flash?.erased_blocks;
            (to.at_s > from.at_s).then(|| erased as f64 / (to.at_s - from.at_s))
        };
        let rate = erase_rate(half).map(|rate| Within::of(rate, half, erase_rate));
        let years = |rate: f64| cycles.map(|cycles| years_until(cycles * blocks as f64, rate));
        Some(Self {
            write_amplification,
            steady_write_amplification: Within::of(steady_write_amplification, half, amplification),
            steady: (steady_write_amplification / write_amplification - 1.0).abs() <= 0.1,
            blocks,
            erased_blocks: end.erased_blocks - first.flash?.erased_blocks,
            least_worn_erases: end.least_worn_erases,
            mean_erases: end.erased_blocks as f64 / blocks as f64,
            most_worn_erases: end.most_worn_erases,
            cycles,
            years: rate.filter(|rate| rate.value > 0.0).and_then(|rate| {
                Some(Within {
                    value: years(rate.value)?,
                    // The faster it is erased, the shorter it lives.
                    low: rate.high.and_then(years),
                    high: rate.low.filter(|low| *low > 0.0).and_then(years),
                })
            }),
        })
    }
}

impl Within {
    /// The value and its interval, where the two differ as `text` writes them.
    pub(super) fn text(self, text: impl Fn(f64) -> String) -> String {
        let value = text(self.value);
        let ends = self.low.zip(self.high).map(|(low, high)| (text(low), text(high)));
        match ends {
            Some((low, high)) if low != value || high != value => {
                format!("{value} ({low} to {high})")
            }
            _ => value,
        }
    }

    /// `value` with the interval of the mean of `of` over the steps between `marks`.
    fn of(value: f64, marks: &[WearMark], of: impl Fn(&[WearMark]) -> Option<f64>) -> Self {
        let steps: Vec<f64> = marks.windows(2).filter_map(of).collect();
        let none = Self { value, low: None, high: None };
        let Some(t) = student_t(steps.len()) else { return none };
        let count = steps.len() as f64;
        let mean = steps.iter().sum::<f64>() / count;
        let variance = steps.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let reach = t * (variance / count).sqrt();
        Self { value, low: Some((value - reach).max(0.0)), high: Some(value + reach) }
    }
}

/// The 97.5 % quantile of Student's t for the mean of `samples`; `None` for fewer than four, of
/// which an interval tells nothing, and the last one for more than the table has.
fn student_t(samples: usize) -> Option<f64> {
    const FROM_FOUR: [f64; 7] = [3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
    let index = samples.checked_sub(4)?;
    Some(FROM_FOUR[index.min(FROM_FOUR.len() - 1)])
}

/// As people say it: what is shorter than a year in days, what nobody lives to see as that.
pub(super) fn years_text(years: f64) -> String {
    years_within(Within { value: years, low: None, high: None })
}

/// The same with its interval.
pub(super) fn years_within(years: Within) -> String {
    let in_days = |years: f64| format!("{:.1}", years * YEAR_S / DAY_S);
    match years.value {
        value if value < 1.0 => format!("{} days", years.text(in_days)),
        value if value < 100.0 => format!("{} years", years.text(|years| format!("{years:.2}"))),
        value if value < 1_000.0 => format!("{} years", years.text(|years| format!("{years:.0}"))),
        _ => "over 1000 years".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::read_profile;

    #[test]
    fn years_are_written_as_people_say_them() {
        let within = |value, low, high| Within { value, low: Some(low), high: Some(high) };
        assert_eq!(years_text(18.5), "18.50 years");
        assert_eq!(years_text(0.5), "182.6 days");
        assert_eq!(years_text(4_000.0), "over 1000 years");
        assert_eq!(years_within(within(3.7, 3.5, 3.9)), "3.70 (3.50 to 3.90) years");
        assert_eq!(years_within(within(3.7, 3.7, 3.7)), "3.70 years");
    }

    /// Marks of a device that programs `factors[k]` bytes per byte in step `k`.
    fn marks(factors: &[f64]) -> Vec<WearMark> {
        let (mut programmed, mut all) = (0.0, Vec::new());
        for step in 0..=factors.len() {
            if step > 0 {
                programmed += factors[step - 1] * 1e6;
            }
            let erased_blocks = (programmed / 1e3) as u64;
            let flash = FlashMark {
                programmed_bytes: programmed as u64,
                erased_blocks,
                least_worn_erases: 1,
                most_worn_erases: 3,
                retired_blocks: 0,
            };
            all.push(WearMark {
                at_s: step as f64,
                written_bytes: step as u64 * 1_000_000,
                flash: Some(flash),
            });
        }
        all
    }

    fn life(factors: &[f64]) -> Life {
        let outcome = Outcome { wear: marks(factors), ..Outcome::default() };
        Life::of(&outcome, &read_profile("generic-slc-8g").expect("it ships")).expect("it wears")
    }

    /// 100,000 cycles of all blocks at 2,000 erases per second.
    #[test]
    fn years_are_cycles_over_erases() {
        let found = life(&[2.0; 16]);
        let flash = found.flash.as_ref().expect("flash");
        let years = flash.years.expect("it is erased");
        let expected = 100_000.0 * flash.blocks as f64 / 2_000.0 / YEAR_S;
        assert!((years.value / expected - 1.0).abs() < 1e-9, "{years:?}, {expected}");
        assert_eq!((years.low, years.high), (Some(years.value), Some(years.value)));
        assert_eq!((flash.write_amplification, flash.steady), (2.0, true));
        assert!((found.written_bytes_per_day - 86.4e9).abs() < 1.0);
        assert!(found.warnings("it").iter().any(|warning| warning.code == "life_short"));
    }

    #[test]
    fn blocks_at_their_end_are_said() {
        let mut found = life(&[2.0; 16]);
        found.flash.as_mut().expect("flash").cycles = Some(3.0);
        let codes: Vec<_> = found.warnings("it").into_iter().map(|own| own.code).collect();
        assert_eq!(codes, ["worn_out"]);
    }

    /// The more is erased, the shorter it lives: the ends of the interval change places.
    #[test]
    fn an_interval_holds_its_value() {
        let factors: Vec<f64> = (0..16).map(|step| 2.0 + 0.1 * f64::from(step % 2)).collect();
        let flash = life(&factors).flash.expect("flash");
        for Within { value, low, high } in [flash.steady_write_amplification, flash.years.unwrap()]
        {
            let (low, high) = (low.expect("told"), high.expect("told"));
            assert!(low < value && value < high, "{low} {value} {high}");
        }
    }

    /// The first half counts for the run, not for the years.
    #[test]
    fn what_is_not_steady_is_said() {
        let factors: Vec<f64> = [[1.0; 8], [3.0; 8]].concat();
        let found = life(&factors);
        let flash = found.flash.as_ref().expect("flash");
        assert_eq!((flash.write_amplification, flash.steady), (2.0, false));
        assert_eq!(flash.steady_write_amplification.value, 3.0);
        assert!(found.warnings("it").iter().any(|warning| warning.code == "wear_unsteady"));
    }

    #[test]
    fn a_rating_is_used_up_by_what_is_written() {
        let mut profile = read_profile("samsung-970-pro").expect("it ships");
        let mut wear = marks(&[1.0; 16]);
        for mark in &mut wear {
            mark.flash = None;
        }
        let outcome = Outcome { wear, ..Outcome::default() };
        let found = Life::of(&outcome, &profile).expect("it wears");
        // 1,200 TB at 1 MB/s.
        let years = found.years_by_rating.expect("it is rated");
        assert!((years - 1.2e9 / YEAR_S).abs() < 1e-6, "{years}");
        assert_eq!(found.flash, None);
        profile.endurance = None;
        assert_eq!(Life::of(&outcome, &profile).expect("it wears").years_by_rating, None);
        assert_eq!(Life::of(&Outcome::default(), &profile), None, "nothing is written");
    }
}

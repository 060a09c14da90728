//! More memory, or faster storage: the break-even of a page.
//!
//! The five-minute rule (Gray, Putzolu 1987; Gray, Graefe 1997): a page that is read more often
//! than once in the break-even interval is cheaper to keep in memory, any other to read from
//! storage:
//!
//! `interval = pages per MB of memory / reads per second of a device x price of the device / price
//! of a MB of memory`

use serde::{Deserialize, Serialize};

use crate::error::positive;
use crate::{Answer, Error, Interval};

/// What the rule needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakEven {
    /// Bytes of a page.
    pub page_bytes: f64,
    /// Random reads of a page per second of a device.
    pub reads_per_s: f64,
    /// Price of the device.
    pub device_price: f64,
    /// Price of 10^9 bytes of memory, in the same currency and for as long.
    pub memory_price_per_gb: f64,
}

/// A database beside its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pages {
    /// Bytes that are read from storage at all.
    pub data_bytes: f64,
    /// Bytes of them in memory.
    pub buffer_bytes: f64,
    /// Reads of pages from storage per second.
    pub misses_per_s: Interval,
}

impl BreakEven {
    /// The interval at which memory and storage cost the same, s.
    ///
    /// # Errors
    /// Where a figure is not above 0.
    pub fn seconds(&self) -> Result<f64, Error> {
        let page = positive("the page", self.page_bytes)?;
        let reads = positive("reads per second", self.reads_per_s)?;
        let device = positive("the price of the device", self.device_price)?;
        let memory = positive("the price of memory", self.memory_price_per_gb)?;
        Ok(1e9 / page / reads * device / memory)
    }

    /// The same as an answer.
    ///
    /// # Errors
    /// As [`Self::seconds`].
    pub fn answer(&self) -> Result<Answer, Error> {
        let seconds = self.seconds()?;
        Ok(Answer::told("break-even of memory against storage", Interval::exact(seconds), "s")
            .holding(format!(
                "pages of {} bytes; a device at {} for {:.0} reads per second; memory at {} per GB",
                self.page_bytes, self.device_price, self.reads_per_s, self.memory_price_per_gb
            ))
            .holding("the device is bought for its reads, not for its size")
            .changed("cheaper reads shorten it, cheaper memory lengthens it, both in proportion"))
    }

    /// What is cheaper for a database: more memory or faster storage.
    ///
    /// # Errors
    /// As [`Self::seconds`], and where a size is not above 0.
    pub fn verdict(&self, pages: &Pages) -> Result<Answer, Error> {
        let even = self.seconds()?;
        let data = positive("the data", pages.data_bytes)?;
        let outside = (data - pages.buffer_bytes).max(0.0) / self.page_bytes;
        let question = "mean time between two reads of a page outside of memory";
        if outside <= 0.0 {
            let why = "all data fit in memory: storage is read only to fill it";
            return Ok(Answer::untold(question, "s", why));
        }
        if pages.misses_per_s.value <= 0.0 {
            return Ok(Answer::untold(question, "s", "nothing is read from storage"));
        }
        positive("reads from storage per second", pages.misses_per_s.low)?;
        let each = pages.misses_per_s.falling(|misses| outside / misses);
        let verdict = match each {
            each if each.high < even => "shorter than break-even: memory is cheaper",
            each if each.low > even => "longer than break-even: storage is cheaper",
            _ => "around break-even: it cannot be told which is cheaper",
        };
        Ok(Answer::told(question, each, "s")
            .holding(format!("{verdict} ({even:.1} s)"))
            .holding(format!(
                "{:.2} times as much data as memory",
                data / pages.buffer_bytes.max(f64::MIN_POSITIVE)
            ))
            .changed(
                "pages are not read evenly: the hottest of those outside are read far more often, \
                 so some more memory pays where the mean page says that it does not",
            ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gray, Graefe 1997: 8 KB pages (128 per MB), 64 accesses per second, 2,000 dollars a disk, 15
    /// a MB: 266 seconds, "about five minutes".
    #[test]
    fn the_five_minute_rule_of_1997() {
        let rule = BreakEven {
            page_bytes: 8192.0,
            reads_per_s: 64.0,
            device_price: 2000.0,
            // 128 pages of 8,192 bytes are 2^20 bytes.
            memory_price_per_gb: 15.0 * 1e9 / 1_048_576.0,
        };
        let seconds = rule.seconds().unwrap();
        assert!((seconds - 128.0 / 64.0 * 2000.0 / 15.0).abs() < 1e-9, "{seconds}");
        assert_eq!(seconds.floor(), 266.0);
    }

    #[test]
    fn what_is_read_more_often_belongs_in_memory() {
        // Break-even at 100 s.
        let rule = BreakEven {
            page_bytes: 1e4,
            reads_per_s: 1e3,
            device_price: 5.0,
            memory_price_per_gb: 5.0,
        };
        assert!((rule.seconds().unwrap() - 100.0).abs() < 1e-9);
        // 100,000 pages outside.
        let pages =
            |misses: Interval| Pages { data_bytes: 2e9, buffer_bytes: 1e9, misses_per_s: misses };
        let words = |misses| rule.verdict(&pages(misses)).unwrap().holds_for[0].clone();
        assert!(words(Interval::exact(2000.0)).starts_with("shorter"));
        assert!(words(Interval::exact(500.0)).starts_with("longer"));
        assert!(words(Interval::new(1000.0, 900.0, 1100.0)).starts_with("around"));
        let fits = Pages { buffer_bytes: 3e9, ..pages(Interval::exact(1.0)) };
        assert!(rule.verdict(&fits).unwrap().figure.is_none());
    }
}

//! Devices per processor of a balanced system.
//!
//! Amdahl's balanced system law as Gray and Shenoy revised it (Rules of Thumb in Data Engineering,
//! ICDE 2000): a processor needs a byte of I/O for every eight instructions. The devices that give
//! it depend on how rates of reads and writes are averaged. Over the time of a device the mean is
//! the **harmonic** one, weighted by the requests: a request that takes longer takes more of the
//! time. Petrov et al. 2010 print 3 SSDs per processor, which holds for the **arithmetic** mean
//! alone; both are given.

use serde::{Deserialize, Serialize};

use crate::error::{positive, share};
use crate::{Answer, Error, Interval};

/// Instructions per byte of I/O (Gray, Shenoy 2000): 8 MIPS for each MB/s.
pub const INSTRUCTIONS_PER_BYTE: f64 = 8.0;

/// A processor and what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// Clock, Hz.
    pub clock_hz: f64,
    /// Cycles per instruction.
    pub cycles_per_instruction: f64,
    /// Instructions per byte of I/O.
    pub instructions_per_byte: f64,
    /// Bytes per request.
    pub page_bytes: f64,
    /// Share of reads among requests.
    pub read_share: f64,
}

/// How the rates of reads and writes are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mean {
    /// Weighted by requests: what a device does that serves one request after another.
    Harmonic,
    /// Of the rates: more than such a device can do, where they differ.
    Arithmetic,
}

impl Mean {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Harmonic => "harmonic",
            Self::Arithmetic => "arithmetic",
        }
    }
}

/// Requests of a page that a device serves per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Reads alone.
    pub reads_per_s: f64,
    /// Writes alone.
    pub writes_per_s: f64,
}

impl Rates {
    /// Of a mix.
    pub fn mixed(&self, read_share: f64, mean: Mean) -> f64 {
        let write_share = 1.0 - read_share;
        match mean {
            Mean::Arithmetic => read_share * self.reads_per_s + write_share * self.writes_per_s,
            Mean::Harmonic => {
                1.0 / (read_share / self.reads_per_s + write_share / self.writes_per_s)
            }
        }
    }
}

impl Processor {
    /// Bytes per second of I/O that keep it busy.
    pub fn bytes_per_s(&self) -> f64 {
        self.clock_hz / self.cycles_per_instruction / self.instructions_per_byte
    }

    /// Requests per second that keep it busy.
    pub fn requests_per_s(&self) -> f64 {
        self.bytes_per_s() / self.page_bytes
    }

    /// Devices that keep it busy.
    ///
    /// # Errors
    /// Where a figure cannot be.
    pub fn devices(&self, rates: &Rates, mean: Mean) -> Result<f64, Error> {
        positive("the clock", self.clock_hz)?;
        positive("cycles per instruction", self.cycles_per_instruction)?;
        positive("instructions per byte", self.instructions_per_byte)?;
        positive("the page", self.page_bytes)?;
        positive("reads per second", rates.reads_per_s)?;
        positive("writes per second", rates.writes_per_s)?;
        share("the share of reads", self.read_share)?;
        Ok(self.requests_per_s() / rates.mixed(self.read_share, mean))
    }

    /// The same as an answer.
    ///
    /// # Errors
    /// As [`Self::devices`].
    pub fn answer(&self, rates: &Rates, mean: Mean) -> Result<Answer, Error> {
        let devices = self.devices(rates, mean)?;
        let other = match mean {
            Mean::Harmonic => Mean::Arithmetic,
            Mean::Arithmetic => Mean::Harmonic,
        };
        let others = self.devices(rates, other)?;
        let question = format!("devices per processor, {} mean of rates", mean.name());
        Ok(Answer::told(question, Interval::exact(devices), "devices")
            .holding(format!(
                "{:.1} MB/s of I/O: {} instructions per byte at {:.2} GHz and {} cycles each",
                self.bytes_per_s() / 1e6,
                self.instructions_per_byte,
                self.clock_hz / 1e9,
                self.cycles_per_instruction
            ))
            .holding(format!(
                "requests of {} bytes, {:.0} % of them reads, {:.0} per second",
                self.page_bytes,
                self.read_share * 100.0,
                self.requests_per_s()
            ))
            .changed(format!("with the {} mean it is {others:.2} devices", other.name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Petrov et al. 2010: 3.2 GHz, 2.1 cycles, 8 KB pages, 25 % reads.
    const SLIDES: Processor = Processor {
        clock_hz: 3.2e9,
        cycles_per_instruction: 2.1,
        instructions_per_byte: INSTRUCTIONS_PER_BYTE,
        page_bytes: 8192.0,
        read_share: 0.25,
    };

    /// Printed: 80 disks of 15,000 rpm (300 writes per second), 3 SSDs (23,000 and 4,800).
    #[test]
    fn the_slides_of_2010_exactly() {
        assert!((SLIDES.bytes_per_s() / 1e6 - 4000.0 / 21.0).abs() < 1e-9);
        assert_eq!(SLIDES.requests_per_s().floor(), 23_251.0);
        let disk = Rates { reads_per_s: 300.0, writes_per_s: 300.0 };
        let disks = SLIDES.devices(&disk, Mean::Arithmetic).unwrap();
        assert_eq!((disks * 10.0).round() / 10.0, 77.5);
        let flash = Rates { reads_per_s: 23_000.0, writes_per_s: 4800.0 };
        let arithmetic = SLIDES.devices(&flash, Mean::Arithmetic).unwrap();
        let harmonic = SLIDES.devices(&flash, Mean::Harmonic).unwrap();
        assert_eq!((arithmetic * 100.0).round() / 100.0, 2.49);
        assert_eq!((harmonic * 100.0).round() / 100.0, 3.89);
        assert_eq!((arithmetic.ceil(), harmonic.ceil()), (3.0, 4.0));
        let answer = SLIDES.answer(&flash, Mean::Harmonic).unwrap();
        assert!(answer.changed_by[0].contains("arithmetic mean it is 2.49"), "{answer:?}");
    }

    /// A quarter of 4 reads of 1 s each, three quarters of writes of 3 s: 4 requests in 10 s.
    #[test]
    fn the_harmonic_mean_is_that_of_a_device_by_hand() {
        let rates = Rates { reads_per_s: 1.0, writes_per_s: 1.0 / 3.0 };
        assert!((rates.mixed(0.25, Mean::Harmonic) - 0.4).abs() < 1e-12);
        assert!((rates.mixed(0.25, Mean::Arithmetic) - 0.5).abs() < 1e-12);
        assert!(SLIDES.devices(&Rates { writes_per_s: 0.0, ..rates }, Mean::Harmonic).is_err());
    }
}

//! A reference measurement: a second of the few cells that matter, repeated through a study to tell
//! how the disk has changed since its profile was fitted.
//!
//! The cells are a small random read, a small write with its flush, and a large sequential write,
//! one at a time, on a file that stays open and was written once. A kind's time is the mean of the
//! fastest 95 %: a single stall in a fifth of a second would otherwise be the whole measurement.
//! Absolute times mean little (the file is small); their ratio between two moments is what is used.

use events::Sink;
use fit::measurement::{Cell, Distribution, Durability, Order, WARM_UP_SHARE};
use io::engine::Device;
use io::target::{self, Need, Prepared, TargetSpec};
use serde::{Deserialize, Serialize};
use trace::Op;

use crate::cell::{self, CellOptions};
use crate::error::Error;
use crate::plan::closed;
use crate::precondition::{self, Fill};

/// Size of the file.
const RANGE_BYTES: u64 = 64 << 20;
/// Measured seconds of each cell.
const CELL_S: f64 = 0.2;
/// Share of the requests that make a kind's time.
const FASTEST: f64 = 0.95;
/// Size of the small requests and of the large ones.
const SMALL_BYTES: u32 = 4 << 10;
const LARGE_BYTES: u32 = 256 << 10;

/// Seconds that one measurement takes.
pub const SECONDS: f64 = 3.0 * (CELL_S * (1.0 + WARM_UP_SHARE) + 0.01);

/// Requests that a disk treats alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes below [`Kind::LARGE_FROM_BYTES`].
    SmallWrite,
    /// Writes from there on.
    LargeWrite,
    /// Flushes.
    Flush,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Read, Self::SmallWrite, Self::LargeWrite, Self::Flush];

    /// Halfway between the two sizes that are measured, on a logarithmic scale.
    pub const LARGE_FROM_BYTES: u32 = 32 << 10;

    /// The kind of a request; `None` for trims, which are not measured.
    pub fn of(op: Op, size_bytes: u32) -> Option<Self> {
        match op {
            Op::Read => Some(Self::Read),
            Op::Write if size_bytes < Self::LARGE_FROM_BYTES => Some(Self::SmallWrite),
            Op::Write => Some(Self::LargeWrite),
            Op::Flush => Some(Self::Flush),
            Op::Trim => None,
        }
    }

    /// In words, plural.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::SmallWrite => "small writes",
            Self::LargeWrite => "large writes",
            Self::Flush => "flushes",
        }
    }
}

/// One reference measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Time of each kind, ns; a kind that no request completed of is missing.
    pub times: Vec<(Kind, f64)>,
}

impl Measured {
    /// Time of a kind, ns.
    pub fn of(&self, kind: Kind) -> Option<f64> {
        self.times.iter().find(|(other, _)| *other == kind).map(|(_, time)| *time)
    }
}

/// An open, written file to measure on; removed when dropped.
#[derive(Debug)]
pub struct Reference {
    prepared: Prepared,
    seed: u64,
}

impl Reference {
    /// Creates the file in a directory and writes it; `None` where the user stopped it.
    pub fn open(target: &TargetSpec, seed: u64, sink: &dyn Sink) -> Result<Option<Self>, Error> {
        let need = Need { range_bytes: RANGE_BYTES, keep_file: false, must_write: true };
        let prepared = target::prepare(target, &need)?;
        let fill = Fill { range_bytes: RANGE_BYTES, passes: 1, random: false, seed };
        precondition::fill(&prepared.device, fill, &mut |_| !sink.cancelled())?;
        Ok((!sink.cancelled()).then_some(Self { prepared, seed }))
    }

    /// Measures once; `None` where the user stopped it.
    pub fn measure(&mut self, sink: &dyn Sink) -> Result<Option<Measured>, Error> {
        // Further measurements visit other places.
        self.seed = self.seed.wrapping_add(1);
        measure_on(&self.prepared.device, RANGE_BYTES, self.seed, sink)
    }
}

fn cells() -> [(Cell, &'static [(Op, Kind)]); 3] {
    let small = closed(Order::Sequential, 0.0, SMALL_BYTES, 1);
    [
        (closed(Order::Random, 1.0, SMALL_BYTES, 1), &[(Op::Read, Kind::Read)]),
        (
            Cell { durability: Durability::Flush, ..small },
            &[(Op::Write, Kind::SmallWrite), (Op::Flush, Kind::Flush)],
        ),
        (closed(Order::Sequential, 0.0, LARGE_BYTES, 1), &[(Op::Write, Kind::LargeWrite)]),
    ]
}

fn measure_on<D: Device>(
    device: &D,
    range_bytes: u64,
    seed: u64,
    sink: &dyn Sink,
) -> Result<Option<Measured>, Error> {
    let options = CellOptions {
        range_bytes,
        seconds: CELL_S,
        warm_up_s: CELL_S * WARM_UP_SHARE,
        windows: 1,
        seed,
        realtime: true,
    };
    let mut times = Vec::new();
    for (cell, kinds) in cells() {
        let run = cell::run(device, &cell, &options, &mut |_| !sink.cancelled())?;
        if sink.cancelled() {
            return Ok(None);
        }
        for (op, kind) in kinds {
            let class = run.result.classes.iter().find(|class| class.op == *op);
            times.extend(class.and_then(|class| Some((*kind, fastest_mean_ns(&class.service)?))));
        }
    }
    // What the large writes left in a cache must not be written during what follows.
    device.flush().map_err(|source| io::Error::target("flush", device.path(), source))?;
    Ok(Some(Measured { times }))
}

/// Mean of the fastest 95 %, ns.
fn fastest_mean_ns(distribution: &Distribution) -> Option<f64> {
    let wanted = (distribution.count as f64 * FASTEST).ceil() as u64;
    let (mut left, mut sum) = (wanted, 0u128);
    for &(value, count) in &distribution.buckets {
        let taken = count.min(left);
        sum += u128::from(value) * u128::from(taken);
        left -= taken;
    }
    (wanted > 0).then(|| sum as f64 / wanted as f64)
}

#[cfg(test)]
mod tests {
    use events::Quiet;
    use io::engine::NullDevice;

    use super::*;

    #[test]
    fn every_kind_is_measured_and_every_request_has_one() {
        let device = NullDevice { size_bytes: RANGE_BYTES };
        let found = measure_on(&device, RANGE_BYTES, 1, &Quiet).unwrap().unwrap();
        for kind in Kind::ALL {
            assert!(found.of(kind).is_some_and(|time| time > 0.0), "{kind:?} in {found:?}");
        }
        for (op, size_bytes, kind) in [
            (Op::Read, 1 << 20, Some(Kind::Read)),
            (Op::Write, 16 << 10, Some(Kind::SmallWrite)),
            (Op::Write, 32 << 10, Some(Kind::LargeWrite)),
            (Op::Flush, 0, Some(Kind::Flush)),
            (Op::Trim, 4096, None),
        ] {
            assert_eq!(Kind::of(op, size_bytes), kind);
        }
    }

    #[test]
    fn a_stall_is_not_the_measurement() {
        let buckets = vec![(100, 19), (1_000_000, 1)];
        let distribution =
            Distribution { count: 20, mean_ns: 50_095.0, min_ns: 100, max_ns: 1_000_000, buckets };
        assert_eq!(fastest_mean_ns(&distribution), Some(100.0));
        assert_eq!(fastest_mean_ns(&Distribution::default()), None);
    }
}

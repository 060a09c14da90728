//! What writing does to a device while a trace runs: marks of the bytes that were asked for and of
//! what the flash below did for them.
//!
//! A mark is taken when the warm-up is over and then at equal steps of due time, so that a steady
//! state can be told from what leads to it.

use model::Device;
use serde::{Deserialize, Serialize};

use crate::counters::counters;

/// Counts since the start of the trace, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WearMark {
    /// Seconds from the start of the trace.
    pub at_s: f64,
    /// Bytes that the requests until now write.
    pub written_bytes: u64,
    /// What its flash did until now, where the device has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<FlashMark>,
}

/// Counts of a flash device since the start of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlashMark {
    /// Bytes programmed: for requests, by cleaning, by wear levelling, of the map.
    pub programmed_bytes: u64,
    /// Blocks erased.
    pub erased_blocks: u64,
    /// Erases of the least worn block.
    pub least_worn_erases: u64,
    /// Erases of the most worn block.
    pub most_worn_erases: u64,
    /// Blocks that are used no more.
    pub retired_blocks: u64,
}

impl FlashMark {
    /// Of the counters of a device; `None` where it is not one flash device.
    fn of(device: &dyn Device) -> Option<Self> {
        let counters = counters(device);
        let count = |name: &str| counters.get(name).copied();
        Some(Self {
            programmed_bytes: count("nand_written_bytes")?,
            erased_blocks: count("erased_blocks")?,
            least_worn_erases: count("least_worn_block_erases")?,
            most_worn_erases: count("most_worn_block_erases")?,
            retired_blocks: count("retired_blocks")?,
        })
    }
}

/// Takes marks while a trace runs.
#[derive(Debug)]
pub(crate) struct Marks {
    next_ns: u64,
    step_ns: u64,
    taken: Vec<WearMark>,
}

impl Marks {
    /// Steps between the first mark and the last.
    const STEPS: u64 = 16;

    /// The first mark, at `start_ns`, of a trace that ends at `end_ns`.
    pub(crate) fn new(device: &dyn Device, start_ns: u64, end_ns: u64, written_bytes: u64) -> Self {
        let step_ns = (end_ns.saturating_sub(start_ns) / Self::STEPS).max(1);
        let mut marks = Self { next_ns: start_ns, step_ns, taken: Vec::new() };
        marks.take(device, start_ns, written_bytes);
        marks
    }

    /// After the requests until `at_ns`.
    pub(crate) fn look(&mut self, device: &dyn Device, at_ns: u64, written: impl Fn() -> u64) {
        if at_ns >= self.next_ns {
            self.take(device, at_ns, written());
        }
    }

    #[cold]
    fn take(&mut self, device: &dyn Device, at_ns: u64, written_bytes: u64) {
        let flash = FlashMark::of(device);
        self.taken.push(WearMark { at_s: at_ns as f64 / 1e9, written_bytes, flash });
        let steps = (at_ns.saturating_sub(self.next_ns)) / self.step_ns + 1;
        self.next_ns = self.next_ns.saturating_add(steps.saturating_mul(self.step_ns));
    }

    /// All marks, the last one of the end.
    pub(crate) fn finish(
        mut self,
        device: &dyn Device,
        end_ns: u64,
        written_bytes: u64,
    ) -> Vec<WearMark> {
        if self.taken.last().is_some_and(|last| last.at_s < end_ns as f64 / 1e9) {
            self.take(device, end_ns, written_bytes);
        }
        self.taken
    }
}

//! What PostgreSQL 15 will write to temporary files, from its own rules.
//!
//! Sort (`src/backend/utils/sort/tuplesort.c`): rows and an array of 24 bytes per row fill
//! `work_mem`; each run is then written; runs are merged in balanced passes with as many inputs as
//! the memory has room for 34 blocks, 6 at least and 500 at most; the last merge writes nothing. A
//! row in a run is its columns and 10 bytes; a block holds 8176. Hash join (`nodeHash.c`): the
//! build side is cut into a power of two of batches such that one fits; the first batch stays in
//! memory, the others are written, both sides, as their columns and 20 bytes. Where a batch turns
//! out too large, their number doubles and half of what was written is written again. A merge join
//! sorts both sides. Checked against a server in `tests/it/temp.rs`, and against a table of
//! measurements.

use serde::{Deserialize, Serialize};

/// Bytes of a block.
const BLOCK: u64 = 8192;
/// Bytes of a block of a sort's tape that hold rows.
const TAPE_PAYLOAD: u64 = BLOCK - 16;
/// Bytes of an entry of the array that is sorted.
const ENTRY: u64 = 24;

/// What a statement will write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Blocks of 8 KiB written to temporary files.
    pub written_blocks: u64,
    /// Sort: how often a row is written; join: 1.
    pub passes: u64,
    /// Sort: runs; join: batches.
    pub pieces: u64,
}

/// A sort of `rows` rows whose columns take `data_bytes`, with `memory_bytes` of `work_mem`.
pub fn sort(rows: u64, data_bytes: u64, memory_bytes: u64) -> Prediction {
    let order = (memory_bytes / (34 * BLOCK)).clamp(6, 500);
    let (first, later) = run_rows(data_bytes, memory_bytes, order);
    if rows < first {
        return Prediction { written_blocks: 0, passes: 0, pieces: 0 };
    }
    let runs = 1 + (rows - first).div_ceil(later);
    let (mut left, mut passes, mut blocks) = (runs, 0, 0);
    loop {
        passes += 1;
        blocks += (rows * (data_bytes + 10)).div_ceil(TAPE_PAYLOAD) + left;
        if left <= order {
            return Prediction { written_blocks: blocks, passes, pieces: runs };
        }
        left = left.div_ceil(order);
    }
}

/// Rows of the first run and of each later one, which has the memory of the tapes' buffers less.
fn run_rows(data_bytes: u64, memory_bytes: u64, order: u64) -> (u64, u64) {
    // The row with its header, rounded to 8, in a chunk with a header of 24.
    let row = (16 + data_bytes).next_multiple_of(8) + 24;
    // The array starts with 1024 entries and doubles while no more than half of the memory is used;
    // its last growth fills the memory in proportion.
    let mut entries = 1024u64;
    loop {
        let filled = entries - 1;
        let used = filled * row + entries * ENTRY;
        if used > memory_bytes {
            break;
        }
        let last = used > memory_bytes - used;
        let grown = if last {
            (entries as f64 * (memory_bytes as f64 / used as f64)) as u64
        } else {
            entries * 2
        };
        if grown <= entries || (grown - entries) * ENTRY > memory_bytes - used {
            break;
        }
        entries = grown;
        if last {
            break;
        }
    }
    let array = entries * ENTRY;
    let fit = |memory: u64| (memory.saturating_sub(array) / row + 1).min(entries).max(1);
    let tapes = order * BLOCK;
    let later = if tapes + array < memory_bytes { memory_bytes - tapes } else { memory_bytes };
    (fit(memory_bytes), fit(later))
}

/// A hash join of `build` with `probe` rows of `data_bytes` each, `hash_mem_multiplier` being 1.
pub fn hash_join(build: u64, probe: u64, data_bytes: u64, memory_bytes: u64) -> Prediction {
    let tuple = 32 + data_bytes.next_multiple_of(8);
    // A fiftieth is kept for frequent values.
    let table = memory_bytes - memory_bytes / 50;
    let size = build * tuple;
    let all_buckets = build.next_power_of_two() * 8;
    if size + all_buckets <= table {
        return Prediction { written_blocks: 0, passes: 1, pieces: 1 };
    }
    let buckets = (table / (tuple + 8)).next_power_of_two() * 8;
    let batches = size.div_ceil((table - buckets.min(table / 2)).max(1)).next_power_of_two().max(2);
    let bytes = (build + probe) * (data_bytes + 20);
    let mut spilled = bytes - bytes / batches;
    let mut pieces = batches;
    if largest_batch(build, batches) * (data_bytes + 32) as f64 + buckets as f64
        > memory_bytes as f64
    {
        pieces *= 2;
        spilled += spilled / 2;
    }
    // Each batch of each side ends in a block that is half full.
    let written_blocks = spilled.div_ceil(BLOCK) + pieces - 1;
    Prediction { written_blocks, passes: 1, pieces }
}

/// Rows of the largest of this many batches, as random hashes have it: the mean and the expected
/// maximum of that many draws from a normal distribution.
fn largest_batch(rows: u64, batches: u64) -> f64 {
    let mean = rows as f64 / batches as f64;
    mean + (2.0 * (batches as f64).ln() * mean).sqrt()
}

/// A merge join of two tables of `rows` rows, both sorted for it.
pub fn merge_join(rows: u64, data_bytes: u64, memory_bytes: u64) -> Prediction {
    let side = sort(rows, data_bytes, memory_bytes);
    Prediction { written_blocks: 2 * side.written_blocks, ..side }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Temporary blocks written by PostgreSQL 15.18: 2 million rows, columns of 93 bytes.
    const SORTED: [(u64, u64); 6] =
        [(1, 101_119), (2, 75_753), (4, 50_481), (8, 50_443), (16, 25_225), (64, 25_201)];
    const JOINED: [(u64, u64); 6] =
        [(1, 55_128), (2, 54_734), (4, 54_376), (8, 53_890), (16, 53_004), (64, 47_848)];

    #[track_caller]
    fn check(prediction: Prediction, measured: u64) {
        let ratio = prediction.written_blocks as f64 / measured as f64;
        assert!((ratio - 1.0).abs() < 0.05, "{prediction:?}, measured {measured}");
    }

    #[test]
    fn measured_sorts_are_predicted_within_five_percent() {
        for (mib, blocks) in SORTED {
            check(sort(2_000_000, 93, mib << 20), blocks);
        }
        let passes = SORTED.map(|(mib, _)| sort(2_000_000, 93, mib << 20).passes);
        assert_eq!(passes, [4, 3, 2, 2, 1, 1]);
    }

    #[test]
    fn measured_joins_are_predicted_within_five_percent() {
        for (mib, blocks) in JOINED {
            check(hash_join(2_000_000, 2_000_000, 93, mib << 20), blocks);
        }
    }

    #[test]
    fn batches_that_are_too_tight_double() {
        // 60,000 rows of 93 bytes in 128 KiB: 64 batches of 938 rows, the largest about 1026, which
        // with 8 KiB of buckets is more than 131,072 bytes. The server made 128 and wrote 2603.
        let tight = hash_join(60_000, 60_000, 93, 128 << 10);
        assert_eq!(tight.pieces, 128);
        check(tight, 2603);
    }

    #[test]
    fn what_fits_is_not_written() {
        assert_eq!(sort(1000, 93, 4 << 20).written_blocks, 0);
        assert_eq!(hash_join(1000, 1_000_000, 93, 4 << 20).written_blocks, 0);
        assert_eq!(sort(0, 93, 1 << 20).written_blocks, 0);
    }
}

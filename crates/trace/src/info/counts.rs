//! How many requests of which kind, how large, how aligned.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ratio;
use crate::{Op, Trace};

/// Sizes listed per stream.
const TOP_SIZES: usize = 8;
/// Multiples of a sector up to 128 KiB are counted in a table, the rest in a tree.
const SECTOR_BYTES: u32 = 512;
const SECTORS_COUNTED: usize = 257;

/// Counts of one stream. Means and shares of nothing are 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests of any kind.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Reads over requests.
    pub read_share: f64,
    /// Writes over requests.
    pub write_share: f64,
    /// Flushes over requests.
    pub flush_share: f64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Mean size of reads and writes, bytes.
    pub mean_size_bytes: f64,
    /// The most frequent sizes of reads and writes, most frequent first, at most eight.
    pub sizes: Vec<SizeCount>,
    /// All reads and writes by size: each class holds the sizes up to its own and above half of it.
    pub size_classes: Vec<SizeCount>,
    /// Share of reads and writes whose offset and length are multiples of 4 KiB.
    pub aligned_share: f64,
    /// The same for 8 KiB.
    pub aligned_8k_share: f64,
    /// The same for 16 KiB.
    pub aligned_16k_share: f64,
}

/// How often a size occurs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeCount {
    /// Bytes per request.
    pub size_bytes: u64,
    /// Reads of that size.
    pub reads: u64,
    /// Writes of that size.
    pub writes: u64,
}

/// Counts while the requests go by.
#[derive(Clone, Default)]
pub(super) struct Gather {
    counts: [u64; Op::ALL.len()],
    bytes: [u64; Op::ALL.len()],
    /// (reads, writes) by whole sectors.
    sectors: Vec<[u64; 2]>,
    others: BTreeMap<u32, [u64; 2]>,
    /// Reads and writes aligned to 4, 8 and 16 KiB.
    aligned: [u64; 3],
}

impl Gather {
    pub(super) fn add(&mut self, trace: &Trace, requests: impl Iterator<Item = usize>) {
        for index in requests {
            let (op, len, offset) = (trace.op[index], trace.len[index], trace.offset[index]);
            self.counts[op as usize] += 1;
            self.bytes[op as usize] += u64::from(len);
            if !matches!(op, Op::Read | Op::Write) {
                continue;
            }
            self.size(len)[op as usize] += 1;
            let zeros = (offset | u64::from(len)).trailing_zeros();
            for (count, bits) in self.aligned.iter_mut().zip(12..) {
                *count += u64::from(zeros >= bits);
            }
        }
    }

    #[inline]
    fn size(&mut self, len: u32) -> &mut [u64; 2] {
        let sectors = (len / SECTOR_BYTES) as usize;
        if !len.is_multiple_of(SECTOR_BYTES) || sectors >= SECTORS_COUNTED {
            return self.others.entry(len).or_default();
        }
        if self.sectors.is_empty() {
            self.sectors.resize(SECTORS_COUNTED, [0; 2]);
        }
        &mut self.sectors[sectors]
    }

    pub(super) fn finish(self) -> Counts {
        let [reads, writes, trims, flushes] = self.counts;
        let [read_bytes, write_bytes, ..] = self.bytes;
        let requests = reads + writes + trims + flushes;
        let by_sectors = self.sectors.iter().zip(0..).map(|(count, at)| (at * SECTOR_BYTES, count));
        let mut sizes: Vec<SizeCount> = by_sectors
            .chain(self.others.iter().map(|(size, count)| (*size, count)))
            .filter(|(_, count)| **count != [0; 2])
            .map(|(size, &[reads, writes])| SizeCount { size_bytes: size.into(), reads, writes })
            .collect();
        let mut classes: BTreeMap<u64, SizeCount> = BTreeMap::new();
        for size in &sizes {
            let size_bytes = size.size_bytes.next_power_of_two();
            let class = classes.entry(size_bytes).or_default();
            class.size_bytes = size_bytes;
            class.reads += size.reads;
            class.writes += size.writes;
        }
        sizes.sort_by_key(|size| (std::cmp::Reverse(size.reads + size.writes), size.size_bytes));
        sizes.truncate(TOP_SIZES);
        let [aligned_share, aligned_8k_share, aligned_16k_share] =
            self.aligned.map(|count| ratio(count as f64, (reads + writes) as f64));
        Counts {
            requests,
            reads,
            writes,
            trims,
            flushes,
            read_share: ratio(reads as f64, requests as f64),
            write_share: ratio(writes as f64, requests as f64),
            flush_share: ratio(flushes as f64, requests as f64),
            read_bytes,
            write_bytes,
            mean_size_bytes: ratio((read_bytes + write_bytes) as f64, (reads + writes) as f64),
            sizes,
            size_classes: classes.into_values().collect(),
            aligned_share,
            aligned_8k_share,
            aligned_16k_share,
        }
    }
}

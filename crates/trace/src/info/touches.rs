//! Walks the blocks that reads and writes touch, a batch at a time, so that whoever looks them up
//! can fetch many at once.

use std::ops::Range;

use super::BLOCK_BYTES;
use crate::{Op, Trace};

/// Touches handed over at once: as many as a processor has in flight, times a few.
pub(crate) const BATCH: usize = 64;

/// Hands the blocks of the requests in `range` that `keep` wants, in order, with the index of the
/// request of each; returns how many touches there were, wanted or not.
#[inline]
pub(crate) fn for_batches(
    trace: &Trace,
    range: Range<usize>,
    keep: impl Fn(u64) -> bool,
    mut take: impl FnMut(&[u64], &[usize]),
) -> u64 {
    let mut blocks = [0; BATCH];
    let mut requests = [0; BATCH];
    let mut filled = 0;
    let mut touches = 0;
    let columns = trace.offset[range.clone()].iter().zip(&trace.len[range.clone()]);
    for ((index, (&offset, &len)), &op) in range.clone().zip(columns).zip(&trace.op[range]) {
        if len == 0 || !matches!(op, Op::Read | Op::Write) {
            continue;
        }
        let first = offset / BLOCK_BYTES;
        let last = (offset + (u64::from(len) - 1)) / BLOCK_BYTES;
        touches += last - first + 1;
        for block in first..=last {
            if keep(block) {
                blocks[filled] = block;
                requests[filled] = index;
                filled += 1;
                if filled == BATCH {
                    take(&blocks, &requests);
                    filled = 0;
                }
            }
        }
    }
    take(&blocks[..filled], &requests[..filled]);
    touches
}

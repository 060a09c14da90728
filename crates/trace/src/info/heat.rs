//! Where requests go over time: a grid of addresses by time, 64 by 64.
//!
//! Addresses run from the first byte that a read or write starts at to the last start; a request
//! counts once, in the cell of its first byte. Trims and flushes are left out.

use serde::{Deserialize, Serialize};

use crate::{Op, Trace};

/// Cells along each side.
const SIDE: usize = 64;

/// Reads and writes by address and time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// Address of the first row, bytes.
    pub first_byte: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Seconds of a column.
    pub column_s: f64,
    /// Reads: rows by ascending address, each with its columns by ascending time.
    pub reads: Vec<Vec<u64>>,
    /// Writes, likewise.
    pub writes: Vec<Vec<u64>>,
}

/// First and last start of reads and writes of `trace`, taken together with those known.
pub(super) fn ends(trace: &Trace, known: Option<(u64, u64)>) -> Option<(u64, u64)> {
    let data = data(trace).map(|((_, offset), _)| (*offset, *offset));
    known.into_iter().chain(data).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

fn data(trace: &Trace) -> impl Iterator<Item = ((&Op, &u64), &u64)> {
    let pairs = trace.op.iter().zip(&trace.offset).zip(&trace.due);
    pairs.filter(|((op, _), _)| matches!(op, Op::Read | Op::Write))
}

/// Counts while the requests go by.
pub(super) struct Gather {
    first_byte: u64,
    row_bytes: u64,
    column_ns: u64,
    columns: usize,
    cells: [Vec<u64>; 2],
}

impl Gather {
    /// Of a trace this long, whose reads and writes start between `ends`.
    pub(super) fn new((first_byte, last_byte): (u64, u64), span_ns: u64) -> Self {
        // Whole blocks, so that labels are short.
        let row_bytes = ((last_byte - first_byte) / SIDE as u64 + 1)
            .checked_next_multiple_of(super::BLOCK_BYTES)
            .unwrap_or(u64::MAX);
        let column_ns = span_ns / SIDE as u64 + 1;
        let rows = ((last_byte - first_byte) / row_bytes + 1) as usize;
        let columns = (span_ns / column_ns + 1) as usize;
        let cells = [vec![0u64; rows * columns], vec![0u64; rows * columns]];
        Self { first_byte, row_bytes, column_ns, columns, cells }
    }

    pub(super) fn add(&mut self, trace: &Trace) {
        for ((op, offset), due) in data(trace) {
            let row = ((offset - self.first_byte) / self.row_bytes) as usize;
            let column = (due / self.column_ns) as usize;
            self.cells[*op as usize][row * self.columns + column] += 1;
        }
    }

    pub(super) fn finish(self) -> HeatMap {
        let Self { first_byte, row_bytes, column_ns, columns, cells } = self;
        let [reads, writes] =
            cells.map(|cells| cells.chunks(columns).map(<[u64]>::to_vec).collect());
        HeatMap { first_byte, row_bytes, column_s: column_ns as f64 / 1e9, reads, writes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::tests::trace;

    /// Empty where nothing is read or written.
    fn heat_map(trace: &Trace) -> HeatMap {
        let Some(ends) = ends(trace, None) else { return HeatMap::default() };
        let mut map = Gather::new(ends, trace.span().0);
        map.add(trace);
        map.finish()
    }

    #[test]
    fn every_request_is_in_its_cell() {
        let mib = 1 << 20;
        let rows: Vec<_> = (0..640)
            .map(|i| (i * 1000, mib + i * 4096, 4096, [Op::Read, Op::Write][i as usize % 2], 0))
            .chain([(640_000, 0, 0, Op::Flush, 0), (640_000, 5 * mib, 4096, Op::Trim, 0)])
            .collect();
        let map = heat_map(&trace(&rows));
        assert_eq!((map.first_byte, map.row_bytes), (mib, 40_960));
        assert_eq!((map.reads.len(), map.reads[0].len()), (64, 64));
        // Ten requests per row and column: the diagonal holds five of each kind but for edges.
        let sum = |cells: &[Vec<u64>]| cells.iter().flatten().sum::<u64>();
        assert_eq!((sum(&map.reads), sum(&map.writes)), (320, 320));
        assert!((0..63).all(|i| map.reads[i][i] >= 4), "{:?}", map.reads);
    }

    #[test]
    fn extremes_have_a_map_too() {
        assert_eq!(heat_map(&Trace::default()), HeatMap::default());
        let far = u64::MAX - 4095;
        let map = heat_map(&trace(&[(0, 0, 512, Op::Read, 0), (9, far, 512, Op::Write, 0)]));
        assert_eq!((map.reads[0][0], map.writes.last().and_then(|row| row.last())), (1, Some(&1)));
        let one = heat_map(&trace(&[(0, 7, 512, Op::Read, 0)]));
        assert_eq!((one.reads.len(), one.reads[0].len()), (1, 1));
    }
}

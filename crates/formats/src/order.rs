//! Rows in the order of time, in bounded memory.
//!
//! Several archives are not sorted (SYSTOR'17, Tencent CBS) or nearly are (MSR Cambridge). Sorting
//! is stable, so that requests of the same time keep their order in the file. Blocks of
//! [`BLOCK_ROWS`] are sorted through an index; neighbouring blocks are then merged in place by
//! rotations (Kim and Kutzner, "Stable Minimum Storage Merging by Symmetric Comparisons", ESA
//! 2004), which touch only rows that are out of place. Beyond the columns that takes 12 to 16 bytes
//! per row of one block, whatever the size of the trace.
//!
//! Tests: against the standard library's stable sort, for blocks of a few rows.

use std::ops::Range;

use super::batch::Batch;

/// Rows sorted through an index at a time: 16 bytes each are 64 MiB.
const BLOCK_ROWS: usize = 4 << 20;

/// Sorts and says how many rows stood behind a later one; in front of them stood one of `latest`.
pub(super) fn sort(batch: &mut Batch, latest: u64) -> u64 {
    sort_in_blocks(batch, BLOCK_ROWS, latest)
}

fn sort_in_blocks(batch: &mut Batch, block_rows: usize, latest: u64) -> u64 {
    let out_of_order = out_of_order(&batch.due, latest);
    if out_of_order == 0 {
        return 0;
    }
    let count = batch.count();
    for start in (0..count).step_by(block_rows) {
        sort_block(batch, start..count.min(start + block_rows));
    }
    let mut width = block_rows;
    while width < count {
        for start in (0..count - width).step_by(2 * width) {
            merge(batch, start, start + width, count.min(start + 2 * width));
        }
        width *= 2;
    }
    out_of_order
}

/// Rows that stand behind a later one.
fn out_of_order(due: &[u64], mut latest: u64) -> u64 {
    let mut count = 0;
    for due in due {
        count += u64::from(*due < latest);
        latest = latest.max(*due);
    }
    count
}

fn sort_block(batch: &mut Batch, rows: Range<usize>) {
    let due = &batch.due[rows.clone()];
    if due.is_sorted() {
        return;
    }
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    order.sort_by_key(|index| due[*index as usize]);
    permute(&mut batch.due[rows.clone()], &order);
    permute(&mut batch.offset[rows.clone()], &order);
    permute(&mut batch.len[rows.clone()], &order);
    permute(&mut batch.op[rows.clone()], &order);
    permute(&mut batch.stream[rows.clone()], &order);
    if batch.has_service() {
        permute(&mut batch.service[rows], &order);
    }
}

fn permute<T: Copy>(column: &mut [T], order: &[u32]) {
    let moved: Vec<T> = order.iter().map(|index| column[*index as usize]).collect();
    column.copy_from_slice(&moved);
}

/// Merges `start..middle` and `middle..end`, both sorted. Recursion is as deep as the logarithm of
/// the rows.
fn merge(batch: &mut Batch, start: usize, middle: usize, end: usize) {
    let due = &batch.due;
    if start >= middle || middle >= end || due[middle - 1] <= due[middle] {
        return;
    }
    // Rows in place at either end stay there.
    let start = start + due[start..middle].partition_point(|due| *due <= batch.due[middle]);
    let end = middle + due[middle..end].partition_point(|due| *due < batch.due[middle - 1]);
    if end - start == 2 {
        rotate(batch, start, middle, end);
        return;
    }
    // Cut the longer side in half and the other where that row belongs; swap the inner parts.
    let (left, right) = if middle - start >= end - middle {
        let left = start + (middle - start) / 2;
        (left, middle + due[middle..end].partition_point(|due| *due < batch.due[left]))
    } else {
        let right = middle + (end - middle) / 2;
        (start + due[start..middle].partition_point(|due| *due <= batch.due[right]), right)
    };
    rotate(batch, left, middle, right);
    let cut = left + (right - middle);
    merge(batch, start, left, cut);
    merge(batch, cut, right, end);
}

/// Swaps `start..middle` with `middle..end`.
fn rotate(batch: &mut Batch, start: usize, middle: usize, end: usize) {
    let by = middle - start;
    batch.due[start..end].rotate_left(by);
    batch.offset[start..end].rotate_left(by);
    batch.len[start..end].rotate_left(by);
    batch.op[start..end].rotate_left(by);
    batch.stream[start..end].rotate_left(by);
    if batch.has_service() {
        batch.service[start..end].rotate_left(by);
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::Row;
    use super::*;
    use proptest::prelude::*;
    use trace::Op;

    /// Rows whose every field tells their place in the input.
    fn batch(dues: &[u64], has_service: bool) -> Batch {
        let mut batch = Batch::new(super::super::Streams::new(""), has_service);
        for (index, due_ns) in dues.iter().enumerate() {
            let n = index as u64;
            let op = Op::ALL[index % 4];
            let (stream, service_ns) = (index as u16, n + 7);
            batch.push(Row {
                due_ns: *due_ns,
                offset_bytes: n * 512,
                len_bytes: index as u32,
                op,
                stream,
                service_ns,
            });
        }
        batch
    }

    fn places(batch: &Batch) -> Vec<usize> {
        let by_len: Vec<usize> = batch.len.iter().map(|len| *len as usize).collect();
        for (row, place) in by_len.iter().enumerate() {
            assert_eq!(batch.offset[row], *place as u64 * 512);
            assert_eq!((batch.op[row], batch.stream[row]), (Op::ALL[place % 4], *place as u16));
            assert!(!batch.has_service() || batch.service[row] == *place as u64 + 7);
        }
        by_len
    }

    #[test]
    fn rows_behind_a_later_one_are_counted() {
        for (dues, expected) in
            [(&[][..], 0), (&[1, 1, 2], 0), (&[3, 1, 2, 3, 4], 2), (&[5, 4, 3], 2)]
        {
            assert_eq!(sort(&mut batch(dues, false), 0), expected, "{dues:?}");
        }
    }

    proptest! {
        #[test]
        fn rows_are_sorted_as_the_standard_library_does(
            dues in prop::collection::vec(0u64..40, 0..200), block in 1usize..70, service: bool,
        ) {
            let mut sorted = batch(&dues, service);
            sort_in_blocks(&mut sorted, block, 0);
            let mut expected: Vec<usize> = (0..dues.len()).collect();
            expected.sort_by_key(|place| dues[*place]);
            prop_assert_eq!(places(&sorted), expected);
            prop_assert!(sorted.due.is_sorted());
        }
    }
}

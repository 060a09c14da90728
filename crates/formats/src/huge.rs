//! Large pages for large columns.
//!
//! A trace of a hundred million requests is 2.3 GB of columns. Touched for the first time in pages
//! of 4 KiB, the kernel takes as long to hand that memory out as we to fill it (4.8 of 16.4 ns a
//! request on the machine where this was written); in pages of 2 MiB it takes a fifth. Where
//! transparent huge pages are `always` nothing changes, where they are `never` nothing happens.
//!
//! Tests: the content of buffers of any size and alignment stays
//! as it was.

#![allow(unsafe_code)]

/// Size of the pages asked for: those of x86-64, and of aarch64 with small base pages. Where they
/// have another size the advice applies to what fits.
const PAGE_BYTES: usize = 2 << 20;

/// Room for `count` values, not touched yet, in large pages where the kernel has them.
pub(crate) fn with_capacity<T>(count: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(count);
    advise(values.spare_capacity_mut());
    values
}

/// The same values, in large pages where the kernel has them and none was touched yet: for
/// `vec![0; count]`.
pub(crate) fn in_large_pages<T>(mut values: Vec<T>) -> Vec<T> {
    advise(&mut values);
    values
}

/// Asks for large pages behind the free part of a column, which is going to be filled: the page
/// faults of small ones take as long as parsing.
pub(super) fn expect_filled<T>(column: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE_BYTES: usize = 4096;
        const LARGE_PAGE_BYTES: usize = 2 << 20;
        let room = column.spare_capacity_mut();
        let start = room.as_mut_ptr().addr().next_multiple_of(PAGE_BYTES);
        let end = (room.as_mut_ptr().addr() + size_of_val(room)) / PAGE_BYTES * PAGE_BYTES;
        if end < start + LARGE_PAGE_BYTES {
            return;
        }
        let start = room.as_mut_ptr().with_addr(start).cast();
        // SAFETY: the range lies within the spare capacity of the vector, memory that it owns; the
        // advice changes how the kernel backs it, never what it holds. A kernel that knows no large
        // pages refuses, which changes nothing.
        let _ = unsafe {
            rustix::mm::madvise(start, end - start.addr(), rustix::mm::Advice::LinuxHugepage)
        };
    }
}

#[cfg(target_os = "linux")]
fn advise<T>(values: &mut [T]) {
    let start = values.as_mut_ptr().addr();
    let first = start.next_multiple_of(PAGE_BYTES);
    let end = (start + size_of_val(values)) & !(PAGE_BYTES - 1);
    if end <= first {
        return;
    }
    let at = values.as_mut_ptr().wrapping_byte_add(first - start);
    // SAFETY: the range lies within `values`, which we have exclusively. The advice changes neither
    // content nor validity of the memory, only how the kernel backs it; that it may be refused does
    // not matter.
    let _ =
        unsafe { rustix::mm::madvise(at.cast(), end - first, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_values: &mut [T]) {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn content_stays(count in 0usize..3 * PAGE_BYTES, start in 0usize..5000, byte: u8) {
            let mut values = vec![byte; count];
            let from = start.min(count);
            advise(&mut values[from..]);
            prop_assert!(values.iter().all(|value| *value == byte));
            let mut values = in_large_pages(vec![0u64; count / 8]);
            prop_assert!(values.iter().all(|value| *value == 0));
            values.fill(u64::MAX);
            let mut more: Vec<u64> = with_capacity(values.len());
            prop_assert!(more.capacity() >= values.len());
            more.extend(&values);
            prop_assert_eq!(more, values);
        }
    }
}

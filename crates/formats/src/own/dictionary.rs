//! `RLE_DICTIONARY` of the Parquet specification: columns with few distinct values (`len_bytes`,
//! `op`, `stream`, `actor`).
//!
//! A page holds the width of an index, then one run: bit-packed indices of 1, 2, 4 or 8 bits, or,
//! where the chunk has a single value, that value's index repeated. Whole fractions of a byte let a
//! reader turn each byte into 8, 4, 2 or 1 values with one look into a table.
//!
//! Tests: round trips at every width, more values than fit, damage.

use super::delta::{take_varint, varint};

/// Most values of a dictionary.
pub(super) const MOST: usize = 256;
/// Slots of the table that finds a value's index; a power of two well above [`MOST`].
const SLOTS: usize = 1024;
const FREE: u16 = u16::MAX;

/// The distinct values of a chunk, in the order of their first occurrence.
pub(super) struct Dictionary {
    pub(super) values: Vec<u32>,
    slots: Vec<u16>,
}

impl Dictionary {
    /// The dictionary of `values`, or `None` where they have more than [`MOST`] distinct ones.
    pub(super) fn of(values: impl Iterator<Item = u32>) -> Option<Self> {
        let mut dictionary = Self { values: Vec::new(), slots: vec![FREE; SLOTS] };
        let mut last = None;
        for value in values {
            if last == Some(value) {
                continue;
            }
            last = Some(value);
            let slot = dictionary.slot(value);
            if dictionary.slots[slot] == FREE {
                if dictionary.values.len() == MOST {
                    return None;
                }
                dictionary.slots[slot] = dictionary.values.len() as u16;
                dictionary.values.push(value);
            }
        }
        Some(dictionary)
    }

    /// Where the value is, or where it would go.
    fn slot(&self, value: u32) -> usize {
        let mut slot = (value.wrapping_mul(0x9e37_79b9) >> 22) as usize % SLOTS;
        while self.slots[slot] != FREE && self.values[usize::from(self.slots[slot])] != value {
            slot = (slot + 1) % SLOTS;
        }
        slot
    }

    /// Bits of an index.
    pub(super) fn width(&self) -> u8 {
        width(self.values.len())
    }

    /// Appends a page of `values`, all of which are in the dictionary.
    pub(super) fn encode(&self, values: impl ExactSizeIterator<Item = u32>, out: &mut Vec<u8>) {
        out.push(self.width());
        if self.values.len() <= 1 {
            varint((values.len() as u64) << 1, out);
            out.push(0);
            return;
        }
        varint((values.len().div_ceil(8) as u64) << 1 | 1, out);
        let width = u32::from(self.width());
        let length = values.len();
        let (mut byte, mut filled) = (0, 0);
        let indices = values.map(|value| self.slots[self.slot(value)] as u8);
        for index in indices.chain(std::iter::repeat_n(0, length.next_multiple_of(8) - length)) {
            byte |= index << filled;
            filled += width;
            if filled == 8 {
                out.push(byte);
                (byte, filled) = (0, 0);
            }
        }
    }
}

/// Bits of an index into a dictionary of this many values.
fn width(count: usize) -> u8 {
    match count {
        0..=2 => 1,
        3..=4 => 2,
        5..=16 => 4,
        _ => 8,
    }
}

/// Most bytes that a page of `count` values takes.
pub(super) fn bound(count: usize) -> usize {
    count.next_multiple_of(8) + 16
}

/// What each byte of a page stands for.
pub(super) enum Table<V> {
    /// The chunk has one value (or none).
    One(V),
    /// Eight indices of a bit.
    Bit(Box<[[V; 8]; 256]>),
    /// Four of two bits.
    Two(Box<[[V; 4]; 256]>),
    /// Two of four bits.
    Four(Box<[[V; 2]; 256]>),
    /// One of eight bits.
    Eight(Box<[[V; 1]; 256]>),
}

impl<V: Copy> Table<V> {
    /// The table of a dictionary; `filler` stands in where an index has no value, and where it has
    /// none at all. `None` where there are more than [`MOST`] values.
    pub(super) fn new(values: &[V], filler: V) -> Option<Self> {
        if values.len() > MOST {
            return None;
        }
        Some(match (values, width(values.len())) {
            ([], _) => Self::One(filler),
            ([one], _) => Self::One(*one),
            (_, 1) => Self::Bit(Box::new(table(values, filler))),
            (_, 2) => Self::Two(Box::new(table(values, filler))),
            (_, 4) => Self::Four(Box::new(table(values, filler))),
            _ => Self::Eight(Box::new(table(values, filler))),
        })
    }

    /// Reads a page into `out`. `None` where it is damaged.
    pub(super) fn decode(&self, page: &[u8], out: &mut [V]) -> Option<()> {
        let (width, mut rest) = page.split_first()?;
        let run = take_varint(&mut rest)?;
        if let Self::One(value) = self {
            out.fill(*value);
            return (run == (out.len() as u64) << 1 && rest == [0]).then_some(());
        }
        let fits = run == (out.len().div_ceil(8) as u64) << 1 | 1
            && rest.len() == out.len().div_ceil(8) * usize::from(*width);
        match (self, *width) {
            _ if !fits => return None,
            (Self::Bit(table), 1) => expand(rest, table, out),
            (Self::Two(table), 2) => expand(rest, table, out),
            (Self::Four(table), 4) => expand(rest, table, out),
            (Self::Eight(table), 8) => expand(rest, table, out),
            _ => return None,
        }
        Some(())
    }
}

fn table<V: Copy, const N: usize>(values: &[V], filler: V) -> [[V; N]; 256] {
    let width = 8 / N;
    let mask = (1usize << width) - 1;
    let mut table = [[filler; N]; 256];
    for (byte, entry) in table.iter_mut().enumerate() {
        for (place, value) in entry.iter_mut().enumerate() {
            *value = values.get(byte >> (place * width) & mask).copied().unwrap_or(filler);
        }
    }
    table
}

#[inline]
fn expand<V: Copy, const N: usize>(bytes: &[u8], table: &[[V; N]; 256], out: &mut [V]) {
    let (whole, rest) = out.as_chunks_mut::<N>();
    for (values, byte) in whole.iter_mut().zip(bytes) {
        *values = table[usize::from(*byte)];
    }
    if let Some(byte) = bytes.get(whole.len()) {
        let count = rest.len();
        rest.copy_from_slice(&table[usize::from(*byte)][..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(values: &[u32]) -> usize {
        let dictionary = Dictionary::of(values.iter().copied()).expect("few values");
        let mut page = Vec::new();
        dictionary.encode(values.iter().copied(), &mut page);
        assert!(page.len() <= bound(values.len()));
        let table = Table::new(&dictionary.values, 0).expect("few values");
        let mut out = vec![0; values.len()];
        table.decode(&page, &mut out).expect("decodes");
        assert_eq!(out, values);
        page.len()
    }

    #[test]
    fn sizes_by_hand() {
        assert_eq!(check(&[]), 3);
        assert_eq!(check(&[7; 1000]), 1 + 2 + 1);
        assert_eq!(check(&[7, 8, 7]), 1 + 1 + 1);
        let of = |distinct: u32| (0..800).map(|i| i % distinct * 512).collect::<Vec<u32>>();
        for (distinct, bits) in [(2, 1), (3, 2), (4, 2), (5, 4), (16, 4), (17, 8), (256, 8)] {
            assert_eq!(check(&of(distinct)), 1 + 2 + 100 * bits, "{distinct}");
        }
        assert!(Dictionary::of(of(257).into_iter()).is_none());
    }

    #[test]
    fn a_page_of_another_width_or_count_is_refused() {
        let dictionary = Dictionary::of([1, 2, 3].into_iter()).expect("few");
        let mut page = Vec::new();
        dictionary.encode([3, 2, 1].into_iter(), &mut page);
        let decode = |values: &[u32], page: &[u8], count: usize| {
            Table::new(values, 0).expect("few").decode(page, &mut vec![0; count])
        };
        assert_eq!(decode(&[1, 2, 3], &page, 3), Some(()));
        assert_eq!(decode(&[1, 2], &page, 3), None);
        assert_eq!(decode(&[1], &page, 3), None);
        assert_eq!(decode(&[1, 2, 3], &page, 9), None);
        assert_eq!(decode(&[1, 2, 3], &page[..page.len() - 1], 3), None);
        assert!(Table::new(&[0u8; 257], 0).is_none());
    }

    proptest! {
        #[test]
        fn any_values_come_back(values in prop::collection::vec(any::<u32>(), 0..200)) {
            check(&values);
        }

        #[test]
        fn damage_never_panics(
            page: Vec<u8>,
            values in prop::collection::vec(any::<u32>(), 0..20),
            count in 0usize..100,
        ) {
            _ = Table::new(&values, 0).expect("few").decode(&page, &mut vec![0; count]);
        }
    }
}

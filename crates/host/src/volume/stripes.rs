//! What md's stripe cache knows: blocks of parity columns that need no read.

use std::ops::Range;

use super::lru::Lru;

/// Blocks known by column, and columns in work.
///
/// A column is a page of every member at one place (`struct stripe_head`, drivers/md/raid5.c). Its
/// blocks stay known after a write, until other columns have taken its room. Two writes of one
/// column follow one another: the columns of a request in work are held.
#[derive(Clone, Debug)]
pub struct Stripes {
    known: Lru<u64>,
    /// Columns in work, with who works on them.
    held: Vec<(Range<u64>, u32)>,
}

impl Stripes {
    /// Room for `columns`.
    pub fn new(columns: usize) -> Self {
        Self { known: Lru::new(columns), held: Vec::new() }
    }

    /// The members whose blocks of `column` are known, as bits.
    pub fn known(&self, column: u64) -> u64 {
        self.known.peek(column).copied().unwrap_or(0)
    }

    /// From now on the blocks of the members `blocks` are known.
    pub fn learn(&mut self, column: u64, blocks: u64) {
        if let Some(known) = self.known.touch(column) {
            *known |= blocks;
        } else {
            self.known.insert(column, blocks);
        }
    }

    /// Nothing is known of `column` any more.
    pub fn forget(&mut self, column: u64) {
        self.known.remove(column);
    }

    /// Whether somebody works on any of `columns`.
    pub fn is_held(&self, columns: &Range<u64>) -> bool {
        self.held.iter().any(|(held, _)| held.start < columns.end && columns.start < held.end)
    }

    /// `by` works on `columns`.
    pub fn hold(&mut self, columns: Range<u64>, by: u32) {
        self.held.push((columns, by));
    }

    /// `by` is done.
    pub fn release(&mut self, by: u32) {
        self.held.retain(|(_, holder)| *holder != by);
    }
}

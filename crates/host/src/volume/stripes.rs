//! What md's stripe cache knows: blocks of parity columns that need no read.

use super::lru::Lru;

/// Blocks known by column.
///
/// A column is a page of every member at one place (`struct stripe_head`, drivers/md/raid5.c). Its
/// blocks stay known after a write, until other columns have taken its room.
#[derive(Clone, Debug)]
pub struct Stripes {
    known: Lru<u64>,
}

impl Stripes {
    /// Room for `columns`.
    pub fn new(columns: usize) -> Self {
        Self { known: Lru::new(columns) }
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
}

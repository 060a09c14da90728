//! The stack distance of every touch of a block: how many other blocks were touched since.
//!
//! An LRU cache of `c` blocks hits exactly the touches whose distance is below `c` (Mattson,
//! Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal
//! 9(2), 1970), so the distances give every cache size at once. Counting instead of walking a stack
//! follows Olken ("Efficient methods for calculating the success function of fixed space
//! replacement policies", LBL-12370, 1981), with a bitmap in the place of his tree: every touch has
//! a position in time, the bit of a position is set while it is the last touch of its block, and
//! the distance is the number of bits set behind the previous position. The bits are counted by
//! lines of 512: a Fenwick tree over full lines, and a population count within one. The tree of a
//! million blocks takes 32 KiB, so that what is left to wait for is the hash table;
//! [`LruStack::warm`] fetches its lines for many touches at once.
//!
//! Positions are renumbered whenever they run out, which keeps memory in proportion to the number
//! of blocks (about 40 bytes each), not to the length of the trace.
//!
//! Invariants: bits set = blocks known; a block's position has its bit set. Tested against a stack
//! that is a list, with and without renumbering.

use stats::rng;

/// No block has this number: the largest address is 2^64, a block at least 512 bytes.
const NO_BLOCK: u64 = u64::MAX;
/// Slots that share a cache line and hold neighbours.
const GROUP: usize = 4;
const LINE_BITS: u32 = 512;
const LINE_WORDS: usize = LINE_BITS as usize / 64;
/// Positions to begin with.
const FIRST_CAPACITY: u32 = 8 * LINE_BITS;
/// Blocks that a stack can hold: positions are 32 bits wide.
pub(crate) const BLOCKS_MAX: u64 = 1 << 31;

/// What one touch was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The block's number in the order of first touches.
    pub id: u32,
    /// Other blocks touched since this one was; `None` for the first touch of a block.
    pub distance: Option<u32>,
}

/// Every block touched so far, in the order of last touches.
pub struct LruStack {
    groups: Vec<Group>,
    blocks: u32,
    marks: Marks,
}

#[derive(Clone, Copy)]
struct Slot {
    block: u64,
    id: u32,
    position: u32,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Group([Slot; GROUP]);

const EMPTY: Group = Group([Slot { block: NO_BLOCK, id: 0, position: 0 }; GROUP]);

impl Default for LruStack {
    fn default() -> Self {
        Self::new()
    }
}

impl LruStack {
    /// An empty stack.
    pub fn new() -> Self {
        Self { groups: vec![EMPTY; 64], blocks: 0, marks: Marks::new(FIRST_CAPACITY) }
    }

    /// Distinct blocks touched so far.
    pub fn blocks(&self) -> u64 {
        u64::from(self.blocks)
    }

    /// Fetches what touching these blocks will need, all at once: the loads do not depend on each
    /// other, so that the waits for memory overlap.
    #[inline]
    pub(crate) fn warm(&self, blocks: &[u64]) {
        let mut seen = 0;
        for &block in blocks {
            let (group, _) = self.home(block);
            seen |= self.groups[group].0[0].position;
        }
        std::hint::black_box(seen);
    }

    /// Touches a block.
    #[inline]
    pub fn touch(&mut self, block: u64) -> Touched {
        debug_assert_ne!(block, NO_BLOCK);
        if self.marks.next == self.marks.capacity() {
            self.renumber();
        }
        let (mut group, mut index) = self.home(block);
        loop {
            let slot = &mut self.groups[group].0[index];
            if slot.block == block {
                let distance = self.marks.move_to_end(slot.position);
                slot.position = self.marks.next - 1;
                return Touched { id: slot.id, distance: Some(distance) };
            }
            if slot.block == NO_BLOCK {
                break;
            }
            index += 1;
            if index == GROUP {
                index = 0;
                group = (group + 1) & (self.groups.len() - 1);
            }
        }
        self.marks.append();
        let (id, position) = (self.blocks, self.marks.next - 1);
        self.groups[group].0[index] = Slot { block, id, position };
        self.blocks += 1;
        assert!(u64::from(self.blocks) < BLOCKS_MAX, "more blocks than positions");
        // Five eighths full: a miss then looks at about four slots, mostly in one cache line.
        if self.blocks as usize > self.groups.len() * GROUP / 8 * 5 {
            self.grow();
        }
        Touched { id, distance: None }
    }

    /// Group and slot where a block belongs: neighbours share a group.
    #[inline]
    fn home(&self, block: u64) -> (usize, usize) {
        let group = rng::mix(block / GROUP as u64) as usize & (self.groups.len() - 1);
        (group, block as usize % GROUP)
    }

    #[cold]
    fn grow(&mut self) {
        let wider = vec![EMPTY; self.groups.len() * 2];
        let old = std::mem::replace(&mut self.groups, wider);
        for slot in old.iter().flat_map(|group| &group.0) {
            if slot.block == NO_BLOCK {
                continue;
            }
            let (mut group, mut index) = self.home(slot.block);
            while self.groups[group].0[index].block != NO_BLOCK {
                index += 1;
                if index == GROUP {
                    index = 0;
                    group = (group + 1) & (self.groups.len() - 1);
                }
            }
            self.groups[group].0[index] = *slot;
        }
    }

    /// Gives the blocks the first positions, in their order, and makes room for at least as many
    /// touches again.
    #[cold]
    fn renumber(&mut self) {
        let ranks = self.marks.line_ranks();
        for slot in self.groups.iter_mut().flat_map(|group| &mut group.0) {
            if slot.block != NO_BLOCK {
                let line = (slot.position / LINE_BITS) as usize;
                slot.position = ranks[line] + self.marks.ones_up_to(slot.position) - 1;
            }
        }
        let full = self.marks.live > self.marks.capacity() / 2;
        let lines = if full { self.marks.live / LINE_BITS * 4 } else { self.marks.lines() };
        self.marks = Marks::dense(self.marks.live, lines * LINE_BITS);
    }
}

/// The bitmap of last touches.
struct Marks {
    words: Vec<u64>,
    /// Fenwick tree of the ones in each full line; entry 0 is unused.
    tree: Vec<u32>,
    /// The next position; the line it is in is not in the tree yet.
    next: u32,
    /// Ones.
    live: u32,
}

impl Marks {
    fn new(capacity: u32) -> Self {
        let lines = (capacity / LINE_BITS) as usize;
        Self { words: vec![0; lines * LINE_WORDS], tree: vec![0; lines + 1], next: 0, live: 0 }
    }

    /// The first `live` positions set.
    fn dense(live: u32, capacity: u32) -> Self {
        let mut marks = Self::new(capacity);
        for _ in 0..live {
            marks.append();
        }
        marks
    }

    fn lines(&self) -> u32 {
        (self.words.len() / LINE_WORDS) as u32
    }

    fn capacity(&self) -> u32 {
        self.lines() * LINE_BITS
    }

    /// Sets the next position.
    #[inline]
    fn append(&mut self) {
        let position = self.next;
        self.words[(position / 64) as usize] |= 1 << (position % 64);
        self.live += 1;
        self.next += 1;
        if self.next.is_multiple_of(LINE_BITS) {
            let line = (position / LINE_BITS) as usize;
            let ones = self.line(line).iter().map(|word| word.count_ones()).sum();
            self.add(line, ones);
        }
    }

    /// Ones behind a position that is set; clears it and sets the next one.
    #[inline]
    fn move_to_end(&mut self, position: u32) -> u32 {
        let line = (position / LINE_BITS) as usize;
        let distance = if line == (self.next / LINE_BITS) as usize {
            let in_line: u32 = self.line(line).iter().map(|word| word.count_ones()).sum();
            in_line - self.ones_up_to(position)
        } else {
            self.live - self.ones_before(line) - self.ones_up_to(position)
        };
        self.words[(position / 64) as usize] &= !(1 << (position % 64));
        if line != (self.next / LINE_BITS) as usize {
            self.add(line, 1u32.wrapping_neg());
        }
        self.live -= 1;
        self.append();
        distance
    }

    #[inline]
    fn line(&self, line: usize) -> &[u64] {
        &self.words[line * LINE_WORDS..(line + 1) * LINE_WORDS]
    }

    /// Ones of the position's line up to it.
    #[inline]
    fn ones_up_to(&self, position: u32) -> u32 {
        let line = self.line((position / LINE_BITS) as usize);
        let word = (position % LINE_BITS / 64) as usize;
        let whole: u32 = line[..word].iter().map(|word| word.count_ones()).sum();
        whole + (line[word] << (63 - position % 64)).count_ones()
    }

    /// Ones of all lines in front of a line.
    #[inline]
    fn ones_before(&self, line: usize) -> u32 {
        let mut sum = 0u32;
        let mut node = line;
        while node > 0 {
            sum = sum.wrapping_add(self.tree[node]);
            node &= node - 1;
        }
        sum
    }

    #[inline]
    fn add(&mut self, line: usize, change: u32) {
        let mut node = line + 1;
        while let Some(entry) = self.tree.get_mut(node) {
            *entry = entry.wrapping_add(change);
            node += node & node.wrapping_neg();
        }
    }

    /// Ones in front of each line.
    fn line_ranks(&self) -> Vec<u32> {
        let ones = |words: &[u64]| words.iter().map(|word| word.count_ones()).sum::<u32>();
        let lines = self.words.chunks_exact(LINE_WORDS).map(ones);
        lines
            .scan(0, |before, ones| {
                let rank = *before;
                *before += ones;
                Some(rank)
            })
            .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The stack as a list: the slow and obvious way.
    #[derive(Default)]
    pub(crate) struct ListStack(Vec<u64>);

    impl ListStack {
        pub fn touch(&mut self, block: u64) -> Option<u32> {
            let depth = self.0.iter().rev().position(|other| *other == block);
            if let Some(depth) = depth {
                self.0.remove(self.0.len() - 1 - depth);
            }
            self.0.push(block);
            depth.map(|depth| depth as u32)
        }
    }

    #[track_caller]
    fn agrees(blocks: impl Iterator<Item = u64>) {
        let (mut stack, mut list) = (LruStack::new(), ListStack::default());
        let mut ids = std::collections::HashMap::new();
        for (at, block) in blocks.enumerate() {
            let fresh = ids.len() as u32;
            let id = *ids.entry(block).or_insert(fresh);
            let expected = Touched { id, distance: list.touch(block) };
            assert_eq!(stack.touch(block), expected, "touch {at}");
        }
        assert_eq!(stack.blocks(), ids.len() as u64);
        assert_eq!(stack.marks.live, stack.blocks);
    }

    #[test]
    fn distances_by_hand() {
        let mut stack = LruStack::new();
        let distances: Vec<_> =
            [7, 7, 8, 9, 8, 7].map(|block| stack.touch(block).distance).to_vec();
        assert_eq!(distances, [None, Some(0), None, None, Some(1), Some(2)]);
    }

    #[test]
    fn renumbering_and_growing_change_nothing() {
        let mut rng = rng::Rng::new(3);
        // Few blocks and many touches: positions run out many times at the same capacity.
        agrees((0..40_000).map(|_| rng.below(300)));
        // A working set that grows: the table and the positions grow with it.
        let mut rng = rng::Rng::new(4);
        agrees((1..12_000).map(|at| rng.below(at / 3 + 1) * 1_000_003));
        // A loop touches the oldest block each time, the largest distance there is.
        agrees((0..20_000).map(|at| at % 3_000));
    }

    proptest! {
        #[test]
        fn agrees_with_a_list(
            blocks in prop::collection::vec(0u64..60, 0..700), stride in 1u64..1 << 40,
        ) {
            agrees(blocks.into_iter().map(|block| block * stride));
        }
    }
}

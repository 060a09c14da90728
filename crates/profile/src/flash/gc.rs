//! Which block is cleaned next, and when: the choices by name.

/// The policies by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GcPolicy {
    /// The block with the fewest live pages: `Greedy`.
    #[default]
    Greedy,
    /// The block closed first: `Fifo`.
    Fifo,
    /// The best of this many drawn at random: `DChoices`.
    DChoices(u32),
    /// The best of this many that were closed first: `Windowed`.
    Windowed(u32),
    /// Few live pages and long undisturbed: `CostBenefit`.
    CostBenefit,
}

/// When a plane is cleaned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GcMode {
    /// Whole blocks, as soon as a write leaves too few free ones.
    #[default]
    Foreground,
    /// A few moves after every write, once too few blocks are free.
    Incremental {
        /// Moves after each write, at least 1.
        pages_per_write: u32,
    },
    /// Whole blocks, but not before the next request to the die, which waits for it.
    Deferred,
    /// Besides foreground cleaning, page by page while the die is idle.
    Idle {
        /// How long a die must have been idle, ns.
        after_ns: u64,
        /// Free blocks of a plane that are enough.
        until_blocks: u32,
    },
}

/// How cleaning works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GcParameters {
    /// Which block.
    pub policy: GcPolicy,
    /// When.
    pub mode: GcMode,
    /// Cleaning starts when a plane has fewer free blocks, at least 2.
    pub low_blocks: u32,
    /// Whether moved pages go to blocks of their own instead of among new data.
    pub separate: bool,
    /// Whether chips copy pages by themselves, without the channel.
    pub copy_back: bool,
}

//! How wear is treated.

use super::Flaw;

/// How wear is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WearParameters {
    /// Of this many blocks that have been free longest the least worn is opened; 0 and 1 take the
    /// first.
    pub dynamic_look_blocks: u32,
    /// Difference of erase counts within a plane from which cold data move; never where `None`.
    pub static_spread: Option<u32>,
    /// Erases that a block stands; for ever where `None`.
    pub cycles_most: Option<u32>,
}

impl WearParameters {
    pub(crate) fn flaw(&self) -> Result<(), Flaw> {
        if self.cycles_most == Some(0) {
            return Err(Flaw::new("wear.pe_cycles", "a block endures at least one erase"));
        }
        if self.static_spread == Some(0) {
            let cause = "blocks always differ by one erase";
            return Err(Flaw::new("wear.static_spread_erases", cause));
        }
        Ok(())
    }
}

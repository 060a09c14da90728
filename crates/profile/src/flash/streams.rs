//! How streams are kept apart.

use super::{Flaw, GcPolicy};

/// What becomes of pages that cleaning moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// They go to blocks that all streams share.
    #[default]
    Initial,
    /// They stay in blocks of their stream.
    Persistent,
}

/// How streams are kept apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamParameters {
    /// What becomes of pages that cleaning moves.
    pub isolation: Isolation,
    /// Share of the blocks of each plane that each stream gets, where they are persistently
    /// isolated; as cleaning has it where empty.
    pub block_shares: Vec<f64>,
}

impl StreamParameters {
    /// Refuses what cannot be, for a device of this many streams.
    pub(crate) fn flaw(&self, streams: u32, policy: GcPolicy) -> Result<(), Flaw> {
        if self.block_shares.is_empty() {
            return Ok(());
        }
        let field = "stream_shares";
        if self.block_shares.len() != streams as usize {
            return Err(Flaw::new(field, format!("give one share for each of {streams} streams")));
        }
        if self.block_shares.iter().any(|share| !share.is_finite() || *share <= 0.0) {
            return Err(Flaw::new(field, "a share is above zero"));
        }
        if self.isolation != Isolation::Persistent {
            let cause = "moved pages are in no stream: say stream_isolation = \"persistent\"";
            return Err(Flaw::new(field, cause));
        }
        if !matches!(policy, GcPolicy::Greedy | GcPolicy::Fifo) {
            return Err(Flaw::new(field, "the policy within a stream is greedy or fifo"));
        }
        Ok(())
    }
}

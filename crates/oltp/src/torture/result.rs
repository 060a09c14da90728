//! What came of a torture.

use serde::{Deserialize, Serialize};

use super::{Finding, TortureOptions};
use crate::consistency::ConditionResult;

/// One cycle: load, kill, recovery, look.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CycleResult {
    /// Number, from 1.
    pub number: u32,
    /// Time under load, ms.
    pub worked_ms: f64,
    /// Transactions that the server acknowledged.
    pub acknowledged: u64,
    /// Transactions without an answer at the kill.
    pub in_flight: u64,
    /// Attempts that the server refused and that were repeated.
    pub retries: u64,
    /// Syncs that the server asked for; 0 where nobody counted.
    pub syncs: u64,
    /// Bytes that were written, not synced, and taken away.
    pub unsynced_bytes: u64,
    /// Changes of names that were not synced and were taken back.
    pub unsynced_names: u64,
    /// Recovery, until sessions were taken, ms.
    pub recovery_ms: f64,
    /// Effects of transactions in flight that are there.
    pub survived: u64,
    /// Acknowledged effects that are gone.
    pub lost: u64,
    /// Effects that nobody asked for.
    pub unasked: u64,
    /// Violations of consistency, by the cheap conditions.
    pub inconsistent: u64,
    /// The first violations in words.
    pub examples: Vec<String>,
}

/// The result of a torture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TortureResult {
    /// Version of this layout.
    pub schema: u32,
    /// Name and version of the server.
    pub dbms: String,
    /// What was asked for.
    pub options: TortureOptions,
    /// The cycles that were done.
    pub cycles: Vec<CycleResult>,
    /// Transactions acknowledged in all cycles.
    pub acknowledged: u64,
    /// Acknowledged effects that were gone after a recovery.
    pub lost: u64,
    /// Effects that nobody asked for.
    pub unasked: u64,
    /// Why the server did not come back, or its data could not be read.
    pub damage: Option<String>,
    /// What the damage is, where it is known.
    #[serde(default)]
    pub finding: Option<Finding>,
    /// The workload's conditions at the end; empty where damage or a stop prevented the check.
    pub conditions: Vec<ConditionResult>,
    /// The user stopped it.
    pub interrupted: bool,
    /// What the torture cannot show, in sentences.
    pub notes: Vec<String>,
}

impl TortureResult {
    /// Whether everything acknowledged was there, nothing was that nobody asked for, and every
    /// condition held.
    pub fn passed(&self) -> bool {
        self.lost == 0
            && self.unasked == 0
            && self.damage.is_none()
            && self.cycles.iter().all(|cycle| cycle.inconsistent == 0)
            && self.conditions.iter().all(|condition| condition.holds)
    }

    pub(super) fn add(&mut self, cycle: CycleResult) {
        self.acknowledged += cycle.acknowledged;
        self.lost += cycle.lost;
        self.unasked += cycle.unasked;
        self.cycles.push(cycle);
    }
}

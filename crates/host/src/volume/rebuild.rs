//! A lost member made anew, step by step, beside the load.
//!
//! As `md_do_sync` in drivers/md/md.c before Linux 4.2: at the least rate while there are requests,
//! at the most without any. A step waits for the one before.

use super::map::{Health, Place};
use super::settings::Rebuild;

/// How far a rebuild is.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    settings: Rebuild,
    end: u64,
    /// Everything below is there.
    at: u64,
    /// Requests of the volume when the last step began.
    taken: u64,
}

impl Progress {
    pub fn new(settings: Rebuild, end: u64) -> Self {
        Self { settings, end, at: 0, taken: 0 }
    }

    /// The next step: where, and how many bytes; none at the end.
    pub fn next(&self) -> Option<(Place, u64)> {
        let bytes = self.settings.step_bytes.min(self.end - self.at);
        (bytes > 0).then_some((Place { member: self.settings.member, offset: self.at }, bytes))
    }

    /// A step that began at `began` is done: when the next one begins.
    pub fn done(&mut self, now: u64, began: u64, taken: u64, is_idle: bool) -> u64 {
        let bytes = self.settings.step_bytes.min(self.end - self.at);
        self.at += bytes;
        let is_idle = is_idle && taken == self.taken;
        self.taken = taken;
        let rate =
            if is_idle { self.settings.most_bytes_per_s } else { self.settings.least_bytes_per_s };
        let takes = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
        now.max(began + takes as u64)
    }

    /// What members hold by now.
    pub fn health(&self, lost: u64) -> Health {
        let member = self.settings.member;
        if self.at == self.end {
            return Health { lost: lost & !(1 << member), recovering: None };
        }
        Health { lost, recovering: Some(Place { member, offset: self.at }) }
    }

    /// Bytes that are there.
    pub fn bytes(&self) -> u64 {
        self.at
    }
}

//! What the event model has beyond the timelines.

use super::{FlashParameters, Flaw};

/// How a device treats its queue.
#[derive(Clone, Debug, PartialEq)]
pub struct EventParameters {
    /// Commands that the device works on at once: 32 for SATA, thousands for NVMe.
    pub depth: u32,
    /// Submission queues, served in turn; a request waits in the one of its stream's number modulo
    /// this.
    pub host_queues: u32,
    /// Reads go before everything else that waits for a die.
    pub reads_first: bool,
    /// Whether a read interrupts a program or an erase.
    pub suspend: Option<Suspend>,
    /// Share of reads that take this many sensings more than one: the first entry is for one more.
    /// The rest take one.
    pub read_retries: Vec<f64>,
    /// Pages of the map that are kept in memory (DFTL: Gupta, Kim and Urgaonkar, ASPLOS 2009); the
    /// whole map where `None`.
    pub map_cache_pages: Option<u32>,
}

impl Default for EventParameters {
    /// NVMe without refinements: what the timelines do, but for the order on a die.
    fn default() -> Self {
        Self {
            depth: 1024,
            host_queues: 1,
            reads_first: false,
            suspend: None,
            read_retries: Vec::new(),
            map_cache_pages: None,
        }
    }
}

/// Suspend and resume of programs, copies and erases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspend {
    /// From the command until the die can read, ns.
    pub suspend_ns: u64,
    /// What is added to the operation when it goes on, ns.
    pub resume_ns: u64,
    /// Times that one operation may be suspended.
    pub most: u32,
}

impl EventParameters {
    /// Pages of the map that are kept in flash.
    pub fn map_pages(&self, parameters: &FlashParameters) -> u32 {
        // A place takes four bytes.
        let per_page = parameters.geometry.page_bytes / 4;
        if self.map_cache_pages.is_some() { parameters.logical_pages.div_ceil(per_page) } else { 0 }
    }

    /// Refuses what cannot be.
    pub(crate) fn flaw(&self) -> Result<(), Flaw> {
        if self.depth == 0 {
            return Err(Flaw::new("queue.depth", "a device takes at least one command"));
        }
        if self.host_queues == 0 || self.host_queues > 65_535 {
            return Err(Flaw::new("queue.host_queues", "there are from 1 to 65,535"));
        }
        if self.map_cache_pages == Some(0) {
            return Err(Flaw::new("map_cache.pages", "at least one page of the map is kept"));
        }
        let shares = &self.read_retries;
        if shares.iter().any(|share| !(0.0..=1.0).contains(share)) {
            return Err(Flaw::new("read_retries", "a share lies between 0 and 1"));
        }
        if shares.iter().sum::<f64>() > 1.0 {
            return Err(Flaw::new("read_retries", "the shares sum to more than 1"));
        }
        match self.suspend {
            Some(Suspend { most: 0, .. }) => {
                Err(Flaw::new("suspend.most", "use no suspend instead of none at a time"))
            }
            _ => Ok(()),
        }
    }
}

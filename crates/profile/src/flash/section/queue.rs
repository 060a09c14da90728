//! `[device.queue]`: how a flash device treats the requests that wait. Where the section is there
//! the device is simulated by events, else by timelines.

use serde::{Deserialize, Serialize};

use super::ns;
use crate::Parameter;
use crate::flash::{EventParameters, Suspend};
use crate::rules::{Flaw, flaw, optional, time};

/// `[device.queue]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Where the choices come from, or the grounds for assuming them.
    pub source: String,
    /// Whether nobody published them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// Commands that the device works on at once: 32 for SATA.
    pub depth: u32,
    /// Submission queues, served in turn.
    #[serde(default = "super::one", skip_serializing_if = "super::is_one")]
    pub host_queues: u32,
    /// Whether reads go before everything else that waits for a die: all drives of ten years do so.
    #[serde(default = "super::yes", skip_serializing_if = "super::is_yes")]
    pub reads_first: bool,
    /// From the command to suspend a program or an erase until the die can read, us; reads do not
    /// interrupt where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend_us: Option<Parameter>,
    /// What is added to the operation when it goes on, us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_us: Option<Parameter>,
    /// Times that one operation may be suspended.
    #[serde(default = "super::one", skip_serializing_if = "super::is_one")]
    pub suspends_most: u32,
    /// Share of reads that take one more sensing, two more, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_retries: Vec<f64>,
    /// Pages of the map that are kept in memory; all of them where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map_cache_pages: Option<u32>,
}

impl QueueSpec {
    pub(super) fn parameters(&self) -> EventParameters {
        EventParameters {
            depth: self.depth,
            host_queues: self.host_queues,
            reads_first: self.reads_first,
            suspend: self.suspend_us.as_ref().map(|suspend| Suspend {
                suspend_ns: ns(Some(suspend)),
                resume_ns: ns(self.resume_us.as_ref()),
                most: self.suspends_most,
            }),
            read_retries: self.read_retries.clone(),
            map_cache_pages: self.map_cache_pages,
        }
    }

    pub(super) fn check(&self) -> Result<(), Flaw> {
        if self.source.trim().is_empty() {
            let cause = "it is empty; name the source, or the grounds for assuming";
            return flaw("device.queue.source", cause);
        }
        optional(time, "device.queue.suspend_us", self.suspend_us.as_ref())?;
        optional(time, "device.queue.resume_us", self.resume_us.as_ref())?;
        if self.resume_us.is_some() && self.suspend_us.is_none() {
            return flaw("device.queue.resume_us", "nothing resumes without suspend_us");
        }
        Ok(())
    }
}

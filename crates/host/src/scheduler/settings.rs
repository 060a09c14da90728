//! `[scheduler]` of a `stack.toml`.

use serde::Deserialize;
use units::Bytes;

use super::{anticipatory, bfq, cfq, deadline, kyber, throttle};

/// Which scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// First in, first out; with `plugging = "legacy"` the `noop` of older kernels.
    #[default]
    None,
    /// Deadline of kernels before blk-mq.
    Deadline,
    /// mq-deadline.
    MqDeadline,
    /// Anticipatory, until kernel 2.6.32.
    Anticipatory,
    /// Completely fair queueing, as in kernel 2.6.32.
    Cfq,
    /// Budget fair queueing.
    Bfq,
    /// Kyber, as in kernel 4.12.
    Kyber,
}

impl Kind {
    /// The name in `stack.toml` and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Deadline => "deadline",
            Self::MqDeadline => "mq_deadline",
            Self::Anticipatory => "anticipatory",
            Self::Cfq => "cfq",
            Self::Bfq => "bfq",
            Self::Kyber => "kyber",
        }
    }

    /// Whether kernels that have it have the block layer before blk-mq.
    pub fn is_legacy(self) -> bool {
        matches!(self, Self::Deadline | Self::Anticipatory | Self::Cfq)
    }
}

/// When requests that wait to be merged go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plugging {
    /// An idle queue waits for 4 requests, 3 ms or somebody who waits for one of them.
    Legacy,
    /// Requests that are due at the same moment, 32 at most, go on together.
    BlkMq,
}

/// A scheduler and the block layer around it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Which scheduler.
    pub kind: Kind,
    /// Requests that the device holds at once: its tags.
    pub depth: u32,
    /// Whether neighbours in one direction become one request.
    pub merge: bool,
    /// Largest request that merging makes.
    pub max_request: Bytes,
    /// Whether it waits for requests to merge; by default as the kernels that have the scheduler.
    pub plugging: Option<Plugging>,
    /// Requests between entry and completion; by default 128 per direction before blk-mq, then
    /// twice the depth and at most 256, and the depth without a scheduler.
    pub nr_requests: Option<u32>,
    /// Whether somebody waits for writes (`O_DIRECT`); else the page cache writes them back.
    pub sync_writes: bool,
    /// Whether seeks cost time: a disk.
    pub rotational: bool,
    /// Whether buffered writes give way to reads (wbt).
    pub write_back_throttling: bool,
    /// Of that.
    pub throttle: throttle::Settings,
    /// I/O priority of each process, by number of its stream: best effort, from 0 to 7; 4 where
    /// there is none. For CFQ and BFQ, whose weights are 10 for each level below 8.
    pub priorities: Vec<u32>,
    /// Of deadline and mq-deadline.
    pub deadline: deadline::Settings,
    /// Of Kyber.
    pub kyber: kyber::Settings,
    /// Of anticipatory scheduling.
    pub anticipatory: anticipatory::Settings,
    /// Of CFQ.
    pub cfq: cfq::Settings,
    /// Of BFQ.
    pub bfq: bfq::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kind: Kind::None,
            depth: 32,
            merge: true,
            max_request: Bytes(1280 << 10),
            plugging: None,
            nr_requests: None,
            sync_writes: false,
            rotational: true,
            write_back_throttling: false,
            throttle: throttle::Settings::default(),
            priorities: Vec::new(),
            deadline: deadline::Settings::default(),
            kyber: kyber::Settings::default(),
            anticipatory: anticipatory::Settings::default(),
            cfq: cfq::Settings::default(),
            bfq: bfq::Settings::default(),
        }
    }
}

/// A field and what is wrong with it.
type Flaw = (&'static str, &'static str);

impl Settings {
    /// Those of a scheduler with the defaults of its kernel.
    pub fn new(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Whether it waits for requests to merge.
    pub fn plugging(&self) -> Plugging {
        let usual = if self.kind.is_legacy() { Plugging::Legacy } else { Plugging::BlkMq };
        self.plugging.unwrap_or(usual)
    }

    /// Requests between entry and completion: per direction with the legacy block layer, else of
    /// both.
    pub fn nr_requests(&self) -> u32 {
        self.nr_requests.unwrap_or(match (self.plugging(), self.kind) {
            (Plugging::Legacy, _) => 128,
            (Plugging::BlkMq, Kind::None) => self.depth,
            (Plugging::BlkMq, _) => self.depth.saturating_mul(2).min(256),
        })
    }

    /// Of those, how many may be requests that nobody waits for (mq-deadline: writes); `None`
    /// where the scheduler does not bound them.
    ///
    /// Three quarters with mq-deadline (5.14, `dd_depth_updated`) and kyber.
    pub fn async_depth(&self) -> Option<u32> {
        let bounded = matches!(self.kind, Kind::MqDeadline | Kind::Kyber);
        bounded.then(|| (self.nr_requests() * 3 / 4).max(1))
    }

    /// Finds what cannot be.
    pub(crate) fn check(&self) -> Result<(), Flaw> {
        if !(1..=65_536).contains(&self.depth) {
            return Err(("scheduler.depth", "a device holds 1 to 65536 requests"));
        }
        if self.nr_requests.is_some_and(|count| !(1..=1 << 20).contains(&count)) {
            return Err(("scheduler.nr_requests", "1 to 1048576 requests wait"));
        }
        if !(512..=1 << 30).contains(&self.max_request.0) {
            return Err(("scheduler.max_request", "a request has 512 bytes to 1 GiB"));
        }
        if self.write_back_throttling && self.kind == Kind::Bfq {
            return Err(("scheduler.write_back_throttling", "bfq turns it off"));
        }
        let throttle = &self.throttle;
        if throttle.min_lat.is_some_and(|time| time.0 == 0) || throttle.window.0 < 1 << 10 {
            return Err(("scheduler.min_lat", "a window and its target take time"));
        }
        if self.deadline.fifo_batch == 0 {
            return Err(("scheduler.fifo_batch", "a batch has at least one request"));
        }
        if self.kyber.depth.contains(&0) || self.kyber.batch.contains(&0) {
            return Err(("scheduler.kyber", "every domain has a token, every batch a request"));
        }
        if self.priorities.iter().any(|priority| *priority > 7) {
            return Err(("scheduler.priorities", "best-effort priorities are 0 to 7"));
        }
        if self.cfq.quantum == 0 || self.cfq.slice_sync.0 == 0 || self.cfq.slice_async_rq == 0 {
            return Err(("scheduler.cfq", "a slice takes time and holds requests"));
        }
        if self.bfq.max_budget == 0 {
            return Err(("scheduler.max_budget", "a budget has at least one sector"));
        }
        Ok(())
    }
}

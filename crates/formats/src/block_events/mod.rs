//! Events of the block layer, and their pairing into requests.
//!
//! Linux reports a request several times on its way (`blktrace(8)`, `blkparse(1)`): queued (Q),
//! merged into another (M, F), given a request (G), inserted into the scheduler (I), issued to the
//! device (D), requeued (R), completed (C), and further split (X), remapped (A), plugged (P, U).
//! A trace wants one entry per request: `due` is the issue D and the service time C - D. With
//! `queued_times` an entry is what was queued: `due` is Q, the service time still C - D, and the
//! wait Q to D is told apart as a fact. A trace of queue events alone says nothing of the device;
//! it is read with due = Q, without service times, and carries a warning.
//!
//! Rules. A requeued request counts from its last issue. A completion may be partial: the rest goes
//! on at the next sector, and the last part ends the request. A discard is a trim. A flush has no
//! sector: it pairs with the flush in flight; the empty completion of a *write* is the flush
//! machinery's bookkeeping and issues nothing. Commands without data and SCSI pass-through are left
//! out. A request that never completes has no known service time. Requests of several devices
//! become streams, named `major:minor`. All of this is counted; see [`pairing::Tally`].
//!
//! Memory: the output columns and the requests in flight, of which at most [`MOST_IN_FLIGHT`] are
//! kept: beyond, the older half is given up as never completed.
//!
//! Tested with hand-made sequences per rule, against a slow pairing on random traces, and by golden
//! figures of a captured run.

mod devices;
mod in_flight;
mod outcome;
mod pairing;
mod window;

use pairing::Pairing;
use trace::Op;
use window::Window;

/// Unit of sectors, whatever the device's block is.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// More than any device takes: 65,536 is the deepest queue of an NVMe device.
const MOST_IN_FLIGHT: usize = 1 << 16;

/// What happened to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Action {
    Queue,
    BackMerge,
    FrontMerge,
    GetRequest,
    SleepRequest,
    Requeue,
    Issue,
    Complete,
    Plug,
    Unplug,
    UnplugTimer,
    Insert,
    Split,
    Bounce,
    Remap,
    Abort,
    Message,
    #[default]
    Other,
}

impl Action {
    /// All of them, in the order of their codes.
    pub(crate) const ALL: [Self; 18] = [
        Self::Queue,
        Self::BackMerge,
        Self::FrontMerge,
        Self::GetRequest,
        Self::SleepRequest,
        Self::Requeue,
        Self::Issue,
        Self::Complete,
        Self::Plug,
        Self::Unplug,
        Self::UnplugTimer,
        Self::Insert,
        Self::Split,
        Self::Bounce,
        Self::Remap,
        Self::Abort,
        Self::Message,
        Self::Other,
    ];

    /// The letter of `blkparse(1)`.
    pub(crate) fn from_letters(letters: &[u8]) -> Self {
        match letters {
            b"Q" => Self::Queue,
            b"M" => Self::BackMerge,
            b"F" => Self::FrontMerge,
            b"G" => Self::GetRequest,
            b"S" => Self::SleepRequest,
            b"R" => Self::Requeue,
            b"D" => Self::Issue,
            b"C" => Self::Complete,
            b"P" => Self::Plug,
            b"U" => Self::Unplug,
            b"UT" | b"T" => Self::UnplugTimer,
            b"I" => Self::Insert,
            b"X" => Self::Split,
            b"B" => Self::Bounce,
            b"A" => Self::Remap,
            b"m" => Self::Message,
            _ => Self::Other,
        }
    }

    /// What a count of them is called.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Queue => "queue events (Q)",
            Self::BackMerge => "back merges (M)",
            Self::FrontMerge => "front merges (F)",
            Self::GetRequest => "requests allocated (G)",
            Self::SleepRequest => "waits for a request (S)",
            Self::Requeue => "requeues (R)",
            Self::Issue => "issues (D)",
            Self::Complete => "completions (C)",
            Self::Plug => "plugs (P)",
            Self::Unplug => "unplugs (U)",
            Self::UnplugTimer => "unplugs by timer (T)",
            Self::Insert => "insertions into the scheduler (I)",
            Self::Split => "splits (X)",
            Self::Bounce => "bounces (B)",
            Self::Remap => "remaps (A)",
            Self::Abort => "aborts",
            Self::Message => "messages (m)",
            Self::Other => "events of unknown kind",
        }
    }

    /// Whether pairing looks at it; the others are only counted.
    #[inline]
    pub(crate) fn pairs(self) -> bool {
        const PAIRS: u32 = 1 << Action::Queue as u32
            | 1 << Action::Requeue as u32
            | 1 << Action::Issue as u32
            | 1 << Action::Complete as u32;
        PAIRS >> self as u32 & 1 == 1
    }
}

/// What kind of command it is: bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(pub u8);

impl Flags {
    pub(crate) const WRITE: u8 = 1;
    pub(crate) const FLUSH: u8 = 2;
    pub(crate) const DISCARD: u8 = 4;
    pub(crate) const FUA: u8 = 8;
    /// SCSI pass-through and other commands that are not file-system I/O.
    pub(crate) const FOREIGN: u8 = 16;
    /// The command has no data direction (`N`).
    pub(crate) const NO_DATA: u8 = 32;

    #[inline]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    /// What `blkparse(1)` prints as RWBS, such as `WS`, `FWFS`, `DS`, `FN`: a leading F is a flush
    /// in front; D, W, R or N follows; an F behind that is FUA; A, S, M and B say nothing here.
    pub(crate) fn from_rwbs(rwbs: &[u8]) -> Self {
        let mut flags = 0;
        let mut rest = rwbs;
        if let [b'F', tail @ ..] = rest {
            flags |= Self::FLUSH;
            rest = tail;
        }
        match rest.first() {
            Some(b'D') => flags |= Self::DISCARD,
            Some(b'W') => flags |= Self::WRITE,
            Some(b'N') => flags |= Self::NO_DATA,
            // Flush is the command itself where tools print it twice.
            Some(b'F') => flags |= Self::FLUSH,
            _ => {}
        }
        if rest.get(1..).is_some_and(|tail| tail.contains(&b'F')) {
            flags |= Self::FUA;
        }
        Self(flags)
    }
}

/// What the times of events count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The start of the trace: kept as they are.
    SinceStart,
    /// The start of the machine: the first event becomes zero.
    SinceBoot,
}

/// One event. Sectors count 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockEvent {
    pub time_ns: u64,
    pub sector: u64,
    pub bytes: u32,
    /// major << 20 | minor.
    pub device: u32,
    pub action: Action,
    pub flags: Flags,
}

impl BlockEvent {
    /// What the command does; `None` for one that moves no data and flushes nothing.
    #[inline]
    pub(crate) fn op(&self) -> Option<Op> {
        if self.flags.has(Flags::FOREIGN) {
            None
        } else if self.bytes == 0 {
            self.flags.has(Flags::FLUSH).then_some(Op::Flush)
        } else if self.flags.has(Flags::DISCARD) {
            Some(Op::Trim)
        } else if self.flags.has(Flags::WRITE) {
            Some(Op::Write)
        } else if self.flags.has(Flags::NO_DATA) {
            None
        } else {
            Some(Op::Read)
        }
    }

    /// Whether it ends beyond the last byte that 64 bits can address.
    #[inline]
    pub(crate) fn is_beyond_addresses(&self) -> bool {
        // 2^32 bytes, the most that `bytes` can say, are 2^23 sectors.
        self.bytes > 0 && self.sector >= u64::MAX / SECTOR_BYTES - (1 << 23)
    }
}

/// From events as a file holds them to rows: counted, put in order, paired.
pub(crate) struct Events {
    window: Window,
    pairing: Pairing,
}

impl Events {
    /// `queued_times`: a request is due when it was queued, not when it was issued.
    pub(crate) fn new(clock: Clock, queued_times: bool) -> Self {
        Self { window: Window::default(), pairing: Pairing::new(clock, queued_times) }
    }

    /// Takes an event.
    #[inline]
    pub(crate) fn take(&mut self, event: BlockEvent) {
        let wanted = self.admit(&event);
        self.window.push_if(wanted, event, &mut self.pairing);
    }

    /// Counts an event that is going to wait for others. Whether it is then to be given to
    /// [`Self::push`].
    #[inline]
    pub(crate) fn admit(&mut self, event: &BlockEvent) -> bool {
        self.pairing.count(event.action, event.time_ns);
        self.pairing.wants(event.action)
    }

    /// Takes an event that was admitted.
    #[inline]
    pub(crate) fn push(&mut self, event: BlockEvent) {
        self.window.push_if(true, event, &mut self.pairing);
    }
}

#[cfg(test)]
mod tests;

//! What the linear model remembers of the requests before: positions, the mix, flushes.

use profile::linear::{Detection, Flush, Mixed};
use trace::Request;

use super::whole_ns;
use crate::SnapshotError;
use crate::snapshot::{SnapshotReader, SnapshotWriter};

/// Where the previous request of each operation and stream ended.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    ends: Box<[[u64; STREAMS]; 2]>,
    /// Moves the low bits of a stream number to the top, or clears them when detection is global.
    ///
    /// A mask would do, but lets the compiler load the stream together with the operation, which
    /// the caller has just stored one by one: a load that the processor cannot forward and that
    /// triples the time of a request.
    spread: u32,
}

/// Streams that are told apart; a trace with more shares their positions modulo this.
const STREAMS: usize = 1 << STREAM_BITS;
const STREAM_BITS: u32 = 6;

/// Bytes at the end of the previous request of an operation that a sequential one may repeat. A log
/// whose records do not fill its blocks writes the last block again with what follows it; the
/// largest block of the logs that we know is PostgreSQL's.
const REPEATED: [u64; 2] = [0, 8 << 10];

impl Ends {
    pub(super) fn new(detection: Detection) -> Self {
        let spread = match detection {
            Detection::PerStream => 1 << (32 - STREAM_BITS),
            Detection::Global => 0,
        };
        // No request starts at the last byte of the address space, so nothing is sequential yet.
        Self { ends: Box::new([[u64::MAX; STREAMS]; 2]), spread }
    }

    #[inline]
    pub(super) fn is_sequential(&mut self, kind: usize, request: &Request) -> bool {
        let stream =
            (u32::from(request.stream).wrapping_mul(self.spread) >> (32 - STREAM_BITS)) as usize;
        let end = &mut self.ends[kind][stream];
        let repeated = end.wrapping_sub(request.offset.0);
        let extends = repeated < u64::from(request.len);
        let sequential = repeated == 0 || (repeated <= REPEATED[kind] && extends);
        *end = request.offset.0.saturating_add(u64::from(request.len));
        sequential
    }

    pub(super) fn save(&self, to: &mut SnapshotWriter) {
        self.ends.iter().for_each(|ends| to.u64s(ends));
    }

    pub(super) fn load(&mut self, from: &mut SnapshotReader) -> Result<(), SnapshotError> {
        self.ends.iter_mut().try_for_each(|ends| from.u64s(ends))
    }
}

/// The moving average of the mix and the penalty it costs.
#[derive(Clone, Debug)]
pub(super) struct Mix {
    /// Share of writes among recent requests.
    write_share: f64,
    weight: f64,
    /// Factor in an even mix minus one, of reads and of writes.
    excess: [f64; 2],
    active: bool,
}

impl Mix {
    pub(super) fn new(mixed: Mixed) -> Self {
        let excess = [mixed.read_factor - 1.0, mixed.write_factor - 1.0];
        Self {
            write_share: 0.0,
            weight: 1.0 / f64::from(mixed.window_requests.max(1)),
            excess,
            active: excess != [0.0, 0.0],
        }
    }

    /// The penalty of a request of `kind`, which joins the average.
    #[inline]
    pub(super) fn factor(&mut self, kind: usize) -> f64 {
        if !self.active {
            return 1.0;
        }
        let is_write = kind as f64;
        let other = (is_write - self.write_share).abs();
        self.write_share += (is_write - self.write_share) * self.weight;
        1.0 + self.excess[kind] * (other * 2.0).min(1.0)
    }

    pub(super) fn save(&self, to: &mut SnapshotWriter) {
        to.f64(self.write_share);
    }

    pub(super) fn load(&mut self, from: &mut SnapshotReader) -> Result<(), SnapshotError> {
        self.write_share = from.f64()?;
        if (0.0..=1.0).contains(&self.write_share) {
            return Ok(());
        }
        Err(from.damaged("a share is not between 0 and 1"))
    }
}

/// The flushes that run or wait, and what they left to do.
#[derive(Clone, Debug, Default)]
pub(super) struct FlushState {
    /// Writes and bytes written that flushes have covered.
    covered: (u64, u64),
    /// When the flush that runs last ends.
    running_until: u64,
    /// Start and end of the flush that follows it, where one is waiting.
    waiting: Option<(u64, u64)>,
}

impl FlushState {
    /// Bytes to make durable, where `written` counts writes and bytes from the beginning.
    pub(super) fn dirty_bytes(&self, written: (u64, u64)) -> u64 {
        written.1 - self.covered.1
    }

    /// When a flush that arrives at `now` starts and completes, and whether it shares one that
    /// others already wait for. It covers the writes `written`, the last of which completes at
    /// `last_write_end`.
    pub(super) fn submit(
        &mut self,
        now: u64,
        written: (u64, u64),
        last_write_end: u64,
        cost: &Flush,
        ratio: f64,
    ) -> (u64, u64, bool) {
        if let Some((start, end)) = self.waiting
            && start <= now
        {
            self.running_until = end;
            self.waiting = None;
        }
        if let Some((start, end)) = self.waiting
            && last_write_end <= start
        {
            return (start, end, true);
        }
        let busy = self.running_until > now || self.waiting.is_some();
        let queued_behind = self.waiting.map_or(self.running_until, |(_, end)| end);
        let start = now.max(queued_behind).max(last_write_end);
        let end = start + whole_ns(self.take_dirty_cost(written, cost) * ratio);
        if busy {
            self.waiting = Some((start, end));
        } else {
            self.running_until = end;
        }
        (start, end, false)
    }

    fn take_dirty_cost(&mut self, written: (u64, u64), cost: &Flush) -> f64 {
        let dirty_bytes = self.dirty_bytes(written) as f64;
        let dirty_requests = (written.0 - self.covered.0) as f64;
        self.covered = written;
        cost.base_ns
            + cost.ns_per_dirty_byte * dirty_bytes
            + cost.ns_per_dirty_request * dirty_requests
    }

    pub(super) fn save(&self, to: &mut SnapshotWriter) {
        to.u64s(&[self.covered.0, self.covered.1, self.running_until]);
        to.option(self.waiting.map(|(start, _)| start));
        to.option(self.waiting.map(|(_, end)| end));
    }

    pub(super) fn load(&mut self, from: &mut SnapshotReader) -> Result<(), SnapshotError> {
        let [requests, bytes, running_until] = from.array()?;
        let waiting = from.option()?.zip(from.option()?);
        *self = Self { covered: (requests, bytes), running_until, waiting };
        Ok(())
    }
}

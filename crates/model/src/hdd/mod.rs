//! A hard disk: arm, platters, zones, track buffer, bus and command queue.
//!
//! The model follows the anatomy of Ruemmler and Wilkes, "An introduction to disk drive modeling"
//! (IEEE Computer, 1994): a request pays command overhead, then a buffer hit is moved over the bus,
//! and a miss waits for seek or head switch, rotation and transfer, the bus overlapping with the
//! platter. After a read the disk reads on into the segment until something else wants the arm.
//! What a drive does at which overhead is told by the parameters of the DiskSim 4.0 manual (Bucy et
//! al., CMU-PDL-08-101), so that its files of measured drives can be taken over:
//! [`profile::disksim`].
//!
//! Rotation is exact: the angle of the platters is a function of time ([`angle`]), so sequential
//! requests meet or miss their sector as they would on the drive.
//!
//! Invariants: those of the crate; a completion is never before its overhead and its transfer; the
//! arm works on one thing at a time. Tested against closed forms (mean rotational delay, mean seek,
//! sequential throughput), a slow layout oracle, and eight really measured drives.

mod angle;
mod arm;
mod layout;
mod observed;
mod queue;
mod read_ahead;
mod segments;
mod state;
mod write_back;

use std::ops::Range;

use profile::hdd::{BufferParameters, BusParameters, HddParameters, Overheads, SECTOR_BYTES, Zone};
use trace::{Op, Request, Trace};
use units::Bytes;

use self::angle::Spindle;
use self::arm::{Access, Arm, Mechanism};
use self::layout::Layout;
use self::queue::Queue;
use self::segments::Segments;
use self::write_back::WriteBack;
use crate::device::submit_by_serving;
use crate::observe::{Cause, Path, Probe, Purpose, Watch, Way};
use crate::queued::{self, Queued};
use crate::snapshot::fingerprint;
use crate::{Counter, Device, SnapshotError};

/// The model of a hard disk.
#[derive(Clone, Debug)]
pub struct Hdd {
    mechanism: Mechanism,
    overhead: Overheads,
    bus: BusParameters,
    buffer: BufferParameters,
    sectors: u64,
    segments: Segments,
    arm: Arm,
    /// When the previous command completed.
    ready_at: u64,
    /// What the arm must do is done; a read-ahead gives way.
    arm_free_at: u64,
    after_write: bool,
    ahead: Option<Ahead>,
    /// The read at hand starts in or right after what a read before it left in memory.
    streaming: bool,
    write_back: WriteBack,
    /// When the last write to the platter that was begun ends.
    arm_writing_until: u64,
    counts: Counts,
    /// Commands that the disk holds; with 1 they are served in order of arrival.
    depth: usize,
    most_wait_ns: u64,
    queue: Queue,
    /// Of a trace that comes in batches.
    taken_ahead: queued::Ahead,
    /// What arm and buffer did was told up to here.
    told_until: [u64; 2],
    /// Of the parameters.
    fingerprint: u64,
}

/// A read-ahead into a segment.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    segment: usize,
    next: u64,
    limit: u64,
    at_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    requests: u64,
    read_bytes: u64,
    written_bytes: u64,
    read_hits: u64,
    partial_hits: u64,
    buffered_writes: u64,
}

impl Counts {
    fn note(&mut self, op: Op, len: u32) {
        self.requests += 1;
        match op {
            Op::Read => self.read_bytes += u64::from(len),
            Op::Write => self.written_bytes += u64::from(len),
            Op::Trim | Op::Flush => {}
        }
    }
}

impl Hdd {
    /// The disk of `parameters`, its arm over the first cylinder and its buffer empty.
    ///
    /// # Panics
    /// Where a geometry is impossible: the check of a profile refuses it before.
    pub fn new(parameters: &HddParameters) -> Self {
        let layout = Layout::new(&parameters.geometry);
        let sectors = parameters.sectors.unwrap_or(layout.sectors()).min(layout.sectors());
        let buffer = parameters.buffer;
        let seek_ns = parameters.seek.table_ns(layout.cylinders());
        let spindle = Spindle::new(parameters.rpm);
        let mechanism = Mechanism {
            settle_ns: settle_ns(parameters, &seek_ns),
            seek_ns,
            layout,
            spindle,
            head_switch_ns: parameters.head_switch_ns,
            write_settle_ns: parameters.write_settle_ns,
        };
        Self {
            mechanism,
            overhead: parameters.overhead,
            bus: parameters.bus,
            sectors,
            segments: Segments::new(buffer.segments as usize, buffer.segment_sectors),
            buffer,
            arm: Arm::default(),
            ready_at: 0,
            arm_free_at: 0,
            after_write: false,
            ahead: None,
            streaming: false,
            write_back: WriteBack::default(),
            arm_writing_until: 0,
            counts: Counts::default(),
            depth: parameters.queue.depth as usize,
            most_wait_ns: parameters.queue.most_wait_ns,
            queue: Queue::default(),
            taken_ahead: queued::Ahead::default(),
            told_until: [0; 2],
            fingerprint: fingerprint(parameters),
        }
    }

    fn read<W: Watch>(&mut self, start: u64, lbn: u64, count: u32, way: &mut Way<W>) -> u64 {
        self.advance_read_ahead(start, way);
        let end = lbn + u64::from(count);
        if self.write_back.holds(lbn, end) {
            self.counts.read_hits += 1;
            return self.buffer_answer(start, count, way);
        }
        let found = self.segments.find(lbn);
        self.streaming = found.is_some() || self.segments.ending_at(lbn).is_some();
        let after = usize::from(self.after_write);
        let completion = match found {
            Some(index) if self.segments.get(index).end >= end => {
                self.counts.read_hits += 1;
                let command = start + self.overhead.read_hit_ns[after];
                let begin = command + self.bus.preparation_ns;
                self.segments.touch(index);
                self.continue_after_hit(index, begin);
                let done = begin + u64::from(count) * self.bus.read_sector_ns;
                way.until(Cause::Controller, command);
                way.until(Cause::Cache, done);
                self.tell_buffer((start, done), way);
                done
            }
            Some(index) => self.read_rest(start, index, lbn, end, way),
            None => match self.ahead {
                // Its first sector is the one that is being read ahead.
                Some(ahead) if ahead.next == lbn && lbn < ahead.limit => {
                    self.read_rest(start, ahead.segment, lbn, end, way)
                }
                _ => self.read_miss(start, lbn, count, way),
            },
        };
        let completion = completion + self.overhead.read_completion_ns;
        way.until(Cause::Controller, completion);
        completion
    }

    /// When a read that needs no platter is complete.
    fn buffer_answer<W: Watch>(&mut self, start: u64, count: u32, way: &mut Way<W>) -> u64 {
        let begin = start + self.overhead.read_hit_ns[usize::from(self.after_write)];
        let data = u64::from(count) * self.bus.read_sector_ns + self.bus.preparation_ns;
        let completion = begin + data + self.overhead.read_completion_ns;
        way.until(Cause::Controller, begin);
        way.until(Cause::Cache, begin + data);
        way.until(Cause::Controller, completion);
        self.tell_buffer((start, completion), way);
        completion
    }

    /// The front of `lbn..end` is in segment `index`; the rest comes from the platter.
    fn read_rest<W: Watch>(
        &mut self,
        start: u64,
        index: usize,
        lbn: u64,
        end: u64,
        way: &mut Way<W>,
    ) -> u64 {
        self.counts.partial_hits += 1;
        let command = start + self.overhead.read_hit_ns[usize::from(self.after_write)];
        let begin = command + self.bus.preparation_ns;
        self.segments.touch(index);
        let (next, rest) = (self.segments.get(index).end, end - self.segments.get(index).end);
        let going_on = self
            .ahead
            .filter(|ahead| ahead.segment == index && ahead.next == next && next < ahead.limit);
        let from = going_on.map_or(begin.max(self.arm_free_at), |ahead| ahead.at_ns);
        let transfer = self.transfer(from, next, rest as u32, false);
        self.segments.extend(index, end);
        self.arm_free_at = transfer.end_ns;
        self.start_read_ahead(index, end, lbn, transfer.end_ns);
        let whole = (end - lbn) * self.bus.read_sector_ns;
        way.until(Cause::Controller, command);
        way.along(&transfer);
        self.tell_arm(&transfer, Op::Read, Purpose::Request, way);
        way.until(Cause::Transfer, transfer.bus_end_ns);
        way.until(Cause::Cache, begin + whole);
        (begin + whole).max(transfer.bus_end_ns)
    }

    fn read_miss<W: Watch>(&mut self, start: u64, lbn: u64, count: u32, way: &mut Way<W>) -> u64 {
        let begin = start + self.overhead.read_miss_ns[usize::from(self.after_write)];
        self.advance_read_ahead(begin, way);
        self.ahead = None;
        let from = begin.max(self.arm_free_at);
        let transfer = self.transfer(from, lbn, count, true);
        self.arm_free_at = transfer.end_ns;
        let end = lbn + u64::from(count);
        let front = if self.buffer.keep_passed { transfer.passed_before } else { 0 };
        let first = lbn - u64::from(front);
        self.segments.forget(first, end);
        if let Some(index) = self.segments.open(first, end) {
            self.start_read_ahead(index, end, lbn, transfer.end_ns);
        }
        way.until(Cause::Controller, begin);
        way.along(&transfer);
        self.tell_arm(&transfer, Op::Read, Purpose::Request, way);
        let completion = self.on_the_bus(&transfer, count);
        way.until(Cause::Transfer, completion);
        completion
    }

    /// When the data of a read have crossed the bus.
    fn on_the_bus(&self, transfer: &arm::Transfer, count: u32) -> u64 {
        let streamed = transfer.bus_end_ns + self.bus.preparation_ns;
        if self.bus.read_watermark == 0.0 {
            return streamed;
        }
        // Not before so much of the request is in the buffer is the disk back on the bus; coming
        // back runs beside the platter.
        let marked = (f64::from(count) * self.bus.read_watermark) as u64;
        let passing = (transfer.end_ns - transfer.start_ns) / u64::from(count);
        let back = transfer.start_ns + marked * passing + self.bus.preparation_ns;
        streamed.max(back + u64::from(count) * self.bus.read_sector_ns)
    }

    fn transfer(&mut self, from: u64, lbn: u64, count: u32, fresh: bool) -> arm::Transfer {
        let immediate = self.buffer.immediate_read;
        let bus_ns = self.bus.read_sector_ns;
        let access = Access { lbn, count, write: false, immediate, fresh, bus_ns };
        self.mechanism.access(&mut self.arm, from, 0, &access)
    }

    fn write<W: Watch>(&mut self, start: u64, lbn: u64, count: u32, way: &mut Way<W>) -> u64 {
        self.advance_read_ahead(start, way);
        if self.buffer.write_back == 0 || count > self.buffer.write_back_sectors {
            return self.write_through(start, lbn, count, way);
        }
        let mut start = start;
        while !self.has_room(lbn, count) {
            let now = self.arm_free_at.max(start);
            let (_, index) = self.nearest_dirty(now).expect("what is full holds something");
            start = start.max(self.write_out(index, now, way));
        }
        way.until(Cause::Destage, start);
        // A write takes the arm from the read-ahead.
        self.ahead = None;
        let begin = start + self.overhead.write_hit_ns[usize::from(self.after_write)];
        let data = begin + self.bus.write_data_delay_ns + self.bus.preparation_ns;
        let data_end = data + u64::from(count) * self.bus.write_sector_ns;
        self.buffer_write(lbn, count, data_end);
        let completion = data_end + self.overhead.write_completion_ns;
        way.until(Cause::Controller, begin);
        way.until(Cause::Cache, data_end);
        way.until(Cause::Controller, completion);
        self.tell_buffer((start, completion), way);
        completion
    }

    /// A write that is reported from the platter.
    fn write_through<W: Watch>(
        &mut self,
        start: u64,
        lbn: u64,
        count: u32,
        way: &mut Way<W>,
    ) -> u64 {
        self.ahead = None;
        let begin = start + self.command_ns(true);
        let data = begin + self.bus.write_data_delay_ns + self.bus.preparation_ns;
        let transfer = self.write_media(begin, data, lbn, count);
        self.segments.forget(lbn, lbn + u64::from(count));
        if self.buffer.read_written {
            self.keep_written(lbn, lbn + u64::from(count));
        }
        let data_end = data + u64::from(count) * self.bus.write_sector_ns;
        let reported = transfer.end_ns.max(data_end) + self.bus.status_reselect_ns;
        let completion = reported + self.overhead.write_completion_ns;
        way.until(Cause::Controller, begin + self.bus.write_move_delay_ns);
        way.along(&transfer);
        self.tell_arm(&transfer, Op::Write, Purpose::Request, way);
        way.until(Cause::Transfer, reported);
        way.until(Cause::Controller, completion);
        completion
    }

    /// Time to read a command that needs the platter.
    fn command_ns(&self, write: bool) -> u64 {
        let after = usize::from(self.after_write);
        if write { self.overhead.write_miss_ns[after] } else { self.overhead.read_miss_ns[after] }
    }

    /// Brings the data of a write to the platter; its first sector is in the buffer at `data`.
    fn write_media(&mut self, begin: u64, data: u64, lbn: u64, count: u32) -> arm::Transfer {
        let sector_ns = self.bus.write_sector_ns;
        let place = self.mechanism.layout.locate(lbn);
        let from = (begin + self.bus.write_move_delay_ns).max(self.arm_free_at);
        let settle = self.mechanism.write_settle_ns.max(0) as u64;
        let least = from + self.bus.write_move_least_ns + settle;
        // Every sector must be there when its place comes by: a slow bus delays the first one.
        let passing = self.mechanism.spindle.time_ns(place.sector_ticks);
        let behind = u64::from(count - 1) * sector_ns.saturating_sub(passing);
        let earliest = least.max(data + sector_ns + behind);
        let immediate = self.buffer.immediate_write;
        let access = Access { lbn, count, write: true, immediate, fresh: false, bus_ns: 0 };
        let transfer = self.mechanism.access(&mut self.arm, from, earliest, &access);
        self.arm_free_at = transfer.end_ns;
        self.arm_writing_until = transfer.end_ns;
        transfer
    }

    fn keep_written(&mut self, lbn: u64, end: u64) {
        match self.segments.ending_at(lbn) {
            Some(index) => {
                self.segments.extend(index, end);
                self.segments.touch(index);
            }
            None => {
                self.segments.open(lbn, end);
            }
        }
    }
}

/// Half a single-cylinder seek is settling on the track; never more than the track skew, in which
/// the drive is on another track altogether.
fn settle_ns(parameters: &HddParameters, seek_ns: &[u32]) -> u64 {
    let turn_ns = 60e9 / f64::from(parameters.rpm);
    let skew_ns =
        |zone: &Zone| zone.track_skew_sectors / f64::from(zone.sectors_per_track) * turn_ns;
    let skew = parameters.geometry.zones.iter().map(skew_ns).fold(f64::MAX, f64::min);
    let single = seek_ns.get(1).map_or(0.0, |ns| f64::from(*ns));
    (single / 2.0).min(skew) as u64
}

impl Hdd {
    /// Serves a request that comes when the one before is done, or waits for that.
    fn serve<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        assert!(self.queue.is_idle(), "single requests are not mixed with those of a queue");
        self.counts.note(request.op, request.len);
        let mut way = Way::new(watch, now);
        let way = &mut way;
        let start = now.max(self.ready_at);
        way.until(Cause::Queue, start);
        self.write_out_until(start, way);
        let moves_data = matches!(request.op, Op::Read | Op::Write) && request.len > 0;
        let completion = if moves_data {
            let lbn = request.offset.0 / SECTOR_BYTES;
            let last = (request.offset.0 + u64::from(request.len) - 1) / SECTOR_BYTES;
            let count = (last - lbn + 1) as u32;
            assert!(last < self.sectors, "the trace check keeps requests on the disk");
            let write = request.op == Op::Write;
            let completion = if write {
                self.write(start, lbn, count, way)
            } else {
                self.read(start, lbn, count, way)
            };
            self.after_write = write;
            completion
        } else if request.op == Op::Flush {
            let begin = start + self.overhead.write_hit_ns[usize::from(self.after_write)];
            self.flush(begin, way)
        } else {
            start + self.overhead.read_hit_ns[usize::from(self.after_write)]
        };
        way.until(Cause::Controller, completion);
        self.ready_at = completion;
        completion
    }

    /// Writes out everything that waits; the command was read at `begin`.
    fn flush<W: Watch>(&mut self, begin: u64, way: &mut Way<W>) -> u64 {
        way.until(Cause::Controller, begin);
        let end = self.write_out_all(begin, way);
        way.until(Cause::Flush, end);
        let completion = end + self.overhead.write_completion_ns;
        way.until(Cause::Controller, completion);
        completion
    }
}

impl Device for Hdd {
    submit_by_serving!();

    fn submit_due(&mut self, trace: &Trace, range: Range<usize>, completions: &mut [u64]) {
        assert_eq!(range.len(), completions.len(), "one completion per request");
        if self.depth > 1 {
            let mut ahead = std::mem::take(&mut self.taken_ahead);
            queued::submit_due(self, &mut ahead, trace, range, completions);
            self.taken_ahead = ahead;
            return;
        }
        for (index, completion) in range.zip(completions) {
            let request = trace.request(index);
            *completion = self.submit(request.due, &request).0;
        }
    }

    fn submit_due_observed(
        &mut self,
        trace: &Trace,
        range: Range<usize>,
        completions: &mut [u64],
        paths: &mut [Path],
        probe: &mut dyn Probe,
    ) {
        assert_eq!(range.len(), completions.len(), "one completion per request");
        assert_eq!(range.len(), paths.len(), "one path per request");
        if self.depth > 1 {
            let mut ahead = std::mem::take(&mut self.taken_ahead);
            let into = (completions, paths);
            queued::submit_due_observed(self, &mut ahead, trace, range, into, probe);
            self.taken_ahead = ahead;
            return;
        }
        for ((index, completion), path) in range.zip(completions).zip(paths) {
            let request = trace.request(index);
            probe.request(index);
            let found = self.submit_observed(request.due, &request, probe);
            (*completion, *path) = (found.0.0, found.1);
        }
    }

    fn queued(&mut self) -> Option<&mut dyn Queued> {
        (self.depth > 1).then_some(self as &mut dyn Queued)
    }

    fn snapshot(&self) -> Option<Vec<u8>> {
        Some(self.save())
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.load(bytes)
    }

    fn capacity(&self) -> Option<Bytes> {
        Some(Bytes(self.sectors * SECTOR_BYTES))
    }

    fn counters(&self) -> Vec<Counter> {
        let counts = &self.counts;
        [
            ("device_requests", counts.requests),
            ("device_read_bytes", counts.read_bytes),
            ("device_written_bytes", counts.written_bytes),
            ("device_read_hits", counts.read_hits),
            ("device_partial_hits", counts.partial_hits),
            ("device_buffered_writes", counts.buffered_writes),
        ]
        .map(|(name, value)| Counter { name, value })
        .to_vec()
    }
}

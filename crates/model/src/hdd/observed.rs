//! What a disk tells of itself: where the time of a request goes, and what the arm does.
//!
//! The path of a request follows the one thing that it waits for at a time: the commands before it
//! (queue), the command itself (controller), the arm (seek), the platter (rotation, then medium),
//! the bus behind it (transfer), or the buffer (cache). What runs beside something longer costs
//! nothing.
//!
//! Spans are those of the arm, with a read-ahead and what is written back under their own purposes,
//! and of the buffer. Invariant: spans of one of them never overlap. A disk with a queue lets the
//! buffer answer beside the arm, so a read-ahead may be told a little beyond the moment at which
//! the arm turns to the next command; what was told already is not told again.

use trace::Op;

use super::Hdd;
use super::arm::Transfer;
use crate::observe::{Activity, Cause, Purpose, Span, Track, TrackKind, Watch, Way};

const ARM: Track = Track::new(TrackKind::Arm, 0);
const BUFFER: Track = Track::new(TrackKind::Buffer, 0);

impl<W: Watch> Way<'_, W> {
    /// The request waits for the arm and is then transferred.
    #[inline]
    pub(super) fn along(&mut self, transfer: &Transfer) {
        self.until(Cause::Queue, transfer.from_ns);
        self.until(Cause::Seek, transfer.moved_ns);
        // Data on their way to the buffer.
        self.until(Cause::Transfer, transfer.on_track_ns);
        self.until(Cause::Rotation, transfer.start_ns);
        self.until(Cause::Medium, transfer.end_ns);
    }
}

impl Hdd {
    /// The arm made `transfer` for `purpose`.
    #[inline]
    pub(super) fn tell_arm<W: Watch>(
        &mut self,
        transfer: &Transfer,
        op: Op,
        purpose: Purpose,
        way: &mut Way<W>,
    ) {
        if W::ACTIVE {
            self.tell(Activity::Seek, (transfer.from_ns, transfer.moved_ns), purpose, way);
            self.tell(Activity::Rotate, (transfer.on_track_ns, transfer.start_ns), purpose, way);
            self.tell(op.into(), (transfer.start_ns, transfer.end_ns), purpose, way);
        }
    }

    /// The arm read ahead.
    #[inline]
    pub(super) fn tell_read_ahead<W: Watch>(&mut self, span: (u64, u64), way: &mut Way<W>) {
        if W::ACTIVE {
            self.tell(Activity::Read, span, Purpose::ReadAhead, way);
        }
    }

    /// The buffer served a request.
    #[inline]
    pub(super) fn tell_buffer<W: Watch>(&mut self, span: (u64, u64), way: &mut Way<W>) {
        if W::ACTIVE {
            self.tell(Activity::Hit, span, Purpose::Request, way);
        }
    }

    fn tell<W: Watch>(
        &mut self,
        activity: Activity,
        (start, end): (u64, u64),
        purpose: Purpose,
        way: &mut Way<W>,
    ) {
        let (track, told_until) = match activity {
            Activity::Hit => (BUFFER, &mut self.told_until[1]),
            _ => (ARM, &mut self.told_until[0]),
        };
        let start = start.max(*told_until);
        if start < end {
            way.watch.span(Span::new(track, activity, start, end).on_behalf_of(purpose));
            *told_until = end;
        }
    }
}

//! Reading on after a read, until something else wants the arm: how far, and how far it has come.
//!
//! It is worked out when the disk is next asked for something. Invariant: a read-ahead never holds
//! the arm from a request.

use profile::hdd::ReadAhead;

use super::{Ahead, Hdd};
use crate::observe::{Watch, Way};

impl Hdd {
    /// Starts to read on after `end` into segment `index`; the host asked for `lbn..end`.
    pub(super) fn start_read_ahead(&mut self, index: usize, end: u64, lbn: u64, at_ns: u64) {
        let size = self.segments.size_sectors();
        let room = if self.buffer.read_ahead_over_requested {
            size
        } else {
            size.saturating_sub(end - lbn)
        };
        let most = room.min(u64::from(self.buffer.read_ahead_most_sectors));
        let reach = match self.buffer.read_ahead {
            ReadAhead::Segment => end + most,
            ReadAhead::Track if end < self.sectors => self.end_of_track(end),
            ReadAhead::Track | ReadAhead::None => end,
            ReadAhead::NextTrack => self.end_of_stream(end),
            ReadAhead::Cylinder => self.end_of_cylinder(end - 1),
        };
        let limit = reach.min(end + most).min(self.sectors);
        self.ahead = (limit > end).then_some(Ahead { segment: index, next: end, limit, at_ns });
    }

    /// How far a drive that looks for streams reads on before `end`: to the end of the track,
    /// and of the next one where the track before was read too. A drive whose segments do not hold
    /// a track goes on only where a read continues what is in memory.
    fn end_of_stream(&self, end: u64) -> u64 {
        let place = self.mechanism.layout.locate(end - 1);
        let track_start = end - 1 - u64::from(place.run_before);
        let track_end = end - 1 + u64::from(place.run);
        if track_end - track_start > self.segments.size_sectors() {
            return if self.streaming { end + self.segments.size_sectors() } else { end };
        }
        let stream = track_start > 0 && self.segments.find(track_start - 1).is_some();
        if stream && track_end < self.sectors { self.end_of_track(track_end) } else { track_end }
    }

    fn end_of_track(&self, lbn: u64) -> u64 {
        lbn + u64::from(self.mechanism.layout.locate(lbn).run)
    }

    fn end_of_cylinder(&self, lbn: u64) -> u64 {
        let cylinder = self.mechanism.layout.locate(lbn).cylinder;
        let mut end = self.end_of_track(lbn);
        while end < self.sectors && self.mechanism.layout.locate(end).cylinder == cylinder {
            end = self.end_of_track(end);
        }
        end
    }

    /// A hit in segment `index` starts the read-ahead of that segment anew where it had stopped.
    pub(super) fn continue_after_hit(&mut self, index: usize, begin: u64) {
        let idle = self.ahead.is_none_or(|ahead| ahead.next >= ahead.limit);
        if !self.buffer.read_ahead_after_hit || !idle {
            return;
        }
        let segment = self.segments.get(index);
        if segment.end < self.sectors {
            let at_ns = begin.max(self.arm_free_at);
            self.start_read_ahead(index, segment.end, segment.end, at_ns);
        }
    }

    /// Lets the read-ahead run until `until_ns`.
    pub(super) fn advance_read_ahead<W: Watch>(&mut self, until_ns: u64, way: &mut Way<W>) {
        let Some(ahead) = &mut self.ahead else { return };
        let span = (ahead.at_ns, until_ns);
        let count = ahead.limit - ahead.next;
        if count == 0 || span.0 >= span.1 {
            return;
        }
        let (got, at_ns) = self.mechanism.read_ahead(&mut self.arm, span, ahead.next, count);
        ahead.next += got;
        ahead.at_ns = at_ns;
        self.segments.extend(ahead.segment, ahead.next);
        self.tell_read_ahead((span.0, at_ns), way);
    }
}

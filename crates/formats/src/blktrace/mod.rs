//! Binary block traces: `struct blk_io_trace` as the kernel's tracer writes it, version 7
//! (`include/uapi/linux/blktrace_api.h`; `blktrace(8)`).
//!
//! A record is 48 bytes, then `pdu_len` bytes of payload that are skipped: `u32 magic` (0x65617400
//! with the version in its low byte), `u32 sequence`, `u64 time` in ns, `u64 sector`, `u32 bytes`,
//! `u32 action`, `u32 pid`, `u32 device`, `u32 cpu`, `u16 error`, `u16 pdu_len`, in the byte order
//! of the traced machine, which the magic shows. The low 8 bits of `action` say what happened, bit
//! 8 that the payload starts with a cgroup, the high 16 bits what kind of command it is. Notes of
//! the tracer (process names, the wall clock, messages) carry the notify bit.
//!
//! `blktrace` leaves a file per processor, `NAME.blktrace.N`; naming one reads them all, merged by
//! time. See [`super::block_events`] for what becomes of the events.
//!
//! Tested with records built here in both byte orders, cut anywhere, damaged, and split into files.

mod parts;
mod record;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::batch::Batch;
use super::block_events::{BlockEvent, Clock, Events};
use super::cause::Place;
use super::decode::{Decoder, Fault, Piece, Times};
use super::entry::{Entry, Guess, Reader, Start};
use super::format::Format;
use super::notes::Notes;
use record::{ByteOrder, Parsed, RECORD_BYTES};

/// How the table lists the format.
pub(super) static ENTRY: Entry = Entry {
    format: Format::Blktrace,
    guess,
    reader: Reader::Stream(|options| Box::new(Blktrace::new(options.queued_times))),
    times: Times::Relative,
    has_service: true,
    stream_prefix: "",
    grammar: "a record starts with the magic 0x65617407 and has 48 bytes and its payload",
    parts: Some(parts::parts),
};

fn guess(start: &Start<'_>) -> Option<Guess> {
    let order = ByteOrder::of(start.bytes)?;
    let evidence = format!("starts with the magic of blk_io_trace, {} endian", order.name());
    Some(Guess { score: 100, evidence })
}

/// Records taken from one file before the others are looked at: bounds what is held back.
const TURN_BYTES: usize = 256 << 10;

/// One file.
#[derive(Default)]
struct Source {
    /// Events that wait for those of other files.
    queue: Vec<BlockEvent>,
    taken: usize,
    /// Bytes consumed.
    position: u64,
    order: Option<ByteOrder>,
    done: bool,
}

/// Decodes one file, or several of one trace.
pub(super) struct Blktrace {
    sources: Vec<Source>,
    /// Whether more files may follow those seen.
    probing: bool,
    events: Events,
    failed: u64,
    notes: u64,
    wall_clock_ns: Option<u64>,
}

impl Blktrace {
    pub(super) fn new(queued_times: bool) -> Self {
        Self {
            sources: Vec::new(),
            probing: true,
            events: Events::new(Clock::SinceBoot, queued_times),
            failed: 0,
            notes: 0,
            wall_clock_ns: None,
        }
    }

    /// Takes the records at the front of a piece; its events go to the queue, or on where there is
    /// one file only.
    fn records<const BIG: bool>(&mut self, piece: Piece<'_>) -> Result<usize, Fault> {
        let alone = !self.probing && self.sources.len() == 1 && self.sources[0].queue.is_empty();
        let source = &mut self.sources[piece.source];
        let bytes = piece.bytes;
        let mut at = 0;
        while let Some(fixed) = bytes[at..].first_chunk::<RECORD_BYTES>() {
            if !alone && at >= TURN_BYTES {
                break;
            }
            let parsed = match record::parse::<BIG>(fixed) {
                Ok(parsed) => parsed,
                Err(fault) => {
                    let place = Place::Byte(source.position + at as u64);
                    let resume = fault
                        .resume(&bytes[at..], if BIG { ByteOrder::Big } else { ByteOrder::Little })
                        .map(|skip| at + skip);
                    source.position += resume.unwrap_or(at) as u64;
                    return Err(Fault { place, cause: fault.cause, resume });
                }
            };
            let end = at + RECORD_BYTES + usize::from(parsed.payload_bytes);
            if end > bytes.len() {
                break;
            }
            match parsed.event {
                Parsed::Event(event) => {
                    self.failed += u64::from(parsed.failed);
                    if alone {
                        self.events.take(event);
                    } else if self.events.admit(&event) {
                        source.queue.push(event);
                    }
                }
                Parsed::WallClock => {
                    self.notes += 1;
                    let payload = &bytes[at + RECORD_BYTES..end];
                    self.wall_clock_ns = self.wall_clock_ns.or(record::wall_clock::<BIG>(payload));
                }
                Parsed::Note => self.notes += 1,
            }
            at = end;
        }
        source.position += at as u64;
        Ok(at)
    }

    /// Passes on events of all files in the order of time, until one of them must be asked for
    /// more.
    fn merge(&mut self) {
        let mut heads: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        for (index, source) in self.sources.iter().enumerate() {
            match source.queue.get(source.taken) {
                Some(event) => heads.push(Reverse((event.time_ns, index))),
                None if !source.done => return,
                None => {}
            }
        }
        while let Some(Reverse((_, index))) = heads.pop() {
            let until = heads.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
            let source = &mut self.sources[index];
            while let Some(event) = source.queue.get(source.taken)
                && event.time_ns <= until
            {
                self.events.push(*event);
                source.taken += 1;
            }
            if let Some(event) = source.queue.get(source.taken) {
                heads.push(Reverse((event.time_ns, index)));
                continue;
            }
            source.queue.clear();
            source.taken = 0;
            if !source.done {
                break;
            }
        }
    }
}

impl Decoder for Blktrace {
    fn wants(&self) -> usize {
        let dry = |source: &Source| !source.done && source.taken == source.queue.len();
        match self.sources.iter().position(dry) {
            _ if self.probing => self.sources.len(),
            Some(index) => index,
            None => 0,
        }
    }

    fn decode(&mut self, piece: Piece<'_>, _out: &mut Batch) -> Result<usize, Fault> {
        // The engine gives a file that was not asked for where the one asked for does not exist.
        self.probing &= piece.source >= self.sources.len();
        if piece.source >= self.sources.len() {
            self.sources.resize_with(piece.source + 1, Source::default);
        }
        let cut = |position| Fault {
            place: Place::Byte(position),
            cause: "the last record is cut off".to_owned(),
            resume: Some(piece.bytes.len()),
        };
        let source = &mut self.sources[piece.source];
        if source.order.is_none() {
            source.order = ByteOrder::of(piece.bytes);
        }
        let consumed = match source.order {
            Some(ByteOrder::Little) => self.records::<false>(piece)?,
            Some(ByteOrder::Big) => self.records::<true>(piece)?,
            None if piece.bytes.len() < 4 => 0,
            None => {
                let cause = "this is not the magic of blk_io_trace".to_owned();
                let fault = Fault { place: Place::Byte(0), cause, resume: None };
                return Err(fault);
            }
        };
        let source = &mut self.sources[piece.source];
        let left = piece.bytes.len() - consumed;
        if piece.at_end && left > 0 && (consumed == 0 || left < RECORD_BYTES) {
            let position = source.position;
            source.position += left as u64;
            source.done = true;
            return Err(cut(position));
        }
        source.done = piece.at_end && left == 0;
        if !self.probing {
            self.merge();
        }
        Ok(consumed)
    }

    fn finish(&mut self, out: &mut Batch, notes: &mut Notes) -> Result<(), Fault> {
        self.probing = false;
        for source in &mut self.sources {
            source.done = true;
        }
        self.merge();
        notes.count("notes of the tracer", self.notes);
        notes.count("completions with an error", self.failed);
        if let Some(nanos) = self.wall_clock_ns {
            out.facts.insert("wall_clock_ns".to_owned(), nanos.to_string());
        }
        self.events.finish(out, notes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Hewlett-Packard Laboratories' SRT traces, version 1.3 ("TR_IOREC"), binary (Ruemmler and Wilkes,
//! "UNIX disk access patterns", USENIX Winter 1993, describes what was traced).
//!
//! A text header describes machine and disks and ends with a form feed. Records follow, big-endian
//! 32-bit words: `size in bytes, version << 16 | kind, seconds, microseconds, start, stop, length
//! in bytes, block, device, driver, cylinder, flags, info[, queue length]`. Time is when the
//! request was queued, from the start of the trace; start and stop are us after that: issue and
//! completion. Blocks have the disk's `sectorsize` of the header (256 bytes on the disks of 1992:
//! block / sectors per cylinder is the cylinder field). Flag bit 0 is a read. Kind 1 is an I/O;
//! others are counted. The disk is bits 8 to 15 of the device and becomes the stream.
//!
//! Worked out from a trace and from how DiskSim reads it. Tested with records built here.

use trace::Op;

use super::ReadOptions;
use super::batch::{Batch, Row};
use super::cause::Place;
use super::decode::{Decoder, Fault, Piece, Times};
use super::entry::{Entry, Guess, Reader, Start};
use super::format::Format;
use super::notes::Notes;

const MAGIC: &[u8] = b"$$TR_IOREC-";
/// Ends the header.
const FORM_FEED: u8 = 0x0c;
const KIND_IO: u32 = 1;
/// Words of a record that are used.
const WORDS: usize = 12;
/// No record of any version is longer.
const LARGEST_BYTES: usize = 4096;
const FLAG_READ: u32 = 1;

/// How the table lists the format.
pub(super) static ENTRY: Entry = Entry {
    format: Format::HpSrt,
    guess: |start: &Start<'_>| {
        let evidence = "starts with $$TR_IOREC-".to_owned();
        start.bytes.starts_with(MAGIC).then_some(Guess { score: 100, evidence })
    },
    reader: Reader::Stream(|options| Box::new(HpSrt::new(options))),
    times: Times::Relative,
    has_service: true,
    stream_prefix: "disk",
    grammar: "an SRT file has a text header, a form feed, and records that start with their size",
    parts: None,
};

struct HpSrt {
    queued_times: bool,
    /// Unit of the block field; `None` before the header was read.
    sector_bytes: Option<u64>,
    given_sector_bytes: Option<u32>,
    position: u64,
    others: u64,
}

impl HpSrt {
    fn new(options: &ReadOptions) -> Self {
        Self {
            queued_times: options.queued_times,
            sector_bytes: None,
            given_sector_bytes: options.sector_bytes,
            position: 0,
            others: 0,
        }
    }

    fn fault(&self, at: usize, cause: impl Into<String>, resume: Option<usize>) -> Fault {
        Fault { place: Place::Byte(self.position + at as u64), cause: cause.into(), resume }
    }

    /// Takes the header; says how long it is, zero where it is not whole yet.
    fn header(&mut self, piece: Piece<'_>, out: &mut Batch) -> Result<usize, Fault> {
        let Some(end) = piece.bytes.iter().position(|byte| *byte == FORM_FEED) else {
            if piece.at_end {
                return Err(self.fault(0, "the header has no end (a form feed)", None));
            }
            return Ok(0);
        };
        if !piece.bytes.starts_with(MAGIC) {
            return Err(self.fault(0, "this is not the header of an SRT file", None));
        }
        let header = String::from_utf8_lossy(&piece.bytes[..end]);
        let stated = setting(&header, "sectorsize").and_then(|text| text.parse::<u32>().ok());
        let sector_bytes = self.given_sector_bytes.or(stated).filter(|size| *size > 0);
        self.sector_bytes = Some(u64::from(sector_bytes.unwrap_or(512)));
        for name in ["tracedate", "system"] {
            if let Some(value) = setting(&header, name) {
                out.facts.insert(name.to_owned(), value.to_owned());
            }
        }
        Ok(end + 1)
    }

    fn record(&self, record: &[u8], sector: u64, out: &mut Batch) -> Result<(), &'static str> {
        let word = |index: usize| {
            let at = index * 4;
            u32::from_be_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        let (start_us, stop_us) = (u64::from(word(4)), u64::from(word(5)));
        let service_us = stop_us.checked_sub(start_us).ok_or("it stops before it starts")?;
        let queued_us = u64::from(word(2)) * 1_000_000 + u64::from(word(3));
        let due_us = if self.queued_times { queued_us } else { queued_us + start_us };
        let disk = u64::from(word(8) >> 8 & 0xff);
        let stream = out.streams.number(disk).map_err(|_| "too many disks")?;
        out.push(Row {
            due_ns: due_us * 1000,
            // 32 bits by at most 32 bits, so this fits and so does what follows.
            offset_bytes: u64::from(word(7)) * sector,
            len_bytes: word(6),
            op: if word(11) & FLAG_READ == 0 { Op::Write } else { Op::Read },
            stream,
            service_ns: (service_us * 1000).max(1),
        });
        Ok(())
    }
}

/// The first value of that name in the header: `name = value,` or `name = "value";`.
fn setting<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let at = header.find(name)?;
    let (_, value) = header[at + name.len()..].split_once('=')?;
    let line = value.lines().next()?.trim();
    Some(line.trim_end_matches([',', ';']).trim_matches('"'))
}

impl Decoder for HpSrt {
    fn decode(&mut self, piece: Piece<'_>, out: &mut Batch) -> Result<usize, Fault> {
        let Some(sector) = self.sector_bytes else {
            let consumed = self.header(piece, out)?;
            self.position += consumed as u64;
            return Ok(consumed);
        };
        let bytes = piece.bytes;
        let mut at = 0;
        while let Some(head) = bytes[at..].first_chunk::<8>() {
            let size = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let kind = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
            if !(WORDS * 4..=LARGEST_BYTES).contains(&size) {
                let cause = format!("the size of the record is {size}");
                return Err(self.fault(at, cause, None));
            }
            let Some(record) = bytes[at..].get(..size) else { break };
            if kind & 0xffff == KIND_IO {
                if let Err(cause) = self.record(record, sector, out) {
                    let fault = self.fault(at, cause, Some(at + size));
                    self.position += (at + size) as u64;
                    return Err(fault);
                }
            } else {
                self.others += 1;
            }
            at += size;
        }
        if piece.at_end && at == 0 && !bytes.is_empty() {
            return Err(self.fault(0, "the last record is cut off", Some(bytes.len())));
        }
        self.position += at as u64;
        Ok(at)
    }

    fn finish(&mut self, _out: &mut Batch, notes: &mut Notes) -> Result<(), Fault> {
        notes.count("records of other kinds", self.others);
        if let Some(sector) = self.sector_bytes {
            notes.understood.push(format!("blocks of {sector} bytes"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{detect, read_from};
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;
    use std::path::Path;
    use trace::Trace;

    const HEADER: &str =
        "$$TR_IOREC-1.3 (x)\0\ntracedate = \"Sat\";\ndisks = {\n\tsectorsize  = 256,\n};\n\x0c";

    fn record(kind: u32, us: u32, start: u32, stop: u32, block: u32, flags: u32) -> Vec<u8> {
        let words =
            [56, 4 << 16 | kind, 2, us, start, stop, 1024, block, 0x0800_0107, 4, 0, flags, 0, 1];
        words.map(u32::to_be_bytes).concat()
    }

    fn parse(bytes: Vec<u8>, queued_times: bool, lenient: bool) -> crate::Result<(Trace, Notes)> {
        let options = ReadOptions { lenient, queued_times, ..ReadOptions::default() };
        read_from(Cursor::new(bytes), Path::new("x.srt"), Format::HpSrt, &options)
    }

    fn file(records: &[Vec<u8>]) -> Vec<u8> {
        [HEADER.as_bytes(), &records.concat()].concat()
    }

    #[test]
    fn records_become_requests() {
        let records =
            [record(1, 10, 5, 25, 3, 1), record(2, 0, 0, 0, 0, 0), record(1, 12, 1, 1, 7, 2)];
        let (trace, notes) = parse(file(&records), false, false).expect("reads");
        // The second was issued before the first.
        assert_eq!(trace.due, [0, 2_000]);
        assert_eq!(trace.origin.facts["start_ns"], "2000013000");
        assert_eq!((trace.offset, trace.len), (vec![7 * 256, 3 * 256], vec![1024, 1024]));
        assert_eq!((trace.op, trace.service), (vec![Op::Write, Op::Read], Some(vec![1, 20_000])));
        assert_eq!((trace.streams[0].name.as_str(), notes.out_of_order), ("disk1", 1));
        assert_eq!((trace.origin.facts["tracedate"].as_str(), notes.counted[0].count), ("Sat", 1));
        let (trace, _) = parse(file(&records), true, false).expect("reads");
        assert_eq!(trace.due, [0, 2_000]);
        assert_eq!(trace.origin.facts["start_ns"], "2000010000");
    }

    #[test]
    fn it_is_recognised_by_its_header() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x");
        std::fs::write(&path, file(&[])).expect("written");
        assert_eq!(detect(&path).expect("known").format, Format::HpSrt);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let good = record(1, 0, 0, 1, 0, 0);
        let mut sized = file(std::slice::from_ref(&good));
        sized[HEADER.len() + 3] = 3;
        let cut = [file(&[]), good[..50].to_vec()].concat();
        for (bytes, cause) in [
            (b"$$TR_IOREC-1.3 no end".to_vec(), "byte 0: the header has no end (a form feed)"),
            (b"something\x0c".to_vec(), "byte 0: this is not the header of an SRT file"),
            (sized, "byte 73: the size of the record is 3"),
            (cut, "byte 73: the last record is cut off"),
            (file(&[record(1, 0, 2, 1, 0, 0)]), "byte 73: it stops before it starts"),
        ] {
            let error = parse(bytes, false, false).expect_err(cause).to_string();
            assert_eq!(error, format!("x.srt: {cause}"));
        }
        let (trace, notes) =
            parse(file(&[record(1, 0, 2, 1, 0, 0), good]), false, true).expect("leniently");
        assert_eq!((trace.count(), notes.bad), (1, 1));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_trace_or_an_error(tail: Vec<u8>, lenient: bool) {
            for head in [Vec::new(), file(&[record(1, 0, 0, 1, 0, 0)])] {
                if let Ok((trace, _)) = parse([head, tail.clone()].concat(), false, lenient) {
                    prop_assert_eq!(trace.validate(), Ok(()));
                }
            }
        }
    }
}

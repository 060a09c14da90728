//! SPC text traces ("SPC Trace File Format Specification", revision 1.0.1, Storage Performance
//! Council), the format of the UMass repository (Financial1, WebSearch1).
//!
//! One request per line: `ASU,LBA,size,opcode,timestamp[,optional...]`. ASU is an application
//! storage unit, kept as the stream `asuN`; LBA counts 512-byte blocks within it; size is in bytes;
//! the opcode is `r`, `R`, `w` or `W`; the timestamp is in decimal seconds and never falls. Further
//! fields are ignored, as are empty lines and carriage returns.
//!
//! Each ASU has its own address space in the file; it keeps it here, so requests of different
//! streams may carry the same offset; [`Trace::stack_streams`] lays them out on one device. Times
//! are kept to the nanosecond (a tenth digit is dropped).
//!
//! Everything else is an error with file, line and cause. Tested with a table of wrong lines, a
//! round-trip property, and arbitrary bytes, which must never panic; the parser gives the same
//! answer wherever the reader's chunks end.

#![allow(clippy::inline_always, reason = "a call per field would cost more than the field")]

use trace::Op;

use super::batch::{Batch, Row, SERVICE_UNKNOWN_NS};
use super::cause::Cause;
use super::decode::{LineFormat, Times};
use super::entry::{Entry, Reader};
use super::format::Format;
use super::guess::guess_by_lines;
use super::machine;
use super::scan::{FastLine, Fields, Machine};
use super::streams::Streams;

/// Unit of the LBA field.
const BLOCK_BYTES: u64 = 512;

/// The entry of the table.
pub(super) static ENTRY: Entry = Entry {
    format: Format::Spc,
    guess: |start| guess_by_lines(start, &Spc, "ASU,LBA,size,op,seconds"),
    reader: Reader::Lines(|_| Box::new(Spc)),
    times: Times::Relative,
    has_service: false,
    stream_prefix: "asu",
    grammar: "an SPC line is ASU,LBA,size,r|w,seconds",
    parts: None,
};

/// The format: each line by itself.
struct Spc;

impl LineFormat for Spc {
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        let (asu, rest) = number(line, "ASU")?;
        let (lba, rest) = number(comma(rest)?, "LBA")?;
        let (size, rest) = number(comma(rest)?, "size")?;
        let rest = comma(rest)?;
        let op = match rest.first() {
            Some(b'r' | b'R') => Op::Read,
            Some(b'w' | b'W') => Op::Write,
            _ => return Err(Cause::Said("the opcode is neither r nor w")),
        };
        let (due_ns, rest) = seconds(comma(&rest[1..])?)?;
        match rest.trim_ascii_end() {
            [] | [b',', ..] => {}
            _ => return Err(Cause::Said("something other than a comma follows the timestamp")),
        }
        let len_bytes = u32::try_from(size).map_err(|_| Cause::TooLarge("size"))?;
        let offset_bytes = lba.checked_mul(BLOCK_BYTES).ok_or(Cause::TooLarge("LBA"))?;
        offset_bytes.checked_add(size).ok_or(Cause::TooLarge("LBA"))?;
        let stream = out.streams.number(asu)?;
        let service_ns = SERVICE_UNKNOWN_NS;
        out.push(Row { due_ns, offset_bytes, len_bytes, op, stream, service_ns });
        Ok(())
    }

    fn lines(&self, text: &[u8], out: &mut Batch) -> Result<(), (usize, Cause)> {
        machine::lines(self, text, out)
    }
}

impl FastLine for Spc {
    const HAS_SERVICE: bool = false;

    #[inline(always)]
    fn fast<M: Machine>(&self, line: &mut Fields<'_, M>, streams: &Streams) -> Option<Row> {
        let asu = line.small(b',');
        let lba = line.digits8(b',');
        let size = line.digits8(b',');
        let op = line.read_or_write(b',');
        let seconds = line.digits8(b'.');
        let (fraction, ninth) = line.fraction(b'\n');
        let [lba, size, seconds, fraction] = line.values([lba, size, seconds, fraction]);
        Some(Row {
            due_ns: seconds * 1_000_000_000 + fraction * 10 + ninth,
            offset_bytes: lba * BLOCK_BYTES,
            len_bytes: size as u32,
            op,
            stream: streams.known(asu)?,
            service_ns: SERVICE_UNKNOWN_NS,
        })
    }
}

/// A decimal number of at most 19 digits, which always fits.
fn number<'a>(text: &'a [u8], field: &'static str) -> Result<(u64, &'a [u8]), Cause> {
    let length = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    match length {
        0 => Err(Cause::NotANumber(field)),
        1..=19 => {
            let digits = text[..length].iter();
            let value = digits.fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
            Ok((value, &text[length..]))
        }
        _ => Err(Cause::TooLarge(field)),
    }
}

fn comma(text: &[u8]) -> Result<&[u8], Cause> {
    match text.split_first() {
        Some((b',', rest)) => Ok(rest),
        None => Err(Cause::MissingField("five fields, separated by commas")),
        Some(_) => Err(Cause::NotANumber("a field")),
    }
}

/// Decimal seconds as nanoseconds.
fn seconds(text: &[u8]) -> Result<(u64, &[u8]), Cause> {
    let wrong = Cause::Said("the timestamp is not a number of seconds");
    let (whole, mut rest) = number(text, "timestamp").map_err(|_| wrong)?;
    let large = || Cause::TooLarge("timestamp");
    let mut nanos = whole.checked_mul(1_000_000_000).ok_or_else(large)?;
    if let Some((b'.', fraction)) = rest.split_first() {
        let length = fraction.iter().position(|byte| !byte.is_ascii_digit());
        let (digits, behind) = fraction.split_at(length.unwrap_or(fraction.len()));
        let nine = digits.iter().chain(std::iter::repeat(&b'0')).take(9);
        let value = nine.fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        nanos = nanos.checked_add(value).ok_or_else(large)?;
        rest = behind;
    }
    Ok((nanos, rest))
}

#[cfg(test)]
mod tests {
    use super::super::decode::LARGEST_RECORD_BYTES;
    use super::*;
    use crate::Result;
    use crate::{ReadOptions, read_from};
    use std::io::{ErrorKind, Read};
    use std::path::Path;
    use trace::Trace;

    use proptest::prelude::*;

    fn parse(text: &[u8]) -> Result<Trace> {
        parse_from(std::io::Cursor::new(text.to_vec()))
    }

    fn parse_from(input: impl Read + Send + 'static) -> Result<Trace> {
        let options = ReadOptions::default();
        Ok(read_from(input, Path::new("some.spc"), Format::Spc, &options)?.0)
    }

    /// Two lines as the UMass repository has them, then what else the format allows.
    const EXAMPLE: &[u8] = b"0,303567,3584,w,0.000000\n\
        1,55590,3072,R,0.026214\r\n\
        \n\
        12,0,512,W,1.5,optional,fields\n\
        0,1,0,r,2";

    #[test]
    fn lines_become_requests() {
        let trace = parse(EXAMPLE).expect("reads");
        let shown: Vec<_> = trace
            .requests()
            .map(|r| {
                (r.due.0, r.offset.0, r.len, r.op, trace.streams[r.stream as usize].name.as_str())
            })
            .collect();
        assert_eq!(
            shown,
            [
                (0, 303_567 * 512, 3584, Op::Write, "asu0"),
                (26_214_000, 55_590 * 512, 3072, Op::Read, "asu1"),
                (1_500_000_000, 0, 512, Op::Write, "asu12"),
                (2_000_000_000, 512, 0, Op::Read, "asu0"),
            ]
        );
    }

    #[test]
    fn streams_are_in_the_order_of_their_numbers() {
        let trace = parse(b"5,0,1,r,0\n2,0,2,r,0\n5,0,3,r,0\n9,0,4,r,0\n").expect("reads");
        let names: Vec<_> = trace.streams.iter().map(|stream| stream.name.as_str()).collect();
        assert_eq!(
            (names.as_slice(), trace.stream),
            (["asu2", "asu5", "asu9"].as_slice(), vec![1, 0, 1, 2])
        );
    }

    #[test]
    fn times_are_kept_to_the_nanosecond() {
        for (text, expected) in [
            ("0.1234567891", 123_456_789),
            ("0.000000001", 1),
            ("3.", 3_000_000_000),
            ("18446744073.709551615", u64::MAX),
            ("00000000000000000.5", 500_000_000),
        ] {
            let trace = parse(format!("0,0,1,r,{text}").as_bytes()).expect(text);
            assert_eq!(trace.origin.facts["start_ns"], expected.to_string(), "{text}");
        }
    }

    #[track_caller]
    fn check_error(text: &[u8], expected: &str) {
        assert_eq!(parse(text).expect_err("a wrong line").to_string(), expected);
    }

    #[test]
    fn a_wrong_line_is_named_with_its_cause() {
        let one = "some.spc:1: ";
        for (line, cause) in [
            ("x,1,512,r,0", "ASU is not a whole number: 'x,1,512,r,0'"),
            (",1,512,r,0", "ASU is not a whole number: ',1,512,r,0'"),
            ("-1,1,512,r,0", "ASU is not a whole number: '-1,1,512,r,0'"),
            ("0,1.5,512,r,0", "a field is not a whole number: '0,1.5,512,r,0'"),
            ("0,1,r,0", "size is not a whole number: '0,1,r,0'"),
            ("0,1,512", "fewer than five fields, separated by commas: '0,1,512'"),
            ("0,1,512,r", "fewer than five fields, separated by commas: '0,1,512,r'"),
            ("0,1,512,", "the opcode is neither r nor w: '0,1,512,'"),
            ("0,1,512,x,0", "the opcode is neither r nor w: '0,1,512,x,0'"),
            ("0,1,512,r,", "the timestamp is not a number of seconds: '0,1,512,r,'"),
            ("0,1,512,r,-1", "the timestamp is not a number of seconds: '0,1,512,r,-1'"),
            (
                "0,1,512,r,1e3",
                "something other than a comma follows the timestamp: '0,1,512,r,1e3'",
            ),
            (
                "0,1,512,r,1 x",
                "something other than a comma follows the timestamp: '0,1,512,r,1 x'",
            ),
            (" 0,1,512,r,1", "ASU is not a whole number: ' 0,1,512,r,1'"),
            ("0,1,4294967296,r,1", "size is too large: '0,1,4294967296,r,1'"),
            ("0,36028797018963968,1,r,1", "LBA is too large: '0,36028797018963968,1,r,1'"),
            ("0,36028797018963967,512,r,1", "LBA is too large: '0,36028797018963967,512,r,1'"),
            ("0,99999999999999999999,1,r,1", "LBA is too large: '0,99999999999999999999,1,r,1'"),
            (
                "0,1,1,r,18446744073.709551616",
                "timestamp is too large: '0,1,1,r,18446744073.709551616'",
            ),
        ] {
            check_error(line.as_bytes(), &format!("{one}{cause}"));
        }
        check_error(
            b"0,1,512,r,2\n\n0,1,512,x,1\n0,1,512,r,3",
            "some.spc:3: the opcode is neither r nor w: '0,1,512,x,1'",
        );
        check_error(b"0,1,512,r,0\n\xff\n", "some.spc:2: ASU is not a whole number: '\u{fffd}'");
    }

    #[test]
    fn a_line_that_never_ends_is_refused_before_memory_is() {
        let text = vec![b'7'; 3 * LARGEST_RECORD_BYTES];
        check_error(&text, "some.spc:1: the line has more than 1 MiB");
    }

    #[test]
    fn a_device_that_fails_is_an_error_of_the_file() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _room: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("EIO"))
            }
        }
        let error = parse_from(Failing).expect_err("failed").to_string();
        assert_eq!(error, "some.spc: EIO");
    }

    #[test]
    fn nothing_is_an_empty_trace() {
        assert!(parse(b"").expect("reads").is_empty());
        assert!(parse(b"\n \r\n").expect("reads").is_empty());
    }

    /// Hands out at most this many bytes at a time, and is interrupted before each.
    struct Trickle(std::io::Cursor<Vec<u8>>, usize, bool);

    impl Read for Trickle {
        fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
            self.2 = !self.2;
            if self.2 {
                return Err(ErrorKind::Interrupted.into());
            }
            let room_size = room.len().min(self.1);
            self.0.read(&mut room[..room_size])
        }
    }

    /// Text that is almost SPC.
    fn almost_spc() -> impl Strategy<Value = Vec<u8>> {
        let piece =
            prop::sample::select(vec!["0", "1", "7", "9", ",", ".", "r", "w", "\n", " ", "\r"]);
        let noise = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
        let line =
            (0u32..3, 0u32..100, 0u32..9999, any::<bool>(), 0u32..3).prop_map(|(a, l, s, r, t)| {
                format!("{a},{l},{s},{},{t}.25\n", if r { 'r' } else { 'w' })
            });
        prop::collection::vec(prop_oneof![4 => line, 1 => noise], 0..20)
            .prop_map(|lines| lines.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_trace_or_an_error(bytes: Vec<u8>) {
            if let Ok(trace) = parse(&bytes) {
                prop_assert_eq!(trace.validate(), Ok(()));
            }
        }

        #[test]
        fn chunks_make_no_difference(text in almost_spc(), size in 1usize..40) {
            let at_once = parse(&text).map_err(|error| error.to_string());
            let trickled = parse_from(Trickle(std::io::Cursor::new(text), size, false));
            prop_assert_eq!(trickled.map_err(|error| error.to_string()), at_once);
        }
    }
}

//! What the server sends, cut into messages (PostgreSQL 15 manual, chapter 55.7).
//!
//! One buffer is read into and messages are ranges of it, so that a row costs no allocation. The
//! buffer grows with the bytes that come in, never with what a length field claims. Truncated and
//! malformed messages are errors; property tests cut and change real ones.

use std::io::{ErrorKind, Read};
use std::ops::Range;

use super::binary;
use crate::Error;

/// Size of the buffer at first: more than what most pipelines answer.
const START_BYTES: usize = 16 << 10;

/// Longest message that is believed: a row of the largest field that PostgreSQL stores.
const MESSAGE_MAX: usize = 1 << 30;

/// An error about what the server sent.
pub(super) fn protocol(what: impl Into<String>) -> Error {
    Error::Protocol { what: what.into() }
}

/// Bytes received and not yet used.
pub(super) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// A message: its type and where its body lies.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub kind: u8,
    pub body: Range<usize>,
}

impl Inbox {
    pub fn new() -> Self {
        Self { bytes: vec![0; START_BYTES], start: 0, end: 0 }
    }

    pub fn body(&self, message: &Message) -> &[u8] {
        &self.bytes[message.body.clone()]
    }

    /// Bytes that are here and unread.
    pub fn unread(&self) -> usize {
        self.end - self.start
    }

    /// Waits until there is something to read.
    #[inline]
    pub fn wait(&mut self, stream: &mut impl Read) -> Result<(), Error> {
        if self.unread() == 0 { self.fill(stream, 5) } else { Ok(()) }
    }

    /// The next message; reads from `stream` as long as it is not whole.
    #[inline]
    pub fn next(&mut self, stream: &mut impl Read) -> Result<Message, Error> {
        loop {
            let here = &self.bytes[self.start..self.end];
            let mut wanted = 5;
            if let Some((head, _)) = here.split_first_chunk::<5>() {
                let len = i32::from_be_bytes([head[1], head[2], head[3], head[4]]);
                if len < 4 || len as usize > MESSAGE_MAX {
                    return Err(protocol(format!("a message of {len} bytes")));
                }
                wanted = len as usize + 1;
                if here.len() >= wanted {
                    let body = self.start + 5..self.start + wanted;
                    let kind = head[0];
                    self.start += wanted;
                    return Ok(Message { kind, body });
                }
            }
            self.fill(stream, wanted)?;
        }
    }

    /// Makes room behind the bytes that are here, of which `wanted` will make a message.
    #[cold]
    fn make_room(&mut self, wanted: usize) {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.bytes.len() {
            // Doubled: a length that lies costs no more than twice what really came.
            let len = (self.bytes.len() * 2).min(wanted.max(START_BYTES * 2));
            self.bytes.resize(len.max(self.end + START_BYTES), 0);
        }
    }

    /// Reads once more.
    fn fill(&mut self, stream: &mut impl Read, wanted: usize) -> Result<(), Error> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.end == self.bytes.len() || self.start + wanted > self.bytes.len() {
            self.make_room(wanted);
        }
        loop {
            match stream.read(&mut self.bytes[self.end..]) {
                Ok(0) => {
                    let source = std::io::Error::from(ErrorKind::UnexpectedEof);
                    return Err(Error::Broken { doing: "reading an answer", source });
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Broken { doing: "reading an answer", source }),
            }
        }
    }
}

/// One row: its fields in turn, in the binary format.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    rest: &'a [u8],
    left: u16,
}

impl<'a> Row<'a> {
    /// The row in the body of a DataRow.
    pub(super) fn new(body: &'a [u8]) -> Result<Self, Error> {
        let (count, rest) =
            body.split_first_chunk::<2>().ok_or_else(|| protocol("a row without fields"))?;
        Ok(Self { rest, left: u16::from_be_bytes(*count) })
    }

    /// Fields that are left.
    pub fn len(&self) -> usize {
        usize::from(self.left)
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The next field's bytes; none where it is NULL.
    #[inline]
    pub fn nullable(&mut self) -> Result<Option<&'a [u8]>, Error> {
        self.left = self.left.checked_sub(1).ok_or_else(|| protocol("a row has too few fields"))?;
        binary::value(&mut self.rest).map_err(|_| protocol("a row is cut short"))
    }

    /// The next field's bytes.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Error> {
        self.nullable()?.ok_or_else(|| protocol("a field is NULL that cannot be"))
    }

    /// The next field, a text.
    pub fn text(&mut self) -> Result<&'a str, Error> {
        std::str::from_utf8(self.bytes()?).map_err(|_| protocol("a text is not UTF-8"))
    }

    /// The next field, a `smallint`.
    #[inline]
    pub fn i16(&mut self) -> Result<i16, Error> {
        self.fixed().map(i16::from_be_bytes)
    }

    /// The next field, an `integer`.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, Error> {
        self.fixed().map(i32::from_be_bytes)
    }

    /// The next field, an `integer` that is not negative.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Error> {
        u32::try_from(self.i32()?).map_err(|_| protocol("a number is negative that cannot be"))
    }

    /// The next field, a `bigint`.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, Error> {
        self.fixed().map(i64::from_be_bytes)
    }

    /// The next field, a `boolean`.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, Error> {
        self.fixed().map(|[byte]| byte != 0)
    }

    /// The next field, a `numeric`, in units of the last of `scale` places.
    #[inline]
    pub fn decimal(&mut self, scale: u16) -> Result<i64, Error> {
        binary::decimal(self.bytes()?, scale).ok_or_else(|| protocol("a numeric is not exact"))
    }

    /// The next field, a `timestamp`, in milliseconds since 1970.
    pub fn timestamp_ms(&mut self) -> Result<i64, Error> {
        binary::timestamp_ms(self.bytes()?).ok_or_else(|| protocol("a timestamp is none"))
    }

    /// The next field, an array of at most one dimension.
    pub fn array(&mut self) -> Result<binary::Elements<'a>, Error> {
        binary::elements(self.bytes()?).ok_or_else(|| protocol("an array is none"))
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.bytes()?.try_into().map_err(|_| protocol("a number has another width"))
    }
}

/// The text up to the next zero byte, taken from the front.
pub(super) fn zero_ended<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Error> {
    let end =
        rest.iter().position(|&byte| byte == 0).ok_or_else(|| protocol("a text without an end"))?;
    let text = &rest[..end];
    *rest = &rest[end + 1..];
    Ok(text)
}

/// The error or notice in the body of an ErrorResponse or NoticeResponse (chapter 55.8).
pub(super) fn server_error(mut body: &[u8]) -> Error {
    let (mut sqlstate, mut message, mut lines) = (String::new(), String::new(), Vec::new());
    while let Some((&field, rest)) = body.split_first() {
        body = rest;
        if field == 0 {
            break;
        }
        let Ok(text) = zero_ended(&mut body) else { break };
        let text = events::one_line(&String::from_utf8_lossy(text));
        match field {
            b'C' => sqlstate = text,
            b'M' => message = text,
            b'D' => lines.push(text),
            b'H' => lines.push(format!("hint: {text}")),
            b'W' => lines.push(format!("at: {text}")),
            _ => {}
        }
    }
    let detail = (!lines.is_empty()).then(|| lines.join("; "));
    Error::Server { sqlstate, code: 0, message, detail }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything in the stream until it ends.
    fn all(mut stream: &[u8]) -> (Vec<(u8, Vec<u8>)>, Error) {
        let mut inbox = Inbox::new();
        let mut messages = Vec::new();
        loop {
            match inbox.next(&mut stream) {
                Ok(message) => messages.push((message.kind, inbox.body(&message).to_vec())),
                Err(error) => return (messages, error),
            }
        }
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend((body.len() as i32 + 4).to_be_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn lengths_that_cannot_be_are_errors_and_allocate_nothing() {
        for len in [3i32, 0, -1, i32::MAX] {
            let mut bytes = vec![b'D'];
            bytes.extend(len.to_be_bytes());
            let (messages, error) = all(&bytes);
            assert!(messages.is_empty() && matches!(error, Error::Protocol { .. }), "{error}");
        }
        let mut inbox = Inbox::new();
        let mut lie = &[b'D', 0x3f, 0, 0, 0, 1, 2, 3][..];
        assert!(matches!(inbox.next(&mut lie), Err(Error::Broken { .. })));
        assert!(inbox.bytes.len() <= 4 * START_BYTES);
    }

    #[test]
    fn errors_carry_their_fields() {
        let error = server_error(b"SERROR\0C23505\0Mduplicate\0DKey (a)=(1)\0Hdo not\0\0");
        let Error::Server { sqlstate, message, detail, .. } = error else { panic!("{error}") };
        assert_eq!((sqlstate.as_str(), message.as_str()), ("23505", "duplicate"));
        assert_eq!(detail.as_deref(), Some("Key (a)=(1); hint: do not"));
        // Cut anywhere, it is still an error.
        let _ = server_error(b"SERROR\0C235");
    }

    #[test]
    fn fields_have_their_widths() {
        let body = [0, 3, 0, 0, 0, 2, 0, 7, 255, 255, 255, 255, 0, 0, 0, 4, 0, 0, 1, 0];
        let mut row = Row::new(&body).unwrap();
        assert_eq!(row.i16().unwrap(), 7);
        assert_eq!(row.nullable().unwrap(), None);
        assert_eq!(row.u32().unwrap(), 256);
        assert!(row.i32().is_err() && row.is_empty());
        let mut row = Row::new(&body).unwrap();
        assert!(row.i64().is_err());
        assert!(row.bytes().is_err(), "NULL");
    }

    proptest! {
        /// Whatever the pieces that reads return, the messages are the same.
        #[test]
        fn messages_survive_any_cut(
            bodies in proptest::collection::vec((any::<u8>(), 0usize..40_000), 1..6),
            piece in 1usize..30_000,
        ) {
            struct Pieces<'a>(&'a [u8], usize);
            impl Read for Pieces<'_> {
                fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                    let count = self.1.min(into.len()).min(self.0.len());
                    into[..count].copy_from_slice(&self.0[..count]);
                    self.0 = &self.0[count..];
                    Ok(count)
                }
            }
            let sent: Vec<(u8, Vec<u8>)> =
                bodies.iter().map(|&(kind, len)| (kind, vec![kind; len])).collect();
            let messages = sent.iter().map(|(kind, body)| message(*kind, body));
            let bytes = messages.collect::<Vec<_>>().concat();
            let (mut stream, mut inbox) = (Pieces(&bytes, piece), Inbox::new());
            for (kind, body) in &sent {
                let got = inbox.next(&mut stream).unwrap();
                prop_assert_eq!((got.kind, inbox.body(&got)), (*kind, &body[..]));
            }
            prop_assert_eq!(inbox.unread(), 0);
        }

        #[test]
        fn any_bytes_end_in_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let (messages, _) = all(&bytes);
            prop_assert!(messages.len() <= bytes.len() / 5);
        }

        #[test]
        fn any_row_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = server_error(&bytes);
            let Ok(row) = Row::new(&bytes) else { return Ok(()) };
            let _ = { row }.i16();
            let _ = { row }.i64();
            let _ = { row }.text();
            let _ = { row }.bool();
            let _ = { row }.decimal(2);
            let _ = { row }.timestamp_ms();
            let mut each = row;
            while each.nullable().is_ok() {}
            if let Ok(elements) = { row }.array() {
                prop_assert!(elements.take(100).count() <= 100);
            }
        }
    }
}

//! Bytes of the records that lie between the Parquet pages; `docs/reference/trace-format.md` draws
//! them. All integers are little-endian.
//!
//! A record is an eight-byte mark, its length, its content, and a hash of all that. There are
//! three: the head in front, one in front of every row group, and the tail in front of the footer.
//!
//! Tests: round trips, every flipped bit and every cut of each record.

use std::sync::Arc;

use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{SchemaDescriptor, Type};
use trace::{Stream, Trace};

use super::hash::hash;

pub(super) const HEAD_MARK: &[u8; 8] = b"WMHEAD02";
pub(super) const GROUP_MARK: &[u8; 8] = b"WMGROUP2";
pub(super) const TAIL_MARK: &[u8; 8] = b"WMTAIL02";
/// Mark and length.
pub(super) const RECORD_START: usize = 12;
const HASH_BYTES: usize = 8;
/// Mark, length and hash: what every record takes.
pub(super) const LEAST_RECORD: usize = RECORD_START + HASH_BYTES;
/// No record is longer: what a reader will hold of one.
pub(super) const MOST_RECORD: usize = 64 << 20;

const CORE_COLUMNS: &str = "required int64 due_ns (INTEGER(64,false));
     required int64 offset_bytes (INTEGER(64,false));
     required int32 len_bytes (INTEGER(32,false));
     required int32 op (INTEGER(8,false));
     required int32 stream (INTEGER(16,false));";
const SERVICE_COLUMN: &str = "required int64 service_ns (INTEGER(64,false));";
const CHAIN_COLUMNS: &str = "required int32 actor (INTEGER(16,false));
     required int32 transaction (INTEGER(32,false));";

/// Which of the columns that a trace may lack are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Optional {
    pub(super) service: bool,
    pub(super) chains: bool,
}

impl Optional {
    pub(super) fn of(trace: &Trace) -> Self {
        Self { service: trace.service.is_some(), chains: trace.chains.is_some() }
    }

    fn bits(self) -> u32 {
        u32::from(self.service) | u32::from(self.chains) << 1
    }

    fn from_bits(bits: u32) -> Option<Self> {
        (bits < 4).then_some(Self { service: bits & 1 != 0, chains: bits & 2 != 0 })
    }

    /// The Parquet schema.
    pub(super) fn schema(self) -> parquet::errors::Result<Type> {
        let service = if self.service { SERVICE_COLUMN } else { "" };
        let chains = if self.chains { CHAIN_COLUMNS } else { "" };
        parse_message_type(&format!("message trace {{ {CORE_COLUMNS} {service} {chains} }}"))
    }

    pub(super) fn descriptor(self) -> parquet::errors::Result<SchemaDescriptor> {
        Ok(SchemaDescriptor::new(Arc::new(self.schema()?)))
    }
}

/// Puts mark, length and hash around the content of a record.
pub(super) fn seal(mark: [u8; 8], content: &[u8]) -> Vec<u8> {
    let length = RECORD_START + content.len() + HASH_BYTES;
    let mut record = Vec::with_capacity(length);
    record.extend(mark);
    record.extend((length as u32).to_le_bytes());
    record.extend(content);
    let hash = hash(&record);
    record.extend(hash.to_le_bytes());
    record
}

/// Length of the record that starts so, if a record does.
pub(super) fn length_of(start: &[u8; RECORD_START]) -> Option<usize> {
    let length = u32::from_le_bytes([start[8], start[9], start[10], start[11]]) as usize;
    let known = [HEAD_MARK, GROUP_MARK, TAIL_MARK].iter().any(|mark| start.starts_with(*mark));
    (known && (LEAST_RECORD..=MOST_RECORD).contains(&length)).then_some(length)
}

/// Content of a record, if its hash fits.
pub(super) fn open(record: &[u8]) -> Option<&[u8]> {
    let (sealed, stated) = record.split_last_chunk::<HASH_BYTES>()?;
    (hash(sealed) == u64::from_le_bytes(*stated)).then(|| sealed.get(RECORD_START..))?
}

/// What lies in front of the first row group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Head {
    pub(super) optional: Optional,
    /// JSON of the streams known at the start.
    pub(super) streams: String,
    /// JSON of the origin as it was at the start.
    pub(super) origin: String,
}

impl Head {
    pub(super) fn to_record(&self) -> Vec<u8> {
        let mut content = self.optional.bits().to_le_bytes().to_vec();
        put_text(&self.streams, &mut content);
        put_text(&self.origin, &mut content);
        seal(*HEAD_MARK, &content)
    }

    pub(super) fn from_content(content: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(content);
        let optional = Optional::from_bits(cursor.u32()?)?;
        let (streams, origin) = (cursor.text()?, cursor.text()?);
        cursor.0.is_empty().then_some(Self { optional, streams, origin })
    }
}

/// What lies in front of a row group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Group {
    pub(super) rows: u32,
    pub(super) first_due: u64,
    pub(super) last_due: u64,
    /// Bytes of the row group, which follows the record.
    pub(super) body_bytes: u64,
    pub(super) body_hash: u64,
    /// JSON of the streams that are new in this group; empty where none are.
    pub(super) streams: String,
    /// Where the pages are; see `pages.rs`.
    pub(super) index: Vec<u8>,
}

impl Group {
    pub(super) fn to_record(&self) -> Vec<u8> {
        let mut content = self.rows.to_le_bytes().to_vec();
        for word in [self.first_due, self.last_due, self.body_bytes, self.body_hash] {
            content.extend(word.to_le_bytes());
        }
        put_text(&self.streams, &mut content);
        content.extend(&self.index);
        seal(*GROUP_MARK, &content)
    }

    pub(super) fn from_content(content: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(content);
        Some(Self {
            rows: cursor.u32()?,
            first_due: cursor.u64()?,
            last_due: cursor.u64()?,
            body_bytes: cursor.u64()?,
            body_hash: cursor.u64()?,
            streams: cursor.text()?,
            index: cursor.0.to_vec(),
        })
    }
}

/// What lies in front of the footer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tail {
    pub(super) rows: u64,
    pub(super) groups: u64,
    /// Bytes of the footer, which follows the record and ends the file.
    pub(super) footer_bytes: u64,
    pub(super) footer_hash: u64,
    /// JSON of the origin as it was at the end.
    pub(super) origin: String,
}

impl Tail {
    pub(super) fn to_record(&self) -> Vec<u8> {
        let words = [self.rows, self.groups, self.footer_bytes, self.footer_hash];
        let mut content: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        put_text(&self.origin, &mut content);
        seal(*TAIL_MARK, &content)
    }

    pub(super) fn from_content(content: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(content);
        let tail = Self {
            rows: cursor.u64()?,
            groups: cursor.u64()?,
            footer_bytes: cursor.u64()?,
            footer_hash: cursor.u64()?,
            origin: cursor.text()?,
        };
        cursor.0.is_empty().then_some(tail)
    }
}

/// The streams in a record: none where the text is empty.
pub(super) fn streams(json: &str) -> Option<Vec<Stream>> {
    if json.is_empty() { Some(Vec::new()) } else { serde_json::from_str(json).ok() }
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Takes values off the front of some bytes.
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        String::from_utf8(self.bytes(length)?.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: PartialEq + std::fmt::Debug>(
        value: &T,
        record: &[u8],
        read: impl Fn(&[u8]) -> Option<T>,
    ) {
        let length = length_of(record[..RECORD_START].try_into().expect("long enough"));
        assert_eq!(length, Some(record.len()));
        assert_eq!(read(open(record).expect("sealed")).as_ref(), Some(value));
        for bit in 0..record.len() * 8 {
            let mut flipped = record.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&flipped), None, "bit {bit}");
        }
        // Under a seal that fits, a shorter content is still not the same record.
        let content = open(record).expect("sealed");
        for cut in 0..content.len() {
            assert_ne!(read(&content[..cut]).as_ref(), Some(value), "cut {cut}");
        }
    }

    #[test]
    fn records_come_back_and_show_damage() {
        let texts = || ("[\"é\"]".to_owned(), "{}".to_owned());
        let optional = Optional { service: true, chains: false };
        let (streams, origin) = texts();
        let head = Head { optional, streams, origin };
        check(&head, &head.to_record(), Head::from_content);
        let group = Group {
            rows: 7,
            first_due: 1,
            last_due: u64::MAX,
            body_bytes: 3,
            body_hash: 4,
            streams: texts().0,
            index: vec![1, 2, 3],
        };
        check(&group, &group.to_record(), Group::from_content);
        let origin = texts().1;
        let tail = Tail { rows: 1, groups: 2, footer_bytes: 3, footer_hash: 4, origin };
        check(&tail, &tail.to_record(), Tail::from_content);
    }

    #[test]
    fn only_known_marks_and_sane_lengths_start_a_record() {
        let start = |mark: &[u8; 8], length: u32| -> [u8; RECORD_START] {
            [mark.as_slice(), &length.to_le_bytes()].concat().try_into().expect("twelve")
        };
        assert_eq!(length_of(&start(TAIL_MARK, 20)), Some(20));
        assert_eq!(length_of(&start(TAIL_MARK, 19)), None);
        assert_eq!(length_of(&start(TAIL_MARK, u32::MAX)), None);
        assert_eq!(length_of(&start(b"WMTAIL03", 20)), None);
    }
}

//! Our own format: one Parquet file that polars, pandas and duckdb read as it is.
//!
//! Version 2. Columns, one row per request, none of them null:
//!
//! | column | type | encoding | holds |
//! |---|---|---|---|
//! | `due_ns` | u64 | delta | when it should be issued, ns from the start |
//! | `offset_bytes` | u64 | byte stream split | first byte |
//! | `len_bytes` | u32 | dictionary | bytes |
//! | `op` | u8 | dictionary | 0 read, 1 write, 2 trim, 3 flush |
//! | `stream` | u16 | dictionary | index into the stream table |
//! | `service_ns` | u64 | byte stream split | measured completion - issue |
//! | `actor` | u16 | dictionary | who issued it |
//! | `transaction` | u32 | delta | what it belongs to, 0 for nothing |
//!
//! `service_ns` is there or not; `actor` and `transaction` are there together or not at all.
//! Version 1 is the same but has the last three together or none of them. All are zstd-compressed. Key-value metadata
//! (`wearmark.*`): `format_version`, `units`, `op_codes`, and as JSON `streams` and `origin`.
//!
//! **Seal.** Parquet has no checksum of the whole file, and its readers trust what they decode. So
//! 32 bytes lie between the last page and the footer, where every Parquet reader skips them: the mark
//! `WMSEAL01`, the length of everything in front of them, a hash of that, and a hash of everything
//! behind them; all integers little-endian. [`read`] checks both before it decodes anything: a
//! single changed word is always found, larger damage but for 1 in 2^64. A file without a seal is
//! not ours and is refused.
//!
//! Byte stream split, because the low bits of a page-aligned offset are zero in every request: split
//! into byte columns they cost zstd nothing. An OLTP-like trace takes 4.85 bytes a request so, 5.50
//! with plain and 5.83 with delta-coded offsets, and it reads fastest so (`benches/formats.rs`).
//!
//! Tests: round trip of arbitrary traces, truncation at every length, flips of any byte, seals that
//! are forged over damage.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, Type};
use stats::rng::mix;

use crate::formats::whole_file;
use crate::{Chains, Error, Op, Result, Trace};

/// The version that this build writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 2;

/// How every Parquet file starts and ends.
pub(super) const PARQUET_MARK: &[u8] = b"PAR1";
const SEAL_MARK: &[u8; 8] = b"WMSEAL01";
const SEAL_BYTES: u64 = 32;
/// Length of the footer and the closing mark.
const TAIL_BYTES: u64 = 8;
/// Requests per row group: what a reader holds at a time.
const ROW_GROUP: usize = 1 << 20;
const ZSTD_LEVEL: i32 = 3;

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
struct Optional {
    service: bool,
    chains: bool,
}

impl Optional {
    fn of(trace: &Trace) -> Self {
        Self { service: trace.service.is_some(), chains: trace.chains.is_some() }
    }

    fn all() -> impl Iterator<Item = Self> {
        [(false, false), (true, false), (false, true), (true, true)]
            .into_iter()
            .map(|(service, chains)| Self { service, chains })
    }
}

/// Writes a trace: the file is there whole or not at all.
pub fn write(trace: &Trace, path: &Path) -> Result<()> {
    trace.validate().map_err(|source| Error::Malformed { path: path.to_owned(), source })?;
    whole_file::write(path, |file| fill(trace, file).map_err(Error::io(path)))
}

fn fill(trace: &Trace, file: &mut File) -> io::Result<()> {
    write_parquet(trace, file).map_err(|error| match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    })?;
    seal(file)
}

fn schema(optional: Optional) -> parquet::errors::Result<Type> {
    let service = if optional.service { SERVICE_COLUMN } else { "" };
    let chains = if optional.chains { CHAIN_COLUMNS } else { "" };
    parse_message_type(&format!("message trace {{ {CORE_COLUMNS} {service} {chains} }}"))
}

fn properties(trace: &Trace) -> parquet::errors::Result<WriterProperties> {
    let json = |value: serde_json::Result<String>| {
        value.map_err(|error| ParquetError::General(error.to_string()))
    };
    let metadata = [
        ("format_version", FORMAT_VERSION.to_string()),
        ("units", "due_ns, service_ns: nanoseconds; offset_bytes, len_bytes: bytes".to_owned()),
        ("op_codes", "0 read, 1 write, 2 trim, 3 flush".to_owned()),
        ("streams", json(serde_json::to_string(&trace.streams))?),
        ("origin", json(serde_json::to_string(&trace.origin))?),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(format!("wearmark.{key}"), value));
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_created_by(format!("wearmark {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata.to_vec()))
        .set_data_page_row_count_limit(128 << 10)
        .set_offset_index_disabled(true);
    for (column, encoding) in [
        ("due_ns", Encoding::DELTA_BINARY_PACKED),
        ("offset_bytes", Encoding::BYTE_STREAM_SPLIT),
        ("service_ns", Encoding::BYTE_STREAM_SPLIT),
        ("transaction", Encoding::DELTA_BINARY_PACKED),
    ] {
        let column = ColumnPath::from(column);
        properties = properties
            .set_column_encoding(column.clone(), encoding)
            .set_column_dictionary_enabled(column, false);
    }
    Ok(properties.build())
}

fn write_parquet(trace: &Trace, file: &mut File) -> parquet::errors::Result<()> {
    let schema = Arc::new(schema(Optional::of(trace))?);
    let properties = Arc::new(properties(trace)?);
    let mut writer = SerializedFileWriter::new(BufWriter::new(file), schema, properties)?;
    for start in (0..trace.count()).step_by(ROW_GROUP) {
        let rows = start..trace.count().min(start + ROW_GROUP);
        let mut group = writer.next_row_group()?;
        put::<Int64Type, _>(&mut group, &trace.due[rows.clone()], |v| v as i64)?;
        put::<Int64Type, _>(&mut group, &trace.offset[rows.clone()], |v| v as i64)?;
        put::<Int32Type, _>(&mut group, &trace.len[rows.clone()], |v| v as i32)?;
        put::<Int32Type, _>(&mut group, &trace.op[rows.clone()], |v| v as i32)?;
        put::<Int32Type, _>(&mut group, &trace.stream[rows.clone()], i32::from)?;
        if let Some(service) = &trace.service {
            put::<Int64Type, _>(&mut group, &service[rows.clone()], |v| v as i64)?;
        }
        if let Some(chains) = &trace.chains {
            put::<Int32Type, _>(&mut group, &chains.actor[rows.clone()], i32::from)?;
            put::<Int32Type, _>(&mut group, &chains.transaction[rows], |v| v as i32)?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

/// Writes the next column of a row group.
fn put<D: DataType, S: Copy>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    source: &[S],
    convert: impl Fn(S) -> D::T,
) -> parquet::errors::Result<()> {
    let missing = || ParquetError::General("the schema has fewer columns".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let values: Vec<D::T> = source.iter().map(|value| convert(*value)).collect();
    let typed: &mut ColumnWriterImpl<'_, D> = column.typed::<D>();
    typed.write_batch(&values, None, None)?;
    column.close()
}

/// Puts the seal between the pages and the footer of a finished Parquet file.
fn seal(file: &mut File) -> io::Result<()> {
    let size = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(size - TAIL_BYTES))?;
    let mut tail = [0; TAIL_BYTES as usize];
    file.read_exact(&mut tail)?;
    let footer_start = size - TAIL_BYTES - footer_bytes(tail);
    let body = hash(file, 0, footer_start)?;
    let footer = hash(file, footer_start, size - footer_start)?;
    let mut seal = Vec::with_capacity(SEAL_BYTES as usize);
    seal.extend(SEAL_MARK);
    seal.extend(footer_start.to_le_bytes());
    seal.extend(body.to_le_bytes());
    seal.extend(footer.to_le_bytes());
    file.seek(SeekFrom::Start(footer_start))?;
    file.read_to_end(&mut seal)?;
    file.seek(SeekFrom::Start(footer_start))?;
    file.write_all(&seal)
}

fn footer_bytes(tail: [u8; TAIL_BYTES as usize]) -> u64 {
    u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]))
}

/// Hash of `length` bytes from `start`. Four lanes take a 64-bit word each in turn; every step is a
/// bijection of the lane and of the word, so a change in one word always changes the result.
fn hash(file: &mut File, start: u64, length: u64) -> io::Result<u64> {
    const STRIPE: usize = 32;
    file.seek(SeekFrom::Start(start))?;
    let mut lanes = [1u64, 2, 3, 4].map(mix);
    let mut buffer = vec![0; 1 << 20];
    let mut left = length;
    while left > 0 {
        let take = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        file.read_exact(&mut buffer[..take])?;
        // Only the last piece can end inside a stripe; zeros fill it, and the length is hashed too.
        let filled = take.next_multiple_of(STRIPE);
        buffer[take..filled].fill(0);
        for stripe in buffer[..filled].as_chunks::<STRIPE>().0 {
            for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<8>().0) {
                *lane = (*lane ^ u64::from_le_bytes(*word))
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    .rotate_left(29);
            }
        }
        left -= take as u64;
    }
    Ok(lanes.iter().fold(mix(length), |hash, lane| mix(hash ^ lane)))
}

/// Reads a trace.
///
/// # Errors
/// [`Error::Damaged`] with the offset where a cut or changed file was noticed, [`Error::Foreign`] for
/// a file that is not ours, [`Error::Version`] for one from the future.
pub fn read(path: &Path) -> Result<Trace> {
    read_file(File::open(path).map_err(Error::io(path))?, path)
}

fn read_file(mut file: File, path: &Path) -> Result<Trace> {
    check_seal(&mut file, path)?;
    // The parquet crate asserts what a footer should hold instead of checking it. The seal keeps
    // accidents away from it; this does so for a footer that was forged together with its seal.
    catch_unwind(AssertUnwindSafe(|| decode(file, path))).unwrap_or_else(|_| {
        Err(Error::damaged(path, 0, "the Parquet reader gave up: the footer contradicts itself"))
    })
}

fn check_seal(file: &mut File, path: &Path) -> Result<()> {
    let io = Error::io(path);
    let foreign = |cause: &str| Error::Foreign { path: path.to_owned(), cause: cause.to_owned() };
    let size = file.seek(SeekFrom::End(0)).map_err(&io)?;
    let mut mark = [0; 4];
    let start = size.min(mark.len() as u64) as usize;
    file.seek(SeekFrom::Start(0)).map_err(&io)?;
    file.read_exact(&mut mark[..start]).map_err(&io)?;
    if size == 0 || !PARQUET_MARK.starts_with(&mark[..start]) {
        return Err(foreign("it does not start with the Parquet mark PAR1"));
    }
    let cut = |cause: &str| Err(Error::damaged(path, size, cause));
    if size < PARQUET_MARK.len() as u64 + SEAL_BYTES + TAIL_BYTES {
        return cut("the file is cut off before its footer");
    }
    let mut tail = [0; TAIL_BYTES as usize];
    file.seek(SeekFrom::Start(size - TAIL_BYTES)).map_err(&io)?;
    file.read_exact(&mut tail).map_err(&io)?;
    if &tail[4..] != PARQUET_MARK {
        return cut("the file does not end with the Parquet mark PAR1: it is cut off");
    }
    let behind = TAIL_BYTES + footer_bytes(tail) + SEAL_BYTES;
    let Some(seal_start) = size.checked_sub(behind) else {
        return cut("the footer is longer than the file");
    };
    let mut seal = [0; SEAL_BYTES as usize];
    file.seek(SeekFrom::Start(seal_start)).map_err(&io)?;
    file.read_exact(&mut seal).map_err(&io)?;
    let words = seal.as_chunks::<8>().0;
    if &words[0] != SEAL_MARK {
        return Err(foreign(
            "a Parquet file without wearmark's seal, or one whose footer is damaged",
        ));
    }
    let [length, body, footer] = [1, 2, 3].map(|i| u64::from_le_bytes(words[i]));
    if length != seal_start {
        return Err(Error::damaged(
            path,
            seal_start,
            "the seal belongs to a file of another length",
        ));
    }
    if hash(file, seal_start + SEAL_BYTES, size - seal_start - SEAL_BYTES).map_err(&io)? != footer {
        return Err(Error::damaged(path, seal_start + SEAL_BYTES, "the footer was changed"));
    }
    if hash(file, 0, seal_start).map_err(&io)? != body {
        return Err(Error::damaged(path, 0, "the columns were changed since they were written"));
    }
    Ok(())
}

/// Decodes a file whose bytes are those that were written.
fn decode(file: File, path: &Path) -> Result<Trace> {
    let damaged = |error: ParquetError| Error::damaged(path, 0, error.to_string());
    let reader = SerializedFileReader::new(file).map_err(damaged)?;
    let mut trace = Trace::default();
    let optional = read_metadata(&reader, &mut trace, path)?;
    let rows = row_groups(&reader, path)?;
    let ints = |column| get::<Int32Type>(&reader, column, &rows);
    let longs = |column| get::<Int64Type>(&reader, column, &rows);
    // Collecting a vector into one of equally wide items reuses its memory.
    let unsigned = |values: Vec<i64>| values.into_iter().map(|v| v as u64).collect::<Vec<_>>();
    let impossible = |column: &str, index: usize, value: i32| {
        Error::damaged(path, 0, format!("request {index} has {value} in column {column}"))
    };
    let short = |column: &str, values: Vec<i32>| -> Result<Vec<u16>> {
        match values.iter().position(|value| u16::try_from(*value).is_err()) {
            Some(index) => Err(impossible(column, index, values[index])),
            None => Ok(values.into_iter().map(|value| value as u16).collect()),
        }
    };
    trace.due = unsigned(longs(0).map_err(damaged)?);
    trace.offset = unsigned(longs(1).map_err(damaged)?);
    trace.len = ints(2).map_err(damaged)?.into_iter().map(|v| v as u32).collect();
    let codes = ints(3).map_err(damaged)?;
    let op_count = Op::ALL.len() as i32;
    if let Some(index) = codes.iter().position(|code| !(0..op_count).contains(code)) {
        return Err(impossible("op", index, codes[index]));
    }
    trace.op = codes.into_iter().map(|code| Op::ALL[code as usize]).collect();
    trace.stream = short("stream", ints(4).map_err(damaged)?)?;
    if optional.service {
        trace.service = Some(unsigned(longs(5).map_err(damaged)?));
    }
    if optional.chains {
        let actor = 5 + usize::from(optional.service);
        trace.chains = Some(Chains {
            actor: short("actor", ints(actor).map_err(damaged)?)?,
            transaction: ints(actor + 1).map_err(damaged)?.into_iter().map(|v| v as u32).collect(),
        });
    }
    trace.validate().map_err(|source| Error::Malformed { path: path.to_owned(), source })?;
    Ok(trace)
}

/// Checks version and columns, takes streams and origin; which more columns are there.
fn read_metadata(
    reader: &SerializedFileReader<File>,
    trace: &mut Trace,
    path: &Path,
) -> Result<Optional> {
    let metadata = reader.metadata().file_metadata();
    let value_of = |key: &str| {
        let pairs = metadata.key_value_metadata().into_iter().flatten();
        let value = pairs.into_iter().find(|pair| pair.key.strip_prefix("wearmark.") == Some(key));
        value.and_then(|pair| pair.value.as_deref()).ok_or_else(|| Error::Foreign {
            path: path.to_owned(),
            cause: format!("a Parquet file without the entry wearmark.{key}"),
        })
    };
    let unreadable =
        |key: &str| Error::damaged(path, 0, format!("the entry wearmark.{key} is unreadable"));
    let found = value_of("format_version")?;
    let found: u32 = found.parse().map_err(|_| unreadable("format_version"))?;
    if !(1..=FORMAT_VERSION).contains(&found) {
        return Err(Error::Version { path: path.to_owned(), found, known: FORMAT_VERSION });
    }
    trace.streams =
        serde_json::from_str(value_of("streams")?).map_err(|_| unreadable("streams"))?;
    trace.origin = serde_json::from_str(value_of("origin")?).map_err(|_| unreadable("origin"))?;
    let fits = |optional: &Optional| schema(*optional).is_ok_and(|s| &s == metadata.schema());
    Optional::all()
        .find(fits)
        .ok_or_else(|| Error::damaged(path, 0, "the columns are not those of a trace"))
}

/// Rows of each row group, within what the writer makes: bounds what decoding allocates.
fn row_groups(reader: &SerializedFileReader<File>, path: &Path) -> Result<Vec<usize>> {
    let rows_of = |group: &parquet::file::metadata::RowGroupMetaData| {
        let rows = usize::try_from(group.num_rows()).ok().filter(|rows| *rows <= ROW_GROUP);
        let cause = || format!("a row group of {} requests", group.num_rows());
        rows.ok_or_else(|| Error::damaged(path, 0, cause()))
    };
    reader.metadata().row_groups().iter().map(rows_of).collect()
}

/// Reads one column of all row groups.
fn get<D: DataType>(
    reader: &SerializedFileReader<File>,
    column: usize,
    rows: &[usize],
) -> parquet::errors::Result<Vec<D::T>> {
    let mut values = Vec::new();
    let total = rows.iter().sum();
    values.try_reserve_exact(total).map_err(|error| ParquetError::General(error.to_string()))?;
    for (index, rows) in rows.iter().enumerate() {
        let group = reader.get_row_group(index)?;
        let wrong = || ParquetError::General(format!("row group {index}, column {column}"));
        if group.metadata().column(column).column_type() != D::get_physical_type() {
            return Err(wrong());
        }
        let column_reader = group.get_column_reader(column)?;
        let mut typed = D::get_column_reader(column_reader).ok_or_else(wrong)?;
        let (read, _, _) = typed.read_records(*rows, None, None, &mut values)?;
        if read != *rows {
            let cause = format!("column {column} ends after {read} of {rows} requests");
            return Err(ParquetError::General(cause));
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{OltpLike, oltp_like};
    use crate::{Malformed, Request, Stream};
    use proptest::prelude::*;
    use std::sync::LazyLock;
    use units::{Bytes, Nanos};

    fn in_a_directory<T>(run: impl FnOnce(&Path) -> T) -> T {
        let directory = tempfile::tempdir().expect("a temporary directory");
        run(&directory.path().join("trace.parquet"))
    }

    fn bytes_of(trace: &Trace) -> Vec<u8> {
        let mut file = tempfile::tempfile().expect("a temporary file");
        fill(trace, &mut file).expect("written");
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).expect("seeks");
        file.read_to_end(&mut bytes).expect("reads");
        bytes
    }

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(bytes).expect("written");
        file
    }

    fn read_bytes(bytes: &[u8]) -> Result<Trace> {
        read_file(file_of(bytes), Path::new("trace.parquet"))
    }

    fn small_bytes() -> &'static [u8] {
        static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| bytes_of(&small()));
        &BYTES
    }

    #[track_caller]
    fn check_round_trip(trace: &Trace) {
        assert_eq!(&read_bytes(&bytes_of(trace)).expect("reads"), trace);
    }

    /// About 400 requests, with everything that a trace can hold.
    fn small() -> Trace {
        let mut trace = oltp_like(&OltpLike { transactions: 40, ..OltpLike::default() });
        let count = trace.count();
        trace.service = Some((0..count as u64).map(|i| 50_000 + i * 37 % 1000).collect());
        trace.chains = Some(Chains {
            actor: (0..count).map(|i| (i % 4) as u16).collect(),
            transaction: (0..count).map(|i| (i / 3) as u32).collect(),
        });
        trace
    }

    #[test]
    fn everything_comes_back() {
        in_a_directory(|path| {
            write(&small(), path).expect("written");
            assert_eq!(read(path).expect("reads"), small());
        });
        check_round_trip(&Trace::default());
        check_round_trip(&small());
        check_round_trip(&Trace { service: None, ..small() });
        check_round_trip(&Trace { chains: None, ..small() });
        check_round_trip(&Trace { service: None, chains: None, ..small() });
    }

    /// What version 1 wrote of the first 20 requests of [`small`], with and without what was captured.
    #[test]
    fn files_of_version_1_still_read() {
        let mut expected = small();
        expected.truncate(20);
        let bytes = include_bytes!("../../tests/data/own-v1-captured.parquet");
        assert_eq!(read_bytes(bytes).expect("reads"), expected);
        (expected.service, expected.chains) = (None, None);
        let bytes = include_bytes!("../../tests/data/own-v1-plain.parquet");
        assert_eq!(read_bytes(bytes).expect("reads"), expected);
    }

    #[test]
    fn row_groups_join_without_a_seam() {
        let count = ROW_GROUP + 3;
        let trace = Trace {
            due: (0..count as u64).collect(),
            offset: (0..count as u64).map(|i| i * 512).collect(),
            len: vec![512; count],
            op: (0..count).map(|i| Op::ALL[i % 4]).collect(),
            stream: vec![0; count],
            streams: vec![Stream { name: "data".to_owned() }],
            ..Trace::default()
        };
        check_round_trip(&trace);
    }

    #[test]
    fn the_same_trace_gives_the_same_bytes() {
        assert_eq!(bytes_of(&small()), small_bytes());
    }

    /// The goal is six; five keeps the choice of encodings from being lost unseen.
    #[test]
    fn a_request_takes_at_most_five_bytes() {
        let trace = oltp_like(&OltpLike { transactions: 100_000, ..OltpLike::default() });
        let each = bytes_of(&trace).len() as f64 / trace.count() as f64;
        println!("{each:.2} bytes for each of {} requests", trace.count());
        assert!(each <= 5.0, "{each} bytes per request");
    }

    #[test]
    fn a_malformed_trace_is_not_written() {
        let mut trace = small();
        trace.due[5] = u64::MAX;
        in_a_directory(|path| {
            let error = write(&trace, path).expect_err("refused");
            let cause = Malformed::TimeRunsBack { index: 6 };
            assert!(matches!(error, Error::Malformed { source, .. } if source == cause));
            assert!(!path.exists());
        });
    }

    #[test]
    fn a_cut_file_is_an_error_wherever_it_is_cut() {
        let bytes = small_bytes();
        for cut in 0..bytes.len() {
            match read_bytes(&bytes[..cut]).expect_err("cut") {
                Error::Damaged { offset, .. } => assert!(offset <= cut as u64),
                Error::Foreign { .. } => assert_eq!(cut, 0),
                other => panic!("cut at {cut}: {other}"),
            }
        }
    }

    #[test]
    fn a_longer_file_is_an_error() {
        let mut bytes = small_bytes().to_vec();
        bytes.insert(1000, 0);
        let error = read_bytes(&bytes).expect_err("one byte more").to_string();
        assert!(error.contains("the seal belongs to a file of another length"), "{error}");
        bytes.extend(b"more");
        assert!(matches!(read_bytes(&bytes), Err(Error::Damaged { .. })));
    }

    /// The bytes as the parquet crate made them.
    fn unsealed(bytes: &[u8]) -> Vec<u8> {
        let at = bytes.windows(8).rposition(|window| window == SEAL_MARK).expect("a seal");
        [&bytes[..at], &bytes[at + SEAL_BYTES as usize..]].concat()
    }

    fn read_sealed_anew(parquet: &[u8]) -> Result<Trace> {
        let mut file = file_of(parquet);
        seal(&mut file).expect("sealed");
        read_file(file, Path::new("trace.parquet"))
    }

    #[test]
    fn a_parquet_file_of_somebody_else_is_foreign() {
        let error = read_bytes(&unsealed(small_bytes())).expect_err("no seal");
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        let error = read_bytes(b"0,1,512,r,0.0\n").expect_err("text");
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        // Sealed, but without what the columns need.
        for (key, cause) in [("streams", "wearmark.streams"), ("origin", "wearmark.origin")] {
            let parquet = unsealed(small_bytes());
            let key = format!("wearmark.{key}");
            let at = parquet.windows(key.len()).position(|w| w == key.as_bytes()).expect("there");
            let mut parquet = parquet.clone();
            parquet[at] = b'x';
            let error = read_sealed_anew(&parquet).expect_err("nothing there").to_string();
            assert!(error.contains(cause), "{error}");
        }
    }

    #[test]
    fn a_later_version_says_so() {
        let mut parquet = unsealed(small_bytes());
        let key = b"wearmark.format_version";
        let at = parquet.windows(key.len()).position(|window| window == key).expect("there");
        // The value follows the key, behind its field header and length.
        let value = at + key.len() + 2;
        assert_eq!(parquet[value], b'2');
        parquet[value] = b'7';
        let error = read_sealed_anew(&parquet).expect_err("from the future");
        assert!(matches!(error, Error::Version { found: 7, known: 2, .. }), "{error}");
    }

    /// A file of one request with the given codes, made by a writer that checks nothing.
    fn unchecked(op: i32, stream: i32) -> parquet::errors::Result<Vec<u8>> {
        let trace = Trace { streams: vec![Stream::default()], ..Trace::default() };
        let mut bytes = Vec::new();
        let (schema, properties) =
            (Arc::new(schema(Optional::of(&trace))?), Arc::new(properties(&trace)?));
        let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties)?;
        let mut group = writer.next_row_group()?;
        put::<Int64Type, _>(&mut group, &[0i64], |v| v)?;
        put::<Int64Type, _>(&mut group, &[0i64], |v| v)?;
        for value in [512, op, stream] {
            put::<Int32Type, _>(&mut group, &[value], |v| v)?;
        }
        group.close()?;
        writer.close()?;
        Ok(bytes)
    }

    #[test]
    fn codes_that_mean_nothing_are_named() {
        for (op, stream, cause) in [
            (4, 0, "request 0 has 4 in column op"),
            (-1, 0, "request 0 has -1 in column op"),
            (1, 65_536, "request 0 has 65536 in column stream"),
            (1, 1, "request 0 names stream 1, but the trace has 1"),
        ] {
            let bytes = unchecked(op, stream).expect("written");
            let error = read_sealed_anew(&bytes).expect_err("no such code").to_string();
            assert!(error.contains(cause), "{error}");
        }
        let good = read_sealed_anew(&unchecked(1, 0).expect("written")).expect("reads");
        assert_eq!((good.op, good.len), (vec![Op::Write], vec![512]));
    }

    #[test]
    fn what_cannot_be_opened_names_its_path() {
        let error = read(Path::new("/nowhere/trace.parquet")).expect_err("not there").to_string();
        assert!(error.starts_with("/nowhere/trace.parquet: "), "{error}");
        let error = write(&small(), Path::new("/nowhere/trace.parquet")).expect_err("no directory");
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(read(Path::new("/")).is_err() && write(&small(), Path::new("/")).is_err());
    }

    fn any_trace() -> impl Strategy<Value = Trace> {
        let request = (0u64..1 << 40, any::<u64>(), any::<u32>(), 0usize..4, 0u16..3);
        let observed = (any::<u64>(), any::<u16>(), any::<u32>());
        let rows = prop::collection::vec((request, observed), 0..60);
        (rows, any::<(bool, bool)>(), "[a-z]{0,8}").prop_map(|(rows, (service, chains), name)| {
            let mut trace = Trace::default();
            let mut due = 0;
            for ((gap, offset, len, op, stream), (service, actor, transaction)) in rows {
                due += gap;
                let offset = Bytes(offset.min(u64::MAX - u64::from(len)));
                let request = Request { due: Nanos(due), offset, len, op: Op::ALL[op], stream };
                trace.push_captured(request, Nanos(service), actor, transaction);
            }
            trace.service = trace.service.filter(|_| service);
            trace.chains = trace.chains.filter(|_| chains);
            trace.streams = vec![Stream { name: name.clone() }; 3];
            trace.origin.facts.insert(name.clone(), name);
            trace
        })
    }

    proptest! {
        #[test]
        fn any_trace_comes_back(trace in any_trace()) {
            prop_assert_eq!(read_bytes(&bytes_of(&trace)).expect("reads"), trace);
        }

        #[test]
        fn any_flipped_bit_is_found(at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut bytes = small_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(read_bytes(&bytes).is_err(), "byte {at} bit {bit}");
        }

        /// Damage under a seal that fits it: somebody meant to. It may decode to another trace, but
        /// never to a malformed one, and never panics.
        #[test]
        fn forged_damage_never_panics(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut parquet = unsealed(small_bytes());
            let body = parquet.len() - TAIL_BYTES as usize;
            for (at, byte) in damage {
                parquet[at.index(body)] = byte;
            }
            if let Ok(trace) = read_sealed_anew(&parquet) {
                prop_assert_eq!(trace.validate(), Ok(()));
            }
        }
    }
}

//! Version 1 of our format, which is read but no longer written.
//!
//! The columns of version 2 as the parquet crate encodes them, with the last three together or none of
//! them. 32 bytes lie between the last page and the footer: the mark `WMSEAL01`, the length of
//! everything in front of them, a hash of that, and a hash of everything behind them. Both are checked
//! before anything is decoded. A file without a seal is not ours and is refused.
//!
//! Tests: two files that version 1 wrote, cut at every length and with every bit flipped, and seals
//! that are forged over damage.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use trace::{Chains, Op, Trace};

use super::hash::Hasher;
use super::layout::Optional;
use super::{FORMAT_VERSION, PARQUET_MARK, ROW_GROUP};
use crate::{Error, Result};

/// The newest version with this layout.
const VERSION: u32 = 1;
const SEAL_MARK: &[u8; 8] = b"WMSEAL01";
const SEAL_BYTES: u64 = 32;
/// Length of the footer and the closing mark.
const TAIL_BYTES: u64 = 8;

fn footer_bytes(tail: [u8; TAIL_BYTES as usize]) -> u64 {
    u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]))
}

/// Hash of `length` bytes from `start`.
fn hash(file: &mut &File, start: u64, length: u64) -> io::Result<u64> {
    file.seek(SeekFrom::Start(start))?;
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; 1 << 20];
    let mut left = length;
    while left > 0 {
        let take = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        file.read_exact(&mut buffer[..take])?;
        hasher.update(&buffer[..take]);
        left -= take as u64;
    }
    Ok(hasher.finish(length))
}

/// Reads a trace.
pub(super) fn read(mut file: &File, path: &Path) -> Result<Trace> {
    check_seal(&mut file, path)?;
    let file = file.try_clone().map_err(Error::io(path))?;
    // The parquet crate asserts what a footer should hold instead of checking it. The seal keeps
    // accidents away from it; this does so for a footer that was forged together with its seal.
    catch_unwind(AssertUnwindSafe(|| decode(file, path))).unwrap_or_else(|_| {
        Err(Error::damaged(path, 0, "the Parquet reader gave up: the footer contradicts itself"))
    })
}

fn check_seal(file: &mut &File, path: &Path) -> Result<()> {
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
    if found > VERSION {
        return Err(Error::Version { path: path.to_owned(), found, known: FORMAT_VERSION });
    }
    trace.streams =
        serde_json::from_str(value_of("streams")?).map_err(|_| unreadable("streams"))?;
    trace.origin = serde_json::from_str(value_of("origin")?).map_err(|_| unreadable("origin"))?;
    let fits = |optional: &Optional| optional.schema().is_ok_and(|s| &s == metadata.schema());
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
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    const CAPTURED: &[u8] = include_bytes!("../../tests/data/own-v1-captured.parquet");
    const PLAIN: &[u8] = include_bytes!("../../tests/data/own-v1-plain.parquet");

    fn file_of(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(bytes).expect("written");
        file
    }

    fn read_bytes(bytes: &[u8]) -> Result<Trace> {
        read(&file_of(bytes), Path::new("trace.parquet"))
    }

    #[test]
    fn files_of_version_1_still_read() {
        let mut expected = super::super::tests::small();
        expected.truncate(20);
        assert_eq!(read_bytes(CAPTURED).expect("reads"), expected);
        (expected.service, expected.chains) = (None, None);
        assert_eq!(read_bytes(PLAIN).expect("reads"), expected);
    }

    #[test]
    fn a_cut_file_is_an_error_wherever_it_is_cut() {
        for cut in 0..CAPTURED.len() {
            match read_bytes(&CAPTURED[..cut]).expect_err("cut") {
                Error::Damaged { offset, .. } => assert!(offset <= cut as u64),
                Error::Foreign { .. } => assert_eq!(cut, 0),
                other => panic!("cut at {cut}: {other}"),
            }
        }
    }

    #[test]
    fn a_longer_file_is_an_error() {
        let mut bytes = CAPTURED.to_vec();
        bytes.insert(100, 0);
        let error = read_bytes(&bytes).expect_err("one byte more").to_string();
        assert!(error.contains("the seal belongs to a file of another length"), "{error}");
        bytes.extend(b"more");
        assert!(matches!(read_bytes(&bytes), Err(Error::Damaged { .. })));
    }

    /// The bytes as the parquet crate made them.
    fn unsealed() -> Vec<u8> {
        let seal = |window: &[u8]| window == SEAL_MARK;
        let at = CAPTURED.windows(8).rposition(seal).expect("a seal");
        [&CAPTURED[..at], &CAPTURED[at + SEAL_BYTES as usize..]].concat()
    }

    fn read_sealed_anew(parquet: &[u8]) -> Result<Trace> {
        let tail: [u8; 8] = parquet[parquet.len() - 8..].try_into().expect("eight bytes");
        let start = parquet.len() - 8 - footer_bytes(tail) as usize;
        let hashes = [&parquet[..start], &parquet[start..]].map(super::super::hash::hash);
        let words = [start as u64, hashes[0], hashes[1]];
        let seal: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        read_bytes(&[&parquet[..start], SEAL_MARK, &seal, &parquet[start..]].concat())
    }

    #[test]
    fn a_parquet_file_of_somebody_else_is_foreign() {
        assert!(read_sealed_anew(&unsealed()).is_ok());
        let error = read_bytes(&unsealed()).expect_err("no seal");
        assert!(matches!(error, Error::Foreign { .. }), "{error}");
        // Sealed, but without what the columns need.
        for (key, cause) in [("streams", "wearmark.streams"), ("origin", "wearmark.origin")] {
            let mut parquet = unsealed();
            let key = format!("wearmark.{key}");
            let at = parquet.windows(key.len()).position(|w| w == key.as_bytes()).expect("there");
            parquet[at] = b'x';
            let error = read_sealed_anew(&parquet).expect_err("nothing there").to_string();
            assert!(error.contains(cause), "{error}");
        }
    }

    #[test]
    fn a_later_version_says_so() {
        let mut parquet = unsealed();
        let key = b"wearmark.format_version";
        let at = parquet.windows(key.len()).position(|window| window == key).expect("there");
        // The value follows the key, behind its field header and length.
        let value = at + key.len() + 2;
        assert_eq!(parquet[value], b'1');
        parquet[value] = b'7';
        let error = read_sealed_anew(&parquet).expect_err("from the future");
        assert!(matches!(error, Error::Version { found: 7, known: 2, .. }), "{error}");
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_found(at in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut bytes = CAPTURED.to_vec();
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
            let mut parquet = unsealed();
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

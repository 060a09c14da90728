//! Our own format: one Parquet file that polars, pandas, duckdb and pyarrow read as it is.
//!
//! Version 2; `docs/reference/trace-format.md` draws it byte by byte. Columns, one row per request,
//! none of them null:
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
//! `service_ns` is there or not; `actor` and `transaction` are there together or not at all. All
//! are zstd-compressed; a chunk of more than 256 distinct values is split in byte planes instead of
//! having a dictionary. Key-value metadata (`wearmark.*`): `format_version`, `units`, `op_codes`,
//! `requests`, and as JSON `streams` and `origin`.
//!
//! **Records.** Parquet has no checksum of the whole file, is worthless without its last bytes, and
//! its readers trust what they decode. So sealed records lie between the pages, where every Parquet
//! reader skips them (`layout.rs`): a head with streams and origin, one in front of each row group
//! with the hash of its bytes and the places of its pages, a tail with the hash of the footer.
//! [`read`] goes by the records alone: a single changed word is always found, larger damage but for
//! 1 in 2^64, and a file that was cut off yields every row group that is whole.
//!
//! **Speed.** A plane or page that hardly compresses is stored raw and decoded where it lies in the
//! file's bytes (`frame.rs`); nothing is decoded twice or through a wider type.
//! `benches/formats.rs` measures it.
//!
//! Tests: round trip of arbitrary traces in batches of any size, the parquet crate as a second
//! reader, truncation at every length, flips of any bit, forged records.

mod decode;
mod delta;
mod dictionary;
mod frame;
mod hash;
mod layout;
mod pages;
mod planes;
mod reader;
mod stored;
#[cfg(test)]
mod tests;
mod word;
mod writer;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use events::Warning;
pub use stored::Stored;
use trace::Trace;
pub use writer::{Writer, write, write_parts};

use super::notes::{Notes, STAGE};
use super::options::ReadOptions;
use crate::{Error, Result};
use reader::How;

/// The version that this build writes and reads.
pub const FORMAT_VERSION: u32 = 2;

/// How every Parquet file starts and ends.
pub(super) const PARQUET_MARK: &[u8] = b"PAR1";
/// Most requests of a row group: what a writer holds, and a reader per thread.
const ROW_GROUP: usize = 1 << 20;

/// What a lenient reading left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Byte of the file from which on nothing was read.
    pub offset: u64,
    /// Bytes from there to the end of the file.
    pub bytes: u64,
    /// Why.
    pub cause: String,
    /// Whether the file just ends early, rather than being changed.
    pub cut_off: bool,
}

/// Reads a trace.
///
/// # Errors
/// [`Error::CutOff`] for a file whose writer was killed or that was copied in part, with how many
/// of its requests are whole; [`Error::Damaged`] with the offset where a changed file was noticed;
/// [`Error::Foreign`] for a file that is not ours, [`Error::Version`] for one from the future.
pub fn read(path: &Path) -> Result<Trace> {
    read_on(path, 1)
}

/// [`read`] on that many threads.
///
/// # Errors
/// As [`read`].
pub fn read_on(path: &Path, threads: usize) -> Result<Trace> {
    let file = File::open(path).map_err(Error::io(path))?;
    Ok(read_file(&file, path, How { lenient: false, threads })?.0)
}

/// Reads every whole row group in front of the first damage, and says what was left out: `None`
/// where the file is whole. What comes back is never changed data, only less of it. A file that
/// ends before its last row group has the origin that its writer started with.
///
/// # Errors
/// As [`read`], but for damage only where it hits the head.
pub fn read_whole_groups(path: &Path, threads: usize) -> Result<(Trace, Option<Loss>)> {
    let file = File::open(path).map_err(Error::io(path))?;
    read_file(&file, path, How { lenient: true, threads })
}

/// Reads as asked for, and notes what a lenient reading left out.
pub(super) fn read_noting(path: &Path, options: &ReadOptions, notes: &mut Notes) -> Result<Trace> {
    if !options.lenient {
        return read_on(path, options.threads);
    }
    let (trace, loss) = read_whole_groups(path, options.threads)?;
    if let Some(Loss { offset, bytes, cause, .. }) = loss {
        let message = format!(
            "the last {bytes} bytes of {} were left out, from byte {offset} on: {cause}",
            path.display()
        );
        notes.warn(Warning::new(STAGE, "trace_cut_off", message));
    }
    Ok(trace)
}

fn read_file(file: &File, path: &Path, how: How) -> Result<(Trace, Option<Loss>)> {
    check_start(file, path)?;
    reader::read(file, path, how)
}

/// Refuses a file that does not begin as ours do.
fn check_start(file: &File, path: &Path) -> Result<()> {
    let size = file.metadata().map_err(Error::io(path))?.len();
    let mut start = [0; 12];
    let start = &mut start[..size.min(12) as usize];
    file.read_exact_at(start, 0).map_err(Error::io(path))?;
    reader::check_start(start, path)
}

//! Writes a trace as it comes, a row group at a time.
//!
//! Memory holds at most one row group and its encoded bytes. The file grows under its partial name
//! (`.NAME.partial`) and gets its own when it is finished and synced. A writer that is killed
//! leaves the partial file: every row group in it that is whole can be read
//! ([`super::read_whole_groups`]).
//!
//! Tests: batches of any size against one write of the whole, killed writers, refusals.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;
use trace::{Malformed, Origin, Outline, Parts, Stream, Trace};

use super::hash::hash;
use super::layout::{Group, Head, Optional, Tail};
use super::pages::{Encoded, Encoder, Rows};
use super::{FORMAT_VERSION, ROW_GROUP};
use crate::whole_file::Partial;
use crate::{Error, Result};

/// Writes one file, batch by batch.
///
/// The file has its name only after [`Writer::finish`]. Without it, dropped or killed, what was
/// written stays in `.NAME.partial`, readable up to its last whole row group.
pub struct Writer {
    path: PathBuf,
    file: Partial,
    encoder: Encoder,
    streams: Vec<Stream>,
    origin: Origin,
    /// Requests that do not fill a row group yet: columns only.
    pending: Trace,
    /// Streams that the file knows already.
    streams_written: usize,
    last_due: u64,
    /// Since the first row group.
    begun: Option<Begun>,
    rows: u64,
    groups: u64,
}

/// What there is once it is known which columns the file has.
struct Begun {
    optional: Optional,
    schema: SchemaDescriptor,
    /// Its sink is moved to the file after every row group.
    parquet: SerializedFileWriter<Vec<u8>>,
}

impl Writer {
    /// Starts a file. Further streams may come with the batches, and the origin may change until
    /// the end; what is given here is what a killed writer leaves.
    ///
    /// # Errors
    /// Where the partial file cannot be made or another process is writing it.
    pub fn new(path: &Path, streams: Vec<Stream>, origin: Origin) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: Partial::create(path)?,
            encoder: Encoder::new().map_err(Error::io(path))?,
            streams,
            origin,
            pending: Trace::default(),
            streams_written: 0,
            last_due: 0,
            begun: None,
            rows: 0,
            groups: 0,
        })
    }

    /// Appends the requests of `batch`; due times go on from the batch before. Its stream table
    /// must begin with the streams known so far, new ones behind them; every batch has the same
    /// optional columns as the first. Its origin is ignored.
    ///
    /// # Errors
    /// Where the batch is malformed or does not go on from the last one, and where the file cannot
    /// be written. After an error only dropping the writer makes sense.
    pub fn push_batch(&mut self, batch: &Trace) -> Result<()> {
        self.check(batch)?;
        let known = self.streams.len();
        self.streams.extend(batch.streams[known..].iter().cloned());
        self.last_due = batch.due.last().copied().unwrap_or(self.last_due);
        let mut start = 0;
        while start < batch.count() {
            let room = ROW_GROUP - self.pending.count();
            let end = batch.count().min(start + room);
            if self.pending.is_empty() && end - start == ROW_GROUP {
                self.group(Rows::of(batch, start..end), Optional::of(batch))?;
            } else {
                self.pending.extend_rows(batch, start..end);
                if self.pending.count() == ROW_GROUP {
                    self.flush()?;
                }
            }
            start = end;
        }
        Ok(())
    }

    fn check(&self, batch: &Trace) -> Result<()> {
        let malformed = |source| Error::Malformed { path: self.path.clone(), source };
        batch.validate().map_err(malformed)?;
        if !batch.streams.starts_with(&self.streams) {
            return Err(malformed(Malformed::OtherStreams));
        }
        if batch.is_empty() {
            return Ok(());
        }
        if batch.due[0] < self.last_due {
            return Err(malformed(Malformed::TimeRunsBack { index: 0 }));
        }
        let same = |optional: Optional| optional == Optional::of(batch);
        let begun = self.begun.as_ref().is_none_or(|begun| same(begun.optional));
        let pending = self.pending.is_empty() || same(Optional::of(&self.pending));
        if begun && pending { Ok(()) } else { Err(malformed(Malformed::OtherColumns)) }
    }

    /// Writes what is pending as a row group and syncs it: what was pushed so far survives a crash
    /// of the machine, in the partial file.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.file.file().sync_data().map_err(Error::io(&self.path))
    }

    /// Changes what the finished file says about where the trace came from.
    pub fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn finish(mut self) -> Result<()> {
        self.end()?;
        self.file.commit()
    }

    /// Ends the file; what is left is to name it.
    pub(super) fn end(&mut self) -> Result<()> {
        self.flush()?;
        let optional = Optional::of(&self.pending);
        self.begin(optional)?;
        let mut begun = self.begun.take().expect("just begun");
        let footer = self.footer(&mut begun).map_err(|error| self.io(error))?;
        self.put(&footer)
    }

    /// The tail and the Parquet footer.
    fn footer(&self, begun: &mut Begun) -> parquet::errors::Result<Vec<u8>> {
        let origin = json(&self.origin)?;
        for (key, value) in [
            ("streams", json(&self.streams)?),
            ("origin", origin.clone()),
            ("requests", self.rows.to_string()),
        ] {
            let pair = KeyValue::new(format!("wearmark.{key}"), value);
            begun.parquet.append_key_value_metadata(pair);
        }
        begun.parquet.finish()?;
        let footer = std::mem::take(begun.parquet.inner_mut());
        let tail = Tail {
            rows: self.rows,
            groups: self.groups,
            footer_bytes: footer.len() as u64,
            footer_hash: hash(&footer),
            origin,
        };
        Ok([tail.to_record(), footer].concat())
    }

    /// Writes what is pending as a row group.
    fn flush(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        // Swapped out while it is encoded, and back for its room.
        let mut pending = std::mem::take(&mut self.pending);
        let written = self.group(Rows::of(&pending, 0..pending.count()), Optional::of(&pending));
        pending.truncate(0);
        self.pending = pending;
        written
    }

    fn begin(&mut self, optional: Optional) -> Result<()> {
        if self.begun.is_some() {
            return Ok(());
        }
        let start = || -> parquet::errors::Result<(Begun, Vec<u8>)> {
            let schema = optional.descriptor()?;
            let properties = Arc::new(properties());
            let root = schema.root_schema_ptr();
            let mut parquet = SerializedFileWriter::new(Vec::new(), root, properties)?;
            let (streams, origin) = (json(&self.streams)?, json(&self.origin)?);
            parquet.write_all(&Head { optional, streams, origin }.to_record())?;
            let bytes = drain(&mut parquet)?;
            Ok((Begun { optional, schema, parquet }, bytes))
        };
        let (begun, bytes) = start().map_err(|error| self.io(error))?;
        self.streams_written = self.streams.len();
        self.begun = Some(begun);
        self.put(&bytes)
    }

    /// Writes a row group behind its record.
    fn group(&mut self, rows: Rows<'_>, optional: Optional) -> Result<()> {
        self.begin(optional)?;
        let mut begun = self.begun.take().expect("just begun");
        let written = self.encode(rows, &mut begun).map_err(|error| self.io(error));
        self.begun = Some(begun);
        self.put(&written?)?;
        self.streams_written = self.streams.len();
        self.rows += rows.due.len() as u64;
        self.groups += 1;
        Ok(())
    }

    fn encode(&mut self, rows: Rows<'_>, begun: &mut Begun) -> parquet::errors::Result<Vec<u8>> {
        let Encoded { body, index, chunks } = self.encoder.encode(rows, &begun.schema)?;
        let new = &self.streams[self.streams_written..];
        let group = Group {
            rows: rows.due.len() as u32,
            first_due: rows.due.first().copied().unwrap_or(0),
            last_due: rows.due.last().copied().unwrap_or(0),
            body_bytes: body.len() as u64,
            body_hash: hash(&body),
            streams: if new.is_empty() { String::new() } else { json(&new)? },
            index,
        };
        begun.parquet.write_all(&group.to_record())?;
        let body = bytes::Bytes::from(body);
        let mut row_group = begun.parquet.next_row_group()?;
        for metadata in chunks {
            let close = ColumnCloseResult {
                bytes_written: metadata.compressed_size() as u64,
                rows_written: rows.due.len() as u64,
                metadata,
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            row_group.append_column(&body, close)?;
        }
        row_group.close()?;
        drain(&mut begun.parquet)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.file().write_all(bytes).map_err(Error::io(&self.path))
    }

    fn io(&self, error: ParquetError) -> Error {
        let source = match error {
            ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(source) => *source,
                Err(cause) => io::Error::other(cause),
            },
            other => io::Error::other(other),
        };
        Error::Io { path: self.path.clone(), source }
    }
}

/// What the Parquet writer has made since the last time.
fn drain(parquet: &mut SerializedFileWriter<Vec<u8>>) -> parquet::errors::Result<Vec<u8>> {
    parquet.flush()?;
    Ok(std::mem::take(parquet.inner_mut()))
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> parquet::errors::Result<String> {
    serde_json::to_string(value).map_err(|error| ParquetError::General(error.to_string()))
}

fn properties() -> WriterProperties {
    let metadata = [
        ("format_version", FORMAT_VERSION.to_string()),
        ("units", "due_ns, service_ns: nanoseconds; offset_bytes, len_bytes: bytes".to_owned()),
        ("op_codes", "0 read, 1 write, 2 trim, 3 flush".to_owned()),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(format!("wearmark.{key}"), value));
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("wearmark {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata.to_vec()))
        .set_offset_index_disabled(true)
        .build()
}

/// Writes a whole trace: the file is there whole or not at all.
///
/// # Errors
/// Where the trace is malformed or the file cannot be written.
pub fn write(trace: &Trace, path: &Path) -> Result<()> {
    trace.validate().map_err(|source| Error::Malformed { path: path.to_owned(), source })?;
    write_parts(trace, path)
}

/// [`write()`] of a trace in parts; the same bytes.
///
/// # Errors
/// As [`write()`], and where a part cannot be read.
pub fn write_parts(parts: &dyn Parts<Error>, path: &Path) -> Result<()> {
    let Outline { streams, origin, .. } = parts.outline();
    let mut writer = Writer::new(path, streams, origin)?;
    let mut pushed = Ok(());
    let mut empty = Trace::default();
    let read = parts.each(&mut |part| {
        pushed = writer.push_batch(part);
        empty.extend_rows(part, 0..0);
        if pushed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let written = read.and(pushed).and_then(|()| {
        if writer.rows == 0 && writer.pending.is_empty() {
            writer.begin(Optional::of(&empty))?;
        }
        writer.end()
    });
    match written {
        Ok(()) => writer.file.commit(),
        Err(error) => {
            writer.file.discard();
            Err(error)
        }
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Writer");
        shown.field("path", &self.path).field("rows", &self.rows).finish_non_exhaustive()
    }
}

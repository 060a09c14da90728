//! A row group as Parquet pages, and the index of those pages.
//!
//! Columns are cut into pages of [`PAGE_ROWS`] requests, small enough that a page, its planes and
//! the values it decodes to stay in the second-level cache. Each column chunk takes one of three
//! encodings: `due_ns` and `transaction` delta, the narrow columns a dictionary while it lasts, all
//! others byte planes. The index repeats what the page headers say, so that a reader needs no
//! parser for those; it lies in the group's record and reads, column by column:
//!
//! - `0`, byte planes: for every page its offset in the row group and the lengths of its planes;
//! - `1`, dictionary: count of values and the values, for every page its offset and length;
//! - `2`, delta: for every page its offset and length.
//!
//! Tests: in `own/tests.rs`, on whole files; the encodings have theirs.

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::SchemaDescriptor;
use trace::{Op, Trace};

use super::delta;
use super::dictionary::{self, Dictionary};
use super::frame::Packer;
use super::planes;
use super::word::Word;

/// Requests per page.
pub(super) const PAGE_ROWS: usize = 32 << 10;

pub(super) const PLANES: u8 = 0;
pub(super) const DICTIONARY: u8 = 1;
pub(super) const DELTA: u8 = 2;

/// Planes of a value of that many bits: narrow values are four bytes in Parquet.
pub(super) fn plane_count(bits: usize) -> usize {
    if bits == 64 { 8 } else { 4 }
}

/// The columns of some requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    pub(super) due: &'a [u64],
    offset: &'a [u64],
    len: &'a [u32],
    op: &'a [Op],
    stream: &'a [u16],
    service: Option<&'a [u64]>,
    chains: Option<(&'a [u16], &'a [u32])>,
}

impl<'a> Rows<'a> {
    pub(super) fn of(trace: &'a Trace, rows: std::ops::Range<usize>) -> Self {
        Self {
            due: &trace.due[rows.clone()],
            offset: &trace.offset[rows.clone()],
            len: &trace.len[rows.clone()],
            op: &trace.op[rows.clone()],
            stream: &trace.stream[rows.clone()],
            service: trace.service.as_ref().map(|service| &service[rows.clone()]),
            chains: trace
                .chains
                .as_ref()
                .map(|chains| (&chains.actor[rows.clone()], &chains.transaction[rows])),
        }
    }
}

/// A row group in bytes.
pub(super) struct Encoded {
    /// The pages with their headers.
    pub(super) body: Vec<u8>,
    /// What the group's record says about them.
    pub(super) index: Vec<u8>,
    /// What the footer says about each column, relative to the start of the body.
    pub(super) chunks: Vec<ColumnChunkMetaData>,
}

/// Encodes row groups; keeps its working memory.
pub(super) struct Encoder {
    packer: Packer,
    page: Vec<u8>,
    body: TrackedWrite<Vec<u8>>,
    index: Vec<u8>,
    chunks: Vec<ColumnChunkMetaData>,
}

impl Encoder {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            packer: Packer::new()?,
            page: Vec::new(),
            body: TrackedWrite::new(Vec::new()),
            index: Vec::new(),
            chunks: Vec::new(),
        })
    }

    /// Encodes a row group; the columns of `rows` are those of `schema`.
    pub(super) fn encode(&mut self, rows: Rows<'_>, schema: &SchemaDescriptor) -> Result<Encoded> {
        self.body = TrackedWrite::new(Vec::new());
        self.delta(rows.due, schema)?;
        self.planes(rows.offset, schema)?;
        self.narrow(rows.len, |len| len, schema)?;
        self.narrow(rows.op, |op| op as u32, schema)?;
        self.narrow(rows.stream, u32::from, schema)?;
        if let Some(service) = rows.service {
            self.planes(service, schema)?;
        }
        if let Some((actor, transaction)) = rows.chains {
            self.narrow(actor, u32::from, schema)?;
            self.delta(transaction, schema)?;
        }
        let body = std::mem::replace(&mut self.body, TrackedWrite::new(Vec::new()));
        Ok(Encoded {
            body: body.into_inner()?,
            index: std::mem::take(&mut self.index),
            chunks: std::mem::take(&mut self.chunks),
        })
    }

    fn delta<W: Word>(&mut self, values: &[W], schema: &SchemaDescriptor) -> Result<()> {
        self.index.push(DELTA);
        let mut chunk = Chunk::new(values.len(), Encoding::DELTA_BINARY_PACKED);
        for page in values.chunks(PAGE_ROWS) {
            self.page.clear();
            delta::encode(page, &mut self.page);
            let mut frame = Vec::new();
            let length = self.packer.pack(&self.page, &mut frame)?;
            let size = self.page.len();
            self.data_page(&mut chunk, page.len(), frame, size, &[length])?;
        }
        self.close(&chunk, schema)
    }

    fn planes<W: Word>(&mut self, values: &[W], schema: &SchemaDescriptor) -> Result<()> {
        self.index.push(PLANES);
        let mut chunk = Chunk::new(values.len(), Encoding::BYTE_STREAM_SPLIT);
        let count = plane_count(W::BITS);
        for page in values.chunks(PAGE_ROWS) {
            let mut frames = Vec::new();
            let mut lengths = [0; planes::MOST_PLANES];
            for (plane, length) in lengths[..count].iter_mut().enumerate() {
                planes::split(page, plane, &mut self.page);
                *length = self.packer.pack(&self.page, &mut frames)?;
            }
            self.data_page(&mut chunk, page.len(), frames, page.len() * count, &lengths[..count])?;
        }
        self.close(&chunk, schema)
    }

    /// A column of which few values are expected.
    fn narrow<V: Copy>(
        &mut self,
        values: &[V],
        code: impl Fn(V) -> u32 + Copy,
        schema: &SchemaDescriptor,
    ) -> Result<()> {
        let codes = |values: &'_ [V]| values.iter().map(|value| code(*value)).collect::<Vec<u32>>();
        let Some(dictionary) = Dictionary::of(values.iter().map(|value| code(*value))) else {
            return self.planes(&codes(values), schema);
        };
        self.index.push(DICTIONARY);
        self.index.extend((dictionary.values.len() as u16).to_le_bytes());
        self.index.extend(dictionary.values.iter().flat_map(|value| value.to_le_bytes()));
        let mut chunk = Chunk::new(values.len(), Encoding::RLE_DICTIONARY);
        self.dictionary_page(&mut chunk, &dictionary)?;
        for page in values.chunks(PAGE_ROWS) {
            self.page.clear();
            dictionary.encode(page.iter().map(|value| code(*value)), &mut self.page);
            let mut frame = Vec::new();
            let length = self.packer.pack(&self.page, &mut frame)?;
            let size = self.page.len();
            self.data_page(&mut chunk, page.len(), frame, size, &[length])?;
        }
        self.close(&chunk, schema)
    }

    fn dictionary_page(&mut self, chunk: &mut Chunk, dictionary: &Dictionary) -> Result<()> {
        self.page.clear();
        self.page.extend(dictionary.values.iter().flat_map(|value| value.to_le_bytes()));
        let mut frame = Vec::new();
        self.packer.pack(&self.page, &mut frame)?;
        let page = Page::DictionaryPage {
            buf: frame.into(),
            num_values: dictionary.values.len() as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let page = CompressedPage::new(page, self.page.len());
        let spec = SerializedPageWriter::new(&mut self.body).write_page(page)?;
        chunk.dictionary = Some(spec.offset);
        chunk.compressed += spec.compressed_size;
        chunk.uncompressed += spec.uncompressed_size;
        Ok(())
    }

    /// Writes a data page and notes in the index where its frames are.
    fn data_page(
        &mut self,
        chunk: &mut Chunk,
        rows: usize,
        frames: Vec<u8>,
        uncompressed: usize,
        lengths: &[u32],
    ) -> Result<()> {
        let payload = frames.len() as u64;
        let page = Page::DataPage {
            buf: frames.into(),
            num_values: rows as u32,
            encoding: chunk.encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let page = CompressedPage::new(page, uncompressed);
        let spec = SerializedPageWriter::new(&mut self.body).write_page(page)?;
        chunk.data.get_or_insert(spec.offset);
        chunk.compressed += spec.compressed_size;
        chunk.uncompressed += spec.uncompressed_size;
        let offset = u32::try_from(spec.offset + spec.bytes_written - payload)
            .map_err(|_| ParquetError::General("a row group of more than 4 GiB".to_owned()))?;
        self.index.extend(offset.to_le_bytes());
        self.index.extend(lengths.iter().flat_map(|length| length.to_le_bytes()));
        Ok(())
    }

    fn close(&mut self, chunk: &Chunk, schema: &SchemaDescriptor) -> Result<()> {
        let mut encodings = vec![chunk.encoding, Encoding::RLE];
        if chunk.dictionary.is_some() {
            encodings.push(Encoding::PLAIN);
        }
        let metadata = ColumnChunkMetaData::builder(schema.column(self.chunks.len()))
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_encodings(encodings)
            .set_num_values(chunk.rows as i64)
            .set_total_compressed_size(chunk.compressed as i64)
            .set_total_uncompressed_size(chunk.uncompressed as i64)
            .set_data_page_offset(chunk.data.unwrap_or_default() as i64)
            .set_dictionary_page_offset(chunk.dictionary.map(|offset| offset as i64))
            .build()?;
        self.chunks.push(metadata);
        Ok(())
    }
}

/// What is known of a column chunk while its pages are written.
struct Chunk {
    rows: usize,
    encoding: Encoding,
    dictionary: Option<u64>,
    data: Option<u64>,
    compressed: usize,
    uncompressed: usize,
}

impl Chunk {
    fn new(rows: usize, encoding: Encoding) -> Self {
        Self { rows, encoding, dictionary: None, data: None, compressed: 0, uncompressed: 0 }
    }
}

/// Most bytes that a page of one frame decompresses to.
pub(super) fn most_page_bytes() -> usize {
    delta::bound(PAGE_ROWS).max(dictionary::bound(PAGE_ROWS))
}

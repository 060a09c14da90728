//! Reads a file from front to back by its records, row groups on as many threads as asked.
//!
//! Nothing is decoded before the hash of its bytes was compared. A file that is cut off or damaged
//! is an error, or, when asked for, yields every row group in front of the damage. The Parquet
//! footer is for other programs: it is hashed but not used.
//!
//! Memory: the columns, one row group's bytes per thread, and a few kilobytes of index per row
//! group.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use trace::{Origin, Outline, Stream, Trace};

use super::decode::{Cause, Decoder, Part, parts, room};
use super::hash::{Hasher, hash};
use super::layout::{
    self, GROUP_MARK, Group, HEAD_MARK, Head, Optional, RECORD_START, TAIL_MARK, Tail,
};
use super::{FORMAT_VERSION, Loss, PARQUET_MARK, ROW_GROUP};
use crate::{Error, Result};

/// How a file is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) lenient: bool,
    pub(super) threads: usize,
}

/// Where the first record is.
const HEAD_START: u64 = PARQUET_MARK.len() as u64;

/// Refuses a file whose first 12 bytes are not the Parquet mark and our head.
pub(super) fn check_start(start: &[u8], path: &Path) -> Result<()> {
    let foreign = |cause: &str| {
        let hint = "name its format if wearmark reads it; --help lists the formats".to_owned();
        Err(Error::Foreign { path: path.to_owned(), cause: cause.to_owned(), hint })
    };
    let ours = [PARQUET_MARK, HEAD_MARK].concat();
    if !start.is_empty() && ours.starts_with(start) && start.len() < ours.len() {
        let offset = start.len() as u64;
        return Err(Error::CutOff { path: path.to_owned(), offset, requests: 0 });
    }
    let Some(head) = start.strip_prefix(PARQUET_MARK) else {
        return foreign("it does not start with the Parquet mark PAR1");
    };
    if head == HEAD_MARK {
        return Ok(());
    }
    // The mark of a head ends in the version, two digits.
    let (family, known) = (&HEAD_MARK[..6], FORMAT_VERSION);
    let version = head.strip_prefix(family).and_then(|digits| str::from_utf8(digits).ok());
    match version.and_then(|digits| digits.parse().ok()) {
        Some(found) if found > known => Err(Error::Version { path: path.to_owned(), found, known }),
        _ => foreign("a Parquet file that wearmark did not write, or whose head was changed"),
    }
}

/// A row group and where it is.
struct Placed {
    group: Group,
    /// Where its record starts.
    record_start: u64,
    body_start: u64,
    /// Streams known to its requests.
    stream_count: usize,
}

/// What the records say.
pub(super) struct Walked {
    optional: Optional,
    streams: Vec<Stream>,
    origin: Origin,
    groups: Vec<Placed>,
    /// Why and where the walk ended before the end of the file.
    loss: Option<Loss>,
}

pub(super) fn read(file: &File, path: &Path, how: How) -> Result<(Trace, Option<Loss>)> {
    let size = file.metadata().map_err(Error::io(path))?.len();
    let walked =
        if how.lenient { walk(&Source { file, path, size })? } else { walk_whole(file, path)? };
    let Walked { optional, streams, origin, groups, mut loss } = walked;
    let rows = |placed: &Placed| placed.group.rows as usize;
    let total: usize = groups.iter().map(rows).sum();
    let too_large = || Error::damaged(path, 0, format!("no memory for {total} requests"));
    let mut trace = room(total, optional).ok_or_else(too_large)?;
    let columns = parts(&mut trace, groups.iter().map(rows));
    if let Some((index, cause)) = decode_all(file, path, &groups, columns, how.threads)? {
        let offset = groups[index].record_start;
        let found = Loss { offset, bytes: size - offset, cause, cut_off: false };
        if !how.lenient {
            return Err(refusal(path, &found, &groups[..index]));
        }
        trace.truncate(groups[..index].iter().map(rows).sum());
        loss = Some(found);
    }
    (trace.streams, trace.origin) = (streams, origin);
    Ok((trace, loss))
}

/// Follows the records of a file that must be whole.
pub(super) fn walk_whole(file: &File, path: &Path) -> Result<Walked> {
    let size = file.metadata().map_err(Error::io(path))?.len();
    let walked = walk(&Source { file, path, size })?;
    match &walked.loss {
        Some(loss) => Err(refusal(path, loss, &walked.groups)),
        None => Ok(walked),
    }
}

/// Reads the row groups of a file one after the other into the same memory.
pub(super) struct GroupReader<'a> {
    file: &'a File,
    path: &'a Path,
    walked: &'a Walked,
    next: usize,
    decoder: Decoder,
    body: Vec<u8>,
    part: Trace,
}

impl<'a> GroupReader<'a> {
    pub(super) fn new(file: &'a File, path: &'a Path, walked: &'a Walked) -> Result<Self> {
        let decoder = Decoder::new().map_err(Error::io(path))?;
        let (body, part) = (Vec::new(), Trace::default());
        Ok(Self { file, path, walked, next: 0, decoder, body, part })
    }

    /// The next row group, `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<&Trace>> {
        let Self { file, path, walked, decoder, body, part, .. } = self;
        let Some(placed) = walked.groups.get(self.next) else { return Ok(None) };
        self.next += 1;
        let rows = placed.group.rows as usize;
        if part.count() < rows {
            let too_large = || Error::damaged(path, placed.record_start, "no memory for its rows");
            *part = room(rows, walked.optional).ok_or_else(too_large)?;
            part.streams.clone_from(&walked.streams);
            part.origin.clone_from(&walked.origin);
        }
        part.truncate(rows);
        let columns = parts(part, std::iter::once(rows)).pop().expect("one part");
        if let Err(cause) = decode_one(file, path, placed, (decoder, body), columns)? {
            return Err(Error::damaged(path, placed.record_start, cause));
        }
        Ok(Some(part))
    }
}

fn refusal(path: &Path, loss: &Loss, whole: &[Placed]) -> Error {
    let requests = whole.iter().map(|placed| u64::from(placed.group.rows)).sum();
    let (path, offset, cause) = (path.to_owned(), loss.offset, loss.cause.clone());
    if loss.cut_off {
        Error::CutOff { path, offset, requests }
    } else {
        Error::Damaged { path, offset, cause }
    }
}

struct Source<'a> {
    file: &'a File,
    path: &'a Path,
    size: u64,
}

/// What is at a place where a record should be.
enum Found {
    Record { mark: [u8; 8], content: Vec<u8>, end: u64 },
    CutOff,
    Damaged,
}

impl Source<'_> {
    fn bytes(&self, start: u64, count: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.file.read_exact_at(&mut bytes, start).map_err(Error::io(self.path))?;
        Ok(bytes)
    }

    fn record(&self, start: u64) -> Result<Found> {
        let left = self.size - start;
        if left < RECORD_START as u64 {
            return Ok(Found::CutOff);
        }
        let mut mark_and_length = [0; RECORD_START];
        self.file.read_exact_at(&mut mark_and_length, start).map_err(Error::io(self.path))?;
        let Some(length) = layout::length_of(&mark_and_length) else {
            return Ok(Found::Damaged);
        };
        if left < length as u64 {
            return Ok(Found::CutOff);
        }
        let record = self.bytes(start, length)?;
        Ok(match layout::open(&record) {
            Some(content) => {
                let mark = record[..8].try_into().expect("eight bytes");
                Found::Record { mark, content: content.to_vec(), end: start + length as u64 }
            }
            None => Found::Damaged,
        })
    }
}

/// Follows the records to the end of the file, or as far as they are whole.
fn walk(source: &Source<'_>) -> Result<Walked> {
    let damaged = |offset, cause: &str| Error::damaged(source.path, offset, cause);
    let (mark, content, mut at) = match source.record(HEAD_START)? {
        Found::Record { mark, content, end } => (mark, content, end),
        Found::CutOff => {
            let (path, offset) = (source.path.to_owned(), source.size);
            return Err(Error::CutOff { path, offset, requests: 0 });
        }
        Found::Damaged => return Err(damaged(HEAD_START, "the head was changed")),
    };
    let unreadable = || damaged(HEAD_START, "the head is unreadable");
    let head = Head::from_content(&content).filter(|_| mark == *HEAD_MARK);
    let Head { optional, streams, origin } = head.ok_or_else(unreadable)?;
    let streams = layout::streams(&streams).ok_or_else(unreadable)?;
    let origin = serde_json::from_str(&origin).map_err(|_| unreadable())?;
    let mut walked = Walked { optional, streams, origin, groups: Vec::new(), loss: None };
    walked.loss = loop {
        let lost = |cause: &str, cut_off: bool| {
            let bytes = source.size - at;
            Some(Loss { offset: at, bytes, cause: cause.to_owned(), cut_off })
        };
        match source.record(at)? {
            Found::CutOff => break lost("the file is cut off", true),
            Found::Damaged => {
                break lost("something else is where a row group should begin", false);
            }
            Found::Record { mark, content, end } if mark == *GROUP_MARK => {
                match walked.add(&content, at, end, source.size) {
                    Step::Next(next) => at = next,
                    Step::CutOff => break lost("the file is cut off in a row group", true),
                    Step::Damaged => break lost("the record of a row group is unreadable", false),
                }
            }
            Found::Record { mark, content, end } if mark == *TAIL_MARK => {
                break walked.end(source, &content, (at, end))?;
            }
            Found::Record { .. } => break lost("a second head", false),
        }
    };
    Ok(walked)
}

enum Step {
    Next(u64),
    CutOff,
    Damaged,
}

impl Walked {
    /// Requests of all row groups.
    pub(super) fn requests(&self) -> u64 {
        self.groups.iter().map(|placed| u64::from(placed.group.rows)).sum()
    }

    pub(super) fn outline(&self) -> Outline {
        Outline {
            requests: self.requests(),
            span_ns: self.groups.last().map_or(0, |placed| placed.group.last_due),
            streams: self.streams.clone(),
            origin: self.origin.clone(),
        }
    }

    fn add(&mut self, content: &[u8], record_start: u64, body_start: u64, size: u64) -> Step {
        let Some(group) = Group::from_content(content) else { return Step::Damaged };
        let Some(new) = layout::streams(&group.streams) else { return Step::Damaged };
        let last_due = self.groups.last().map_or(0, |placed| placed.group.last_due);
        if !(1..=ROW_GROUP as u32).contains(&group.rows) || group.first_due < last_due {
            return Step::Damaged;
        }
        let next = body_start.checked_add(group.body_bytes).filter(|next| *next <= size);
        let Some(next) = next else { return Step::CutOff };
        self.streams.extend(new);
        let stream_count = self.streams.len();
        self.groups.push(Placed { group, record_start, body_start, stream_count });
        Step::Next(next)
    }

    /// Looks at the tail and the footer behind it.
    fn end(
        &mut self,
        source: &Source<'_>,
        content: &[u8],
        (start, end): (u64, u64),
    ) -> Result<Option<Loss>> {
        let lost = |cause: &str, cut_off| {
            let bytes = source.size - start;
            Ok(Some(Loss { offset: start, bytes, cause: cause.to_owned(), cut_off }))
        };
        let tail = Tail::from_content(content);
        let origin = tail.as_ref().and_then(|tail| serde_json::from_str(&tail.origin).ok());
        let (Some(tail), Some(origin)) = (tail, origin) else {
            return lost("the tail is unreadable", false);
        };
        let rows: u64 = self.groups.iter().map(|placed| u64::from(placed.group.rows)).sum();
        if (tail.rows, tail.groups) != (rows, self.groups.len() as u64) {
            return lost("the tail counts other row groups", false);
        }
        // From here all requests are known to be there.
        self.origin = origin;
        match tail.footer_bytes.cmp(&(source.size - end)) {
            std::cmp::Ordering::Greater => return lost("the file is cut off in its footer", true),
            std::cmp::Ordering::Less => return lost("the file goes on behind its end", false),
            std::cmp::Ordering::Equal => {}
        }
        if tail.footer_bytes > layout::MOST_RECORD as u64 * 16 {
            return lost("the footer is too long", false);
        }
        let footer = source.bytes(end, tail.footer_bytes as usize)?;
        if hash(&footer) != tail.footer_hash {
            return lost("the footer was changed", false);
        }
        Ok(None)
    }
}

/// Decodes every row group into its part. Gives the first one that is damaged, and how.
fn decode_all(
    file: &File,
    path: &Path,
    groups: &[Placed],
    columns: Vec<Part<'_>>,
    threads: usize,
) -> Result<Option<(usize, Cause)>> {
    let work = Mutex::new(groups.iter().enumerate().zip(columns));
    let next = || work.lock().expect("no worker panics").next();
    let run = || -> Result<Option<(usize, Cause)>> {
        let mut decoder = Decoder::new().map_err(Error::io(path))?;
        let mut body = Vec::new();
        while let Some(((index, placed), part)) = next() {
            let room = (&mut decoder, &mut body);
            if let Err(cause) = decode_one(file, path, placed, room, part)? {
                return Ok(Some((index, cause)));
            }
        }
        Ok(None)
    };
    let found = if threads > 1 && groups.len() > 1 {
        thread::scope(|scope| {
            let workers: Vec<_> =
                (0..threads.min(groups.len())).map(|_| scope.spawn(run)).collect();
            workers.into_iter().map(|w| w.join().expect("no worker panics")).collect::<Vec<_>>()
        })
    } else {
        vec![run()]
    };
    let found: Result<Vec<_>> = found.into_iter().collect();
    Ok(found?.into_iter().flatten().min_by_key(|(index, _)| *index))
}

/// Reads a row group, checks its hash and decodes it; the inner error is damage.
fn decode_one(
    file: &File,
    path: &Path,
    placed: &Placed,
    (decoder, body): (&mut Decoder, &mut Vec<u8>),
    part: Part<'_>,
) -> Result<std::result::Result<(), Cause>> {
    let bytes = placed.group.body_bytes as usize;
    if body.len() < bytes {
        body.resize(bytes, 0);
    }
    let body = &mut body[..bytes];
    let hash = read_and_hash(file, placed.body_start, body).map_err(Error::io(path))?;
    if hash != placed.group.body_hash {
        return Ok(Err("a row group was changed since it was written".to_owned()));
    }
    Ok(decoder.decode(&placed.group, body, part, placed.stream_count))
}

/// Reads `body` from the file in pieces that are hashed while they are in the cache.
fn read_and_hash(file: &File, start: u64, body: &mut [u8]) -> std::io::Result<u64> {
    const PIECE: usize = 256 << 10;
    const { assert!(PIECE.is_multiple_of(Hasher::PIECE_BYTES)) };
    let mut hasher = Hasher::new();
    let mut at = start;
    for piece in body.chunks_mut(PIECE) {
        file.read_exact_at(piece, at)?;
        hasher.update(piece);
        at += piece.len() as u64;
    }
    Ok(hasher.finish(body.len() as u64))
}

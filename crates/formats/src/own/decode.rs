//! From the bytes of a row group to its part of the columns, each page straight to where it
//! belongs.
//!
//! What makes a trace well formed is checked on the way: dictionaries hold only codes that mean
//! something, and the order of time and the largest address are looked at while the page is in the
//! cache. What a forged index says is checked against the bytes that are there.
//!
//! Tests: in `own/tests.rs`, on whole files.

use trace::{Chains, Op, Trace};

use super::delta;
use super::dictionary::{MOST, Table};
use super::frame::{Opener, Plane};
use super::layout::{Cursor, Group, Optional};
use super::pages::{DELTA, DICTIONARY, PAGE_ROWS, PLANES, most_page_bytes, plane_count};
use super::planes::{self, MOST_PLANES};
use super::word::Word;
use crate::huge::{self, in_large_pages};

/// Why a row group cannot be decoded.
pub(super) type Cause = String;

/// A part of every column.
pub(super) struct Part<'a> {
    due: &'a mut [u64],
    offset: &'a mut [u64],
    len: &'a mut [u32],
    op: &'a mut [Op],
    stream: &'a mut [u16],
    service: Option<&'a mut [u64]>,
    chains: Option<(&'a mut [u16], &'a mut [u32])>,
}

/// Room for `count` requests, which the kernel hands out as it is filled. `None` where there is not
/// this much memory.
pub(super) fn room(count: usize, optional: Optional) -> Option<Trace> {
    // Asked for first in a way that may fail: zeroed vectors abort.
    let bytes = count.checked_mul(size_of::<u64>() * 5)?;
    Vec::<u8>::new().try_reserve_exact(bytes).ok()?;
    let mut op = huge::with_capacity(count);
    op.resize(count, Op::Read);
    Some(Trace {
        due: in_large_pages(vec![0; count]),
        offset: in_large_pages(vec![0; count]),
        len: in_large_pages(vec![0; count]),
        op,
        stream: in_large_pages(vec![0; count]),
        service: optional.service.then(|| in_large_pages(vec![0; count])),
        chains: optional.chains.then(|| Chains {
            actor: in_large_pages(vec![0; count]),
            transaction: in_large_pages(vec![0; count]),
        }),
        ..Trace::default()
    })
}

/// Cuts the columns into parts of this many rows each, which together are all.
pub(super) fn parts(trace: &mut Trace, counts: impl Iterator<Item = usize>) -> Vec<Part<'_>> {
    let mut rest = Part {
        due: &mut trace.due,
        offset: &mut trace.offset,
        len: &mut trace.len,
        op: &mut trace.op,
        stream: &mut trace.stream,
        service: trace.service.as_deref_mut(),
        chains: trace
            .chains
            .as_mut()
            .map(|chains| (chains.actor.as_mut_slice(), chains.transaction.as_mut_slice())),
    };
    counts
        .map(|count| Part {
            due: split(rest.due.split_off_mut(..count)),
            offset: split(rest.offset.split_off_mut(..count)),
            len: split(rest.len.split_off_mut(..count)),
            op: split(rest.op.split_off_mut(..count)),
            stream: split(rest.stream.split_off_mut(..count)),
            service: rest.service.as_mut().map(|service| split(service.split_off_mut(..count))),
            chains: rest.chains.as_mut().map(|(actor, transaction)| {
                (split(actor.split_off_mut(..count)), split(transaction.split_off_mut(..count)))
            }),
        })
        .collect()
}

/// What was split off, which is there because the parts together are all rows.
fn split<T>(part: Option<&mut [T]>) -> &mut [T] {
    part.expect("the columns have the rows of all parts")
}

/// Decodes row groups; keeps its working memory.
pub(super) struct Decoder {
    opener: Opener,
    rooms: Vec<Vec<u8>>,
}

impl Decoder {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self { opener: Opener::new()?, rooms: vec![Vec::new(); MOST_PLANES] })
    }

    /// Decodes `body` into `part`; requests may name streams below `stream_count`.
    pub(super) fn decode(
        &mut self,
        group: &Group,
        body: &[u8],
        part: Part<'_>,
        stream_count: usize,
    ) -> Result<(), Cause> {
        let mut index = Cursor(&group.index);
        let index = &mut index;
        let mut times = Times { group, last: group.first_due, borrow: 0 };
        self.longs(index, body, part.due, |page| times.note(page))
            .ok_or_else(|| damaged("due_ns"))?;
        times.check(part.due)?;
        let mut all = 0;
        self.longs(index, body, part.offset, |page| all = page.iter().fold(all, |all, v| all | v))
            .ok_or_else(|| damaged("offset_bytes"))?;
        self.words(index, body, part.len).ok_or_else(|| damaged("len_bytes"))?;
        check_ends(all, part.offset, part.len)?;
        self.ops(index, body, part.op)?;
        let most = u16::try_from(stream_count.saturating_sub(1)).unwrap_or(u16::MAX);
        if self.narrow(index, body, part.stream, "stream")? > most || stream_count == 0 {
            return Err("a request names a stream that the table does not have".to_owned());
        }
        if let Some(service) = part.service {
            self.longs(index, body, service, |_| ()).ok_or_else(|| damaged("service_ns"))?;
        }
        if let Some((actor, transaction)) = part.chains {
            self.narrow(index, body, actor, "actor")?;
            self.words(index, body, transaction).ok_or_else(|| damaged("transaction"))?;
        }
        if index.0.is_empty() { Ok(()) } else { Err("its index is too long".to_owned()) }
    }

    /// Decodes a wide column and shows each page to `note` while it is in the cache.
    fn longs(
        &mut self,
        index: &mut Cursor<'_>,
        body: &[u8],
        out: &mut [u64],
        mut note: impl FnMut(&[u64]),
    ) -> Option<()> {
        let kind = index.u8()?;
        for page in out.chunks_mut(PAGE_ROWS) {
            match kind {
                DELTA => self.delta(index, body, page)?,
                PLANES => self.planes(index, body, page)?,
                _ => return None,
            }
            note(page);
        }
        Some(())
    }

    fn words(&mut self, index: &mut Cursor<'_>, body: &[u8], out: &mut [u32]) -> Option<()> {
        match index.u8()? {
            DELTA => self.delta(index, body, out),
            PLANES => self.planes(index, body, out),
            DICTIONARY => {
                let values = dictionary(index)?;
                self.dictionary(index, body, &Table::new(&values, 0)?, out)
            }
            _ => None,
        }
    }

    /// Decodes a column and says which value none exceeds.
    fn narrow(
        &mut self,
        index: &mut Cursor<'_>,
        body: &[u8],
        out: &mut [u16],
        name: &str,
    ) -> Result<u16, Cause> {
        let mut read = || match index.u8()? {
            PLANES => {
                out.chunks_mut(PAGE_ROWS).try_for_each(|page| self.planes(index, body, page))?;
                out.iter().max().copied()
            }
            DICTIONARY => {
                let values = dictionary(index)?;
                let values: Result<Vec<u16>, _> =
                    values.iter().map(|value| u16::try_from(*value)).collect();
                let values = values.ok()?;
                self.dictionary(index, body, &Table::new(&values, 0)?, out)?;
                values.into_iter().max()
            }
            _ => None,
        };
        read().ok_or_else(|| damaged(name))
    }

    fn ops(&mut self, index: &mut Cursor<'_>, body: &[u8], out: &mut [Op]) -> Result<(), Cause> {
        let mut read = || {
            let kind = index.u8()?;
            let codes = dictionary(index).filter(|_| kind == DICTIONARY)?;
            let ops: Option<Vec<Op>> =
                codes.iter().map(|code| Op::ALL.get(*code as usize).copied()).collect();
            self.dictionary(index, body, &Table::new(&ops?, Op::Read)?, out)
        };
        read().ok_or_else(|| damaged("op"))
    }

    fn delta<W: Word>(&mut self, index: &mut Cursor<'_>, body: &[u8], out: &mut [W]) -> Option<()> {
        for page in out.chunks_mut(PAGE_ROWS) {
            let Plane::Bytes(bytes) = self.page(index, body)? else { return None };
            delta::decode(bytes, page)?;
        }
        Some(())
    }

    fn dictionary<V: Copy>(
        &mut self,
        index: &mut Cursor<'_>,
        body: &[u8],
        table: &Table<V>,
        out: &mut [V],
    ) -> Option<()> {
        for page in out.chunks_mut(PAGE_ROWS) {
            let Plane::Bytes(bytes) = self.page(index, body)? else { return None };
            table.decode(bytes, page)?;
        }
        Some(())
    }

    /// The next page of a single frame.
    fn page<'a>(&'a mut self, index: &mut Cursor<'_>, body: &'a [u8]) -> Option<Plane<'a>> {
        let (offset, length) = (index.u32()? as usize, index.u32()? as usize);
        let frame = body.get(offset..)?.get(..length)?;
        self.opener.open(frame, most_page_bytes(), &mut self.rooms[0])
    }

    fn planes<W: Word>(
        &mut self,
        index: &mut Cursor<'_>,
        body: &[u8],
        out: &mut [W],
    ) -> Option<()> {
        for page in out.chunks_mut(PAGE_ROWS) {
            let mut rest = body.get(index.u32()? as usize..)?;
            let mut opened = [Plane::Constant(0); MOST_PLANES];
            let count = plane_count(W::BITS);
            for (plane, room) in opened[..count].iter_mut().zip(&mut self.rooms) {
                let (frame, behind) = rest.split_at_checked(index.u32()? as usize)?;
                rest = behind;
                *plane = self.opener.open(frame, PAGE_ROWS, room)?;
            }
            planes::join(&opened[..count], page)?;
        }
        Some(())
    }
}

fn damaged(column: &str) -> Cause {
    format!("column {column} does not decode")
}

/// The values of a dictionary.
fn dictionary(index: &mut Cursor<'_>) -> Option<Vec<u32>> {
    let count = usize::from(index.u16()?);
    let values = index.bytes(count * 4)?.as_chunks::<4>().0;
    (count <= MOST).then(|| values.iter().map(|value| u32::from_le_bytes(*value)).collect())
}

/// Whether time runs forward, as the record says it does.
struct Times<'a> {
    group: &'a Group,
    last: u64,
    /// Its top bit is set once time ran back.
    borrow: u64,
}

impl Times<'_> {
    fn note(&mut self, page: &[u64]) {
        // The top bit of this is the borrow of b - a; unlike a comparison it costs no branch.
        let borrow = |a: u64, b: u64| (!b & a) | ((!b | a) & b.wrapping_sub(a));
        let Some((first, behind)) = page.split_first() else { return };
        let within = page.iter().zip(behind).fold(0, |all, (a, b)| all | borrow(*a, *b));
        self.borrow |= within | borrow(self.last, *first);
        self.last = page[page.len() - 1];
    }

    fn check(&self, due: &[u64]) -> Result<(), Cause> {
        if self.borrow >> 63 != 0 {
            return Err("time runs back".to_owned());
        }
        if (due.first(), self.last) != (Some(&self.group.first_due), self.group.last_due) {
            return Err("its times are not those of its record".to_owned());
        }
        Ok(())
    }
}

/// Whether every request ends within 64 bits; `all` are the offsets, or-ed.
fn check_ends(all: u64, offset: &[u64], len: &[u32]) -> Result<(), Cause> {
    // No length reaches beyond where the top byte is not all ones.
    if all >> 56 != 0xff {
        return Ok(());
    }
    let overflows = |(offset, len): (&u64, &u32)| offset.checked_add(u64::from(*len)).is_none();
    if offset.iter().zip(len).any(overflows) {
        return Err("a request ends beyond the largest address".to_owned());
    }
    Ok(())
}

//! Lines read by a description of their columns.

use trace::Op;

use super::split::{Fields, Separator};
use super::values::{number, op};
use crate::batch::{Batch, Row, SERVICE_UNKNOWN_NS};
use crate::cause::Cause;
use crate::column_list::{Column, Columns, MOST_COLUMNS, Meaning, Position};
use crate::decode::LineFormat;

/// Added to times that are reckoned back from a completion: a clock may start with the trace, and
/// the first request was issued before its zero. 2^42 ns are 73 minutes, longer than any request.
pub(crate) const BEFORE_ZERO_NS: u64 = 1 << 42;

/// Columns that most traces do with.
const FEW_COLUMNS: usize = 12;

/// Units of fields whose unit was not stated.
const SECONDS: u64 = 1_000_000_000;
const BYTES: u64 = 1;

/// Where the fields of a line are and what they mean.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub separator: Separator,
    time: Option<(Position, u64)>,
    end: Option<(Position, u64)>,
    service: Option<(Position, u64)>,
    op: Position,
    read_is_one: Option<bool>,
    offset: (Position, u64),
    size: (Position, u64),
    stream: Option<Position>,
    actor: Option<Position>,
    only: Vec<(Position, Box<[u8]>)>,
    /// Fields that must be split off, as many as lines have where some count from the end.
    most: usize,
}

/// What a line turned out to be.
enum Line<'a> {
    /// A request, of this stream and actor.
    Row(Row, Option<&'a [u8]>, Option<&'a [u8]>),
    /// Rightly none.
    Other,
}

impl Layout {
    /// Of columns and what separates them; `None` where a column is missing that they must have.
    pub fn new(columns: &Columns, separator: Separator) -> Option<Self> {
        let find = |meaning| columns.find(meaning);
        let placed = |column: &Column, default| (column.position, column.unit.unwrap_or(default));
        let time_unit = find(Meaning::Time).or(find(Meaning::End)).and_then(|time| time.unit);
        let time_unit = time_unit.unwrap_or(SECONDS);
        let op = find(Meaning::Op)?;
        let only = columns.columns.iter().filter(|column| column.meaning == Meaning::Only);
        let most = columns.columns.iter().map(|column| match column.position {
            Position::Front(place) => place + 1,
            Position::Back(_) => MOST_COLUMNS,
        });
        Some(Self {
            separator,
            time: find(Meaning::Time).map(|column| placed(column, time_unit)),
            end: find(Meaning::End).map(|column| placed(column, time_unit)),
            service: find(Meaning::Service).map(|column| placed(column, time_unit)),
            op: op.position,
            read_is_one: op.read_is_one,
            offset: placed(find(Meaning::Offset)?, BYTES),
            size: placed(find(Meaning::Size)?, BYTES),
            stream: find(Meaning::Stream).map(|column| column.position),
            actor: find(Meaning::Actor).map(|column| column.position),
            only: only.map(|only| (only.position, only.word.as_bytes().into())).collect(),
            most: most.max().unwrap_or(MOST_COLUMNS),
        })
    }

    /// Whether times are reckoned back from completions, see [`BEFORE_ZERO_NS`].
    pub fn counts_back(&self) -> bool {
        self.time.is_none() && self.service.is_some()
    }

    /// Takes numbers as ops, 1 being a read or 0.
    pub fn set_read_is_one(&mut self, read_is_one: bool) {
        self.read_is_one = Some(read_is_one);
    }

    /// Whether a line has the columns that a request needs.
    pub fn has_all(&self, line: &[u8]) -> bool {
        let fields = Fields::<MOST_COLUMNS>::split_some(line, self.separator, self.most);
        [self.op, self.offset.0, self.size.0]
            .into_iter()
            .all(|position| fields.at(position).is_some())
    }

    /// Whether a number stands where the time does: a line that is no request, but not a heading.
    pub fn has_time(&self, line: &[u8]) -> bool {
        let fields = Fields::<MOST_COLUMNS>::split_some(line, self.separator, self.most);
        let Some((position, unit)) = self.time.or(self.end) else { return false };
        fields.at(position).is_some_and(|field| number(field, "the time", unit).is_ok())
    }

    fn read<'a>(&self, line: &'a [u8]) -> Result<Line<'a>, Cause> {
        // Most lines have few columns, and room for all would be cleared for each line.
        match self.most {
            0..=FEW_COLUMNS => self.read_some::<FEW_COLUMNS>(line),
            _ => self.read_some::<MOST_COLUMNS>(line),
        }
    }

    #[inline]
    fn read_some<'a, const N: usize>(&self, line: &'a [u8]) -> Result<Line<'a>, Cause> {
        let fields = Fields::<N>::split_some(line, self.separator, self.most);
        let at = |position: Position| fields.at(position);
        let needed = |position: Position, field: &'static str| {
            at(position).ok_or_else(|| {
                Cause::Told(format!(
                    "it has {} columns, too few for the {field}",
                    fields.all().len()
                ))
            })
        };
        if self.only.iter().any(|(position, word)| at(*position) != Some(&word[..])) {
            return Ok(Line::Other);
        }
        let op = self.op(needed(self.op, "op")?)?;
        let (due_ns, service_ns) = self.times(&needed, &at)?;
        let (offset_bytes, len_bytes) = match op {
            // Tools print anything as the place of a flush.
            Op::Flush => (0, 0),
            _ => self.range(&needed)?,
        };
        let row = Row { due_ns, offset_bytes, len_bytes, op, stream: 0, service_ns };
        Ok(Line::Row(row, self.stream.and_then(at), self.actor.and_then(at)))
    }

    #[inline]
    fn op(&self, word: &[u8]) -> Result<Op, Cause> {
        match (word, self.read_is_one) {
            (b"0", Some(read_is_one)) => Ok(if read_is_one { Op::Write } else { Op::Read }),
            (b"1", Some(read_is_one)) => Ok(if read_is_one { Op::Read } else { Op::Write }),
            (b"0" | b"1", None) => Err(Cause::Said(
                "the op is a number: op:01 takes 0 for a read and 1 for a write, op:10 the reverse",
            )),
            _ => {
                op(word).ok_or(Cause::Said("the op is neither a read, a write, a trim nor a flush"))
            }
        }
    }

    /// When it was issued, and how long it took.
    #[inline]
    fn times<'a>(
        &self,
        needed: &impl Fn(Position, &'static str) -> Result<&'a [u8], Cause>,
        at: &impl Fn(Position) -> Option<&'a [u8]>,
    ) -> Result<(u64, u64), Cause> {
        // Where a service time is missing, the tool did not know it.
        let service = match self.service.and_then(|(place, unit)| Some((at(place)?, unit))) {
            None | Some((b"" | b"-" | b"-1", _)) => SERVICE_UNKNOWN_NS,
            Some((text, unit)) => number(text, "the service time", unit)?,
        };
        let end = match self.end {
            Some((place, unit)) => Some(number(needed(place, "end")?, "the end", unit)?),
            None => None,
        };
        let time = match self.time {
            Some((place, unit)) => Some(number(needed(place, "time")?, "the time", unit)?),
            None => None,
        };
        match (time, end) {
            (Some(time), Some(end)) if self.service.is_none() => {
                let service = end.checked_sub(time);
                Ok((time, service.ok_or(Cause::Said("it ends before it begins"))?))
            }
            (Some(time), _) => Ok((time, service)),
            (None, Some(end)) if self.service.is_some() => {
                let shifted = end.checked_add(BEFORE_ZERO_NS).ok_or(Cause::TooLarge("the end"))?;
                let due = shifted.checked_sub(service);
                Ok((due.ok_or(Cause::TooLarge("the service time"))?, service))
            }
            (None, end) => Ok((end.unwrap_or_default(), service)),
        }
    }

    #[inline]
    fn range<'a>(
        &self,
        needed: &impl Fn(Position, &'static str) -> Result<&'a [u8], Cause>,
    ) -> Result<(u64, u32), Cause> {
        let offset = number(needed(self.offset.0, "offset")?, "the offset", self.offset.1)?;
        let size = number(needed(self.size.0, "size")?, "the size", self.size.1)?;
        let len = u32::try_from(size).map_err(|_| Cause::TooLarge("the size"))?;
        match offset.checked_add(size) {
            Some(_) => Ok((offset, len)),
            None => Err(Cause::TooLarge("the offset")),
        }
    }
}

/// Lines of one layout, beside lines that are none of its requests.
#[derive(Clone, Debug)]
pub(crate) struct ColumnLines {
    pub layout: Layout,
    /// Lines in front of the first request; the same ones are passed over wherever they stand.
    pub headings: Vec<Box<[u8]>>,
}

impl ColumnLines {
    fn is_heading(&self, line: &[u8]) -> bool {
        line.starts_with(b"#")
            || line.starts_with(b"//")
            || self.headings.iter().any(|heading| **heading == *line)
    }
}

impl LineFormat for ColumnLines {
    fn line(&self, line: &[u8], out: &mut Batch) -> Result<(), Cause> {
        match self.layout.read(line) {
            Ok(Line::Row(row, stream, _actor)) => {
                let stream = match stream {
                    Some(name) => stream_index(name, out)?,
                    None => out.streams.number(0)?,
                };
                out.push(Row { stream, ..row });
                Ok(())
            }
            Ok(Line::Other) => {
                out.skip_line();
                Ok(())
            }
            Err(_) if self.is_heading(line) => {
                out.skip_line();
                Ok(())
            }
            Err(cause) => Err(cause),
        }
    }
}

/// The stream of a field: a number where it is one, so that streams come in their order.
#[inline]
fn stream_index(name: &[u8], out: &mut Batch) -> Result<u16, Cause> {
    let digits = (1..=18).contains(&name.len()) && name.iter().all(u8::is_ascii_digit);
    // 007 is a name: as a number it would be 7.
    if digits && (name.len() == 1 || name[0] != b'0') {
        let number = name.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        return out.streams.number(number);
    }
    out.streams.name(name)
}

//! The text of `--columns`: what each column of a line means and in which unit it counts.
//!
//! Items are separated by commas: `time:us,op,offset:sectors,size:bytes`. An item is a name, with
//! `:UNIT` where it has one and `=N` where it stands in column N (from 1); an item without a number
//! follows the one in front of it. `-` is a column that is not used, and `*` any number of columns,
//! as a command with spaces in its name makes them: what follows it is counted from the end of the
//! line. `only:WORD` keeps the lines that have the word in that column.

use std::fmt;
use std::str::FromStr;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// When the request was issued.
    Time,
    /// When it completed.
    End,
    /// What it does.
    Op,
    /// First byte.
    Offset,
    /// How much.
    Size,
    /// What it belongs to: disk, volume, file class.
    Stream,
    /// Completion - issue.
    Service,
    /// Process or thread that issued it.
    Actor,
    /// Lines with another word here are left out.
    Only,
}

/// Names of columns; the first of a meaning is the one that is printed.
const NAMES: [(&str, Meaning); 14] = [
    ("time", Meaning::Time),
    ("end", Meaning::End),
    ("op", Meaning::Op),
    ("offset", Meaning::Offset),
    ("size", Meaning::Size),
    ("stream", Meaning::Stream),
    ("disk", Meaning::Stream),
    ("service", Meaning::Service),
    ("latency", Meaning::Service),
    ("actor", Meaning::Actor),
    ("pid", Meaning::Actor),
    ("tid", Meaning::Actor),
    ("only", Meaning::Only),
    ("due", Meaning::Time),
];

/// Units of time, ns.
const TIMES: [(&str, u64); 6] = [
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("filetime", 100),
    ("100ns", 100),
];
/// Units of space, bytes.
const SPACES: [(&str, u64); 5] =
    [("bytes", 1), ("B", 1), ("sectors", 512), ("KiB", 1024), ("blocks4k", 4096)];

/// More columns than any line is split into.
pub(crate) const MOST_COLUMNS: usize = 64;

/// Where a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// From the start of the line, the first is 0.
    Front(usize),
    /// From its end, the last is 1.
    Back(usize),
}

/// A column that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub meaning: Meaning,
    pub position: Position,
    /// Size of its unit, ns or bytes; `None` where it was not stated, or has none.
    pub unit: Option<u64>,
    /// For an op: whether 1 (else 0) is a read. `None` where ops are words.
    pub read_is_one: Option<bool>,
    /// The word of `only`.
    pub word: String,
}

/// The columns of a text trace, as `--columns` describes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub(crate) columns: Vec<Column>,
    /// As it was written.
    text: String,
}

impl Columns {
    /// The column of a meaning.
    pub(crate) fn find(&self, meaning: Meaning) -> Option<&Column> {
        self.columns.iter().find(|column| column.meaning == meaning)
    }

    /// Of columns that code put together; `text` says them.
    pub(crate) fn of(columns: Vec<Column>, text: String) -> Result<Self, String> {
        let found = Self { columns, text };
        let has = |meaning| found.find(meaning).is_some();
        if !has(Meaning::Time) && !has(Meaning::End) {
            return Err("neither 'time' nor 'end' is among the columns".to_owned());
        }
        for (name, meaning) in
            [("op", Meaning::Op), ("offset", Meaning::Offset), ("size", Meaning::Size)]
        {
            if !has(meaning) {
                return Err(format!("'{name}' is not among the columns"));
            }
        }
        Ok(found)
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn unit(units: &[(&str, u64)], text: &str, name: &str) -> Result<u64, String> {
    let found = units.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(text));
    found.map(|(_, size)| *size).ok_or_else(|| {
        let names: Vec<_> = units.iter().map(|(unit, _)| *unit).collect();
        format!("'{text}' is none of the units of '{name}': {}", names.join(", "))
    })
}

/// A column that begins in `position`, from `name:qualifier`.
fn column(item: &str, position: Position) -> Result<Column, String> {
    let (name, qualifier) = match item.split_once(':') {
        Some((name, qualifier)) => (name, Some(qualifier)),
        None => (item, None),
    };
    let Some((_, meaning)) = NAMES.iter().find(|(known, _)| *known == name) else {
        let mut names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
        names.dedup();
        return Err(format!("'{name}' is none of the columns {}, - or *", names.join(", ")));
    };
    let mut column =
        Column { meaning: *meaning, position, unit: None, read_is_one: None, word: String::new() };
    match (meaning, qualifier) {
        (Meaning::Only, Some(word)) if !word.is_empty() => word.clone_into(&mut column.word),
        (Meaning::Only, _) => return Err("'only' needs a word, such as only:D".to_owned()),
        (_, None) => {}
        (Meaning::Time | Meaning::End | Meaning::Service, Some(text)) => {
            column.unit = Some(unit(&TIMES, text, name)?);
        }
        (Meaning::Offset | Meaning::Size, Some(text)) => {
            column.unit = Some(unit(&SPACES, text, name)?);
        }
        (Meaning::Op, Some("01")) => column.read_is_one = Some(false),
        (Meaning::Op, Some("10")) => column.read_is_one = Some(true),
        (Meaning::Op, Some(text)) => {
            return Err(format!(
                "'op:{text}' is neither op:01 (0 is a read, 1 a write) nor op:10 (1 is a read)"
            ));
        }
        (Meaning::Stream | Meaning::Actor, Some(_)) => {
            return Err(format!("'{name}' has no unit"));
        }
    }
    Ok(column)
}

/// The item and its number, of `item=N`.
fn placed(item: &str) -> Result<(&str, Option<usize>), String> {
    let Some((item, number)) = item.rsplit_once('=') else { return Ok((item, None)) };
    match number.parse::<usize>() {
        Ok(number) if (1..=MOST_COLUMNS).contains(&number) => Ok((item, Some(number))),
        _ => Err(format!("'{number}' is no column; they are counted from 1 to {MOST_COLUMNS}")),
    }
}

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let items: Vec<&str> = text.split(',').map(str::trim).collect();
        if items.len() > MOST_COLUMNS {
            return Err(format!("more than {MOST_COLUMNS} columns"));
        }
        let any = items.iter().position(|item| *item == "*");
        if items.iter().filter(|item| **item == "*").count() > 1 {
            return Err("'*' may occur once: columns behind it count from the end".to_owned());
        }
        let mut columns: Vec<Column> = Vec::new();
        let mut next = 0;
        for (index, item) in items.iter().enumerate() {
            let behind = any.is_some_and(|any| index > any);
            let (item, number) = placed(item)?;
            if behind && number.is_some() {
                return Err(format!("'{item}' is behind '*' and cannot have a number"));
            }
            let place = number.map_or(next, |number| number - 1);
            next = place + 1;
            if matches!(item, "-" | "*") {
                continue;
            }
            let position = match behind {
                true => Position::Back(items.len() - index),
                false if place < MOST_COLUMNS => Position::Front(place),
                false => return Err(format!("'{item}' is behind column {MOST_COLUMNS}")),
            };
            let column = column(item, position)?;
            let once = column.meaning != Meaning::Only;
            if once && columns.iter().any(|known| known.meaning == column.meaning) {
                return Err(format!("two columns are '{item}'"));
            }
            columns.push(column);
        }
        Self::of(columns, text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<Columns>().expect_err(text)
    }

    #[test]
    fn items_take_the_column_behind_the_one_in_front() {
        let columns: Columns = "-,time:us,op:10,offset:sectors=7,size".parse().expect("reads");
        let places: Vec<_> = columns.columns.iter().map(|column| column.position).collect();
        assert_eq!(places, [1, 2, 6, 7].map(Position::Front));
        let units: Vec<_> = columns.columns.iter().map(|column| column.unit).collect();
        assert_eq!(units, [Some(1000), None, Some(512), None]);
        assert_eq!(columns.columns[1].read_is_one, Some(true));
    }

    #[test]
    fn items_behind_a_star_count_from_the_end() {
        let columns: Columns = "time,*,op,offset,-,size".parse().expect("reads");
        let places: Vec<_> = columns.columns.iter().map(|column| column.position).collect();
        let back = [4, 3, 1].map(Position::Back);
        assert_eq!(places, [Position::Front(0), back[0], back[1], back[2]]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            text in "[a-z0-9:=,*-]{0,60}|(time|op|offset|size|,|=9|-){0,20}",
        ) {
            if let Ok(columns) = text.parse::<Columns>() {
                proptest::prop_assert!(columns.find(Meaning::Op).is_some());
                proptest::prop_assert_eq!(columns.to_string(), text);
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_cause() {
        for (text, cause) in [
            ("", "'' is none of the columns time, end, op"),
            ("time,op,offset", "'size' is not among the columns"),
            ("op,offset,size", "neither 'time' nor 'end'"),
            ("time:h,op,offset,size", "'h' is none of the units of 'time': s, ms, us"),
            ("time,op:2,offset,size", "'op:2' is neither op:01"),
            ("time,op,offset,size,size", "two columns are 'size'"),
            ("time,op=0,offset,size", "'0' is no column"),
            ("time,*,*,op,offset,size", "'*' may occur once"),
            ("time,*,op=3,offset,size", "cannot have a number"),
            ("time,op,offset,size,only", "'only' needs a word"),
            ("time,op,offset,size=64,stream", "behind column 64"),
            ("time,op,offset,size,stream:s", "'stream' has no unit"),
        ] {
            let found = refused(text);
            assert!(found.contains(cause), "{text}: {found}");
        }
    }
}

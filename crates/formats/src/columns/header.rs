//! Columns from a header line: names as scripts and tools write them, with their units.
//!
//! A name is cut into words at anything that is no letter or digit, and at a capital between two
//! small letters: `offset_bytes`, `Offset (bytes)` and `ByteOffset` are the same. One word says
//! what the column holds, another may say its unit. A time without a unit is taken only where the
//! numbers below it are those of a calendar between 2000 and 2100 in one unit, or have a decimal
//! point.

use super::split::{Fields, Separator};
use crate::column_list::Columns;
use crate::entry::Start;

/// Lines in front of the header that a tool may print.
const MOST_PREAMBLE: usize = 20;

/// Words that say what a column holds, and the item of `--columns`. The first of a name that is
/// known decides; those of several meanings stand last.
const MEANINGS: [(&str, &str); 47] = [
    ("latency", "latency"),
    ("lat", "latency"),
    ("response", "latency"),
    ("responsetime", "latency"),
    ("service", "latency"),
    ("duration", "latency"),
    ("elapsed", "latency"),
    ("timestamp", "time"),
    ("ts", "time"),
    ("start", "time"),
    ("issue", "time"),
    ("issued", "time"),
    ("arrival", "time"),
    ("due", "time"),
    ("end", "end"),
    ("endtime", "end"),
    ("completion", "end"),
    ("completed", "end"),
    ("op", "op"),
    ("opcode", "op"),
    ("operation", "op"),
    ("rw", "op"),
    ("rwbs", "op"),
    ("iotype", "op"),
    ("type", "op"),
    ("cmd", "op"),
    ("command", "op"),
    ("offset", "offset"),
    ("address", "offset"),
    ("addr", "offset"),
    ("lba", "offset:sectors"),
    ("lbn", "offset:sectors"),
    ("sector", "offset:sectors"),
    ("size", "size"),
    ("length", "size"),
    ("len", "size"),
    ("iosize", "size"),
    ("bytes", "size"),
    ("sectors", "size:sectors"),
    ("disk", "stream"),
    ("device", "stream"),
    ("dev", "stream"),
    ("lun", "stream"),
    ("volume", "stream"),
    ("stream", "stream"),
    ("pid", "actor"),
    ("time", "time"),
];

/// Words that say a unit, as [`crate::column_list`] calls it.
const UNITS: [(&str, &str); 19] = [
    ("s", "s"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("ms", "ms"),
    ("msec", "ms"),
    ("milliseconds", "ms"),
    ("us", "us"),
    ("usec", "us"),
    ("microseconds", "us"),
    ("ns", "ns"),
    ("nsec", "ns"),
    ("nanoseconds", "ns"),
    ("filetime", "filetime"),
    ("bytes", "bytes"),
    ("byte", "bytes"),
    ("sectors", "sectors"),
    ("kib", "KiB"),
];

/// Nanoseconds since 1970 of the years 2000 and 2100.
const CALENDAR_NS: std::ops::Range<u128> = 946_684_800_000_000_000..4_102_444_800_000_000_000;
/// Nanoseconds from 1601, where FILETIME begins, to 1970.
const FILETIME_1970_NS: u128 = 11_644_473_600_000_000_000;

/// The header line of an input, and what it says of the columns below it.
pub(super) fn find<'a>(start: &Start<'a>) -> Option<(&'a [u8], Columns)> {
    let pairs = start.lines.iter().zip(start.lines.get(1..)?).take(MOST_PREAMBLE);
    pairs
        .flat_map(|(line, below)| Separator::ALL.map(|separator| (*line, *below, separator)))
        .find_map(|(line, below, separator)| Some((line, columns(line, below, separator)?)))
}

/// What a header line says.
fn columns(line: &[u8], below: &[u8], separator: Separator) -> Option<Columns> {
    let line = line.strip_prefix(b"#").unwrap_or(line);
    let names = Fields::split(line, separator);
    let values = Fields::split(below, separator);
    let number = |name: &&[u8]| name.first().is_some_and(u8::is_ascii_digit);
    if names.all().len() < 4 || names.all().iter().any(number) {
        return None;
    }
    let mut taken: Vec<&str> = Vec::new();
    let mut items: Vec<String> = Vec::new();
    for (place, name) in names.all().iter().enumerate() {
        let item = item(name, values.front(place).unwrap_or_default())
            .filter(|item| !taken.contains(&item.name));
        match item {
            Some(item) => {
                taken.push(item.name);
                items.push(item.text);
            }
            None => items.push("-".to_owned()),
        }
    }
    while items.last().is_some_and(|item| item == "-") {
        items.pop();
    }
    items.join(",").parse().ok()
}

struct Item {
    name: &'static str,
    text: String,
}

/// The item of a column with such a name, whose first value is `value`.
fn item(name: &[u8], value: &[u8]) -> Option<Item> {
    let words = words(name);
    let has = |word: &str| words.iter().any(|known| known == word);
    let (_, item) = MEANINGS.iter().find(|(word, _)| has(word))?;
    let unit = UNITS.iter().find(|(word, _)| has(word)).map(|(_, unit)| *unit);
    let (name, default) = item.split_once(':').unwrap_or((item, ""));
    let units: &[&str] = match name {
        "time" | "end" | "latency" => &["s", "ms", "us", "ns", "filetime"],
        "offset" | "size" => &["bytes", "sectors", "KiB"],
        _ => &[],
    };
    let text = match (name, unit.filter(|unit| units.contains(unit))) {
        (_, Some(unit)) => format!("{name}:{unit}"),
        ("time" | "end", None) => format!("{name}:{}", unit_of_time(value)?),
        ("offset" | "size", None) if default.is_empty() => format!("{name}:bytes"),
        ("offset" | "size", None) => format!("{name}:{default}"),
        ("op", None) if matches!(value, b"0" | b"1") => return None,
        // A service time without a unit has that of the times.
        _ => name.to_owned(),
    };
    Some(Item { name, text })
}

/// The unit in which a number is a time; `None` where that cannot be said.
pub(super) fn unit_of_time(value: &[u8]) -> Option<&'static str> {
    let whole = value.split(|byte| *byte == b'.').next()?;
    let number: u128 = std::str::from_utf8(whole).ok()?.parse().ok()?;
    for (unit, ns) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)] {
        if CALENDAR_NS.contains(&(number.saturating_mul(ns))) {
            return Some(unit);
        }
    }
    let since_1601 = number.saturating_mul(100).checked_sub(FILETIME_1970_NS);
    if since_1601.is_some_and(|ns| CALENDAR_NS.contains(&ns)) {
        return Some("filetime");
    }
    value.contains(&b'.').then_some("s")
}

/// The words of a name, in small letters.
fn words(name: &[u8]) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for (place, byte) in name.iter().enumerate() {
        let next_is_small = name.get(place + 1).is_some_and(u8::is_ascii_lowercase);
        let begins = byte.is_ascii_uppercase() && small && next_is_small;
        if begins || !byte.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        small = byte.is_ascii_lowercase();
        if byte.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(char::from(byte.to_ascii_lowercase()));
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, below: &str, expected: Option<&str>) {
        let found = Separator::ALL
            .into_iter()
            .find_map(|one| columns(header.as_bytes(), below.as_bytes(), one));
        assert_eq!(found.map(|columns| columns.to_string()).as_deref(), expected, "{header}");
    }

    #[test]
    fn names_say_meaning_and_unit() {
        for (header, below, expected) in [
            ("time_us,op,offset,size", "5,R,0,512", Some("time:us,op,offset:bytes,size:bytes")),
            (
                "#Timestamp (ms)\tDisk\tLBA\tLength [KiB]\tType\tLatency(us)",
                "5\t0\t8\t4\tR\t9",
                Some("time:ms,stream,offset:sectors,size:KiB,op,latency:us"),
            ),
            (
                "size;ByteOffset;rw;comm;ts",
                "512;0;W;x;1577808144360767",
                Some("size:bytes,offset:bytes,op,-,time:us"),
            ),
            (
                "start,op,sector,sectors,x",
                "0.5,R,8,8,1",
                Some("time:s,op,offset:sectors,size:sectors"),
            ),
            // Nothing says the unit of the times.
            ("time,op,offset,size", "5,R,0,512", None),
            // Nothing says which number is a read.
            ("time_us,op,offset,size", "5,1,0,512", None),
            ("time_us,op,offset,1", "5,R,0,512", None),
            ("a,b,c,d", "1,2,3,4", None),
        ] {
            check(header, below, expected);
        }
    }

    #[test]
    fn times_of_a_calendar_have_one_unit() {
        for (value, expected) in [
            ("1577808144", Some("s")),
            ("1577808144360", Some("ms")),
            ("1577808144360767", Some("us")),
            ("1577808144360767000", Some("ns")),
            ("128166372003061629", Some("filetime")),
            ("0.25", Some("s")),
            ("25", None),
            ("x", None),
        ] {
            assert_eq!(unit_of_time(value.as_bytes()), expected, "{value}");
        }
    }
}

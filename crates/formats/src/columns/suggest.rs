//! A `--columns` to start from, guessed from the values of lines that nothing else reads.

use super::header::unit_of_time;
use super::split::{Fields, Separator};
use super::values::{number, op};

/// Lines looked at.
const MOST_LINES: usize = 50;
/// Sizes beyond this are offsets.
const MOST_SIZE: u64 = 64 << 20;

/// What a column's values have in common.
#[derive(Clone, Copy, Debug)]
struct Values {
    numbers: bool,
    ops: bool,
    bits: bool,
    /// Never falls, and rises.
    rises: bool,
    most: u64,
    /// Whole multiples of 512.
    sectors: bool,
}

/// The separator that cuts lines into the same number of fields most often, of at least four.
pub(super) fn separator(lines: &[&[u8]]) -> Option<Separator> {
    let score = |separator: Separator| {
        let counts: Vec<usize> = lines
            .iter()
            .take(MOST_LINES)
            .map(|line| Fields::split(line, separator).all().len())
            .collect();
        let same = |count: usize| counts.iter().filter(|other| **other == count).count();
        counts.iter().filter(|count| **count >= 4).map(|count| same(*count)).max()
    };
    let scored = Separator::ALL.into_iter().filter_map(|one| Some((score(one)?, one)));
    // The first of equals is the more telling separator.
    scored.reduce(|best, other| if other.0 > best.0 { other } else { best }).map(|(_, one)| one)
}

/// A description that fits these lines as far as their values tell; time, offset and size get
/// units that must be checked. `None` where there are not enough columns of numbers.
pub(super) fn columns(lines: &[&[u8]], separator: Separator) -> Option<String> {
    let rows: Vec<Fields<'_>> =
        lines.iter().take(MOST_LINES).map(|line| Fields::split(line, separator)).collect();
    let width = rows.last()?.all().len();
    // Headings are shorter or hold no numbers; the last lines are data.
    let data: Vec<&Fields<'_>> = rows
        .iter()
        .filter(|row| row.all().len() == width && row.all().iter().any(|field| is_number(field)))
        .collect();
    let values: Vec<Values> = (0..width).map(|place| look(&data, place)).collect();
    let mut names = vec![String::from("-"); width];
    let free = |names: &[String], place: usize| names[place] == "-";
    let is_op = |kind: fn(&Values) -> bool| values.iter().position(kind);
    let op = is_op(|one| one.ops).or_else(|| is_op(|one| one.bits));
    if let Some(place) = op {
        names[place] = String::from(if values[place].ops { "op" } else { "op:01" });
    }
    let time = (0..width).find(|place| free(&names, *place) && values[*place].rises)?;
    let first = data.first()?.front(time).unwrap_or_default();
    names[time] = format!("time:{}", unit_of_time(first).unwrap_or("us"));
    let numbers = |names: &[String]| -> Vec<usize> {
        (0..width).filter(|place| free(names, *place) && values[*place].numbers).collect()
    };
    let offset = numbers(&names).into_iter().max_by_key(|place| values[*place].most)?;
    let bytes = values[offset].sectors && values[offset].most > 0;
    names[offset] = String::from(if bytes { "offset:bytes" } else { "offset:sectors" });
    let behind = numbers(&names).into_iter().filter(|place| {
        let most = values[*place].most;
        most > 0 && most <= MOST_SIZE
    });
    // The size stands behind the offset wherever one column follows the other.
    let size = behind.min_by_key(|place| (*place < offset, !values[*place].sectors, *place))?;
    let sectors = values[size].sectors;
    names[size] = String::from(if sectors { "size:bytes" } else { "size:sectors" });
    while names.last().is_some_and(|name| name == "-") {
        names.pop();
    }
    op.map(|_| names.join(","))
}

/// Whether a field is a number of any form.
pub(super) fn is_number(field: &[u8]) -> bool {
    number(field, "", 1).is_ok()
}

fn look(rows: &[&Fields<'_>], place: usize) -> Values {
    let fields = || rows.iter().filter_map(|row| row.front(place));
    // Nanoseconds, so that decimals are told apart.
    let times: Vec<u64> =
        fields().filter_map(|field| number(field, "", 1_000_000_000).ok()).collect();
    let times = if times.len() == rows.len() {
        times
    } else {
        fields().filter_map(|field| number(field, "", 1).ok()).collect()
    };
    let whole: Vec<u64> = fields().filter_map(|field| number(field, "", 1).ok()).collect();
    let all = !rows.is_empty() && whole.len() == rows.len();
    Values {
        numbers: all,
        ops: !rows.is_empty() && fields().all(|field| op(field).is_some()),
        bits: all && fields().all(|field| matches!(field, b"0" | b"1")),
        rises: all && times.is_sorted() && (times.first() < times.last() || rows.len() == 1),
        most: whole.iter().copied().max().unwrap_or(0),
        sectors: whole.iter().all(|value| value.is_multiple_of(512)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let lines: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
        let separator = separator(&lines).expect("a separator");
        assert_eq!(columns(&lines, separator).as_deref(), expected, "{text}");
    }

    #[test]
    fn values_say_what_columns_may_be() {
        // Numbers that are no multiples of 512 count sectors.
        check(
            "5,8,R,17,a\n9,16,W,900,b\n12,7,R,3,c\n",
            Some("time:us,size:sectors,op,offset:sectors"),
        );
        check("0.5 4096 512 0\n0.7 8192 1024 1\n", Some("time:s,offset:bytes,size:bytes,op:01"));
        check(
            "h 1577808144360 R 4096 512\nh 1577808144361 W 8192 512\n",
            Some("-,time:ms,op,offset:bytes,size:bytes"),
        );
        // Nothing says which op it is.
        check("5,8,x,17\n9,16,x,900\n", None);
    }
}

//! Whether a trace can be what it was read as: a wrong unit of time, sector or size shows in
//! figures that no device and no load have, and the check names what would fit.
//!
//! Nothing here changes a trace. The bounds are far from anything real: more than 20 million
//! requests a second, less than one in twenty minutes, five years, mean sizes beyond 4 MiB (the
//! block layer of Linux splits at 1.25 MiB by default), addresses beyond 64 PiB, offsets that are
//! all below the largest request or not of whole sectors where the sizes are.

use events::Warning;
use trace::{Op, Trace};

use super::batch::SERVICE_UNKNOWN_NS;
use super::entry::Entry;
use super::notes::{Notes, STAGE};
use super::{ReadOptions, SECTOR_BYTES, TimeUnit};

/// Fewer requests say nothing about a rate.
const LEAST_REQUESTS: u64 = 100;
const MOST_PER_S: f64 = 20e6;
const LEAST_PER_S: f64 = 1.0 / 1200.0;
const LONGEST_S: f64 = 5.0 * 365.25 * 86_400.0;
const LARGEST_MEAN_BYTES: u64 = 4 << 20;
const FARTHEST_BYTES: u64 = 64 << 50;
/// Rates among which another unit of time is worth naming.
const USUAL_PER_S: std::ops::Range<f64> = 0.1..2e6;

/// What the checks need to know of all requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    capacity: Option<u64>,
    count: u64,
    first_due: u64,
    last_due: u64,
    /// Whether all times are whole seconds apart.
    whole_seconds: bool,
    bytes: u64,
    extent: u64,
    /// Reads and writes.
    moves: u64,
    farthest: u64,
    largest: u64,
    /// Reads and writes whose offset is not of whole sectors.
    broken: u64,
    whole_sizes: bool,
    beyond: u64,
    empty: u64,
    unknown_service: u64,
}

impl Facts {
    /// Of no requests.
    pub fn new(options: &ReadOptions) -> Self {
        let capacity = options.capacity.map(|capacity| capacity.0);
        let whole = true;
        Self { capacity, whole_seconds: whole, whole_sizes: whole, ..Self::default() }
    }

    /// Due time of the first request.
    pub fn first_due(&self) -> u64 {
        self.first_due
    }

    /// From the first request to the last, ns.
    pub fn span_ns(&self) -> u64 {
        self.last_due - self.first_due
    }

    /// Rows of a column of service times that do not tell it.
    pub fn unknown_service(&self) -> u64 {
        self.unknown_service
    }

    /// Takes requests in the order of time, in columns.
    pub fn add(&mut self, due: &[u64], offset: &[u64], len: &[u32], op: &[Op], service: &[u64]) {
        const SECOND_NS: u64 = 1_000_000_000;
        let (Some(first), Some(last)) = (due.first(), due.last()) else { return };
        let second = if self.count == 0 { *first } else { self.first_due } % SECOND_NS;
        self.whole_seconds &= due.iter().all(|due| due % SECOND_NS == second);
        self.first_due = if self.count == 0 { *first } else { self.first_due.min(*first) };
        self.last_due = self.last_due.max(*last);
        self.count += due.len() as u64;
        let sector = u64::from(SECTOR_BYTES);
        for ((offset, len), op) in offset.iter().zip(len).zip(op) {
            let (offset, len) = (*offset, u64::from(*len));
            let end = offset + len;
            self.bytes += len;
            self.extent = self.extent.max(end);
            self.beyond += u64::from(self.capacity.is_some_and(|capacity| end > capacity));
            if matches!(op, Op::Read | Op::Write) {
                self.moves += 1;
                self.farthest = self.farthest.max(offset);
                self.largest = self.largest.max(len);
                self.broken += u64::from(!offset.is_multiple_of(sector));
                self.whole_sizes &= len.is_multiple_of(sector);
                self.empty += u64::from(len == 0);
            }
        }
        self.unknown_service +=
            service.iter().filter(|ns| **ns == SERVICE_UNKNOWN_NS).count() as u64;
    }
}

/// Adds to the notes what is suspect about a trace.
pub(super) fn check(trace: &Trace, entry: &Entry, options: &ReadOptions, notes: &mut Notes) {
    let mut facts = Facts::new(options);
    facts.add(&trace.due, &trace.offset, &trace.len, &trace.op, &[]);
    check_facts(&facts, entry, options, notes);
}

/// The same, of what is known of one.
pub(super) fn check_facts(facts: &Facts, entry: &Entry, options: &ReadOptions, notes: &mut Notes) {
    let found = [
        order(facts, notes),
        times(facts),
        coarse(facts),
        sizes(facts).or_else(|| offsets(facts)),
        addresses(facts),
        capacity(facts),
        empty(facts),
    ];
    notes.warnings.extend(found.into_iter().flatten());
    if let Some(unit) = options.time_unit {
        notes.understood.push(format!("times in {} as stated", unit.name()));
    }
    notes.understood.push(entry.grammar.to_owned());
    notes.understood.retain(|line| !line.is_empty());
}

fn order(facts: &Facts, notes: &Notes) -> Option<Warning> {
    let (late, count) = (notes.out_of_order, facts.count);
    let message = format!("{late} of {count} requests stood behind a later one; sorted by time");
    (late > 0).then(|| Warning::new(STAGE, "trace_unsorted", message))
}

fn times(facts: &Facts) -> Option<Warning> {
    if facts.count < LEAST_REQUESTS {
        return None;
    }
    let count = (facts.count - 1) as f64;
    let span_s = facts.span_ns() as f64 * 1e-9;
    let rate = count / span_s.max(1e-9);
    let what = if rate > MOST_PER_S {
        format!("{rate:.1e} requests per second")
    } else if span_s > LONGEST_S {
        format!("a span of {:.1} years", span_s / 86_400.0 / 365.25)
    } else if rate < LEAST_PER_S {
        format!("a request every {:.0} minutes", 1.0 / rate / 60.0)
    } else {
        return None;
    };
    let mut hint = "check the unit of the times and state it".to_owned();
    // Names the unit by which the times would have to be wrong.
    for unit in TimeUnit::ALL {
        for read_as in TimeUnit::ALL {
            let other = rate * read_as.nanos() as f64 / unit.nanos() as f64;
            if unit != read_as && USUAL_PER_S.contains(&other) && hint.len() < 120 {
                hint.push_str(&format!(
                    "; if what was read as {} is {}, there are {other:.1} requests per second",
                    read_as.name(),
                    unit.name()
                ));
            }
        }
    }
    let message = format!("{what}: the unit of the times is probably another");
    Some(Warning::new(STAGE, "trace_times_implausible", message).with_hint(hint))
}

/// Times of whole seconds under a load of many requests per second.
fn coarse(facts: &Facts) -> Option<Warning> {
    let seconds = facts.span_ns() / 1_000_000_000 + 1;
    let many = facts.count >= 2 * seconds && facts.count >= LEAST_REQUESTS;
    (facts.whole_seconds && many).then(|| {
        let message = "all times are whole seconds: arrivals within a second are not known";
        Warning::new(STAGE, "trace_times_coarse", message)
    })
}

fn sizes(facts: &Facts) -> Option<Warning> {
    let mean = facts.bytes / facts.count.max(1);
    (mean > LARGEST_MEAN_BYTES).then(|| {
        let message = format!(
            "the mean request has {} MiB: sizes in bytes may have been taken for sectors",
            mean >> 20
        );
        let hint = "check the unit of the sizes and state the size of a sector";
        Warning::new(STAGE, "trace_sizes_implausible", message).with_hint(hint)
    })
}

fn addresses(facts: &Facts) -> Option<Warning> {
    let extent = facts.extent;
    (extent > FARTHEST_BYTES).then(|| {
        let message =
            format!("requests reach to {} PiB: offsets may be in a smaller unit", extent >> 50);
        let hint = "check the unit of the offsets and state the size of a sector";
        Warning::new(STAGE, "trace_addresses_implausible", message).with_hint(hint)
    })
}

/// Offsets in sectors that were taken for bytes are too near each other.
fn offsets(facts: &Facts) -> Option<Warning> {
    let Facts { moves: count, farthest, largest, broken, .. } = *facts;
    if count < LEAST_REQUESTS {
        return None;
    }
    let message = if farthest > 0 && farthest < largest {
        format!("all offsets are below {farthest}, and a request has {largest} bytes")
    } else if facts.whole_sizes && broken * 2 > count {
        format!("{broken} of {count} offsets are not of whole sectors, though all sizes are")
    } else {
        return None;
    };
    let message = format!("{message}: offsets in sectors may have been taken for bytes");
    let hint = "check the unit of the offsets and state it";
    Some(Warning::new(STAGE, "trace_offsets_implausible", message).with_hint(hint))
}

fn capacity(facts: &Facts) -> Option<Warning> {
    let capacity = facts.capacity?;
    let Facts { beyond, count, extent, .. } = *facts;
    (beyond > 0).then(|| {
        let message = format!(
            "{beyond} of {count} requests end beyond the stated capacity of {capacity} bytes; the \
             last at {extent}"
        );
        let hint = "check the capacity and the size of a sector, or remap the trace";
        Warning::new(STAGE, "trace_beyond_capacity", message).with_hint(hint)
    })
}

fn empty(facts: &Facts) -> Option<Warning> {
    (facts.empty > 0).then(|| {
        let message = format!("{} of {} reads and writes have no bytes", facts.empty, facts.count);
        Warning::new(STAGE, "trace_empty_requests", message)
    })
}

#[cfg(test)]
mod tests {
    use super::super::table::entry;
    use super::super::{Format, read_from};
    use super::*;
    use std::path::Path;
    use units::Bytes;

    /// Codes of the warnings of a reading.
    fn read(format: Format, options: &ReadOptions, text: String) -> Vec<Warning> {
        assert!(entry(format).is_some());
        let input = std::io::Cursor::new(text.into_bytes());
        let (_, notes) = read_from(input, Path::new("trace"), format, options).expect("reads");
        notes.warnings
    }

    fn codes(warnings: &[Warning]) -> Vec<&str> {
        warnings.iter().map(|warning| warning.code.as_str()).collect()
    }

    /// 200 requests with this many units of time between them.
    fn ssdsim(step: u64, size: u64) -> String {
        (0..200)
            .map(|n| format!("{} 0 {} {size} 1\n", n * step, n * 8))
            .collect::<Vec<_>>()
            .concat()
    }

    #[test]
    fn usual_traces_raise_no_warning() {
        assert!(read(Format::Ssdsim, &ReadOptions::default(), ssdsim(1_000_000, 8)).is_empty());
    }

    #[test]
    fn a_wrong_unit_of_time_is_named() {
        let plain = ReadOptions::default();
        // Microseconds and milliseconds that are read as nanoseconds.
        let warnings = read(Format::Ssdsim, &plain, ssdsim(20, 8));
        assert_eq!(codes(&warnings), ["trace_times_implausible"]);
        let hint = "if what was read as ns is us, there are 50000.0 requests per second";
        assert!(warnings[0].hint.contains(hint), "{}", warnings[0].hint);
        // Nanoseconds that are read as milliseconds: years.
        let wrong = ReadOptions { time_unit: Some(TimeUnit::Milliseconds), ..plain };
        let warnings = read(Format::Ssdsim, &wrong, ssdsim(1_000_000_000, 8));
        assert_eq!(codes(&warnings), ["trace_times_implausible"]);
        assert!(warnings[0].message.starts_with("a span of 6.3 years"), "{}", warnings[0].message);
        let slow = ReadOptions { time_unit: Some(TimeUnit::Microseconds), ..wrong };
        let warnings = read(Format::Ssdsim, &slow, ssdsim(2_000_000_000, 8));
        assert!(warnings[0].message.starts_with("a request every 33 minutes"));
    }

    #[test]
    fn sizes_and_addresses_beyond_reason_are_named() {
        let warnings = read(Format::Ssdsim, &ReadOptions::default(), ssdsim(1_000_000, 1 << 18));
        assert_eq!(codes(&warnings), ["trace_sizes_implausible"]);
        let far = format!("0 0 {} 8 1\n", 1u64 << 48);
        let warnings = read(Format::Ssdsim, &ReadOptions::default(), far);
        assert_eq!(codes(&warnings), ["trace_addresses_implausible"]);
    }

    #[test]
    fn a_mean_beyond_what_the_block_layer_sends_is_named() {
        let plain = ReadOptions::default();
        let text = |sectors: u64| -> String {
            let line = |n: u64| format!("{} 0 {} {sectors} 1\n", n * 1_000_000, n << 16);
            (0..200).map(line).collect()
        };
        assert!(read(Format::Ssdsim, &plain, text(8192)).is_empty());
        let warnings = read(Format::Ssdsim, &plain, text(8193));
        assert_eq!(codes(&warnings), ["trace_sizes_implausible"]);
        assert!(warnings[0].message.starts_with("the mean request has 4 MiB"));
    }

    #[test]
    fn sectors_that_were_taken_for_bytes_are_named() {
        let line = |n: u64, offset: u64, size| format!("{},R,{offset},{size}\n", n * 100);
        let with = |described: &str, near: u64| {
            let columns = Some(described.parse().expect("columns"));
            let options = ReadOptions { columns, ..ReadOptions::default() };
            let text: String = (0..200).map(|n| line(n, near + n * 9, 4096)).collect();
            read(Format::Columns, &options, text)
        };
        assert!(with("time:us,op,offset:sectors,size", 1 << 30).is_empty());
        let far = with("time:us,op,offset,size", 1 << 30);
        assert_eq!(codes(&far), ["trace_offsets_implausible"]);
        assert!(far[0].message.starts_with("199 of 200 offsets are not of whole"), "{far:?}");
        let near = with("time:us,op,offset,size", 0);
        assert!(near[0].message.starts_with("all offsets are below 1791,"), "{near:?}");
    }

    #[test]
    fn requests_beyond_the_capacity_are_counted() {
        let options =
            ReadOptions { capacity: Some(Bytes(100 * 8 * 512)), ..ReadOptions::default() };
        let warnings = read(Format::Ssdsim, &options, ssdsim(1_000_000, 8));
        assert_eq!(codes(&warnings), ["trace_beyond_capacity"]);
        assert!(warnings[0].message.starts_with("100 of 200 requests end beyond"));
        let enough = ReadOptions { capacity: Some(Bytes(200 * 8 * 512)), ..options };
        assert!(read(Format::Ssdsim, &enough, ssdsim(1_000_000, 8)).is_empty());
    }

    #[test]
    fn order_coarse_times_and_empty_requests_are_told() {
        let line = |n| format!("{},8,8,1,0\n", 1_538_323_200 + (n / 20) % 5);
        let tencent = (0..200).map(line).collect::<Vec<_>>().concat();
        let warnings = read(Format::Tencent, &ReadOptions::default(), tencent);
        assert_eq!(codes(&warnings), ["trace_unsorted", "trace_times_coarse"]);
        assert!(warnings[0].message.starts_with("80 of 200 requests"), "{}", warnings[0].message);
        let warnings = read(Format::Ssdsim, &ReadOptions::default(), "5 0 3 0 1\n".to_owned());
        assert_eq!(codes(&warnings), ["trace_empty_requests"]);
    }
}

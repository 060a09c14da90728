//! A trace moved onto a device of another size.

use units::Bytes;

use super::chunks::{span, touched};
use super::{Error, Result, note_step};
use crate::{Op, Trace};

/// How addresses change. Under each, flushes stay at 0, lengths stay, and a request that would
/// reach beyond the device is moved forward to end with it (down to a whole 512 bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// What is never touched is left out: the chunks that are touched move together in the order of
    /// their addresses. Chunks are the largest power of two up to 1 MiB, down to 512 bytes, for
    /// which the result fits. Within a chunk and between neighbours nothing changes: sequential
    /// runs, reuse and alignment to the chunk stay. What is far apart comes closer.
    #[default]
    Compact,
    /// Chunks of 1 MiB are moved in proportion: to a smaller device several fall onto one, which
    /// adds reuse; on a larger one runs of more than 1 MiB are torn. Distances keep their
    /// proportion.
    Scale,
    /// The rest of the division by the size: distances within the size stay, and what is a multiple
    /// of it apart falls together.
    Modulo,
}

impl Rule {
    /// The name used in the command line and in steps.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Scale => "scale",
            Self::Modulo => "modulo",
        }
    }
}

const SECTOR: u64 = 512;
const SECTOR_SHIFT: u32 = 9;
/// Chunks of 1 MiB.
const LARGEST_SHIFT: u32 = 20;

/// Moves a trace onto a device of `capacity` bytes.
///
/// # Errors
/// Where the trace is malformed, or its requests do not fit under the rule: compact needs room for
/// all that is touched, every rule for the longest request.
pub fn remap(mut trace: Trace, capacity: Bytes, rule: Rule) -> Result<Trace> {
    trace.validate()?;
    let capacity_sectors = capacity.0 / SECTOR * SECTOR;
    let moved = (0..trace.count()).filter(|index| trace.op[*index] != Op::Flush);
    let longest = moved.map(|index| u64::from(trace.len[index])).max().unwrap_or(0);
    let needed = longest.next_multiple_of(SECTOR).max(SECTOR);
    if needed > capacity_sectors {
        return Err(Error::TooSmall { needed, capacity: capacity.0 });
    }
    let detail = match rule {
        Rule::Compact => compact(&mut trace, capacity_sectors)?,
        Rule::Scale => scale(&mut trace, capacity_sectors),
        Rule::Modulo => {
            place(&mut trace, capacity_sectors, |offset, len| {
                // A request of no bytes may stand at the very end.
                let fits = offset.saturating_add(u64::from(len)) <= capacity_sectors;
                if fits { offset } else { offset % capacity_sectors }
            });
            String::new()
        }
    };
    let step = format!("remap: onto {} bytes by the rule {}{detail}", capacity.0, rule.name());
    note_step(&mut trace.origin, step);
    Ok(trace)
}

/// Gives every request but flushes a new offset, within the device.
fn place(trace: &mut Trace, capacity: u64, new: impl Fn(u64, u32) -> u64) {
    for index in 0..trace.count() {
        if trace.op[index] != Op::Flush {
            let last = (capacity - u64::from(trace.len[index])) / SECTOR * SECTOR;
            let offset = new(trace.offset[index], trace.len[index]);
            trace.offset[index] = if offset > last { last } else { offset };
        }
    }
}

fn compact(trace: &mut Trace, capacity: u64) -> Result<String> {
    let mut needed = 0;
    for shift in (SECTOR_SHIFT..=LARGEST_SHIFT).rev() {
        let chunks = touched(trace, shift);
        needed = (chunks.len() as u64) << shift;
        // Where the last chunk is not full, the device may end within it.
        let extent = trace.extent().0;
        let unused = chunks.last().map_or(0, |last| ((last + 1) << shift).saturating_sub(extent));
        if needed - unused.min(needed) > capacity {
            continue;
        }
        place(trace, u64::MAX, |offset, len| {
            let (first, _) = span(offset, len, shift);
            let number = chunks.partition_point(|chunk| *chunk < first) as u64;
            (number << shift) | (offset & ((1 << shift) - 1))
        });
        return Ok(format!(" in chunks of {} bytes", 1u64 << shift));
    }
    Err(Error::TooSmall { needed, capacity })
}

fn scale(trace: &mut Trace, capacity: u64) -> String {
    let extent = trace.extent().0.max(1);
    // A device of less than 1 MiB is one chunk, and everything falls onto it.
    let (from, to) = (extent.div_ceil(1 << LARGEST_SHIFT), (capacity >> LARGEST_SHIFT).max(1));
    place(trace, capacity, |offset, _| {
        let chunk = u128::from(offset >> LARGEST_SHIFT) * u128::from(to) / u128::from(from);
        let within = offset & ((1 << LARGEST_SHIFT) - 1);
        ((chunk as u64) << LARGEST_SHIFT).saturating_add(within)
    });
    format!(" from {extent} bytes")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::testing::{any_trace, bytes, sequential};
    use super::*;
    use crate::{Malformed, Request, Stream};
    use units::Nanos;

    const MIB: u64 = 1 << 20;

    fn trace_of(places: &[(u64, u32)]) -> Trace {
        let mut trace = Trace { streams: vec![Stream::default()], ..Trace::default() };
        for &(offset, len) in places {
            let (due, offset) = (Nanos(0), Bytes(offset));
            trace.push(Request { due, offset, len, op: Op::Write, stream: 0 });
        }
        trace
    }

    #[track_caller]
    fn check(rule: Rule, capacity: u64, places: &[(u64, u32)], expected: &[u64]) {
        let out = remap(trace_of(places), Bytes(capacity), rule).expect("remapped");
        assert_eq!(out.offset, expected);
        assert!(out.extent().0 <= capacity);
        let step = &out.origin.facts["step.01"];
        assert!(step.contains(rule.name()) && step.contains(&capacity.to_string()), "{step}");
    }

    #[test]
    fn each_rule_by_hand() {
        let far = [(5 * MIB + 4096, 4096), (100 * MIB, 512), (101 * MIB - 512, 1024)];
        // Chunks 5, 100 and 101 become 0, 1 and 2; the device may end within the last.
        check(Rule::Compact, 4 * MIB, &far, &[4096, MIB, 2 * MIB - 512]);
        check(Rule::Compact, 2 * MIB + 512, &far, &[4096, MIB, 2 * MIB - 512]);
        // With less room the chunks are smaller: at 8 KiB four are touched.
        check(Rule::Compact, 32 << 10, &far, &[4096, 8192, 24_576 - 512]);
        check(Rule::Modulo, 3 * MIB, &far, &[2 * MIB + 4096, MIB, 2 * MIB - 512]);
        // It would reach beyond the end by 512 bytes.
        check(Rule::Modulo, MIB, &[(2 * MIB - 512, 1024)], &[MIB - 1024]);
        // 102 chunks onto 51: the numbers are halved.
        check(Rule::Scale, 51 * MIB, &far, &[2 * MIB + 4096, 50 * MIB, 51 * MIB - 1024]);
        check(Rule::Scale, 204 * MIB, &far, &[10 * MIB + 4096, 200 * MIB, 201 * MIB - 512]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let two = trace_of(&[(0, 4096), (1 << 40, 4096)]);
        let expected = Err(Error::TooSmall { needed: 8192, capacity: 8191 / 512 * 512 });
        assert_eq!(remap(two.clone(), Bytes(8191), Rule::Compact), expected);
        assert!(remap(two.clone(), Bytes(8192), Rule::Compact).is_ok());
        for rule in [Rule::Compact, Rule::Scale, Rule::Modulo] {
            let expected = Err(Error::TooSmall { needed: 4096, capacity: 4095 });
            assert_eq!(remap(two.clone(), Bytes(4095), rule), expected);
            let out = remap(Trace::default(), Bytes(512), rule).expect("nothing to move");
            assert!(out.is_empty());
        }
        let ragged = Trace { due: vec![1], ..Trace::default() };
        let error = remap(ragged, Bytes(1), Rule::Modulo).expect_err("ragged");
        assert!(matches!(error, Error::Malformed(Malformed::Ragged { .. })));
    }

    #[test]
    fn a_request_of_no_bytes_stays_at_the_end() {
        let mut trace = Trace::default();
        trace.streams.push(Stream { name: "data".to_owned() });
        let (due, offset) = (Nanos(0), Bytes(MIB));
        trace.push(Request { due, offset, len: 0, op: Op::Read, stream: 0 });
        let out = remap(trace, Bytes(MIB), Rule::Modulo).expect("fits");
        assert_eq!(out.offset, [MIB]);
    }

    proptest! {
        #[test]
        fn only_addresses_change(trace in any_trace(), mib in 1u64..20) {
            for rule in [Rule::Compact, Rule::Scale, Rule::Modulo] {
                let Ok(out) = remap(trace.clone(), Bytes(mib * MIB), rule) else { continue };
                prop_assert_eq!(out.validate(), Ok(()));
                prop_assert!(out.extent().0 <= mib * MIB);
                prop_assert_eq!(bytes(&out), bytes(&trace));
                let same =
                    Trace { offset: trace.offset.clone(), origin: trace.origin.clone(), ..out };
                prop_assert_eq!(&same, &trace);
            }
        }

        /// Compact keeps who touches the same byte, who follows whom, and the order of addresses.
        #[test]
        fn compact_keeps_locality(trace in any_trace(), kib in 600u64..20_000) {
            let size = Bytes(kib << 10);
            let Ok(out) = remap(trace.clone(), size, Rule::Compact) else { return Ok(()) };
            let (before, after) = (sequential(&trace), sequential(&out));
            prop_assert!(before.iter().zip(&after).all(|(before, after)| *after || !before));
            for a in 0..trace.count() {
                for b in a + 1..trace.count() {
                    if trace.op[a] != Op::Flush && trace.op[b] != Op::Flush {
                        let order = trace.offset[a].cmp(&trace.offset[b]);
                        prop_assert_eq!(order, out.offset[a].cmp(&out.offset[b]));
                    }
                }
            }
        }

        #[test]
        fn a_device_as_large_as_the_trace_changes_nothing(trace in any_trace()) {
            let capacity = Bytes(trace.extent().0.next_multiple_of(MIB).max(MIB));
            for rule in [Rule::Scale, Rule::Modulo] {
                let out = remap(trace.clone(), capacity, rule).expect("fits");
                prop_assert_eq!(&out.offset, &trace.offset);
            }
        }
    }
}

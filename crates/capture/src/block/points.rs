//! Reads the two tracepoints of the block layer.
//!
//! Invariant: memory is bounded by [`EVENT_LIMIT`], beyond which events count as lost.

use super::join::{RawEvent, operation};
use crate::Unavailable;
use crate::tracefs::ring::{self, Field};
use crate::tracefs::{Collector, Reader, Recorded, Wanted};

/// Events kept at most, 32 bytes each.
const EVENT_LIMIT: usize = 8_000_000;

/// Result of a capture of the block layer.
#[derive(Default)]
pub(super) struct Collected {
    pub events: Vec<RawEvent>,
    pub losses: u64,
}

/// Where the fields of one tracepoint lie.
struct Point {
    issue: bool,
    sector: Field,
    sectors: Field,
    rwbs: Field,
}

/// The reader of both.
#[derive(Default)]
pub(super) struct BlockReader {
    points: Vec<Point>,
    collected: Collected,
}

/// Starts capturing the requests of the disk with this number (`major << 20 | minor`).
pub(super) fn collect(device: u32) -> Result<Collector<BlockReader>, Unavailable> {
    let wanted = |name: &str| Wanted {
        system: "block",
        name: name.to_owned(),
        filter: format!("dev == {device}"),
        optional: false,
        sampled: false,
    };
    let points = vec![wanted("block_rq_issue"), wanted("block_rq_complete")];
    Collector::start("block", points, None, BlockReader::default())
}

impl Reader for BlockReader {
    type Output = Collected;

    fn learn(&mut self, index: usize, format: &str) -> Option<()> {
        let field = |name| ring::field(format, name);
        self.points.push(Point {
            issue: index == 0,
            sector: field("sector")?,
            sectors: field("nr_sector")?,
            rwbs: field("rwbs")?,
        });
        Some(())
    }

    fn event(&mut self, index: usize, time_ns: u64, event: &[u8]) {
        let Some(event) = decode(&self.points[index], time_ns, event) else { return };
        if self.collected.events.len() < EVENT_LIMIT {
            self.collected.events.push(event);
        } else {
            self.collected.losses += 1;
        }
    }

    fn polled(&mut self, _complete_ns: u64) {}

    fn finish(mut self, recorded: Recorded) -> Collected {
        self.collected.losses += recorded.dropped;
        self.collected
    }
}

fn decode(point: &Point, time_ns: u64, event: &[u8]) -> Option<RawEvent> {
    let rwbs = point.rwbs.text(event)?;
    Some(RawEvent {
        time_ns,
        sector: point.sector.number(event)?,
        sectors: point.sectors.number(event)? as u32,
        op: operation(rwbs)?,
        meta: rwbs.contains(&b'M'),
        issue: point.issue,
    })
}

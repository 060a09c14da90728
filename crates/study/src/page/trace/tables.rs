//! The tables of a trace's page.

use report::{Column, Table, format};
use trace::info::{Info, Service, ServiceTimes, StreamInfo};

/// Streams listed at most.
const STREAMS_SHOWN: usize = 100;

pub(super) fn streams(info: &Info) -> Table {
    let columns = vec![
        Column::text("Stream"),
        Column::number("Requests", ""),
        Column::number("Reads", ""),
        Column::number("Writes", ""),
        Column::number("Mean size", ""),
        Column::number("Sequential", ""),
        Column::number("Gaps vary", ""),
        Column::number("Working set", ""),
        Column::number("Hottest 10%", ""),
        Column::number("Overwrites", ""),
    ];
    let left = info.streams.len().saturating_sub(STREAMS_SHOWN);
    let caption = if left > 0 { format!("and {left} more; --json has all") } else { String::new() };
    let table = Table::new("streams", "Streams", columns).caption(caption);
    let shown = info.streams.iter().take(STREAMS_SHOWN);
    std::iter::once(&info.all).chain(shown).fold(table, |table, stream| table.row(row(stream)))
}

fn row(stream: &StreamInfo) -> [String; 10] {
    let (counts, blocks) = (&stream.counts, &stream.blocks);
    let working_set = blocks.working_set_blocks as f64 * trace::info::BLOCK_BYTES as f64;
    let hot = blocks.hot.shares.iter().find(|share| share.block_share == 0.1);
    [
        stream.name.clone(),
        format::count(counts.requests as f64),
        format::percent(counts.read_share),
        format::percent(counts.write_share),
        format::bytes(counts.mean_size_bytes),
        format::percent(stream.sequentiality.sequential_share),
        format!("{:.2}", stream.arrivals.gap_variation),
        format::bytes(working_set),
        hot.map_or_else(|| format::NOTHING.to_owned(), |share| format::percent(share.touch_share)),
        format::percent(blocks.overwrites.overwrite_share),
    ]
}

pub(super) fn sizes(all: &StreamInfo) -> Table {
    let columns = vec![
        Column::number("Size", ""),
        Column::number("Reads", ""),
        Column::number("Writes", ""),
        Column::number("Share", ""),
    ];
    let counts = &all.counts;
    let total = (counts.reads + counts.writes).max(1) as f64;
    let table = Table::new("top-sizes", "Most frequent sizes", columns);
    counts.sizes.iter().fold(table, |table, size| {
        table.row([
            format::bytes(size.size_bytes as f64),
            format::count(size.reads as f64),
            format::count(size.writes as f64),
            format::percent((size.reads + size.writes) as f64 / total),
        ])
    })
}

/// Service times by operation, by size, by stream.
pub(super) fn service(service: &Service) -> Table {
    let columns = vec![
        Column::text("Requests"),
        Column::number("Count", ""),
        Column::number("Mean", ""),
        Column::number("p50", ""),
        Column::number("p90", ""),
        Column::number("p99", ""),
        Column::number("p99.9", ""),
        Column::number("Longest", ""),
    ];
    let mut table = Table::new("service", "Service times", columns);
    for times in &service.by_op {
        table = table.row(service_row(format!("{}, all", times.op.name()), times));
    }
    for (size, times) in &service.by_size {
        let name = format!("{} of {}", times.op.name(), format::bytes(f64::from(*size)));
        table = table.row(service_row(name, times));
    }
    for (stream, times) in &service.by_stream {
        table = table.row(service_row(format!("{} of {stream}", times.op.name()), times));
    }
    table
}

fn service_row(name: String, times: &ServiceTimes) -> [String; 8] {
    let duration = |ns: u64| format::duration_ns(ns as f64);
    [
        name,
        format::count(times.count as f64),
        format::duration_ns(times.mean_ns),
        duration(times.ns_p50),
        duration(times.ns_p90),
        duration(times.ns_p99),
        duration(times.ns_p999),
        duration(times.max_ns),
    ]
}

pub(super) fn similar(info: &Info) -> Table {
    let columns = vec![
        Column::text("Trace"),
        Column::number("Distance", ""),
        Column::text("What it is"),
        Column::text("Statistic: here, published"),
        Column::text("Source"),
    ];
    let table = Table::new("similar", "Published traces, the most similar first", columns);
    info.similar.iter().fold(table, |table, other| {
        let statistics: Vec<String> = other
            .statistics
            .iter()
            .map(|one| {
                let (low, high) = one.published;
                let published = if low == high {
                    format::count(low)
                } else {
                    format!("{} to {}", format::count(low), format::count(high))
                };
                format!("{}: {}, {published}", one.name, format::count(one.here))
            })
            .collect();
        table.row([
            other.id.clone(),
            format!("{:.3}", other.distance),
            other.what.clone(),
            statistics.join("; "),
            other.source.clone(),
        ])
    })
}

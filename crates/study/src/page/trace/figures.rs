//! The figures of a trace's page.

use report::{Axis, BarSeries, Figure, Grid, GridLayer, Series, Style, format};
use trace::info::depth::Depth;
use trace::info::{BLOCK_BYTES, Info, MissRatioCurve, RateWindow, StreamInfo};

/// Depths shown beside each other.
const DEPTHS_SHOWN: usize = 12;
/// Sizes shown on a screen.
const SIZES_SHOWN: usize = 5;

pub(super) fn rates(info: &Info) -> Figure {
    let series = |name: &str, rate: fn(&RateWindow) -> f64| {
        let points = info.rates.iter().map(|window| (window.at_s, rate(window))).collect();
        Series::new(name, Style::Line, points)
    };
    let counts = &info.all.counts;
    let kinds = [
        (counts.reads, series("reads", |window| window.reads_per_s)),
        (counts.writes, series("writes", |window| window.writes_per_s)),
        (counts.flushes, series("flushes", |window| window.flushes_per_s)),
    ];
    let present = kinds.into_iter().filter(|(count, _)| *count > 0).map(|(_, series)| series);
    Figure::lines(
        "rates",
        "Requests per second over time",
        Axis::linear("Time", "s"),
        Axis::linear("Rate", "/s"),
        present.collect(),
    )
}

pub(super) fn throughput(info: &Info) -> Figure {
    let points = info.rates.iter().map(|window| (window.at_s, window.bytes_per_s)).collect();
    Figure::lines(
        "throughput",
        "Bytes read and written per second over time",
        Axis::linear("Time", "s"),
        Axis::linear("Throughput", "bytes/s"),
        vec![Series::new("reads and writes", Style::Line, points)],
    )
}

pub(super) fn gaps(all: &StreamInfo) -> Figure {
    let gaps = &all.arrivals.gaps;
    let found = gaps.iter().map(|gap| (gap.gap_ns as f64, gap.share * 100.0)).collect();
    let expected = gaps
        .iter()
        .filter(|gap| gap.exponential_ns > 0.0)
        .map(|gap| (gap.exponential_ns, gap.share * 100.0));
    Figure::lines(
        "gaps",
        "Gaps between requests, against those of a Poisson process of the same rate",
        Axis::log10("Gap", "ns"),
        Axis::linear("Gaps at or below it", "%"),
        vec![
            Series::new("gaps", Style::Line, found),
            Series::new("exponential", Style::Dashed, expected.collect()),
        ],
    )
}

pub(super) fn dispersion(all: &StreamInfo) -> Figure {
    let windows = &all.arrivals.dispersion;
    let points = windows.iter().map(|d| (d.window_ns as f64, d.index)).collect();
    let poisson = windows.iter().map(|d| (d.window_ns as f64, 1.0)).collect();
    Figure::lines(
        "dispersion",
        "Burstiness: index of dispersion of the requests per window",
        Axis::log10("Window", "ns"),
        Axis::log10("Variance over mean", ""),
        vec![
            Series::new("requests", Style::LinePoints, points),
            Series::new("Poisson", Style::Dashed, poisson),
        ],
    )
    .caption("A curve that keeps rising has bursts of bursts.")
}

pub(super) fn depth(depth: &Depth) -> Figure {
    let points = depth.series.iter().map(|window| (window.at_s, window.mean)).collect();
    Figure::lines(
        "depth",
        "Outstanding requests over time",
        Axis::linear("Time", "s"),
        Axis::linear("Mean queue depth", ""),
        vec![Series::new("outstanding", Style::Line, points)],
    )
    .caption("From the measured service times, averaged over each window.")
}

pub(super) fn depth_shares(depth: &Depth) -> Figure {
    let shares = &depth.time_shares;
    let split = shares.len().min(DEPTHS_SHOWN);
    let mut names: Vec<String> = (0..split).map(|depth| depth.to_string()).collect();
    let mut values: Vec<f64> = shares[..split].iter().map(|share| share * 100.0).collect();
    if shares.len() > split {
        names.push(format!("{split} and more"));
        values.push(shares[split..].iter().sum::<f64>() * 100.0);
    }
    Figure::bars(
        "depth-shares",
        "Share of the time at each queue depth",
        names,
        Axis::linear("Time", "%"),
        vec![BarSeries::new("time", values)],
    )
}

pub(super) fn size_classes(all: &StreamInfo) -> Figure {
    let counts = &all.counts;
    let total = (counts.reads + counts.writes).max(1) as f64;
    let classes = &counts.size_classes;
    let names = classes.iter().map(|class| format::bytes(class.size_bytes as f64)).collect();
    let share = |count: u64| count as f64 / total * 100.0;
    Figure::stacked_bars(
        "size-classes",
        "Sizes of reads and writes",
        names,
        Axis::linear("Requests", "%"),
        vec![
            BarSeries::new("reads", classes.iter().map(|class| share(class.reads)).collect()),
            BarSeries::new("writes", classes.iter().map(|class| share(class.writes)).collect()),
        ],
    )
    .caption("Each class holds the sizes up to its own and above half of it.")
}

/// The most frequent sizes, for a screen.
pub(super) fn top_sizes(all: &StreamInfo) -> Figure {
    let counts = &all.counts;
    let total = (counts.reads + counts.writes).max(1) as f64;
    let top = &counts.sizes[..counts.sizes.len().min(SIZES_SHOWN)];
    let names = top.iter().map(|size| format::bytes(size.size_bytes as f64)).collect();
    let share = |count: u64| count as f64 / total * 100.0;
    Figure::stacked_bars(
        "top-sizes",
        "Most frequent sizes",
        names,
        Axis::linear("Requests", "%"),
        vec![
            BarSeries::new("reads", top.iter().map(|size| share(size.reads)).collect()),
            BarSeries::new("writes", top.iter().map(|size| share(size.writes)).collect()),
        ],
    )
}

pub(super) fn miss_ratio(all: &StreamInfo) -> Figure {
    let blocks = &all.blocks;
    let points = |curve: &MissRatioCurve| {
        let seen = curve.points.iter().filter(|point| point.cache_blocks > 0);
        let bytes = |blocks: u64| blocks as f64 * curve.block_bytes as f64;
        seen.map(|point| (bytes(point.cache_blocks), point.miss_ratio * 100.0)).collect()
    };
    let name = if blocks.followed_share < 1.0 {
        format!("sample of {}", format::percent(blocks.followed_share))
    } else {
        "every block".to_owned()
    };
    let mut series = vec![Series::new(name, Style::Line, points(&blocks.miss_ratio))];
    if let Some(sampled) = &blocks.sampled {
        let name = format!("sample of {}", format::percent(sampled.curve.rate));
        series.push(Series::new(name, Style::Dashed, points(&sampled.curve)));
    }
    Figure::lines(
        "miss-ratio",
        "Miss ratio of an LRU cache",
        Axis::log2("Cache", "bytes"),
        Axis::linear("Misses", "%"),
        series,
    )
    .caption("Reads and writes alike; the cache is empty at the start.")
    .source("Mattson et al. 1970; SHARDS, Waldspurger et al. 2015")
}

pub(super) fn reuse(all: &StreamInfo) -> Figure {
    let classes = &all.blocks.reuse;
    let bytes = |blocks: u64| blocks as f64 * BLOCK_BYTES as f64;
    let mut names: Vec<String> =
        classes.iter().map(|class| format::bytes(bytes(class.below_blocks))).collect();
    let mut shares: Vec<f64> = classes.iter().map(|class| class.share * 100.0).collect();
    let reused: f64 = shares.iter().sum();
    names.push("first touch".to_owned());
    shares.push((100.0 - reused).max(0.0));
    Figure::bars(
        "reuse",
        "Reuse distance: other data touched since the block was",
        names,
        Axis::linear("Touches", "%"),
        vec![BarSeries::new("touches", shares)],
    )
    .caption("Each class holds the distances below its own and not below half of it.")
}

pub(super) fn working_set(all: &StreamInfo) -> Figure {
    let bytes = |blocks: u64| blocks as f64 * BLOCK_BYTES as f64;
    let windows = &all.blocks.working_set;
    let total = windows.iter().map(|window| (window.at_s, bytes(window.total_blocks))).collect();
    let within = windows.iter().map(|window| (window.at_s, bytes(window.window_blocks))).collect();
    Figure::lines(
        "working-set",
        "Working set over time",
        Axis::linear("Time", "s"),
        Axis::linear("Distinct data", "bytes"),
        vec![
            Series::new("since the start", Style::Line, total),
            Series::new("within a window", Style::Line, within),
        ],
    )
}

pub(super) fn heat(info: &Info) -> Figure {
    let heat = &info.heat;
    let layer =
        |name: &str, cells: &[Vec<u64>]| GridLayer { name: name.to_owned(), cells: cells.concat() };
    let grid = Grid {
        columns: heat.reads.first().map_or(0, Vec::len),
        rows: heat.reads.len(),
        x: (0.0, heat.column_s),
        y: (heat.first_byte as f64, heat.row_bytes as f64),
        layers: vec![layer("reads", &heat.reads), layer("writes", &heat.writes)],
    };
    Figure::grid(
        "heat",
        "Where requests go over time",
        Axis::linear("Time", "s"),
        Axis::linear("Address", "bytes"),
        grid,
    )
    .caption("Each request counts in the cell of its first byte; shades are logarithmic.")
}

pub(super) fn hot(all: &StreamInfo) -> Figure {
    let shares = &all.blocks.hot.shares;
    let names = shares.iter().map(|share| format::percent(share.block_share)).collect();
    let values = shares.iter().map(|share| share.touch_share * 100.0).collect();
    Figure::bars(
        "hot",
        "Touches of the hottest blocks",
        names,
        Axis::linear("Touches", "%"),
        vec![BarSeries::new("touches", values)],
    )
    .caption(format!(
        "Of the touched blocks, those with the most touches first. {} are touched once; the Gini \
         coefficient is {:.2}.",
        format::percent(all.blocks.hot.once_share),
        all.blocks.hot.gini
    ))
}

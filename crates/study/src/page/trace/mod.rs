//! From a characterised trace to its page and its screen: which figures, in which words.
//!
//! The page has everything of all streams together and a table of the streams; the screen has the
//! answers, and the figures that a glance can take in. The definitions stand with the figures and
//! come from `trace::info`. Tested with a generated trace, as text and in a browser.

mod figures;
mod tables;

use report::{Page, Section, format};
use trace::info::{Info, Service, StreamInfo};

/// What the characterisation does not know: where the trace came from.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The file, as the user named it.
    pub file: String,
    /// Format and evidence.
    pub format: String,
    /// How it was made; may be empty.
    pub source: String,
    /// Other facts as name and value.
    pub facts: Vec<(String, String)>,
}

/// The whole page.
pub fn page(info: &Info, place: &Place) -> Page {
    let mut page = heading(info, place)
        .section(arrivals(info))
        .section(
            Section::new("sizes", "What is asked for")
                .paragraph(
                    "A request is sequential when it starts where the previous one of its stream \
                     and operation ended; near when it starts within 64 KiB of there; interleaved \
                     when it starts where one of the previous 32 ended; strided when it repeats \
                     the previous distance without being sequential.",
                )
                .paragraph(aligned(&info.all))
                .figure(figures::size_classes(&info.all))
                .table(tables::streams(info))
                .table(tables::sizes(&info.all)),
        )
        .section(reuse(info))
        .section(
            Section::new("similar", "What it resembles")
                .paragraph(
                    "The distance to a published trace is the mean over the statistics that are \
                     published of it: differences of shares, and d / (1 + d) for sizes and rates \
                     that differ by d doublings. 0 is alike in all of them. Addresses and length \
                     are not compared, and few statistics are published of some: a hint, not a \
                     proof.",
                )
                .table(tables::similar(info)),
        );
    page = page.provenance("file", place.file.clone()).provenance("format", place.format.clone());
    if !place.source.is_empty() {
        page = page.provenance("made by", place.source.clone());
    }
    for (name, value) in &place.facts {
        page = page.provenance(name.clone(), value.clone());
    }
    page.provenance("version", env!("CARGO_PKG_VERSION"))
}

/// What fits a terminal: the same answers, four figures.
pub fn screen(info: &Info, place: &Place) -> Page {
    let section = Section::new("screen", "")
        .figure(figures::rates(info))
        .figure(figures::top_sizes(&info.all))
        .figure(figures::miss_ratio(&info.all))
        .figure(figures::heat(info));
    heading(info, place).section(section)
}

fn arrivals(info: &Info) -> Section {
    let arrivals = &info.all.arrivals;
    let hurst = match &arrivals.hurst {
        Some(hurst) => format!(
            "The Hurst exponent, from the variance over windows of {} to {}, is {:.2} with a \
             standard error of {:.2}: 0.5 is without memory, towards 1 bursts come in bursts; a \
             trend looks the same.",
            format::duration_ns(hurst.window_min_ns as f64),
            format::duration_ns(hurst.window_max_ns as f64),
            hurst.exponent,
            hurst.error
        ),
        None => "The trace is too short for a Hurst exponent.".to_owned(),
    };
    let section = Section::new("arrivals", "When requests arrive")
        .paragraph(format!(
            "Gaps between requests have a mean of {} and vary by {:.2} times that (Poisson: 1); \
             the largest difference between their distribution and the exponential one is {:.3}. \
             {} of the gaps are 0.",
            format::duration_ns(arrivals.gap_mean_ns),
            arrivals.gap_variation,
            arrivals.exponential_distance,
            format::percent(arrivals.gap_zero_share)
        ))
        .paragraph(hurst)
        .figure(figures::rates(info))
        .figure(figures::throughput(info))
        .figure(figures::gaps(&info.all))
        .figure(figures::dispersion(&info.all));
    let section = match &info.service {
        Some(service) => section.table(tables::service(service)),
        None => section,
    };
    match &info.depth {
        Some(depth) => section.figure(figures::depth(depth)).figure(figures::depth_shares(depth)),
        None => section.paragraph(
            "The trace holds no service times, so that nothing can be said about queue depth.",
        ),
    }
}

fn reuse(info: &Info) -> Section {
    let blocks = &info.all.blocks;
    let followed = if blocks.followed_share < 1.0 {
        format!(
            "The trace is large: a sample of {} of its blocks was followed (SHARDS), chosen by a \
             hash of their numbers. The miss ratios are within about {:.4}, by the difference of \
             two halves of the sample; --full follows every block.",
            format::percent(blocks.followed_share),
            blocks.miss_ratio_error
        )
    } else {
        match &blocks.sampled {
            Some(sampled) => format!(
                "Every block was followed. A sample of {} of them (SHARDS) errs by {:.4} on \
                 average over cache sizes.",
                format::percent(sampled.curve.rate),
                sampled.mean_absolute_error
            ),
            None => "Every block was followed.".to_owned(),
        }
    };
    let overwrites = &blocks.overwrites;
    Section::new("reuse", "Which blocks, and how often")
        .paragraph(format!(
            "Reads and writes touch blocks of 4 KiB {} times, {} of them distinct. {followed}",
            format::count(blocks.touches as f64),
            format::count(blocks.working_set_blocks as f64),
        ))
        .paragraph(format!(
            "{} of the written blocks are written once, {} again; the median time between two \
             writes of a block is {}. {} of the touched blocks are only read, {} only written.",
            format::percent(overwrites.once_share),
            format::percent(overwrites.again_share),
            format::duration_ns(overwrites.interval_ns_p50 as f64),
            format::percent(overwrites.read_only_share),
            format::percent(overwrites.write_only_share)
        ))
        .figure(figures::miss_ratio(&info.all))
        .figure(figures::reuse(&info.all))
        .figure(figures::working_set(&info.all))
        .figure(figures::heat(info))
        .figure(figures::hot(&info.all))
}

fn heading(info: &Info, place: &Place) -> Page {
    let all = &info.all;
    let counts = &all.counts;
    let subtitle = if place.source.is_empty() { &place.format } else { &place.source };
    let page = Page::new(place.file.clone(), subtitle.clone());
    let sizes: Vec<String> = counts.sizes.iter().take(3).map(|size| top_size(all, size)).collect();
    let follow = &all.sequentiality;
    let mut page = page
        .fact(
            "Requests",
            format!("{} in {}", format::count(counts.requests as f64), seconds(info.span_s)),
            format!(
                "{}/s; {} reads, {} writes, {} flushes, {} trims",
                format::count(all.requests_per_s),
                format::percent(counts.read_share),
                format::percent(counts.write_share),
                format::count(counts.flushes as f64),
                format::count(counts.trims as f64)
            ),
        )
        .fact(
            "Sizes",
            format!("{} on average", format::bytes(counts.mean_size_bytes)),
            format!(
                "{}; 4 KiB aligned {}",
                sizes.join(", "),
                format::percent(counts.aligned_share)
            ),
        )
        .fact(
            "Sequential",
            format!(
                "{}, runs of {}",
                format::percent(follow.sequential_share),
                format::bytes(follow.run_bytes_mean)
            ),
            format!(
                "near {}, interleaved {}, strided {}",
                format::percent(follow.near_share),
                format::percent(follow.windowed_share),
                format::percent(follow.strided_share),
            ),
        )
        .fact("Arrivals", arrival_word(all), arrival_detail(all));
    for (label, value, detail) in block_facts(all) {
        page = page.fact(label, value, detail);
    }
    if let Some(depth) = &info.depth {
        let times = info.service.as_ref().map_or_else(String::new, service_times);
        let detail = format!("busy {}; {times}", format::percent(depth.busy_share));
        page = page.fact("Queue depth", format!("{:.2} on average", depth.mean), detail);
    }
    match info.similar.first() {
        Some(nearest) => {
            let detail = format!("distance {:.3}: {}", nearest.distance, nearest.what);
            page.fact("Most like", nearest.id.clone(), detail)
        }
        None => page,
    }
}

/// Mean and tail of service times by operation: `read 80 us, p99 110 us`.
fn service_times(service: &Service) -> String {
    let duration = |ns: u64| format::duration_ns(ns as f64);
    let means = service.by_op.iter().map(|times| {
        let mean = format::duration_ns(times.mean_ns);
        format!("{} {mean}, p99 {}", times.op.name(), duration(times.ns_p99))
    });
    means.collect::<Vec<_>>().join("; ")
}

fn aligned(all: &StreamInfo) -> String {
    format!(
        "Offset and length of {} of the reads and writes are multiples of 4 KiB, of {} of 8 KiB, \
         of {} of 16 KiB.",
        format::percent(all.counts.aligned_share),
        format::percent(all.counts.aligned_8k_share),
        format::percent(all.counts.aligned_16k_share)
    )
}

fn top_size(all: &StreamInfo, size: &trace::info::SizeCount) -> String {
    let data = (all.counts.reads + all.counts.writes).max(1) as f64;
    let share = (size.reads + size.writes) as f64 / data;
    format!("{} {}", format::bytes(size.size_bytes as f64), format::percent(share))
}

fn seconds(value: f64) -> String {
    format::value(value, "s")
}

/// Index of dispersion from which counts over windows are not those of a Poisson process, whose
/// index is 1 over any window.
const DISPERSED: f64 = 3.0;

/// What the variation of gaps, and of counts over windows, says in a word or two.
fn arrival_word(all: &StreamInfo) -> String {
    let most = all.arrivals.dispersion.iter().map(|d| d.index).fold(0.0, f64::max);
    let word = match all.arrivals.gap_variation {
        _ if all.arrivals.gaps.is_empty() => "too few",
        // Gaps may look like those of a Poisson process while their order makes bursts.
        v if v < 4.0 && most > 30.0 => "very bursty",
        v if v < 4.0 && most > DISPERSED => "bursty",
        v if v < 0.5 => "paced",
        v if v < 1.3 => "like Poisson",
        v if v < 4.0 => "bursty",
        _ => "very bursty",
    };
    format!("{word} ({:.2})", all.arrivals.gap_variation)
}

fn arrival_detail(all: &StreamInfo) -> String {
    let mut parts = vec![format!("gaps KS {:.2}", all.arrivals.exponential_distance)];
    let dispersion = &all.arrivals.dispersion;
    let second = dispersion.iter().rev().find(|d| d.window_ns <= 1_000_000_000);
    if let Some(d) = second {
        let window = format::duration_ns(d.window_ns as f64);
        parts.push(format!("dispersion {} at {window}", format::count(d.index)));
    }
    if let Some(hurst) = &all.arrivals.hurst {
        parts.push(format!("Hurst {:.2}", hurst.exponent));
    }
    parts.join(", ")
}

fn block_facts(all: &StreamInfo) -> Vec<(&'static str, String, String)> {
    let blocks = &all.blocks;
    let total = blocks.working_set_blocks as f64;
    let curve = &blocks.miss_ratio;
    let bytes = blocks.working_set_blocks as f64 * curve.block_bytes as f64;
    let hottest: Vec<String> = blocks
        .hot
        .shares
        .iter()
        .filter(|share| (0.05..0.5).contains(&share.block_share))
        .map(|s| format!("{}: {}", format::percent(s.block_share), format::percent(s.touch_share)))
        .collect();
    let zipf = match &blocks.hot.zipf {
        Some(zipf) => format!("; Zipf {:.2} +- {:.2}", zipf.exponent, zipf.error),
        None => String::new(),
    };
    let hottest_share = blocks.hot.shares.first().map_or(0.0, |share| share.touch_share);
    let overwrites = &blocks.overwrites;
    vec![
        (
            "Working set",
            format::bytes(bytes),
            format!(
                "read {}, written {}; {} touches per block",
                format::bytes(all.counts.read_bytes as f64),
                format::bytes(all.counts.write_bytes as f64),
                format::count(blocks.touches as f64 / total.max(1.0))
            ),
        ),
        (
            "Miss ratio",
            format!("{:.3} at a tenth", curve.miss_ratio_at(total / 10.0)),
            format!(
                "of the working set; {:.3} at half, {:.3} at all of it (LRU)",
                curve.miss_ratio_at(total / 2.0),
                curve.miss_ratio_at(total)
            ),
        ),
        (
            "Hottest 1%",
            format!("{} of touches", format::percent(hottest_share)),
            format!("{}{zipf}", hottest.join(", ")),
        ),
        (
            "Overwrites",
            format!("{} of block writes", format::percent(overwrites.overwrite_share)),
            format!(
                "{} of written blocks once; again after {} (median)",
                format::percent(overwrites.once_share),
                format::duration_ns(overwrites.interval_ns_p50 as f64)
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::generate::{OltpLike, oltp_like};

    fn described() -> (Info, Place) {
        let mut trace = oltp_like(&OltpLike { transactions: 3_000, ..OltpLike::default() });
        trace.service =
            Some((0..trace.count() as u64).map(|at| 50_000 + at % 7 * 10_000).collect());
        let place =
            Place { file: "t.parquet".into(), format: "made up".into(), ..Place::default() };
        (trace::info::characterise(&trace), place)
    }

    #[test]
    fn the_screen_fits_and_says_what_matters() {
        let (info, place) = described();
        let text = report::terminal(&screen(&info, &place), 100, false);
        assert!(text.lines().count() <= 38, "{text}");
        let words = ["Requests", "Sequential", "Miss ratio", "Hottest 1%", "Queue depth"];
        for word in words.into_iter().chain(["read 80.1 us, p99 110 us"]) {
            assert!(text.contains(word), "no {word} in\n{text}");
        }
        for figure in ["Requests per second", "Miss ratio of an LRU", "Where requests go"] {
            assert!(text.contains(figure), "no {figure} in\n{text}");
        }
    }

    #[test]
    fn arrivals_in_bursts_are_not_called_poisson() {
        let mut trace = trace::Trace::default();
        let mut rng = stats::rng::Rng::new(5);
        let mut due = 0;
        // Exponential gaps throughout; every other 100 ms ten times as fast.
        for _ in 0..40_000 {
            let mean_ns = if due / 100_000_000 % 2 == 0 { 20_000.0 } else { 200_000.0 };
            due += rng.exponential(mean_ns) as u64;
            trace.due.push(due);
        }
        let count = trace.due.len();
        trace.offset = vec![0; count];
        trace.len = vec![4096; count];
        trace.op = vec![trace::Op::Read; count];
        trace.stream = vec![0; count];
        let bursts = arrival_word(&trace::info::characterise(&trace).all);
        assert!(bursts.starts_with("very bursty"), "{bursts}");
        let mut due = 0;
        for at in &mut trace.due {
            due += rng.exponential(50_000.0) as u64;
            *at = due;
        }
        let poisson = arrival_word(&trace::info::characterise(&trace).all);
        assert!(poisson.starts_with("like Poisson"), "{poisson}");
    }

    #[test]
    fn the_page_has_every_figure() {
        let (info, place) = described();
        let html = report::html(&page(&info, &place));
        assert!(html.len() < 1_500_000, "{}", html.len());
        for id in ["rates", "gaps", "dispersion", "depth", "miss-ratio", "heat", "size-classes"] {
            assert!(html.contains(&format!("id=\"figure-{id}\"")), "no {id}");
        }
        assert!(html.contains("Service times") && html.contains("write of 4 KiB"));
    }

    #[test]
    fn an_empty_trace_has_a_page_and_a_screen() {
        let info = trace::info::characterise(&trace::Trace::default());
        let place = Place::default();
        assert!(report::html(&page(&info, &place)).contains("Show data"));
        assert!(report::terminal(&screen(&info, &place), 80, false).contains("Requests"));
    }
}

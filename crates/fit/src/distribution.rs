//! The distribution around the lines, as quantile points.
//!
//! A class becomes the points where a straight-line quantile function departs least from the
//! measured one: points are added where the area between the two is largest until it is below
//! 0.1 % of the mean (the error ratio E is that area over the mean) or [`MOST_POINTS`] are spent.
//! A cliff, which every flash device has, gets its two ends; a smooth body needs few.

use profile::Quantiles;
use profile::linear::{After, Pattern, ResidualSpec};
use trace::Op;
use units::Bytes;

use crate::Notes;
use crate::lines::{Lines, round};
use crate::measurement::{Distribution, Durability};
use crate::select::{Class, Classes};

const MOST_POINTS: usize = 72;
const AREA_SHARE: f64 = 0.001;
/// A class with fewer samples is too coarse for a distribution of its own.
const FEWEST_SAMPLES: u64 = 100;

pub(super) fn fit(classes: &Classes, lines: &Lines, notes: &mut Notes) -> Vec<ResidualSpec> {
    let mut tables = Vec::new();
    for op in [Op::Read, Op::Write] {
        for pattern in [Pattern::Sequential, Pattern::Random] {
            let line = lines.get(op, pattern);
            let table = |class: &Class, after, idle_us| {
                let size_bytes = class.key.size_bytes;
                let quantiles = quantiles(&class.service, line.at(size_bytes) * 1e3)?;
                Some(ResidualSpec {
                    op,
                    pattern: Some(pattern),
                    size: Some(Bytes(u64::from(size_bytes))),
                    after,
                    idle_us,
                    samples: Some(class.service.count),
                    source: format!("probe: {}", class.key),
                    assumed: false,
                    quantiles,
                })
            };
            tables.extend(classes.single(op, pattern).filter_map(|c| table(c, None, None)));
            tables.extend(
                after_flush(classes, op, pattern)
                    .filter_map(|class| table(class, Some(After::Flush), None)),
            );
            tables.extend(
                idle(classes, op, pattern)
                    .filter_map(|(class, idle_us)| table(class, None, Some(idle_us))),
            );
        }
    }
    if tables.is_empty() {
        notes.add(
            "fit_no_distribution",
            format!("no cell has {FEWEST_SAMPLES} samples; every request takes exactly its line"),
            "probe for longer",
        );
    }
    tables
}

/// Writes each of which follows a flush.
fn after_flush<'a>(
    classes: &'a Classes<'a>,
    op: Op,
    pattern: Pattern,
) -> impl Iterator<Item = &'a Class<'a>> {
    classes.iter().filter(move |class| {
        let key = &class.key;
        op == Op::Write
            && key.op == Op::Write
            && key.pattern == pattern
            && key.durability == Durability::Flush
            && (key.depth, key.read_share, key.rate_per_s) == (1, 0, 0)
    })
}

/// Pure classes of Poisson arrivals that left the device idle most of the time, with the gap from
/// which on they apply, us.
///
/// A gap before a request is exponential with mean `1 / rate` less the service time; three quarters
/// of the requests of such a cell came after a gap of at least 0.29 times the mean, so that is
/// where their distribution starts to hold.
fn idle<'a>(
    classes: &'a Classes<'a>,
    op: Op,
    pattern: Pattern,
) -> impl Iterator<Item = (&'a Class<'a>, f64)> {
    let share = if op == Op::Read { 1000 } else { 0 };
    classes.iter().filter_map(move |class| {
        let key = &class.key;
        let fits = key.op == op
            && key.pattern == pattern
            && key.durability == Durability::None
            && key.read_share == share
            && key.rate_per_s > 0;
        if !fits || class.iops <= 0.0 {
            return None;
        }
        let period_us = 1e6 / class.iops;
        let gap_us = period_us - class.service.mean_ns / 1e3;
        (gap_us > 0.6 * period_us).then(|| (class, round_to_two(0.29 * gap_us)))
    })
}

/// Two significant digits: a threshold is no sharper than that.
fn round_to_two(value: f64) -> f64 {
    let factor = 10f64.powi(1 - value.log10().floor() as i32);
    (value * factor).round() / factor
}

/// The distribution over `line_ns` as quantile points; `None` with too few samples.
pub(super) fn quantiles(distribution: &Distribution, line_ns: f64) -> Option<Quantiles> {
    if distribution.count < FEWEST_SAMPLES || line_ns <= 0.0 {
        return None;
    }
    let steps = Steps::new(distribution);
    // Bucket middles are off by up to 1 in 512; the exact mean is known, and kept.
    let correction = distribution.mean_ns / steps.mean();
    let knots = steps.knots(AREA_SHARE * steps.mean(), MOST_POINTS);
    let ratios = |knots: &[usize]| {
        let mut points: Vec<(f64, f64)> = knots
            .iter()
            .map(|&at| (round(steps.points[at].0), steps.points[at].1 * correction / line_ns))
            .collect();
        points.dedup_by(|b, a| b.0 <= a.0);
        Quantiles(points)
    };
    let table = ratios(&knots);
    // What straight lines between the points add or lose is spread over all of them.
    let wanted = distribution.mean_ns / line_ns;
    let scaled = table.scaled(wanted / table.mean());
    Some(Quantiles(scaled.0.into_iter().map(|(p, ratio)| (p, round(ratio))).collect()))
}

/// A measured quantile function as points: (probability up to the middle of a bucket, value), with
/// the extremes at 0 and 1.
#[derive(Debug)]
struct Steps {
    points: Vec<(f64, f64)>,
    /// Integral of the function up to each point.
    integral: Vec<f64>,
}

impl Steps {
    fn new(distribution: &Distribution) -> Self {
        let total: u64 = distribution.buckets.iter().map(|bucket| bucket.1).sum();
        let mut points = vec![(0.0, distribution.min_ns as f64)];
        let mut seen = 0;
        for &(value, count) in &distribution.buckets {
            // Both ends of a bucket, so that a value that holds half of the samples stays flat.
            for within in [0.02, 0.98] {
                let p = (seen as f64 + within * count as f64) / total as f64;
                let last = points[points.len() - 1];
                let value = (value as f64).max(last.1);
                if p > last.0 && p < 1.0 {
                    points.push((p, value));
                }
            }
            seen += count;
        }
        let last = points[points.len() - 1].1;
        points.push((1.0, (distribution.max_ns as f64).max(last)));
        let mut integral = vec![0.0];
        for pair in points.windows(2) {
            let area = (pair[1].0 - pair[0].0) * 0.5 * (pair[0].1 + pair[1].1);
            integral.push(integral[integral.len() - 1] + area);
        }
        Self { points, integral }
    }

    fn mean(&self) -> f64 {
        self.integral[self.integral.len() - 1]
    }

    /// The points to keep, as indices: ascending, with both ends.
    fn knots(&self, area: f64, most: usize) -> Vec<usize> {
        let last = self.points.len() - 1;
        // Segments as (area of the worst departure, from, to, where to split).
        let mut segments = vec![self.segment(0, last)];
        while segments.len() + 1 < most {
            let total: f64 = segments.iter().map(|segment| segment.0).sum();
            if total <= area {
                break;
            }
            let worst = (0..segments.len())
                .max_by(|&a, &b| segments[a].0.total_cmp(&segments[b].0))
                .expect("at least one segment");
            let (departure, from, to, split) = segments[worst];
            if departure <= 0.0 {
                break;
            }
            segments[worst] = self.segment(from, split);
            segments.push(self.segment(split, to));
        }
        let mut knots: Vec<usize> = segments.iter().map(|segment| segment.1).collect();
        knots.push(last);
        knots.sort_unstable();
        knots
    }

    /// How far a straight line departs from the function between two points, and the point
    /// farthest from it.
    fn segment(&self, from: usize, to: usize) -> (f64, usize, usize, usize) {
        let (start, end) = (self.points[from], self.points[to]);
        let slope = (end.1 - start.1) / (end.0 - start.0);
        let (mut departure, mut farthest, mut split) = (0.0, 0.0, from);
        let mut previous = (start.0, 0.0);
        for index in from + 1..to {
            let (p, value) = self.points[index];
            let distance = (start.1 + slope * (p - start.0) - value).abs();
            departure += (p - previous.0) * 0.5 * (distance + previous.1);
            previous = (p, distance);
            if distance > farthest {
                farthest = distance;
                split = index;
            }
        }
        departure += (end.0 - previous.0) * 0.5 * previous.1;
        if split == from {
            departure = 0.0;
        }
        (departure, from, to, split)
    }
}

//! Distributions as curves whose tails can be read.

use report::Axis;

/// At most a few hundred points of a histogram's distribution function, none of its tail lost.
pub(crate) fn thinned(histogram: &stats::Histogram) -> Vec<(f64, f64)> {
    let total = histogram.count() as f64;
    let (mut seen, mut last) = (0.0, f64::NEG_INFINITY);
    let mut points = Vec::new();
    for (value, count) in histogram.buckets() {
        seen += count as f64;
        let percent = 100.0 * seen / total;
        // Half a percent in the body, finer where few are left.
        if percent - last >= 0.5_f64.min((100.0 - percent) / 4.0) {
            points.push((value as f64, percent));
            last = percent;
        }
    }
    points
}

/// A distribution as the share that is slower, in percent: where tails are as long as bodies.
pub(crate) fn slower(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let slower = points.into_iter().map(|(time, percent)| (time, 100.0 - percent));
    slower.filter(|(_, percent)| *percent > 1e-9).collect()
}

/// The axis of [`slower`].
pub(crate) fn slower_axis(of: &str) -> Axis {
    Axis::log10(format!("{of} slower than it"), "%")
}

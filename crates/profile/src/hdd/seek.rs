//! How long the arm takes over a distance.
//!
//! Either a measured table, interpolated, or the curve of Lee and Katz through the three figures
//! of a data sheet: `t(d) = a sqrt(d - 1) + b (d - 1) + c`, with `c` the time of a single cylinder
//! and `a`, `b` such that the mean over uniformly random pairs of cylinders is the average seek
//! time and the longest seek the full stroke (Lee and Katz, "An analytic performance model of disk
//! arrays", SIGMETRICS 1993). Whatever the source, the model looks a time up in a table by
//! distance.
//!
//! Invariants: no distance takes no time; tested against the closed forms.

/// Where seek times come from.
#[derive(Clone, Debug, PartialEq)]
pub enum SeekCurve {
    /// `(cylinders, ms)`, by rising distance; between them interpolated, beyond them continued.
    Points(Vec<(u32, f64)>),
    /// Lee and Katz, through three figures, ms.
    Lee {
        /// To the next cylinder.
        single_ms: f64,
        /// Mean over uniformly random pairs of cylinders.
        average_ms: f64,
        /// From the first cylinder to the last.
        full_ms: f64,
    },
}

impl SeekCurve {
    /// The time of a seek over `distance` cylinders on a disk of `cylinders`, ms.
    pub fn at_ms(&self, distance: u32, cylinders: u32) -> f64 {
        match self {
            _ if distance == 0 => 0.0,
            Self::Points(points) => interpolate(points, distance),
            Self::Lee { single_ms, average_ms, full_ms } => {
                let count = f64::from(cylinders.max(2));
                let a =
                    (-10.0 * single_ms + 15.0 * average_ms - 5.0 * full_ms) / (3.0 * count.sqrt());
                let b = (7.0 * single_ms - 15.0 * average_ms + 8.0 * full_ms) / (3.0 * count);
                let beyond = f64::from(distance - 1);
                a * beyond.sqrt() + b * beyond + single_ms
            }
        }
    }

    /// The time of every distance up to `cylinders - 1`, ns.
    pub fn table_ns(&self, cylinders: u32) -> Vec<u32> {
        (0..cylinders).map(|distance| (self.at_ms(distance, cylinders) * 1e6) as u32).collect()
    }
}

fn interpolate(points: &[(u32, f64)], distance: u32) -> f64 {
    let above = points.partition_point(|(at, _)| *at < distance);
    let (low, high) = match (points.len(), above) {
        (0, _) => return 0.0,
        (1, _) | (_, 0) => return points[0].1,
        (count, above) if above == count => (points[count - 2], points[count - 1]),
        (_, above) => (points[above - 1], points[above]),
    };
    let share = f64::from(distance - low.0) / f64::from(high.0 - low.0);
    (high.1 - low.1).mul_add(share, low.1).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_interpolated_and_continued() {
        let curve = SeekCurve::Points(vec![(1, 1.0), (5, 3.0), (10, 4.0)]);
        let times: Vec<f64> = [0, 1, 3, 5, 10, 15].map(|d| curve.at_ms(d, 100)).to_vec();
        assert_eq!(times, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(curve.table_ns(4), [0, 1_000_000, 1_500_000, 2_000_000]);
        assert_eq!(SeekCurve::Points(vec![(4, 2.0)]).at_ms(1, 100), 2.0);
    }

    #[test]
    fn the_three_figures_come_back() {
        let (single_ms, average_ms, full_ms) = (0.8, 8.2, 16.0);
        let curve = SeekCurve::Lee { single_ms, average_ms, full_ms };
        let cylinders = 100_000;
        assert_eq!(curve.at_ms(1, cylinders), single_ms);
        assert!((curve.at_ms(cylinders, cylinders) - full_ms).abs() < 0.01);
        // Distances of uniformly random pairs have density 2 (1 - x).
        let count = f64::from(cylinders);
        let mean: f64 = (1..cylinders)
            .map(|d| curve.at_ms(d, cylinders) * 2.0 * (1.0 - f64::from(d) / count) / count)
            .sum();
        assert!((mean - average_ms).abs() < 0.01, "{mean}");
    }
}

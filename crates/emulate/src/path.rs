//! What the way between a program and the emulator costs, which the model's time holds already.
//!
//! It depends on how long the program has waited: a processor that slept for a millisecond takes
//! tens of microseconds to be back, one that slept for 50 us hardly any. So it is measured after
//! pauses of several lengths and read off between them.

use units::Nanos;

/// The cost by the length of the pause before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// (pause, cost), ns; pauses rise. Empty where the way costs nothing.
    points: Vec<(u64, u64)>,
}

impl Path {
    /// Always the same.
    pub(crate) fn fixed(cost: Nanos) -> Self {
        Self { points: vec![(0, cost.0)] }
    }

    /// Of measured costs, in the order of their pauses. A longer pause costs no less.
    pub(crate) fn measured(mut points: Vec<(u64, u64)>) -> Self {
        let mut least = 0;
        for (_, cost) in &mut points {
            least = least.max(*cost);
            *cost = least;
        }
        Self { points }
    }

    /// What it costs without a pause, ns.
    pub(crate) fn shortest_ns(&self) -> u64 {
        self.points.first().map_or(0, |(_, cost)| *cost)
    }

    /// What it costs after a pause, ns.
    pub(crate) fn after_ns(&self, pause_ns: u64) -> u64 {
        let above = self.points.partition_point(|(pause, _)| *pause <= pause_ns);
        let Some((from, cost)) = above.checked_sub(1).map(|below| self.points[below]) else {
            return self.shortest_ns();
        };
        let Some((to, more)) = self.points.get(above) else { return cost };
        cost + (more - cost) * (pause_ns - from) / (to - from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read_off_between_pauses_and_never_fall() {
        let path = Path::measured(vec![(0, 10), (100, 30), (200, 20), (1000, 60)]);
        let found = [0, 50, 100, 150, 600, 1000, 9000].map(|pause| path.after_ns(pause));
        assert_eq!(found, [10, 20, 30, 30, 45, 60, 60]);
        assert_eq!(Path::measured(Vec::new()).after_ns(7), 0);
        assert_eq!(Path::fixed(Nanos(5)).after_ns(1 << 40), 5);
    }
}

//! Rotation as exact time.
//!
//! A turn is divided into [`TURN`] ticks, 60e9 of them: the nanoseconds of a minute. At `rpm` turns
//! per minute a platter moves `rpm` ticks in a nanosecond, and after a minute it has made a whole
//! number of turns, so the angle at any time is an integer computed without rounding, however long
//! the simulation runs.

/// Ticks of one turn.
pub(crate) const TURN: u64 = 60_000_000_000;

/// A spindle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spindle {
    rpm: u64,
}

impl Spindle {
    /// A spindle of `rpm` turns per minute, 1 to 1,000,000.
    pub fn new(rpm: u32) -> Self {
        assert!((1..=1_000_000).contains(&rpm), "a spindle turns");
        Self { rpm: u64::from(rpm) }
    }

    /// The angle under the heads at `now_ns`, in ticks below [`TURN`].
    #[inline]
    pub fn angle(self, now_ns: u64) -> u64 {
        (now_ns % TURN) * self.rpm % TURN
    }

    /// Nanoseconds in which the platter moves `ticks`, rounded up.
    #[inline]
    pub fn time_ns(self, ticks: u64) -> u64 {
        ticks.div_ceil(self.rpm)
    }

    /// Ticks that the platter moves in `time_ns`.
    #[inline]
    pub fn ticks(self, time_ns: u64) -> u64 {
        time_ns * self.rpm
    }

    /// Ticks from the angle under the heads at `now_ns` until `angle` is there: below [`TURN`].
    ///
    /// An angle that passed less than the rounding of a time ago counts as being there: a head
    /// that ends a sector is at the start of the next one, not a turn away from it.
    #[inline]
    pub fn ticks_until(self, now_ns: u64, angle: u64) -> u64 {
        let at = self.angle(now_ns);
        let ahead = if angle >= at { angle - at } else { angle + TURN - at };
        if ahead > TURN - ROUNDING_NS * self.rpm { 0 } else { ahead }
    }
}

/// A completion is late by less than one rounding per step of a transfer.
const ROUNDING_NS: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_takes_its_time_and_ends_where_it_began() {
        for rpm in [5400, 7200, 10_025, 15_000] {
            let spindle = Spindle::new(rpm);
            let turn_ns = spindle.time_ns(TURN);
            assert_eq!(turn_ns, 60_000_000_000u64.div_ceil(u64::from(rpm)));
            // Exact after a hundred days: a minute is a whole number of turns.
            let days_ns = 100 * 86_400 * 1_000_000_000;
            assert_eq!(spindle.angle(days_ns + 12_345), spindle.angle(12_345));
            assert_eq!(spindle.ticks_until(0, 1), 1);
            // Just missed within rounding is there; clearly missed is a turn away.
            assert_eq!(spindle.ticks_until(10, spindle.angle(0)), 0);
            assert!(spindle.ticks_until(1_000, spindle.angle(0)) > TURN / 2);
        }
    }
}

//! Faults to order: a device that stops working, that fails in one place, that answers nothing for
//! a while.

use std::ops::Range;

use units::Nanos;

use crate::line::Charge;

/// What goes wrong, and when, counted from the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// From then on every request fails with an I/O error.
    pub fail_after: Option<Nanos>,
    /// Reads and writes that touch these bytes of the device fail with an I/O error.
    pub fail_range: Option<Range<u64>>,
    /// For this long nothing is answered; then the device goes on.
    pub stall: Option<Range<Nanos>>,
}

impl Faults {
    /// Whether a request that arrives so long after the start fails.
    pub(crate) fn fails(&self, elapsed_ns: u64, charge: &Charge) -> bool {
        let touches = |bad: &Range<u64>| {
            let back = charge.written_back.iter().flat_map(|back| &back.writes);
            charge
                .parts
                .iter()
                .chain(back.flat_map(|(parts, _)| parts))
                .any(|part| part.offset < bad.end && bad.start < part.offset + part.len)
        };
        self.fail_after.is_some_and(|from| elapsed_ns >= from.0)
            || self.fail_range.as_ref().is_some_and(touches)
    }

    /// When a request that arrives then reaches the device.
    pub(crate) fn reaches_at(&self, elapsed_ns: u64) -> u64 {
        match &self.stall {
            Some(stall) if (stall.start.0..stall.end.0).contains(&elapsed_ns) => stall.end.0,
            _ => elapsed_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use trace::Op;

    use super::*;
    use crate::line::Part;

    #[test]
    fn faults_are_where_and_when_they_were_ordered() {
        let at = |offset| Charge {
            parts: vec![Part { op: Op::Read, offset, len: 4096 }],
            ..Charge::FREE
        };
        let faults = Faults {
            fail_after: Some(Nanos(1000)),
            fail_range: Some(8192..8193),
            stall: Some(Nanos(100)..Nanos(200)),
        };
        let failing = [(0, 0), (0, 4096), (0, 8192), (999, 12288), (1000, 0)]
            .map(|(elapsed, offset)| faults.fails(elapsed, &at(offset)));
        assert_eq!(failing, [false, false, true, false, true]);
        assert!(!faults.fails(0, &Charge { then_flush: true, ..Charge::FREE }));
        assert_eq!([99, 100, 199, 200].map(|at| faults.reaches_at(at)), [99, 200, 200, 200]);
    }
}

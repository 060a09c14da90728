//! What the disk itself changed by between the stages of a study.
//!
//! The same short measurement ([`probe::reference`]) stands before and after the load, before,
//! within and after the probe, and before every replay. Those of the probe are the state that the
//! profile was fitted to; by what the others differ from them the disk has drifted, and no model of
//! the fitted state can know it. Drift is a factor per kind of request with an interval over whole
//! measurements.

use events::Sink;
use io::target::TargetSpec;
use probe::reference::{Kind, Measured, Reference};
use serde::{Deserialize, Serialize};
use stats::change::{Change, change};

use crate::Error;
use crate::run_dir::RunDir;

/// Drift of one kind of request. Factors above 1: the disk was slower than when it was fitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Which requests.
    pub kind: Kind,
    /// Time during the load over time during the probe.
    pub load: Option<Change>,
    /// Time during the replays over time during the probe.
    pub replay: Option<Change>,
}

/// The drift of every kind.
pub fn drift(fit: &[Measured], load: &[Measured], replay: &[Measured]) -> Vec<Drift> {
    let of = |measured: &[Measured], kind| -> Vec<f64> {
        measured.iter().filter_map(|one| one.of(kind)).collect()
    };
    let one = |kind| {
        let fit = of(fit, kind);
        let since = |measured| change(&fit, &of(measured, kind));
        Drift { kind, load: since(load), replay: since(replay) }
    };
    Kind::ALL.map(one).to_vec()
}

/// Reference measurements on a file that is made when it is first asked for.
pub(crate) struct References<'a> {
    run: &'a RunDir,
    seed: u64,
    open: Option<Reference>,
}

impl<'a> References<'a> {
    pub(crate) fn new(run: &'a RunDir, seed: u64) -> Self {
        Self { run, seed, open: None }
    }

    /// Measures `times` times; fewer where the user stopped it.
    pub(crate) fn measure(
        &mut self,
        times: usize,
        sink: &dyn Sink,
    ) -> Result<Vec<Measured>, Error> {
        let open = if let Some(open) = &mut self.open {
            open
        } else {
            let target = TargetSpec::new(self.run.path());
            let Some(opened) = Reference::open(&target, self.seed, sink)? else {
                return Ok(Vec::new());
            };
            self.open.insert(opened)
        };
        let mut measured = Vec::new();
        for _ in 0..times {
            let Some(one) = open.measure(sink)? else { break };
            measured.push(one);
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(read: f64, flush: f64) -> Measured {
        Measured { times: vec![(Kind::Read, read), (Kind::Flush, flush)] }
    }

    #[test]
    fn drift_is_what_the_references_differ_by_from_those_of_the_fit() {
        let fit = [measured(100.0, 50.0), measured(102.0, 50.0), measured(98.0, 51.0)];
        let load = [measured(99.0, 26.0), measured(101.0, 24.0)];
        let replay = [measured(120.0, 50.0), measured(121.0, 51.0), measured(119.0, 50.0)];
        let found = drift(&fit, &load, &replay);
        let of = |kind| *found.iter().find(|drift| drift.kind == kind).unwrap();
        let read = of(Kind::Read);
        assert!((read.replay.unwrap().factor - 1.2).abs() < 0.01, "{read:?}");
        assert!(!read.load.unwrap().is_shown());
        let flush = of(Kind::Flush);
        assert!((flush.load.unwrap().factor - 0.5).abs() < 0.02, "{flush:?}");
        assert!(!flush.replay.unwrap().is_shown());
        assert_eq!(of(Kind::LargeWrite).replay, None, "it was not measured");
    }
}

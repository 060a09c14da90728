//! The trait that every device model implements.

use std::ops::Range;

use trace::{Request, Trace};
use units::{Bytes, Nanos};

use crate::observe::{Cause, Path, Probe};
use crate::queued::Queued;
use crate::snapshot::SnapshotError;

/// A storage device in virtual time.
pub trait Device: Send {
    /// Accepts `request` at `now` and says when it completes.
    ///
    /// `now` never falls from call to call and need not be `request.due`: a closed-loop user or a
    /// layer above submits when it gets there. The answer is at least `now`.
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos;

    /// Submits the requests `range` of `trace`, each when it is due, and writes the completion
    /// times in ns into `completions`, which is as long as `range`.
    ///
    /// One call through a trait object per batch instead of one per request: the loop below is
    /// compiled anew for every model, with its `submit` inlined.
    fn submit_due(&mut self, trace: &Trace, range: Range<usize>, completions: &mut [u64]) {
        assert_eq!(range.len(), completions.len(), "one completion per request");
        let columns = trace.due[range.clone()]
            .iter()
            .zip(&trace.offset[range.clone()])
            .zip(&trace.len[range.clone()])
            .zip(&trace.op[range.clone()])
            .zip(&trace.stream[range]);
        for (((((&due, &offset), &len), &op), &stream), completion) in columns.zip(completions) {
            let request = Request { due: Nanos(due), offset: Bytes(offset), len, op, stream };
            *completion = self.submit(request.due, &request).0;
        }
    }

    /// [`Device::submit`], and where the time went: the same completion, the path of the request,
    /// whose parts sum to `completion - now`, and for `probe` what the device did meanwhile.
    ///
    /// See [`crate::observe`] for how a model does it; one that does not is of unknown cause.
    fn submit_observed(
        &mut self,
        now: Nanos,
        request: &Request,
        probe: &mut dyn Probe,
    ) -> (Nanos, Path) {
        let _ = probe;
        let completion = self.submit(now, request);
        (completion, Path::of(Cause::Unknown, completion.0 - now.0))
    }

    /// [`Device::submit_due`], observed: one completion and one path per request.
    fn submit_due_observed(
        &mut self,
        trace: &Trace,
        range: Range<usize>,
        completions: &mut [u64],
        paths: &mut [Path],
        probe: &mut dyn Probe,
    ) {
        assert_eq!(range.len(), completions.len(), "one completion per request");
        assert_eq!(range.len(), paths.len(), "one path per request");
        if self.queued().is_some() {
            // Submitted one at a time it would answer otherwise; a model that knows better says so.
            self.submit_due(trace, range.clone(), completions);
            for ((due, completion), path) in trace.due[range].iter().zip(completions).zip(paths) {
                *path = Path::of(Cause::Unknown, *completion - due);
            }
            return;
        }
        for ((index, completion), path) in range.zip(completions).zip(paths) {
            let request = trace.request(index);
            probe.request(index);
            let found = self.submit_observed(request.due, &request, probe);
            (*completion, *path) = (found.0.0, found.1);
        }
    }

    /// This device as one that looks at its queue, where it does: see [`crate::queued`].
    fn queued(&mut self) -> Option<&mut dyn Queued> {
        None
    }

    /// The whole state of the device, exactly; `None` where the model cannot say.
    ///
    /// A device of the same parameters that is given it with [`Device::restore`] goes on as this
    /// one does, byte for byte. The form is the model's own and that of this version only.
    fn snapshot(&self) -> Option<Vec<u8>> {
        None
    }

    /// Takes over the state of a [`Device::snapshot`] of a device with the same parameters.
    ///
    /// # Errors
    /// Where `bytes` are no snapshot of such a device; the state is then undefined, and the device
    /// is to be dropped.
    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let _ = bytes;
        Err(SnapshotError::Unsupported)
    }

    /// The capacity; requests beyond it are a caller's error that the trace check finds first.
    fn capacity(&self) -> Option<Bytes> {
        None
    }

    /// What happened inside so far: cache hits, destages, bytes per layer.
    fn counters(&self) -> Vec<Counter> {
        Vec::new()
    }
}

/// One named count of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name with its unit last: `cache_hits`, `destaged_bytes`.
    pub name: &'static str,
    /// The value.
    pub value: u64,
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        (**self).submit(now, request)
    }
    fn submit_due(&mut self, trace: &Trace, range: Range<usize>, completions: &mut [u64]) {
        (**self).submit_due(trace, range, completions);
    }
    fn submit_observed(
        &mut self,
        now: Nanos,
        request: &Request,
        probe: &mut dyn Probe,
    ) -> (Nanos, Path) {
        (**self).submit_observed(now, request, probe)
    }
    fn submit_due_observed(
        &mut self,
        trace: &Trace,
        range: Range<usize>,
        completions: &mut [u64],
        paths: &mut [Path],
        probe: &mut dyn Probe,
    ) {
        (**self).submit_due_observed(trace, range, completions, paths, probe);
    }
    fn queued(&mut self) -> Option<&mut dyn Queued> {
        (**self).queued()
    }
    fn snapshot(&self) -> Option<Vec<u8>> {
        (**self).snapshot()
    }
    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        (**self).restore(bytes)
    }
    fn capacity(&self) -> Option<Bytes> {
        (**self).capacity()
    }
    fn counters(&self) -> Vec<Counter> {
        (**self).counters()
    }
}

/// In an `impl Device`: [`Device::submit`] and [`Device::submit_observed`] of a model that works
/// both out with `fn serve<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) ->
/// u64`.
macro_rules! submit_by_serving {
    () => {
        $crate::device::submit_by_serving!(std::convert::identity);
    };
    // What the model takes instead of the request.
    ($taken:path) => {
        #[inline]
        fn submit(&mut self, now: units::Nanos, request: &trace::Request) -> units::Nanos {
            units::Nanos(self.serve(now.0, $taken(request), &mut $crate::observe::Off))
        }

        fn submit_observed(
            &mut self,
            now: units::Nanos,
            request: &trace::Request,
            probe: &mut dyn $crate::observe::Probe,
        ) -> (units::Nanos, $crate::observe::Path) {
            let mut watch = $crate::observe::On::new(probe);
            let completion = self.serve(now.0, $taken(request), &mut watch);
            (units::Nanos(completion), watch.into_path())
        }
    };
}
pub(crate) use submit_by_serving;

/// In an `impl Device`: everything by which requests are submitted to a model that looks at its
/// queue ([`Queued`]) and keeps what is known beyond a batch in its field `ahead`, a
/// [`crate::queued::Ahead`]. The crate that uses it depends on `units` and `trace`.
#[macro_export]
macro_rules! submit_by_queue {
    () => {
        fn submit(&mut self, now: units::Nanos, request: &trace::Request) -> units::Nanos {
            $crate::queued::submit(self, now, request)
        }

        fn submit_due(
            &mut self,
            trace: &trace::Trace,
            range: std::ops::Range<usize>,
            completions: &mut [u64],
        ) {
            let mut ahead = std::mem::take(&mut self.ahead);
            $crate::queued::submit_due(self, &mut ahead, trace, range, completions);
            self.ahead = ahead;
        }

        fn submit_observed(
            &mut self,
            now: units::Nanos,
            request: &trace::Request,
            probe: &mut dyn $crate::observe::Probe,
        ) -> (units::Nanos, $crate::observe::Path) {
            $crate::queued::submit_observed(self, now, request, probe)
        }

        fn submit_due_observed(
            &mut self,
            trace: &trace::Trace,
            range: std::ops::Range<usize>,
            completions: &mut [u64],
            paths: &mut [$crate::observe::Path],
            probe: &mut dyn $crate::observe::Probe,
        ) {
            let mut ahead = std::mem::take(&mut self.ahead);
            let into = (completions, paths);
            $crate::queued::submit_due_observed(self, &mut ahead, trace, range, into, probe);
            self.ahead = ahead;
        }

        fn queued(&mut self) -> Option<&mut dyn $crate::Queued> {
            Some(self)
        }
    };
}
pub(crate) use submit_by_queue;

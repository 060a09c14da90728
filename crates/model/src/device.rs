//! The trait that every device model implements.

use std::ops::Range;

use trace::{Request, Trace};
use units::{Bytes, Nanos};

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
    fn capacity(&self) -> Option<Bytes> {
        (**self).capacity()
    }
    fn counters(&self) -> Vec<Counter> {
        (**self).counters()
    }
}

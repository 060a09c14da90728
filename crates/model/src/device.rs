//! The trait that every device model implements.

use trace::Request;
use units::{Bytes, Nanos};

/// A storage device in virtual time.
pub trait Device: Send {
    /// Accepts `request` at `now` and says when it completes.
    ///
    /// `now` never falls from call to call and need not be `request.due`: a closed-loop user or a
    /// layer above submits when it gets there. The answer is at least `now`.
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos;

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
    fn capacity(&self) -> Option<Bytes> {
        (**self).capacity()
    }
    fn counters(&self) -> Vec<Counter> {
        (**self).counters()
    }
}

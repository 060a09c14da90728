//! A trace that is looked at in parts, so that it need not be in memory as a whole.

use std::ops::ControlFlow;

use crate::{Origin, Stream, Trace};

/// What is known of a trace before its requests are read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    /// Requests.
    pub requests: u64,
    /// Due time of the last one, ns.
    pub span_ns: u64,
    /// What the stream indices mean.
    pub streams: Vec<Stream>,
    /// Where the trace came from.
    pub origin: Origin,
}

/// A well-formed trace in parts that follow one another, as often as asked. `E` is why reading
/// fails.
///
/// Parts are traces with the stream table of the whole and times from its start. Together they are
/// well formed; no figure may depend on where one ends.
pub trait Parts<E>: Sync {
    /// What is known before.
    fn outline(&self) -> Outline;

    /// The whole trace, where it is in memory.
    fn whole(&self) -> Option<&Trace> {
        None
    }

    /// Hands over one part after the other until `take` breaks.
    ///
    /// # Errors
    /// Where the next part cannot be read.
    fn each(&self, take: &mut dyn FnMut(&Trace) -> ControlFlow<()>) -> Result<(), E>;
}

impl<E> Parts<E> for Trace {
    fn outline(&self) -> Outline {
        Outline {
            requests: self.count() as u64,
            span_ns: self.span().0,
            streams: self.streams.clone(),
            origin: self.origin.clone(),
        }
    }

    fn whole(&self) -> Option<&Trace> {
        Some(self)
    }

    fn each(&self, take: &mut dyn FnMut(&Trace) -> ControlFlow<()>) -> Result<(), E> {
        let _ = take(self);
        Ok(())
    }
}

//! How far a sort or a join is, told at most two hundred times.

use events::{Event, Sink};

/// Clusters moved of those that will be.
pub(crate) struct Progress<'a> {
    sink: &'a dyn Sink,
    all: u64,
    done: u64,
    /// What happens now, a few words.
    pub(crate) doing: String,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(sink: &'a dyn Sink, clusters: u64) -> Self {
        Self { sink, all: clusters, done: 0, doing: String::new() }
    }

    /// One more cluster has been moved.
    #[inline]
    pub(crate) fn moved(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(self.all.div_ceil(200).max(1)) {
            self.sink.emit(Event::Progress {
                stage: "temp".to_owned(),
                done: (self.done as f64 / self.all.max(1) as f64).min(1.0),
                doing: self.doing.clone(),
                eta_s: None,
            });
        }
    }
}

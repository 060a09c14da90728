//! What one transaction does, as steps; terminals draw from many of them.

use serde::{Deserialize, Serialize};
use stats::rng::Rng;

/// One step of a transaction or of a round of a background task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Computes for this many ns on a processor of speed 1.
    Cpu(u64),
    /// The client computes for this many ns: on the same processors, as a task of its own.
    Ask(u64),
    /// Once the client has its answer, the server goes on computing for this many ns, which delays
    /// nobody but those who wait for the processor. Before an `Ask`.
    Behind(u64),
    /// Waits for the client, the network or a timer for this many ns; needs no processor.
    Client(u64),
    /// Takes one key of a class of locks and keeps it until the commit.
    Lock(u16),
    /// Reads from the device of a file class and waits for it.
    Read {
        /// Index of the file class.
        class: u16,
        /// Bytes.
        bytes: u32,
        /// Offset in the address space of the class.
        offset: u64,
    },
    /// Reads from the device of a file class and goes on at once, as the kernel does for pages
    /// that it reads ahead.
    ReadAhead {
        /// Index of the file class.
        class: u16,
        /// Bytes.
        bytes: u32,
        /// Offset in the address space of the class.
        offset: u64,
    },
    /// Writes to the device of a file class and waits for it.
    Write {
        /// Index of the file class.
        class: u16,
        /// Bytes.
        bytes: u32,
        /// Offset in the address space of the class.
        offset: u64,
    },
    /// Writes to the device of a file class and goes on at once, as the kernel does for pages that
    /// it writes back. Background tasks only.
    Send {
        /// Index of the file class.
        class: u16,
        /// Bytes.
        bytes: u32,
        /// Offset in the address space of the class.
        offset: u64,
    },
    /// Makes the writes of a file class durable and waits for it.
    Flush {
        /// Index of the file class.
        class: u16,
    },
    /// Inserts a record of this many bytes into the log.
    Insert(u32),
    /// Waits until the log is durable up to the own last record; then locks are released. In a
    /// background task: up to the last record of anybody.
    Commit,
    /// Redo point of a checkpoint: pages changed from now on are logged whole again.
    Checkpoint,
}

impl Step {
    /// Whether it belongs to the commit, after all else that a transaction does.
    pub(super) fn ends_work(self) -> bool {
        matches!(self, Self::Insert(_) | Self::Commit)
    }

    /// Whether virtual time may pass in it.
    pub(super) fn takes_time(self) -> bool {
        match self {
            Self::Cpu(ns) | Self::Ask(ns) | Self::Client(ns) => ns > 0,
            Self::Read { .. } | Self::Write { .. } | Self::Flush { .. } | Self::Commit => true,
            Self::Lock(_)
            | Self::Insert(_)
            | Self::ReadAhead { .. }
            | Self::Send { .. }
            | Self::Behind(_)
            | Self::Checkpoint => false,
        }
    }
}

/// Where the steps of one sample are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// Index of the kind of transaction.
    pub kind: u16,
    pub(super) first: u32,
    pub(super) end: u32,
}

/// Samples of transactions. Each is drawn with the same probability, so that the mix of kinds is
/// that of the samples; or they follow one another as they were captured, where what a transaction
/// does depends on those before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Templates {
    pub(super) steps: Vec<Step>,
    pub(super) each: Vec<Template>,
    in_order: bool,
}

impl Templates {
    /// The same samples one after another; when they are used up, any of their second half.
    #[must_use]
    pub fn in_order(self) -> Self {
        Self { in_order: true, ..self }
    }

    /// The sample of transaction number `number`, from 0.
    pub(super) fn draw(&self, number: u64, rng: &mut Rng) -> Template {
        let count = self.each.len();
        let index = match usize::try_from(number) {
            Ok(number) if self.in_order && number < count => number,
            _ if self.in_order => count / 2 + rng.below((count - count / 2) as u64) as usize,
            _ => rng.below(count as u64) as usize,
        };
        self.each[index]
    }

    /// Adds a sample of the kind of transaction `kind`.
    pub fn push(&mut self, kind: u16, steps: &[Step]) {
        let first = self.steps.len() as u32;
        self.steps.extend_from_slice(steps);
        self.each.push(Template { kind, first, end: self.steps.len() as u32 });
    }

    /// Lets the database compute this many times longer; clients take what they took.
    pub fn scale_computing(&mut self, factor: f64) {
        for step in &mut self.steps {
            if let Step::Cpu(ns) | Step::Behind(ns) = step {
                *ns = (*ns as f64 * factor).round() as u64;
            }
        }
    }

    /// Times a factor what their clients compute.
    pub fn scale_clients(&mut self, factor: f64) {
        for step in &mut self.steps {
            if let Step::Ask(ns) = step {
                *ns = (*ns as f64 * factor).round() as u64;
            }
        }
    }

    /// What a sample computes on average, its client's part included, ns.
    pub fn computing_ns(&self) -> f64 {
        let each = self.steps.iter().map(|step| match *step {
            Step::Cpu(ns) | Step::Behind(ns) | Step::Ask(ns) => ns as f64,
            _ => 0.0,
        });
        each.sum::<f64>() / self.count().max(1) as f64
    }

    /// Servers compute this much longer per transaction after their answers, ns, or shorter, as far
    /// as they compute there; returns by how much that is.
    pub fn add_behind(&mut self, ns: f64) -> f64 {
        let is_behind = |step: &&mut Step| matches!(step, Step::Behind(_));
        let steps = self.steps.iter_mut().filter(is_behind).count();
        let count = self.count().max(1) as f64;
        let each = (ns * count / steps.max(1) as f64).round() as i64;
        let mut added = 0;
        for step in self.steps.iter_mut().filter(is_behind) {
            let Step::Behind(own) = step else { continue };
            let before = *own;
            *own = own.saturating_add_signed(each);
            added += own.wrapping_sub(before) as i64;
        }
        added as f64 / count
    }

    /// Number of samples.
    pub fn count(&self) -> usize {
        self.each.len()
    }

    /// Reads of all samples together: those that are waited for, and those ahead.
    pub fn reads(&self) -> (usize, usize) {
        let count = |of: fn(&Step) -> bool| self.steps.iter().filter(|step| of(step)).count();
        (
            count(|step| matches!(step, Step::Read { .. })),
            count(|step| matches!(step, Step::ReadAhead { .. })),
        )
    }

    /// The kind and the steps of each sample.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &[Step])> {
        self.each
            .iter()
            .map(|each| (each.kind, &self.steps[each.first as usize..each.end as usize]))
    }
}

//! What a sort or a join did: phases, requests, bytes, times, and the trace of it.

use serde::{Deserialize, Serialize};
use trace::{Op, Origin, Request, Stream, Trace};
use units::{Bytes, Nanos};

use crate::options::Resources;

/// One phase: making runs, merging; splitting, joining.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// `runs`, `merges`; `build`, `probe`, `join`.
    pub name: String,
    /// From its start to its end, ns.
    pub elapsed_ns: u64,
    /// Of that, waiting for the device with nothing else to do, ns.
    pub waited_ns: u64,
    /// CPU time of the engine's thread, kernel included, ns.
    pub cpu_ns: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// What came of a sort or a join.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spilled<P> {
    /// Memory, cluster size and depth.
    pub resources: Resources,
    /// What arithmetic said beforehand.
    pub plan: P,
    /// What was done, in order.
    pub phases: Vec<Phase>,
    /// From the first row made to the last row out, ns.
    pub elapsed_ns: u64,
    /// Rows that came out: sorted rows, or joined pairs.
    pub rows: u64,
    /// Checksum of them, in hexadecimal.
    pub checksum: String,
    /// Whether order, count and checksum were compared with what went in, and agreed.
    pub verified: bool,
    /// Bytes of the temporary file that were in use at once.
    pub peak_bytes: u64,
    /// Why the result is suspect.
    pub warnings: Vec<events::Warning>,
    /// Every request, where that was asked for.
    #[serde(skip)]
    pub trace: Option<Trace>,
}

impl<P> Spilled<P> {
    /// Bytes read in all phases.
    pub fn read_bytes(&self) -> u64 {
        self.phases.iter().map(|phase| phase.read_bytes).sum()
    }

    /// Bytes written in all phases.
    pub fn written_bytes(&self) -> u64 {
        self.phases.iter().map(|phase| phase.written_bytes).sum()
    }

    /// Waiting for the device in all phases, ns.
    pub fn waited_ns(&self) -> u64 {
        self.phases.iter().map(|phase| phase.waited_ns).sum()
    }

    /// CPU time in all phases, ns.
    pub fn cpu_ns(&self) -> u64 {
        self.phases.iter().map(|phase| phase.cpu_ns).sum()
    }
}

/// Collects phases and requests while the engine runs.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) phases: Vec<Phase>,
    pub(crate) trace: Option<Recording>,
}

/// Requests in the order of their issue; completions come later.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) trace: Trace,
}

impl Account {
    /// With the names of the streams where a trace is wanted.
    pub(crate) fn new(streams: Option<&[&str]>, source: &str, layer: &str) -> Self {
        let recording = streams.map(|names| {
            let streams = names.iter().map(|name| Stream { name: (*name).to_owned() }).collect();
            let origin =
                Origin { layer: layer.to_owned(), source: source.to_owned(), ..Origin::default() };
            let trace = Trace {
                streams,
                origin,
                service: Some(Vec::new()),
                chains: Some(trace::Chains::default()),
                ..Trace::default()
            };
            Recording { trace }
        });
        Self { phases: Vec::new(), trace: recording }
    }

    /// The phase that runs now.
    pub(crate) fn phase(&mut self) -> &mut Phase {
        self.phases.last_mut().expect("requests belong to a phase")
    }

    /// A request was issued; returns its place in the trace.
    pub(crate) fn issued(&mut self, request: Request, actor: u16) -> usize {
        let phase = self.phase();
        if request.op == Op::Read {
            phase.reads += 1;
            phase.read_bytes += u64::from(request.len);
        } else {
            phase.writes += 1;
            phase.written_bytes += u64::from(request.len);
        }
        let transaction = self.phases.len() as u32;
        let Some(Recording { trace }) = &mut self.trace else { return 0 };
        trace.push_captured(request, Nanos::ZERO, actor, transaction);
        trace.count() - 1
    }

    /// It completed after this many ns.
    pub(crate) fn completed(&mut self, place: usize, service_ns: u64) {
        if let Some(Recording { trace }) = &mut self.trace
            && let Some(service) = &mut trace.service
        {
            service[place] = service_ns;
        }
    }

    /// The trace, with the settings as facts.
    pub(crate) fn finish(
        self,
        resources: &Resources,
        facts: &[(&str, String)],
    ) -> (Vec<Phase>, Option<Trace>) {
        let trace = self.trace.map(|Recording { mut trace }| {
            let fact = |(name, value): (&str, String)| (name.to_owned(), value);
            let own = [
                ("memory", resources.memory.to_string()),
                ("cluster", resources.cluster.to_string()),
                ("depth", resources.depth.to_string()),
            ];
            trace.origin.facts.extend(own.into_iter().map(fact));
            trace.origin.facts.extend(facts.iter().cloned().map(fact));
            trace
        });
        (self.phases, trace)
    }
}

/// A request of one cluster.
pub(crate) fn request(due_ns: u64, op: Op, offset: u64, len: u32, stream: u16) -> Request {
    Request { due: Nanos(due_ns), offset: Bytes(offset), len, op, stream }
}

//! What a simulation of transactions found.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};
use stats::Histogram;
use trace::Op;

/// What a transaction spends its time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// Computing.
    Cpu = 0,
    /// Ready to compute and waiting for a processor.
    RunQueue = 1,
    /// Waiting for a lock.
    Lock = 2,
    /// Its own write and flush of the log, and the filling of a segment.
    LogFlush = 3,
    /// Waiting for the flush of another.
    LogWait = 4,
    /// Reads.
    Read = 5,
    /// Writes and flushes other than those of the log.
    Write = 6,
    /// Waiting for its client.
    Client = 7,
    /// Waiting for a free terminal (open loop).
    Terminal = 8,
}

impl Wait {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Cpu,
        Self::RunQueue,
        Self::Lock,
        Self::LogFlush,
        Self::LogWait,
        Self::Read,
        Self::Write,
        Self::Client,
        Self::Terminal,
    ];

    /// The name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::RunQueue => "run_queue",
            Self::Lock => "lock",
            Self::LogFlush => "log_flush",
            Self::LogWait => "log_wait",
            Self::Read => "read",
            Self::Write => "write",
            Self::Client => "client",
            Self::Terminal => "terminal",
        }
    }
}

/// Time by what it was spent on, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, u64>", into = "BTreeMap<String, u64>")]
pub struct Waits([u64; Wait::ALL.len()]);

impl Waits {
    /// The sum.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, more)| *own += more);
    }
}

impl Index<Wait> for Waits {
    type Output = u64;
    #[inline]
    fn index(&self, wait: Wait) -> &u64 {
        &self.0[wait as usize]
    }
}

impl IndexMut<Wait> for Waits {
    #[inline]
    fn index_mut(&mut self, wait: Wait) -> &mut u64 {
        &mut self.0[wait as usize]
    }
}

impl From<Waits> for BTreeMap<String, u64> {
    fn from(waits: Waits) -> Self {
        Wait::ALL.iter().map(|wait| (wait.name().to_owned(), waits[*wait])).collect()
    }
}

impl From<BTreeMap<String, u64>> for Waits {
    fn from(named: BTreeMap<String, u64>) -> Self {
        Self(Wait::ALL.map(|wait| named.get(wait.name()).copied().unwrap_or(0)))
    }
}

/// Everything that a simulation of transactions found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionOutcome {
    /// Virtual time of the measurement, ns.
    pub measured_ns: u64,
    /// Transactions that ended in it.
    pub transactions: u64,
    /// The same per second.
    pub transactions_per_s: f64,
    /// By kind, those that ended in the measurement.
    pub kinds: Vec<KindOutcome>,
    /// Transactions that were asked for in the whole simulation.
    pub asked: u64,
    /// Of these, ended.
    pub ended: u64,
    /// Of these, in work or waiting for a terminal at the end.
    pub in_work: u64,
    /// Arrivals of an open loop that found too many waiting.
    pub dropped: u64,
    /// The log, whole simulation.
    pub log: LogOutcome,
    /// Share of the processors' time that was used, whole simulation, 0 to 1.
    pub processor_share: f64,
    /// The part of that share that is spent on switching between tasks.
    pub switching_share: f64,
    /// Requests by file class and operation, whole simulation, those that occur.
    pub io: Vec<IoOutcome>,
    /// Rounds by background task.
    pub rounds: Vec<(String, u64)>,
    /// Requests beyond the end of their device, which were moved to within.
    pub wrapped: u64,
    /// Counts of the device models, by name.
    pub counters: BTreeMap<String, u64>,
}

impl TransactionOutcome {
    /// Adds another simulation of the same system, with other draws: what was found in either.
    pub fn merge(&mut self, other: &Self) {
        let weight = |one: &Self| one.measured_ns as f64;
        let all = (weight(self) + weight(other)).max(1.0);
        self.processor_share =
            (self.processor_share * weight(self) + other.processor_share * weight(other)) / all;
        self.switching_share =
            (self.switching_share * weight(self) + other.switching_share * weight(other)) / all;
        self.measured_ns += other.measured_ns;
        self.transactions += other.transactions;
        self.transactions_per_s = self.transactions as f64 / (all / 1e9);
        for (own, more) in self.kinds.iter_mut().zip(&other.kinds) {
            own.response.merge(&more.response);
            own.waits.add(&more.waits);
        }
        self.asked += other.asked;
        self.ended += other.ended;
        self.in_work += other.in_work;
        self.dropped += other.dropped;
        self.wrapped += other.wrapped;
        self.log.add(&other.log);
        for more in &other.io {
            let is_same = |own: &&mut IoOutcome| own.class == more.class && own.op == more.op;
            match self.io.iter_mut().find(is_same) {
                Some(own) => {
                    own.requests += more.requests;
                    own.bytes += more.bytes;
                    own.time.merge(&more.time);
                }
                None => self.io.push(more.clone()),
            }
        }
        for ((_, own), (_, more)) in self.rounds.iter_mut().zip(&other.rounds) {
            *own += more;
        }
        for (name, more) in &other.counters {
            *self.counters.entry(name.clone()).or_default() += more;
        }
    }
}

/// Transactions of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindOutcome {
    /// Its name.
    pub name: String,
    /// From the request to the answer, ns.
    pub response: Histogram,
    /// What that was spent on, all transactions together.
    pub waits: Waits,
}

/// What the log did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogOutcome {
    /// Commits that had something to make durable.
    pub commits: u64,
    /// Writes by leaders, each followed by a flush.
    pub flushes: u64,
    /// Bytes inserted.
    pub inserted_bytes: u64,
    /// Bytes of whole pages among them.
    pub image_bytes: u64,
    /// Bytes written, fills apart.
    pub written_bytes: u64,
    /// Bytes written to fill new segments.
    pub filled_bytes: u64,
    /// Time during which the log had a holder, ns.
    pub held_ns: u64,
}

impl LogOutcome {
    fn add(&mut self, other: &Self) {
        self.commits += other.commits;
        self.flushes += other.flushes;
        self.inserted_bytes += other.inserted_bytes;
        self.image_bytes += other.image_bytes;
        self.written_bytes += other.written_bytes;
        self.filled_bytes += other.filled_bytes;
        self.held_ns += other.held_ns;
    }
}

/// Requests of one operation on one file class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IoOutcome {
    /// The file class.
    pub class: String,
    /// The operation.
    pub op: Op,
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
    /// From issue to return to the task, ns: device and path of the host.
    pub time: Histogram,
}

impl IoOutcome {
    pub(super) fn of(op: Op) -> Self {
        Self { class: String::new(), op, requests: 0, bytes: 0, time: Histogram::new() }
    }
}

//! What a captured run is to a prediction.

use serde::{Deserialize, Serialize};
use sim::transactions::{GroupCommit, Load, Scheduling, Switching};
use trace::{Op, Trace};

/// Which server ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// PostgreSQL: buffered files, locks outlive the flush of the log.
    Postgresql,
    /// InnoDB: files opened for direct I/O, locks are released before the flush of the log.
    Innodb,
}

impl System {
    /// Its rule of group commit.
    pub fn rule(self) -> GroupCommit {
        match self {
            Self::Postgresql => GroupCommit::POSTGRESQL,
            Self::Innodb => GroupCommit::INNODB,
        }
    }

    /// The unit in which it writes its log, bytes.
    pub fn log_page_bytes(self) -> u32 {
        match self {
            Self::Postgresql => 8192,
            Self::Innodb => 4096,
        }
    }

    /// The unit in which it reads and writes data, bytes.
    pub(crate) fn data_page_bytes(self) -> u64 {
        match self {
            Self::Postgresql => 8192,
            Self::Innodb => 16384,
        }
    }

    /// Whether its reads and writes of data go past the page cache.
    pub fn is_direct(self) -> bool {
        self == Self::Innodb
    }
}

/// A kind of transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindOf {
    /// Its name.
    pub name: String,
    /// Whether it changes the database and so commits to the log.
    pub writes: bool,
}

/// One transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Its number in the trace's `transaction` column, from 1.
    pub number: u32,
    /// Index of its kind.
    pub kind: u16,
    /// Messages of its client.
    pub turns: u32,
    /// From the request to the answer, ns.
    pub duration_ns: u64,
    /// Computing and waiting for locks and processors, ns.
    pub gap_ns: u64,
    /// Time of the server's task on a processor, ns; 0 where that was not watched.
    pub cpu_ns: u64,
    /// Of that, what its client waited for outside of I/O.
    pub answer_cpu_ns: u64,
}

/// Processor time per transaction, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cpu {
    /// Of the server's tasks.
    pub server_ns: f64,
    /// Of all, what the capture took itself.
    pub capture_ns: f64,
    /// Of the client's.
    pub client_ns: f64,
    /// Of kernel threads and interrupts.
    pub kernel_ns: f64,
}

/// The start of a load, as it was captured.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Time before the measurement, ns.
    pub warmup_ns: u64,
    /// Time of the measurement, ns.
    pub measure_ns: u64,
    /// Transactions that had ended and reads of the disk that had been made since the start, at
    /// some moments in their order.
    pub reads: Vec<(u64, u64)>,
    /// Mean size of these reads, bytes.
    pub read_bytes: u32,
    /// Transactions and bytes of log likewise; empty where the server does not tell.
    pub log_bytes: Vec<(u64, u64)>,
    /// Bytes of log that could be inserted at the start before a new segment had to be filled.
    pub log_ready: Option<u64>,
    /// Reads of the disk by kind during the warm-up, in stretches that follow one another.
    pub by_kind: Vec<KindReads>,
}

impl Start {
    /// Transactions since the start of the load that had ended at this time of the measurement.
    /// The looks are evenly spaced over warm-up and measurement.
    pub(crate) fn ended(&self, measured_ns: u64) -> Option<u64> {
        let whole_ns = u128::from((self.warmup_ns + self.measure_ns).max(1));
        let at = u128::from(self.warmup_ns + measured_ns) * self.reads.len() as u128 / whole_ns;
        let seen = self.reads.get((at as usize).checked_sub(1)?).or(self.reads.last());
        seen.map(|(transactions, _)| *transactions)
    }
}

/// Reads of the disk by kind of transaction, from the end of the stretch before to that of this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindReads {
    /// Transactions since the start, at the end of the stretch.
    pub upto: u64,
    /// Transactions of each kind, and the reads of the disk that they waited for.
    pub kinds: Vec<(u64, u64)>,
}

/// Rows that transactions meet at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contended {
    /// Not known.
    #[default]
    Unknown,
    /// Those of order entry on so many warehouses.
    OrderEntry(u32),
    /// Each updates one of this many, any with the same probability.
    OneOf(u32),
}

/// What it costs to interrupt a processor that computes, at both ends, ns, where it was not
/// measured.
const INTERRUPT_NS: f64 = 8_000.0;
/// A task that goes on after others finds its caches cold: it computes longer by this share, and by
/// no more than this many ns. By PostgreSQL's order entry for 1 to 20 terminals on 2 processors.
const COLD_SHARE: f64 = 0.7;
const COLD_NS: u64 = 14_000;

/// What it costs a server's tasks that they share processors, with the cost of an interrupt where
/// that was measured, ns.
pub fn switching(interrupt_ns: Option<f64>) -> Switching {
    Switching {
        interrupt_ns: interrupt_ns.unwrap_or(INTERRUPT_NS) as u64,
        cold_share: COLD_SHARE,
        cold_ns: COLD_NS,
    }
}

/// A captured run.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The server.
    pub system: System,
    /// Kinds of transactions, by the index that transactions name.
    pub kinds: Vec<KindOf>,
    /// Transactions; number `n` of the trace's `transaction` column is `transactions[n - 1]`.
    pub transactions: Vec<Transaction>,
    /// System calls on the server's files, with actors and transactions.
    pub logical: Trace,
    /// By actor of `logical`: whether it serves a client.
    pub connections: Vec<bool>,
    /// Requests of the disk by file class, where they were captured.
    pub physical: Option<Trace>,
    /// Processor time.
    pub cpu: Cpu,
    /// Processors of the machine.
    pub processors: u32,
    /// How the kernel shares them.
    pub scheduling: Scheduling,
    /// How long a task takes to run that is woken on an idle processor, ns, where that was
    /// measured.
    pub wake_ns: Option<f64>,
    /// What it costs that tasks share processors: [`switching`].
    pub switching: Switching,
    /// Whether other programs used much of them during the capture.
    pub disturbed: bool,
    /// Sessions.
    pub terminals: u32,
    /// How they asked.
    pub load: Load,
    /// Transactions per second, as measured.
    pub per_s: f64,
    /// Bytes of log that the server counted.
    pub log_bytes: Option<u64>,
    /// Size of the database's buffer, where it is known.
    pub buffer_bytes: Option<u64>,
    /// Rows that its transactions meet at.
    pub contended: Contended,
    /// How the load began, where that was seen.
    pub start: Option<Start>,
}

impl Captured {
    /// End of what was read of the data files.
    pub(crate) fn span_of_reads(&self) -> u64 {
        let reads = Self::of(&self.logical, "data", Op::Read);
        let ends = reads.map(|at| self.logical.offset[at] + u64::from(self.logical.len[at]));
        ends.max().unwrap_or(0)
    }

    /// Requests of one operation on one stream of a trace, by their index.
    pub(crate) fn of<'a>(
        trace: &'a Trace,
        stream: &str,
        op: Op,
    ) -> impl Iterator<Item = usize> + use<'a> {
        let index = trace.streams.iter().position(|own| own.name == stream);
        (0..trace.count())
            .filter(move |&at| trace.op[at] == op && Some(usize::from(trace.stream[at])) == index)
    }
}

/// A quantile of unsorted values; 0 of none.
pub(crate) fn quantile(values: impl Iterator<Item = u64>, q: f64) -> f64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    match values.len() {
        0 => 0.0,
        count => values[((count - 1) as f64 * q).round() as usize] as f64,
    }
}

/// The mean; 0 of none.
pub(crate) fn mean(values: impl Iterator<Item = u64>) -> f64 {
    let (count, sum) = values.fold((0u64, 0), |(count, sum), value| (count + 1, sum + value));
    sum as f64 / count.max(1) as f64
}

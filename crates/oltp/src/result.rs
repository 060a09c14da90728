//! What a run found: the shape of `oltp.json` in a run directory.

use events::Warning;
use serde::{Deserialize, Serialize};
use stats::Histogram;

use crate::audit::Audit;
use crate::censored::Bounds;
use crate::options::Options;
use crate::{Dataset, Kind, Workload};

/// An open loop that leaves more than this share of its requests without an answer has no p99.
const WAITING_SHARE: f64 = 0.01;

/// Everything one run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OltpResult {
    /// Version of this shape.
    pub schema: u32,
    /// What ran.
    pub workload: Workload,
    /// What the workload is and is not; to be shown with every figure.
    pub disclaimer: String,
    /// `engineering`: never a published benchmark result.
    pub result_class: String,
    /// The DBMS and its version.
    pub dbms: String,
    /// What was loaded.
    pub dataset: Dataset,
    /// The options of the run.
    pub options: Options,
    /// The database: a file, or a server's address and database.
    pub place: String,
    /// Whether the user stopped it early; the figures are those of `measured_s`.
    pub interrupted: bool,
    /// Length of the warm-up, seconds.
    pub warmup_s: f64,
    /// Length of the measurement, seconds.
    pub measured_s: f64,
    /// New-Order transactions per minute, rolled-back ones included (clause 5.4.2); 0 in other
    /// workloads than order entry.
    pub new_orders_per_min: f64,
    /// Transactions of all kinds per second; of an open loop those that ended within the
    /// measurement, whenever they were due.
    pub transactions_per_s: f64,
    /// Per kind of the workload.
    pub transactions: Vec<KindResult>,
    /// Deferred deliveries (order entry).
    pub delivery: DeliveryResult,
    /// Attempts of all transactions of the whole run, retried ones counted again.
    pub attempts: u64,
    /// Attempts that failed and were made again.
    pub retries: u64,
    /// Transactions given up after the last retry.
    pub failures: u64,
    /// Arrivals dropped because the queue was full (open loop only).
    pub dropped: u64,
    /// Requests due within the measurement that had no answer at its end (open loop only), dropped
    /// ones included.
    #[serde(default)]
    pub waiting: u64,
    /// How late arrivals of an open loop were queued although a connection was free, nanoseconds:
    /// the error of our own clock. Waiting for a connection counts in the response time instead.
    #[serde(default)]
    pub schedule_error_ns: Histogram,
    /// Throughput over time, warm-up included.
    pub series: Series,
    /// CPU of the worker threads.
    pub cpu: Cpu,
    /// The client's share of that CPU.
    pub client_overhead: ClientOverhead,
    /// File sizes.
    pub sizes: Sizes,
    /// The input audit.
    pub audit: Audit,
    /// What makes the result suspect.
    pub warnings: Vec<Warning>,
}

impl OltpResult {
    /// The result of one kind; `None` for another workload's.
    pub fn of(&self, kind: Kind) -> Option<&KindResult> {
        let name = matches!(self.workload, Workload::Own(_)) && matches!(kind, Kind::Own(_));
        let same = |found: Kind| found == kind || name && found.name() == kind.name();
        self.transactions.iter().find(|result| same(result.kind))
    }

    /// The kinds of its workload.
    pub fn kinds(&self) -> &'static [Kind] {
        self.dataset.workload().kinds()
    }

    /// Whether the input audit and every response-time bound hold. A bound that is unknown for the
    /// one or two requests that are always in work at the end fails nothing; one that is unknown
    /// for a queue does.
    pub fn passed(&self) -> bool {
        let fails = |verdict: Verdict| match verdict {
            Verdict::Holds => false,
            Verdict::Unknown => self.left_a_queue(),
            Verdict::Violated => true,
        };
        self.audit.passed && !self.transactions.iter().any(|kind| fails(kind.p90_verdict()))
    }

    /// Requests due within the measurement.
    pub fn due(&self) -> u64 {
        self.waiting + self.transactions.iter().map(|kind| kind.count).sum::<u64>()
    }

    /// Whether more requests had no answer at the end of an open loop than a p99 can bear.
    pub fn left_a_queue(&self) -> bool {
        self.waiting > 1 && self.waiting as f64 > WAITING_SHARE * self.due() as f64
    }
}

/// What one kind of transaction did within the measurement: those that started (as intended) and
/// ended inside it. Of an open loop also what was due inside it and had no answer at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KindResult {
    /// Which kind.
    pub kind: Kind,
    /// Transactions, rolled-back ones included.
    pub count: u64,
    /// Of these, rolled back by their unused item.
    pub rollbacks: u64,
    /// Completion less the intended start, nanoseconds: queueing included. Of those that were
    /// answered.
    pub response_ns: Histogram,
    /// Completion less the start of execution, nanoseconds.
    pub service_ns: Histogram,
    /// Requests without an answer when an open loop ended; they are in no other count.
    #[serde(default)]
    pub waiting: u64,
    /// What those had waited by then, nanoseconds: their response times are at least that.
    #[serde(default)]
    pub waited_ns: Histogram,
    /// Quantiles of the response time, milliseconds: of those that were answered and those that
    /// were not, each of the latter taken at what it had waited. Lower bounds therefore, which the
    /// flags of `at_least` tell from exact values.
    pub response_ms_p50: f64,
    /// The 90th percentile.
    pub response_ms_p90: f64,
    /// The 99th percentile.
    pub response_ms_p99: f64,
    /// Bound on the 90th percentile, milliseconds (clause 5.2.5.3; Delivery's is 80 s).
    pub p90_limit_ms: f64,
    /// Whether it certainly holds, whatever became of the requests without an answer; true where
    /// nothing was counted.
    pub p90_holds: bool,
    /// Which of the quantiles may be longer than said.
    #[serde(default)]
    pub at_least: AtLeast,
}

/// Which quantiles of the response time depend on requests that were not answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtLeast {
    /// The median.
    pub p50: bool,
    /// The 90th percentile.
    pub p90: bool,
    /// The 99th percentile.
    pub p99: bool,
}

/// What is known of a bound on a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It depends on requests that were not answered.
    Unknown,
    /// It does not hold.
    Violated,
}

impl KindResult {
    /// What is known of the bound on the 90th percentile.
    pub fn p90_verdict(&self) -> Verdict {
        match self.p90_holds {
            true => Verdict::Holds,
            false if self.response_ms_p90 > self.p90_limit_ms => Verdict::Violated,
            false => Verdict::Unknown,
        }
    }

    /// Response times with what requests without an answer had waited among them: its quantiles are
    /// lower bounds.
    pub fn at_least_ns(&self) -> Histogram {
        let mut all = self.response_ns.clone();
        all.merge(&self.waited_ns);
        all
    }

    /// A quantile of the response time, nanoseconds, and whether it may be longer.
    pub fn response_quantile(&self, q: f64) -> (u64, bool) {
        let bounds = Bounds::of(&self.response_ns, &self.waited_ns, q);
        (bounds.least_ns, bounds.open_ended())
    }
}

/// Deferred deliveries within the measurement (clause 2.7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryResult {
    /// Requests that were queued, whole run.
    pub queued: u64,
    /// Requests executed, whole run.
    pub executed: u64,
    /// Districts visited within the measurement.
    pub districts: u64,
    /// Of these, districts that had no order to deliver.
    pub skipped: u64,
    /// Share of deliveries known to be within 80 s of their queueing; 1 where there were none.
    /// Those still waiting when an open loop ended are not known to be.
    pub within_80_s: f64,
    /// Requests whose terminal had to wait because the queue was full.
    pub backpressured: u64,
    /// Time to queue a request: what the terminal waits for, nanoseconds.
    pub submit_ns: Histogram,
    /// Whether at least 90 % of deliveries took at most 80 s and of submissions at most 5 s, and at
    /// most 1 % of districts were skipped (clause 9.2.1.7 asks that skips be few).
    pub holds: bool,
}

/// Throughput over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of an interval, seconds.
    pub interval_s: f64,
    /// Start of the measurement, seconds from the start of the series.
    pub measure_from_s: f64,
    /// Transactions completed in each interval.
    pub transactions: Vec<u32>,
    /// New-Orders among them.
    pub new_orders: Vec<u32>,
}

/// CPU time of the worker threads within the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// User time per transaction, nanoseconds.
    pub user_ns_per_transaction: f64,
    /// System time per transaction, nanoseconds.
    pub system_ns_per_transaction: f64,
    /// User time, seconds.
    pub user_s: f64,
    /// System time, seconds.
    pub system_s: f64,
    /// Transactions that the workers executed in that time.
    pub transactions: u64,
    /// Processor time of the whole machine, whoever used it, seconds; none in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_busy_s: Option<f64>,
}

/// How much of the workers' CPU is our code rather than the DBMS's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientOverhead {
    /// Share of the workers' CPU time, 0 to 1.
    pub share: f64,
    /// Standard error of the share.
    pub standard_error: f64,
    /// Time in our code per transaction, nanoseconds.
    pub client_ns_per_transaction: f64,
    /// Transactions that were timed.
    pub samples: u64,
    /// How it was found.
    pub method: String,
}

/// What the database takes, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Data and indexes before the run.
    pub database_before: u64,
    /// The same after it.
    pub database_after: u64,
    /// Largest log (WAL) or rollback journal seen, sampled once a second.
    pub log_max: u64,
}

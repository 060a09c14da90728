//! What a run writes down: a [`Ledger`] that several workers share, and the [`Worker`]'s own CPU.
//!
//! A ledger holds histograms and the audit's counts, most of a megabyte: with a ledger for each of
//! a hundred sessions the client's memory would be the workload's. A few ledgers, each behind a
//! lock that is held for a microsecond per transaction, are merged at the end of the run.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use events::{Completed, LiveTimes};
use stats::Histogram;

use super::cpu::ThreadCpu;
use super::users::Job;
use crate::audit::Tally;
use crate::driver::{MeterTotals, Outcome, Reply};
use crate::options::Load;
use crate::workload::input::{Input, Request};
use crate::workload::{Kind, Source};

/// Length of an interval of the throughput series, ns.
pub(crate) const INTERVAL_NS: u64 = 100_000_000;

/// Bound on the deferred execution of a delivery, ns (clause 2.7.2.2).
const DELIVERY_BOUND_NS: u64 = 80_000_000_000;

/// The measurement interval, ns since the start of the run; the end moves when the user stops it.
#[derive(Debug)]
pub(crate) struct Window {
    pub from_ns: u64,
    pub to_ns: AtomicU64,
}

impl Window {
    /// Whether something lies wholly inside.
    pub fn holds(&self, begin_ns: u64, end_ns: u64) -> bool {
        begin_ns >= self.from_ns && end_ns <= self.to_ns.load(Ordering::Relaxed)
    }

    /// What a request without an answer had waited at the end; none where it was due outside.
    pub fn waited_ns(&self, due_ns: u64) -> Option<u64> {
        let to_ns = self.to_ns.load(Ordering::Relaxed);
        (due_ns >= self.from_ns && due_ns < to_ns).then(|| to_ns - due_ns)
    }
}

/// Counters that the live view reads while workers write.
#[derive(Debug)]
pub(crate) struct Live {
    pub transactions: AtomicU64,
    pub new_orders: AtomicU64,
    /// Numbers transactions from 1 for the capture.
    pub started: AtomicU32,
    /// Response times by the codes of the workload's kinds, and the kind once it was seen.
    kinds: Vec<(OnceLock<Kind>, LiveTimes)>,
    /// End of the last interval that was told, ns.
    pub told_ns: AtomicU64,
}

impl Live {
    /// Counters of a workload's run.
    pub fn new(source: &Source) -> Self {
        let codes = source.dataset().workload().codes();
        Self {
            transactions: AtomicU64::new(0),
            new_orders: AtomicU64::new(0),
            started: AtomicU32::new(0),
            kinds: (0..codes).map(|_| Default::default()).collect(),
            told_ns: AtomicU64::new(0),
        }
    }

    /// A transaction that ended as it should.
    pub fn completed(&self, kind: Kind, response_ns: u64) {
        self.transactions.fetch_add(1, Ordering::Relaxed);
        if kind == Kind::NewOrder {
            self.new_orders.fetch_add(1, Ordering::Relaxed);
        }
        if let Some((seen, tally)) = self.kinds.get(kind.code()) {
            seen.get_or_init(|| kind);
            tally.record(response_ns);
        }
    }

    /// What completed since the last call, by kind.
    pub fn take(&self) -> Vec<Completed> {
        let seen = self.kinds.iter().filter_map(|(kind, tally)| Some((kind.get()?, tally)));
        let taken = seen.map(|(kind, tally)| tally.take(kind.name()));
        taken.filter(|completed| completed.requests > 0).collect()
    }
}

/// When a transaction was executed, ns since the start of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// Counts of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct KindCounts {
    pub count: u64,
    pub rollbacks: u64,
    pub response_ns: Histogram,
    pub service_ns: Histogram,
    /// What requests without an answer had waited when an open loop ended.
    pub waited_ns: Histogram,
}

/// One line of the delivery result log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliveryRecord {
    pub queued_ns: u64,
    pub done_ns: u64,
    pub warehouse: u32,
    pub carrier: u32,
    pub delivered: [u32; 10],
}

/// Everything that several workers write down together.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub tally: Tally,
    /// By the codes of the workload's kinds.
    kinds: Vec<KindCounts>,
    pub attempts: u64,
    pub retries: u64,
    pub failures: u64,
    pub deliveries: u64,
    pub districts: u64,
    pub skipped: u64,
    pub late_deliveries: u64,
    /// Transactions that ended within the measurement, whenever they were due, and the New-Orders
    /// among them.
    pub ended: u64,
    pub ended_new_orders: u64,
    pub transactions: Vec<u32>,
    pub new_orders: Vec<u32>,
    pub log: Option<Vec<DeliveryRecord>>,
    districts_per_warehouse: u32,
    /// Whether the kinds are of an own workload.
    own: bool,
    /// Whether requests that have no answer at the end count.
    open_loop: bool,
}

impl Ledger {
    /// A ledger of a run of this many intervals.
    pub fn new(source: &Source, load: Load, intervals: usize, log: bool) -> Self {
        Self {
            tally: Tally::new(source),
            kinds: vec![KindCounts::default(); source.dataset().workload().codes()],
            attempts: 0,
            retries: 0,
            failures: 0,
            deliveries: 0,
            districts: 0,
            skipped: 0,
            late_deliveries: 0,
            ended: 0,
            ended_new_orders: 0,
            transactions: vec![0; intervals],
            new_orders: vec![0; intervals],
            log: log.then(Vec::new),
            own: matches!(source, Source::Own(_)),
            open_loop: matches!(load, Load::Open { .. }),
            districts_per_warehouse: source.dataset().scale().map_or(0, |scale| scale.districts),
        }
    }

    /// The counts of a kind; none where it is another workload's.
    pub fn of(&self, kind: Kind) -> Option<&KindCounts> {
        let same = matches!(kind, Kind::Own(_)) == self.own;
        self.kinds.get(kind.code()).filter(|_| same)
    }

    /// A transaction that ended as it should.
    pub fn done(
        &mut self,
        (job, input): (&Job, &Input),
        times: Times,
        (outcome, reply): (Outcome, &Reply),
        window: &Window,
    ) {
        let interval = (times.end_ns / INTERVAL_NS) as usize;
        let rolled_back = outcome == Outcome::RolledBack;
        if rolled_back {
            self.tally.rolled_back();
        }
        if let Some(count) = self.transactions.get_mut(interval) {
            *count += 1;
            self.new_orders[interval] += u32::from(job.kind == Kind::NewOrder);
        }
        if let Request::Delivery { carrier } = input.request {
            self.delivered((job, input.warehouse, carrier), times.end_ns, reply, window);
        }
        if window.holds(times.end_ns, times.end_ns) {
            self.ended += 1;
            self.ended_new_orders += u64::from(job.kind == Kind::NewOrder);
        }
        let kind = &mut self.kinds[job.kind.code()];
        if !window.holds(job.due_ns, times.end_ns) {
            if let (true, Some(waited)) = (self.open_loop, window.waited_ns(job.due_ns)) {
                kind.waited_ns.record(waited);
            }
            return;
        }
        kind.count += 1;
        kind.rollbacks += u64::from(rolled_back);
        kind.response_ns.record(times.end_ns - job.due_ns);
        kind.service_ns.record(times.end_ns - times.begin_ns);
    }

    fn delivered(
        &mut self,
        (job, warehouse, carrier): (&Job, u32, u32),
        done_ns: u64,
        reply: &Reply,
        window: &Window,
    ) {
        self.deliveries += 1;
        if let Some(log) = &mut self.log {
            let (queued_ns, delivered) = (job.due_ns, reply.delivered);
            log.push(DeliveryRecord { queued_ns, done_ns, warehouse, carrier, delivered });
        }
        if window.holds(job.due_ns, done_ns) {
            let districts = self.districts_per_warehouse as usize;
            let skipped = reply.delivered[..districts].iter().filter(|&&order| order == 0).count();
            self.districts += districts as u64;
            self.skipped += skipped as u64;
            self.late_deliveries += u64::from(done_ns - job.due_ns > DELIVERY_BOUND_NS);
        }
    }

    /// Requests that nobody took before an open loop ended, by the codes of their kinds.
    pub fn unanswered(&mut self, waited_ns: &[Histogram]) {
        for (kind, waited) in self.kinds.iter_mut().zip(waited_ns) {
            kind.waited_ns.merge(waited);
        }
    }

    /// A transaction that was given up.
    pub fn gave_up(&mut self, input: &Input) {
        self.failures += 1;
        self.tally.gave_up(input);
    }

    /// Adds another ledger.
    pub fn merge(&mut self, other: &Self) {
        self.tally.merge(&other.tally);
        for (kind, more) in self.kinds.iter_mut().zip(&other.kinds) {
            kind.count += more.count;
            kind.rollbacks += more.rollbacks;
            kind.response_ns.merge(&more.response_ns);
            kind.service_ns.merge(&more.service_ns);
            kind.waited_ns.merge(&more.waited_ns);
        }
        self.attempts += other.attempts;
        self.retries += other.retries;
        self.failures += other.failures;
        self.deliveries += other.deliveries;
        self.districts += other.districts;
        self.skipped += other.skipped;
        self.late_deliveries += other.late_deliveries;
        self.ended += other.ended;
        self.ended_new_orders += other.ended_new_orders;
        let add = |a: &mut [u32], b: &[u32]| a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        add(&mut self.transactions, &other.transactions);
        add(&mut self.new_orders, &other.new_orders);
        if let (Some(log), Some(more)) = (&mut self.log, &other.log) {
            log.extend_from_slice(more);
        }
    }
}

/// CPU time of one worker, or of all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerCpu {
    /// Used within the measurement.
    pub cpu: ThreadCpu,
    /// Transactions executed meanwhile.
    pub transactions: u64,
    /// Time in our own code.
    pub client: MeterTotals,
    executed: u64,
    from: Option<(ThreadCpu, u64)>,
    done: bool,
}

impl WorkerCpu {
    /// Counts a transaction that ended as it should.
    pub fn executed(&mut self) {
        self.executed += 1;
    }

    /// Reads the thread's CPU time at the first call after the start of the measurement and at the
    /// first one after its end (or the last of all, with `over`).
    pub fn account(&mut self, window: &Window, now_ns: u64, over: bool) {
        if self.from.is_none() && now_ns >= window.from_ns {
            self.from = Some((ThreadCpu::now(), self.executed));
        }
        let ended = over || now_ns > window.to_ns.load(Ordering::Relaxed);
        if let (true, false, Some((from, executed))) = (ended, self.done, self.from) {
            self.cpu = ThreadCpu::now().since(from);
            self.transactions = self.executed - executed;
            self.done = true;
        }
    }

    /// Adds another worker's.
    pub fn merge(&mut self, other: &Self) {
        self.cpu.user_s += other.cpu.user_s;
        self.cpu.system_s += other.cpu.system_s;
        self.transactions += other.transactions;
        self.client.transactions += other.client.transactions;
        self.client.client_ns += other.client.client_ns;
        self.client.client_ns_squares += other.client.client_ns_squares;
    }
}

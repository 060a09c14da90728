//! A database inside its program (SQLite): one writer, some readers, every transaction a sequence
//! of its own I/O.
//!
//! Nobody flushes for another here, so there is no log to simulate: a transaction takes its lane
//! (the writer's, or one of the readers'), computes and does the I/O that it was seen doing, and
//! gives the lane back. Checkpoints are part of the transaction that makes them. What a transaction
//! reads depends on the cache and so on those before it: asked from its start, a run takes the
//! captured transactions in their order.

use sim::transactions::{
    Class, Discipline, GroupCommit, Length, Load, LockClass, Log, Processors, Scheduling, Setup,
    Step, Switching, Templates,
};
use trace::{Chains, Op, Stream, Trace};

use crate::captured::{KindOf, Transaction, quantile};
use crate::learn::{Learned, WAKE_NS, constant_device, slice_ns};
use crate::{Error, Start};

/// The writer's lane is the first actor of a capture.
const WRITER: u16 = 0;

/// A captured run of an embedded database.
#[derive(Clone, Debug)]
pub struct Embedded {
    /// Kinds of transactions, by the index that transactions name.
    pub kinds: Vec<KindOf>,
    /// Those that did something on storage.
    pub transactions: Vec<Transaction>,
    /// What was asked of the device since the load began, with actors and transactions.
    pub device: Trace,
    /// Time before the measurement, ns.
    pub warmup_ns: u64,
    /// Time of the measurement, ns.
    pub measure_ns: u64,
    /// Processors of the machine.
    pub processors: u32,
    /// Sessions.
    pub terminals: u32,
    /// How they asked.
    pub load: Load,
    /// Transactions per second, as measured.
    pub per_s: f64,
    /// Whether other programs used much of the processors during the capture.
    pub disturbed: bool,
}

/// One request of a transaction: its index in the trace, and the time between the end of the one
/// before on the same lane and its issue.
struct Asked {
    at: usize,
    gap_ns: u64,
}

/// What the capture says of its lanes.
#[derive(Default)]
struct Lanes {
    /// By transaction number.
    asked: Vec<Vec<Asked>>,
    /// What a lane takes from the end of a transaction to the first request of the next, ns: a low
    /// quartile on the busiest lane, for the rest is idleness.
    turn_ns: u64,
    /// Lanes that do not write.
    readers: u32,
}

impl Lanes {
    fn of(device: &Trace, service: &[u64], chains: &Chains) -> Self {
        let most = chains.transaction.iter().max().map_or(0, |number| *number as usize);
        let mut found = Self::default();
        found.asked.resize_with(most + 1, Vec::new);
        let mut last: Vec<Option<(u64, u32)>> = Vec::new();
        let mut between: Vec<Vec<u64>> = Vec::new();
        for (at, due) in device.due.iter().enumerate() {
            let (lane, number) = (usize::from(chains.actor[at]), chains.transaction[at]);
            if lane >= last.len() {
                last.resize(lane + 1, None);
                between.resize(lane + 1, Vec::new());
            }
            let (end_ns, before) = last[lane].unwrap_or((*due, number));
            let gap_ns = due.saturating_sub(end_ns);
            let goes_on = before == number;
            if !goes_on {
                between[lane].push(gap_ns);
            }
            if number != 0 {
                let gap_ns = if goes_on { gap_ns } else { 0 };
                found.asked[number as usize].push(Asked { at, gap_ns });
            }
            last[lane] = Some((due + service[at], number));
        }
        found.readers = between.len().saturating_sub(1).max(1) as u32;
        let turned = between.into_iter().filter(|gaps| !gaps.is_empty());
        let turns = turned.map(|gaps| quantile(gaps.into_iter(), 0.25) as u64);
        found.turn_ns = turns.min().unwrap_or(0);
        found
    }

    /// The steps of a transaction: its lane, and all that it does on it.
    fn steps(&self, device: &Trace, chains: &Chains, number: u32) -> Option<Vec<Step>> {
        let own = self.asked.get(number as usize)?;
        let lane = chains.actor[own.first()?.at];
        let lock = Step::Lock(u16::from(lane != WRITER));
        let mut steps = vec![lock, Step::Cpu(self.turn_ns.max(1))];
        for &Asked { at, gap_ns } in own {
            if gap_ns > 0 {
                steps.push(Step::Cpu(gap_ns));
            }
            let (class, bytes, offset) = (device.stream[at], device.len[at], device.offset[at]);
            steps.push(match device.op[at] {
                Op::Read => Step::Read { class, bytes, offset },
                Op::Write => Step::Write { class, bytes, offset },
                Op::Flush => Step::Flush { class },
                Op::Trim => continue,
            });
        }
        Some(steps)
    }
}

/// Learns the system behind a captured run of an embedded database.
///
/// # Errors
/// Where the capture has no transactions or no requests with actors.
pub fn learn_embedded(captured: &Embedded) -> Result<Learned, Error> {
    let device = &captured.device;
    let Some((service, chains)) = device.captured() else {
        return Err(Error::Lacks("requests past the page cache"));
    };
    let lanes = Lanes::of(device, service, chains);
    let (mut all, mut measured) = (Templates::default(), Templates::default());
    for &Transaction { number, kind, .. } in &captured.transactions {
        let Some(steps) = lanes.steps(device, chains, number) else { continue };
        all.push(kind, &steps);
        if device.due[lanes.asked[number as usize][0].at] >= captured.warmup_ns {
            measured.push(kind, &steps);
        }
    }
    if all.count() == 0 {
        return Err(Error::Lacks("transactions"));
    }
    let times = |op| {
        let own = (0..device.count()).filter(|&at| device.op[at] == op);
        quantile(own.map(|at| service[at]), 0.5)
    };
    let mut rests_on = vec![
        format!(
            "one writer and {} readers, each transaction with its own I/O as captured",
            lanes.readers
        ),
        "the time between the requests of a transaction, as captured".to_owned(),
        "nothing that the host adds to a request".to_owned(),
    ];
    let without = lanes.asked.iter().skip(1).filter(|own| own.is_empty()).count();
    if without > 0 {
        rests_on.push(format!("transactions with I/O only: {without} had none"));
    }
    let start = Start {
        warmup_ns: captured.warmup_ns,
        measure_ns: captured.measure_ns,
        reads: Vec::new(),
        read_bytes: 0,
        log_bytes: Vec::new(),
        log_ready: None,
        by_kind: Vec::new(),
    };
    let templates = if measured.count() == 0 { all.clone() } else { measured };
    Ok(Learned {
        setup: setup(captured, lanes.readers, templates),
        start: Some(start),
        writes_after: 0,
        warming: None,
        buffer: None,
        from_start: Some(all.in_order()),
        captured_per_s: captured.per_s,
        path_ns: Some(0.0),
        mean_path_ns: 0.0,
        mean_call_ns: 0.0,
        calibration: None,
        calibrated_to: None,
        rests_on,
        source: constant_device(times(Op::Read), times(Op::Write), times(Op::Flush)),
        capture_ns: 0.0,
        computed_ns: 0.0,
        warehouses: None,
        wake_is_measured: false,
        disturbed: captured.disturbed,
    })
}

fn setup(captured: &Embedded, readers: u32, templates: Templates) -> Setup {
    let lock = |name: &str, keys| LockClass { name: name.to_owned(), keys, home: false };
    let class = |stream: &Stream| Class { name: stream.name.clone(), ..Class::default() };
    Setup {
        load: captured.load,
        terminals: captured.terminals,
        processors: Processors {
            count: captured.processors,
            speed: 1.0,
            discipline: Discipline::Fair {
                slice_ns: slice_ns(captured.processors),
                scheduling: Scheduling::default(),
            },
            wake_ns: WAKE_NS as u64,
            switching: Switching::default(),
        },
        classes: captured.device.streams.iter().map(class).collect(),
        log: unused_log(captured),
        locks: vec![lock("writer", 1), lock("readers", readers)],
        kinds: captured.kinds.iter().map(|kind| kind.name.clone()).collect(),
        templates,
        background: Vec::new(),
        deferred: None,
        warming: None,
        length: Length { warmup_ns: 2_000_000_000, measure_ns: u64::MAX / 4, max_transactions: 1 },
        seed: 1,
    }
}

/// A setup has a log; no step of an embedded database inserts into it, but its class is the one
/// that may lie on a device of its own.
fn unused_log(captured: &Embedded) -> Log {
    let log = captured.device.streams.iter().position(|stream| stream.name == "log");
    Log {
        class: log.unwrap_or(0) as u16,
        rule: GroupCommit { next_at_random: false, ..GroupCommit::POSTGRESQL },
        commit_waits: true,
        page_bytes: 4096,
        region_bytes: 4096,
        delay: None,
        between_cpu_ns: 0,
        leader_cpu_ns: 0,
        waiter_cpu_ns: 0,
        images: None,
        fill: None,
    }
}

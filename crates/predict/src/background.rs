//! Work beside the transactions: writes of data, kernel threads, the log's timer.

use sim::transactions::{Background, Pace, Step};
use trace::{Op, Trace};

use crate::captured::{Captured, System};

/// The task of the block layer's threads and interrupts.
pub(crate) const KERNEL_THREADS: &str = "kernel threads";
/// The task that writes data.
pub(crate) const DATA_WRITES: &str = "data writes";
/// The task that writes the journal of the file system, one request after the other.
const JOURNAL_WRITES: &str = "journal writes";
/// Writes that follow each other within this time leave together, ns: a background writer wakes up
/// every 200 ms (PostgreSQL's `bgwriter_delay`) or second and hands over what it found. A log flush
/// that comes then waits behind all of them, where a volume allows so many requests a second.
const TOGETHER_NS: u64 = 5_000_000;
/// Writes of one round where it is not known when they were made.
const ROUND: usize = 16;
/// A pause before the first round that is longer than so many usual ones is not chance.
const SURELY: u64 = 4;
/// Most rounds that are kept.
const MOST_ROUNDS: usize = 4096;

/// What goes on beside the transactions of a load whose caches are full.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    pub(crate) tasks: Vec<Background>,
    /// Transactions from empty caches to the first write of data: only who needs room writes.
    pub(crate) writes_after: u64,
}

/// Writes in rounds, and when the first one was made, ns from the start of the capture.
#[derive(Default)]
struct Writes {
    rounds: Vec<Vec<Step>>,
    first_ns: Option<u64>,
}

pub(crate) fn learn(captured: &Captured, flush_class: u16) -> Beside {
    let count = captured.transactions.len() as f64;
    let timer_ns = match captured.system {
        System::Postgresql => 200_000_000,
        System::Innodb => 1_000_000_000,
    };
    let mut tasks = vec![Background {
        name: "log writer".to_owned(),
        pace: Pace::Every(timer_ns),
        rounds: vec![vec![Step::Commit]],
    }];
    if captured.cpu.kernel_ns > 0.0 {
        // Interrupts and the block layer's threads: while those who asked wait for the device.
        let requests = captured.physical.as_ref().unwrap_or(&captured.logical).count();
        let ns = captured.cpu.kernel_ns * count / requests.max(1) as f64;
        tasks.push(Background {
            name: KERNEL_THREADS.to_owned(),
            pace: Pace::Requests,
            rounds: vec![vec![Step::Cpu(ns as u64)]],
        });
    }
    let (writes, journal) = match &captured.physical {
        Some(physical) => of_disk(captured, physical),
        None => (of_tasks(captured), Vec::new()),
    };
    // PostgreSQL leaves the syncs of data to its checkpoints; InnoDB's page cleaner syncs what it
    // wrote (`buf_dblwr_t::flush_buffered_writes_completed`, `fil_flush_file_spaces`).
    let flush = (captured.system == System::Innodb).then_some(Step::Flush { class: flush_class });
    let (before, writes_after) = unwritten(captured, &writes);
    let data = writes.rounds.into_iter().map(|burst| sent_together(burst, flush)).collect();
    for (name, rounds, before) in [(DATA_WRITES, data, before), (JOURNAL_WRITES, journal, 0)] {
        let rounds: Vec<Vec<Step>> = rounds;
        if !rounds.is_empty() {
            let each = (count - before as f64).max(1.0) / rounds.len() as f64;
            let pace = Pace::Transactions { each, after: 0 };
            let skip = rounds.len().div_ceil(MOST_ROUNDS);
            let rounds = rounds.into_iter().step_by(skip).collect();
            tasks.push(Background { name: name.to_owned(), pace, rounds });
        }
    }
    Beside { tasks, writes_after }
}

/// Transactions of the capture, and of the whole load, before data were written for the first time;
/// none where that may have been before the capture.
fn unwritten(captured: &Captured, writes: &Writes) -> (u64, u64) {
    let (Some(start), Some(first_ns)) = (&captured.start, writes.first_ns) else { return (0, 0) };
    let (Some(begin), Some(first)) = (start.ended(0), start.ended(first_ns)) else { return (0, 0) };
    let before = first.saturating_sub(begin);
    let count = captured.transactions.len() as u64;
    let each = count.saturating_sub(before) / writes.rounds.len().max(1) as u64;
    if before <= SURELY * each { (0, 0) } else { (before, first) }
}

/// A burst of writes: all leave at once, and the last one is waited for.
fn sent_together(mut burst: Vec<Step>, flush: Option<Step>) -> Vec<Step> {
    let before = burst.len().saturating_sub(1);
    for step in &mut burst[..before] {
        if let Step::Write { class, bytes, offset } = *step {
            *step = Step::Send { class, bytes, offset };
        }
    }
    burst.extend(flush);
    burst
}

/// Writes that reached the disk, those of the log and of other programs apart: bursts of data, and
/// the file system's own one by one.
fn of_disk(captured: &Captured, physical: &Trace) -> (Writes, Vec<Vec<Step>>) {
    let class = |stream: u16| {
        let name = &physical.streams.get(usize::from(stream))?.name;
        let streams = &captured.logical.streams;
        (name != "log").then(|| streams.iter().position(|own| own.name == *name)).flatten()
    };
    let kept: Vec<(u16, usize)> = (0..physical.count())
        .filter(|&at| physical.op[at] == Op::Write)
        .filter_map(|at| Some((class(physical.stream[at])? as u16, at)))
        .collect();
    // The files may lie anywhere on a large disk; where does not matter, how far apart does.
    let base = kept.iter().map(|(_, at)| physical.offset[*at]).min().unwrap_or(0);
    let step = |(class, at): &(u16, usize)| {
        let (bytes, offset) = (physical.len[*at], physical.offset[*at] - base);
        Step::Write { class: *class, bytes, offset }
    };
    let follows = |one: &(u16, usize), next: &(u16, usize)| {
        physical.due[next.1].saturating_sub(physical.due[one.1]) < TOGETHER_NS
    };
    let is_journal = |(class, _): &(u16, usize)| {
        captured.logical.streams[usize::from(*class)].name == "filesystem"
    };
    let (journal, data): (Vec<_>, Vec<_>) = kept.into_iter().partition(is_journal);
    let bursts = data.chunk_by(follows).map(|burst| burst.iter().map(step).collect());
    let first_ns = data.first().map(|(_, at)| physical.due[*at]);
    let writes = Writes { rounds: bursts.collect(), first_ns };
    (writes, journal.iter().map(|one| vec![step(one)]).collect())
}

/// Writes by tasks that serve no client, where the disk was not seen.
fn of_tasks(captured: &Captured) -> Writes {
    let logical = &captured.logical;
    let Some(chains) = &logical.chains else { return Writes::default() };
    let takes_part = |at: &usize| {
        let class = usize::from(logical.stream[*at]);
        let log = logical.streams.get(class).is_some_and(|own| own.name == "log");
        let own = captured.connections.get(usize::from(chains.actor[*at])).is_some_and(|own| *own);
        logical.op[*at] == Op::Write && !log && !own
    };
    let found: Vec<usize> = (0..logical.count()).filter(takes_part).collect();
    let step = |at: &usize| {
        let (class, bytes, offset) = (logical.stream[*at], logical.len[*at], logical.offset[*at]);
        Step::Write { class, bytes, offset }
    };
    let rounds = found.chunks(ROUND).map(|round| round.iter().map(step).collect()).collect();
    Writes { rounds, first_ns: found.first().map(|at| logical.due[*at]) }
}

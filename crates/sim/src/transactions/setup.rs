//! Everything that a simulation of transactions is told.

use serde::{Deserialize, Serialize};
use stats::rng::Rng;

use super::template::{Step, Templates};
use crate::Error;

/// A system of terminals, processors, locks, log and storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// When transactions are asked for.
    pub load: Load,
    /// Sessions that execute transactions, one each at a time.
    pub terminals: u32,
    /// What they compute on.
    pub processors: Processors,
    /// File classes, by the index that steps name.
    pub classes: Vec<Class>,
    /// The write-ahead log.
    pub log: Log,
    /// Classes of locks, by the index that steps name.
    pub locks: Vec<LockClass>,
    /// Names of the kinds of transactions, by the index that templates name.
    pub kinds: Vec<String>,
    /// What transactions do.
    pub templates: Templates,
    /// What goes on beside them.
    pub background: Vec<Background>,
    /// The kind of transaction for whose answer terminals do not wait (closed loop): TPC-C's
    /// deferred delivery, clause 2.7.2.
    pub deferred: Option<u16>,
    /// What is read beyond that while caches fill; none where they are full.
    pub warming: Option<Warming>,
    /// How long it is simulated.
    pub length: Length,
    /// Decides every draw.
    pub seed: u64,
}

/// When transactions are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Each terminal asks for its next one after it has thought.
    Closed(Think),
    /// They arrive at random (a Poisson process) and wait for a free terminal.
    Open {
        /// Arrivals per second.
        per_s: f64,
    },
}

/// Time between the answer to a terminal and its next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Think {
    /// Mean, ns.
    pub mean_ns: f64,
    /// Whether it is drawn from an exponential distribution; otherwise it is always the mean.
    pub exponential: bool,
}

/// Processors that sessions, clients and background tasks share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Processors {
    /// How many.
    pub count: u32,
    /// Their speed over that of the processors for which steps give the time.
    pub speed: f64,
    /// How they are shared.
    pub discipline: Discipline,
    /// How long an idle processor takes to begin: leaving its idle state, the interrupt, the switch
    /// of tasks.
    pub wake_ns: u64,
    /// What it costs that tasks share them; only where they are shared as by Linux.
    pub switching: Switching,
}

/// What it costs that tasks share processors and wake each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Switching {
    /// Interrupting a processor that computes, ns: who interrupts computes for so long, and so
    /// long does the other processor nothing else.
    pub interrupt_ns: u64,
    /// A task that goes on after others computes more, because its caches are cold: this share of
    /// what it computes, or of what the others have computed if that was less.
    pub cold_share: f64,
    /// The most of that, ns: all of its data are in the caches again.
    pub cold_ns: u64,
}

/// How processors are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// As Linux does it: a queue per processor, the earliest eligible virtual deadline first.
    Fair {
        /// Length of a slice, ns.
        slice_ns: u64,
        /// Groups of tasks, and idle processors.
        scheduling: Scheduling,
    },
    /// All that are ready run at once, each at an equal share, at most one processor each.
    Sharing,
}

/// How Linux has been set up to share processors. A group is of tasks that share what one of them
/// gets: a control group, or a session where these are groups (autogroups). Tasks in none stand for
/// themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduling {
    /// Whether those that serve terminals are one group.
    pub server_group: bool,
    /// Whether the clients are one group.
    pub client_group: bool,
    /// Whether an idle processor is always found by who wakes up, and takes work from others at
    /// once: no processor idles while anybody waits. Linux does so only where little is done.
    pub finds_idle: bool,
}

/// A class of files and where it lies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Class {
    /// Its name: `data`, `log`.
    pub name: String,
    /// Index of its device.
    pub device: usize,
    /// Where its address space begins on the device, bytes.
    pub base: u64,
    /// What the host adds to the device's time.
    pub path: Path,
}

/// What the host adds to the time of a request: system call, file system, interrupt, wake-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// To reads.
    pub read: Delays,
    /// To writes.
    pub write: Delays,
    /// To flushes.
    pub flush: Delays,
}

/// Samples of a delay, ns, drawn with equal probability; none is no delay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delays(pub Vec<u32>);

impl Delays {
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        match self.0.as_slice() {
            [] => 0,
            [one] => u64::from(*one),
            many => u64::from(many[rng.below(many.len() as u64) as usize]),
        }
    }

    /// Their mean, ns.
    pub fn mean(&self) -> f64 {
        self.0.iter().map(|delay| f64::from(*delay)).sum::<f64>() / self.0.len().max(1) as f64
    }
}

/// The write-ahead log and how it becomes durable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// Index of its file class.
    pub class: u16,
    /// Who flushes for whom.
    pub rule: GroupCommit,
    /// Whether a commit waits for the flush (`synchronous_commit`,
    /// `innodb_flush_log_at_trx_commit`).
    pub commit_waits: bool,
    /// Written are whole pages of this size, the last partial one again by the next leader.
    pub page_bytes: u32,
    /// Size of its address space, which is used over and over.
    pub region_bytes: u64,
    /// How long the leader waits for others to join it; none where it does not.
    pub delay: Option<CommitDelay>,
    /// What the leader computes between the end of its write and its flush: a call that makes
    /// durable first waits for the pages, so it sleeps twice and needs a processor twice. 0 where
    /// it does not wake up in between.
    pub between_cpu_ns: u64,
    /// What the leader computes between the end of its flush and the release of the log.
    pub leader_cpu_ns: u64,
    /// What a woken waiter computes before it looks whether it is satisfied.
    pub waiter_cpu_ns: u64,
    /// Whole pages in the log.
    pub images: Option<Images>,
    /// New segments are filled before they are used.
    pub fill: Option<Fill>,
}

/// Who flushes for whom and when locks are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCommit {
    /// Whether locks are held until the commit is durable.
    pub locks_outlive_flush: bool,
    /// Whether any of those who wait for a lock may be next; otherwise it is who came first.
    pub next_at_random: bool,
    /// Who is woken when the leader releases the log.
    pub wakes: Wakes,
}

impl GroupCommit {
    /// PostgreSQL: `CommitTransaction` releases locks after `XLogFlush`, and `LWLockRelease` wakes
    /// all that wait for the lock to become free. Who waits for a row follows it from version to
    /// version, one after the other, and who comes then begins at the newest (`heap_lock_tuple`,
    /// `EvalPlanQual`): none of them has a place.
    pub const POSTGRESQL: Self =
        Self { locks_outlive_flush: true, next_at_random: true, wakes: Wakes::All };
    /// InnoDB without binary log: `trx_commit_in_memory` releases locks before `log_write_up_to`,
    /// and MariaDB's `group_commit_lock` wakes the satisfied and one next leader.
    pub const INNODB: Self = Self {
        locks_outlive_flush: false,
        next_at_random: false,
        wakes: Wakes::SatisfiedAndOneLeader,
    };
}

/// PostgreSQL's `commit_delay` and `commit_siblings`: the leader sleeps before it writes, where
/// enough other transactions are in work that could commit meanwhile (`XLogFlush`,
/// `MinimumActiveBackends`: those that wait for a row lock do not count).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitDelay {
    /// How long, ns.
    pub ns: u64,
    /// Least number of other transactions in work.
    pub siblings: u32,
}

/// Who is woken when the leader releases the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wakes {
    /// Everybody, the last comer first; who is not satisfied competes for the lead.
    All,
    /// Those that the flush satisfied and the last comer of the others.
    SatisfiedAndOneLeader,
}

/// Full-page images: the first change of a page after a checkpoint logs the whole page.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Images {
    /// Pages of the working set, changed with equal probability.
    pub pages: f64,
    /// Pages that one record changes, on average.
    pub touches_per_insert: f64,
    /// Size of an image.
    pub bytes: u32,
    /// Pages that were logged whole before the start.
    pub imaged: f64,
}

/// New segments of the log are filled with zeros and flushed by the leader that needs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// Size of a segment.
    pub segment_bytes: u64,
    /// Size of the writes that fill it, all of which are sent at once.
    pub chunk_bytes: u32,
    /// Bytes that are ready at the start: the rest of the current segment and recycled ones.
    pub ready: u64,
}

/// A class of locks of equal probability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockClass {
    /// Its name: `warehouse`.
    pub name: String,
    /// Number of keys.
    pub keys: u32,
    /// Whether each terminal always takes the same key: its number modulo the keys.
    pub home: bool,
}

/// Caches that are empty at the start: transactions read more the fewer there were before them,
/// however long these took. A slow device therefore stays in this state for longer than a fast one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warming {
    /// Up to which transaction, counted from the start, each of them reads so much more than its
    /// template does; rising. Beyond the last one caches are full.
    pub extra_reads: Vec<(u64, f64)>,
    /// Likewise, reads ahead that nobody waits for.
    pub extra_ahead: Vec<(u64, f64)>,
    /// Up to which transaction, and until then by kind: its share of these reads over that of a
    /// mean transaction; rising. Beyond the last one, all kinds read alike.
    pub by_kind: Vec<(u64, Vec<f64>)>,
    /// Index of the file class that is read.
    pub class: u16,
    /// Bytes of a read.
    pub bytes: u32,
    /// Reads fall anywhere below this offset, with equal probability.
    pub span: u64,
    /// Up to which transaction, and by which factor until then each writes more log than its
    /// template does: whole pages, the first time that one is changed after a checkpoint. Rising;
    /// the last factor holds beyond it.
    pub log: Vec<(u64, f64)>,
}

impl Warming {
    /// Reads that transaction number `number` makes beyond its template's, on average: those that
    /// it waits for, and those ahead.
    pub(super) fn extra(&self, number: u64, kind: u16) -> (f64, f64) {
        let mean = |curve: &[(u64, f64)]| {
            let at = curve.partition_point(|(upto, _)| *upto <= number);
            curve.get(at).map_or(0.0, |(_, reads)| *reads)
        };
        let at = self.by_kind.partition_point(|(upto, _)| *upto <= number);
        let share = self.by_kind.get(at).and_then(|(_, kinds)| kinds.get(usize::from(kind)));
        let share = share.copied().unwrap_or(1.0);
        (mean(&self.extra_reads) * share, mean(&self.extra_ahead) * share)
    }

    /// Factor on the log of transaction number `number`.
    pub(super) fn log(&self, number: u64) -> f64 {
        let at = self.log.partition_point(|(upto, _)| *upto <= number);
        self.log.get(at).or(self.log.last()).map_or(1.0, |(_, factor)| *factor)
    }

    fn check(&self, classes: usize, kinds: usize) -> Result<(), Error> {
        let curves = [&self.extra_reads, &self.extra_ahead, &self.log];
        let rises = curves.iter().all(|curve| curve.windows(2).all(|pair| pair[0].0 < pair[1].0))
            && self.by_kind.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let means = curves.iter().flat_map(|curve| curve.iter().map(|(_, each)| each));
        let shares = self.by_kind.iter().flat_map(|(_, shares)| shares);
        let sound = means.chain(shares).all(|each| each.is_finite() && *each >= 0.0)
            && self.by_kind.iter().all(|(_, shares)| shares.len() == kinds);
        if usize::from(self.class) >= classes || self.bytes == 0 || !rises || !sound {
            return Err(Error::Setup("caches fill in a way that cannot be".to_owned()));
        }
        Ok(())
    }
}

/// Something that goes on beside the transactions: a log writer, a checkpointer, kernel threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Background {
    /// Its name.
    pub name: String,
    /// When its next round begins.
    pub pace: Pace,
    /// What it does, round after round, then the first again.
    pub rounds: Vec<Vec<Step>>,
}

/// When the next round of a background task begins: never before the end of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// At multiples of this many ns.
    Every(u64),
    /// By the number of transactions that have ended.
    Transactions {
        /// Transactions for each round.
        each: f64,
        /// The first ones since the start, which do not count: a buffer that is not full writes no
        /// pages.
        after: u64,
    },
    /// With every request to a device, one at a time.
    Requests,
}

/// How long it is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Length {
    /// Virtual time before the measurement, ns.
    pub warmup_ns: u64,
    /// Virtual time of the measurement, ns.
    pub measure_ns: u64,
    /// The measurement ends earlier after this many transactions.
    pub max_transactions: u64,
}

/// Most keys of all lock classes together.
const MOST_KEYS: u64 = 1 << 26;

impl Setup {
    /// Refuses what cannot be simulated.
    pub fn check(&self, devices: usize) -> Result<(), Error> {
        let bad = |cause: String| Err(Error::Setup(cause));
        if self.terminals == 0 || self.processors.count == 0 {
            return bad("it needs at least one terminal and one processor".to_owned());
        }
        let speed = self.processors.speed;
        if !(speed.is_finite() && speed > 0.0) {
            return bad(format!("a processor speed of {speed} is not above 0"));
        }
        if let Load::Open { per_s } = self.load
            && !(per_s.is_finite() && per_s > 0.0)
        {
            return bad(format!("an arrival rate of {per_s} per second is not above 0"));
        }
        if matches!(self.processors.discipline, Discipline::Fair { slice_ns: 0, .. }) {
            return bad("a slice of processor time is longer than 0".to_owned());
        }
        if self.templates.each.is_empty() {
            return bad("there is no transaction to draw".to_owned());
        }
        let others = self.templates.each.iter().any(|each| Some(each.kind) != self.deferred);
        if matches!(self.load, Load::Closed(think) if think.mean_ns < 1.0) && !others {
            return bad("terminals without think time would ask for ever".to_owned());
        }
        if let Some(class) = self.classes.iter().find(|class| class.device >= devices) {
            return bad(format!("file class {} lies on no device", class.name));
        }
        if usize::from(self.log.class) >= self.classes.len() {
            return bad("the log is in no file class".to_owned());
        }
        if self.log.page_bytes == 0 || self.log.region_bytes < u64::from(self.log.page_bytes) {
            return bad("the log is smaller than one of its pages".to_owned());
        }
        let keys: u64 = self.locks.iter().map(|class| u64::from(class.keys)).sum();
        if self.locks.iter().any(|class| class.keys == 0) || keys > MOST_KEYS {
            return bad(format!("{keys} keys of locks; 1 per class to {MOST_KEYS} can be kept"));
        }
        for background in &self.background {
            if matches!(background.pace, Pace::Every(0)) || background.rounds.is_empty() {
                return bad(format!("background task {} has no pace or no round", background.name));
            }
            self.check_steps(background.rounds.iter().flatten(), false)?;
        }
        if let Some(warming) = &self.warming {
            warming.check(self.classes.len(), self.kinds.len())?;
        }
        for each in &self.templates.each {
            if usize::from(each.kind) >= self.kinds.len() {
                return bad(format!("kind {} of a transaction has no name", each.kind));
            }
            let steps = &self.templates.steps[each.first as usize..each.end as usize];
            self.check_steps(steps.iter(), true)?;
            if steps.iter().all(|step| !step.takes_time()) {
                return bad("a transaction takes no time at all".to_owned());
            }
        }
        Ok(())
    }

    fn check_steps<'a>(
        &self,
        steps: impl Iterator<Item = &'a Step>,
        may_lock: bool,
    ) -> Result<(), Error> {
        let mut last = None;
        for step in steps {
            let class = match *step {
                Step::Read { class, .. }
                | Step::ReadAhead { class, .. }
                | Step::Write { class, .. }
                | Step::Flush { class } => class,
                // Transactions may lock, background tasks may not wait.
                Step::Send { class, .. } if !may_lock => class,
                Step::Send { .. } => {
                    let cause = "transactions wait for what they write".to_owned();
                    return Err(Error::Setup(cause));
                }
                Step::Behind(_) if matches!(self.processors.discipline, Discipline::Sharing) => {
                    let cause = "shared processors compute nothing behind an answer".to_owned();
                    return Err(Error::Setup(cause));
                }
                Step::Lock(class) => {
                    if usize::from(class) >= self.locks.len() || last >= Some(class) || !may_lock {
                        let cause =
                            "locks are taken by transactions, in the order of their classes";
                        return Err(Error::Setup(cause.to_owned()));
                    }
                    last = Some(class);
                    continue;
                }
                _ => continue,
            };
            if usize::from(class) >= self.classes.len() {
                return Err(Error::Setup(format!("a step names file class {class}, of none")));
            }
        }
        Ok(())
    }
}

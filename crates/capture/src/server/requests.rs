//! Requests of a server's clients, from system calls alone: nobody tells a stranger what a
//! transaction is.
//!
//! A session is a task that receives messages. A *request* begins when a message comes in while
//! nothing is being answered, and ends with the last answer before the next message: a statement, a
//! batch, or a procedure call, whatever the client sends before it waits. What is said between the
//! two sides is not looked at, so several statements of one transaction are several requests, the
//! last of which commits.
//!
//! A request *commits* where its task flushed the log within it, or slept until another task's
//! flush of the log had ended (group commit). Where a server flushes its log by writing it
//! (`open_datasync`), no flush of the log is seen at all, and its own write of the log is the sign.
//!
//! Between a request's end and the next one of its session the client thinks. A closed loop's
//! clients think as long as they like; one that keeps to a schedule thinks shorter after a slow
//! answer. The slope of think time on response time tells the two apart: 0 or -1.
//!
//! Assumptions: a thread serves one client at a time (no `pool-of-threads`), and talks to it by
//! `recv` and `send`. Replication's senders are not sessions.
//!
//! Invariant: requests of a task do not overlap, and none begins before the capture. Tested on
//! hand-made sequences; on a real server against its own counters.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use stats::Histogram;
use trace::Op;

use super::class::Class;
use super::logical::Logical;
use super::roles::CONNECTION;
use super::tracker::Turn;
use super::transactions::{Span, TransactionIo, attribute};

/// What requests are called, by [`Span::kind`].
pub const REQUEST_KINDS: [&str; 2] = ["commit", "other"];
const COMMIT: u16 = 0;
const OTHER: u16 = 1;

/// Pairs of response and think time that a slope needs.
const PAIRS: usize = 100;
/// Slopes below this one are those of a schedule.
const SCHEDULED: f64 = -0.5;

/// Requests of the sessions of a capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// Each request, in the order of their starts.
    pub spans: Vec<Span>,
    /// All of them in figures.
    pub summary: RequestSummary,
}

/// Requests in figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestSummary {
    /// How many.
    pub count: u64,
    /// Of these, those that made the log durable.
    pub commits: u64,
    /// Per second.
    pub per_s: f64,
    /// Commits per second.
    pub commits_per_s: f64,
    /// Tasks that served a client.
    pub sessions: u32,
    /// Sessions that were there at a time, on average.
    pub sessions_mean: f64,
    /// Share of the sessions' time in which they worked on a request.
    pub busy_share: f64,
    /// Mean time from an answer to the next message, ns.
    pub think_ns_mean: f64,
    /// How think times follow response times: about 0 in a closed loop, -1 on a schedule. `None`
    /// where there are too few.
    pub think_slope: Option<f64>,
    /// Whether the clients keep to a schedule.
    pub scheduled: bool,
    /// By kind, from the arrival of the message to the end of the answer.
    pub kinds: Vec<RequestKind>,
}

/// Requests of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestKind {
    /// `commit` or `other`.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// Quantiles from the arrival to the answer, ns: p50, p90, p99, p99.9.
    pub response_ns: [u64; 4],
}

/// Finds the requests of a capture that lasted from its origin to `end_ns`.
pub fn requests(logical: &Logical, end_ns: u64) -> Requests {
    let sessions = sessions(logical);
    let commits = Commits::of(logical);
    let mut spans = Vec::new();
    let (mut thinks, mut responses) = (Vec::new(), Vec::new());
    for (task, own) in &sessions {
        for (index, (start_ns, end_ns)) in own.iter().copied().enumerate() {
            let commits = commits.within(*task, start_ns, end_ns);
            let kind = if commits { COMMIT } else { OTHER };
            spans.push(Span { kind, task: *task, start_ns, end_ns });
            if let Some(next) = own.get(index + 1) {
                thinks.push((next.0 - end_ns) as f64);
                responses.push((end_ns - start_ns) as f64);
            }
        }
    }
    spans.sort_by_key(|span| (span.start_ns, span.task));
    let mut summary = summary(&spans, &sessions, (logical.origin_ns, end_ns));
    if thinks.len() >= PAIRS {
        summary.think_slope = slope(&responses, &thinks);
        summary.scheduled = summary.think_slope.is_some_and(|slope| slope < SCHEDULED);
    }
    Requests { spans, summary }
}

impl Requests {
    /// Enters the requests into the trace and sums each up. What did not commit did not wait for
    /// anybody's flush, however many others flushed meanwhile.
    pub fn attribute(&self, logical: &mut Logical) -> Vec<TransactionIo> {
        let mut found = attribute(logical, &self.spans);
        for one in found.iter_mut().filter(|one| one.kind == OTHER) {
            one.gap_ns += std::mem::take(&mut one.shared_commit_ns);
        }
        found
    }
}

/// Start and end of each request by task; only tasks that serve clients.
fn sessions(logical: &Logical) -> BTreeMap<u32, Vec<(u64, u64)>> {
    // Tasks without any I/O are in no role's list; they served whoever sent them something.
    let background: Vec<u32> = logical
        .actors
        .iter()
        .filter(|actor| actor.role != CONNECTION)
        .map(|actor| actor.task)
        .collect();
    let mut turns: BTreeMap<u32, Vec<(u64, bool)>> = BTreeMap::new();
    let mine = |turn: &&Turn| turn.time_ns >= logical.origin_ns && !background.contains(&turn.task);
    for turn in logical.turns.iter().filter(mine) {
        turns.entry(turn.task).or_default().push((turn.time_ns, turn.received));
    }
    let requests = |turns: Vec<(u64, bool)>| {
        let mut found: Vec<(u64, u64)> = Vec::new();
        let (mut asked, mut answered) = (None, None);
        for (time, received) in turns {
            match (received, asked, answered) {
                (true, Some(start), Some(end)) => {
                    found.push((start, end));
                    (asked, answered) = (Some(time), None);
                }
                (true, None, _) => asked = Some(time),
                (false, Some(_), _) => answered = Some(time),
                // A message in several pieces; the answer to one from before the capture.
                (true, Some(_), None) | (false, None, _) => {}
            }
        }
        found.extend(asked.zip(answered));
        found
    };
    let all = turns.into_iter().map(|(task, turns)| (task, requests(turns)));
    all.filter(|(_, requests)| !requests.is_empty()).collect()
}

/// What tells that a request committed.
struct Commits {
    /// Ends of each task's own flushes (or synchronous writes) of the log.
    own: HashMap<u32, Vec<u64>>,
    /// Ends of all of them.
    all: Vec<u64>,
    /// Sleeps of each task.
    sleeps: HashMap<u32, Vec<(u64, u64)>>,
}

impl Commits {
    fn of(logical: &Logical) -> Self {
        let mut made = Self { own: HashMap::new(), all: Vec::new(), sleeps: HashMap::new() };
        let trace = &logical.trace;
        let is_log = |at: usize| trace.stream[at] == Class::Log as u16;
        let flushes = (0..trace.count()).any(|at| is_log(at) && trace.op[at] == Op::Flush);
        let sign = if flushes { Op::Flush } else { Op::Write };
        if let Some((service, chains)) = trace.captured() {
            for at in (0..trace.count()).filter(|&at| is_log(at) && trace.op[at] == sign) {
                let end_ns = logical.origin_ns + trace.due[at] + service[at];
                let task = logical.actors[usize::from(chains.actor[at])].task;
                made.own.entry(task).or_default().push(end_ns);
                made.all.push(end_ns);
            }
        }
        made.all.sort_unstable();
        for sleep in &logical.sleeps {
            made.sleeps.entry(sleep.task).or_default().push((sleep.start_ns, sleep.end_ns));
        }
        made
    }

    fn within(&self, task: u32, start_ns: u64, end_ns: u64) -> bool {
        let any = |list: &[u64], from: u64, to: u64| {
            let first = list.partition_point(|end| *end < from);
            list.get(first).is_some_and(|end| *end <= to)
        };
        if self.own.get(&task).is_some_and(|own| any(own, start_ns, end_ns)) {
            return true;
        }
        let sleeps = self.sleeps.get(&task).map_or(&[][..], Vec::as_slice);
        let first = sleeps.partition_point(|sleep| sleep.0 < start_ns);
        let mine = sleeps[first..].iter().take_while(|sleep| sleep.1 <= end_ns);
        mine.into_iter().any(|(from, to)| any(&self.all, *from, *to))
    }
}

fn summary(
    spans: &[Span],
    sessions: &BTreeMap<u32, Vec<(u64, u64)>>,
    (origin_ns, end_ns): (u64, u64),
) -> RequestSummary {
    let seconds = end_ns.saturating_sub(origin_ns).max(1) as f64 / 1e9;
    let count = spans.len() as u64;
    let mut by_kind = [Histogram::default(), Histogram::default()];
    let mut busy_ns = 0.0;
    for span in spans {
        by_kind[usize::from(span.kind)].record(span.end_ns - span.start_ns);
        busy_ns += (span.end_ns - span.start_ns) as f64;
    }
    let commits = by_kind[usize::from(COMMIT)].count();
    // A session is there from its first message to its last answer, and on to the edge of the
    // capture where that is no further than its pauses are long.
    let there_ns: f64 = sessions.values().map(|own| there_ns(own, origin_ns, end_ns)).sum();
    let kinds = REQUEST_KINDS.iter().zip(&by_kind).filter(|(_, one)| !one.is_empty());
    RequestSummary {
        count,
        commits,
        per_s: count as f64 / seconds,
        commits_per_s: commits as f64 / seconds,
        sessions: sessions.len() as u32,
        sessions_mean: there_ns / 1e9 / seconds,
        busy_share: busy_ns / there_ns.max(1.0),
        think_ns_mean: (there_ns - busy_ns).max(0.0) / (count as f64).max(1.0),
        kinds: kinds
            .map(|(name, one)| RequestKind {
                kind: (*name).to_owned(),
                count: one.count(),
                response_ns: [0.5, 0.9, 0.99, 0.999].map(|q| one.quantile(q)),
            })
            .collect(),
        ..RequestSummary::default()
    }
}

/// How long a session was there.
fn there_ns(own: &[(u64, u64)], origin_ns: u64, end_ns: u64) -> f64 {
    let (Some(first), Some(last)) = (own.first(), own.last()) else { return 0.0 };
    let pauses = own.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].1));
    // Twice the longest pause: the edges of the capture cut pauses at random.
    let patience = 2 * pauses.max().unwrap_or(0);
    let edge = |gap: u64| if gap <= patience { gap } else { 0 };
    let before = edge(first.0.saturating_sub(origin_ns));
    let after = edge(end_ns.saturating_sub(last.1));
    (last.1 - first.0 + before + after) as f64
}

/// Slope of the least-squares line; the longest hundredth of the pauses is left out, for breaks
/// would decide it.
fn slope(x: &[f64], y: &[f64]) -> Option<f64> {
    let mut sorted = y.to_vec();
    sorted.sort_by(f64::total_cmp);
    let longest = sorted[(sorted.len() - 1) * 99 / 100];
    let kept: Vec<usize> = (0..y.len()).filter(|&at| y[at] <= longest).collect();
    let pick = |values: &[f64]| kept.iter().map(|&at| values[at]).collect::<Vec<f64>>();
    stats::regression::line(&pick(x), &pick(y), None).map(|line| line.slope)
}

#[cfg(test)]
mod tests {
    use trace::Request;
    use units::{Bytes, Nanos};

    use super::*;
    use crate::server::logical::Actor;
    use crate::server::tracker::Sleep;

    const ORIGIN: u64 = 1000;
    const END: u64 = ORIGIN + 1_000_000;

    /// Calls as (start, service, task, operation, class); turns as (time, task, received).
    fn logical(calls: &[(u64, u64, u32, Op, Class)], turns: &[(u64, u32, bool)]) -> Logical {
        let role = |task: u32| if task == 9 { "walsender" } else { CONNECTION };
        let actor = |task: u32| Actor { task, process: task, role: role(task).to_owned() };
        let mut made = Logical {
            origin_ns: ORIGIN,
            actors: vec![actor(7), actor(8), actor(9)],
            ..Logical::default()
        };
        for (start, service, task, op, class) in calls {
            let (due, stream) = (Nanos(*start), *class as u16);
            let request = Request { due, offset: Bytes(0), len: 1, op: *op, stream };
            made.trace.push_captured(request, Nanos(*service), (task - 7) as u16, 0);
        }
        let turn = |(time, task, received): &(u64, u32, bool)| Turn {
            time_ns: ORIGIN + time,
            task: *task,
            received: *received,
        };
        made.turns = turns.iter().map(turn).collect();
        made
    }

    /// Kind, task, start and end of each request.
    fn found(logical: &Logical) -> Vec<(u16, u32, u64, u64)> {
        let spans = requests(logical, END).spans;
        let short =
            |span: &Span| (span.kind, span.task, span.start_ns - ORIGIN, span.end_ns - ORIGIN);
        spans.iter().map(short).collect()
    }

    #[test]
    fn a_request_goes_from_its_message_to_its_last_answer() {
        let turns = [
            (5, 7, false),
            (10, 7, true),
            (11, 7, true),
            (20, 7, false),
            (25, 7, false),
            (40, 7, true),
            (50, 7, false),
            // A farewell without an answer, and a sender of the log.
            (90, 7, true),
            (12, 9, true),
            (13, 9, false),
        ];
        assert_eq!(found(&logical(&[], &turns)), [(OTHER, 7, 10, 25), (OTHER, 7, 40, 50)]);
    }

    #[test]
    fn whoever_flushed_the_log_or_slept_through_a_flush_committed() {
        let turns = [
            (10, 7, true),
            (60, 7, false),
            (12, 8, true),
            (62, 8, false),
            (70, 8, true),
            (90, 8, false),
        ];
        let calls = [(20, 30, 7, Op::Flush, Class::Log), (22, 5, 8, Op::Flush, Class::Data)];
        let mut logical = logical(&calls, &turns);
        // The second one waits until 55; later it sleeps for another reason.
        let sleep = |start, end| Sleep { start_ns: ORIGIN + start, end_ns: ORIGIN + end, task: 8 };
        logical.sleeps = vec![sleep(15, 55), sleep(72, 80)];
        let kinds: Vec<u16> = found(&logical).iter().map(|one| one.0).collect();
        assert_eq!(kinds, [COMMIT, COMMIT, OTHER]);
        logical.sleeps = vec![sleep(15, 45)];
        let kinds: Vec<u16> = found(&logical).iter().map(|one| one.0).collect();
        assert_eq!(kinds, [COMMIT, OTHER, OTHER], "it was awake before the flush ended");
    }

    #[test]
    fn what_commits_nothing_waits_for_no_flush() {
        let turns = [(10, 7, true), (90, 7, false), (20, 8, true), (80, 8, false)];
        let mut logical = logical(&[(11, 78, 7, Op::Flush, Class::Log)], &turns);
        let found = requests(&logical, END).attribute(&mut logical);
        let other = found.iter().find(|one| one.task == 8).unwrap();
        assert_eq!((other.kind, other.shared_commit_ns, other.gap_ns), (OTHER, 0, 60));
    }

    #[test]
    fn a_log_that_is_never_flushed_is_made_durable_by_its_writes() {
        let turns = [(10, 7, true), (60, 7, false)];
        let calls = [(20, 30, 7, Op::Write, Class::Log)];
        assert_eq!(found(&logical(&calls, &turns)), [(COMMIT, 7, 10, 60)]);
    }

    #[test]
    fn time_of_sessions_is_work_and_thinking() {
        // Ten requests of 100 ns, one every 1000 ns, over the first 10,000 ns of the capture.
        let turns: Vec<(u64, u32, bool)> =
            (0..10).flat_map(|n| [(n * 1000, 7, true), (n * 1000 + 100, 7, false)]).collect();
        let all = requests(&logical(&[], &turns), ORIGIN + 10_000).summary;
        assert_eq!((all.count, all.commits, all.sessions), (10, 0, 1));
        assert!((all.sessions_mean - 1.0).abs() < 1e-9, "{all:?}");
        assert!((all.busy_share - 0.1).abs() < 1e-9, "{all:?}");
        // Sessions over throughput is response and thinking together.
        let cycle_ns = all.think_ns_mean + 100.0;
        assert!((all.sessions_mean / all.per_s * 1e9 / cycle_ns - 1.0).abs() < 1e-9, "{all:?}");
        assert_eq!(all.kinds[0].response_ns[0], 100);
        assert_eq!(all.think_slope, None, "too few");
    }

    #[test]
    fn a_schedule_is_told_from_a_closed_loop() {
        // Responses of 100 to 790 ns in no order.
        let response = |n: u64| 100 + (n * 7919 % 70) * 10;
        let slope = |think: &dyn Fn(u64) -> u64| {
            let (mut turns, mut at) = (Vec::new(), 0);
            for n in 0..300 {
                turns.extend([(at, 7, true), (at + response(n), 7, false)]);
                at += response(n) + think(n);
            }
            let all = requests(&logical(&[], &turns), ORIGIN + at).summary;
            (all.think_slope.unwrap(), all.scheduled)
        };
        let (closed, scheduled) = slope(&|n| 500 + n * 104_729 % 300);
        assert!(closed.abs() < 0.1 && !scheduled, "{closed}");
        let (paced, scheduled) = slope(&|n| 2000 - response(n));
        assert!((paced + 1.0).abs() < 0.05 && scheduled, "{paced}");
    }
}

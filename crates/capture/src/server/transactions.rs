//! Which I/Os belong to which transaction, and what a transaction's time was spent on.
//!
//! The client knows when each transaction began and ended and which task of the server served it
//! (PostgreSQL tells the number of the backend in its protocol, MariaDB in
//! `information_schema.PROCESSLIST.TID`). A request belongs to the transaction of its task within
//! which it was issued; work that other tasks do on a transaction's behalf (the checkpointer, the
//! page cleaner, a parallel worker) belongs to none.
//!
//! The time of a transaction is split as far as system calls tell:
//!
//! - *service*: within its own reads, writes and flushes;
//! - *client*: from an answer to the next message, and from the transaction's start to its first
//!   message and from its last answer to its end;
//! - *shared commit*: where the transaction flushed no log itself, the piece between its last I/O
//!   and its last answer during which another task flushed the log: group commit;
//! - *gap*: the rest: computing, waiting for locks and for a processor.
//!
//! Where switches between tasks were watched from its start to its end, the time that the task had
//! a processor is known too; it overlaps with the others, since calls compute as well.
//!
//! Invariant: the four add up to the transaction's duration. Tested on hand-made sequences.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use trace::Op;

use super::class::Class;
use super::logical::Logical;

/// One transaction, as its client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which kind of transaction, in the numbering of the client.
    pub kind: u16,
    /// The server's task that served it: process of PostgreSQL, thread of MariaDB.
    pub task: u32,
    /// When it began, ns of CLOCK_MONOTONIC ([`crate::clock_ns`]).
    pub start_ns: u64,
    /// When it had ended.
    pub end_ns: u64,
}

/// What one transaction did on storage, and where its time went, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionIo {
    /// Which kind of transaction, in the numbering of the client.
    pub kind: u16,
    /// Messages of the client; 0 where messages were not watched.
    pub turns: u32,
    /// Number in the trace's `transaction` column, from 1 in the order of the starts.
    pub number: u32,
    /// Its server task.
    pub task: u32,
    /// Start, ns from the start of the trace.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// Reads of its own task.
    pub reads: u32,
    /// Writes of its own task.
    pub writes: u32,
    /// Flushes of its own task.
    pub flushes: u32,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Within its own I/O.
    pub service_ns: u64,
    /// Waiting for the client; 0 where messages were not watched.
    pub client_ns: u64,
    /// Waiting for another task's log flush.
    pub shared_commit_ns: u64,
    /// The rest: computing and waiting for locks and processors.
    pub gap_ns: u64,
    /// Time on a processor; 0 where that was not watched from its start to its end.
    #[serde(default)]
    pub cpu_ns: u64,
    /// Of that, what its client waited for outside of I/O.
    #[serde(default)]
    pub answer_cpu_ns: u64,
    /// When its own log flush ended, ns from the start of the trace: its commit point. `None` where
    /// it flushed none: it wrote nothing, or another task flushed for it.
    pub commit_ns: Option<u64>,
}

/// Enters the transactions into the trace and sums each up. Spans may come in any order; those of
/// one task must not overlap. Spans that begin before the capture are left out.
pub fn attribute(logical: &mut Logical, spans: &[Span]) -> Vec<TransactionIo> {
    let origin = logical.origin_ns;
    let mut spans: Vec<Span> =
        spans.iter().copied().filter(|span| span.start_ns >= origin).collect();
    spans.sort_by_key(|span| (span.start_ns, span.task));
    let tasks = Tasks::of(logical);
    let chains = logical.trace.chains.get_or_insert_default();
    let mut found = Vec::with_capacity(spans.len());
    for (number, span) in (1u32..).zip(&spans) {
        let requests = tasks.requests.get(&span.task).map_or(&[][..], |list| {
            let window = window(list, span, |request| request.start_ns);
            &list[window]
        });
        let turns = tasks.turns.get(&span.task).map_or(&[][..], |list| {
            let window = window(list, span, |turn| turn.0);
            &list[window]
        });
        for request in requests {
            chains.transaction[request.index] = number;
        }
        let mut made = sum(number, span, origin, requests, turns, &tasks.log_flushes);
        if let Some(runs) = tasks.runs.get(&span.task)
            && is_within(&logical.runs_seen, span)
        {
            made.cpu_ns = on_processor(runs, span.start_ns, span.end_ns);
            let waits = waits_of_client(span, turns);
            let behind = waits.map(|(from, to)| on_processor(runs, from, to)).sum::<u64>();
            let calls = requests
                .iter()
                .map(|own| on_processor(runs, own.start_ns, own.end_ns.min(span.end_ns)));
            made.answer_cpu_ns = made.cpu_ns.saturating_sub(behind + calls.sum::<u64>());
        }
        found.push(made);
    }
    found
}

/// One request of a task.
#[derive(Clone, Copy)]
struct Own {
    index: usize,
    start_ns: u64,
    end_ns: u64,
    op: Op,
    len: u32,
    log: bool,
}

/// Requests, client turns and times on a processor by task, and all log flushes; each in the order
/// of time.
#[derive(Default)]
struct Tasks {
    requests: HashMap<u32, Vec<Own>>,
    /// Time, and whether a message came in.
    turns: HashMap<u32, Vec<(u64, bool)>>,
    /// Start and end of each time on a processor.
    runs: HashMap<u32, Vec<(u64, u64)>>,
    /// Start and end.
    log_flushes: Vec<(u64, u64)>,
}

impl Tasks {
    fn of(logical: &Logical) -> Self {
        let mut tasks = Self::default();
        let trace = &logical.trace;
        if let Some((service, chains)) = trace.captured() {
            for (index, request) in trace.requests().enumerate() {
                let start_ns = logical.origin_ns + request.due.0;
                let end_ns = start_ns + service[index];
                let log = request.stream == Class::Log as u16;
                if log && request.op == Op::Flush {
                    tasks.log_flushes.push((start_ns, end_ns));
                }
                let (op, len) = (request.op, request.len);
                let task = logical.actors[usize::from(chains.actor[index])].task;
                let own = Own { index, start_ns, end_ns, op, len, log };
                tasks.requests.entry(task).or_default().push(own);
            }
        }
        for turn in &logical.turns {
            tasks.turns.entry(turn.task).or_default().push((turn.time_ns, turn.received));
        }
        for run in &logical.runs {
            tasks.runs.entry(run.task).or_default().push((run.start_ns, run.end_ns));
        }
        tasks
    }
}

/// The part of a sorted list within a span.
fn window<T>(list: &[T], span: &Span, time: impl Fn(&T) -> u64) -> Range<usize> {
    let begin = list.partition_point(|item| time(item) < span.start_ns);
    let end = list.partition_point(|item| time(item) < span.end_ns);
    begin..end.max(begin)
}

fn sum(
    number: u32,
    span: &Span,
    origin_ns: u64,
    requests: &[Own],
    turns: &[(u64, bool)],
    log_flushes: &[(u64, u64)],
) -> TransactionIo {
    let mut made = TransactionIo {
        number,
        kind: span.kind,
        task: span.task,
        start_ns: span.start_ns - origin_ns,
        duration_ns: span.end_ns - span.start_ns,
        ..TransactionIo::default()
    };
    for own in requests {
        // A request that outlasts its transaction was not waited for by the client.
        made.service_ns += own.end_ns.min(span.end_ns) - own.start_ns;
        match own.op {
            Op::Read => {
                made.reads += 1;
                made.read_bytes += u64::from(own.len);
            }
            Op::Write => {
                made.writes += 1;
                made.written_bytes += u64::from(own.len);
            }
            Op::Flush => made.flushes += 1,
            Op::Trim => {}
        }
        if own.log && own.op == Op::Flush {
            made.commit_ns = Some(own.end_ns - origin_ns);
        }
    }
    (made.client_ns, made.turns) = client_wait(span, turns, requests);
    let left = made.duration_ns - (made.service_ns + made.client_ns).min(made.duration_ns);
    if made.commit_ns.is_none() {
        made.shared_commit_ns = shared(span, requests, turns, log_flushes).min(left);
    }
    made.gap_ns = left - made.shared_commit_ns;
    made
}

/// Whether one of the times contains a span.
fn is_within(times: &[(u64, u64)], span: &Span) -> bool {
    let next = times.partition_point(|time| time.0 <= span.start_ns);
    next.checked_sub(1).is_some_and(|own| span.end_ns <= times[own].1)
}

/// How much of a time lies within times on a processor.
fn on_processor(runs: &[(u64, u64)], from_ns: u64, to_ns: u64) -> u64 {
    let first = runs.partition_point(|run| run.1 <= from_ns);
    let own = runs[first..].iter().take_while(|run| run.0 < to_ns);
    own.map(|run| run.1.min(to_ns).saturating_sub(run.0.max(from_ns))).sum()
}

/// Time during which the task had nothing to answer, and how often it got something. I/O in that
/// time (a log flush that happens behind the answer) is service, not waiting.
fn client_wait(span: &Span, turns: &[(u64, bool)], requests: &[Own]) -> (u64, u32) {
    let (mut waited, mut messages) = (0, 0);
    for (from, to) in waits_of_client(span, turns) {
        let busy = |own: &Own| own.end_ns.min(to).saturating_sub(own.start_ns.max(from));
        waited += (to - from) - requests.iter().map(busy).sum::<u64>().min(to - from);
        messages += u32::from(to < span.end_ns);
    }
    (waited, messages)
}

/// The times from an answer, or the start, to the next message, or the end; none where messages
/// were not watched.
fn waits_of_client(span: &Span, turns: &[(u64, bool)]) -> impl Iterator<Item = (u64, u64)> {
    let (mut waits, mut idle_since) = (Vec::new(), Some(span.start_ns));
    for (time, received) in turns {
        match (received, idle_since) {
            (true, Some(since)) => {
                waits.push((since, *time));
                idle_since = None;
            }
            (false, None) => idle_since = Some(*time),
            // A message in several pieces, an answer in several pieces.
            (true, None) => {}
            (false, Some(since)) => {
                // It went on answering, so it was not idle; the wait begins anew.
                let began = since == span.start_ns;
                idle_since = Some(if began { since } else { *time });
            }
        }
    }
    if let Some(since) = idle_since.filter(|_| !turns.is_empty()) {
        waits.push((since, span.end_ns));
    }
    waits.into_iter()
}

/// Overlap of log flushes of others with the piece between the last I/O (or message) and the last
/// answer; nothing for a transaction that wrote nothing to wait for is told from the outside, so
/// the piece counts for readers too where a flush happens to fall into it.
fn shared(span: &Span, requests: &[Own], turns: &[(u64, bool)], log_flushes: &[(u64, u64)]) -> u64 {
    let answered = turns.iter().rev().find(|turn| !turn.1).map_or(span.end_ns, |turn| turn.0);
    let asked = turns.iter().rev().find(|turn| turn.1 && turn.0 < answered).map(|turn| turn.0);
    let last_io = requests.iter().map(|own| own.end_ns).filter(|end| *end <= answered).max();
    let from = asked.max(last_io).unwrap_or(span.start_ns);
    // Flushes of one log hardly overlap; where they do, the piece counts once.
    let first = log_flushes.partition_point(|flush| flush.1 <= from);
    let (mut covered, mut at) = (0, from);
    for (start, end) in log_flushes[first..].iter().take_while(|flush| flush.0 < answered) {
        let (start, end) = ((*start).max(at), (*end).min(answered));
        covered += end.saturating_sub(start);
        at = at.max(end);
    }
    covered
}

#[cfg(test)]
mod tests {
    use trace::{Request, Trace};
    use units::{Bytes, Nanos};

    use super::*;
    use crate::server::logical::Actor;
    use crate::server::tracker::{OnProcessor, Turn};

    const ORIGIN: u64 = 1000;

    /// Start, service, actor, operation, class.
    fn logical(requests: &[(u64, u64, u16, Op, Class)], turns: &[(u64, u32, bool)]) -> Logical {
        let mut trace = Trace::default();
        for (start, service, actor, op, class) in requests {
            let (due, len) = (Nanos(*start), if *op == Op::Flush { 0 } else { 100 });
            let request = Request { due, offset: Bytes(0), len, op: *op, stream: *class as u16 };
            trace.push_captured(request, Nanos(*service), *actor, 0);
        }
        let actor = |task| Actor { task, process: task, role: "connection".into() };
        let turn = |(time_ns, task, received): &(u64, u32, bool)| Turn {
            time_ns: ORIGIN + time_ns,
            task: *task,
            received: *received,
        };
        Logical {
            trace,
            origin_ns: ORIGIN,
            actors: vec![actor(7), actor(8)],
            turns: turns.iter().map(turn).collect(),
            ..Logical::default()
        }
    }

    fn span(task: u32, start: u64, end: u64) -> Span {
        Span { kind: 3, task, start_ns: ORIGIN + start, end_ns: ORIGIN + end }
    }

    #[test]
    fn requests_go_to_the_transaction_of_their_task_and_time() {
        let requests = [
            (5, 1, 0, Op::Read, Class::Data),
            (10, 5, 0, Op::Read, Class::Data),
            (12, 5, 1, Op::Write, Class::Data),
            (30, 20, 0, Op::Flush, Class::Log),
            (70, 5, 0, Op::Read, Class::Data),
        ];
        let mut logical = logical(&requests, &[]);
        let spans = [span(7, 60, 90), span(7, 10, 60), span(8, 11, 20)];
        let found = attribute(&mut logical, &spans);
        assert_eq!(logical.trace.chains.as_ref().unwrap().transaction, [0, 1, 2, 1, 3]);
        assert_eq!(found.iter().map(|one| one.number).collect::<Vec<_>>(), [1, 2, 3]);
        let first = found[0];
        assert_eq!((first.reads, first.flushes, first.read_bytes), (1, 1, 100));
        assert_eq!((first.service_ns, first.gap_ns, first.commit_ns), (25, 25, Some(50)));
        assert_eq!(found[1].written_bytes, 100);
    }

    #[test]
    fn time_on_a_processor_is_that_within_the_transaction() {
        let mut logical = logical(&[], &[]);
        let run = |start: u64, end: u64, task| OnProcessor {
            start_ns: ORIGIN + start,
            end_ns: ORIGIN + end,
            task,
        };
        logical.runs = vec![run(2, 9, 7), run(5, 90, 8), run(20, 30, 7), run(35, 60, 7)];
        logical.runs_seen = vec![(0, ORIGIN + 50), (ORIGIN + 65, ORIGIN + 90)];
        let spans = [
            span(9, 0, 50),
            span(7, 5, 40),
            span(7, 41, 50),
            // Nobody watched when it began, when it ended, and in between.
            span(8, 60, 80),
            span(8, 70, 95),
            span(8, 45, 70),
            span(8, 80, 90),
        ];
        let found = attribute(&mut logical, &spans);
        assert!(found.iter().all(|one| one.answer_cpu_ns == one.cpu_ns), "nobody else waited");
        let found: Vec<(u64, u64)> = found.iter().map(|one| (one.start_ns, one.cpu_ns)).collect();
        let expected = [(0, 0), (5, 4 + 10 + 5), (41, 9), (45, 0), (60, 0), (70, 0), (80, 10)];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_client_waits_for_what_is_computed_between_message_and_answer_outside_of_calls() {
        // Message at 5, read 10..20, answer 25, message 40, answer 60, the end at 70.
        let turns = [(5, 7, true), (25, 7, false), (40, 7, true), (60, 7, false)];
        let mut logical = logical(&[(10, 10, 0, Op::Read, Class::Data)], &turns);
        let run = |start: u64, end: u64| OnProcessor {
            start_ns: ORIGIN + start,
            end_ns: ORIGIN + end,
            task: 7,
        };
        // Reading sleeps from 12 to 18; what comes after the answers delays nobody.
        logical.runs = vec![run(3, 12), run(18, 33), run(38, 64)];
        logical.runs_seen = vec![(0, ORIGIN + 100)];
        let found = attribute(&mut logical, &[span(7, 0, 70)])[0];
        assert_eq!(found.cpu_ns, 9 + 15 + 26);
        assert_eq!(found.answer_cpu_ns, (10 - 5) + (25 - 20) + (60 - 40));
    }

    #[test]
    fn the_four_parts_add_up() {
        // Message at 5, read 10..20, answer 25, message 40, answer 100 while 8 flushes 50..80.
        let requests = [(10, 10, 0, Op::Read, Class::Data), (50, 30, 1, Op::Flush, Class::Log)];
        let turns = [(5, 7, true), (25, 7, false), (40, 7, true), (100, 7, false)];
        let mut logical = logical(&requests, &turns);
        let found = attribute(&mut logical, &[span(7, 0, 110)])[0];
        assert_eq!(found.service_ns, 10);
        assert_eq!(found.client_ns, 5 + 15 + 10);
        assert_eq!(found.shared_commit_ns, 30);
        assert_eq!(found.gap_ns, 110 - 10 - 30 - 30);
    }

    #[test]
    fn pieces_of_messages_and_answers_are_one() {
        let turns = [(5, 7, true), (6, 7, true), (20, 7, false), (22, 7, false), (30, 7, true)];
        let mut logical = logical(&[], &turns);
        let found = attribute(&mut logical, &[span(7, 0, 40)])[0];
        assert_eq!(found.client_ns, 5 + 8, "5 to the first message, 22 to 30");
        assert_eq!((found.turns, found.kind), (2, 3));
        assert_eq!(found.gap_ns, 40 - 13);
    }

    #[test]
    fn spans_from_before_the_capture_and_requests_that_outlast_theirs() {
        let mut logical = logical(&[(10, 50, 0, Op::Write, Class::Data)], &[]);
        let early = Span { start_ns: ORIGIN - 1, ..span(7, 0, 100) };
        assert_eq!(attribute(&mut logical, &[early]), []);
        let found = attribute(&mut logical, &[span(7, 0, 40)])[0];
        assert_eq!((found.service_ns, found.gap_ns), (30, 10));
    }
}

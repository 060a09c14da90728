//! What the disk reads from the moment a load begins: on caches that are empty, more than later.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use capture::diskstats::DiskCounter;
use capture::server::{Class, Logical, Options, Server, ServerCapture, Span, attribute};
use dbms::statistics::LogPosition;
use predict::KindReads;
use serde::{Deserialize, Serialize};
use trace::Op;

/// Time between two looks: the intervals in which a run counts its transactions.
const INTERVAL: Duration = Duration::from_millis(100);

/// Transactions of the first stretch in which kinds are told apart; each further one is as long as
/// all before it, because what is missing in a cache gets less and less.
const STRETCH: usize = 64;

/// Reads of the disk below the data files since the load began, whoever asked for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartReads {
    /// Reads since the start, at the end of each tenth of a second.
    pub reads: Vec<u64>,
    /// Their bytes.
    pub read_bytes: Vec<u64>,
    /// How long they took, summed, ms.
    #[serde(default)]
    pub read_ms: Vec<u64>,
    /// Bytes of log since the start, at the same moments; empty where the server does not tell.
    #[serde(default)]
    pub log_bytes: Vec<u64>,
    /// Bytes of log that could be inserted at the start before a new segment had to be filled.
    #[serde(default)]
    pub log_ready: Option<u64>,
    /// Reads of the warm-up by kind of transaction.
    pub by_kind: Vec<KindReads>,
}

/// Looks at the disk and at the server's calls beside a load.
pub(super) struct StartWatch {
    started: Instant,
    ended: Arc<AtomicBool>,
    disk: JoinHandle<StartReads>,
    calls: Option<ServerCapture>,
    /// The calls of the warm-up, and how long it was.
    warmed_up: Option<(JoinHandle<Logical>, Duration)>,
}

impl StartWatch {
    /// Begins; `None` where the file system lies on no disk that can be seen.
    pub(super) fn begin(
        server: Option<&Server>,
        mut log: Option<LogPosition>,
        data: &Path,
    ) -> Option<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let options = Options { client_turns: false, waits: false, processors: false };
        let calls = server.and_then(|server| ServerCapture::start(server, options).ok());
        let log_ready = log.as_mut().and_then(|log| log.ready_bytes().ok());
        let mut position = move || log.as_mut()?.bytes().ok();
        let first = position();
        // Last of all: the load begins when this returns.
        let counter = DiskCounter::start(data).ok()?;
        let started = Instant::now();
        let disk = std::thread::spawn(move || {
            let mut found = StartReads { log_ready, ..StartReads::default() };
            for number in 1u32.. {
                let until = started + INTERVAL * number;
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
                let Ok(so_far) = counter.so_far() else { break };
                found.reads.push(so_far.reads);
                found.read_bytes.push(so_far.read_sectors * 512);
                found.read_ms.push(so_far.read_ms);
                // Once it does not answer, what follows would stand at the wrong moments.
                if found.log_bytes.len() + 1 == found.reads.len()
                    && let Some((first, now)) = first.zip(position())
                {
                    found.log_bytes.push(now - first);
                }
                if seen.load(Ordering::Relaxed) {
                    break;
                }
            }
            found
        });
        Some(Self { started, ended, disk, calls, warmed_up: None })
    }

    /// The measurement begins, and watches the calls itself.
    pub(super) fn warmed_up(&mut self) {
        self.warmed_up = self.calls.take().map(|calls| {
            // It is brought to an end beside the load, which must not wait.
            (std::thread::spawn(|| calls.finish()), self.started.elapsed())
        });
    }

    /// Ends it; `spans` are the transactions of the warm-up, of kinds below `kinds`.
    pub(super) fn finish(self, spans: &[Span], kinds: usize) -> Option<StartReads> {
        self.ended.store(true, Ordering::Relaxed);
        let mut found = self.disk.join().ok().filter(|found| !found.reads.is_empty())?;
        if let Some((calls, time)) = self.warmed_up
            && let Ok(logical) = calls.join()
        {
            let looks = (time.as_millis() / INTERVAL.as_millis()) as usize;
            let by_then = |seen: &[u64]| seen.get(looks.saturating_sub(1)).copied().unwrap_or(0);
            let of_disk = (by_then(&found.reads), by_then(&found.read_ms));
            found.by_kind = by_kind(logical, spans, kinds, of_disk);
        }
        Some(found)
    }
}

/// Reads of data files that the disk served and a transaction waited for, by stretch and kind: the
/// slowest calls, at most as many as the disk counted, without those too short to have waited.
fn by_kind(
    mut logical: Logical,
    spans: &[Span],
    kinds: usize,
    (of_disk, disk_ms): (u64, u64),
) -> Vec<KindReads> {
    let waits_from_ns = predict::waits_from_ns(disk_ms as f64 * 1e6 / of_disk.max(1) as f64);
    let each = attribute(&mut logical, spans);
    let trace = &logical.trace;
    let Some((service, chains)) = trace.captured() else { return Vec::new() };
    let is_data = |at: &usize| trace.stream[*at] == Class::Data as u16 && trace.op[*at] == Op::Read;
    let mut reads: Vec<usize> = (0..trace.count()).filter(is_data).collect();
    reads.sort_by_key(|at| std::cmp::Reverse(service[*at]));
    reads.truncate(of_disk as usize);
    reads.retain(|at| service[*at] >= waits_from_ns);
    let mut own = vec![0u64; each.len()];
    for at in reads {
        if let Some(index) = (chains.transaction[at] as usize).checked_sub(1) {
            own[index] += 1;
        }
    }
    let mut found: Vec<KindReads> = Vec::new();
    let (mut from, mut upto) = (0, STRETCH);
    while from < each.len() {
        let end = upto.min(each.len());
        let mut stretch = KindReads { upto: end as u64, kinds: vec![(0, 0); kinds] };
        for (one, reads) in each[from..end].iter().zip(&own[from..end]) {
            let (count, sum) = &mut stretch.kinds[usize::from(one.kind)];
            (*count, *sum) = (*count + 1, *sum + reads);
        }
        found.push(stretch);
        (from, upto) = (end, 2 * upto);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use capture::server::Actor;
    use trace::{Request, Stream};
    use units::{Bytes, Nanos};

    use super::*;

    /// A file of 8 MiB that is not in the page cache is read while the disk is watched.
    #[test]
    fn reads_are_counted_from_the_start() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![7; 8 << 20]).unwrap();
        let file = fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let Some(watch) = StartWatch::begin(None, None, dir.path()) else {
            return println!("skipped: the file system lies on no disk that can be seen");
        };
        fs::read(&path).unwrap();
        let found = watch.finish(&[], 0).unwrap();
        assert_eq!(found.reads.len(), found.read_bytes.len());
        assert!(found.read_bytes.is_sorted() && found.reads.is_sorted());
        assert!(*found.read_bytes.last().unwrap() >= 8 << 20, "{found:?}");
    }

    /// 200 transactions of two kinds on one task: those of kind 1 make two reads each, which the
    /// disk serves in the first hundred, the second one ahead of need.
    #[test]
    fn what_the_disk_served_is_told_by_kind_and_stretch() {
        let mut logical = Logical::default();
        let role = capture::server::CONNECTION.to_owned();
        logical.actors.push(Actor { task: 7, process: 7, role });
        let streams = Class::ALL.iter().map(|class| Stream { name: class.name().to_owned() });
        logical.trace.streams = streams.collect();
        let (mut spans, mut of_disk) = (Vec::new(), 0);
        for number in 0..200u64 {
            let (start_ns, kind) = (number * 1_000_000, u16::from(number % 4 == 0));
            spans.push(Span { kind, task: 7, start_ns, end_ns: start_ns + 900_000 });
            if kind == 1 {
                let due = Nanos(start_ns + 100_000);
                let stream = Class::Data as u16;
                let read = Request { due, offset: Bytes(0), len: 8192, op: Op::Read, stream };
                let slow = if number < 100 { 400_000 } else { 6_000 };
                of_disk += 2 * u64::from(number < 100);
                logical.trace.push_captured(read, Nanos(slow), 0, 0);
                logical.trace.push_captured(read, Nanos(5_000), 0, 0);
            }
        }
        let found = by_kind(logical, &spans, 2, (of_disk, of_disk * 4 / 10));
        let stretch = |upto, kinds: [(u64, u64); 2]| KindReads { upto, kinds: kinds.to_vec() };
        let expected = [
            stretch(64, [(48, 0), (16, 16)]),
            stretch(128, [(48, 0), (16, 9)]),
            stretch(200, [(54, 0), (18, 0)]),
        ];
        assert_eq!(found, expected);
    }
}

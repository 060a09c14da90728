//! Reading events of the block layer: gigabytes and events per second, beside blkparse itself.
//!
//! The input is what the tracer writes for a device under load: five events per request (queued,
//! allocated, inserted, issued, completed), 32 requests in flight, completions out of order. Bytes
//! come from memory, so that the reader is measured and not the page cache; blkparse reads its
//! file.

use std::io::Cursor;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use formats::{Format, ReadOptions, read_from};

const REQUESTS: u64 = 400_000;
const DEPTH: u64 = 32;

/// (time, action code, letter) of each event of a request.
const STEPS: [(u64, u32, char); 5] =
    [(0, 1, 'Q'), (300, 4, 'G'), (700, 12, 'I'), (1500, 7, 'D'), (0, 8, 'C')];

struct Event {
    time_ns: u64,
    action: u32,
    letter: char,
    sector: u64,
    write: bool,
}

/// Events in the order of time. Requests arrive each 10 us; service times differ by a factor of 10.
fn events() -> Vec<Event> {
    let mut events = Vec::new();
    let mut random = 1u64;
    for request in 0..REQUESTS {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (sector, write) = ((random >> 34) * 8, (random >> 33).is_multiple_of(4));
        let start = request * 10_000;
        let service = 20_000 + (random >> 13) % (DEPTH * 2 * 10_000);
        for (after, action, letter) in STEPS {
            let time_ns = start + if letter == 'C' { 1500 + service } else { after };
            events.push(Event { time_ns, action, letter, sector, write });
        }
    }
    events.sort_by_key(|event| event.time_ns);
    events
}

fn binary(events: &[Event]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(events.len() * 48);
    for (index, event) in events.iter().enumerate() {
        let kind = if event.write { 2 << 16 } else { 1 << 16 };
        bytes.extend(0x6561_7407u32.to_le_bytes());
        bytes.extend((index as u32).to_le_bytes());
        bytes.extend([event.time_ns, event.sector].map(u64::to_le_bytes).concat());
        let words = [4096, event.action | kind, 1234, 259 << 20, index as u32 & 1, 0];
        bytes.extend(words.map(u32::to_le_bytes).concat());
    }
    bytes
}

fn text(events: &[Event]) -> Vec<u8> {
    let mut text = String::new();
    for (index, event) in events.iter().enumerate() {
        let (seconds, nanos) = (event.time_ns / 1_000_000_000, event.time_ns % 1_000_000_000);
        let (letter, sector, pid) = (event.letter, event.sector, 1234);
        let rwbs = if event.write { "WS" } else { "R" };
        let tail = if letter == 'C' { "0" } else { "postgres" };
        let cpu = index % 2;
        text += &format!(
            "259,0  {cpu:3} {index:8} {seconds:5}.{nanos:09} {pid:5} {letter:>2} {rwbs:>3} \
             {sector} + 8 [{tail}]\n"
        );
    }
    text.into_bytes()
}

fn read(bytes: &Cursor<&'static [u8]>, format: Format) {
    let options = ReadOptions::default();
    let (trace, _) = read_from(bytes.clone(), Path::new("bench"), format, &options).expect("reads");
    assert_eq!(trace.count() as u64, REQUESTS);
}

fn formats(criterion: &mut Criterion) {
    let events = events();
    let count = events.len();
    for (format, bytes) in [(Format::Blktrace, binary(&events)), (Format::Blkparse, text(&events))]
    {
        let bytes: &'static [u8] = bytes.leak();
        let per_event = bytes.len() as f64 / count as f64;
        println!("{}: {count} events of {per_event:.1} bytes", format.name());
        let mut group = criterion.benchmark_group(format.name());
        group.sample_size(15).throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("read", |bencher| {
            bencher.iter_custom(|times| {
                let start = cpu_time();
                for _ in 0..times {
                    read(&Cursor::new(bytes), format);
                }
                cpu_time().saturating_sub(start)
            });
        });
        group.finish();
        if format == Format::Blktrace {
            blkparse(bytes, count);
        }
    }
}

/// Processor time of this thread, so that other load does not count; wall time where the kernel
/// does not say.
fn cpu_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = schedule.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// The program itself, without and with its output.
fn blkparse(bytes: &[u8], count: usize) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("bench.blktrace.0");
    std::fs::write(&path, bytes).expect("written");
    for (what, quiet) in [("blkparse to text", false), ("blkparse without output", true)] {
        let mut command = Command::new("blkparse");
        command.arg("-i").arg("bench").current_dir(directory.path()).stdout(Stdio::null());
        if quiet {
            command.args(["-O", "-q"]);
        }
        let start = Instant::now();
        let Ok(status) = command.stderr(Stdio::null()).status() else {
            println!("{what}: skipped: there is no blkparse (package blktrace)");
            return;
        };
        let seconds = start.elapsed().as_secs_f64();
        let (rate, size) = (count as f64 / seconds / 1e6, bytes.len() as f64 / seconds / 1e6);
        println!("{what}: {rate:.2} M events/s, {size:.0} MB/s of its input ({status})");
    }
}

criterion_group!(benches, formats);
criterion_main!(benches);

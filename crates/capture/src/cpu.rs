//! Where processor time went while a load ran: user, system, wait; ours and everybody else's.
//!
//! A background thread reads the kernel's counters several times a second: `getrusage` and
//! `/proc/self/task/*/schedstat` for this process, `/proc/stat` and `/proc/pressure/*` for the
//! machine (proc(5), Documentation/accounting/psi.rst). The split is that of the 2007 paper's
//! figures 4 and 5.
//!
//! Two cautions. The machine's `iowait` counts only processors that had nothing else to do, so it
//! reads zero on a busy machine however long transactions wait; the process's own block I/O delay
//! is the better figure and needs delay accounting (`sysctl kernel.task_delayacct=1`). And threads
//! that end between two samples take their last piece of run-queue wait with them.
//!
//! Tested: each parser on fixture text, and a busy loop that must show as our user time.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::now_ns;

/// Time between two samples.
const PERIOD: Duration = Duration::from_millis(200);

/// Processor time of the whole machine, summed over processors, seconds since boot or over an
/// interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineCpu {
    /// In user mode, niced or not, guests included.
    pub user_s: f64,
    /// In the kernel, interrupts excluded.
    pub system_s: f64,
    /// In hard and soft interrupts.
    pub interrupt_s: f64,
    /// Idle while I/O that was started on the processor is outstanding.
    pub io_wait_s: f64,
    /// Idle otherwise.
    pub idle_s: f64,
    /// Taken by the hypervisor.
    pub steal_s: f64,
}

/// Processor time of this process, seconds since its start or over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessCpu {
    /// In user mode.
    pub user_s: f64,
    /// In the kernel on its behalf.
    pub system_s: f64,
    /// Ready to run, but waiting for a processor, summed over threads.
    pub run_queue_wait_s: f64,
    /// Waiting for block I/O, summed over threads; `None` where delay accounting is off.
    pub io_wait_s: Option<f64>,
    /// Times a thread blocked (mostly I/O and locks).
    pub voluntary_switches: u64,
    /// Times a thread was taken off its processor.
    pub involuntary_switches: u64,
}

/// Time during which some task of the machine was held up (pressure stall information), seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// For lack of a processor.
    pub cpu_some_s: f64,
    /// For I/O, at least one task.
    pub io_some_s: f64,
    /// For I/O, all tasks that were not idle at once.
    pub io_full_s: f64,
}

/// What happened between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuPoint {
    /// End of the interval, seconds from the start of the series.
    pub at_s: f64,
    /// Its length, seconds.
    pub length_s: f64,
    /// The machine.
    pub machine: MachineCpu,
    /// This process.
    pub process: ProcessCpu,
    /// Pressure of the machine; `None` where the kernel does not tell.
    pub pressure: Option<Pressure>,
}

/// A load's processor time over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuSeries {
    /// Processors of the machine that are online.
    pub processors: u32,
    /// CLOCK_MONOTONIC at the start of the series, ns; lines it up with the traces.
    pub origin_monotonic_ns: u64,
    /// One point per interval, in order.
    pub points: Vec<CpuPoint>,
    /// The whole series as one interval.
    pub total: CpuPoint,
    /// Share of the machine's processor time that others used or took (steal), 0 to 1.
    pub foreign_share: f64,
    /// What could not be had, one sentence each.
    pub unavailable: Vec<String>,
}

/// Counters at one moment.
#[derive(Clone, Debug, Default)]
struct Reading {
    at_ns: u64,
    machine: MachineCpu,
    process: ProcessCpu,
    pressure: Option<Pressure>,
}

/// A running series.
pub struct CpuSampler {
    stop: Sender<()>,
    thread: JoinHandle<Samples>,
}

struct Samples {
    readings: Vec<Reading>,
    unavailable: Vec<String>,
}

impl CpuSampler {
    /// Starts sampling in a thread of its own, five times a second.
    pub fn start() -> Self {
        let (stop, stopped) = channel();
        let mut reader = Reader::default();
        let first = reader.read();
        let thread = std::thread::Builder::new()
            .name("cpu-sampler".to_owned())
            .spawn(move || sample(reader, first, &stopped))
            .expect("a thread can be started");
        Self { stop, thread }
    }

    /// Stops and returns the series.
    pub fn finish(self) -> CpuSeries {
        let _ = self.stop.send(());
        let samples = self.thread.join().expect("the sampler does not panic");
        series(&samples)
    }
}

fn sample(mut reader: Reader, first: Reading, stopped: &Receiver<()>) -> Samples {
    let mut readings = vec![first];
    loop {
        let ends = stopped.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout);
        readings.push(reader.read());
        if ends {
            return Samples { readings, unavailable: reader.unavailable };
        }
    }
}

fn series(samples: &Samples) -> CpuSeries {
    let [first, .., last] = &samples.readings[..] else { return CpuSeries::default() };
    let point = |from: &Reading, to: &Reading| CpuPoint {
        at_s: (to.at_ns - first.at_ns) as f64 / 1e9,
        length_s: (to.at_ns - from.at_ns) as f64 / 1e9,
        machine: to.machine.since(from.machine),
        process: to.process.since(from.process),
        pressure: to.pressure.zip(from.pressure).map(|(to, from)| to.since(from)),
    };
    let total = point(first, last);
    CpuSeries {
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        origin_monotonic_ns: first.at_ns,
        points: samples.readings.windows(2).map(|pair| point(&pair[0], &pair[1])).collect(),
        foreign_share: foreign_share(&total),
        total,
        unavailable: samples.unavailable.clone(),
    }
}

/// Share of all processor time that was busy, or stolen, but not for this process.
fn foreign_share(total: &CpuPoint) -> f64 {
    let machine = &total.machine;
    let busy = machine.busy_s();
    let all = busy + machine.io_wait_s + machine.idle_s;
    let own = total.process.user_s + total.process.system_s;
    if all > 0.0 { ((busy - own) / all).clamp(0.0, 1.0) } else { 0.0 }
}

impl MachineCpu {
    /// Seconds since boot; `None` where `/proc` does not tell.
    pub fn read() -> Option<Self> {
        parse_stat(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Time in which processors computed, ours or taken by the hypervisor.
    pub fn busy_s(self) -> f64 {
        self.user_s + self.system_s + self.interrupt_s + self.steal_s
    }

    fn since(self, earlier: Self) -> Self {
        // The kernel's io_wait may step back by a tick; an interval is never negative.
        let grown = |now: f64, before: f64| (now - before).max(0.0);
        Self {
            user_s: grown(self.user_s, earlier.user_s),
            system_s: grown(self.system_s, earlier.system_s),
            interrupt_s: grown(self.interrupt_s, earlier.interrupt_s),
            io_wait_s: grown(self.io_wait_s, earlier.io_wait_s),
            idle_s: grown(self.idle_s, earlier.idle_s),
            steal_s: grown(self.steal_s, earlier.steal_s),
        }
    }
}

impl ProcessCpu {
    fn since(self, earlier: Self) -> Self {
        let grown = |now: f64, before: f64| (now - before).max(0.0);
        Self {
            user_s: grown(self.user_s, earlier.user_s),
            system_s: grown(self.system_s, earlier.system_s),
            run_queue_wait_s: grown(self.run_queue_wait_s, earlier.run_queue_wait_s),
            io_wait_s: self.io_wait_s.zip(earlier.io_wait_s).map(|(now, then)| grown(now, then)),
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
        }
    }
}

impl Pressure {
    fn since(self, earlier: Self) -> Self {
        Self {
            cpu_some_s: self.cpu_some_s - earlier.cpu_some_s,
            io_some_s: self.io_some_s - earlier.io_some_s,
            io_full_s: self.io_full_s - earlier.io_full_s,
        }
    }
}

/// Reads the counters, and remembers what is not available.
#[derive(Default)]
struct Reader {
    /// Run-queue wait and I/O wait seen last of each thread, ns; kept when a thread ends.
    threads: HashMap<String, (u64, u64)>,
    unavailable: Vec<String>,
}

impl Reader {
    fn read(&mut self) -> Reading {
        let at_ns = now_ns();
        let machine = self.file("/proc/stat", parse_stat).unwrap_or_default();
        let process = self.process();
        let cpu = self.file("/proc/pressure/cpu", |text| parse_pressure(text, "some"));
        let io = self.file("/proc/pressure/io", |text| {
            parse_pressure(text, "some").zip(parse_pressure(text, "full"))
        });
        let pressure = cpu.zip(io).map(|(cpu_some_s, (io_some_s, io_full_s))| Pressure {
            cpu_some_s,
            io_some_s,
            io_full_s,
        });
        Reading { at_ns, machine, process, pressure }
    }

    fn file<T>(&mut self, path: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let parsed = std::fs::read_to_string(path).ok().and_then(|text| parse(&text));
        if parsed.is_none() {
            self.miss(format!("{path} is missing or not as documented"));
        }
        parsed
    }

    fn miss(&mut self, what: String) {
        if !self.unavailable.contains(&what) {
            self.unavailable.push(what);
        }
    }

    fn process(&mut self) -> ProcessCpu {
        // SAFETY: plain old data, filled by the call below.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a whole rusage; RUSAGE_SELF cannot fail.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        let accounting = std::fs::read_to_string("/proc/sys/kernel/task_delayacct");
        let delays = accounting.is_ok_and(|text| text.trim() == "1");
        if !delays {
            self.miss(
                "I/O wait of own threads needs delay accounting: \
                 'sysctl kernel.task_delayacct=1' as root"
                    .to_owned(),
            );
        }
        self.threads();
        let sum = |part: fn(&(u64, u64)) -> u64| self.threads.values().map(part).sum::<u64>();
        ProcessCpu {
            user_s: seconds(usage.ru_utime),
            system_s: seconds(usage.ru_stime),
            run_queue_wait_s: sum(|(queue, _)| *queue) as f64 / 1e9,
            io_wait_s: delays.then(|| sum(|(_, io)| *io) as f64 / 1e9),
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }

    fn threads(&mut self) {
        let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
            return self.miss("/proc/self/task cannot be read".to_owned());
        };
        for task in tasks.flatten() {
            let read = |name| std::fs::read_to_string(task.path().join(name)).ok();
            // A thread may end at any moment: then its last values stay.
            let Some(wait) = read("schedstat").as_deref().and_then(parse_schedstat) else {
                continue;
            };
            let delay = read("stat").as_deref().and_then(parse_io_delay).unwrap_or(0);
            let name = task.file_name().to_string_lossy().into_owned();
            self.threads.insert(name, (wait, delay));
        }
        if self.threads.is_empty() {
            self.miss("run-queue wait needs a kernel with CONFIG_SCHED_INFO".to_owned());
        }
    }
}

/// Clock ticks per second, the unit of `/proc/stat`.
pub(crate) fn ticks_per_s() -> f64 {
    // SAFETY: a plain query.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64
}

/// The machine's line of `/proc/stat`.
fn parse_stat(text: &str) -> Option<MachineCpu> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let at = |index: usize| ticks.get(index).copied().map(|count| count / ticks_per_s());
    // Guest time (fields 9 and 10) is contained in user and nice.
    Some(MachineCpu {
        user_s: at(0)? + at(1)?,
        system_s: at(2)?,
        idle_s: at(3)?,
        io_wait_s: at(4).unwrap_or(0.0),
        interrupt_s: at(5).unwrap_or(0.0) + at(6).unwrap_or(0.0),
        steal_s: at(7).unwrap_or(0.0),
    })
}

/// Seconds of the `total=` (microseconds) on the line that begins with `kind`.
fn parse_pressure(text: &str, kind: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.split(' ').next() == Some(kind))?;
    let total = line.split(' ').find_map(|word| word.strip_prefix("total="))?;
    Some(total.parse::<u64>().ok()? as f64 / 1e6)
}

/// Run-queue wait of a thread, ns: the second number of `schedstat`.
fn parse_schedstat(text: &str) -> Option<u64> {
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Block I/O delay of a thread, ns: field 42 of `stat`, in clock ticks. Field 2, the name, may
/// hold spaces and parentheses.
fn parse_io_delay(text: &str) -> Option<u64> {
    let rest = &text[text.rfind(')')? + 1..];
    let ticks: u64 = rest.split_whitespace().nth(42 - 3)?.parse().ok()?;
    Some((ticks as f64 / ticks_per_s() * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_line_of_stat() {
        let text = "cpu  100 20 300 4000 50 6 7 8 90 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nintr 5\n";
        let per_s = ticks_per_s();
        let cpu = parse_stat(text).unwrap();
        assert_eq!(cpu.user_s, 100.0 / per_s + 20.0 / per_s);
        assert_eq!((cpu.system_s, cpu.idle_s), (300.0 / per_s, 4000.0 / per_s));
        assert_eq!((cpu.io_wait_s, cpu.steal_s), (50.0 / per_s, 8.0 / per_s));
        assert_eq!(cpu.interrupt_s, 6.0 / per_s + 7.0 / per_s);
        assert_eq!(parse_stat("cpu0 1 2 3 4"), None);
        assert_eq!(parse_stat("cpu  1 2 x"), None);
        assert!(parse_stat("cpu  1 2 3 4").is_some(), "an old kernel without the later fields");
    }

    #[test]
    fn pressure_lines() {
        let text = "some avg10=0.98 avg60=0.79 avg300=0.73 total=11146185\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=25\n";
        assert_eq!(parse_pressure(text, "some"), Some(11.146185));
        assert_eq!(parse_pressure(text, "full"), Some(0.000025));
        assert_eq!(parse_pressure("some avg10=0.98\n", "some"), None);
        assert_eq!(parse_pressure("", "some"), None);
    }

    #[test]
    fn thread_files() {
        assert_eq!(parse_schedstat("261654 25560 2\n"), Some(25560));
        assert_eq!(parse_schedstat("261654"), None);
        let mut fields = vec!["1".to_owned(), "(a) b (c)".to_owned(), "R".to_owned()];
        fields.extend((4..=44).map(|field| field.to_string()));
        let expected = (42.0 / ticks_per_s() * 1e9) as u64;
        assert_eq!(parse_io_delay(&fields.join(" ")), Some(expected));
        assert_eq!(parse_io_delay("1 (a) R 4 5"), None);
        assert_eq!(parse_io_delay("no parenthesis"), None);
    }

    #[test]
    fn foreign_share_leaves_out_our_own() {
        let machine =
            MachineCpu { user_s: 3.0, system_s: 1.0, idle_s: 6.0, ..MachineCpu::default() };
        let process = ProcessCpu { user_s: 1.5, system_s: 0.5, ..ProcessCpu::default() };
        let total = CpuPoint { machine, process, ..CpuPoint::default() };
        assert!((foreign_share(&total) - 0.2).abs() < 1e-12);
        assert_eq!(foreign_share(&CpuPoint::default()), 0.0);
    }

    #[test]
    fn a_busy_loop_is_our_user_time() {
        let sampler = CpuSampler::start();
        let begin = ProcessCpu { ..Reader::default().process() };
        let mut value = 1u64;
        while Reader::default().process().user_s - begin.user_s < 0.3 {
            for _ in 0..1_000_000 {
                value = std::hint::black_box(value.wrapping_mul(6364136223846793005) + 1);
            }
        }
        let series = sampler.finish();
        assert!(series.total.process.user_s >= 0.3, "{:?}", series.total);
        let sum: f64 = series.points.iter().map(|point| point.process.user_s).sum();
        assert!((sum - series.total.process.user_s).abs() < 1e-6);
        let length: f64 = series.points.iter().map(|point| point.length_s).sum();
        assert!((length - series.total.length_s).abs() < 1e-6);
        assert!(series.processors >= 1);
    }
}

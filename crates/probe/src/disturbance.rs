//! Did anything else use the machine while a cell ran?
//!
//! Four signs, each with a stated bound above which the cell carries a warning: CPU stolen by the
//! hypervisor and CPU used by other processes (`/proc/stat`), time that our threads waited on a run
//! queue (`/proc/thread-self/schedstat`), and steps of the wall clock. `/proc/stat` counts
//! hundredths of a second, so on short cells its shares are good to a few per cent, which the
//! bounds respect.

use std::fs;

use events::Warning;

use crate::clock::{self, CpuTime};

/// Share of all CPU time that the hypervisor may take.
pub const STEAL_LIMIT: f64 = 0.05;
/// Share of all CPU time that others may use.
pub const LOAD_LIMIT: f64 = 0.25;
/// Share of the cell that our threads may wait for a CPU.
pub const RUN_QUEUE_LIMIT: f64 = 0.05;
/// Step of the wall clock, ns.
pub const CLOCK_STEP_LIMIT_NS: u64 = 10_000_000;

/// The machine at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    at_ns: u64,
    wall_offset_ns: i64,
    own_cpu: CpuTime,
    machine: Option<MachineCpu>,
}

/// CPU time of the whole machine since boot, in ticks of `/proc/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MachineCpu {
    busy: u64,
    idle: u64,
    steal: u64,
}

/// What disturbed an interval, as shares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Disturbance {
    /// Of all CPU time: taken by the hypervisor.
    pub(crate) steal: f64,
    /// Of all CPU time: used by other processes.
    pub(crate) load: f64,
    /// Of our threads' time: waited for a CPU.
    pub(crate) run_queue: f64,
    /// Step of the wall clock, ns.
    pub(crate) clock_step_ns: u64,
}

impl Watch {
    /// Starts to watch.
    pub(crate) fn start() -> Self {
        Self {
            at_ns: clock::now_ns(),
            wall_offset_ns: clock::wall_offset_ns(),
            own_cpu: CpuTime::of_process(),
            machine: fs::read_to_string("/proc/stat").ok().and_then(|text| parse_stat(&text)),
        }
    }

    /// What happened since, given the run-queue delay of our `threads`.
    pub(crate) fn finish(&self, run_queue_delay_ns: Option<u64>, threads: u32) -> Disturbance {
        let end = Self::start();
        let elapsed_ns = (end.at_ns - self.at_ns).max(1);
        let mut found = Disturbance {
            clock_step_ns: end.wall_offset_ns.abs_diff(self.wall_offset_ns),
            ..Disturbance::default()
        };
        if let Some((before, after)) = self.machine.zip(end.machine) {
            let busy = after.busy.saturating_sub(before.busy) as f64;
            let steal = after.steal.saturating_sub(before.steal) as f64;
            let all = busy + steal + after.idle.saturating_sub(before.idle) as f64;
            // Our own time in ticks: the machine's ticks over its CPU seconds give the rate.
            let cpus = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
            let own_share =
                end.own_cpu.since(self.own_cpu).total_ns() as f64 / (elapsed_ns as f64 * cpus);
            if all > 0.0 {
                found.steal = steal / all;
                found.load = (busy / all - own_share).max(0.0);
            }
        }
        if let Some(delay_ns) = run_queue_delay_ns {
            found.run_queue = delay_ns as f64 / (elapsed_ns as f64 * f64::from(threads.max(1)));
        }
        found
    }
}

impl Disturbance {
    /// A warning for each bound that was crossed.
    pub(crate) fn warnings(&self, stage: &str, what: &str) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut say = |code: &str, share: f64, limit: f64, cause: &str, hint: &str| {
            if share > limit {
                let message = format!("{what}: {cause} {:.0} %", share * 100.0);
                warnings.push(Warning::new(stage, code, message).with_hint(hint));
            }
        };
        let quiet = "run again when nothing else uses the machine";
        let host = "run again later, or on a host that is not overcommitted";
        say("cpu_stolen", self.steal, STEAL_LIMIT, "the hypervisor took CPU time:", host);
        say("other_load", self.load, LOAD_LIMIT, "other processes used CPU time:", quiet);
        say("run_queue_delay", self.run_queue, RUN_QUEUE_LIMIT, "waited for a CPU:", quiet);
        if self.clock_step_ns > CLOCK_STEP_LIMIT_NS {
            let message =
                format!("{what}: the wall clock stepped by {} ms", self.clock_step_ns / 1_000_000);
            warnings.push(Warning::new(stage, "clock_step", message).with_hint(
                "latencies use the monotonic clock and stand; time stamps of the run may not",
            ));
        }
        warnings
    }
}

/// The first line of `/proc/stat`: user nice system idle iowait irq softirq steal (proc(5)).
fn parse_stat(text: &str) -> Option<MachineCpu> {
    let mut fields = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    let mut ticks = [0u64; 8];
    for tick in &mut ticks {
        *tick = fields.next()?.parse().ok()?;
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
    Some(MachineCpu { busy: user + nice + system + irq + softirq, idle: idle + iowait, steal })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_line_is_read() {
        let text = "cpu  10 1 20 500 7 2 3 4 0 0\ncpu0 1 2 3\n";
        let expected = MachineCpu { busy: 36, idle: 507, steal: 4 };
        assert_eq!(parse_stat(text), Some(expected));
        assert_eq!(parse_stat("cpu  10 1 20"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn each_bound_has_its_warning() {
        let check = |found: Disturbance, codes: &[&str]| {
            let warnings = found.warnings("probe", "cell");
            let found: Vec<&str> = warnings.iter().map(|w| w.code.as_str()).collect();
            assert_eq!(found, codes);
        };
        let none = Disturbance::default();
        check(none, &[]);
        check(Disturbance { steal: 0.06, ..none }, &["cpu_stolen"]);
        check(Disturbance { load: 0.3, ..none }, &["other_load"]);
        check(Disturbance { run_queue: 0.06, ..none }, &["run_queue_delay"]);
        check(Disturbance { clock_step_ns: 20_000_000, ..none }, &["clock_step"]);
        check(Disturbance { steal: 0.04, load: 0.2, run_queue: 0.04, clock_step_ns: 1 }, &[]);
    }

    #[test]
    fn other_load_is_seen_on_this_machine() {
        if parse_stat(&fs::read_to_string("/proc/stat").unwrap_or_default()).is_none() {
            println!("skipped: no /proc/stat");
            return;
        }
        let watch = Watch::start();
        // Our own spinning is not other load.
        let end = clock::now_ns() + 200_000_000;
        while clock::now_ns() < end {
            std::hint::spin_loop();
        }
        let found = watch.finish(Some(100_000_000), 1);
        assert!(found.load <= 1.0 && found.steal <= 1.0);
        assert!(found.run_queue > 0.1 && found.run_queue <= 0.5, "{found:?}");
    }
}

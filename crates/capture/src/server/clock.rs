//! Whose processor time it was: the server's, its client's, the kernel's own, other programs'.
//!
//! Read twice, at the start and at the end, from `/proc` (proc(5)). The server's time is that of
//! every process below its main one, plus the time that ended children left to their parents; so no
//! backend is lost however short it lived, as long as the server waits for its children (both do).
//! Kernel threads (write-back, journal, interrupts put off) are counted apart: part of what they do
//! is the server's, which part cannot be told. The machine's time and stalls come from the
//! [`CpuSampler`](crate::cpu::CpuSampler), whose process is the client's.
//!
//! `foreign` is what is left of the machine's busy time, stolen time included. Where it exceeds
//! [`DISTURBED_SHARE`] of the machine, the run is disturbed.
//!
//! The kernel counts in ticks of 10 ms: a process's figure is exact to a tick. Tested with
//! children of our own.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::groups::{self, TaskGroups};
use super::tasks;
use super::wakes::WakeCosts;
use crate::cpu::{CpuSampler, CpuSeries, ticks_per_s};

/// Share of the machine's processor time used by others that makes a run disturbed.
pub const DISTURBED_SHARE: f64 = 0.05;

/// Processor time by whom, seconds over the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerCpu {
    /// Of the server, in user mode.
    pub server_user_s: f64,
    /// Of the server, in the kernel.
    pub server_system_s: f64,
    /// Of this process (the client), in user mode.
    pub client_user_s: f64,
    /// Of this process, in the kernel.
    pub client_system_s: f64,
    /// Of kernel threads, whoever they worked for.
    pub kernel_threads_s: f64,
    /// Of interrupts, whoever they were for.
    pub interrupt_s: f64,
    /// Of other programs, and time that the hypervisor took.
    pub foreign_s: f64,
    /// Idle while I/O was outstanding. Zero on a busy machine however long anybody waited.
    pub io_wait_s: f64,
    /// All processors together, idle or not.
    pub machine_s: f64,
    /// `foreign_s` over `machine_s`, 0 to 1.
    pub foreign_share: f64,
    /// Whether others used so much that the figures are suspect.
    pub disturbed: bool,
    /// The machine and this process over time, with pressure stalls.
    pub series: CpuSeries,
    /// Who shares processors with whom, where it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<TaskGroups>,
    /// What it costs to wake a task on another processor, where that was measured: not beside a
    /// load that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakes: Option<WakeCosts>,
    /// What could not be had, one sentence each.
    pub unavailable: Vec<String>,
}

/// A running measurement.
pub struct ServerClock {
    mains: Vec<u32>,
    start: Reading,
    sampler: CpuSampler,
}

/// Ticks at one moment.
#[derive(Clone, Debug, Default)]
struct Reading {
    user: u64,
    system: u64,
    kernel: u64,
    /// The server's processes.
    tree: BTreeSet<u32>,
}

impl ServerClock {
    /// Starts with the server whose main processes are `mains`.
    pub fn start(mains: &[u32]) -> Self {
        let sampler = CpuSampler::start();
        Self { mains: mains.to_owned(), start: read(mains), sampler }
    }

    /// Ends; call this while the server still runs.
    pub fn finish(self) -> ServerCpu {
        let end = read(&self.mains);
        let series = self.sampler.finish();
        let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / ticks_per_s();
        let mut cpu = ServerCpu {
            server_user_s: seconds(self.start.user, end.user),
            server_system_s: seconds(self.start.system, end.system),
            kernel_threads_s: seconds(self.start.kernel, end.kernel),
            groups: (!end.tree.is_empty()).then(|| groups::read(&end.tree)),
            unavailable: series.unavailable.clone(),
            ..ServerCpu::default()
        };
        if self.start.tree.is_empty() || end.tree.is_empty() {
            cpu.unavailable.push("the server was gone when its time was read".to_owned());
        }
        cpu.fill(series);
        cpu
    }
}

impl ServerCpu {
    /// What the machine's counters add.
    fn fill(&mut self, series: CpuSeries) {
        let (machine, process) = (series.total.machine, series.total.process);
        self.client_user_s = process.user_s;
        self.client_system_s = process.system_s;
        self.interrupt_s = machine.interrupt_s;
        self.io_wait_s = machine.io_wait_s;
        let busy = machine.user_s + machine.system_s + machine.steal_s;
        self.machine_s = busy + machine.interrupt_s + machine.io_wait_s + machine.idle_s;
        self.foreign_s = (busy - self.known_s()).max(0.0);
        self.foreign_share = self.foreign_s / self.machine_s.max(f64::MIN_POSITIVE);
        self.disturbed = self.foreign_share > DISTURBED_SHARE;
        self.series = series;
    }

    /// All processor time that anybody used, what the hypervisor took with it.
    pub fn busy_s(&self) -> f64 {
        self.known_s() + self.foreign_s + self.interrupt_s
    }

    fn known_s(&self) -> f64 {
        self.server_user_s
            + self.server_system_s
            + self.client_user_s
            + self.client_system_s
            + self.kernel_threads_s
    }
}

/// Microseconds per transaction of each part, named as in reports; empty without transactions.
pub fn parts_of(cpu: &ServerCpu, transactions: u64) -> Vec<(&'static str, f64)> {
    if transactions == 0 {
        return Vec::new();
    }
    let parts = [
        ("client user", cpu.client_user_s),
        ("client system", cpu.client_system_s),
        ("server user", cpu.server_user_s),
        ("server system", cpu.server_system_s),
        ("kernel threads", cpu.kernel_threads_s),
        ("interrupts", cpu.interrupt_s),
        ("I/O wait", cpu.io_wait_s),
        ("foreign", cpu.foreign_s),
    ];
    parts.map(|(name, seconds)| (name, seconds * 1e6 / transactions as f64)).to_vec()
}

fn read(mains: &[u32]) -> Reading {
    let processes = tasks::processes();
    let tree = tasks::tree(&processes, mains);
    let mut reading = Reading::default();
    for (pid, stat) in &processes {
        if tree.contains(pid) {
            reading.user += stat.user + stat.children_user;
            reading.system += stat.system + stat.children_system;
        } else if stat.is_kernel_thread() {
            reading.kernel += stat.user + stat.system;
        }
    }
    reading.tree = tree;
    reading
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::cpu::{CpuPoint, MachineCpu, ProcessCpu};

    #[test]
    fn the_rest_of_the_machine_is_foreign() {
        let machine = MachineCpu {
            user_s: 5.0,
            system_s: 2.0,
            interrupt_s: 0.5,
            idle_s: 2.5,
            ..MachineCpu::default()
        };
        let process = ProcessCpu { user_s: 1.0, system_s: 0.5, ..ProcessCpu::default() };
        let total = CpuPoint { machine, process, ..CpuPoint::default() };
        let mut cpu = ServerCpu {
            server_user_s: 3.0,
            server_system_s: 1.0,
            kernel_threads_s: 0.5,
            ..ServerCpu::default()
        };
        cpu.fill(CpuSeries { total, ..CpuSeries::default() });
        assert!((cpu.foreign_s - 1.0).abs() < 1e-9, "{cpu:?}");
        assert!((cpu.machine_s - 10.0).abs() < 1e-9);
        assert!(cpu.disturbed, "a tenth of the machine");
        let parts = parts_of(&cpu, 1000);
        assert!(parts.contains(&("server user", 3000.0)), "{parts:?}");
        assert_eq!(parts_of(&cpu, 0), []);
    }

    #[test]
    fn grandchildren_count_while_they_run_and_after_they_ended() {
        // The inner shell burns processor time and ends; the outer one waits for it and stays.
        let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{burn}'; echo done; sleep 20");
        let mut command = Command::new("sh");
        let command = command.args(["-c", &script]).stdout(std::process::Stdio::piped());
        let Ok(mut child) = command.spawn() else { return println!("skipped: no shell") };
        let clock = ServerClock::start(&[child.id()]);
        let mut line = String::new();
        let output = child.stdout.take().expect("asked for");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
        let cpu = clock.finish();
        let _ = child.kill();
        let _ = child.wait();
        assert!(cpu.server_user_s + cpu.server_system_s >= 0.05, "{cpu:?}");
        assert!(cpu.machine_s > 0.0);
    }
}

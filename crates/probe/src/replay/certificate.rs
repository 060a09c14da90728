//! Proof of how well a replay kept time.

use events::Warning;
use serde::{Deserialize, Serialize};

use super::{Mode, Ran, ReplayOptions, Requests, STAGE};

/// Lateness may reach this share of the median service time before a replay is invalid.
const LATENESS_SHARE: f64 = 0.10;
/// What one submission costs the issuing thread on a slow day: a request due while another is being
/// submitted waits for so long, and no lateness below it says anything about the schedule.
const LATENESS_FLOOR_NS: f64 = 10_000.0;
/// A timed replay whose duration is off by more than this share is invalid.
const DURATION_LIMIT: f64 = 0.001;

/// How well a replay kept the trace's times. Lateness is the time just before the system call that
/// sent a request, minus the time at which the request was due.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// When requests were issued.
    pub mode: Mode,
    /// Whether the replay may be compared with anything.
    pub valid: bool,
    /// Why not, a sentence each.
    pub invalid_because: Vec<String>,
    /// Requests issued.
    pub requests_in: u64,
    /// Completions seen.
    pub completions_out: u64,
    /// Requests of the trace that were not issued: trims, empty ones.
    pub skipped: u64,
    /// Requests widened to whole logical blocks.
    pub widened: u64,
    /// Due time of the last request, s.
    pub ideal_s: f64,
    /// Issue time of the last request, s after the start.
    pub elapsed_s: f64,
    /// `elapsed_s / ideal_s`; 1 for a trace that has no span, meaningless unless timed.
    pub duration_ratio: f64,
    /// Requests per second of the trace.
    pub offered_per_s: f64,
    /// Requests per second completed, up to the last completion.
    pub achieved_per_s: f64,
    /// Median lateness.
    pub lateness_ns_p50: u64,
    /// 90th percentile of lateness.
    pub lateness_ns_p90: u64,
    /// 99th percentile of lateness.
    pub lateness_ns_p99: u64,
    /// Largest lateness.
    pub lateness_ns_max: u64,
    /// Median service time.
    pub service_ns_p50: u64,
    /// 99th percentile of service times.
    pub service_ns_p99: u64,
    /// User CPU of the issuing thread per request, spinning included.
    pub cpu_user_ns: f64,
    /// Kernel CPU of the issuing thread per request.
    pub cpu_system_ns: f64,
    /// `fifo:10`, `nice:-20` or `normal`.
    pub priority: String,
    /// Whether memory was made resident.
    pub memory_locked: bool,
    /// Time that the issuing thread waited for a CPU; `None` where the kernel does not tell.
    pub run_queue_delay_ns: Option<u64>,
    /// Requests outstanding at most.
    pub max_outstanding: u32,
    /// How often a due request found as many outstanding.
    pub slots_exhausted: u64,
    /// How often the thread slept because spinning seemed to hold completions up.
    pub starved: u64,
}

pub(super) fn of(ran: &Ran, requests: &Requests, options: &ReplayOptions) -> Certificate {
    let issued: Vec<usize> =
        (0..ran.work.count()).filter(|index| requests.list[*index].is_some()).collect();
    let sorted = |column: &[u64]| {
        let mut values: Vec<u64> = issued.iter().map(|index| column[*index]).collect();
        values.sort_unstable();
        values
    };
    let (late, service) = (sorted(&ran.work.lateness_ns), sorted(&ran.work.service_ns));
    let at =
        |sorted: &[u64], q| if sorted.is_empty() { 0 } else { stats::quantile_sorted(sorted, q) };
    let last = issued.last().and_then(|index| requests.list[*index]);
    let ideal_s = last.map_or(0, |request| request.due_ns) as f64 / 1e9;
    let elapsed_s = ran.work.last_issue_ns as f64 / 1e9;
    let count = issued.len() as f64;
    let per_s = |seconds: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let mut certificate = Certificate {
        mode: options.mode,
        valid: true,
        invalid_because: Vec::new(),
        requests_in: ran.driven.issued,
        completions_out: ran.driven.completed,
        skipped: requests.skipped,
        widened: requests.widened,
        ideal_s,
        elapsed_s,
        duration_ratio: if ideal_s > 0.0 { elapsed_s / ideal_s } else { 1.0 },
        offered_per_s: per_s(requests.span_ns as f64 / 1e9),
        achieved_per_s: per_s(ran.work.last_completion_ns as f64 / 1e9),
        lateness_ns_p50: at(&late, 0.5),
        lateness_ns_p90: at(&late, 0.9),
        lateness_ns_p99: at(&late, 0.99),
        lateness_ns_max: late.last().copied().unwrap_or(0),
        service_ns_p50: at(&service, 0.5),
        service_ns_p99: at(&service, 0.99),
        cpu_user_ns: ran.cpu.user_ns as f64 / count.max(1.0),
        cpu_system_ns: ran.cpu.system_ns as f64 / count.max(1.0),
        priority: ran.priority.clone(),
        memory_locked: ran.memory_locked,
        run_queue_delay_ns: ran.run_queue_delay_ns,
        max_outstanding: ran.slots,
        slots_exhausted: ran.driven.slots_exhausted,
        starved: ran.driven.starved,
    };
    certificate.judge();
    certificate
}

impl Certificate {
    /// Finds what makes the replay invalid.
    fn judge(&mut self) {
        let mut reasons = Vec::new();
        if self.requests_in != self.completions_out {
            let (sent, done) = (self.requests_in, self.completions_out);
            reasons.push(format!("{sent} requests were issued, but {done} completed"));
        }
        if matches!(self.mode, Mode::Timed | Mode::Dependent) {
            let bound = (self.service_ns_p50 as f64 * LATENESS_SHARE).max(LATENESS_FLOOR_NS);
            if self.lateness_ns_p99 as f64 > bound {
                reasons.push(format!(
                    "1 % of the requests were issued {:.1} us late or more, beyond 10 us and a \
                     tenth of the median service time of {:.1} us",
                    self.lateness_ns_p99 as f64 / 1e3,
                    self.service_ns_p50 as f64 / 1e3
                ));
            }
            let off = (self.duration_ratio - 1.0).abs();
            let absolute_s = (self.elapsed_s - self.ideal_s).abs();
            // A dependent replay lasts as long as the device makes it.
            if self.mode == Mode::Timed && off > DURATION_LIMIT && absolute_s > 0.001 {
                let ratio = self.duration_ratio;
                reasons.push(format!("it took {ratio:.4} times as long as the trace"));
            }
        }
        self.valid = reasons.is_empty();
        self.invalid_because = reasons;
    }

    /// What the user should know beside the figures.
    pub(super) fn warnings(&self, options: &ReplayOptions) -> Vec<Warning> {
        let mut found = Vec::new();
        let mut say = |wrong: bool, code: &str, message: String, hint: &str| {
            if wrong {
                found.push(Warning::new(STAGE, code, message).with_hint(hint));
            }
        };
        say(
            !self.valid,
            "replay_invalid",
            format!(
                "the replay did not keep the trace's times: {}",
                self.invalid_because.join("; ")
            ),
            "run it on an idle machine and with real-time priority",
        );
        say(
            options.realtime && !self.priority.starts_with("fifo"),
            "no_realtime_priority",
            format!(
                "real-time priority was refused; the replay ran with priority {}",
                self.priority
            ),
            "run as root, or raise 'ulimit -r'",
        );
        say(
            self.slots_exhausted > 0 && self.mode == Mode::Timed,
            "replay_outstanding_limit",
            format!(
                "{} requests were outstanding at times, and others had to wait",
                self.max_outstanding
            ),
            "raise the limit of outstanding requests, or replay a slower trace",
        );
        say(
            self.widened > 0,
            "replay_widened",
            format!("{} requests were widened to whole logical blocks", self.widened),
            "",
        );
        say(
            self.skipped > 0,
            "replay_skipped",
            format!("{} requests (trims, empty ones) were not issued", self.skipped),
            "",
        );
        found
    }
}

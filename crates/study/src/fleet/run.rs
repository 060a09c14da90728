//! Doing the jobs of a plan, on the threads of this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use events::{Event, Quiet, Sink, Warning};
use formats::Stop;
use serde::{Deserialize, Serialize};
use stats::Histogram;
use trace::surgery::{Slice, slice};
use trace::{Op, Trace};

use super::plan::{Job, Plan, hash_of, read_trace};
use crate::Error;
use crate::compare::{Comparison, Simulated, compare};
use crate::host_stack::Devices;
use crate::run_dir::write_atomically;

/// The name of an operation in the row of all of them.
pub(super) const ALL: &str = "all";

/// One row of a job's result: the requests of one operation, or all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The job.
    pub job: String,
    /// The file of its trace, without the directory.
    pub trace: String,
    /// The stream that was taken of it; empty where all were.
    pub stream: String,
    /// The profile.
    pub profile: String,
    /// The seed.
    pub seed: u64,
    /// `read`, `write`, `trim`, `flush`, or `all`.
    pub op: String,
    /// Requests.
    pub requests: u64,
    /// Bytes.
    pub bytes: u64,
    /// Mean response time, ns.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// From the first due time to the last completion.
    pub span_ns: u64,
    /// Whether the device fell behind the arrivals: times then tell the length of its queue.
    pub overloaded: bool,
    /// Years until the flash is worn out at this load, where the model knows.
    pub life_years: Option<f64>,
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ran {
    /// Jobs that were done by earlier runs.
    pub before: usize,
    /// Jobs done now.
    pub done: usize,
    /// Jobs that cannot be done, with the reason.
    pub failed: Vec<(String, String)>,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// Seconds that threads spent in simulations.
    pub simulating_s: f64,
}

/// The file of a job's result.
pub fn result_path(results: &Path, job: &str) -> PathBuf {
    results.join(format!("{job}.jsonl"))
}

/// The jobs of a plan that have no result yet, or those of them that are named.
///
/// # Errors
/// A name that the plan does not have.
pub fn missing<'a>(
    plan: &'a Plan,
    path: &Path,
    results: &Path,
    only: &[String],
) -> Result<Vec<&'a Job>, Error> {
    if let Some(unknown) = only.iter().find(|id| plan.jobs.iter().all(|job| job.id != **id)) {
        return Err(Error::Fleet {
            path: path.to_owned(),
            cause: format!("it has no job '{unknown}'"),
            hint: "'wearmark fleet run PLAN --executor exec' prints a command for each job".into(),
        });
    }
    let asked = |job: &&Job| only.is_empty() || only.contains(&job.id);
    let jobs = plan.jobs.iter().filter(asked);
    Ok(jobs.filter(|job| !result_path(results, &job.id).exists()).collect())
}

/// Jobs that one thread does one after the other: those of a trace, which it reads once.
struct Group<'a> {
    path: &'a Path,
    jobs: Vec<&'a Job>,
}

/// Does `jobs`, which are of `plan`. A job that fails does not end the others.
///
/// # Errors
/// Where results cannot be written.
pub fn run(
    plan: &Plan,
    jobs: &[&Job],
    results: &Path,
    threads: usize,
    stop: Stop,
    sink: &dyn Sink,
) -> Result<Ran, Error> {
    std::fs::create_dir_all(results).map_err(Error::io(results, "create"))?;
    let groups = groups(jobs, threads.max(1));
    let work = Work {
        plan,
        results,
        stop,
        sink,
        groups: &groups,
        next: AtomicUsize::new(0),
        ran: Mutex::new(Ran { before: plan.jobs.len() - jobs.len(), ..Ran::default() }),
    };
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    let ended = AtomicUsize::new(0);
    let threads = threads.clamp(1, groups.len().max(1));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                if let Err(error) = work.thread() {
                    failed.lock().expect("no panic while holding the lock").get_or_insert(error);
                }
                ended.fetch_add(1, Ordering::Release);
            });
        }
        work.watch(jobs.len(), || ended.load(Ordering::Acquire) == threads);
    });
    if let Some(error) = failed.into_inner().expect("no thread panicked") {
        return Err(error);
    }
    let mut ran = work.ran.into_inner().expect("no thread panicked");
    ran.failed.sort();
    ran.interrupted = sink.cancelled() && ran.done + ran.failed.len() < jobs.len();
    for (job, why) in &ran.failed {
        sink.emit(Event::Warning(Warning::new("fleet", "job_failed", format!("{job}: {why}"))));
    }
    Ok(ran)
}

/// The jobs of each trace; few traces are split so that every thread has a part.
fn groups<'a>(jobs: &[&'a Job], threads: usize) -> Vec<Group<'a>> {
    let mut by_trace: BTreeMap<&Path, Vec<&'a Job>> = BTreeMap::new();
    for job in jobs {
        by_trace.entry(&job.trace).or_default().push(job);
    }
    let parts = threads.div_ceil(by_trace.len().max(1));
    let mut groups = Vec::new();
    for (path, jobs) in by_trace {
        let size = jobs.len().div_ceil(parts);
        groups.extend(jobs.chunks(size).map(|part| Group { path, jobs: part.to_vec() }));
    }
    groups
}

struct Work<'a> {
    plan: &'a Plan,
    results: &'a Path,
    stop: Stop,
    sink: &'a dyn Sink,
    groups: &'a [Group<'a>],
    next: AtomicUsize,
    ran: Mutex<Ran>,
}

/// Passes the request to stop on, and nothing else: reports of single jobs are in their rows.
struct Silent<'a>(&'a dyn Sink);

impl Sink for Silent<'_> {
    fn emit(&self, event: Event) {
        Quiet.emit(event);
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

impl Work<'_> {
    /// One thread: group after group.
    fn thread(&self) -> Result<(), Error> {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(group) = self.groups.get(index) else { return Ok(()) };
            let read = self.trace(group);
            for job in &group.jobs {
                if self.sink.cancelled() {
                    return Ok(());
                }
                let made = match &read {
                    Ok(trace) => self.job(job, trace),
                    Err(error) => Err(Failed::Job(error.clone())),
                };
                let mut ran = self.ran.lock().expect("no panic while holding the lock");
                match made {
                    Ok(Some(seconds)) => {
                        ran.done += 1;
                        ran.simulating_s += seconds;
                    }
                    Ok(None) => return Ok(()),
                    Err(Failed::Job(why)) => ran.failed.push((job.id.clone(), why)),
                    Err(Failed::Results(error)) => return Err(error),
                }
            }
        }
    }

    /// The trace of a group, if it is still the one that was planned.
    fn trace(&self, group: &Group<'_>) -> Result<Trace, String> {
        let planned = &group.jobs[0].sha256;
        let shown = group.path.display();
        let found = hash_of(group.path).map_err(|error| error.to_string())?;
        if found != *planned {
            return Err(format!("{shown}: is not the file that was planned: its content changed"));
        }
        read_trace(group.path, 1, self.stop).map_err(|error| error.to_string())
    }

    /// Does a job; `None` where the user stopped it.
    fn job(&self, job: &Job, trace: &Trace) -> Result<Option<f64>, Failed> {
        let taken = match &job.stream {
            Some(name) => {
                let how = Slice { streams: vec![name.clone()], ..Slice::default() };
                Some(slice(trace, &how).map_err(|error| Failed::Job(error.to_string()))?)
            }
            None => None,
        };
        let trace = taken.as_ref().unwrap_or(trace);
        let profile = self.plan.profile(job).map_err(|error| Failed::Job(error.to_string()))?;
        let comparison = Comparison {
            trace,
            targets: &[Devices::alone(profile)],
            seed: job.seed,
            closed: self.plan.shared.closed,
            warm_up_ns: 0,
            threads: 1,
            timeline: None,
        };
        let began = Instant::now();
        let found = compare(&comparison, &Silent(self.sink));
        let seconds = began.elapsed().as_secs_f64();
        let found = found.map_err(|error| Failed::Job(error.to_string()))?;
        let Some(device) = found.devices.first() else { return Ok(None) };
        let mut text = String::new();
        for row in rows(job, device) {
            text.push_str(&serde_json::to_string(&row).expect("plain data"));
            text.push('\n');
        }
        write_atomically(&result_path(self.results, &job.id), text.as_bytes())
            .map_err(Failed::Results)?;
        Ok(Some(seconds))
    }

    /// Tells how far it is until `is_over`, once it takes longer than two seconds.
    fn watch(&self, jobs: usize, is_over: impl Fn() -> bool) {
        let began = Instant::now();
        let mut told = began;
        while !is_over() {
            std::thread::sleep(Duration::from_millis(20));
            if told.elapsed() < Duration::from_secs(2) {
                continue;
            }
            told = Instant::now();
            let ran = self.ran.lock().expect("no panic while holding the lock");
            let over = ran.done + ran.failed.len();
            let done = over as f64 / jobs.max(1) as f64;
            drop(ran);
            let elapsed_s = began.elapsed().as_secs_f64();
            self.sink.emit(Event::Progress {
                stage: "fleet".to_owned(),
                done,
                doing: format!("{over} of {jobs} jobs"),
                eta_s: (done > 0.0).then(|| elapsed_s * (1.0 - done) / done),
            });
        }
    }
}

/// Why a job has no result.
enum Failed {
    /// It cannot be done.
    Job(String),
    /// Results cannot be written.
    Results(Error),
}

/// The rows of a job: all requests, then each operation.
fn rows(job: &Job, device: &Simulated) -> Vec<Row> {
    let (span_ns, overloaded) = match (&device.open_loop, &device.closed_loop) {
        (Some(outcome), _) => (outcome.span_ns, outcome.is_overloaded()),
        (None, Some(outcome)) => (outcome.span_ns, false),
        (None, None) => (0, false),
    };
    let name = job.trace.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let life = device.life.as_ref();
    let of_flash = life.and_then(|life| Some(life.flash.as_ref()?.years?.value));
    let life_years = of_flash.or(life.and_then(|life| life.years_by_rating));
    let row = |op: Option<Op>| {
        let mut response = Histogram::new();
        let mut bytes = 0;
        for class in device.classes().iter().filter(|class| op.is_none_or(|op| class.op == op)) {
            response.merge(&class.response);
            bytes += class.bytes;
        }
        Row {
            job: job.id.clone(),
            trace: name.clone(),
            stream: job.stream.clone().unwrap_or_default(),
            profile: job.profile.clone(),
            seed: job.seed,
            op: op.map_or(ALL, Op::name).to_owned(),
            requests: response.count(),
            bytes,
            mean_ns: response.mean(),
            p50_ns: response.quantile(0.5),
            p99_ns: response.quantile(0.99),
            p999_ns: response.quantile(0.999),
            max_ns: response.max(),
            span_ns,
            overloaded,
            life_years,
        }
    };
    let mut rows = vec![row(None)];
    rows.extend(Op::ALL.map(|op| row(Some(op))).into_iter().filter(|row| row.requests > 0));
    rows
}

//! The plan of a fleet: which jobs there are, and what names them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use events::{Event, Sink};
use formats::{ReadOptions, Stop};
use profile::Profile;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use trace::Trace;

use crate::Error;
use crate::profiles::{read_device, read_text};

/// Version of the shape of a plan and of the rows.
const SCHEMA: u32 = 1;

/// Requests that the estimate simulates of the first trace on each profile.
const TRIED: usize = 50_000;

/// What a fleet is to do.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Traces, or directories of traces.
    pub traces: Vec<PathBuf>,
    /// Profiles by name or file.
    pub profiles: Vec<String>,
    /// Seeds of the models.
    pub seeds: Vec<u64>,
    /// Each stream of a trace is a load of its own: the volumes of the published cloud traces.
    pub by_stream: bool,
    /// Whether the actors of captured traces wait for the device.
    pub closed: bool,
}

/// A plan: what all jobs share, and the jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What they share.
    pub shared: Shared,
    /// The jobs, those of one trace together.
    pub jobs: Vec<Job>,
}

/// What the jobs of a plan share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shared {
    /// Version of this shape.
    pub fleet: u32,
    /// The program's version: models change with it.
    pub wearmark: String,
    /// Whether actors wait for the device.
    pub closed: bool,
    /// The text of each profile by its name, so that a changed file changes no job.
    pub profiles: BTreeMap<String, String>,
}

/// One trace on one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Hash of all that decides its result; also the name of that.
    pub id: String,
    /// The trace.
    pub trace: PathBuf,
    /// Hash of its content.
    pub sha256: String,
    /// The stream that is taken of it; all of them where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// Requests.
    pub requests: u64,
    /// Name of the profile.
    pub profile: String,
    /// Seed of the model.
    pub seed: u64,
}

/// A plan, and what it will take.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Requests of all jobs.
    pub requests: u64,
    /// Bytes of all trace files.
    pub trace_bytes: u64,
    /// Processor seconds of all simulations, by a short trial of each profile here.
    pub simulation_s: f64,
}

impl Plan {
    /// The plan as the text of its file.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string(&self.shared).expect("plain data");
        for job in &self.jobs {
            text.push('\n');
            text.push_str(&serde_json::to_string(job).expect("plain data"));
        }
        text + "\n"
    }

    /// Reads a plan.
    ///
    /// # Errors
    /// A file that cannot be read or is no plan of this version; a job whose name does not belong
    /// to it, as when the plan was edited.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path, "read"))?;
        let bad = |line: usize, cause: String| Error::Fleet {
            path: path.to_owned(),
            cause: format!("line {line}: {cause}"),
            hint: "make the plan again with 'wearmark fleet plan'".to_owned(),
        };
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let shared: Shared =
            serde_json::from_str(first).map_err(|error| bad(1, error.to_string()))?;
        if shared.fleet != SCHEMA || shared.wearmark != env!("CARGO_PKG_VERSION") {
            let made =
                format!("it was made by wearmark {}, shape {}", shared.wearmark, shared.fleet);
            return Err(bad(1, made));
        }
        let mut jobs = Vec::new();
        for (index, line) in lines.enumerate() {
            let job: Job =
                serde_json::from_str(line).map_err(|error| bad(index + 2, error.to_string()))?;
            let Some(profile) = shared.profiles.get(&job.profile) else {
                return Err(bad(index + 2, format!("no profile '{}' in line 1", job.profile)));
            };
            if job.id != name_of(&job, profile, shared.closed) {
                return Err(bad(index + 2, format!("job {} is not what its name says", job.id)));
            }
            jobs.push(job);
        }
        Ok(Self { shared, jobs })
    }

    /// The profile of a job.
    ///
    /// # Errors
    /// A text that is no profile.
    pub fn profile(&self, job: &Job) -> Result<Profile, Error> {
        let text = self.shared.profiles.get(&job.profile).map_or("", String::as_str);
        Profile::from_toml(text, &job.profile).map_err(Error::Model)
    }
}

/// The name of a job: 16 hexadecimal digits of a hash of all that decides its result.
fn name_of(job: &Job, profile: &str, closed: bool) -> String {
    let mut hash = Sha256::new();
    let stream = job.stream.as_deref();
    let all = serde_json::json!([
        SCHEMA,
        env!("CARGO_PKG_VERSION"),
        job.sha256,
        stream,
        profile,
        job.seed,
        closed
    ]);
    hash.update(all.to_string().as_bytes());
    hex(&hash.finalize())[..16].to_owned()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// The hash of a file's content, in hexadecimal digits.
pub(super) fn hash_of(path: &Path) -> Result<String, Error> {
    let mut file = File::open(path).map_err(Error::io(path, "open"))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(Error::io(path, "read"))? {
            0 => return Ok(hex(&hash.finalize())),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// Reads the trace of a job, or of several.
pub(super) fn read_trace(path: &Path, threads: usize, stop: Stop) -> Result<Trace, Error> {
    let options = ReadOptions { threads, stop, ..ReadOptions::default() };
    Ok(formats::read(path, &options).map_err(Error::Trace)?.trace)
}

/// The traces that are meant: files as they are given, and those in directories by name.
fn trace_files(given: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut all = BTreeSet::new();
    for path in given {
        if !path.is_dir() {
            all.insert(path.clone());
            continue;
        }
        for entry in std::fs::read_dir(path).map_err(Error::io(path, "list"))? {
            let inside = entry.map_err(Error::io(path, "list"))?.path();
            let hidden = inside.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
            if inside.is_file() && !hidden {
                all.insert(inside);
            }
        }
    }
    Ok(all.into_iter().collect())
}

/// Makes the plan. Reads every trace once: a job knows what its trace holds.
///
/// # Errors
/// A trace or profile that cannot be read; two profiles of one name; no trace at all.
pub fn plan(asked: &Asked, stop: Stop, sink: &dyn Sink) -> Result<Planned, Error> {
    let mut profiles = BTreeMap::new();
    for name in &asked.profiles {
        let own = read_device(name)?.name().to_owned();
        if profiles.insert(own.clone(), read_text(name)?).is_some() {
            return Err(Error::Fleet {
                path: name.into(),
                cause: format!("there are two profiles called '{own}'"),
                hint: "give each profile its own name, in its [profile] section".to_owned(),
            });
        }
    }
    let shared = Shared {
        fleet: SCHEMA,
        wearmark: env!("CARGO_PKG_VERSION").to_owned(),
        closed: asked.closed,
        profiles,
    };
    let mut planned = Planned {
        plan: Plan { shared, jobs: Vec::new() },
        requests: 0,
        trace_bytes: 0,
        simulation_s: 0.0,
    };
    let files = trace_files(&asked.traces)?;
    let mut cost_ns: BTreeMap<String, f64> = BTreeMap::new();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut told = Instant::now();
    for (index, path) in files.iter().enumerate() {
        let trace = read_trace(path, threads, stop)?;
        if cost_ns.is_empty() {
            cost_ns = trial(&planned.plan.shared, &trace)?;
        }
        planned.trace_bytes += std::fs::metadata(path).map_err(Error::io(path, "read"))?.len();
        add_jobs(&mut planned, asked, path, &trace)?;
        if told.elapsed() >= Duration::from_secs(2) {
            told = Instant::now();
            let doing = format!("{} of {} traces read", index + 1, files.len());
            let done = (index + 1) as f64 / files.len() as f64;
            sink.emit(Event::Progress { stage: "fleet".to_owned(), done, doing, eta_s: None });
        }
    }
    if planned.plan.jobs.is_empty() {
        return Err(Error::Fleet {
            path: asked.traces.first().cloned().unwrap_or_default(),
            cause: "there is no trace with requests in it".to_owned(),
            hint: "name trace files, or directories that hold nothing else".to_owned(),
        });
    }
    for job in &planned.plan.jobs {
        planned.requests += job.requests;
        let each_ns = cost_ns.get(&job.profile).copied().unwrap_or(0.0);
        planned.simulation_s += job.requests as f64 * each_ns / 1e9;
    }
    Ok(planned)
}

/// The jobs of one trace.
fn add_jobs(planned: &mut Planned, asked: &Asked, path: &Path, trace: &Trace) -> Result<(), Error> {
    let mut loads: Vec<(Option<String>, u64)> = vec![(None, trace.count() as u64)];
    if asked.by_stream {
        let mut counts = vec![0u64; trace.streams.len()];
        for stream in &trace.stream {
            counts[usize::from(*stream)] += 1;
        }
        let names = trace.streams.iter().map(|stream| Some(stream.name.clone()));
        loads = names.zip(counts).collect();
    }
    let sha256 = hash_of(path)?;
    let closed = planned.plan.shared.closed;
    for (stream, requests) in loads.into_iter().filter(|(_, requests)| *requests > 0) {
        for (name, text) in &planned.plan.shared.profiles {
            for seed in &asked.seeds {
                let mut job = Job {
                    id: String::new(),
                    trace: path.to_owned(),
                    sha256: sha256.clone(),
                    stream: stream.clone(),
                    requests,
                    profile: name.clone(),
                    seed: *seed,
                };
                job.id = name_of(&job, text, closed);
                planned.plan.jobs.push(job);
            }
        }
    }
    Ok(())
}

/// Nanoseconds per request on each profile, by simulating the beginning of a trace. A trace that
/// does not fit a device is told when its job runs.
fn trial(shared: &Shared, trace: &Trace) -> Result<BTreeMap<String, f64>, Error> {
    let mut start = trace.clone();
    start.truncate(TRIED);
    let mut found = BTreeMap::new();
    for (name, text) in &shared.profiles {
        let profile = Profile::from_toml(text, name).map_err(Error::Model)?;
        let mut device = model::device(&profile, 1);
        if start.is_empty() || sim::check(device.as_ref(), &start).is_err() {
            continue;
        }
        let began = Instant::now();
        sim::replay(device.as_mut(), &start);
        found.insert(name.clone(), began.elapsed().as_nanos() as f64 / start.count() as f64);
    }
    Ok(found)
}

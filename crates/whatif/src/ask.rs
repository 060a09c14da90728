//! Questions and answers.

use std::collections::BTreeMap;

use events::Hint;
use profile::write_cache::WriteCacheSpec;
use profile::{Parameter, Profile};
use serde::{Deserialize, Serialize};
use sim::{ClassOutcome, Outcome};
use stats::Histogram;
use trace::{Op, Trace};
use units::Bytes;

/// Most requests of one simulation: what a page may keep a reader waiting for.
const MOST_REQUESTS: u64 = 5_000_000;
/// Most memory that the state of a device may take: a browser has 4 GiB for a module at best.
const MOST_MEMORY: Bytes = Bytes(1 << 30);
/// Points of the curves of an answer.
const POINTS: u64 = 200;

/// What can be asked.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// Which devices ship, as a list of [`Device`].
    Devices,
    /// What can be changed in a device, as a list of [`Field`].
    Fields {
        /// Name of a shipped device, or the text of a profile.
        device: String,
    },
    /// How the trace runs on a device, as an [`Answer`].
    Simulate(Simulate),
}

/// How the trace runs on a device.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulate {
    /// Name of a shipped device, or the text of a profile.
    pub device: String,
    /// Fields of the profile by their TOML path, and their other values.
    #[serde(default)]
    pub fields: BTreeMap<String, f64>,
    /// MB of write cache: 0 takes it away, and a device that has none gets one with assumed times.
    /// As the profile says where absent.
    #[serde(default)]
    pub cache_mb: Option<f64>,
    /// How much faster the trace's arrivals come; 2 is twice the rate.
    #[serde(default = "one")]
    pub rate: f64,
    /// Times that the trace is played, one after another.
    #[serde(default = "once")]
    pub times: u32,
    /// Decides every random draw of the model.
    #[serde(default)]
    pub seed: u64,
}

fn one() -> f64 {
    1.0
}

fn once() -> u32 {
    1
}

/// A device that ships.
#[derive(Debug, Serialize)]
pub struct Device {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub description: String,
}

/// A number of a profile.
#[derive(Debug, Serialize)]
pub struct Field {
    /// TOML path: `device.flush.base_us`.
    pub path: String,
    /// Its value, in the unit that the path ends with.
    pub value: f64,
    /// Whether nobody measured or published it.
    pub assumed: bool,
}

/// What a simulation found.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// Name of the device.
    pub device: String,
    /// One line about it.
    pub description: String,
    /// MB of its write cache, as simulated; null for none.
    pub cache_mb: Option<f64>,
    /// Requests simulated.
    pub requests: u64,
    /// Requests due in a second.
    pub offered_per_s: f64,
    /// Requests completed in a second.
    pub completed_per_s: f64,
    /// Whether the device fell behind the arrivals.
    pub overloaded: bool,
    /// Bytes that the flash programmed for each byte written; null where it has none, or nothing
    /// was written.
    pub write_amplification: Option<f64>,
    /// All requests first, then by operation.
    pub classes: Vec<Class>,
    /// Response time, ns, and the share of the requests, percent, that took at most so long.
    pub distribution: Vec<(f64, f64)>,
    /// What is assumed of the question's own parts; may be empty.
    pub assumed: String,
}

/// Response times of some of the requests.
#[derive(Debug, Serialize)]
pub struct Class {
    /// `all`, or the operation.
    pub name: &'static str,
    /// Requests.
    pub requests: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Quantiles, ns.
    pub p50_ns: u64,
    /// The same.
    pub p99_ns: u64,
    /// The same.
    pub p999_ns: u64,
}

/// Why there is no answer.
#[derive(Debug, Serialize)]
struct Refusal {
    error: String,
    hint: Option<String>,
}

impl Refusal {
    fn new(error: impl Into<String>, hint: &str) -> Self {
        Self { error: error.into(), hint: Some(hint.to_owned()) }
    }

    fn of(error: &(impl std::error::Error + Hint)) -> Self {
        Self { error: error.to_string(), hint: error.hint() }
    }
}

/// Answers a question about `trace`, both as JSON. What cannot be answered is
/// `{"error": ..., "hint": ...}`.
pub fn answer(trace: &Trace, question: &str) -> String {
    let found = match serde_json::from_str(question) {
        Ok(Question::Devices) => Ok(json(&devices())),
        Ok(Question::Fields { device }) => device_named(&device).map(|own| json(&fields(&own))),
        Ok(Question::Simulate(asked)) => simulate(trace, &asked).map(|found| json(&found)),
        Err(error) => Err(Refusal::new(error.to_string(), "ask as the page does")),
    };
    found.unwrap_or_else(|refusal| json(&refusal))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain values and text keys")
}

fn devices() -> Vec<Device> {
    let described = |(name, text): &(&'static str, &'static str)| {
        let profile = Profile::from_toml(text, name).ok()?;
        Some(Device { name, description: profile.profile.description })
    };
    profile::shipped().iter().filter_map(described).collect()
}

fn device_named(device: &str) -> Result<Profile, Refusal> {
    let text = profile::find_shipped(device).unwrap_or(device);
    Profile::from_toml(text, "the profile").map_err(|error| Refusal::of(&error))
}

/// Numbers with their evidence that decide how the device behaves.
fn fields(profile: &Profile) -> Vec<Field> {
    let mut found = Vec::new();
    let table = profile.to_toml().parse::<toml::Table>().unwrap_or_default();
    for (name, value) in &table {
        if ["device", "write_cache", "limits"].contains(&name.as_str()) {
            walk(name, value, &mut found);
        }
    }
    found
}

fn walk(path: &str, value: &toml::Value, found: &mut Vec<Field>) {
    let toml::Value::Table(table) = value else { return };
    let number = table.get("value").and_then(|value| {
        value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
    });
    if let Some(value) = number {
        let assumed = table.get("assumed").and_then(toml::Value::as_bool) == Some(true);
        found.push(Field { path: path.to_owned(), value, assumed });
        return;
    }
    for (name, inner) in table {
        walk(&format!("{path}.{name}"), inner, found);
    }
}

fn simulate(trace: &Trace, asked: &Simulate) -> Result<Answer, Refusal> {
    let mut profile = device_named(&asked.device)?;
    let mut assumed = String::new();
    if let Some(mb) = asked.cache_mb {
        (profile, assumed) = with_cache(profile, mb)?;
    }
    for (field, value) in &asked.fields {
        let value = format!("{value:?}");
        profile = profile.with_field(field, &value).map_err(|error| Refusal::of(&error))?;
    }
    if profile.memory() > MOST_MEMORY {
        return Err(Refusal::new(
            format!("{} needs {} of memory", profile.name(), profile.memory()),
            "wearmark sim simulates it",
        ));
    }
    let played = play(trace, asked)?;
    sim::check_extent(profile.capacity(), 0, &played).map_err(|error| Refusal::of(&error))?;
    let mut device = model::device(&profile, asked.seed);
    Ok(found(&profile, &sim::replay(device.as_mut(), &played), assumed))
}

/// The profile with a write cache of `mb` MB, and what is assumed of it.
fn with_cache(mut profile: Profile, mb: f64) -> Result<(Profile, String), Refusal> {
    if mb == 0.0 {
        return Ok((profile.without_cache(), String::new()));
    }
    let mut note = String::new();
    if let Some(cache) = &mut profile.write_cache {
        cache.capacity_mb.value = mb;
    } else {
        profile.write_cache = Some(assumed_cache(mb));
        note = format!(
            "{} has no write cache of its own: one of 20 us a request, 0.5 us a KiB, that loses \
             its content with the power, is assumed",
            profile.name()
        );
    }
    profile.check().map_err(|error| Refusal::of(&error))?;
    Ok((profile, note))
}

/// A cache in the memory of a controller.
fn assumed_cache(mb: f64) -> WriteCacheSpec {
    let assumed = |value| Parameter::assumed(value, "a cache that is only asked about");
    WriteCacheSpec {
        capacity_mb: assumed(mb),
        line: Bytes(4096),
        hit_base_us: assumed(20.0),
        hit_us_per_kib: assumed(0.5),
        ports: assumed(1.0),
        high_watermark: assumed(0.8),
        low_watermark: assumed(0.5),
        coalesce_kib: assumed(128.0),
        idle_destage_after_ms: Some(assumed(10.0)),
        power_loss_protected: false,
        durable_streams: Vec::new(),
        destage_depth: None,
    }
}

/// The trace as it is asked for: faster, and several times.
fn play(trace: &Trace, asked: &Simulate) -> Result<Trace, Refusal> {
    if !(asked.rate.is_finite() && asked.rate > 0.0) {
        return Err(Refusal::new("the rate must be above zero", "choose 1 for that of the trace"));
    }
    if trace.is_empty() || asked.times == 0 {
        return Err(Refusal::new("there is no request to simulate", "load a trace first"));
    }
    let all = trace.count() as u64 * u64::from(asked.times);
    if all > MOST_REQUESTS {
        return Err(Refusal::new(
            format!("{all} requests are more than the {MOST_REQUESTS} that a page simulates"),
            "play the trace fewer times, or ask wearmark sim",
        ));
    }
    let once = if asked.rate == 1.0 {
        trace.clone()
    } else {
        trace::surgery::scale_time(trace.clone(), 1.0 / asked.rate)
            .map_err(|error| Refusal::new(error.to_string(), "choose another rate"))?
    };
    // A pause of a mean interarrival time stands between two rounds.
    let round_ns = once.span().0 + once.span().0 / once.count() as u64 + 1;
    let mut played = once.clone();
    for round in 1..u64::from(asked.times) {
        let from = played.count();
        played.extend_rows(&once, 0..once.count());
        played.due[from..].iter_mut().for_each(|due| *due += round * round_ns);
    }
    Ok(played)
}

fn found(profile: &Profile, outcome: &Outcome, assumed: String) -> Answer {
    let all = outcome.response();
    let mut classes = vec![class("all", &all)];
    for op in Op::ALL {
        let own = outcome.response_of(op);
        if !own.is_empty() {
            classes.push(class(op.name(), &own));
        }
    }
    let written = |own: &&ClassOutcome| own.op == Op::Write;
    let written: u64 = outcome.classes.iter().filter(written).map(|own| own.bytes).sum();
    let programmed = outcome.wear.last().and_then(|mark| Some(mark.flash?.programmed_bytes));
    let amplification = programmed.filter(|_| written > 0);
    Answer {
        device: profile.name().to_owned(),
        description: profile.profile.description.clone(),
        cache_mb: profile.write_cache.as_ref().map(|cache| cache.capacity_mb.value),
        requests: outcome.requests,
        offered_per_s: outcome.offered_per_s(),
        completed_per_s: outcome.completed_per_s(),
        overloaded: outcome.is_overloaded(),
        write_amplification: amplification.map(|programmed| programmed as f64 / written as f64),
        classes,
        distribution: distribution(&all),
        assumed,
    }
}

fn class(name: &'static str, times: &Histogram) -> Class {
    Class {
        name,
        requests: times.count(),
        mean_ns: times.mean(),
        p50_ns: times.quantile(0.5),
        p99_ns: times.quantile(0.99),
        p999_ns: times.quantile(0.999),
    }
}

fn distribution(times: &Histogram) -> Vec<(f64, f64)> {
    let (count, mut seen, mut last) = (times.count(), 0, 0);
    let mut points = Vec::new();
    for (value, own) in times.buckets() {
        seen += own;
        if points.is_empty() || seen == count || (seen - last) * POINTS >= count {
            points.push((value as f64, 100.0 * seen as f64 / count as f64));
            last = seen;
        }
    }
    points
}

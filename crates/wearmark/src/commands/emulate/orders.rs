//! `wearmark emulate set` and `status`: orders to an emulation that runs, from both sides.

use std::path::PathBuf;

use ::emulate::control::{Control, ask};
use ::emulate::{Emulation, Faults, Status};
use profile::Profile;
use serde_json::json;
use study::host_stack::Devices;
use study::profiles::read_device;
use units::{Bytes, Nanos};

use crate::cli::{EmulateSet, EmulateStatus};
use crate::commands::{Context, Outcome, output};

/// Asks for changes.
pub fn set(arguments: &EmulateSet) -> anyhow::Result<Outcome> {
    let words: Vec<String> =
        std::iter::once("set".to_owned()).chain(arguments.change.clone()).collect();
    output::print(&format!("{}\n", ask(&arguments.directory, &words)?))?;
    Ok(Outcome::Fine)
}

/// Asks what it does.
pub fn status(arguments: &EmulateStatus, context: &Context) -> anyhow::Result<Outcome> {
    let text = ask(&arguments.directory, &["status".to_owned()])?;
    if context.json {
        output::print(&text)?;
        return Ok(Outcome::Fine);
    }
    let found: serde_json::Value = serde_json::from_str(&text)?;
    let mut rows = vec![vec!["FIGURE".to_owned(), "VALUE".to_owned()]];
    for (name, value) in found.as_object().into_iter().flatten() {
        rows.push(vec![name.clone(), value.to_string().trim_matches('"').to_owned()]);
    }
    output::print(&output::table(&rows))?;
    Ok(Outcome::Fine)
}

/// A device that can be given orders through one of its directories.
struct Unit {
    name: String,
    profile: Profile,
    host: Option<host::Spec>,
    faults: Faults,
    control: Option<Control>,
}

/// The devices of this emulation and where orders to them arrive.
pub struct Orders {
    units: Vec<Unit>,
    no_cache: bool,
    seed: u64,
}

impl Orders {
    /// Nothing listens yet.
    pub fn new(no_cache: bool, seed: u64) -> Self {
        Self { units: Vec::new(), no_cache, seed }
    }

    /// Takes a device in, in the order in which they are served.
    pub fn add(&mut self, name: &str, profile: Profile, host: Option<host::Spec>, faults: &Faults) {
        let (name, faults) = (name.to_owned(), faults.clone());
        self.units.push(Unit { name, profile, host, faults, control: None });
    }

    /// Listens at the first directory of each device.
    pub fn listen(&mut self, directories: &[Option<PathBuf>]) -> anyhow::Result<()> {
        for (unit, directory) in self.units.iter_mut().zip(directories) {
            unit.control = directory.as_deref().map(Control::listen).transpose()?;
        }
        Ok(())
    }

    /// Does what was ordered since the last look.
    pub fn follow(&mut self, emulation: &Emulation) {
        let (no_cache, seed) = (self.no_cache, self.seed);
        for unit in &mut self.units {
            while let Some(asked) = unit.control.as_ref().and_then(Control::next) {
                let words: Vec<&str> = asked.words.iter().map(String::as_str).collect();
                let answer = match words.as_slice() {
                    ["status"] => status_of(emulation, &unit.name),
                    ["set", changes @ ..] => unit.set(changes, emulation, no_cache, seed),
                    _ => Err("an order is 'status' or 'set'".to_owned()),
                };
                asked.answer(&answer);
            }
        }
    }
}

impl Unit {
    /// All changes, or none where one of them cannot be.
    fn set(
        &mut self,
        changes: &[&str],
        emulation: &Emulation,
        no_cache: bool,
        seed: u64,
    ) -> Result<String, String> {
        let (mut profile, mut faults) = (self.profile.clone(), self.faults.clone());
        for change in changes {
            let (name, value) = change
                .split_once('=')
                .ok_or_else(|| format!("'{change}': a change is NAME=VALUE"))?;
            match name {
                "profile" => profile = read_device(value).map_err(|error| error.to_string())?,
                "stall" | "fail" | "fail-range" => {
                    let elapsed = emulation.elapsed();
                    order_fault(&mut faults, name, value, elapsed)
                        .map_err(|cause| format!("{name}: {cause}"))?;
                }
                _ => {
                    profile = profile.with_field(name, value).map_err(|error| error.to_string())?;
                }
            }
        }
        if profile != self.profile {
            let served = if no_cache { profile.without_cache() } else { profile.clone() };
            let above = Devices::new(served, self.host.as_ref());
            let above = above.map_err(|error| error.to_string())?;
            emulation.replace(&self.name, above.device(seed));
        }
        emulation.set_faults(&self.name, faults.clone());
        (self.profile, self.faults) = (profile, faults);
        Ok(format!("{}: {}", self.name, changes.join(", ")))
    }
}

/// A fault by its name: `stall=30s`, `fail=on`, `fail-range=1MiB..2MiB`; `off` ends it.
fn order_fault(faults: &mut Faults, name: &str, value: &str, elapsed: Nanos) -> Result<(), String> {
    match (name, value) {
        ("stall", "off") => faults.stall = None,
        ("stall", time) => {
            let time: Nanos = time.parse().map_err(|error: units::ParseError| error.to_string())?;
            faults.stall = Some(elapsed..Nanos(elapsed.0.saturating_add(time.0)));
        }
        ("fail", "on") => faults.fail_after = Some(elapsed),
        ("fail", "off") => faults.fail_after = None,
        ("fail", _) => return Err("it is 'on' or 'off'".to_owned()),
        (_, "off") => faults.fail_range = None,
        (_, range) => faults.fail_range = Some(crate::cli::bytes_range(range)?),
    }
    Ok(())
}

fn status_of(emulation: &Emulation, name: &str) -> Result<String, String> {
    let status = emulation.status();
    let status = status.iter().find(|status| status.name == name);
    let status = status.ok_or("the device is served no more")?;
    let mut found = json!({
        "device": status.name,
        "served_s": emulation.elapsed().0 as f64 / 1e9,
        "requests": status.requests,
        "outstanding": status.depth,
        "lateness_us_p99": status.lateness_p99.0 as f64 / 1e3,
    });
    for counter in &status.model {
        found[counter.name] = counter.value.into();
    }
    Ok(found.to_string())
}

/// What a user wants to see move: the rate since the last look, the queue, and what the device has
/// left.
pub fn doing(status: &Status, before: Option<u64>, seconds: f64) -> String {
    let rate = before.map_or(0.0, |before| (status.requests - before) as f64 / seconds.max(1e-9));
    let mut text = format!(
        "{}: {rate:.0} requests/s, {} outstanding, p99 {:.0} us late",
        status.name,
        status.depth,
        status.lateness_p99.0 as f64 / 1e3
    );
    for counter in &status.model {
        let shown = match counter.name {
            "io_credits" => format!(", {} credits", counter.value),
            "byte_credits" => format!(", {} of credits", Bytes(counter.value)),
            "cache_dirty_lines" => format!(", {} dirty lines", counter.value),
            "gc_moved_pages" => format!(", {} pages moved", counter.value),
            _ => continue,
        };
        text.push_str(&shown);
    }
    text
}

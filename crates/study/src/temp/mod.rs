//! Sorts and joins over a list of cluster sizes, on a disk and on device models, side by side.
//!
//! Every place gets the same rows. What was measured before the user stops it is kept.

mod page;
#[cfg(test)]
mod tests;
mod text;

use std::path::PathBuf;

use crate::host_stack::Devices;
use events::Sink;
use serde::Serialize;
use spill::{JoinPlan, Phase, Resources, Rows, Simulated, SortPlan, Spilled, TempFile};
use trace::Trace;
use units::Bytes;

pub use page::page;
pub use text::text;

/// What is done with the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// They are sorted.
    Sort(Rows),
    /// Build and probe side are joined.
    Join(Rows, Rows),
}

impl Task {
    /// `sort` or `join`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sort(_) => "sort",
            Self::Join(..) => "join",
        }
    }
}

/// Where it is done.
#[derive(Clone, Debug)]
pub enum Place {
    /// In a directory.
    Directory {
        /// The directory.
        path: PathBuf,
        /// Through the page cache.
        buffered: bool,
    },
    /// On a device model in virtual time.
    Model(Box<Devices>),
}

impl Place {
    /// What it is called: the directory, or the profile's name.
    pub fn name(&self) -> String {
        match self {
            Self::Directory { path, .. } => path.display().to_string(),
            Self::Model(target) => target.name(),
        }
    }
}

/// A list of cluster sizes on a list of places.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What is done.
    pub task: Task,
    /// Memory for rows and clusters.
    pub memory: Bytes,
    /// Cluster sizes.
    pub clusters: Vec<Bytes>,
    /// Requests in flight at most.
    pub depth: u32,
    /// Where.
    pub places: Vec<Place>,
    /// What a row costs a simulated processor in each phase, ns.
    pub cpu_ns_per_row: u64,
    /// Seed of the models' noise.
    pub seed: u64,
    /// Whether requests are kept.
    pub record: bool,
}

/// One place and cluster size.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Its name.
    pub place: String,
    /// Whether times are virtual.
    pub simulated: bool,
    /// What was done.
    #[serde(flatten)]
    pub done: Done,
}

/// A sort or a join that is done.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Done {
    /// A sort.
    Sort(Spilled<SortPlan>),
    /// A join.
    Join(Spilled<JoinPlan>),
}

impl Measured {
    /// Memory, cluster size and depth.
    pub fn resources(&self) -> &Resources {
        match &self.done {
            Done::Sort(done) => &done.resources,
            Done::Join(done) => &done.resources,
        }
    }

    /// From the first row made to the last row out, ns.
    pub fn elapsed_ns(&self) -> u64 {
        match &self.done {
            Done::Sort(done) => done.elapsed_ns,
            Done::Join(done) => done.elapsed_ns,
        }
    }

    /// What was done, in order.
    pub fn phases(&self) -> &[Phase] {
        match &self.done {
            Done::Sort(done) => &done.phases,
            Done::Join(done) => &done.phases,
        }
    }

    /// Why it is suspect.
    pub fn warnings(&self) -> &[events::Warning] {
        match &self.done {
            Done::Sort(done) => &done.warnings,
            Done::Join(done) => &done.warnings,
        }
    }

    /// Its requests, where they were kept.
    pub fn trace(&self) -> Option<&Trace> {
        match &self.done {
            Done::Sort(done) => done.trace.as_ref(),
            Done::Join(done) => done.trace.as_ref(),
        }
    }

    fn sum(&self, of: impl Fn(&Phase) -> u64) -> u64 {
        self.phases().iter().map(of).sum()
    }
}

/// Runs a sweep; `true` beside the results where the user stopped it.
///
/// # Errors
/// The first place and cluster size that cannot be done ends it.
pub fn sweep(sweep: &Sweep, sink: &dyn Sink) -> Result<(Vec<Measured>, bool), spill::Error> {
    let mut all = Vec::new();
    for place in &sweep.places {
        for cluster in &sweep.clusters {
            match once(sweep, place, *cluster, sink) {
                Ok(measured) => all.push(measured),
                Err(spill::Error::Interrupted) => return Ok((all, true)),
                Err(error) => return Err(error),
            }
        }
    }
    Ok((all, false))
}

fn once(
    sweep: &Sweep,
    place: &Place,
    cluster: Bytes,
    sink: &dyn Sink,
) -> Result<Measured, spill::Error> {
    let resources = Resources { memory: sweep.memory, cluster, depth: sweep.depth };
    let simulated = matches!(place, Place::Model(_));
    let done = match place {
        Place::Directory { path, buffered } => {
            let medium = TempFile::new(path, *buffered, sweep.depth)?;
            run(&medium, sweep, resources, sink)?
        }
        Place::Model(target) => {
            let device = target.device(sweep.seed);
            let medium = Simulated::new(&target.name(), device, sweep.cpu_ns_per_row);
            run(&medium, sweep, resources, sink)?
        }
    };
    Ok(Measured { place: place.name(), simulated, done })
}

fn run<M: spill::Medium>(
    medium: &M,
    sweep: &Sweep,
    resources: Resources,
    sink: &dyn Sink,
) -> Result<Done, spill::Error> {
    Ok(match sweep.task {
        Task::Sort(rows) => Done::Sort(spill::sort(medium, rows, resources, sweep.record, sink)?),
        Task::Join(build, probe) => {
            Done::Join(spill::join(medium, (build, probe), resources, sweep.record, sink)?)
        }
    })
}

/// By place, in order: the index of its fastest cluster size.
fn fastest(all: &[Measured]) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::new();
    for (index, measured) in all.iter().enumerate() {
        match best.last_mut() {
            Some(best) if all[*best].place == measured.place => {
                if measured.elapsed_ns() < all[*best].elapsed_ns() {
                    *best = index;
                }
            }
            _ => best.push(index),
        }
    }
    best
}

//! Grace hash join: split both inputs by a hash of the key, then join part with part.
//!
//! All rows of both inputs go to disk (Grace; a hybrid would keep a part in memory), unless the
//! build side fits in memory, in which case none do. A part whose build side turns out too large is
//! split again with another hash; where that does not help (rows of one key), it is joined in
//! blocks: as many build rows as fit, and the whole probe part for each.

mod part;
mod plan;
mod reader;
mod split;
mod table;

use std::collections::HashMap;

use events::{Ending, Event, Sink};
pub use plan::JoinPlan;

use crate::account::{Account, Phase, Spilled};
use crate::error::Error;
use crate::medium::Medium;
use crate::options::Resources;
use crate::progress::Progress;
use crate::rows::{Rows, digest};
use crate::space::Space;
use table::Table;

/// Streams of the trace.
const BUILD: u16 = 0;
const PROBE: u16 = 1;

/// What the parts of a join share.
struct Work<'a, M: Medium> {
    medium: &'a M,
    resources: Resources,
    /// Build rows and probe rows.
    rows: [Rows; 2],
    plan: JoinPlan,
    space: Space,
    account: Account,
    sink: &'a dyn Sink,
    start_ns: u64,
    progress: Progress<'a>,
    output: Pairs,
}

/// Pairs that came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pairs {
    count: u64,
    sum: u64,
}

/// Joins `build` and `probe` on their keys on `medium`. With `record`, the result holds every
/// request as a trace.
///
/// # Errors
/// Settings that cannot be, no room, failed requests, an interruption, and [`Error::Wrong`] where
/// the pairs that come out are not those that must.
pub fn join<M: Medium>(
    medium: &M,
    (build, probe): (Rows, Rows),
    resources: Resources,
    record: bool,
    sink: &dyn Sink,
) -> Result<Spilled<JoinPlan>, Error> {
    resources.check(medium.sector_bytes())?;
    let plan = JoinPlan::new(&build, &probe, &resources)?;
    medium.reserve(plan.most_bytes)?;
    let source = format!("Grace hash join of {} and {} rows", build.count, probe.count);
    let streams: Option<&[&str]> = record.then_some(&["build", "probe"]);
    let clusters = plan.read_bytes / resources.cluster.0;
    let mut work = Work {
        medium,
        resources,
        rows: [build, probe],
        plan: plan.clone(),
        space: Space::new(resources.cluster.0),
        account: Account::new(streams, &source, medium.layer()),
        sink,
        start_ns: medium.now_ns(),
        progress: Progress::new(sink, 2 * clusters),
        output: Pairs::default(),
    };
    if plan.parts <= 1 {
        work.phase("join", Work::in_memory)?;
    } else {
        let build_parts = work.phase("build", |work| work.split_input(BUILD))?;
        let probe_parts = work.phase("probe", |work| work.split_input(PROBE))?;
        work.phase("join", |work| {
            let mut pairs = build_parts.iter().zip(&probe_parts);
            pairs.try_for_each(|(build, probe)| work.join_part(build, probe, 1))
        })?;
    }
    let elapsed_ns = medium.now_ns() - work.start_ns;
    let expected = oracle(&build, &probe, sink)?;
    if work.output != expected {
        let (found, expected) = (work.output, expected);
        let what =
            format!("{} pairs came out where {} must, or others", found.count, expected.count);
        return Err(Error::Wrong { what });
    }
    let facts = [
        ("build_rows", build.count.to_string()),
        ("probe_rows", probe.count.to_string()),
        ("row_bytes", build.width_bytes.to_string()),
    ];
    let (phases, trace) = work.account.finish(&resources, &facts);
    let elapsed_s = elapsed_ns as f64 / 1e9;
    sink.emit(Event::Done { stage: "temp".to_owned(), elapsed_s, ending: Ending::Complete });
    Ok(Spilled {
        resources,
        phases,
        elapsed_ns,
        rows: work.output.count,
        checksum: format!("{:016x}", work.output.sum),
        verified: true,
        peak_bytes: work.space.peak_bytes(),
        warnings: medium.warnings(),
        trace,
        plan: work.plan,
    })
}

/// What must come out, from the rows alone: the pairs of a key are the product of its rows, and the
/// sum of products is the product of sums.
fn oracle(build: &Rows, probe: &Rows, sink: &dyn Sink) -> Result<Pairs, Error> {
    let mut keys: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut row = vec![0u8; build.width_bytes as usize];
    for number in 0..build.count {
        build.make(number, &mut row);
        let found = keys.entry(build.key(number)).or_default();
        *found = (found.0 + 1, found.1.wrapping_add(digest(&row)));
        if number % 4096 == 0 && sink.cancelled() {
            return Err(Error::Interrupted);
        }
    }
    let mut pairs = Pairs::default();
    let mut row = vec![0u8; probe.width_bytes as usize];
    for number in 0..probe.count {
        if let Some((count, sum)) = keys.get(&probe.key(number)) {
            probe.make(number, &mut row);
            pairs.count += count;
            pairs.sum = pairs.sum.wrapping_add(sum.wrapping_mul(digest(&row)));
        }
        if number % 4096 == 0 && sink.cancelled() {
            return Err(Error::Interrupted);
        }
    }
    Ok(pairs)
}

impl<M: Medium> Work<'_, M> {
    /// Runs `work` as a phase of its own.
    fn phase<T>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.account.phases.push(Phase { name: name.to_owned(), ..Phase::default() });
        self.progress.doing = format!("join: {name}");
        let before = (self.medium.now_ns(), self.medium.cpu_ns());
        let done = work(self)?;
        let phase = self.account.phase();
        phase.elapsed_ns = self.medium.now_ns() - before.0;
        phase.cpu_ns = self.medium.cpu_ns() - before.1;
        Ok(done)
    }

    /// The build side fits: no cluster is written.
    fn in_memory(&mut self) -> Result<(), Error> {
        let [build, probe] = self.rows;
        let mut table = Table::new(build.count, build.width_bytes);
        let mut row = vec![0u8; build.width_bytes as usize];
        for number in 0..build.count {
            build.make(number, &mut row);
            table.insert(&row);
        }
        self.medium.worked(build.count);
        let mut row = vec![0u8; probe.width_bytes as usize];
        for number in 0..probe.count {
            probe.make(number, &mut row);
            table.probe(&row, &mut self.output);
            if number % 4096 == 0 && self.sink.cancelled() {
                return Err(Error::Interrupted);
            }
        }
        self.medium.worked(probe.count);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use events::Quiet;
    use model::Ram;
    use profile::ram::RamParameters;
    use units::Bytes;

    use super::plan::part_of;
    use super::*;
    use crate::rows::Keys;
    use crate::simulated::Simulated;

    #[test]
    fn bytes_are_those_of_each_part_in_whole_clusters() {
        let build = Rows { count: 8_000, width_bytes: 100, keys: Keys::Ascending, seed: 1 };
        let probe = Rows { count: 24_000, width_bytes: 60, keys: Keys::Zipf(9_000), seed: 2 };
        let resources = Resources { memory: Bytes(256 << 10), cluster: Bytes(4096), depth: 8 };
        let ram = RamParameters { capacity: None, latency_ns: 100.0, bytes_per_s: 1e9, ports: 4 };
        let medium = Simulated::new("ram", Box::new(Ram::new(&ram)), 0);
        let joined = join(&medium, (build, probe), resources, false, &Quiet).unwrap();
        let plan = &joined.plan;
        let clusters = |rows: &Rows, fit: u64| {
            let mut parts = vec![0u64; plan.parts as usize];
            (0..rows.count).for_each(|n| parts[part_of(rows.key(n), 0, plan.parts)] += 1);
            parts.iter().map(|count| count.div_ceil(fit)).sum::<u64>()
        };
        let [fit_build, fit_probe] = plan.rows_per_cluster;
        let expected = (clusters(&build, fit_build) + clusters(&probe, fit_probe)) * 4096;
        assert_eq!((joined.written_bytes(), joined.read_bytes()), (expected, expected));
        // Keys of the build side spread evenly; the estimate knows no more than that.
        let estimate = plan.written_bytes as f64 / expected as f64;
        assert!((estimate - 1.0).abs() < 0.02, "estimate over bytes: {estimate}");
    }
}

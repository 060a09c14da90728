//! External merge sort: runs, then merges, then a check of what comes out.
//!
//! A run is as many rows as the memory holds beside the clusters under way, sorted by key and
//! number (load, sort, store; pattern-defeating quicksort of the standard library). Merges follow
//! [`SortPlan`]. The last merge hands its rows on and writes nothing, as below an operator that
//! takes them.

mod merge;
mod plan;
mod runs;

use events::{Ending, Event, Sink};
pub use plan::{Merge, SortPlan};

use crate::account::{Account, Phase, Spilled};
use crate::error::Error;
use crate::medium::Medium;
use crate::options::Resources;
use crate::progress::Progress;
use crate::rows::{Rows, digest, rank};
use crate::space::Space;

/// Stream of the first phase in the trace.
const RUNS: u16 = 0;
/// Stream of the second.
const MERGES: u16 = 1;

/// What the parts of a sort share.
struct Work<'a, M: Medium> {
    medium: &'a M,
    resources: Resources,
    rows: Rows,
    plan: &'a SortPlan,
    space: Space,
    account: Account,
    sink: &'a dyn Sink,
    start_ns: u64,
    progress: Progress<'a>,
}

/// Sorts `rows` on `medium`. With `record`, the result holds every request as a trace.
///
/// # Errors
/// Settings that cannot be, no room, failed requests, an interruption, and [`Error::Wrong`] where
/// what comes out is not what went in.
pub fn sort<M: Medium>(
    medium: &M,
    rows: Rows,
    resources: Resources,
    record: bool,
    sink: &dyn Sink,
) -> Result<Spilled<SortPlan>, Error> {
    resources.check(medium.sector_bytes())?;
    let plan = SortPlan::new(&rows, &resources)?;
    medium.reserve(plan.most_bytes)?;
    let source =
        format!("external merge sort of {} rows of {} bytes", rows.count, rows.width_bytes);
    let streams: Option<&[&str]> = record.then_some(&["runs", "merges"]);
    let mut work = Work {
        medium,
        resources,
        rows,
        plan: &plan,
        space: Space::new(resources.cluster.0),
        account: Account::new(streams, &source, medium.layer()),
        sink,
        start_ns: medium.now_ns(),
        progress: Progress::new(sink, (plan.read_bytes + plan.written_bytes) / resources.cluster.0),
    };
    let mut input = 0u64;
    let mut runs = work.phase("runs", |work| work.make_runs(&mut input))?;
    let output = work.phase("merges", |work| {
        for (index, merge) in plan.merges.iter().enumerate() {
            let last = index + 1 == plan.merges.len();
            let sources = merge.inputs.iter().map(|run| std::mem::take(&mut runs[*run as usize]));
            let sources: Vec<_> = sources.collect();
            if last {
                return work.merge_out(sources);
            }
            let merged = work.merge_to_run(sources)?;
            runs.push(merged);
        }
        Ok(Output::default())
    })?;
    let elapsed_ns = medium.now_ns() - work.start_ns;
    output.compare(rows.count, input)?;
    let peak_bytes = work.space.peak_bytes();
    assert!(peak_bytes <= plan.most_bytes, "the file outgrew what was reserved");
    let facts = [
        ("rows", rows.count.to_string()),
        ("row_bytes", rows.width_bytes.to_string()),
        ("keys", rows.keys.to_string()),
    ];
    let (phases, trace) = work.account.finish(&resources, &facts);
    let elapsed_s = elapsed_ns as f64 / 1e9;
    sink.emit(Event::Done { stage: "temp".to_owned(), elapsed_s, ending: Ending::Complete });
    Ok(Spilled {
        resources,
        phases,
        elapsed_ns,
        rows: output.rows,
        checksum: format!("{:016x}", output.sum),
        verified: true,
        peak_bytes,
        warnings: medium.warnings(),
        trace,
        plan,
    })
}

impl<M: Medium> Work<'_, M> {
    /// Runs `work` as a phase of its own.
    fn phase<T>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.account.phases.push(Phase { name: name.to_owned(), ..Phase::default() });
        self.progress.doing = format!("sort: {name}");
        let before = (self.medium.now_ns(), self.medium.cpu_ns());
        let done = work(self)?;
        let phase = self.account.phase();
        phase.elapsed_ns = self.medium.now_ns() - before.0;
        phase.cpu_ns = self.medium.cpu_ns() - before.1;
        Ok(done)
    }
}

/// What came out of the last merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Output {
    rows: u64,
    sum: u64,
    last: Option<(u64, u64)>,
}

impl Output {
    /// One more row, which must not come before the one in front of it.
    #[inline]
    fn take(&mut self, row: &[u8]) -> Result<(), Error> {
        let place = rank(row);
        if self.last.is_some_and(|last| last >= place) {
            let what = format!("row {} of the output is smaller than the one before", self.rows);
            return Err(Error::Wrong { what });
        }
        self.last = Some(place);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(digest(row));
        Ok(())
    }

    /// Whether as many rows came out as went in, and the same.
    fn compare(&self, rows: u64, sum: u64) -> Result<(), Error> {
        if self.rows != rows {
            let what = format!("{rows} rows went in and {} came out", self.rows);
            return Err(Error::Wrong { what });
        }
        if self.sum != sum {
            let what = format!("checksum {sum:016x} went in and {:016x} came out", self.sum);
            return Err(Error::Wrong { what });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_output_is_found() {
        let rows = Rows { count: 3, width_bytes: 24, keys: crate::Keys::Ascending, seed: 1 };
        let row = |number| {
            let mut row = vec![0; 24];
            rows.make(number, &mut row);
            row
        };
        let sum = (0..3).map(|n| digest(&row(n))).fold(0u64, u64::wrapping_add);
        let mut good = Output::default();
        (0..3).for_each(|n| good.take(&row(n)).unwrap());
        assert!(good.compare(3, sum).is_ok());
        assert!(good.compare(4, sum).is_err());
        assert!(good.compare(3, sum + 1).is_err());
        assert!(good.take(&row(2)).is_err(), "a row twice");
        assert!(good.take(&row(1)).is_err(), "a row too small");
    }
}

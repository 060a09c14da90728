//! What a probe found, in sentences and one picture: for people who want to know what the disk can
//! do, not what each of a hundred cells measured.

use fit::measurement::{Arrival, Cell, CellResult, Durability, Measurements, Order};
use report::format::{bytes_per_s, count, duration_ns};
use report::{Axis, BarSeries, Figure, Page, Section};
use stats::Histogram;
use trace::Op;

const KIB: u32 = 1024;

/// The sentences, the most telling first. A sentence whose cells were not measured is left out.
pub fn sentences(measured: &Measurements) -> Vec<String> {
    let cells = Cells(&measured.cells);
    [cells.reads(), cells.streams(), cells.commits(), cells.cache()].into_iter().flatten().collect()
}

/// Requests of 4 KiB per second by how many are in flight; `None` where that was not measured.
pub fn picture(measured: &Measurements) -> Option<Page> {
    let cells = Cells(&measured.cells);
    let depths: Vec<u32> = [1, 2, 4, 8, 16, 32]
        .into_iter()
        .filter(|depth| {
            cells.random(Op::Read, *depth).or(cells.random(Op::Write, *depth)).is_some()
        })
        .collect();
    let series: Vec<BarSeries> = [(Op::Read, "reads"), (Op::Write, "writes")]
        .into_iter()
        .filter_map(|(op, name)| {
            let rates = depths.iter().map(|depth| Some(cells.random(op, *depth)?.per_s()));
            rates.collect::<Option<Vec<f64>>>().map(|rates| BarSeries::new(name, rates))
        })
        .collect();
    if depths.len() < 2 || series.is_empty() {
        return None;
    }
    let figure = Figure::bars(
        "depth",
        "Random requests of 4 KiB per second, by requests in flight",
        depths.iter().map(|depth| format!("{depth} in flight")).collect(),
        Axis::linear("Requests per second", "/s"),
        series,
    );
    let section = Section::new("depth", "What the disk can do").figure(figure);
    Some(Page::new("What the disk can do", "").section(section))
}

struct Cells<'a>(&'a [CellResult]);

/// All rounds of one cell together, of one operation.
struct Together {
    requests: u64,
    bytes: u64,
    elapsed_s: f64,
    response: Histogram,
}

impl Together {
    fn per_s(&self) -> f64 {
        self.requests as f64 / self.elapsed_s
    }

    fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.elapsed_s
    }

    fn quantile(&self, q: f64) -> String {
        duration_ns(self.response.quantile(q) as f64)
    }
}

impl Cells<'_> {
    /// Requests of `op` in the rounds of the closed cells that `wanted` takes.
    fn together(&self, op: Op, wanted: impl Fn(&Cell) -> bool) -> Option<Together> {
        let mut all =
            Together { requests: 0, bytes: 0, elapsed_s: 0.0, response: Histogram::new() };
        for result in self.0 {
            let cell = &result.cell;
            let Some(class) = result.classes.iter().find(|class| class.op == op) else { continue };
            if cell.arrival == Arrival::Closed && wanted(cell) {
                all.requests += class.response.count;
                all.bytes += class.response.count * u64::from(cell.size_bytes);
                all.elapsed_s += result.elapsed_s;
                all.response.merge(&Histogram::from_buckets(&class.response.buckets));
            }
        }
        (all.requests > 0 && all.elapsed_s > 0.0).then_some(all)
    }

    fn plain(&self, op: Op, order: Order, size_bytes: u32, depth: u32) -> Option<Together> {
        let read_share = if op == Op::Read { 1.0 } else { 0.0 };
        self.together(op, |cell| {
            let is_plain = cell.durability == Durability::None && cell.read_share == read_share;
            is_plain && (cell.order, cell.size_bytes, cell.depth) == (order, size_bytes, depth)
        })
    }

    fn random(&self, op: Op, depth: u32) -> Option<Together> {
        self.plain(op, Order::Random, 4 * KIB, depth)
    }

    fn durable(&self, durability: Durability) -> Option<Together> {
        self.together(Op::Write, |cell| {
            cell.durability == durability
                && (cell.order, cell.size_bytes) == (Order::Sequential, 4 * KIB)
        })
    }

    fn reads(&self) -> Option<String> {
        let (one, most) = (self.random(Op::Read, 1)?, self.random(Op::Read, 32)?);
        Some(format!(
            "A random read of 4 KiB takes {} (p99 {}); 32 in flight give {} reads a second, {:.1} \
             times as many as one.",
            one.quantile(0.5),
            one.quantile(0.99),
            count(most.per_s()),
            most.per_s() / one.per_s()
        ))
    }

    fn streams(&self) -> Option<String> {
        let largest = |op| {
            let sizes = self.0.iter().map(|result| result.cell.size_bytes);
            let mut sizes: Vec<u32> = sizes.collect();
            sizes.sort_unstable();
            let of = |size: &u32| self.plain(op, Order::Sequential, *size, 1);
            sizes.iter().rev().find_map(|size| Some((*size, of(size)?)))
        };
        let (size, read) = largest(Op::Read)?;
        let write = largest(Op::Write).map_or(String::new(), |(_, write)| {
            format!(", writes {}", bytes_per_s(write.bytes_per_s()))
        });
        Some(format!(
            "One after another, reads of {} KiB reach {}{write}.",
            size / KIB,
            bytes_per_s(read.bytes_per_s())
        ))
    }

    fn commits(&self) -> Option<String> {
        let flushed = self.durable(Durability::Flush)?;
        let dsync = self.durable(Durability::Dsync).map_or(String::new(), |dsync| {
            format!("; opened with O_DSYNC {}", duration_ns(1e9 / dsync.per_s()))
        });
        Some(format!(
            "A commit, 4 KiB appended and synced, takes {}{dsync}. A session that waits for each \
             commit does at most {} a second.",
            duration_ns(1e9 / flushed.per_s()),
            count(flushed.per_s())
        ))
    }

    fn cache(&self) -> Option<String> {
        let (kept, synced) = (self.random(Op::Write, 1)?, self.durable(Durability::Flush)?);
        let factor = kept.per_s() / synced.per_s();
        Some(if factor > 2.0 {
            format!(
                "A write that is not synced takes {}: a volatile cache answers it, and {} is what \
                 durability costs.",
                kept.quantile(0.5),
                duration_ns(1e9 / synced.per_s() - 1e9 / kept.per_s())
            )
        } else {
            format!(
                "A write that is not synced takes {}, hardly less: what the disk acknowledges is \
                 durable, or it ignores the sync.",
                kept.quantile(0.5)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{picture, sentences};
    use fit::measurement::{Arrival, Cell, CellResult, ClassResult, Distribution, Durability};
    use fit::measurement::{Measurements, Order, Target};
    use trace::Op;

    /// A cell that answered each request of `op` in `us`, `depth` at a time, for a second.
    fn cell(
        op: Op,
        order: Order,
        kib: u32,
        depth: u32,
        durability: Durability,
        us: u64,
    ) -> CellResult {
        let count = 1_000_000 / us * u64::from(depth);
        let ns = us * 1000;
        let response = Distribution {
            count,
            mean_ns: ns as f64,
            min_ns: ns,
            max_ns: ns,
            buckets: vec![(ns, count)],
        };
        let read_share = if op == Op::Read { 1.0 } else { 0.0 };
        let size_bytes = kib * 1024;
        let arrival = Arrival::Closed;
        CellResult {
            cell: Cell { order, read_share, size_bytes, depth, durability, arrival },
            started_s: 0.0,
            elapsed_s: 1.0,
            requests: count,
            bytes: count * u64::from(size_bytes),
            cpu_user_ns: 0.0,
            cpu_system_ns: 0.0,
            classes: vec![ClassResult { op, service: response.clone(), response }],
            windows: Vec::new(),
            steady: None,
            warnings: Vec::new(),
        }
    }

    fn measured(cells: Vec<CellResult>) -> Measurements {
        let target = Target {
            path: "/data".to_owned(),
            kind: "file".to_owned(),
            range_bytes: 1 << 30,
            logical_block_bytes: 512,
            facts: std::collections::BTreeMap::new(),
        };
        Measurements {
            schema: 1,
            target,
            cells,
            commit_load: None,
            burst: None,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_disk_with_a_volatile_cache_is_told_as_such() {
        use Durability::{Flush, None};
        use Order::{Random, Sequential};
        let cells = vec![
            cell(Op::Read, Random, 4, 1, None, 100),
            cell(Op::Read, Random, 4, 32, None, 200),
            cell(Op::Write, Random, 4, 1, None, 20),
            cell(Op::Read, Sequential, 256, 1, None, 500),
            cell(Op::Write, Sequential, 256, 1, None, 1000),
            cell(Op::Write, Sequential, 4, 1, Flush, 1000),
            // A second round counts with the first.
            cell(Op::Read, Random, 4, 1, None, 100),
        ];
        let measured = measured(cells);
        let said = sentences(&measured);
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[0].contains("takes 100 us (p99 100 us)"), "{}", said[0]);
        assert!(said[0].contains("160,000 reads a second, 16.0 times"), "{}", said[0]);
        assert!(said[1].contains("256 KiB reach 524 MB/s, writes 262 MB/s"), "{}", said[1]);
        assert!(said[2].contains("takes 1 ms. A session"), "{}", said[2]);
        assert!(said[2].contains("at most 1,000 a second"), "{}", said[2]);
        assert!(said[3].contains("a volatile cache answers it, and 980 us"), "{}", said[3]);
        let drawn = report::terminal(&picture(&measured).expect("two depths"), 100, false);
        assert!(drawn.contains("32 in flight"), "{drawn}");
        assert!(!drawn.contains("writes"), "writes were measured at one depth only: {drawn}");
    }

    #[test]
    fn what_was_not_measured_is_not_told() {
        let read_only = measured(vec![
            cell(Op::Read, Order::Random, 4, 1, Durability::None, 100),
            cell(Op::Read, Order::Sequential, 64, 1, Durability::None, 100),
        ]);
        let said = sentences(&read_only);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].ends_with("reads of 64 KiB reach 655 MB/s."), "{}", said[0]);
        assert!(picture(&read_only).is_none());
        assert!(sentences(&measured(Vec::new())).is_empty());
    }
}

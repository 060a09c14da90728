//! The classes of a probe run by what they measured, repeats merged.

use std::collections::BTreeMap;
use std::fmt;

use profile::linear::Pattern;
use trace::Op;

use crate::measurement::{Arrival, Cell, CellResult, Distribution, Durability, Order};

/// What a class measured, in terms that order and compare exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) op: Op,
    pub(super) pattern: Pattern,
    pub(super) durability: Durability,
    pub(super) size_bytes: u32,
    pub(super) depth: u32,
    /// Share of reads in thousandths.
    pub(super) read_share: u32,
    /// Rate in requests per second of Poisson arrivals; 0 for a closed loop.
    pub(super) rate_per_s: u32,
}

/// One class: all repeats of a cell, merged.
#[derive(Clone, Debug)]
pub(super) struct Class<'a> {
    pub(super) key: Key,
    pub(super) service: Distribution,
    /// Requests of the cells over their seconds.
    pub(super) iops: f64,
    /// The cells behind it, with their index in the run.
    pub(super) cells: Vec<(usize, &'a CellResult)>,
}

/// All classes with samples.
#[derive(Clone, Debug)]
pub(super) struct Classes<'a> {
    all: BTreeMap<Key, Class<'a>>,
    pub(super) cells: usize,
}

pub(super) fn pattern_of(order: Order) -> Pattern {
    match order {
        Order::Sequential => Pattern::Sequential,
        Order::Random => Pattern::Random,
    }
}

pub(super) fn key_of(cell: &Cell, op: Op) -> Key {
    Key {
        op,
        pattern: pattern_of(cell.order),
        durability: cell.durability,
        size_bytes: cell.size_bytes,
        depth: cell.depth,
        read_share: (cell.read_share * 1000.0).round() as u32,
        rate_per_s: match cell.arrival {
            Arrival::Closed => 0,
            Arrival::Poisson { rate_per_s } => (rate_per_s.round() as u32).max(1),
        },
    }
}

impl<'a> Classes<'a> {
    /// Of cells with their index in the run.
    pub(super) fn new(of: impl Iterator<Item = (usize, &'a CellResult)>) -> Self {
        let mut all: BTreeMap<Key, Class<'a>> = BTreeMap::new();
        let mut cells = 0;
        for (index, cell) in of {
            cells += 1;
            for class in cell.classes.iter().filter(|class| class.service.count > 0) {
                let key = key_of(&cell.cell, class.op);
                let entry = all.entry(key).or_insert_with(|| Class {
                    key,
                    service: Distribution::default(),
                    iops: 0.0,
                    cells: Vec::new(),
                });
                entry.service = merge(&entry.service, &class.service);
                entry.cells.push((index, cell));
            }
        }
        for class in all.values_mut() {
            let requests: u64 = class.cells.iter().map(|(_, cell)| cell.requests).sum();
            let seconds: f64 = class.cells.iter().map(|(_, cell)| cell.elapsed_s).sum();
            class.iops = if seconds > 0.0 { requests as f64 / seconds } else { 0.0 };
        }
        Self { all, cells }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Class<'a>> {
        self.all.values()
    }

    /// Closed classes of one operation alone, without durability.
    pub(super) fn pure(&self, op: Op, pattern: Pattern) -> impl Iterator<Item = &Class<'a>> {
        let share = if op == Op::Read { 1000 } else { 0 };
        self.iter().filter(move |class| {
            let key = &class.key;
            key.op == op
                && key.pattern == pattern
                && key.durability == Durability::None
                && key.read_share == share
                && key.rate_per_s == 0
        })
    }

    /// Those of them at depth 1.
    pub(super) fn single(&self, op: Op, pattern: Pattern) -> impl Iterator<Item = &Class<'a>> {
        self.pure(op, pattern).filter(|class| class.key.depth == 1)
    }
}

/// The rate of a whole cell.
pub(super) fn rate(result: &CellResult) -> f64 {
    result.requests as f64 / result.elapsed_s.max(1e-9)
}

/// The rate at the end of a cell: over the last third of its windows.
pub(super) fn last_rate(result: &CellResult) -> f64 {
    let count = result.windows.len();
    let last = &result.windows[count - count.div_ceil(3)..];
    if last.is_empty() {
        return rate(result);
    }
    last.iter().map(|window| window.iops).sum::<f64>() / last.len() as f64
}

/// Two distributions of one thing as one.
pub(super) fn merge(a: &Distribution, b: &Distribution) -> Distribution {
    if a.count == 0 || b.count == 0 {
        return if a.count == 0 { b.clone() } else { a.clone() };
    }
    let count = a.count + b.count;
    let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
    for (value, samples) in a.buckets.iter().chain(&b.buckets) {
        *buckets.entry(*value).or_insert(0) += samples;
    }
    Distribution {
        count,
        mean_ns: (a.mean_ns * a.count as f64 + b.mean_ns * b.count as f64) / count as f64,
        min_ns: a.min_ns.min(b.min_ns),
        max_ns: a.max_ns.max(b.max_ns),
        buckets: buckets.into_iter().collect(),
    }
}

/// The value at probability `p`, ns.
pub(super) fn quantile_ns(distribution: &Distribution, p: f64) -> f64 {
    let total: u64 = distribution.buckets.iter().map(|bucket| bucket.1).sum();
    let rank = ((p * total as f64).ceil() as u64).max(1);
    let mut seen = 0;
    for (value, count) in &distribution.buckets {
        seen += count;
        if seen >= rank {
            return *value as f64;
        }
    }
    distribution.max_ns as f64
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pattern = match self.pattern {
            Pattern::Sequential => "sequential",
            Pattern::Random => "random",
        };
        write!(f, "{pattern} ")?;
        match self.read_share {
            0 => write!(f, "write")?,
            1000 => write!(f, "read")?,
            share => write!(f, "{} % read", f64::from(share) / 10.0)?,
        }
        write!(f, " {} depth {}", units::Bytes(u64::from(self.size_bytes)), self.depth)?;
        match self.durability {
            Durability::None => {}
            Durability::Flush => write!(f, " with flush")?,
            Durability::Dsync => write!(f, " O_DSYNC")?,
        }
        match self.rate_per_s {
            0 => Ok(()),
            rate => write!(f, " at {rate}/s"),
        }
    }
}

/// The sizes of classes in words: `4KiB..1MiB`.
pub(super) fn sizes(sizes: &[u32]) -> String {
    let text = |size: u32| units::Bytes(u64::from(size)).to_string();
    match (sizes.iter().min(), sizes.iter().max()) {
        (Some(&least), Some(&most)) if least != most => format!("{}..{}", text(least), text(most)),
        (Some(&only), _) => text(only),
        _ => "no size".to_owned(),
    }
}

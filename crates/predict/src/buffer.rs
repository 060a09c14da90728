//! A larger buffer than the captured one: which of its reads would have been answered.
//!
//! A capture shows only what the buffer missed. A page that is missed again was last used `d`
//! misses of other pages ago; an LRU buffer of `b` pages of which `h` are used so often that they
//! are never missed keeps it for `b - h` such misses, and one of `B` pages for `B - h` (Mattson,
//! Gecsei, Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal
//! 9(2), 1970: a smaller LRU buffer holds a part of what a larger one holds). `b - h` is the
//! shortest distance at which pages are missed again, so the larger buffer answers what comes back
//! within `B - b` more. A page that is missed for the first time since the capture began comes
//! back after an unknown distance, longer than the misses so far: it is answered with the
//! probability that the others give (Kaplan and Meier, "Nonparametric estimation from incomplete
//! observations", JASA 53, 1958).
//!
//! A buffer that is full writes a page back for each that it reads, so writes of data become fewer
//! as reads do. Tested against LRU buffers of both sizes on references that the rule was not made
//! with.

use std::collections::HashMap;

use sim::transactions::{Pace, Setup, Step, Templates};
use trace::Op;
use trace::info::LruStack;

use crate::background::DATA_WRITES;
use crate::captured::Captured;

/// Part of the distances that lies below `b - h`: a clock and pages that came together blur it.
const SHORTEST: f64 = 0.05;

/// After how many misses of other pages one comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reuse {
    /// So many.
    After(u32),
    /// More than so many: it is the first miss of the page in the capture.
    Beyond(u32),
}

impl Reuse {
    fn distance(self) -> u32 {
        match self {
            Self::After(distance) | Self::Beyond(distance) => distance,
        }
    }
}

/// Reads that the captured buffer missed.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    bytes: u64,
    page_bytes: u64,
    /// Of every read of data, in the order of the capture.
    reuse: Vec<Reuse>,
    /// Of those that are steps of the templates, in their order: index into `reuse`; none of a
    /// read of other files.
    pub(crate) of_steps: Vec<Option<u32>>,
}

/// What a larger buffer does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effect {
    /// Share of the captured reads that are left.
    pub(crate) reads_left: f64,
    /// Share of the captured reads whose distance is not known.
    pub(crate) estimated: f64,
}

impl Buffer {
    /// Learns from the reads of data of a capture; also gives what [`Buffer::of_steps`] has for
    /// each of them, by their index in the logical trace.
    pub(crate) fn learn(captured: &Captured, bytes: u64) -> (Self, HashMap<usize, u32>) {
        let page_bytes = captured.system.data_page_bytes();
        let logical = &captured.logical;
        let mut missed = LruStack::new();
        let (mut reuse, mut index) = (Vec::new(), HashMap::new());
        for at in Captured::of(logical, "data", Op::Read) {
            let (first, len) = (logical.offset[at] / page_bytes, u64::from(logical.len[at]));
            let pages = first..first + len.div_ceil(page_bytes).max(1);
            // All of a read must be there, or it is made.
            let each = pages.map(|page| {
                let so_far = missed.blocks() as u32;
                let distance = missed.touch(page).distance;
                distance.map_or(Reuse::Beyond(so_far), Reuse::After)
            });
            let of_read = each.max_by_key(|reuse| reuse.distance()).expect("at least one page");
            index.insert(at, reuse.len() as u32);
            reuse.push(of_read);
        }
        (Self { bytes, page_bytes, reuse, of_steps: Vec::new() }, index)
    }

    /// Size of the captured buffer.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The system with a buffer of `bytes`, at least as large as the captured one.
    pub(crate) fn enlarge(&self, setup: &Setup, bytes: u64) -> (Setup, Effect) {
        let answered = self.answered(bytes);
        let hits = answered.iter().filter(|answered| **answered).count();
        let count = self.reuse.len().max(1) as f64;
        let unknown = self.reuse.iter().filter(|reuse| matches!(reuse, Reuse::Beyond(_)));
        let effect = Effect {
            reads_left: 1.0 - hits as f64 / count,
            estimated: unknown.count() as f64 / count,
        };
        let mut setup = setup.clone();
        let mut templates = Templates::default();
        let mut own = self.of_steps.iter();
        for (kind, steps) in setup.templates.iter() {
            let stays = |step: &Step| match step {
                Step::Read { .. } | Step::ReadAhead { .. } => {
                    let own = own.next().expect("a read of the templates is one of the capture");
                    own.is_none_or(|index| !answered[index as usize])
                }
                _ => true,
            };
            let steps: Vec<Step> = steps.iter().copied().filter(stays).collect();
            templates.push(kind, &steps);
        }
        setup.templates = templates;
        for task in setup.background.iter_mut().filter(|task| task.name == DATA_WRITES) {
            if let Pace::Transactions { each, .. } = &mut task.pace {
                *each /= effect.reads_left.max(1e-3);
            }
        }
        (setup, effect)
    }

    /// Of every captured read whether a buffer of `bytes` answers it.
    fn answered(&self, bytes: u64) -> Vec<bool> {
        let more = bytes.saturating_sub(self.bytes) / self.page_bytes;
        let mut known: Vec<u32> = self
            .reuse
            .iter()
            .filter_map(|reuse| match reuse {
                Reuse::After(distance) => Some(*distance),
                Reuse::Beyond(_) => None,
            })
            .collect();
        known.sort_unstable();
        let shortest = known.get((known.len() as f64 * SHORTEST) as usize).copied().unwrap_or(0);
        let within = if more == 0 { 0 } else { u64::from(shortest) + more };
        let survival = Survival::of(&self.reuse);
        let at_end = survival.at(within);
        let mut owed = 0.0;
        let each = self.reuse.iter().map(|reuse| match *reuse {
            Reuse::After(distance) => u64::from(distance) <= within && more > 0,
            Reuse::Beyond(distance) if u64::from(distance) < within => {
                let still = survival.at(u64::from(distance));
                owed += if still > 0.0 { 1.0 - at_end / still } else { 0.0 };
                let hits = owed >= 1.0;
                owed -= f64::from(u8::from(hits));
                hits
            }
            Reuse::Beyond(_) => false,
        });
        each.collect()
    }
}

/// Share of reads that come back after more than a distance.
struct Survival {
    /// (distance, share beyond it), distances rise.
    steps: Vec<(u32, f64)>,
}

impl Survival {
    fn of(reuse: &[Reuse]) -> Self {
        let mut all = reuse.to_vec();
        // At the same distance, what came back comes before what is only known to be beyond.
        all.sort_unstable_by_key(|one| (one.distance(), matches!(one, Reuse::Beyond(_))));
        let (mut share, mut steps) = (1.0, Vec::new());
        for (index, one) in all.iter().enumerate() {
            if let Reuse::After(distance) = one {
                share *= 1.0 - 1.0 / (all.len() - index) as f64;
                steps.push((*distance, share));
            }
        }
        Self { steps }
    }

    fn at(&self, distance: u64) -> f64 {
        let below = self.steps.partition_point(|(own, _)| u64::from(*own) <= distance);
        below.checked_sub(1).map_or(1.0, |last| self.steps[last].1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stats::rng::Rng;
    use trace::{Chains, Request, Stream, Trace};
    use units::{Bytes, Nanos};

    use super::*;

    const PAGE: u64 = 8192;

    /// An LRU buffer of `pages`: the references that it does not answer, warm-up apart.
    fn missed(references: &[u64], pages: usize, warmup: usize) -> Vec<u64> {
        let mut stack = LruStack::new();
        let misses = references.iter().enumerate().filter_map(|(number, page)| {
            let distance = stack.touch(*page).distance;
            let is_hit = distance.is_some_and(|distance| (distance as usize) < pages);
            (!is_hit && number >= warmup).then_some(*page)
        });
        misses.collect()
    }

    fn captured(pages: &[u64]) -> Captured {
        let mut logical = Trace {
            streams: vec![Stream { name: "data".to_owned() }],
            service: Some(Vec::new()),
            chains: Some(Chains::default()),
            ..Trace::default()
        };
        for (at, page) in pages.iter().enumerate() {
            let (due, offset) = (Nanos(at as u64), Bytes(page * PAGE));
            let read = Request { due, offset, len: PAGE as u32, op: Op::Read, stream: 0 };
            logical.push_captured(read, Nanos(1), 0, 1);
        }
        Captured { logical, ..crate::tests::captured() }
    }

    /// Hot pages of an index, warm rows by a power law, a part that is read once and never again.
    fn references(rng: &mut Rng, count: usize, exponent: f64) -> Vec<u64> {
        let mut once = 1 << 32;
        let mut draw = || match rng.unit() {
            hot if hot < 0.5 => rng.below(200),
            warm if warm < 0.95 => 1000 + (20_000.0 * rng.unit().powf(exponent)) as u64,
            _ => {
                once += 1;
                once
            }
        };
        (0..count).map(|_| draw()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// The misses of a small buffer tell those of a larger one.
        #[test]
        fn a_larger_buffer_misses_what_an_lru_buffer_of_its_size_does(
            seed: u64,
            exponent in 1.0f64..4.0,
            small in 500usize..3000,
            factor in 1.2f64..6.0,
        ) {
            let references = references(&mut Rng::new(seed), 300_000, exponent);
            let large = (small as f64 * factor) as usize;
            let few = missed(&references, large, 100_000);
            let most = missed(&references, small, 100_000);
            let bytes = small as u64 * PAGE;
            let (buffer, index) = Buffer::learn(&captured(&most), bytes);
            prop_assert_eq!(index.len(), most.len());
            let left = buffer.answered(large as u64 * PAGE).iter().filter(|hit| !**hit).count();
            let error = left as f64 / few.len() as f64 - 1.0;
            let all = most.len();
            prop_assert!(error.abs() < 0.15, "{} left of {}, truly {}", left, all, few.len());
            prop_assert!(buffer.answered(bytes).iter().all(|hit| !hit));
        }
    }

    #[test]
    fn distances_are_counted_in_other_pages() {
        let (buffer, _) = Buffer::learn(&captured(&[1, 2, 3, 2, 1, 1, 4]), PAGE);
        let (after, beyond) = (Reuse::After, Reuse::Beyond);
        let expected = [beyond(0), beyond(1), beyond(2), after(1), after(2), after(0), beyond(3)];
        assert_eq!(buffer.reuse, expected);
        // 3 of 4 that were under observation at distance 1 came back later or were lost to sight.
        let survival = Survival::of(&buffer.reuse);
        let found = [0, 1, 2, 9].map(|distance| (survival.at(distance) * 1e3).round());
        assert_eq!(found, [857.0, 686.0, 457.0, 457.0]);
    }

    #[test]
    fn reads_that_are_answered_leave_the_templates_and_writes_become_fewer() {
        // Two pages in turns, again and again; a third one once.
        let pages: Vec<u64> = (0..1000).map(|at| at % 2).chain([7]).collect();
        let mut buffer = Buffer::learn(&captured(&pages), PAGE).0;
        buffer.of_steps = (0..1001).map(Some).chain([None]).collect();
        let mut setup = crate::tests::learned().setup;
        setup.templates = Templates::default();
        let read = Step::Read { class: 0, bytes: 8192, offset: 0 };
        setup.templates.push(0, &vec![read; 1002]);
        setup.background[0].name = DATA_WRITES.to_owned();
        setup.background[0].pace = Pace::Transactions { each: 10.0, after: 0 };
        let (larger, effect) = buffer.enlarge(&setup, 3 * PAGE);
        let left = larger.templates.reads().0;
        assert!(
            (4..=5).contains(&left),
            "the first two, the third, and one of another file: {left}"
        );
        assert!((effect.reads_left - (left - 1) as f64 / 1001.0).abs() < 1e-9);
        assert!((effect.estimated - 3.0 / 1001.0).abs() < 1e-9);
        let Pace::Transactions { each, .. } = larger.background[0].pace else {
            panic!("by transactions")
        };
        assert!((each - 10.0 / effect.reads_left).abs() < 1e-6, "{each}");
    }
}

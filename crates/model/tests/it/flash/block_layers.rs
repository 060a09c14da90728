//! Layers that map whole blocks: each against a slow oracle that keeps lists of what was written
//! where, against what they cost by arithmetic, and across a snapshot.

use std::collections::{HashMap, VecDeque};

use model::flash::FlashDevice;
use model::flash::reference::{Load, configuration_a};
use profile::flash::{FlashParameters, Geometry, Translation};
use proptest::prelude::*;
use trace::{Op, Trace};

use super::support::{completions, device, fill};

/// 4 planes of 24 blocks of 4 pages; 160 logical pages of 384.
fn small(translation: Translation) -> FlashParameters {
    let mut parameters = configuration_a();
    parameters.geometry = Geometry {
        channels: 2,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 2,
        blocks_per_plane: 24,
        pages_per_block: 4,
        page_bytes: 4096,
    };
    parameters.logical_pages = 160;
    parameters.translation = translation;
    parameters
}

/// What was written where, by lists that are searched.
#[derive(Default)]
struct Oracle {
    pages: u32,
    newest: HashMap<u32, u64>,
    /// Superblocks by name; an entry of `None` is a page that was skipped.
    contents: HashMap<String, Vec<Option<(u32, u64)>>>,
    version: u64,
    moved: u64,
    erased: u64,
    /// Logical blocks with a log or a replacement, least recently written first.
    recency: VecDeque<u32>,
    sequential: Option<u32>,
    random: VecDeque<u64>,
    randoms_opened: u64,
}

impl Oracle {
    fn fill(&self, name: &str) -> u32 {
        self.contents.get(name).map_or(0, |content| content.len() as u32)
    }

    fn put(&mut self, name: &str, at: u32, entry: (u32, u64)) {
        let content = self.contents.entry(name.to_owned()).or_default();
        assert!(content.len() <= at as usize && at < self.pages, "page {at} of {name} again");
        content.resize(at as usize, None);
        content.push(Some(entry));
    }

    fn host(&mut self, name: &str, at: u32, lpn: u32) {
        self.version += 1;
        self.newest.insert(lpn, self.version);
        self.put(name, at, (lpn, self.version));
    }

    /// Every live page of `logical` from `first` on goes to its place in `name`.
    fn copy(&mut self, name: &str, logical: u32, places: std::ops::Range<u32>) {
        for j in places {
            let lpn = logical * self.pages + j;
            if let Some(&version) = self.newest.get(&lpn) {
                self.moved += 1;
                self.put(name, j, (lpn, version));
            }
        }
    }

    fn erase(&mut self, name: &str) {
        let content = self.contents.remove(name).expect("it was written");
        self.erased += 1;
        for (lpn, version) in content.into_iter().flatten() {
            let elsewhere = self.contents.values().flatten().flatten();
            let kept = elsewhere.filter(|entry| **entry == (lpn, version)).count();
            assert!(kept > 0 || self.newest.get(&lpn) != Some(&version), "page {lpn} is lost");
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        let content = self.contents.remove(from).expect("it was written");
        self.contents.insert(to.to_owned(), content);
    }

    /// Whether `name` holds the newest of the first pages of `logical`, in order, and nothing else.
    fn in_order(&self, name: &str, logical: u32) -> bool {
        self.contents.get(name).is_some_and(|content| {
            content.iter().zip(logical * self.pages..).all(|(entry, lpn)| {
                entry.is_some_and(|(of, version)| {
                    of == lpn && self.newest.get(&lpn) == Some(&version)
                })
            })
        })
    }

    /// Merges the log `log` of `logical` in the cheapest way.
    fn merge(&mut self, log: &str, logical: u32) {
        let data = format!("data {logical}");
        let (whole, first) = if self.in_order(log, logical) {
            (log.to_owned(), self.fill(log))
        } else {
            ("new".to_owned(), 0)
        };
        self.contents.entry(whole.clone()).or_default();
        self.copy(&whole, logical, first..self.pages);
        self.erase(&data);
        if whole == "new" && self.contents.contains_key(log) {
            self.erase(log);
        }
        self.rename(&whole, &data);
    }

    fn write_replacement(&mut self, lpn: u32, open: usize) {
        let (logical, j) = (lpn / self.pages, lpn % self.pages);
        let (data, next) = (format!("data {logical}"), format!("next {logical}"));
        if self.recency.contains(&logical) && self.fill(&next) > j {
            self.complete(logical);
        }
        if !self.recency.contains(&logical) {
            if self.fill(&data) <= j {
                return self.host(&data, j, lpn);
            }
            if self.recency.len() == open {
                self.complete(self.recency[0]);
            }
        }
        self.recency.retain(|other| *other != logical);
        self.recency.push_back(logical);
        self.copy(&next, logical, self.fill(&next)..j);
        self.host(&next, j, lpn);
        if j + 1 == self.pages {
            self.complete(logical);
        }
    }

    fn complete(&mut self, logical: u32) {
        self.recency.retain(|other| *other != logical);
        let (data, next) = (format!("data {logical}"), format!("next {logical}"));
        self.copy(&next, logical, self.fill(&next)..self.pages);
        self.erase(&data);
        self.rename(&next, &data);
    }

    fn write_bast(&mut self, lpn: u32, logs: usize) {
        let (logical, j) = (lpn / self.pages, lpn % self.pages);
        let (data, log) = (format!("data {logical}"), format!("log {logical}"));
        if !self.recency.contains(&logical) && self.fill(&data) <= j {
            return self.host(&data, j, lpn);
        }
        let victim = if self.recency.contains(&logical) {
            (self.fill(&log) == self.pages).then_some(logical)
        } else {
            (self.recency.len() == logs).then(|| self.recency[0])
        };
        if let Some(victim) = victim {
            self.recency.retain(|other| *other != victim);
            self.merge(&format!("log {victim}"), victim);
        }
        self.recency.retain(|other| *other != logical);
        self.recency.push_back(logical);
        self.host(&log, self.fill(&log), lpn);
    }

    fn merge_fast(&mut self, logical: u32) {
        let mine = self.sequential == Some(logical);
        self.merge(if mine { "sequential" } else { "none" }, logical);
        if mine {
            self.sequential = None;
        }
    }

    fn write_fast(&mut self, lpn: u32, logs: usize) {
        let (logical, j) = (lpn / self.pages, lpn % self.pages);
        let data = format!("data {logical}");
        if self.fill(&data) <= j {
            return self.host(&data, j, lpn);
        }
        if j == 0 {
            if let Some(of) = self.sequential {
                self.merge_fast(of);
            }
            self.sequential = Some(logical);
        }
        if self.sequential == Some(logical) && self.fill("sequential") == j {
            self.host("sequential", j, lpn);
            if j + 1 == self.pages {
                self.merge_fast(logical);
            }
            return;
        }
        let name = |number: u64| format!("random {number}");
        let last = self.random.back().copied();
        if last.is_none_or(|number| self.fill(&name(number)) == self.pages) {
            if self.random.len() == logs {
                let victim = name(self.random.pop_front().expect("a log"));
                for k in 0..self.pages as usize {
                    let (lpn, version) = self.contents[&victim][k].expect("written");
                    if self.newest[&lpn] == version && self.is_only_in(&victim, (lpn, version)) {
                        self.merge_fast(lpn / self.pages);
                    }
                }
                self.erase(&victim);
            }
            self.randoms_opened += 1;
            self.random.push_back(self.randoms_opened);
        }
        let log = name(*self.random.back().expect("a log"));
        self.host(&log, self.fill(&log), lpn);
    }

    /// Copies leave their source behind: a page is live in `name` only where no copy was made.
    fn is_only_in(&self, name: &str, entry: (u32, u64)) -> bool {
        let others = self.contents.iter().filter(|(other, _)| *other != name);
        !others.flat_map(|(_, content)| content.iter().flatten()).any(|other| *other == entry)
    }
}

/// One page each, a second apart, so that nothing waits.
fn writes(pages: &[u32]) -> Trace {
    let mut load = Load::on(&configuration_a(), pages.len() as u64, 1.0, 0.0);
    load.pages = 160;
    let mut trace = load.uniform(0);
    for (offset, page) in trace.offset.iter_mut().zip(pages) {
        *offset = u64::from(*page) * 4096;
    }
    trace
}

/// Runs of neighbours, jumps, and places that are written again and again.
fn pages() -> impl Strategy<Value = Vec<u32>> {
    let run = prop_oneof![
        (0u32..160, 1u32..20).prop_map(|(first, length)| (first, length)),
        (0u32..40).prop_map(|block| (block * 4, 4)),
        (0u32..24).prop_map(|page| (page, 1)),
    ];
    prop::collection::vec(run, 1..60).prop_map(|runs| {
        runs.into_iter().flat_map(|(first, length)| first..(first + length).min(160)).collect()
    })
}

fn check(translation: Translation, width: u32, pages: &[u32], write: impl Fn(&mut Oracle, u32)) {
    let parameters = small(translation);
    let mut device = device(&parameters);
    let trace = writes(pages);
    let mut oracle = Oracle { pages: 4 * width, ..Oracle::default() };
    for (at, page) in pages.iter().enumerate() {
        let mut completion = [0];
        device.submit_due(&trace, at..at + 1, &mut completion);
        assert!(completion[0] > trace.due[at]);
        write(&mut oracle, *page);
        let counts = device.counts();
        let found = (counts.host_pages, counts.moved_pages, counts.erased_blocks);
        let expected = (at as u64 + 1, oracle.moved, oracle.erased * u64::from(width));
        assert_eq!(found, expected, "host, moved, erased after write {at} of page {page}");
    }
    device.audit();
    for lpn in 0..parameters.logical_pages {
        assert_eq!(device.locate(lpn).is_some(), oracle.newest.contains_key(&lpn), "page {lpn}");
    }
}

proptest! {
    #[test]
    fn block_mapping_does_what_its_oracle_does(pages in pages(), open in 1u32..4, wide in 0u32..3) {
        let width = 1 << wide;
        check(Translation::Block { width, open }, width, &pages, |oracle, lpn| {
            oracle.write_replacement(lpn, open as usize);
        });
    }

    #[test]
    fn bast_does_what_its_oracle_does(pages in pages(), logs in 1u32..5, wide in 0u32..3) {
        let width = 1 << wide;
        check(Translation::Bast { width, logs }, width, &pages, |oracle, lpn| {
            oracle.write_bast(lpn, logs as usize);
        });
    }

    #[test]
    fn fast_does_what_its_oracle_does(pages in pages(), logs in 1u32..5, wide in 0u32..3) {
        let width = 1 << wide;
        check(Translation::Fast { width, logs }, width, &pages, |oracle, lpn| {
            oracle.write_fast(lpn, logs as usize);
        });
    }

    #[test]
    fn a_restored_layer_goes_on_as_if_nothing_had_happened(
        first in pages(), second in pages(), kind in 0usize..3,
    ) {
        let parameters = small(layers(2)[kind]);
        let mut whole = device(&parameters);
        let (before, mut after) = (writes(&first), writes(&second));
        completions(whole.as_mut(), &before);
        let snapshot = whole.snapshot().expect("flash has snapshots");
        let mut restored = device(&parameters);
        restored.restore(&snapshot).expect("its own snapshot");
        after.due.iter_mut().for_each(|due| *due += before.span().0 + 1_000_000_000);
        let expected = completions(whole.as_mut(), &after);
        prop_assert_eq!(completions(restored.as_mut(), &after), expected);
        prop_assert_eq!(restored.snapshot(), whole.snapshot());
        restored.audit();
    }
}

fn layers(width: u32) -> [Translation; 3] {
    [
        Translation::Block { width, open: 2 },
        Translation::Bast { width, logs: 2 },
        Translation::Fast { width, logs: 2 },
    ]
}

/// A device whose pages were all written, with its counts and clock at zero.
fn filled(translation: Translation) -> (Box<dyn FlashDevice>, FlashParameters, u64) {
    let parameters = small(translation);
    let mut device = device(&parameters);
    let idle = fill(device.as_mut(), &parameters);
    device.reset_counts();
    (device, parameters, idle)
}

#[test]
fn sequential_overwrites_move_nothing() {
    // BAST leaves its last two logs, four erase blocks each, until another block needs them.
    for (translation, erased) in layers(4).into_iter().zip([40, 32, 40]) {
        let (mut device, parameters, idle) = filled(translation);
        let trace = Load::on(&parameters, 160, 1e3, 0.0).sequential(idle);
        completions(device.as_mut(), &trace);
        let counts = device.counts();
        assert_eq!((counts.moved_pages, counts.host_pages), (0, 160), "{translation:?}");
        assert_eq!(counts.erased_blocks, erased, "{translation:?}: every block once");
    }
}

#[test]
fn a_random_write_to_mapped_blocks_costs_a_block() {
    let (mut device, _, idle) = filled(Translation::Block { width: 4, open: 1 });
    // Twice round the ten blocks, each time another page of sixteen, none of them the last.
    let pages: Vec<u32> = (0..20).map(|k| (k % 10) * 16 + k * 7 % 15).collect();
    let mut trace = writes(&pages);
    trace.due.iter_mut().for_each(|due| *due += idle);
    completions(device.as_mut(), &trace);
    let counts = *device.counts();
    assert_eq!(counts.erased_blocks, 19 * 4, "all but the one in progress");
    let last = u64::from(pages[19] % 16);
    assert_eq!(counts.moved_pages, 19 * 15 + last, "all others of the block, once");
}

#[test]
fn fast_merges_a_block_for_every_page_of_a_scattered_log() {
    let (mut device, _, idle) = filled(Translation::Fast { width: 1, logs: 2 });
    // Two logs of four pages and one write more: the first log's four blocks are merged.
    let pages: Vec<u32> = (0..9).map(|block| block * 4 + 1).collect();
    let mut trace = writes(&pages);
    trace.due.iter_mut().for_each(|due| *due += idle);
    completions(device.as_mut(), &trace);
    let counts = device.counts();
    assert_eq!((counts.moved_pages, counts.erased_blocks), (16, 5), "four blocks and the log");
}

#[test]
fn trims_spare_merges_their_copies() {
    for translation in layers(4) {
        let (mut device, parameters, idle) = filled(translation);
        let mut trace = Load::on(&parameters, 2, 1.0, 0.0).sequential(idle);
        trace.op[0] = Op::Trim;
        (trace.offset[0], trace.len[0]) = (0, 16 * 4096);
        trace.offset[1] = 4096;
        completions(device.as_mut(), &trace);
        device.audit();
        assert_eq!(device.counts().trimmed_pages, 16, "{translation:?}");
        assert_eq!(device.counts().moved_pages, 0, "{translation:?}: nothing in front lives");
    }
}

#[test]
fn layers_that_do_not_fit_are_refused() {
    for (translation, field) in [
        (Translation::Block { width: 3, open: 1 }, "mapping.width_blocks"),
        (Translation::Bast { width: 0, logs: 1 }, "mapping.width_blocks"),
        (Translation::Fast { width: 4, logs: 0 }, "mapping.log_blocks"),
        (Translation::Bast { width: 4, logs: 14 }, "over_provisioning"),
    ] {
        let error = small(translation).check().expect_err(field).to_string();
        assert!(error.starts_with(field), "{error}");
    }
    assert_eq!(small(Translation::Bast { width: 4, logs: 13 }).check(), Ok(()));
}

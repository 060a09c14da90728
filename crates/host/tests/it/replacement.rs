//! Replacement policies against slow ones, and against libCacheSim's miss counts.

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;

use host::page_cache::replacement::{Policy, Replacement};
use proptest::prelude::*;

/// Miss counts that libCacheSim's tests assert (commit 0252dcfc) for caches of 128 to 1024 MiB.
const LIBCACHESIM: [(Policy, [u64; 8]); 4] = [
    (Policy::Lru, [93374, 89783, 83572, 81722, 72494, 72104, 71972, 71704]),
    (Policy::Fifo, [93403, 89386, 84387, 84025, 72498, 72228, 72182, 72140]),
    (Policy::Clock, [93313, 89775, 83411, 81328, 74815, 72283, 71927, 64456]),
    (Policy::Arc, [90252, 85861, 78168, 74297, 67381, 65685, 64439, 64772]),
];

/// Object and size of every request of the sample, or nothing, said on the terminal.
fn sample() -> Option<Vec<(u64, u64)>> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared"));
    let shared = std::env::var_os("WEARMARK_SHARED").map_or_else(beside, PathBuf::from);
    let path = shared.join("traces/cloudphysics-113872.oracleGeneral.zst");
    let Ok(file) = std::fs::File::open(&path) else {
        println!("skipped: {} is not there (set WEARMARK_SHARED)", path.display());
        return None;
    };
    let mut bytes = Vec::new();
    zstd::Decoder::new(file).expect("zstd").read_to_end(&mut bytes).expect("a whole file");
    // Time u32, object u64, size u32, next access i64, little endian without gaps.
    let field = |record: &[u8], at: usize| {
        u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"))
    };
    let rows = bytes.chunks_exact(24);
    Some(rows.map(|row| (field(row, 4), field(row, 12) & 0xffff_ffff)).collect())
}

#[test]
fn miss_counts_are_those_of_libcachesim() {
    let Some(requests) = sample() else { return };
    assert_eq!(requests.len(), 113_872);
    for (policy, expected) in LIBCACHESIM {
        for (step, expected) in (1..).zip(expected) {
            let mut cache = Replacement::new(policy, step * (128 << 20));
            let mut victims = Vec::new();
            let missed = requests.iter().filter(|(object, size)| {
                victims.clear();
                !cache.access(*object, *size, &mut victims)
            });
            assert_eq!(missed.count() as u64, expected, "{policy:?}, {} MiB", step * 128);
        }
    }
}

/// A policy as its paper states it, over plain vectors of unit pages, oldest first.
struct Slow {
    policy: Policy,
    size: usize,
    lists: [Vec<u64>; 4],
    used: HashSet<u64>,
    p: f64,
}

impl Slow {
    fn has(&self, list: usize, key: u64) -> bool {
        self.lists[list].contains(&key)
    }

    fn take(&mut self, list: usize, key: u64) {
        self.lists[list].retain(|other| *other != key);
    }

    /// Returns whether `key` was cached, and what left.
    fn access(&mut self, key: u64, dirty: &HashSet<u64>) -> (bool, Option<u64>) {
        match self.policy {
            Policy::TwoQ => self.two_q(key),
            Policy::Arc => self.arc(key),
            _ => self.one_list(key, dirty),
        }
    }

    fn one_list(&mut self, key: u64, dirty: &HashSet<u64>) -> (bool, Option<u64>) {
        if self.has(0, key) {
            match self.policy {
                Policy::Lru | Policy::CleanFirst => {
                    self.take(0, key);
                    self.lists[0].push(key);
                }
                Policy::Clock => _ = self.used.insert(key),
                _ => {}
            }
            return (true, None);
        }
        let mut left = None;
        if self.lists[0].len() == self.size {
            let mut place = 0;
            if self.policy == Policy::Clock {
                while self.used.remove(&self.lists[0][0]) {
                    self.lists[0].rotate_left(1);
                }
            }
            if self.policy == Policy::CleanFirst {
                let window = &self.lists[0][..self.size.div_ceil(4)];
                place = window.iter().position(|key| !dirty.contains(key)).unwrap_or(0);
            }
            left = Some(self.lists[0].remove(place));
        }
        self.lists[0].push(key);
        (false, left)
    }

    fn two_q(&mut self, key: u64) -> (bool, Option<u64>) {
        if self.has(1, key) {
            self.take(1, key);
            self.lists[1].push(key);
            return (true, None);
        }
        if self.has(0, key) {
            return (true, None);
        }
        let again = self.has(2, key);
        self.take(2, key);
        let mut left = None;
        if self.lists[0].len() + self.lists[1].len() == self.size {
            if self.lists[0].len() > self.size / 4 || self.lists[1].is_empty() {
                let oldest = self.lists[0].remove(0);
                self.lists[2].push(oldest);
                if self.lists[2].len() > self.size / 2 {
                    self.lists[2].remove(0);
                }
                left = Some(oldest);
            } else {
                left = Some(self.lists[1].remove(0));
            }
        }
        self.lists[usize::from(again)].push(key);
        (false, left)
    }

    /// The paper's four cases.
    fn arc(&mut self, key: u64) -> (bool, Option<u64>) {
        let c = self.size;
        for list in [0, 1] {
            if self.has(list, key) {
                self.take(list, key);
                self.lists[1].push(key);
                return (true, None);
            }
        }
        let full = self.lists[0].len() + self.lists[1].len() == c;
        for (ghosts, other) in [(2, 3), (3, 2)] {
            if self.has(ghosts, key) {
                let step = self.lists[other].len() as f64 / self.lists[ghosts].len() as f64;
                let step = if ghosts == 2 { step.max(1.0) } else { -step.max(1.0) };
                self.p = (self.p + step).clamp(0.0, c as f64);
                self.take(ghosts, key);
                let left = full.then(|| self.replace(ghosts == 3));
                self.lists[1].push(key);
                return (false, left);
            }
        }
        let mut left = None;
        if self.lists[0].len() + self.lists[2].len() == c {
            if self.lists[0].len() < c {
                self.lists[2].remove(0);
                left = full.then(|| self.replace(false));
            } else {
                left = Some(self.lists[0].remove(0));
            }
        } else if full {
            if self.lists.iter().map(Vec::len).sum::<usize>() == 2 * c {
                self.lists[3].remove(0);
            }
            left = Some(self.replace(false));
        }
        self.lists[0].push(key);
        (false, left)
    }

    fn replace(&mut self, was_in_b2: bool) -> u64 {
        let once = self.lists[0].len() as f64;
        let over = once >= 1.0 && (once > self.p || (was_in_b2 && once == self.p));
        let from = usize::from(!over && !self.lists[1].is_empty());
        let left = self.lists[from].remove(0);
        self.lists[from + 2].push(left);
        left
    }
}

/// ARC keeps B1 at most as long as the cache even while the cache is not full; only then can the
/// lists be shorter than the paper's, so every policy runs from an empty cache here.
fn check(policy: Policy, size: usize, keys: &[(u64, bool)]) -> Result<(), TestCaseError> {
    let mut fast = Replacement::new(policy, size as u64);
    let lists = Default::default();
    let mut slow = Slow { policy, size, lists, used: HashSet::new(), p: 0.0 };
    let mut dirty = HashSet::new();
    for (step, (key, write)) in keys.iter().enumerate() {
        let mut victims = Vec::new();
        let hit = fast.access(*key, 1, &mut victims);
        let (expected, left) = slow.access(*key, &dirty);
        prop_assert_eq!(hit, expected, "{:?} at {}", policy, step);
        prop_assert_eq!(victims.first().map(|victim| victim.key), left, "{:?} at {}", policy, step);
        prop_assert!(victims.len() <= 1 && fast.cached_bytes() <= size as u64);
        if let Some(victim) = victims.first() {
            prop_assert_eq!(victim.dirty, dirty.remove(&victim.key));
        }
        if *write {
            dirty.insert(*key);
            fast.set_dirty(*key, true);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn policies_do_as_their_papers_say(
        size in 1_usize..20,
        keys in prop::collection::vec((prop_oneof![0_u64..6, 0_u64..40], any::<bool>()), 1..400),
    ) {
        for policy in Policy::ALL {
            check(policy, size, &keys)?;
        }
    }
}

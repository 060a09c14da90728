//! Seeds of fuzz targets, and mutations of them: how the ordinary tests fuzz a little.

use std::path::{Path, PathBuf};

/// Mutations of the seeds of one target in an ordinary run; `SLOW=1` makes it fifty times as many.
const MUTATIONS: u64 = 200;

/// xorshift64*, so that a failure comes again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound.max(1)
    }
}

fn folder(target: &str) -> PathBuf {
    // The crates' tests include this file: the manifest is theirs.
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target)
}

/// The files of a folder and of those in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|_| panic!("{} has seeds", folder.display()));
    let paths = entries.map(|entry| entry.expect("listed").path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The seeds of a target, in the order of their names.
pub fn of(target: &str) -> Vec<Vec<u8>> {
    let mut paths = files(&folder(target));
    paths.sort();
    assert!(!paths.is_empty(), "{target} has seeds");
    paths.iter().map(|path| std::fs::read(path).expect("read")).collect()
}

/// The files of the seeds are what the code makes; `WRITE_SEEDS=1` makes them so.
#[allow(dead_code, reason = "not every target's seeds are made by code")]
pub fn are(target: &str, made: &[(&str, Vec<u8>)]) {
    let folder = folder(target);
    if std::env::var_os("WRITE_SEEDS").is_some() {
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder of seeds");
        for (name, bytes) in made {
            std::fs::write(folder.join(name), bytes).expect("written");
        }
    }
    for (name, bytes) in made {
        let found = std::fs::read(folder.join(name)).unwrap_or_default();
        assert!(found == *bytes, "seed {target}/{name} is old; WRITE_SEEDS=1 writes it");
    }
    assert_eq!(of(target).len(), made.len(), "{target} has a seed that no code makes");
}

fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    const WORDS: [&[u8]; 8] = [
        b"18446744073709551615",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\0\0\0\0",
        b"-1",
        b"\n",
        b",",
        b" ",
        b"\x80",
    ];
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len());
        let end = at + random.below((bytes.len() - at).min(64));
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => _ = bytes.drain(at..end),
            2 if !bytes.is_empty() => bytes[at] = random.below(256) as u8,
            3 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            4 => {
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            _ => {
                let word = WORDS[random.below(WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
        }
    }
    bytes
}

/// Runs a target's check on its seeds and on mutations of them.
pub fn run(target: &str, check: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let slow = std::env::var_os("SLOW").is_some_and(|value| value == "1");
    let rounds = if slow { 50 * MUTATIONS } else { MUTATIONS };
    let seeds = of(target);
    for seed in &seeds {
        check(seed);
    }
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for round in 0..rounds {
        let bytes = mutate(&seeds, &mut random);
        let checked = std::panic::catch_unwind(|| check(&bytes));
        assert!(checked.is_ok(), "{target} round {round}: {:?}", bytes.escape_ascii().to_string());
    }
}

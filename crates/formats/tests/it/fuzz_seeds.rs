//! The fuzz targets' entry on their seeds and on some thousand mutations of them, so that every run
//! of the tests fuzzes a little. `SLOW=1` does fifty times as many.

#[path = "../../../../fuzz/src/entry.rs"]
mod entry;

use std::path::Path;

use formats::Format;

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

fn seeds(format: Format) -> Vec<Vec<u8>> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds"));
    let folder = folder.join(format.name().replace('-', "_"));
    let files =
        std::fs::read_dir(&folder).unwrap_or_else(|_| panic!("{} has seeds", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.expect("listed").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} has seeds", format.name());
    paths.iter().map(|path| std::fs::read(path).expect("read")).collect()
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

#[test]
fn readers_hold_on_seeds_and_mutations() {
    let slow = std::env::var_os("SLOW").is_some_and(|value| value == "1");
    let rounds = if slow { 50 * MUTATIONS } else { MUTATIONS };
    for format in Format::ALL {
        let seeds = seeds(*format);
        for seed in &seeds {
            entry::check(*format, seed);
        }
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        for round in 0..rounds {
            let bytes = mutate(&seeds, &mut random);
            let checked = std::panic::catch_unwind(|| entry::check(*format, &bytes));
            assert!(
                checked.is_ok(),
                "{} round {round}: {:?}",
                format.name(),
                bytes.escape_ascii().to_string()
            );
        }
    }
}

/// Seeds are there to be read, not only to be refused.
#[test]
fn plain_seeds_are_traces() {
    for format in Format::ALL.iter().filter(|format| **format != Format::Own) {
        let read = |seed: &Vec<u8>| {
            let input = std::io::Cursor::new(seed[1..].to_vec());
            let options = formats::ReadOptions::default();
            let read = formats::read_from(input, Path::new("seed"), *format, &options);
            read.is_ok_and(|(trace, _)| trace.count() > 0)
        };
        assert!(seeds(*format).iter().any(read), "{} has a seed that reads", format.name());
    }
}

//! The fuzz targets' entry on their seeds and on some thousand mutations of them, so that every run
//! of the tests fuzzes a little. `SLOW=1` does fifty times as many.

#[path = "../../../../fuzz/src/formats.rs"]
mod entry;
#[path = "../../../../fuzz/src/seeds.rs"]
mod seeds;

use std::path::Path;

use formats::Format;

fn target(format: Format) -> String {
    format.name().replace('-', "_")
}

#[test]
fn readers_hold_on_seeds_and_mutations() {
    for format in Format::ALL {
        seeds::run(&target(*format), |bytes| entry::check(*format, bytes));
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
        let seeds = seeds::of(&target(*format));
        assert!(seeds.iter().any(read), "{} has a seed that reads", format.name());
    }
}

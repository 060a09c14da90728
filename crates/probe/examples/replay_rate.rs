//! Replays Poisson 4 KiB random reads at a rate and prints the timing certificate as JSON.
//!
//! `replay_rate TARGET RATE_PER_S SECONDS [FILE_MIB] [WRITE_SHARE] [normal]`, for example
//! `replay_rate /var/tmp/r.bin 20000 5`. The file is created, or reused if wearmark created it;
//! it stays, so that a second run need not write it again. `normal` does without real-time
//! priority.

use std::process::ExitCode;

use events::{Hint, Quiet};
use io::target::TargetSpec;
use probe::replay::{ReplayOptions, replay};
use stats::rng::Rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: f64| {
        arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (rate_per_s, seconds) = (number(1, 0.0), number(2, 0.0));
    if arguments.len() < 3 || rate_per_s <= 0.0 || seconds <= 0.0 {
        eprintln!("usage: replay_rate TARGET RATE_PER_S SECONDS [FILE_MIB] [WRITE_SHARE] [normal]");
        return ExitCode::from(2);
    }
    let trace = poisson(rate_per_s, seconds, number(3, 256.0) as u64 * 256, number(4, 0.0));
    let target = TargetSpec::new(&arguments[0]);
    let options = ReplayOptions {
        precondition: !target.path.exists(),
        realtime: arguments.last().is_some_and(|word| word != "normal"),
        keep_file: true,
        ..ReplayOptions::new(target)
    };
    match replay(&trace, &options, &Quiet) {
        Ok(replayed) => {
            let text = serde_json::to_string_pretty(&replayed.certificate);
            println!("{}", text.expect("a certificate is plain data"));
            for warning in replayed.warnings {
                eprintln!("warning: {}: {}", warning.code, warning.message);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(hint) = error.hint() {
                eprintln!("hint: {hint}");
            }
            ExitCode::from(2)
        }
    }
}

fn poisson(rate_per_s: f64, seconds: f64, blocks: u64, write_share: f64) -> Trace {
    let mut rng = Rng::new(7);
    let mut trace = Trace { streams: vec![Stream { name: "data".to_owned() }], ..Trace::default() };
    let mut due_ns = 0.0;
    // The last block is touched, so that every trace of a size needs the same file.
    let mut block = blocks - 1;
    while due_ns < seconds * 1e9 {
        let op = if rng.unit() < write_share { Op::Write } else { Op::Read };
        let (due, offset) = (Nanos(due_ns as u64), Bytes(block * 4096));
        trace.push(Request { due, offset, len: 4096, op, stream: 0 });
        due_ns += rng.exponential(1e9 / rate_per_s);
        block = rng.below(blocks);
    }
    trace
}

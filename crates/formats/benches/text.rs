//! How fast text traces are read: from a file in the page cache into validated columns, per core
//! and on two threads, beside the `csv` crate and mawk on the same lines in the same run.
//!
//! Times are CPU times of the process (`/proc/self/schedstat`), medians of several rounds in which
//! the readers take turns, so that a busy machine disturbs all of them alike; the speed-up of two
//! threads is from wall times and needs an idle machine. Lines have the widths and the mix of real
//! ones; four million of them, so that no branch predictor learns the file.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use formats::{Format, ReadOptions, read};
use stats::rng::Rng;

const ROUNDS: usize = 7;

fn below(rng: &mut Rng, bound: u64) -> u64 {
    rng.below(bound)
}

/// Sizes as they come in OLTP traces.
fn size(rng: &mut Rng) -> u64 {
    [512, 1024, 1536, 2048, 3072, 3584, 4096, 8192, 16_384][below(rng, 9) as usize]
}

/// A number of up to this many digits, each count as likely.
fn digits(rng: &mut Rng, least: u32, most: u32) -> u64 {
    let count = least + below(rng, u64::from(most - least + 1)) as u32;
    below(rng, 10u64.pow(count))
}

/// This many lines of a format.
fn lines(format: Format, count: usize) -> String {
    let mut rng = Rng::new(1);
    let rng = &mut rng;
    let mut us = 0;
    let mut text = String::new();
    for _ in 0..count {
        us += below(rng, 16_000);
        let (seconds, part) = (us / 1_000_000, us % 1_000_000);
        let read = below(rng, 10) < 3;
        let (size, block) = (size(rng), digits(rng, 5, 8));
        let line = match format {
            Format::Spc => {
                let (asu, op) = (below(rng, 24), if read { 'r' } else { 'w' });
                format!("{asu},{block},{size},{op},{seconds}.{part:06}")
            }
            Format::Msr => {
                let time = 128_166_385_295_514_663 + us * 10;
                let (op, response) = (if read { "Read" } else { "Write" }, digits(rng, 3, 7));
                format!("{time},hm,{},{op},{},{size},{response}", below(rng, 2), block * 512)
            }
            Format::Alibaba => {
                let (op, time) = (if read { 'R' } else { 'W' }, 1_577_808_144_360_767 + us);
                format!("{},{op},{},{size},{time}", below(rng, 1000), block * 512)
            }
            Format::Tencent => {
                let time = 1_538_323_200 + seconds;
                format!("{time},{block},{},{},{}", size / 512, u8::from(!read), below(rng, 5000))
            }
            Format::Systor17 => {
                let (op, time) = (if read { 'R' } else { 'W' }, 1_456_095_145 + seconds);
                let response = digits(rng, 3, 5);
                format!("{time}.{part:06}000,0.{response:06}000,{op},{},{},{size}", 3, block * 512)
            }
            Format::Columns => {
                let op = if read { 'R' } else { 'W' };
                format!("{us},{op},{},{size},{}", block * 512, below(rng, 24))
            }
            Format::Disksim => {
                let (device, op) = (below(rng, 30), u8::from(read));
                format!("{}.{:06} {device} {block} {} {op}", us / 1000, us % 1000, size / 512)
            }
            _ => {
                let (device, op) = (below(rng, 24), u8::from(read));
                format!("{} {device} {block} {} {op}", us * 1000, size / 512)
            }
        };
        let _ = writeln!(text, "{line}");
    }
    text
}

fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// CPU and wall time of a run, ns.
fn timed(run: impl FnOnce()) -> (f64, f64) {
    let (cpu, wall) = (cpu_ns(), Instant::now());
    run();
    ((cpu_ns() - cpu) as f64, wall.elapsed().as_nanos() as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn ours(path: &Path, format: Format, threads: usize) -> usize {
    // As a user describes them, where no format does.
    let described = "time:us,op,offset:bytes,size:bytes,disk".parse().ok();
    let columns = described.filter(|_| format == Format::Columns);
    let options = ReadOptions { format: Some(format), columns, threads, ..ReadOptions::default() };
    let reading = read(path, &options).expect("reads");
    reading.trace.count()
}

/// Fields split and kept as numbers, the least that a script around the crate would do.
fn with_csv(path: &Path, delimiter: u8) -> usize {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .delimiter(delimiter)
        .from_path(path)
        .expect("opens");
    let mut columns: [Vec<f64>; 5] = std::array::from_fn(|_| Vec::new());
    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record).expect("reads") {
        for (column, field) in columns.iter_mut().zip(&record) {
            let text = std::str::from_utf8(field).expect("text");
            column.push(text.parse().unwrap_or(0.0));
        }
    }
    columns[0].len()
}

/// CPU time of children that ended, ns, in steps of 10 ms.
fn children_cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name in parentheses; user and system time of children are fields 16 and 17.
    let behind = text.rsplit(')').next().unwrap_or_default();
    let ticks =
        behind.split_whitespace().skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() * 1e7
}

/// CPU time of mawk adding up two fields, ns.
fn with_mawk(path: &Path, separator: &str) -> Option<f64> {
    let start = children_cpu_ns();
    let status = Command::new("mawk")
        .args(["-F", separator, "{ a += $2; b += $3 } END { print a, b }"])
        .arg(path)
        .stdout(Stdio::null())
        .status();
    status.ok().filter(std::process::ExitStatus::success)?;
    Some(children_cpu_ns() - start)
}

fn main() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let count = std::env::var("LINES").ok().and_then(|n| n.parse().ok()).unwrap_or(4_000_000);
    println!("format      B/line  GB/s  M req/s  2 threads  csv GB/s  mawk GB/s");
    for format in [
        Format::Spc,
        Format::Msr,
        Format::Alibaba,
        Format::Tencent,
        Format::Systor17,
        Format::Ssdsim,
        Format::Disksim,
        Format::Columns,
    ] {
        let text = lines(format, count);
        let bytes = text.len() as f64;
        let path = directory.path().join("trace");
        std::fs::write(&path, &text).expect("written");
        drop(text);
        let blanks = matches!(format, Format::Ssdsim | Format::Disksim);
        let separator = if blanks { " " } else { "," };
        let [mut cpu, mut one, mut two, mut csv, mut mawk] = [const { Vec::new() }; 5];
        for _ in 0..ROUNDS {
            let (cpu_one, wall_one) = timed(|| assert_eq!(ours(&path, format, 1), count));
            cpu.push(cpu_one);
            one.push(wall_one);
            two.push(timed(|| assert_eq!(ours(&path, format, 2), count)).1);
            if csv.len() < 3 {
                let rival = timed(|| assert_eq!(with_csv(&path, separator.as_bytes()[0]), count));
                csv.push(rival.0);
                mawk.extend(with_mawk(&path, separator));
            }
        }
        let ours = median(cpu);
        let mawk = if mawk.is_empty() {
            "absent".to_owned()
        } else {
            format!("{:.2}", bytes / median(mawk))
        };
        println!(
            "{:<11} {:>6.1} {:>5.2} {:>8.1} {:>9.2}x {:>9.2} {:>10}",
            format.name(),
            bytes / count as f64,
            bytes / ours,
            count as f64 * 1e3 / ours,
            median(one) / median(two),
            bytes / median(csv),
            mawk,
        );
    }
}

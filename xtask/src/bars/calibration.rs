//! How fast this machine is today, in five figures that no change of ours can move.
//!
//! Shared machines differ by a factor of two from day to day: a rate without them tells nobody
//! whether a program became slower or its host did. Each figure waits for its own last result
//! (a chain of multiplications, a walk along pointers), so that compilers and processors can do
//! little about it, and is the median of several short rounds.

use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// Rounds of each figure.
const ROUNDS: usize = 5;
const STEPS: u64 = 20_000_000;
const WALK: u64 = 1_000_000;
const CALLS: u64 = 300_000;
const SWITCHES: u64 = 20_000;
/// Words of 4 bytes in a cache line of 64.
const LINE: usize = 16;

/// The speed of this machine.
pub struct Calibration {
    /// One step of a chain of multiplications, ns.
    pub step_ns: f64,
    /// One read of a random line of 16 MiB, ns.
    pub near_read_ns: f64,
    /// One read of a random line of 1 GiB, ns.
    pub far_read_ns: f64,
    /// One read of `/dev/null`, ns.
    pub call_ns: f64,
    /// Waking another thread through a socket, us.
    pub switch_us: f64,
}

impl Calibration {
    /// Measures; takes about three seconds.
    pub fn measure() -> anyhow::Result<Self> {
        Ok(Self {
            step_ns: rounds(steps, STEPS)?,
            near_read_ns: walk(16 << 20)?,
            far_read_ns: walk(1 << 30)?,
            call_ns: rounds(calls, CALLS)?,
            switch_us: rounds(switches, SWITCHES)? / 1e3,
        })
    }

    /// One line for people.
    pub fn sentence(&self) -> String {
        format!(
            "integer step {:.2} ns, random read of 16 MiB {:.1} ns and of 1 GiB {:.0} ns, \
             system call {:.0} ns, wake-up of a thread {:.1} us",
            self.step_ns, self.near_read_ns, self.far_read_ns, self.call_ns, self.switch_us
        )
    }
}

/// Median time of one of `count` operations, ns.
fn rounds(mut round: impl FnMut() -> anyhow::Result<()>, count: u64) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        round()?;
        times.push(started.elapsed().as_nanos() as f64 / count as f64);
    }
    Ok(super::median(times))
}

#[expect(clippy::unnecessary_wraps, reason = "other rounds can fail")]
fn steps() -> anyhow::Result<()> {
    let mut value = black_box(1_u64);
    for _ in 0..STEPS {
        value = (value ^ (value >> 29)).wrapping_mul(6_364_136_223_846_793_005);
    }
    black_box(value);
    Ok(())
}

/// Follows a cycle through all lines of a memory area; its order is that of a generator of full
/// period, which no prefetcher follows.
fn walk(bytes: usize) -> anyhow::Result<f64> {
    let lines = bytes / 64;
    let mut memory = vec![0_u32; lines * LINE];
    for line in 0..lines {
        let next = line.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) & (lines - 1);
        memory[line * LINE] = next as u32;
    }
    let mut line = 0;
    rounds(
        || {
            for _ in 0..WALK {
                line = memory[line * LINE] as usize;
            }
            black_box(line);
            Ok(())
        },
        WALK,
    )
}

fn calls() -> anyhow::Result<()> {
    let mut file = std::fs::File::open("/dev/null")?;
    let mut byte = [0];
    for _ in 0..CALLS {
        _ = file.read(&mut byte)?;
    }
    Ok(())
}

/// Half of a message there and back.
fn switches() -> anyhow::Result<()> {
    let (mut here, mut there) = UnixStream::pair()?;
    let other = std::thread::spawn(move || -> std::io::Result<()> {
        let mut byte = [0];
        for _ in 0..SWITCHES / 2 {
            there.read_exact(&mut byte)?;
            there.write_all(&byte)?;
        }
        Ok(())
    });
    let mut byte = [0];
    for _ in 0..SWITCHES / 2 {
        here.write_all(&byte)?;
        here.read_exact(&mut byte)?;
    }
    other.join().expect("the other thread does not panic")?;
    Ok(())
}

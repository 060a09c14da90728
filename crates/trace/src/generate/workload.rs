//! A workload: phases one after the other, each with its arrivals and its streams.
//!
//! Each stream of a phase draws its operations, sizes and addresses from a random sequence of its
//! own, so that adding a stream does not change the others. Streams take turns by their shares or
//! in a fixed rotation. Same seed, same trace, for ever: a pinned digest per part guards it.

use serde::{Deserialize, Serialize};
use stats::rng::{Rng, mix};

use super::addresses::{Addresses, Range, Sampler};
use super::arrivals::Arrivals;
use super::empty;
use super::invalid::{Invalid, positive, share};
use super::ops::{Chain, Ops};
use super::sizes::{self, Alias, SizeShare};
use crate::{Op, Trace};

/// A workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What it is called.
    pub name: String,
    /// What it is, a sentence.
    pub description: String,
    /// Where its figures come from.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Requests of a trace when nobody asks for another number.
    pub requests: u64,
    /// What happens, in order.
    #[serde(rename = "phase")]
    pub phases: Vec<Phase>,
}

/// A part of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Its weight among the phases, in requests.
    #[serde(default = "one")]
    pub share: f64,
    /// When requests arrive.
    pub arrivals: Arrivals,
    /// Who is next.
    #[serde(default)]
    pub turns: Turns,
    /// The streams; names are shared with the other phases.
    #[serde(rename = "stream")]
    pub streams: Vec<StreamLoad>,
}

/// How streams take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// Drawn by share.
    #[default]
    Random,
    /// In order, each as many times in a row as its share says, at least once.
    Rotate,
}

/// What one stream does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamLoad {
    /// Name in the stream table.
    pub name: String,
    /// Its weight among the streams of the phase.
    #[serde(default = "one")]
    pub share: f64,
    /// Reads and writes.
    #[serde(flatten)]
    pub ops: Ops,
    /// First byte of the range.
    #[serde(default)]
    pub start_bytes: u64,
    /// Bytes of the range.
    pub range_bytes: u64,
    /// Distance of the places where requests may begin; 0 is the largest size.
    #[serde(default)]
    pub slot_bytes: u64,
    /// Where in the range.
    pub addresses: Addresses,
    /// How large.
    pub sizes: Vec<SizeShare>,
}

fn one() -> f64 {
    1.0
}

impl Workload {
    /// Refuses what makes no trace.
    pub fn check(&self) -> Result<(), Invalid> {
        positive("the number of phases", self.phases.len() as f64)?;
        for (index, phase) in self.phases.iter().enumerate() {
            phase.check().map_err(|invalid| invalid.within(&format!("phase {}", index + 1)))?;
        }
        if self.stream_names().len() > usize::from(u16::MAX) {
            return Err(Invalid::new("stream", "there are more than 65,535 names"));
        }
        Ok(())
    }

    /// Names of all streams in order of their first appearance.
    fn stream_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for stream in self.phases.iter().flat_map(|phase| &phase.streams) {
            if seen.insert(stream.name.as_str()) {
                names.push(&stream.name);
            }
        }
        names
    }

    /// The trace of `count` requests that belongs to `seed`.
    pub fn generate(&self, seed: u64, count: u64) -> Result<Trace, Invalid> {
        self.check()?;
        let names = self.stream_names();
        let mut trace = empty(&self.name, seed, &names);
        let shares: f64 = self.phases.iter().map(|phase| phase.share).sum();
        let (mut below, mut done, mut now) = (0.0, 0, 0.0);
        for (index, phase) in self.phases.iter().enumerate() {
            below += phase.share;
            let last = index + 1 == self.phases.len();
            let end = if last { count } else { (count as f64 * below / shares).round() as u64 };
            let part = end.clamp(done, count) - done;
            done += part;
            let seed = mix(seed ^ mix(index as u64));
            now = phase.arrivals.times(&mut Rng::new(seed), now, part, &mut trace.due);
            phase.requests(seed, part, &names, &mut trace);
        }
        Ok(trace)
    }
}

impl Phase {
    fn check(&self) -> Result<(), Invalid> {
        positive("share", self.share)?;
        self.arrivals.check()?;
        positive("the number of streams", self.streams.len() as f64)?;
        for stream in &self.streams {
            stream.check().map_err(|invalid| invalid.within(&format!("stream {}", stream.name)))?;
        }
        Ok(())
    }

    /// Appends everything but the times.
    fn requests(&self, seed: u64, count: u64, names: &[&str], trace: &mut Trace) {
        let index_of = |name: &str| names.iter().position(|own| *own == name).unwrap_or(0) as u16;
        let mut running = Vec::with_capacity(self.streams.len());
        for (index, stream) in self.streams.iter().enumerate() {
            let seed = mix(seed ^ mix(0x5354 + index as u64));
            running.push(Running::new(stream, index_of(&stream.name), seed));
        }
        let mut rng = Rng::new(mix(seed ^ 0x7475_726e));
        let turns = Alias::new(self.streams.iter().map(|stream| stream.share));
        let (mut turn, mut left) = (0, 0);
        let count = count as usize;
        trace.offset.reserve(count);
        trace.len.reserve(count);
        trace.op.reserve(count);
        trace.stream.reserve(count);
        for _ in 0..count {
            let who = match self.turns {
                _ if running.len() == 1 => 0,
                Turns::Random => turns.sample(&mut rng),
                Turns::Rotate => {
                    if left == 0 {
                        left = (self.streams[turn].share.round() as u64).max(1);
                        turn = (turn + 1) % running.len();
                    }
                    left -= 1;
                    (turn + running.len() - 1) % running.len()
                }
            };
            let stream = &mut running[who];
            let (op, len, offset) = stream.next();
            trace.op.push(op);
            trace.len.push(len);
            trace.offset.push(offset);
            trace.stream.push(stream.index);
        }
    }
}

impl StreamLoad {
    fn check(&self) -> Result<(), Invalid> {
        positive("share", self.share)?;
        self.ops.check()?;
        self.addresses.check()?;
        sizes::check(&self.sizes)?;
        share("range_bytes over 2^62", self.range_bytes as f64 / (1u64 << 62) as f64)?;
        share("start_bytes over 2^62", self.start_bytes as f64 / (1u64 << 62) as f64)?;
        if self.range_bytes < self.longest() {
            let cause = format!("is less than a request of {} bytes", self.longest());
            return Err(Invalid::new("range_bytes", &cause));
        }
        Ok(())
    }

    fn longest(&self) -> u64 {
        self.sizes.iter().map(|row| u64::from(row.size_bytes)).max().unwrap_or(0)
    }
}

/// A stream while it runs.
struct Running<'a> {
    index: u16,
    sizes: &'a [SizeShare],
    alias: Alias,
    chain: Chain,
    range: Range,
    sampler: Sampler,
    rng: Rng,
}

impl<'a> Running<'a> {
    fn new(load: &'a StreamLoad, index: u16, seed: u64) -> Self {
        let longest_bytes = load.longest();
        let slot_bytes = if load.slot_bytes == 0 { longest_bytes } else { load.slot_bytes };
        let range = Range {
            start: load.start_bytes,
            size: load.range_bytes,
            slot: slot_bytes,
            longest: longest_bytes,
        };
        Self {
            index,
            sizes: &load.sizes,
            alias: Alias::new(load.sizes.iter().map(|row| row.share)),
            chain: Chain::new(load.ops),
            sampler: Sampler::new(&load.addresses, &range, seed),
            range,
            rng: Rng::new(seed),
        }
    }

    #[inline]
    fn next(&mut self) -> (Op, u32, u64) {
        let op = self.chain.next(&mut self.rng);
        let len = self.sizes[self.alias.sample(&mut self.rng)].size_bytes;
        (op, len, self.sampler.next(&self.range, u64::from(len), &mut self.rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(name: &str, share: f64) -> StreamLoad {
        StreamLoad {
            name: name.to_owned(),
            share,
            ops: Ops::independent(0.25),
            start_bytes: 0,
            range_bytes: 1 << 30,
            slot_bytes: 512,
            addresses: Addresses::Random,
            sizes: vec![
                SizeShare { size_bytes: 4096, share: 3.0 },
                SizeShare { size_bytes: 8192, share: 1.0 },
            ],
        }
    }

    fn workload(streams: Vec<StreamLoad>, turns: Turns) -> Workload {
        let arrivals = Arrivals::Poisson { rate_per_s: 1000.0 };
        Workload {
            name: "test".to_owned(),
            description: String::new(),
            sources: Vec::new(),
            requests: 10,
            phases: vec![Phase { share: 1.0, arrivals, turns, streams }],
        }
    }

    #[test]
    fn shares_of_streams_operations_and_sizes() {
        let made = workload(vec![stream("a", 3.0), stream("b", 1.0)], Turns::Random);
        let trace = made.generate(1, 100_000).expect("sound");
        assert_eq!((trace.validate(), trace.count()), (Ok(()), 100_000));
        let share = |what: &dyn Fn(usize) -> bool| {
            (0..trace.count()).filter(|index| what(*index)).count() as f64 / 1e5
        };
        assert!((share(&|i| trace.stream[i] == 0) - 0.75).abs() < 0.01);
        assert!((share(&|i| trace.op[i] == Op::Read) - 0.25).abs() < 0.01);
        assert!((share(&|i| trace.len[i] == 4096) - 0.75).abs() < 0.01);
        assert!(trace.offset.iter().all(|offset| offset % 512 == 0 && *offset < 1 << 30));
    }

    #[test]
    fn rotation_is_exact() {
        let made = workload(vec![stream("a", 3.0), stream("b", 1.0)], Turns::Rotate);
        assert_eq!(made.generate(1, 9).expect("sound").stream, [0, 0, 0, 1, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn phases_follow_each_other_and_share_streams() {
        let mut made = workload(vec![stream("a", 1.0)], Turns::Random);
        let mut second = made.phases[0].clone();
        second.share = 3.0;
        second.streams = vec![stream("b", 1.0), stream("a", 1.0)];
        made.phases.push(second);
        let trace = made.generate(1, 1000).expect("sound");
        assert_eq!((trace.validate(), trace.count()), (Ok(()), 1000));
        assert!(trace.stream[..250].iter().all(|stream| *stream == 0));
        assert!(trace.stream[250..].contains(&1) && trace.stream[250..].contains(&0));
        assert_eq!(trace.streams.len(), 2);
    }

    /// Adding a stream must not change what the others do.
    #[test]
    fn streams_are_independent() {
        let alone =
            workload(vec![stream("a", 1.0)], Turns::Random).generate(1, 100).expect("sound");
        let both = workload(vec![stream("a", 1.0), stream("b", 1.0)], Turns::Rotate);
        let both = both.generate(1, 200).expect("sound");
        let first: Vec<u64> = both.offset.iter().step_by(2).copied().collect();
        assert_eq!(first, alone.offset);
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        let refused = |made: Workload| made.generate(1, 1).expect_err("refused").to_string();
        let mut small = stream("a", 1.0);
        small.range_bytes = 4096;
        let text = refused(workload(vec![small], Turns::Random));
        assert_eq!(text, "phase 1, stream a: range_bytes is less than a request of 8192 bytes");
        assert!(refused(workload(vec![], Turns::Random)).contains("the number of streams"));
        let mut far = stream("a", 1.0);
        far.start_bytes = u64::MAX;
        assert!(refused(workload(vec![far], Turns::Random)).contains("start_bytes"));
    }
}

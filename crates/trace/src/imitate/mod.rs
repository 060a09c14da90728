//! Imitating a trace: a generator is fitted to it, small enough to share, that makes traces of any
//! length with the same size mix, shares, bursts and locality.
//!
//! The model, whose text form is bounded by [`TEXT_BYTES_MAX`] whatever the length of the trace:
//!
//! - **What comes next**: a Markov chain over (stream, operation, size class, kind of place), held
//!   to the quotas of up to 256 segments of the trace, so that phases and busy hours stay where
//!   they were (`chain.rs`). Sizes are dealt from the table of each class (`table.rs`).
//! - **When**: gaps in classes of a factor of two or coarser, a second chain over them given the
//!   last class and what is due, with quotas per segment too. Values are dealt from quantiles.
//! - **Where** (`places.rs`): a request goes on where its stream's last of the same operation
//!   ended, or comes back to the block at a stack distance dealt from a table (Mattson et al. 1970;
//!   as in the LRU stack model of Spirn, "Distance string models for program behavior", 1976), or
//!   goes to a block never touched, at an address from the quantiles of such addresses.
//!
//! What it does not hold: order over more than one step inside a segment, correlation of a stack
//! distance with the next one, distances between the places of successive requests, and what
//! several streams share of one address. A trace longer than the original goes through the segments
//! again; its share of new blocks then falls as the original's did (Heaps' law over the halves).
//! Service times and chains of actors are not imitated.
//!
//! Dealing instead of drawing is what makes a trace as long as the original nearly exact in its
//! distributions; [`compare`] prints how near. Tested on generated traces of known shape, and on
//! public excerpts where they are at hand.

mod chain;
mod compare;
mod fit;
mod places;
mod recency;
mod table;
mod tally;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use stats::rng::{Rng, mix};

use crate::generate::Invalid;
use crate::info::BLOCK_BYTES;
use crate::{Op, Origin, Stream, Trace};
use chain::{Chain, Walk};
use places::{Group, Kind, Placer, Wanted};
use table::{Deck, Table};

pub use compare::{Distances, compare};
pub use fit::fit;

/// Bytes that the text form of an imitation may take.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
/// Requests of the original that an imitation may stand for.
const REQUESTS_MAX: u64 = 1 << 31;

/// A generator fitted to a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Imitation {
    /// What it imitates.
    pub source: String,
    /// Requests of the original.
    pub requests: u64,
    /// The first due time of the original, ns.
    pub first_due_ns: u64,
    /// How the number of distinct first places grows with the length: the exponent of Heaps' law.
    pub growth: f64,
    /// Names of the streams.
    pub streams: Vec<String>,
    /// Streams that are told apart, and the others together.
    groups: Vec<Group>,
    /// What a request can be.
    states: Vec<State>,
    /// What follows what.
    what: Chain,
    /// Gaps by class, ns.
    gaps: Vec<Table>,
    /// What gap follows what.
    when: Chain,
}

/// One kind of request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Whose.
    group: u16,
    /// What it does.
    op: Op,
    /// How its place is found.
    kind: Kind,
    /// How large.
    sizes: Table,
}

impl State {
    /// What of a request the gap in front of it depends on.
    fn gap_context(&self) -> u32 {
        self.op as u32 * 8 + self.kind as u32
    }
}

/// Contexts of gaps that [`State::gap_context`] can give.
const GAP_CONTEXTS: u32 = 32;

/// Context of the first request.
const NOTHING: u32 = u32::MAX;

impl Imitation {
    /// The text form without the `kind`, to measure it.
    fn text_bytes(&self) -> usize {
        toml::to_string(self).map_or(usize::MAX, |text| text.len())
    }

    /// Refuses figures that make no trace.
    pub fn check(&self) -> Result<(), Invalid> {
        let wrong = |key, cause| Err(Invalid::new(key, cause));
        if self.requests == 0 || self.requests >= REQUESTS_MAX {
            return wrong("requests", "must be 1 to 2^31");
        }
        if self.streams.is_empty() || self.streams.len() > usize::from(u16::MAX) {
            return wrong("streams", "must be 1 to 65,535 names");
        }
        if !(0.0..=1.0).contains(&self.growth) {
            return wrong("growth", "must be 0 to 1");
        }
        if self.states.len() != self.what.counts.len() || !self.what.is_sound() {
            return wrong("what", "does not fit the states");
        }
        if self.gaps.len() != self.when.counts.len() || !self.when.is_sound() {
            return wrong("when", "does not fit the gaps");
        }
        if !self.groups.iter().all(|group| group.is_sound(self.streams.len(), self.requests)) {
            return wrong("groups", "name streams or counts that do not exist");
        }
        let state_is_sound = |state: &State| {
            usize::from(state.group) < self.groups.len()
                && state.sizes.is_sound(self.requests)
                && u32::try_from(state.sizes.max()).is_ok()
        };
        if !self.states.iter().all(state_is_sound) {
            return wrong("states", "name groups or sizes that cannot be");
        }
        if !self.gaps.iter().all(|gaps| gaps.is_sound(self.requests)) {
            return wrong("gaps", "are no ascending quantiles");
        }
        Ok(())
    }

    /// The trace of `requests` that belongs to `seed`.
    pub fn generate(&self, seed: u64, requests: u64) -> Result<Trace, Invalid> {
        self.check()?;
        let mut trace = Trace {
            streams: self.streams.iter().map(|name| Stream { name: name.clone() }).collect(),
            origin: Origin {
                layer: String::new(),
                source: format!("imitates {}", self.source),
                facts: [("seed".to_owned(), seed.to_string())].into(),
            },
            ..Trace::default()
        };
        let rng_of = |part: u64| Rng::new(mix(seed ^ mix(part)));
        let states = self.walk(requests, rng_of(1), rng_of(2), &mut trace);
        self.place(&states, rng_of(3), &mut trace);
        Ok(trace)
    }

    /// Fills everything but the places; returns the state of each request.
    fn walk(
        &self,
        requests: u64,
        mut what_rng: Rng,
        mut when_rng: Rng,
        trace: &mut Trace,
    ) -> Vec<u16> {
        let (mut what, mut when) = (Walk::new(&self.what), Walk::new(&self.when));
        let mut sizes: Vec<Deck> =
            self.states.iter().map(|state| Deck::new(&state.sizes)).collect();
        let mut gaps: Vec<Deck> = self.gaps.iter().map(Deck::new).collect();
        let (mut state, mut gap, mut now) = (NOTHING, 0, self.first_due_ns);
        let mut states = Vec::new();
        for index in 0..requests {
            let next = what.step(state, &mut what_rng);
            state = u32::from(next);
            let about = &self.states[usize::from(next)];
            gap = u32::from(when.step(gap * GAP_CONTEXTS + about.gap_context(), &mut when_rng));
            let wait = gaps[gap as usize].deal(&mut when_rng);
            now = now.saturating_add(if index == 0 { 0 } else { wait });
            states.push(next);
            trace.due.push(now);
            trace.len.push(sizes[usize::from(next)].deal(&mut what_rng) as u32);
            trace.op.push(about.op);
        }
        states
    }

    /// Fills places and streams. Looks ahead, so that a run begins where there is room for it.
    fn place(&self, states: &[u16], mut rng: Rng, trace: &mut Trace) {
        let run_blocks = run_blocks(&self.states, states, &trace.len);
        let mut placer = Placer::new(&self.groups, Rng::new(rng.next_u64()));
        for (index, state) in states.iter().enumerate() {
            let about = &self.states[usize::from(*state)];
            let turned = matches!(about.kind, Kind::Fresh | Kind::Along)
                && !self.still_fresh(index as u64, &mut rng);
            let kind = if turned { Kind::Back } else { about.kind };
            let (stream, offset) = placer.place(Wanted {
                group: usize::from(about.group),
                op: about.op,
                kind,
                len: trace.len[index],
                run_blocks: run_blocks[index],
            });
            trace.offset.push(offset);
            trace.stream.push(stream);
        }
    }

    /// Whether a first touch stays one: always in the first round through the segments, later as
    /// often as Heaps' law leaves them.
    fn still_fresh(&self, index: u64, rng: &mut Rng) -> bool {
        let round = index / self.requests;
        if round == 0 {
            return true;
        }
        let grown = |rounds: u64| (rounds as f64).powf(self.growth);
        rng.unit() < grown(round + 1) - grown(round)
    }
}

/// Blocks of each request and of those that go on behind it and are known or fresh as it is.
fn run_blocks(states: &[State], symbols: &[u16], len: &[u32]) -> Vec<u64> {
    let mut behind: HashMap<(u16, Op), (bool, u64)> = HashMap::new();
    let mut run_blocks = vec![0; symbols.len()];
    for (index, symbol) in symbols.iter().enumerate().rev() {
        let about = &states[usize::from(*symbol)];
        let (fresh, bytes) = (about.kind.is_fresh(), u64::from(len[index]));
        let run = behind.entry((about.group, about.op)).or_insert((fresh, 0));
        *run = if run.0 == fresh { (fresh, run.1 + bytes) } else { (fresh, bytes) };
        run_blocks[index] = run.1.div_ceil(BLOCK_BYTES);
        if !about.kind.goes_on() {
            *run = (fresh, 0);
        }
    }
    run_blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{OltpLike, oltp_like, patterns};
    use crate::recipe::Recipe;

    /// Fits, goes through the text form, and makes as many requests with a seed of its own.
    fn imitated(trace: &Trace, requests: u64) -> Trace {
        let imitation = fit(trace, "a test").expect("fits");
        let text = Recipe::Imitation(Box::new(imitation)).to_toml();
        assert!(text.len() <= TEXT_BYTES_MAX + 32, "{} bytes", text.len());
        let recipe = Recipe::from_toml(&text).expect("reads back");
        let made = recipe.generate(99, Some(requests)).expect("sound");
        assert_eq!((made.validate(), made.count() as u64), (Ok(()), requests));
        assert_eq!(recipe.generate(99, Some(requests)), Ok(made.clone()), "same seed, same trace");
        let other = recipe.generate(98, Some(requests)).expect("sound");
        assert!(requests < 100 || other.offset != made.offset, "another seed, the same trace");
        made
    }

    /// The bars for any trace: E of sizes and gaps 0.02, shares half a point, miss ratios 0.02.
    #[track_caller]
    fn check(trace: &Trace) {
        let found = compare(trace, &imitated(trace, trace.count() as u64));
        assert!(found.size_error <= 0.02 && found.gap_error <= 0.02, "{found:?}");
        assert!(
            found.read_share_points.abs() <= 0.5 && found.stream_share_points <= 0.5,
            "{found:?}"
        );
        assert!(found.miss_ratio_error <= 0.02, "{found:?}");
    }

    fn pattern(name: &str, given: &[(&str, &str)], requests: u64) -> Trace {
        let given: Vec<_> = given.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let workload = patterns::find(name).expect("known").workload(&given).expect("sound");
        workload.generate(3, requests).expect("sound")
    }

    #[test]
    fn a_database_is_imitated_within_the_bars() {
        check(&oltp_like(&OltpLike { transactions: 3000, ..OltpLike::default() }));
    }

    #[test]
    fn patterns_are_imitated_within_the_bars() {
        check(&pattern("random", &[("reads", "0.3"), ("range", "64MiB")], 20_000));
        check(&pattern("zipf", &[("reads", "0.7"), ("arrivals", "cascade")], 20_000));
        check(&pattern("sequential", &[("range", "16MiB"), ("arrivals", "on-off")], 20_000));
        check(&pattern("hot-cold", &[("arrivals", "pareto"), ("range", "128MiB")], 20_000));
    }

    #[test]
    fn shorter_and_longer_imitations_keep_rate_and_shares() {
        let trace = oltp_like(&OltpLike { transactions: 2000, ..OltpLike::default() });
        let count = trace.count() as u64;
        for requests in [1, count / 3, count * 3 + 7] {
            let made = imitated(&trace, requests);
            if requests == 1 {
                continue;
            }
            let rate = |trace: &Trace| trace.count() as f64 / trace.span().as_secs_f64();
            assert!((rate(&made) / rate(&trace) - 1.0).abs() < 0.1, "{requests}");
            let found = compare(&trace, &made);
            assert!(found.read_share_points.abs() < 3.0 && found.size_error < 0.06, "{found:?}");
        }
    }

    /// The recipe holds no list of the requests: a random trace ten times as long takes no more
    /// text, and no offsets of the original beyond the quantiles come out again in order.
    #[test]
    fn the_text_is_bounded_and_the_requests_are_not_copied() {
        let long = pattern("random", &[], 60_000);
        let made = imitated(&long, 60_000);
        let same = (0..long.count()).filter(|at| long.offset[*at] == made.offset[*at]).count();
        assert!(same < 30, "{same} requests stand where they stood");
    }

    #[test]
    fn nothing_and_one_request() {
        assert!(fit(&Trace::default(), "nothing").is_err());
        let one = imitated(&pattern("random", &[], 1), 1);
        assert_eq!(one.count(), 1);
    }

    #[test]
    fn spoilt_recipes_are_refused() {
        let good = fit(&pattern("random", &[], 500), "a test").expect("fits");
        let spoilt: [fn(&mut Imitation); 8] = [
            |i| i.requests = 0,
            |i| i.streams.clear(),
            |i| i.growth = 2.0,
            |i| i.states[0].group = 9,
            |i| _ = i.gaps.pop(),
            |i| i.groups.clear(),
            |i| i.requests = 3,
            |i| i.what.segments.clear(),
        ];
        for spoil in spoilt {
            let mut imitation = good.clone();
            spoil(&mut imitation);
            assert!(imitation.generate(1, 10).is_err());
        }
    }
}

//! Imitating a trace: a generator is fitted to it, small enough to share, that makes traces of any
//! length with the same size mix, shares, bursts and locality.
//!
//! The model, whose text form is bounded by [`TEXT_BYTES_MAX`] whatever the length of the trace:
//!
//! - **What comes next**: a Markov chain over (stream, operation, size class, kind of place), held
//!   to the quotas of up to 256 segments of the trace, so that phases and busy hours stay where they
//!   were (`chain.rs`). Sizes are dealt from the table of each class (`table.rs`).
//! - **When**: gaps in classes of a factor of two or coarser, a second chain over them given the
//!   last class and what is due, with quotas per segment too. Values are dealt from quantiles.
//! - **Where** (`places.rs`): a request goes on where its stream's last of the same operation ended,
//!   or comes back to the block at a stack distance dealt from a table (Mattson et al. 1970; as in
//!   the LRU stack model of Spirn, "Distance string models for program behavior", 1976), or goes to
//!   a block never touched, at an address from the quantiles of such addresses.
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

use serde::{Deserialize, Serialize};
use stats::rng::{Rng, mix};

use crate::generate::Invalid;
use crate::{Op, Origin, Stream, Trace};
use chain::{Chain, Walk};
use places::{Group, Kind, Placer};
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
        self.op as u32 * 4 + self.kind as u32
    }
}

/// Contexts of gaps that [`State::gap_context`] can give.
const GAP_CONTEXTS: u32 = 16;

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
                && state.sizes.max() <= u64::from(u32::MAX)
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
        self.walk_times_and_states(seed, requests, &mut trace);
        Ok(trace)
    }

    fn walk_times_and_states(&self, seed: u64, requests: u64, trace: &mut Trace) {
        let rng_of = |part: u64| Rng::new(mix(seed ^ mix(part)));
        let (mut what_rng, mut when_rng, mut size_rng) = (rng_of(1), rng_of(2), rng_of(3));
        let (mut what, mut when) = (Walk::new(&self.what), Walk::new(&self.when));
        let mut sizes: Vec<Deck> =
            self.states.iter().map(|state| Deck::new(&state.sizes)).collect();
        let mut gaps: Vec<Deck> = self.gaps.iter().map(Deck::new).collect();
        let mut placer = Placer::new(&self.groups, self.streams.len(), rng_of(4));
        let (mut state, mut gap, mut now) = (NOTHING, 0, self.first_due_ns);
        for index in 0..requests {
            let next = what.step(state, &mut what_rng);
            state = u32::from(next);
            let about = &self.states[usize::from(next)];
            gap = u32::from(when.step(gap * GAP_CONTEXTS + about.gap_context(), &mut when_rng));
            let wait = gaps[gap as usize].deal(&mut when_rng);
            now = now.saturating_add(if index == 0 { 0 } else { wait });
            let len = sizes[usize::from(next)].deal(&mut size_rng) as u32;
            let kind = match about.kind {
                Kind::Fresh if !self.still_fresh(index, &mut size_rng) => Kind::Back,
                kind => kind,
            };
            let (stream, offset) = placer.place(usize::from(about.group), about.op, kind, len);
            trace.due.push(now);
            trace.offset.push(offset);
            trace.len.push(len);
            trace.op.push(about.op);
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

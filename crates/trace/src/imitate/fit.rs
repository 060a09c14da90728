//! Fitting an imitation to a trace: one pass that says what every request is, then tables.

use std::collections::{BTreeMap, HashMap};

use super::chain::{Chain, Step};
use super::places::{DEPTH_CLASSES, Ends, Group, KINDS, Kind, depth_class, last_block, touch};
use super::recency::Recency;
use super::table::Table;
use super::{GAP_CONTEXTS, Imitation, NOTHING, REQUESTS_MAX, State, TEXT_BYTES_MAX, run_blocks};
use crate::generate::Invalid;
use crate::info::BLOCK_BYTES;
use crate::{Op, Trace};

/// How much of each part is kept; halved until the text is small enough.
#[derive(Clone, Copy, Debug)]
struct Detail {
    segments: usize,
    rows: usize,
    figures: usize,
    groups: usize,
    states: usize,
    own_classes: usize,
}

const FINEST: Detail =
    Detail { segments: 256, rows: 2500, figures: 64, groups: 48, states: 600, own_classes: 32 };
/// A segment has at least this many requests: fewer would be a list of them.
const SEGMENT_REQUESTS_MIN: usize = 32;

/// Fits an imitation to a well-formed trace (see [`Trace::validate`]).
///
/// An empty trace, and one of more than 2^31 requests, is refused.
pub fn fit(trace: &Trace, source: &str) -> Result<Imitation, Invalid> {
    let count = trace.count();
    if count == 0 || count as u64 >= REQUESTS_MAX {
        return Err(Invalid::new("the trace", "must have 1 to 2^31 requests to be imitated"));
    }
    let mut detail = FINEST;
    detail.segments = detail.segments.min(count / SEGMENT_REQUESTS_MIN).max(1);
    loop {
        let imitation = fit_with(trace, source, detail);
        let bytes = imitation.text_bytes();
        if bytes <= TEXT_BYTES_MAX || detail.figures <= 4 {
            imitation.check()?;
            return Ok(imitation);
        }
        detail = Detail {
            segments: (detail.segments * 3 / 4).max(1),
            rows: detail.rows * 3 / 4,
            figures: (detail.figures * 7 / 8).max(4),
            groups: (detail.groups * 7 / 8).max(1),
            states: (detail.states * 3 / 4).max(16),
            own_classes: (detail.own_classes * 7 / 8).max(4),
        };
    }
}

fn fit_with(trace: &Trace, source: &str, detail: Detail) -> Imitation {
    let group_of = group_streams(trace, detail.groups);
    let groups = usize::from(*group_of.iter().max().unwrap_or(&0)) + 1;
    let mut places = vec![Places::default(); groups];
    for (stream, group) in group_of.iter().enumerate() {
        places[usize::from(*group)].streams.push(stream as u32);
    }
    let kinds = kinds(trace, &group_of, &mut places);
    let (states, symbols) = states(trace, &group_of, &kinds, detail);
    let run_blocks = run_blocks(&states, &symbols, &trace.len);
    let mut context = NOTHING;
    let steps: Vec<Step> = symbols
        .iter()
        .map(|symbol| {
            let step = (context, *symbol);
            context = u32::from(*symbol);
            step
        })
        .collect();
    let what = Chain::learn(&steps, state_classes(&states, detail), detail.rows, detail.segments);
    let gaps: Vec<u64> = (0..trace.count())
        .map(|index| if index == 0 { 0 } else { trace.due[index] - trace.due[index - 1] })
        .collect();
    let (gap_tables, gap_symbols) = gap_classes(&gaps, detail);
    let mut last = 0;
    let steps: Vec<Step> = (0..trace.count())
        .map(|index| {
            let context = last * GAP_CONTEXTS + states[usize::from(symbols[index])].gap_context();
            last = u32::from(gap_symbols[index]);
            (context, gap_symbols[index])
        })
        .collect();
    let classes = (0..gap_tables.len() as u16).collect();
    let when = Chain::learn(&steps, classes, detail.rows, detail.segments);
    Imitation {
        source: source.to_owned(),
        requests: trace.count() as u64,
        first_due_ns: trace.due[0],
        growth: growth(&kinds),
        streams: trace.streams.iter().map(|stream| stream.name.clone()).collect(),
        groups: places.into_iter().map(|places| places.group(trace, &run_blocks, detail)).collect(),
        states,
        what,
        gaps: gap_tables,
        when,
    }
}

/// The group of each stream: the busiest have one each, the others one together.
fn group_streams(trace: &Trace, groups_max: usize) -> Vec<u16> {
    let mut counts = vec![0u64; trace.streams.len()];
    for stream in &trace.stream {
        counts[usize::from(*stream)] += 1;
    }
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|stream| (u64::MAX - counts[*stream], *stream));
    let least = (trace.count() as u64 / 200).max(1);
    let few = counts.len() <= groups_max;
    let own =
        |(rank, stream): (usize, usize)| few || (rank + 1 < groups_max && counts[stream] >= least);
    let shared = order.iter().copied().enumerate().filter(|busy| own(*busy)).count();
    let mut group_of = vec![shared as u16; counts.len()];
    for (rank, stream) in order.into_iter().enumerate().take(shared) {
        group_of[stream] = rank as u16;
    }
    group_of
}

/// What is gathered about the places of a group.
#[derive(Clone, Debug, Default)]
struct Places {
    streams: Vec<u32>,
    /// Requests that come back, and how deep.
    backs: Vec<(usize, u64)>,
    same_starts: u64,
    fresh: Vec<u64>,
    along: Vec<u64>,
    /// Touches, and touches of new blocks, by kind.
    touches: [[u64; 2]; KINDS],
    ends: Ends,
}

/// Says of every request how its place was found, as [`super::places::Placer`] will find it.
fn kinds(trace: &Trace, group_of: &[u16], places: &mut [Places]) -> Vec<Kind> {
    let mut recencies: Vec<Recency> = places.iter().map(|_| Recency::new()).collect();
    let mut ends: HashMap<(u16, Op), u64> = HashMap::new();
    let mut kinds = Vec::with_capacity(trace.count());
    for index in 0..trace.count() {
        let request = trace.request(index);
        let (stream, op, len) = (request.stream, request.op, request.len);
        let offset = request.offset.0;
        if op == Op::Flush {
            kinds.push(Kind::Nowhere);
            continue;
        }
        let group = usize::from(group_of[usize::from(stream)]);
        let (places, recency) = (&mut places[group], &mut recencies[group]);
        let key = (stream, offset / BLOCK_BYTES);
        let end = offset.saturating_add(u64::from(len));
        let last_known = recency.known((stream, last_block(offset, len))).is_some();
        let rank = places.ends.rank((stream, offset));
        let kind = match (recency.known(key), rank) {
            _ if ends.get(&(stream, op)) == Some(&offset) => {
                if last_known {
                    Kind::NextKnown
                } else {
                    Kind::NextFresh
                }
            }
            (_, Some(rank)) if !last_known => {
                places.along.push(rank as u64);
                Kind::Along
            }
            (Some(start), _) => {
                let depth = u64::from(recency.depth(key).expect("known"));
                places.backs.push((index, depth));
                places.same_starts += u64::from(start == Some((offset % BLOCK_BYTES) as u16));
                if last_known { Kind::Back } else { Kind::Grow }
            }
            (None, _) => {
                places.fresh.push(offset);
                Kind::Fresh
            }
        };
        kinds.push(kind);
        ends.insert((stream, op), end);
        places.ends.record(stream, offset, end);
        if matches!(op, Op::Read | Op::Write) && len > 0 {
            let before = recency.count();
            touch(recency, stream, offset, len);
            let touches = &mut places.touches[kind as usize];
            touches[0] += last_block(offset, len) - offset / BLOCK_BYTES + 1;
            touches[1] += (recency.count() - before) as u64;
        }
    }
    kinds
}

impl Places {
    fn group(self, trace: &Trace, run_blocks: &[u64], detail: Detail) -> Group {
        let returns = self.backs.len().max(1) as u64;
        let mut depths = vec![Vec::new(); DEPTH_CLASSES];
        for (index, depth) in self.backs {
            depths[depth_class(trace.op[index], run_blocks[index])].push(depth);
        }
        let (grid_bytes, grid_shift, on_grid) = grid(&self.fresh);
        let room = |values: &[u64]| (values.len() / 4).clamp(8, detail.figures);
        let mut streams = Vec::with_capacity(self.streams.len() * 2);
        for stream in self.streams {
            let count = trace.stream.iter().filter(|own| u32::from(**own) == stream).count();
            streams.extend([stream, count as u32]);
        }
        Group {
            streams,
            depths: depths
                .into_iter()
                .map(|depths| Table::of(depths.clone(), room(&depths)))
                .collect(),
            same_start: (self.same_starts * 1000 / returns) as u32,
            fresh: Table::smooth(self.fresh.clone(), room(&self.fresh)),
            grid_bytes,
            grid_shift,
            on_grid,
            along: Table::of(self.along, 32),
            new_touches: self.touches.map(|[all, new]| (new * 10_000 / all.max(1)) as u32).to_vec(),
        }
    }
}

/// The coarsest grid, up to 64 KiB, that at least 85 % of the addresses lie on: its distance, the
/// remainder, and how many of 1000 do.
fn grid(addresses: &[u64]) -> (u64, u64, u32) {
    for bytes in (9..=16).rev().map(|bits| 1u64 << bits) {
        let mut remainders: HashMap<u64, usize> = HashMap::new();
        for address in addresses {
            *remainders.entry(address % bytes).or_default() += 1;
        }
        let most = remainders.into_iter().max_by_key(|(shift, count)| (*count, u64::MAX - shift));
        if let Some((shift, count)) = most
            && count * 100 >= addresses.len() * 85
        {
            return (bytes, shift, (count * 1000 / addresses.len()) as u32);
        }
    }
    (512, 0, 0)
}

type StateKey = (u16, Op, Kind, u32);

/// The states and the state of every request. Sizes share a state per power of two; rare states are
/// merged over the sizes, then over the streams.
fn states(
    trace: &Trace,
    group_of: &[u16],
    kinds: &[Kind],
    detail: Detail,
) -> (Vec<State>, Vec<u16>) {
    let key = |index: usize| -> StateKey {
        let group = group_of[usize::from(trace.stream[index])];
        let class = trace.len[index].checked_ilog2().map_or(0, |bits| bits + 1);
        (group, trace.op[index], kinds[index], class)
    };
    let mut counts: BTreeMap<StateKey, u64> = BTreeMap::new();
    for index in 0..trace.count() {
        *counts.entry(key(index)).or_default() += 1;
    }
    let mut by_count: Vec<(StateKey, u64)> = counts.into_iter().collect();
    by_count.sort_by_key(|(key, count)| (u64::MAX - count, *key));
    // 99 stands for any size: no length has a hundred bits.
    let merged = |key: StateKey| (key.0, key.1, key.2, 99);
    let mut index_of: BTreeMap<StateKey, usize> = BTreeMap::new();
    for (rank, (key, _)) in by_count.iter().enumerate() {
        let kept = if rank < detail.states { *key } else { merged(*key) };
        let next = index_of.len();
        index_of.entry(kept).or_insert(next);
    }
    let mut sizes: Vec<Vec<u64>> = vec![Vec::new(); index_of.len()];
    let symbols: Vec<u16> = (0..trace.count())
        .map(|index| {
            let key = key(index);
            let state = *index_of.get(&key).unwrap_or_else(|| &index_of[&merged(key)]);
            sizes[state].push(u64::from(trace.len[index]));
            state as u16
        })
        .collect();
    let mut states: Vec<(usize, State)> = index_of
        .into_iter()
        .map(|((group, op, kind, _), state)| {
            let sizes = std::mem::take(&mut sizes[state]);
            let room = (sizes.len() / 4).clamp(8, detail.figures);
            (state, State { group, op, kind, sizes: Table::of(sizes, room) })
        })
        .collect();
    states.sort_by_key(|(index, _)| *index);
    (states.into_iter().map(|(_, state)| state).collect(), symbols)
}

/// The class of each state for the quotas: the most frequent have one each, the others share one
/// per operation and kind.
fn state_classes(states: &[State], detail: Detail) -> Vec<u16> {
    let mut order: Vec<usize> = (0..states.len()).collect();
    order.sort_by_key(|state| (u64::MAX - states[*state].sizes.count(), *state));
    let mut classes = vec![0; states.len()];
    let mut shared: BTreeMap<(Op, Kind), u16> = BTreeMap::new();
    let mut next = 0;
    for (rank, state) in order.into_iter().enumerate() {
        let about = &states[state];
        classes[state] = if rank < detail.own_classes {
            next += 1;
            next - 1
        } else {
            *shared.entry((about.op, about.kind)).or_insert_with(|| {
                next += 1;
                next - 1
            })
        };
    }
    classes
}

/// Gaps by powers of two, neighbours merged until each has 2 % of the gaps or of the time: the
/// tables, and the class of every gap. No gap at all is a class of its own.
fn gap_classes(gaps: &[u64], detail: Detail) -> (Vec<Table>, Vec<u16>) {
    let bits = |gap: u64| gap.checked_ilog2().map_or(0, |bits| bits as usize + 1);
    let mut by_bits: Vec<Vec<u64>> = vec![Vec::new(); 65];
    for gap in gaps {
        by_bits[bits(*gap)].push(*gap);
    }
    let total: f64 = gaps.iter().map(|gap| *gap as f64).sum();
    let mut class_of = [0u16; 65];
    let mut classes: Vec<Vec<u64>> = Vec::new();
    let mut full = true;
    for (bits, values) in by_bits.into_iter().enumerate() {
        if values.is_empty() {
            continue;
        }
        if full {
            classes.push(Vec::new());
        }
        let class = classes.len() - 1;
        class_of[bits] = class as u16;
        classes[class].extend(values);
        let time: f64 = classes[class].iter().map(|gap| *gap as f64).sum();
        let many = classes[class].len() * 50 >= gaps.len();
        full = bits == 0 || many || time * 50.0 >= total;
    }
    let symbols = gaps.iter().map(|gap| class_of[bits(*gap)]).collect();
    let room = |values: &[u64]| (values.len() / 4).clamp(8, detail.figures);
    let tables = classes.iter().map(|values| Table::of(values.clone(), room(values))).collect();
    (tables, symbols)
}

/// Exponent of Heaps' law between the half of the trace and all of it.
fn growth(kinds: &[Kind]) -> f64 {
    let fresh = |part: &[Kind]| part.iter().filter(|kind| kind.is_fresh()).count() as f64;
    let (half, all) = (fresh(&kinds[..kinds.len() / 2]), fresh(kinds));
    if half == 0.0 { 1.0 } else { (all / half).log2().clamp(0.0, 1.0) }
}

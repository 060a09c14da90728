//! Members that hold bytes: what is written through the map is read back bit for bit, with members
//! lost, and after they were rebuilt.
//!
//! The array below does what a plan says and nothing else: parity is worked out of blocks that the
//! plan reads, that it writes, or that the stripe cache keeps; a block that is needed and is none
//! of these ends the test.

use std::collections::BTreeMap;

use host::volume::map::{Health, Map, Place, Wanted};
use host::volume::plan::{Part, Plan, Stage};
use host::volume::stripes::Stripes;
use host::volume::{COLUMN_BYTES, Copies, Level, Settings, Update};
use proptest::prelude::*;
use trace::Op;

const CHUNK: u64 = 8192;
const ROWS: u64 = 4;
const MEMBER: usize = (CHUNK * ROWS) as usize;
const COLUMN: usize = COLUMN_BYTES as usize;

/// A product in GF(2^8) with the polynomial of RAID 6, x^8 + x^4 + x^3 + x^2 + 1 (Anvin, The
/// mathematics of RAID-6), by shifts.
fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b > 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { 0x1d };
        b >>= 1;
    }
    product
}

fn products(a: u8) -> [u8; 256] {
    let mut all = [0; 256];
    // Shifts of one byte, and sums of them.
    for b in 1..256_usize {
        all[b] = if b.is_power_of_two() {
            times(a, b as u8)
        } else {
            all[b & (b - 1)] ^ all[b & b.wrapping_neg()]
        };
    }
    all
}

fn power(exponent: usize) -> u8 {
    (0..exponent).fold(1, |product, _| times(product, 2))
}

fn inverse(a: u8) -> u8 {
    (1..=255).find(|b| times(a, *b) == 1).expect("not zero")
}

/// Blocks of a column: data in order, then P, then Q.
type Blocks = Vec<Option<Vec<u8>>>;

/// Fills in what is missing; `data` blocks, then parity.
fn solve(blocks: &mut Blocks, data: usize) {
    let spare = blocks.len() - data;
    let missing: Vec<usize> = (0..data).filter(|index| blocks[*index].is_none()).collect();
    let sum = |blocks: &Blocks, weight: &dyn Fn(usize) -> u8| {
        let len = blocks.iter().flatten().map(Vec::len).next().expect("a block is known");
        let mut sum = vec![0; len];
        for (index, block) in blocks[..data].iter().enumerate() {
            let weight = weight(index);
            let table = (len > 1).then(|| products(weight));
            for (to, from) in sum.iter_mut().zip(block.iter().flatten()) {
                *to ^= table
                    .as_ref()
                    .map_or_else(|| times(weight, *from), |all| all[usize::from(*from)]);
            }
        }
        sum
    };
    let p = sum(blocks, &|_| 1);
    let q = sum(blocks, &power);
    let add = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(a, b)| a ^ b).collect::<Vec<u8>>();
    let known = |index: usize| blocks.get(data + index).and_then(Option::as_ref);
    match (missing.as_slice(), known(0), known(1)) {
        ([], ..) => {
            blocks[data] = Some(p);
            if spare == 2 {
                blocks[data + 1] = Some(q);
            }
            return;
        }
        ([one], Some(old), _) => blocks[*one] = Some(add(&p, old)),
        ([one], None, Some(old)) => {
            let factor = inverse(power(*one));
            blocks[*one] = Some(add(&q, old).into_iter().map(|byte| times(factor, byte)).collect());
        }
        ([x, y], Some(old_p), Some(old_q)) => {
            // D_x + D_y = a, g^x D_x + g^y D_y = b.
            let (a, b) = (add(&p, old_p), add(&q, old_q));
            let factor = inverse(power(*x) ^ power(*y));
            let of_x = |(a, b): (&u8, &u8)| times(factor, b ^ times(power(*y), *a));
            let first: Vec<u8> = a.iter().zip(&b).map(of_x).collect();
            blocks[*y] = Some(add(&a, &first));
            blocks[*x] = Some(first);
        }
        _ => panic!("{} blocks of a column are missing", missing.len()),
    }
    solve(blocks, data);
}

struct Array {
    map: Map,
    settings: Settings,
    stripes: Stripes,
    members: Vec<Vec<u8>>,
    /// The content of the stripe cache: it may keep more than [`Stripes`] does.
    kept: BTreeMap<(u64, usize), Vec<u8>>,
    model: Vec<u8>,
    /// The chunk of the volume that each row of a member holds.
    homes: Vec<Vec<Option<u64>>>,
}

impl Array {
    fn new(settings: &Settings) -> Self {
        let healthy = Settings { failed: Vec::new(), ..settings.clone() };
        let map = Map::new(&healthy, &vec![Some(MEMBER as u64); settings.members]).unwrap();
        let model = vec![0; map.capacity().unwrap() as usize];
        let mut homes = vec![vec![None; ROWS as usize]; settings.members];
        for chunk in 0..model.len() as u64 / CHUNK {
            let (mut stripes, mut plan) = (Stripes::new(0), Plan::default());
            let wanted = Wanted { op: Op::Trim, offset: chunk * CHUNK, bytes: CHUNK };
            map.plan(&wanted, &mut |_, _| 0, &mut stripes, &mut plan);
            for part in plan.parts() {
                homes[part.member][(part.offset / CHUNK) as usize] = Some(chunk);
            }
        }
        Self {
            homes,
            stripes: Stripes::new(settings.stripe_cache),
            members: vec![vec![0; MEMBER]; settings.members],
            kept: BTreeMap::new(),
            settings: settings.clone(),
            map,
            model,
        }
    }

    fn lose(&mut self, members: u64) {
        self.map.health.lost |= members;
        for (member, bytes) in self.members.iter_mut().enumerate() {
            if members >> member & 1 == 1 {
                bytes.fill(0xEE);
            }
        }
        // A lost array is assembled anew.
        self.stripes = Stripes::new(self.settings.stripe_cache);
        self.kept.clear();
    }

    fn plan(&mut self, op: Op, offset: u64, bytes: u64, pick: usize) -> Plan {
        let mut plan = Plan::default();
        let mut choose = |places: &[Place], _| pick % places.len();
        self.map.plan(&Wanted { op, offset, bytes }, &mut choose, &mut self.stripes, &mut plan);
        plan
    }

    /// The members of a column: data in order, then parity.
    fn around(&self, stripe: u64) -> (Vec<usize>, usize) {
        let parity = self.map.parity().unwrap();
        let spare = parity.parity_members(stripe).count();
        let data = self.settings.members - spare;
        let mut all: Vec<_> = (0..data as u64).map(|at| parity.data_member(stripe, at)).collect();
        all.extend(parity.parity_members(stripe));
        (all, data)
    }

    fn fetch(&mut self, part: &Part) {
        assert_eq!(self.map.health.unreadable(part.offset + part.bytes) >> part.member & 1, 0);
        let range = part.offset as usize..(part.offset + part.bytes) as usize;
        let (start, end) = (range.start.div_ceil(COLUMN), range.end / COLUMN);
        for column in start..end {
            let bytes = self.members[part.member][column * COLUMN..][..COLUMN].to_vec();
            self.kept.insert((column as u64, part.member), bytes);
        }
    }

    /// Writes through the plan.
    fn write(&mut self, offset: u64, content: &[u8]) {
        let range = offset as usize..offset as usize + content.len();
        self.model[range].copy_from_slice(content);
        // Where the whole plan is one stage the oldest content is read first.
        let known: BTreeMap<u64, u64> = (0..ROWS * CHUNK / COLUMN_BYTES)
            .map(|column| (column, self.stripes.known(column)))
            .collect();
        let plan = self.plan(Op::Write, offset, content.len() as u64, 0);
        if self.map.parity().is_none() {
            for part in plan.parts() {
                let from = self.origin(part.member, part.offset) as usize;
                for byte in 0..part.bytes as usize {
                    let at = self.origin(part.member, part.offset + byte as u64) as usize;
                    assert!(byte > 0 || at == from);
                    self.members[part.member][part.offset as usize + byte] = self.model[at];
                }
            }
            return;
        }
        self.kept.retain(|(column, member), _| known[column] >> member & 1 == 1);
        plan.stage(Stage::Fetch)
            .iter()
            .filter(|part| part.op == Op::Read)
            .for_each(|part| self.fetch(part));
        let columns: Vec<u64> =
            self.map.parity().unwrap().columns(offset, content.len() as u64).flatten().collect();
        for column in columns {
            self.update(column, offset, offset + content.len() as u64);
        }
        for part in plan.parts().filter(|part| part.op == Op::Write) {
            assert_eq!(part.offset % COLUMN_BYTES + part.bytes % COLUMN_BYTES, 0, "whole blocks");
            assert_eq!(self.map.health.absent() >> part.member & 1, 0, "written, but absent");
            for column in part.offset / COLUMN_BYTES..(part.offset + part.bytes) / COLUMN_BYTES {
                let block =
                    self.kept.get(&(column, part.member)).expect("made before it is written");
                self.members[part.member][column as usize * COLUMN..][..COLUMN]
                    .copy_from_slice(block);
            }
        }
    }

    /// The new blocks of a column, out of what is known of it.
    fn update(&mut self, column: u64, from: u64, to: u64) {
        let stripe = column * COLUMN_BYTES / CHUNK;
        let within = column * COLUMN_BYTES % CHUNK;
        let (around, data) = self.around(stripe);
        let start = |index: u64| (stripe * data as u64 + index) * CHUNK + within;
        let is_written = |index: u64| start(index) < to && start(index) + COLUMN_BYTES > from;
        let is_whole = |index: u64| start(index) >= from && start(index) + COLUMN_BYTES <= to;
        if !(0..data as u64).any(is_written) {
            return;
        }
        let mut old: Blocks =
            around.iter().map(|member| self.kept.get(&(column, *member)).cloned()).collect();
        let new = |index: u64| self.model[start(index) as usize..][..COLUMN].to_vec();
        let all_known =
            (0..data as u64).all(|index| old[index as usize].is_some() || is_whole(index));
        let unreadable = self.map.health.unreadable((column + 1) * COLUMN_BYTES);
        let parity_is_gone = around[data..].iter().all(|member| unreadable >> member & 1 == 1);
        let missing = old.iter().filter(|block| block.is_none()).count();
        if !all_known && !parity_is_gone && missing <= around.len() - data {
            solve(&mut old, data);
        }
        let mut next = old.clone();
        for index in (0..data as u64).filter(|index| is_written(*index)) {
            // A part of a block is put into the old block, but for a volume without parity.
            let old = old[index as usize].as_ref();
            assert!(is_whole(index) || old.is_some() || parity_is_gone, "half a block is unknown");
            next[index as usize] = Some(new(index));
        }
        if next[..data].iter().all(Option::is_some) {
            next.truncate(data);
            next.resize(around.len(), None);
            solve(&mut next, data);
        } else if !parity_is_gone {
            // P' = P + sum of D + D', Q' the same with weights.
            for (spare, parity) in (0..).zip(data..around.len()) {
                let lost = unreadable >> around[parity] & 1 == 1;
                let Some(mut sum) = old[parity].clone() else {
                    assert!(lost, "old parity is unknown");
                    continue;
                };
                for index in (0..data).filter(|index| is_written(*index as u64)) {
                    let weight = if spare == 0 { 1 } else { power(index) };
                    let before = old[index].as_ref().expect("old data are unknown");
                    let after = next[index].as_ref().unwrap();
                    let table = products(weight);
                    for ((to, before), after) in sum.iter_mut().zip(before).zip(after) {
                        *to ^= table[usize::from(before ^ after)];
                    }
                }
                next[parity] = Some(sum);
            }
        }
        for (block, member) in next.into_iter().zip(around) {
            if let Some(block) = block {
                self.kept.insert((column, member), block);
            }
        }
    }

    /// The volume byte that a member's byte holds.
    fn origin(&self, member: usize, offset: u64) -> u64 {
        let chunk = self.homes[member][(offset / CHUNK) as usize];
        chunk.expect("it holds data") * CHUNK + offset % CHUNK
    }

    /// Reads through the plan and compares with what was written.
    fn check(&mut self, offset: u64, bytes: u64, pick: usize) {
        let known: BTreeMap<u64, u64> = (0..ROWS * CHUNK / COLUMN_BYTES)
            .map(|column| (column, self.stripes.known(column)))
            .collect();
        let plan = self.plan(Op::Read, offset, bytes, pick);
        assert_eq!(plan.bytes(Op::Write), 0);
        self.kept.retain(|(column, member), _| known[column] >> member & 1 == 1);
        let expected = self.model[offset as usize..(offset + bytes) as usize].to_vec();
        if self.map.parity().is_none() {
            let mut found = vec![None; bytes as usize];
            for part in plan.parts() {
                assert_eq!(self.map.health.unreadable(part.offset + 1) >> part.member & 1, 0);
                for byte in 0..part.bytes {
                    let at = self.origin(part.member, part.offset + byte) - offset;
                    let content = self.members[part.member][(part.offset + byte) as usize];
                    assert_eq!(found[at as usize].replace(content), None, "read twice");
                }
            }
            let found: Vec<u8> = found.into_iter().map(|byte| byte.expect("read")).collect();
            assert!(found == expected, "{:?}: other bytes", self.settings);
            return;
        }
        let mut direct = vec![vec![None; MEMBER]; self.members.len()];
        for part in plan.parts() {
            self.fetch(part);
            let range = part.offset as usize..(part.offset + part.bytes) as usize;
            let bytes = &self.members[part.member][range.clone()];
            let to = &mut direct[part.member][range];
            to.iter_mut().zip(bytes).for_each(|(to, byte)| *to = Some(*byte));
        }
        let mut at = offset;
        while at < offset + bytes {
            let end = ((at / COLUMN_BYTES + 1) * COLUMN_BYTES).min(offset + bytes);
            let (stripe, within, member) = self.home(at);
            let byte = (stripe * CHUNK + within) as usize;
            let column = byte / COLUMN;
            let want = &expected[(at - offset) as usize..(end - offset) as usize];
            let read = &direct[member][byte..byte + want.len()];
            if read.iter().all(Option::is_some) {
                assert!(read.iter().flatten().eq(want), "byte {at} of {:?}", self.settings);
            } else {
                self.work_out(stripe, column as u64);
                let block = &self.kept[&(column as u64, member)][byte % COLUMN..];
                assert!(block.starts_with(want), "byte {at} of {:?}", self.settings);
            }
            at = end;
        }
    }

    /// The lost blocks of a column, out of those that are known.
    fn work_out(&mut self, stripe: u64, column: u64) {
        let (around, data) = self.around(stripe);
        let mut blocks: Blocks =
            around.iter().map(|member| self.kept.get(&(column, *member)).cloned()).collect();
        let missing = blocks.iter().filter(|block| block.is_none()).count();
        assert!(missing <= around.len() - data, "the lost block cannot be worked out");
        if missing > 0 {
            solve(&mut blocks, data);
        }
        for (block, member) in blocks.into_iter().zip(&around) {
            self.kept.insert((column, *member), block.expect("solved"));
        }
    }

    fn home(&self, at: u64) -> (u64, u64, usize) {
        let parity = self.map.parity().unwrap();
        let data = self.settings.members as u64 - parity.parity_members(0).count() as u64;
        let chunk = at / CHUNK;
        (chunk / data, at % CHUNK, parity.data_member(chunk / data, chunk % data))
    }

    /// Makes `member` anew, `step` bytes at a time; `load` runs after each.
    fn rebuild(&mut self, member: usize, step: u64, mut load: impl FnMut(&mut Self, u64)) {
        let mut at = 0;
        while at < MEMBER as u64 {
            self.map.health.recovering = Some(Place { member, offset: at });
            let bytes = step.min(MEMBER as u64 - at);
            let mut plan = Plan::default();
            self.map.rebuild(Place { member, offset: at }, bytes, &mut plan);
            let writes: Vec<Part> = plan.stage(Stage::Store).to_vec();
            for write in &writes {
                assert_eq!((write.member, write.op), (member, Op::Write));
                for byte in write.offset..write.offset + write.bytes {
                    let content = self.made_of(&plan, member, byte);
                    self.members[member][byte as usize] = content;
                }
            }
            at += bytes;
            self.map.health.recovering = Some(Place { member, offset: at });
            load(self, at);
        }
        self.map.health = Health { lost: self.map.health.lost & !(1 << member), recovering: None };
    }

    /// A byte of `member` out of the reads of `plan`.
    fn made_of(&self, plan: &Plan, member: usize, byte: u64) -> u8 {
        let read = |member: usize, byte: u64| {
            let holds = |part: &&Part| {
                part.member == member && (part.offset..part.offset + part.bytes).contains(&byte)
            };
            let part = plan.stage(Stage::Fetch).iter().find(holds)?;
            assert_eq!(self.map.health.unreadable(part.offset + part.bytes) >> member & 1, 0);
            Some(self.members[member][byte as usize])
        };
        if self.map.parity().is_none() {
            let Some(chunk) = self.homes[member][(byte / CHUNK) as usize] else { return 0 };
            let rows = (0..self.members.len()).filter(|other| *other != member).flat_map(|other| {
                let rows =
                    (0..ROWS).filter(move |row| self.homes[other][*row as usize] == Some(chunk));
                rows.map(move |row| (other, row * CHUNK + byte % CHUNK))
            });
            let mut rows = rows;
            let copy = rows.find_map(|(other, at)| read(other, at));
            return copy.expect("a copy is read");
        }
        let (around, data) = self.around(byte / CHUNK);
        let mut blocks: Blocks =
            around.iter().map(|member| read(*member, byte).map(|byte| vec![byte])).collect();
        let missing = blocks.iter().filter(|block| block.is_none()).count();
        assert!(missing <= around.len() - data, "the rebuild reads too little");
        solve(&mut blocks, data);
        let at = around.iter().position(|own| *own == member).unwrap();
        blocks[at].as_ref().unwrap()[0]
    }
}

/// A level, and sets of members that it can lose one after the other.
fn arrays() -> Vec<(Settings, Vec<u64>)> {
    let mut all = Vec::new();
    let base = |level, members, stripe_cache, update| Settings {
        chunk_bytes: CHUNK,
        stripe_cache,
        update,
        parity_trim: true,
        ..Settings::new(level, members)
    };
    for update in [Update::Fewest, Update::Modify, Update::Reconstruct] {
        for stripe_cache in [0, 3, 256] {
            for members in [3, 4, 5, 7] {
                let lost = (0..members).map(|member| 1 << member).collect();
                all.push((base(Level::Raid5, members, stripe_cache, update), lost));
            }
            for members in [4, 5, 6, 8] {
                let one = (0..members).map(|member| 1 << member);
                let two = (0..members).flat_map(|a| (0..a).map(move |b| 1 << a | 1 << b));
                let lost = one.chain(two).collect();
                all.push((base(Level::Raid6, members, stripe_cache, update), lost));
            }
        }
    }
    let mirror =
        |level, members, copies| Settings { copies, ..base(level, members, 0, Update::Fewest) };
    all.push((mirror(Level::Raid1, 2, Copies::Near), vec![1, 2]));
    all.push((mirror(Level::Raid1, 3, Copies::Near), vec![1, 3, 5, 6]));
    for copies in [Copies::Near, Copies::Far, Copies::Offset] {
        all.push((mirror(Level::Raid10, 4, copies), vec![1, 4, 5, 10]));
        all.push((mirror(Level::Raid10, 5, copies), vec![1, 4, 16, 5, 9]));
    }
    all
}

/// A range of at most `most` bytes in an array of `capacity`.
fn range(draw: (u64, u64), capacity: u64, most: u64) -> (u64, u64) {
    let offset = draw.0 % capacity;
    (offset, 1 + draw.1 % (capacity - offset).min(most))
}

fn noise(seed: u64, bytes: u64) -> Vec<u8> {
    let next = |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99));
    let states = std::iter::successors(Some(seed), next);
    states.skip(1).take(bytes as usize).map(|state| (state >> 56) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn what_was_written_is_read_back_with_members_lost_and_rebuilt(
        which in any::<prop::sample::Index>(), lost in any::<prop::sample::Index>(),
        draws in prop::collection::vec((any::<u64>(), any::<u64>()), 8..24),
        small in any::<bool>(), step in 1..9_u64, pick in 0..5_usize,
    ) {
        let all = arrays();
        let (settings, losses) = which.get(&all);
        let lost = *lost.get(losses);
        let mut array = Array::new(settings);
        let capacity = array.model.len() as u64;
        let most = if small { 10_000 } else { capacity };
        let write = |array: &mut Array, draw: (u64, u64)| {
            let (offset, bytes) = range(draw, capacity, most);
            array.write(offset, &noise(draw.1, bytes));
        };
        let (before, after) = draws.split_at(draws.len() / 2);
        for draw in before {
            write(&mut array, *draw);
            let (offset, bytes) = range((draw.1, draw.0), capacity, most);
            array.check(offset, bytes, pick);
        }
        array.check(0, capacity, pick);
        array.lose(lost);
        array.check(0, capacity, pick);
        for draw in after {
            write(&mut array, *draw);
            let (offset, bytes) = range((draw.1, draw.0), capacity, most);
            array.check(offset, bytes, pick);
        }
        array.check(0, capacity, pick);
        let members = (0..settings.members).filter(|member| lost >> member & 1 == 1);
        for member in members {
            let mut draws = after.iter().cycle();
            array.rebuild(member, step * COLUMN_BYTES, |array, at| {
                let draw = *draws.next().unwrap();
                write(array, (draw.0 ^ at, draw.1 ^ at));
                array.check(0, capacity, pick);
            });
        }
        // Everything is there without the members that were not lost.
        array.stripes = Stripes::new(0);
        array.kept.clear();
        array.check(0, capacity, pick);
        prop_assert_eq!(array.map.health, Health::default());
        let again = ((1 << settings.members) - 1) ^ lost;
        if losses.contains(&again) {
            array.lose(again);
            array.check(0, capacity, pick);
        }
    }
}

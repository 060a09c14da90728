//! Which byte of which member holds which byte of the volume: a slow list against the map.
//!
//! The list is dealt out as mdadm(8) and md(4) describe the levels, one chunk after the other, and
//! knows no formula of the map.

use std::collections::BTreeMap;

use host::volume::map::{Map, Wanted};
use host::volume::plan::{Part, Plan};
use host::volume::stripes::Stripes;
use host::volume::{Copies, Level, Settings};
use proptest::prelude::*;
use trace::Op;

const CHUNK: u64 = 8192;

/// The members that hold each chunk of the volume, with the row there: a list per chunk.
fn dealt(settings: &Settings, rows: u64) -> Vec<Vec<(usize, u64)>> {
    let count = settings.members;
    let mut chunks = Vec::new();
    match (settings.level, settings.copies) {
        (Level::Concat, _) => {
            for member in 0..count {
                (0..rows).for_each(|row| chunks.push(vec![(member, row)]));
            }
        }
        (Level::Raid0, _) => {
            for row in 0..rows {
                (0..count).for_each(|member| chunks.push(vec![(member, row)]));
            }
        }
        (Level::Raid1, _) => {
            for row in 0..rows {
                chunks.push((0..count).map(|member| (member, row)).collect());
            }
        }
        (Level::Raid10, Copies::Near) => {
            // Dealt like cards, two of each.
            let mut slots = (0..rows).flat_map(|row| (0..count).map(move |member| (member, row)));
            while let (Some(first), Some(second)) = (slots.next(), slots.next()) {
                chunks.push(vec![first, second]);
            }
        }
        (Level::Raid10, Copies::Far) => {
            for row in 0..rows / 2 {
                for member in 0..count {
                    let next = if member + 1 == count { 0 } else { member + 1 };
                    chunks.push(vec![(member, row), (next, rows / 2 + row)]);
                }
            }
        }
        (Level::Raid10, Copies::Offset) => {
            for row in (0..rows / 2 * 2).step_by(2) {
                for member in 0..count {
                    let next = if member + 1 == count { 0 } else { member + 1 };
                    chunks.push(vec![(member, row), (next, row + 1)]);
                }
            }
        }
        (Level::Raid5 | Level::Raid6, _) => {
            // The parity moves one member to the left per row; data follow it around.
            let spare = if settings.level == Level::Raid5 { 1 } else { 2 };
            let mut first = count - 1;
            for row in 0..rows {
                let mut around = (0..count).cycle().skip(first + spare);
                for _ in 0..count - spare {
                    chunks.push(vec![(around.next().unwrap(), row)]);
                }
                first = if first == 0 { count - 1 } else { first - 1 };
            }
        }
    }
    chunks
}

/// The volume bytes at each member byte that `parts` touch, by the list.
fn bytes_of(parts: &[Part], chunks: &[Vec<(usize, u64)>]) -> Vec<u64> {
    let mut at = BTreeMap::new();
    for (copies, chunk) in chunks.iter().zip(0_u64..) {
        for (member, row) in copies {
            at.insert((*member, *row), chunk);
        }
    }
    let mut found = Vec::new();
    for part in parts {
        for byte in part.offset..part.offset + part.bytes {
            let chunk = at.get(&(part.member, byte / CHUNK)).expect("a byte that holds data");
            found.push(chunk * CHUNK + byte % CHUNK);
        }
    }
    found.sort_unstable();
    found
}

fn every_level() -> Vec<Settings> {
    let mut all = Vec::new();
    for members in 1..8 {
        for level in
            [Level::Concat, Level::Raid0, Level::Raid1, Level::Raid5, Level::Raid6, Level::Raid10]
        {
            for copies in [Copies::Near, Copies::Far, Copies::Offset] {
                let settings =
                    Settings { chunk_bytes: CHUNK, copies, ..Settings::new(level, members) };
                let rows = vec![Some(6 * CHUNK); members];
                if Map::new(&settings, &rows).is_ok()
                    && (level == Level::Raid10 || copies == Copies::Near)
                {
                    all.push(settings);
                }
            }
        }
    }
    all
}

#[test]
fn capacities_are_the_chunks_that_were_dealt() {
    for settings in every_level() {
        let map = Map::new(&settings, &vec![Some(6 * CHUNK); settings.members]).unwrap();
        let dealt = dealt(&settings, 6).len() as u64;
        assert_eq!(map.capacity(), Some(dealt * CHUNK), "{settings:?}");
    }
}

proptest! {
    #[test]
    fn every_byte_is_in_exactly_the_right_places(
        which in any::<prop::sample::Index>(), from in 0.0..1.0_f64, share in 0.0..1.0_f64,
        pick in 0..7_usize,
    ) {
        let all = every_level();
        let settings = which.get(&all);
        let map = Map::new(settings, &vec![Some(6 * CHUNK); settings.members]).unwrap();
        let chunks = dealt(settings, 6);
        let capacity = chunks.len() as u64 * CHUNK;
        let offset = (from * capacity as f64) as u64;
        let bytes = 1 + (share * (capacity - offset - 1) as f64) as u64;
        let asked: Vec<u64> = (offset..offset + bytes).collect();
        let (mut stripes, mut plan) = (Stripes::new(0), Plan::default());
        let mut choose = |places: &[_], _| pick % places.len();

        map.plan(&Wanted { op: Op::Read, offset, bytes }, &mut choose, &mut stripes, &mut plan);
        let reads: Vec<Part> = plan.parts().copied().collect();
        prop_assert!(reads.iter().all(|part| part.op == Op::Read));
        prop_assert_eq!(bytes_of(&reads, &chunks), asked.clone());

        if map.parity().is_none() {
            plan.clear();
            let wanted = Wanted { op: Op::Write, offset, bytes };
            map.plan(&wanted, &mut choose, &mut stripes, &mut plan);
            let writes: Vec<Part> = plan.parts().copied().collect();
            let copies = chunks[0].len();
            let expected: Vec<u64> =
                asked.iter().flat_map(|byte| std::iter::repeat_n(*byte, copies)).collect();
            prop_assert_eq!(bytes_of(&writes, &chunks), expected);
        }
    }
}

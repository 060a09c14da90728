//! A store against a table of every block's place.

use std::collections::BTreeMap;

use host::file_system::log_structured::segments::{Cleaning, Log, Policy, Shape};
use proptest::prelude::*;

const SEGMENTS: u32 = 12;
const BLOCKS: u32 = 8;

fn policies() -> impl Strategy<Value = Policy> {
    prop::sample::select(vec![Policy::Greedy, Policy::CostBenefit, Policy::OldestFirst])
}

proptest! {
    /// Any mix of writes and removals, cleaned on the way: every live block is where the store
    /// says, nobody else is there, and what is full says so.
    #[test]
    fn every_live_block_is_where_the_store_says(
        policy in policies(),
        logs in 1_usize..4,
        batch in 1_u32..3,
        steps in prop::collection::vec((0_u32..90, 0_u32..8), 1..600),
    ) {
        let shape = Shape { segments: SEGMENTS, segment_blocks: BLOCKS, logs, holds_dead: false };
        let reserved_segments = logs as u32 + batch;
        let mut log = Log::new(shape, Cleaning { policy, reserved_segments, batch });
        let mut places = BTreeMap::new();
        for (turn, (block, what)) in steps.into_iter().enumerate() {
            if what == 0 {
                log.remove(block);
                places.remove(&block);
            } else {
                let mut moves = Vec::new();
                let written = log.write(block, turn as u64, |from, to| moves.push((from, to)));
                for (from, to) in moves {
                    let moved = places.iter().find(|(_, place)| **place == from);
                    let moved = moved.map(|(block, _)| *block);
                    prop_assert!(moved.is_some(), "moved from {}, where nothing lives", from);
                    places.insert(moved.unwrap(), to);
                }
                match written {
                    Ok(place) => {
                        places.insert(block, place);
                    }
                    Err(full) => {
                        prop_assert_eq!(full.live_blocks, places.len() as u64);
                        let spare = (reserved_segments + logs as u32) * BLOCKS;
                        let room = u64::from(SEGMENTS * BLOCKS - spare);
                        prop_assert!(full.live_blocks + 1 > room, "{} of {}", full, room);
                        return Ok(());
                    }
                }
            }
            log.store().audit();
            for block in 0..90 {
                prop_assert_eq!(log.store().find(block), places.get(&block).copied());
            }
            let mut all: Vec<u32> = places.values().copied().collect();
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), places.len(), "two blocks in one place");
        }
    }
}

#[test]
fn a_full_log_says_so() {
    for policy in [Policy::Greedy, Policy::CostBenefit, Policy::OldestFirst] {
        let shape = Shape { segments: 8, segment_blocks: 4, logs: 1, holds_dead: false };
        let mut log = Log::new(shape, Cleaning { policy, reserved_segments: 2, batch: 1 });
        let mut written = 0;
        let full = loop {
            match log.write(written, 0, |_, _| {}) {
                Ok(_) => written += 1,
                Err(full) => break full,
            }
        };
        assert!((20..32).contains(&written), "{policy:?}: {written} blocks of 32");
        let said = format!("no space left: {written} blocks live in a log of 32");
        assert!(full.to_string().starts_with(&said), "{full}");
        // Nothing was lost, and what is removed makes room.
        (0..written).for_each(|block| assert!(log.store().find(block).is_some()));
        (0..8).for_each(|block| log.remove(block));
        log.write(0, 1, |_, _| {}).expect("two segments were freed");
    }
}

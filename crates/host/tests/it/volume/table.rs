//! Member requests of single requests: the table of md's small writes, pages and logs of a
//! database, flushes, trims.

use host::volume::map::{Map, Wanted};
use host::volume::plan::{Part, Plan, Stage};
use host::volume::stripes::Stripes;
use host::volume::{Level, Settings, Update};
use trace::Op;

const CHUNK: u64 = 512 << 10;

struct Case {
    map: Map,
    stripes: Stripes,
}

impl Case {
    fn new(settings: &Settings) -> Self {
        let map = Map::new(settings, &vec![Some(64 << 20); settings.members]).unwrap();
        Self { map, stripes: Stripes::new(settings.stripe_cache) }
    }

    fn plan(&mut self, op: Op, offset: u64, bytes: u64) -> Plan {
        let mut plan = Plan::default();
        self.map.plan(&Wanted { op, offset, bytes }, &mut |_, _| 0, &mut self.stripes, &mut plan);
        plan
    }

    /// Reads and writes of members.
    fn counts(&mut self, op: Op, offset: u64, bytes: u64) -> (usize, usize) {
        let plan = self.plan(op, offset, bytes);
        let count = |op: Op| plan.parts().filter(|part| part.op == op).count();
        (count(Op::Read), count(Op::Write))
    }
}

fn write(settings: &Settings, bytes: u64) -> (usize, usize) {
    Case::new(settings).counts(Op::Write, 0, bytes)
}

#[test]
fn small_writes_read_what_md_reads() {
    // drivers/md/raid5.c: modify only if strictly fewer reads.
    let table = [(3, (1, 2)), (4, (2, 2)), (5, (2, 2)), (6, (2, 2)), (8, (2, 2)), (12, (2, 2))];
    for (n, expected) in table {
        assert_eq!(write(&Settings::new(Level::Raid5, n), 4096), expected, "RAID 5 of {n}");
    }
    let table = [(4, (1, 3)), (5, (2, 3)), (6, (3, 3)), (7, (3, 3)), (8, (3, 3)), (12, (3, 3))];
    for (n, expected) in table {
        assert_eq!(write(&Settings::new(Level::Raid6, n), 4096), expected, "RAID 6 of {n}");
    }
    let always = |update| Settings { update, ..Settings::new(Level::Raid6, 8) };
    assert_eq!(write(&always(Update::Modify), 4096), (3, 3));
    assert_eq!(write(&always(Update::Reconstruct), 4096), (5, 3), "before Linux 4.1");
    assert_eq!(
        write(&Settings { update: Update::Modify, ..Settings::new(Level::Raid5, 3) }, 4096),
        (2, 2)
    );
}

#[test]
fn the_tie_takes_the_data_that_stay() {
    let members = |settings: &Settings| -> Vec<usize> {
        let plan = Case::new(settings).plan(Op::Write, 0, 4096);
        plan.stage(Stage::Fetch).iter().map(|part| part.member).collect()
    };
    // Data of stripe 0 on 0, 1, 2 of 4, parity on 3: a tie. With 5: 0 and the parity on 4.
    assert_eq!(members(&Settings::new(Level::Raid5, 4)), [1, 2]);
    assert_eq!(members(&Settings::new(Level::Raid5, 5)), [0, 4]);
}

#[test]
fn writes_of_k_blocks_of_a_column_read_the_fewer() {
    // Whole chunks of one stripe: k of n - 1 data blocks in every column, merged per member.
    for n in 3..12_u64 {
        for k in 1..n {
            let found = write(&Settings::new(Level::Raid5, n as usize), k * CHUNK);
            let expected = ((k + 1).min(n - 1 - k) as usize, (k + 1) as usize);
            assert_eq!(found, expected, "{k} of {n}");
        }
    }
}

#[test]
fn lost_members_cost_as_in_the_book() {
    let lost = |n, member| Settings { failed: vec![member], ..Settings::new(Level::Raid5, n) };
    for n in 4..9 {
        // Block 0 on member 0, its parity on the last.
        assert_eq!(write(&lost(n, 0), 4096), (n - 2, 1), "lost data");
        assert_eq!(write(&lost(n, n - 1), 4096), (0, 1), "lost parity");
        assert_eq!(write(&lost(n, 1), 4096), (2, 2), "others");
        assert_eq!(Case::new(&lost(n, 0)).counts(Op::Read, 0, 4096), (n - 1, 0));
        assert_eq!(Case::new(&lost(n, 1)).counts(Op::Read, 0, 4096), (1, 0));
        let mut case = Case::new(&lost(n, 0));
        assert_eq!(case.counts(Op::Read, 0, 4096), (n - 1, 0));
        assert_eq!(case.counts(Op::Read, 0, 4096), (0, 0), "the stripe cache has it");
    }
}

#[test]
fn a_page_of_a_database_is_four_requests_and_a_log_reads_once() {
    let mut case = Case::new(&Settings::new(Level::Raid5, 5));
    // 8 KiB: two columns, each with two reads and two writes, merged per member.
    assert_eq!(case.counts(Op::Write, 64 << 10, 8192), (2, 2));
    // A log of records of 512 bytes: only the first record of a column reads.
    let reads: Vec<usize> =
        (0..16).map(|record| case.counts(Op::Write, (1 << 20) + record * 512, 512).0).collect();
    assert_eq!(reads, [2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    // 256 other columns take the room.
    for column in 0..256 {
        // Stripes hold 2 MiB in 128 columns.
        case.counts(Op::Write, ((4 + column / 128) << 21) + column % 128 * 4096, 4096);
    }
    assert_eq!(case.counts(Op::Write, 1 << 20, 512), (2, 2));
    let mut none = Case::new(&Settings { stripe_cache: 0, ..Settings::new(Level::Raid5, 5) });
    assert_eq!(none.counts(Op::Write, 0, 512), (2, 2));
    assert_eq!(none.counts(Op::Write, 512, 512), (2, 2));
}

#[test]
fn a_part_of_a_block_is_read_and_written_whole() {
    let mut case = Case::new(&Settings::new(Level::Raid5, 4));
    // 512 bytes: old data and parity are two, the data not written whole three.
    let plan = case.plan(Op::Write, 1024, 512);
    let part = |member, op| Part { member, op, offset: 0, bytes: 4096 };
    assert_eq!(plan.stage(Stage::Fetch), [part(0, Op::Read), part(3, Op::Read)]);
    assert_eq!(plan.stage(Stage::Store), [part(0, Op::Write), part(3, Op::Write)]);
}

#[test]
fn a_flush_goes_to_every_member_that_is_there() {
    for level in [Level::Raid1, Level::Raid5, Level::Raid6, Level::Raid10] {
        let settings = Settings { failed: vec![2], ..Settings::new(level, 4) };
        let plan = Case::new(&settings).plan(Op::Flush, 0, 0);
        let members: Vec<_> = plan.parts().map(|part| part.member).collect();
        assert_eq!(members, [0, 1, 3], "{level:?}");
        assert!(plan.parts().all(|part| part.op == Op::Flush));
    }
}

#[test]
fn trims_go_down_by_chunk_but_through_parity_only_in_whole_stripes() {
    let trimmed = |settings: &Settings, offset, bytes| {
        let plan = Case::new(settings).plan(Op::Trim, offset, bytes);
        (plan.parts().count(), plan.bytes(Op::Trim))
    };
    assert_eq!(trimmed(&Settings::new(Level::Raid0, 4), CHUNK / 2, CHUNK), (2, CHUNK));
    assert_eq!(trimmed(&Settings::new(Level::Raid1, 3), CHUNK / 2, CHUNK), (3, 3 * CHUNK));
    assert_eq!(trimmed(&Settings::new(Level::Raid10, 4), CHUNK / 2, CHUNK), (4, 2 * CHUNK));
    let raid5 = Settings::new(Level::Raid5, 4);
    assert_eq!(trimmed(&raid5, 0, 3 * CHUNK), (0, 0));
    let allowed = Settings { parity_trim: true, ..raid5 };
    assert_eq!(trimmed(&allowed, 0, 3 * CHUNK), (4, 4 * CHUNK));
    assert_eq!(trimmed(&allowed, 0, 3 * CHUNK - 4096), (0, 0));
    // One stripe of three is whole.
    assert_eq!(trimmed(&allowed, CHUNK, 6 * CHUNK), (4, 4 * CHUNK));
}

#[test]
fn what_makes_no_volume_is_named() {
    let field = |settings: Settings, capacities: &[Option<u64>]| {
        Map::new(&settings, capacities).unwrap_err().field
    };
    let some = [Some(1 << 30); 4];
    assert_eq!(field(Settings::new(Level::Raid5, 2), &some[..2]), "volume.members");
    assert_eq!(field(Settings::new(Level::Raid5, 3), &some), "volume.members");
    let bad = Settings { chunk_bytes: 1000, ..Settings::new(Level::Raid0, 4) };
    assert_eq!(field(bad, &some), "volume.chunk");
    for (level, failed) in [
        (Level::Raid0, vec![0]),
        (Level::Raid5, vec![0, 1]),
        (Level::Raid6, vec![0, 1, 2]),
        (Level::Raid10, vec![2, 3]),
        (Level::Raid5, vec![4]),
    ] {
        let settings = Settings { failed, ..Settings::new(level, 4) };
        assert_eq!(field(settings, &some), "volume.failed", "{level:?}");
    }
    let apart = Settings { failed: vec![1, 2], ..Settings::new(Level::Raid10, 4) };
    assert!(Map::new(&apart, &some).is_ok(), "a copy of everything is left");
    assert_eq!(field(Settings::new(Level::Concat, 2), &[None, None]), "volume.level");
}

//! BFQ: sectors in proportion to weights, and its order against a slow B-WF2Q+.

use host::scheduler::{Kind, Settings};
use units::Nanos;

use super::harness::{Process, closed_loop};

const MS: u64 = 1_000_000;
const FAR: u64 = 100 << 30;

fn settings() -> Settings {
    let nr_requests = Some(1 << 10);
    let mut settings = Settings { depth: 4, merge: false, nr_requests, ..Settings::new(Kind::Bfq) };
    // Long enough that budgets end turns.
    settings.bfq.timeout = Nanos(10_000 * MS);
    settings
}

/// Bytes of each process that the device got.
fn bytes(settings: &Settings, processes: &[Process], end_ns: u64) -> Vec<u64> {
    let (log, _) = closed_loop(settings, processes, end_ns);
    let mut sums = vec![0; processes.len()];
    log.iter().for_each(|(_, one)| sums[usize::from(one.stream)] += u64::from(one.len));
    sums
}

#[test]
fn equal_processes_have_equal_sectors_within_a_budget() {
    let large = Process { len: 65536, step: 65536, ..Process::reader(FAR, 8, 0) };
    let processes = [Process::reader(0, 8, 0), large];
    for max_budget in [16 * 1024, 1024] {
        let mut settings = settings();
        settings.bfq.max_budget = max_budget;
        for end in [2_000, 5_000, 7_321] {
            let sums = bytes(&settings, &processes, end * MS);
            let budget = max_budget * 512;
            assert!(sums[0].abs_diff(sums[1]) <= budget, "{sums:?} with {budget}");
            assert!(sums[0] > 10 * budget || max_budget > 1024);
        }
    }
}

#[test]
fn weights_of_two_to_one_give_two_to_one() {
    // 80 and 40; then with a third one of 10.
    for (priorities, shares) in [(vec![0, 4], vec![2, 1]), (vec![0, 4, 7], vec![8, 4, 1])] {
        let count = priorities.len() as u64;
        let settings = Settings { priorities, ..settings() };
        let processes: Vec<_> = (0..count).map(|at| Process::reader(at * FAR, 8, 0)).collect();
        let sums = bytes(&settings, &processes, 20_000 * MS);
        let total: u64 = sums.iter().sum();
        for (sum, share) in sums.iter().zip(&shares) {
            let fair = total * share / shares.iter().sum::<u64>();
            // A budget and the one before it.
            assert!(sum.abs_diff(fair) <= 2 * 8 << 20, "{sums:?}: {sum} of {fair}");
        }
    }
}

#[test]
fn a_timeout_ends_a_turn_of_a_slow_process() {
    let slow = Process { step: 1 << 30, ..Process::reader(FAR, 2, 0) };
    let processes = [Process::reader(0, 2, 0), slow];
    let mut settings = settings();
    settings.bfq.timeout = Nanos(125 * MS);
    let (log, _) = closed_loop(&settings, &processes, 3_000 * MS);
    let turns: Vec<_> = log
        .windows(2)
        .filter(|pair| pair[0].1.stream != pair[1].1.stream)
        .map(|pair| pair[1].0)
        .collect();
    assert!(turns.len() > 20);
    assert!(turns.windows(2).all(|pair| pair[1] - pair[0] <= 127 * MS), "{turns:?}");
}

//! Which mirror reads, and traces served in batches.

use host::volume::{Level, ReadBalance, Settings, Volume};
use model::{Device, Queued};
use trace::{Op, Trace};
use units::Nanos;

use super::load::{Draws, Log, members, request};

fn reads(log: &Log) -> Vec<u64> {
    log.lock().unwrap().drain(..).map(|(_, _, offset, _)| offset).collect()
}

fn mirror(read_balance: ReadBalance) -> (Volume, Vec<Log>) {
    let settings = Settings { read_balance, ..Settings::new(Level::Raid1, 2) };
    let (devices, logs) = members(2, 100, 100);
    (Volume::new(devices, &settings).unwrap(), logs)
}

fn read(volume: &mut Volume, at: u64, offset: u64) {
    volume.submit(Nanos(at), &request(Op::Read, offset, 4096));
}

#[test]
fn a_sequential_stream_stays_on_its_mirror() {
    for balance in [ReadBalance::LeastPending, ReadBalance::NearestHead] {
        let (mut volume, logs) = mirror(balance);
        // Two streams, far apart, in turn.
        for step in 0..5 {
            read(&mut volume, step * 1000, step * 4096);
            read(&mut volume, step * 1000 + 10, (1 << 30) + step * 4096);
        }
        let near: Vec<u64> = (0..5).map(|step| step * 4096).collect();
        let far: Vec<u64> = (0..5).map(|step| (1 << 30) + step * 4096).collect();
        let found = [reads(&logs[0]), reads(&logs[1])];
        match balance {
            ReadBalance::LeastPending => assert_eq!(found, [near, far]),
            // Both heads stand at 0 first: the first mirror takes both beginnings.
            ReadBalance::NearestHead => {
                assert_eq!(found.concat().len(), 10);
                assert!(found.iter().any(|own| own.ends_with(&far[1..])), "{found:?}");
            }
        }
    }
}

#[test]
fn the_mirror_with_fewer_requests_or_the_nearer_head_reads() {
    let (mut volume, logs) = mirror(ReadBalance::LeastPending);
    for (at, offset) in [(0, 8192), (0, 65_536), (0, 1 << 20), (50, 1 << 21), (250, 1 << 22)] {
        read(&mut volume, at, offset);
    }
    // Outstanding on 0 and 1: 0 0, 1 0, 1 1, 2 1, 0 0.
    assert_eq!(reads(&logs[0]), [8192, 1 << 20, 1 << 22]);
    assert_eq!(reads(&logs[1]), [65_536, 1 << 21]);
    let (mut volume, logs) = mirror(ReadBalance::NearestHead);
    for (at, offset) in [(0, 0), (1, 1 << 20), (2, 16_384), (3, (1 << 20) + 16_384), (4, 32_768)] {
        read(&mut volume, at, offset);
    }
    // The second is nearer to head 0 at 4096, the third to head 1 at 0.
    assert_eq!(reads(&logs[0]), [0, 1 << 20, (1 << 20) + 16_384]);
    assert_eq!(reads(&logs[1]), [16_384, 32_768]);
}

#[test]
fn a_trace_in_batches_is_the_trace_as_a_whole() {
    for level in [Level::Raid0, Level::Raid5, Level::Raid6, Level::Raid10] {
        let make = || {
            let (devices, _) = members(4, 100_000, 250_000);
            Volume::new(devices, &Settings::new(level, 4)).unwrap()
        };
        let mut draws = Draws(17);
        let mut trace = Trace::default();
        trace.streams = vec![trace::Stream { name: "data".to_owned() }];
        for index in 0..500 {
            let mut next = draws.mixed(0.5, 16_384, 1 << 24);
            next.due = Nanos(index * 70_000);
            trace.push(next);
        }
        let run = |batch: usize| {
            let mut volume = make();
            let mut completions = vec![0; trace.count()];
            for start in (0..trace.count()).step_by(batch) {
                let range = start..(start + batch).min(trace.count());
                volume.submit_due(&trace, range.clone(), &mut completions[range]);
            }
            completions
        };
        let whole = run(500);
        assert_eq!(whole, run(7), "{level:?}");
        assert!(whole.iter().zip(&trace.due).all(|(at, due)| at > due));
        let mut volume = make();
        if let Some(queued) = volume.queued() {
            assert_eq!(whole, by_arrivals(queued, &trace), "{level:?}");
        }
    }
}

fn by_arrivals(queued: &mut dyn Queued, trace: &Trace) -> Vec<u64> {
    let mut completions = vec![0; trace.count()];
    for index in 0..trace.count() {
        let request = trace.request(index);
        while let Some((at, ticket)) = queued.next_completion(request.due) {
            completions[ticket as usize] = at.0;
        }
        queued.arrive(request.due, index as u64, &request);
    }
    while let Some((at, ticket)) = queued.next_completion(Nanos(u64::MAX - 1)) {
        completions[ticket as usize] = at.0;
    }
    completions
}

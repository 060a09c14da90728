//! Whole states as bytes: every kind of device goes on from the middle of a run as if it had not
//! been set aside, and bytes that were cut short or changed are refused.

use model::hdd::Hdd;
use model::{Device, SnapshotError};
use proptest::prelude::*;
use trace::Trace;
use units::Nanos;

use crate::kinds::{Row, aged, disk, kinds, rows};

fn serve(device: &mut dyn Device, trace: &Trace, range: std::ops::Range<usize>) -> Vec<u64> {
    let mut completions = vec![0; range.len()];
    let mut at = range.start;
    for chunk in completions.chunks_mut(7) {
        device.submit_due(trace, at..at + chunk.len(), chunk);
        at += chunk.len();
    }
    completions
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// What is on its way at the moment of the snapshot goes on too.
    #[test]
    fn a_restored_device_goes_on_from_the_middle(rows in rows(160), share in 0.0f64..1.0) {
        let trace = aged(&rows);
        // In the middle of a batch or not: devices that look ahead have taken in more.
        let cut = (trace.count() as f64 * share) as usize;
        for (name, make) in kinds() {
            let (mut device, mut restored) = (make(), make());
            serve(device.as_mut(), &trace, 0..cut);
            let snapshot = device.snapshot().expect("all of these have snapshots");
            prop_assert_eq!(restored.restore(&snapshot), Ok(()), "{}", &name);
            prop_assert_eq!(restored.snapshot(), Some(snapshot), "{}", &name);
            let expected = serve(device.as_mut(), &trace, cut..trace.count());
            let found = serve(restored.as_mut(), &trace, cut..trace.count());
            prop_assert_eq!(found, expected, "{}", &name);
            prop_assert_eq!(restored.counters(), device.counters(), "{}", &name);
            prop_assert_eq!(restored.snapshot(), device.snapshot(), "{}", &name);
        }
    }

    /// A state lands on a device that was used before as on a new one.
    #[test]
    fn a_device_that_was_used_takes_a_state_over(rows in rows(60), other in rows(60)) {
        let (trace, other) = (aged(&rows), aged(&other));
        for (name, make) in kinds() {
            let (mut device, mut used) = (make(), make());
            let cut = trace.count() / 2;
            serve(device.as_mut(), &trace, 0..cut);
            serve(used.as_mut(), &other, 0..other.count());
            let snapshot = device.snapshot().expect("all of these have snapshots");
            prop_assert_eq!(used.restore(&snapshot), Ok(()), "{}", &name);
            let expected = serve(device.as_mut(), &trace, cut..trace.count());
            prop_assert_eq!(serve(used.as_mut(), &trace, cut..trace.count()), expected, "{}", name);
            prop_assert_eq!(used.snapshot(), device.snapshot());
        }
    }

    /// Told of arrivals and asked for completions, as closed loops do, with some outstanding.
    #[test]
    fn outstanding_requests_complete_after_a_restore(rows in rows(80), cut in 0usize..170) {
        let trace = aged(&rows);
        for (name, make) in kinds() {
            let (mut device, mut restored) = (make(), make());
            if device.queued().is_none() {
                continue;
            }
            let cut = cut.min(trace.count());
            for index in 0..cut {
                let queued = device.queued().expect("it looks at its queue");
                while queued.next_completion(Nanos(trace.due[index])).is_some() {}
                queued.arrive(Nanos(trace.due[index]), index as u64, &trace.request(index));
            }
            let snapshot = device.snapshot().expect("all of these have snapshots");
            prop_assert_eq!(restored.restore(&snapshot), Ok(()), "{}", &name);
            let rest = |device: &mut dyn Device| {
                let queued = device.queued().expect("it looks at its queue");
                let next = || queued.next_completion(Nanos(u64::MAX));
                std::iter::from_fn(next).collect::<Vec<_>>()
            };
            prop_assert_eq!(rest(restored.as_mut()), rest(device.as_mut()), "{}", name);
        }
    }
}

/// Every length and every eighth bit or so: an error, and never a panic.
#[test]
fn damaged_snapshots_are_refused() {
    let rows: Vec<Row> =
        (0..60u64).map(|k| (k * 7919 % 400_000, (k % 24) as u8, k * 31 % 440, 3_000, 1)).collect();
    let trace = aged(&rows);
    for (name, make) in kinds() {
        let (mut device, mut victim) = (make(), make());
        serve(device.as_mut(), &trace, 0..trace.count() - 20);
        let snapshot = device.snapshot().expect("all of these have snapshots");
        for length in 0..snapshot.len() {
            // All lengths near the ends, and of those between every kind of remainder.
            if length > 100 && length + 100 < snapshot.len() && length % 13 != 0 {
                continue;
            }
            assert!(victim.restore(&snapshot[..length]).is_err(), "{name}: {length} bytes");
        }
        let mut changed = snapshot.clone();
        for bit in (0..snapshot.len() * 8).step_by(if snapshot.len() > 4096 { 67 } else { 3 }) {
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(victim.restore(&changed).is_err(), "{name}: bit {bit}");
            changed[bit / 8] ^= 1 << (bit % 8);
        }
        changed.extend([0; 8]);
        assert!(victim.restore(&changed).is_err(), "{name}: too long");
        assert_eq!(victim.restore(&snapshot), Ok(()), "{name}: and whole it is taken");
    }
}

/// A state never lands on a device of another kind or of other parameters.
#[test]
fn states_of_other_devices_are_refused() {
    let kinds = kinds();
    let mut first = kinds.iter().map(|(_, make)| make()).collect::<Vec<_>>();
    for (place, (name, make)) in kinds.iter().enumerate() {
        let snapshot = make().snapshot().expect("all of these have snapshots");
        for (own, device) in first.iter_mut().enumerate() {
            let taken = device.restore(&snapshot);
            assert_eq!(taken.is_ok(), own == place, "{name} on {}", kinds[own].0);
            let is_other = matches!(taken, Ok(()) | Err(SnapshotError::OtherDevice { .. }));
            assert!(is_other || kinds[own].0.starts_with("cache"), "{name}: {taken:?}");
        }
    }
    let mut slower = disk(1);
    slower.rpm -= 1;
    let snapshot = Hdd::new(&disk(1)).snapshot().expect("disks have snapshots");
    let refused = Hdd::new(&slower).restore(&snapshot);
    assert_eq!(refused, Err(SnapshotError::OtherDevice { what: "a parameter" }));
}

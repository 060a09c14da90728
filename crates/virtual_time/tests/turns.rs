//! Workers in virtual time against what can be reckoned by hand or by a loop without threads.

use std::sync::{Arc, Mutex};

use model::Device;
use trace::{Op, Request};
use units::{Bytes, Nanos};
use virtual_time::{Computing, Settings, World, give_way, sleep};

/// Serves one request after the other, `1 + offset` us each.
#[derive(Default)]
struct Serial {
    free_ns: u64,
}

impl Device for Serial {
    fn submit(&mut self, now: Nanos, request: &Request) -> Nanos {
        self.free_ns = self.free_ns.max(now.0) + 1_000 * (1 + request.offset.0);
        Nanos(self.free_ns)
    }
}

fn world(processors: u32, computing: Computing) -> Arc<World> {
    World::new(Box::new(Serial::default()), &Settings { processors, computing })
}

/// Runs `work` as every one of this many workers and gives the time of each at its end.
fn run(world: &Arc<World>, workers: usize, work: impl Fn(usize) + Sync) -> Vec<u64> {
    world.expect(workers);
    std::thread::scope(|scope| {
        let spawned: Vec<_> = (0..workers)
            .map(|worker| {
                let work = &work;
                scope.spawn(move || {
                    let member = world.join(worker);
                    work(worker);
                    let now_ns = world.now_ns();
                    drop(member);
                    now_ns
                })
            })
            .collect();
        spawned.into_iter().map(|thread| thread.join().unwrap_or(u64::MAX)).collect()
    })
}

/// The same closed loop without threads: the worker with the earliest time asks next.
fn by_hand(workers: usize, requests: u64, processors: usize, stretch_ns: u64) -> u64 {
    let mut device = Serial::default();
    let mut free = vec![0_u64; processors];
    // (when it may go on, order of coming, worker, whether it computed already, requests left)
    let mut ready: Vec<_> =
        (0..workers).map(|worker| (0, worker, worker, false, requests)).collect();
    let (mut order, mut end) = (workers, 0);
    while let Some(at) = (0..ready.len()).min_by_key(|&at| (ready[at].0, ready[at].1)) {
        let (now, _, worker, computed, left) = ready.swap_remove(at);
        order += 1;
        if computed {
            let due = Nanos(now);
            let offset = Bytes((worker as u64 * 7 + left) % 5);
            let request = Request { due, offset, len: 4096, op: Op::Read, stream: 0 };
            let done = device.submit(due, &request).0;
            ready.push((done, order, worker, false, left - 1));
        } else {
            let first = free.iter_mut().min().unwrap();
            *first = now.max(*first) + stretch_ns;
            end = end.max(*first);
            if left > 0 {
                ready.push((*first, order, worker, true, left));
            }
        }
    }
    end
}

#[test]
fn a_closed_loop_of_threads_is_the_closed_loop() {
    for (workers, processors, stretch_ns) in [(1, 1, 0), (1, 2, 700), (5, 2, 700), (9, 1, 4_300)] {
        let world = world(processors, Computing::Stretch(stretch_ns));
        let ends = run(&world, workers, |worker| {
            for left in (1..=200).rev() {
                world.io(Op::Read, (worker as u64 * 7 + left) % 5, 4096, 0);
            }
        });
        let expected = by_hand(workers, 200, processors as usize, stretch_ns);
        assert_eq!(ends.into_iter().max(), Some(expected), "{workers} workers");
    }
}

#[test]
fn requests_arrive_in_the_order_of_time_and_twice_the_same() {
    let seen = || {
        let world = world(2, Computing::Stretch(300));
        let log = Mutex::new(Vec::new());
        run(&world, 4, |worker| {
            for step in 0..100 {
                world.settle();
                log.lock().unwrap().push((world.now_ns(), worker));
                world.io(Op::Write, (step * worker as u64) % 11, 512, 0);
            }
        });
        log.into_inner().unwrap()
    };
    let log = seen();
    // `now_ns` ends a stretch, so entries may be one stretch apart on two processors.
    assert!(log.windows(2).all(|pair| pair[0].0 <= pair[1].0 + 2 * 300), "{log:?}");
    assert_eq!(log, seen());
}

#[test]
fn who_idles_wakes_when_told_or_when_due() {
    let world = world(1, Computing::Nothing);
    let ends = run(&world, 3, |worker| match worker {
        0 => world.idle(50_000_000),
        1 => world.idle(2_000_000),
        _ => {
            assert!(sleep(5_000_000));
            world.wake();
        }
    });
    assert_eq!(ends, [5_000_000, 2_000_000, 5_000_000]);
}

#[test]
fn who_waits_for_what_another_holds_goes_on_when_that_is_done() {
    let world = world(1, Computing::Nothing);
    let held = Mutex::new(());
    let ends = run(&world, 2, |worker| {
        if worker == 0 {
            let guard = held.lock().unwrap();
            world.io(Op::Write, 99, 4096, 0);
            drop(guard);
        } else {
            assert!(sleep(1_000));
            while held.try_lock().is_err() {
                assert!(give_way());
            }
        }
    });
    assert_eq!(ends, [100_000, 100_000]);
}

#[test]
fn a_worker_that_panics_or_never_comes_does_not_stop_the_others() {
    let world = world(1, Computing::Nothing);
    world.expect(3);
    std::thread::scope(|scope| {
        let failing = scope.spawn(|| {
            let _member = world.join(0);
            world.io(Op::Read, 0, 4096, 0);
            std::panic::panic_any("on purpose");
        });
        let working = scope.spawn(|| {
            let _member = world.join(1);
            (0..10).for_each(|_| world.io(Op::Read, 0, 4096, 0));
            world.now_ns()
        });
        world.absent();
        assert!(failing.join().is_err());
        assert_eq!(working.join().unwrap(), 11_000);
    });
}

#[test]
fn a_device_that_looks_at_its_queue_serves_everybody() {
    let text = include_str!("../../../profiles/hgst-hds72107.toml");
    let profile = profile::Profile::from_toml(text, "disk").unwrap();
    let seen = || {
        let settings = Settings { processors: 2, computing: Computing::Stretch(10_000) };
        let world = World::new(model::device(&profile, 1), &settings);
        let ends = run(&world, 8, |worker| {
            for step in 0..20 {
                let place = (worker as u64 * 7_919 + step * 104_729) % 1_000_003;
                world.io(Op::Read, place * 4096, 4096, 0);
            }
        });
        ends.into_iter().max().unwrap()
    };
    let end = seen();
    assert_eq!(end, seen());
    // 160 random reads of a disk of 7,200 rpm: 8 to 13 ms each one at a time, less with a queue.
    assert!((300_000_000..2_100_000_000).contains(&end), "{end}");
}

#[test]
fn who_is_no_worker_pays_nothing() {
    let world = world(1, Computing::Nothing);
    world.io(Op::Flush, 0, 0, 0);
    assert!(!sleep(1_000) && !give_way());
    assert_eq!(world.now_ns(), 0);
}

#[test]
fn computing_costs_the_processor_time_that_it_took() {
    let spin = || {
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 20 {}
    };
    let end = |speed| {
        let world = world(1, Computing::Measured { speed });
        run(&world, 1, |_| spin())[0] as f64 / 1e6
    };
    // Others may have had the processor for a part of the 20 ms.
    let (real, twice) = (end(1.0), end(2.0));
    assert!((1.0..=21.0).contains(&real), "{real}");
    assert!((0.5..=10.5).contains(&twice), "{twice}");
}

//! What the capture costs the server that is captured: pgbench with and without, alternately.
//!
//! Processor time is compared, not throughput: on a shared machine throughput follows the
//! neighbours. All of it is counted: the server's, pgbench's, and the capture's own threads.

use capture::server::{Options, PhysicalCapture, Server, ServerCapture, ServerClock, System};

use crate::postgresql::Postgresql;

/// Rounds of one run each way, and transactions of each of four clients in a run.
const ROUNDS: usize = 9;
const TRANSACTIONS: u32 = 4000;

#[derive(Clone, Copy, Default)]
struct Cost {
    us_per_transaction: f64,
    own_us_per_transaction: f64,
    transactions_per_s: f64,
}

fn children_s() -> f64 {
    let usage = |who| {
        // SAFETY: a plain structure that the call fills.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a whole rusage.
        unsafe { libc::getrusage(who, &raw mut usage) };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        seconds(usage.ru_utime) + seconds(usage.ru_stime)
    };
    usage(libc::RUSAGE_CHILDREN)
}

/// One run of pgbench.
fn run(postgresql: &Postgresql, watched: Option<Options>) -> Cost {
    let server = Server {
        system: System::Postgresql,
        pid: postgresql.pid(),
        data: postgresql.data(),
        log: None,
        temp: None,
        undo: None,
    };
    postgresql.query("CHECKPOINT").unwrap();
    let clock = ServerClock::start(server.pid);
    let captures = watched.map(|options| {
        let physical = PhysicalCapture::start(&server).unwrap();
        (ServerCapture::start(&server, options).unwrap(), physical)
    });
    let before_s = children_s();
    let start = std::time::Instant::now();
    let count = TRANSACTIONS.to_string();
    postgresql.bench(&["-c", "4", "-M", "prepared", "-t", &count]);
    let elapsed_s = start.elapsed().as_secs_f64();
    let children_s = children_s() - before_s;
    // What the threads collect while the load runs is counted, the sorting out afterwards is not.
    let cpu = clock.finish();
    if let Some((logical, physical)) = captures {
        physical.finish();
        let logical = logical.finish();
        assert_eq!(logical.losses, 0);
    }
    let own_s = cpu.client_user_s + cpu.client_system_s;
    let all_s = cpu.server_user_s + cpu.server_system_s + children_s + own_s;
    let transactions = f64::from(4 * TRANSACTIONS);
    Cost {
        us_per_transaction: all_s * 1e6 / transactions,
        own_us_per_transaction: own_s * 1e6 / transactions,
        transactions_per_s: transactions / elapsed_s,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn the_capture_costs_under_three_percent() {
    if std::env::var("SLOW").as_deref() != Ok("1") {
        return println!("skipped: SLOW=1 runs it");
    }
    let postgresql = match Postgresql::start(&crate::server::home(), 4) {
        Ok(postgresql) => postgresql,
        Err(reason) => return println!("skipped: {reason}"),
    };
    run(&postgresql, None);
    for turns in [false, true] {
        let options = Options { client_turns: turns };
        let pairs: Vec<(Cost, Cost)> = (0..ROUNDS)
            .map(|round| {
                // The order alternates, so that a trend of the machine favours neither.
                if round % 2 == 0 {
                    let plain = run(&postgresql, None);
                    (plain, run(&postgresql, Some(options)))
                } else {
                    let watched = run(&postgresql, Some(options));
                    (run(&postgresql, None), watched)
                }
            })
            .collect();
        let over = |of: fn(&Cost) -> f64, which: fn(&(Cost, Cost)) -> Cost| {
            median(pairs.iter().map(|pair| of(&which(pair))).collect())
        };
        let ratio = |of: fn(&Cost) -> f64| {
            median(pairs.iter().map(|(plain, watched)| of(watched) / of(plain)).collect())
        };
        let us: fn(&Cost) -> f64 = |cost| cost.us_per_transaction;
        let (plain, watched) = (over(us, |pair| pair.0), over(us, |pair| pair.1));
        let own = over(|cost| cost.own_us_per_transaction, |pair| pair.1);
        let speed = ratio(|cost| cost.transactions_per_s);
        println!(
            "client turns {turns}: {plain:.1} us without, {watched:.1} us with the capture \
             ({own:.1} us of its own), ratio of pairs {:.4}, throughput {speed:.4}",
            ratio(us)
        );
        assert!(ratio(us) < 1.03 || turns, "{:.4}", ratio(us));
    }
}

//! What the capture costs the server that is captured: pgbench with and without, alternately.
//!
//! Processor time is compared, not throughput: on a shared machine throughput follows the
//! neighbours. All of it is counted: the server's, pgbench's, and the capture's own threads.

use capture::server::{Options, PhysicalCapture, Server, ServerCapture, ServerClock, System};

use crate::postgresql::Postgresql;

/// Rounds of one run each way, and transactions of each of four clients in a run.
const ROUNDS: usize = 9;
const TRANSACTIONS: u32 = 1500;

/// What watches a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    Nothing,
    Calls,
    CallsAndTurns,
    CallsAndDisks,
}

const WAYS: [Watch; 4] = [Watch::Nothing, Watch::Calls, Watch::CallsAndTurns, Watch::CallsAndDisks];

#[derive(Clone, Copy, Default)]
struct Cost {
    us_per_transaction: f64,
    own_us_per_transaction: f64,
    transactions_per_s: f64,
    /// Share of the machine that neither the load nor the capture used.
    foreign_share: f64,
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
fn run(postgresql: &Postgresql, watch: Watch) -> Cost {
    let server = Server::new(System::Postgresql, postgresql.pid(), postgresql.data());
    postgresql.query("CHECKPOINT").unwrap();
    let turns = watch == Watch::CallsAndTurns;
    let options = Options { client_turns: turns, waits: turns, processors: turns };
    let logical =
        (watch != Watch::Nothing).then(|| ServerCapture::start(&server, options).unwrap());
    let physical =
        (watch == Watch::CallsAndDisks).then(|| PhysicalCapture::start(&server).unwrap());
    // The start of the captures is not counted: a measurement is longer than this one.
    let clock = ServerClock::start(&server.pids());
    let before_s = children_s();
    let start = std::time::Instant::now();
    let count = TRANSACTIONS.to_string();
    postgresql.bench(&["-c", "4", "-M", "prepared", "-t", &count]);
    let elapsed_s = start.elapsed().as_secs_f64();
    let children_s = children_s() - before_s;
    // What the threads collect while the load runs is counted, the sorting out afterwards is not.
    let cpu = clock.finish();
    drop(physical);
    assert_eq!(logical.map_or(0, |logical| logical.finish().losses), 0);
    let own_s = cpu.client_user_s + cpu.client_system_s;
    let all_s = cpu.server_user_s + cpu.server_system_s + children_s + own_s;
    let transactions = f64::from(4 * TRANSACTIONS);
    Cost {
        us_per_transaction: all_s * 1e6 / transactions,
        own_us_per_transaction: own_s * 1e6 / transactions,
        transactions_per_s: transactions / elapsed_s,
        // pgbench is no part of the server.
        foreign_share: (cpu.foreign_s - children_s).max(0.0) / cpu.machine_s,
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
    run(&postgresql, Watch::Nothing);
    let mut costs: [Vec<Cost>; 4] = Default::default();
    for round in 0..ROUNDS {
        for step in 0..WAYS.len() {
            // The order changes, so that a trend of the machine favours none.
            let way = (round + step) % WAYS.len();
            costs[way].push(run(&postgresql, WAYS[way]));
        }
    }
    for (way, watched) in WAYS.iter().zip(&costs) {
        let medians = |of: fn(&Cost) -> f64| median(watched.iter().map(of).collect());
        let ratio = |of: fn(&Cost) -> f64| {
            median(watched.iter().zip(&costs[0]).map(|(one, none)| of(one) / of(none)).collect())
        };
        let us: fn(&Cost) -> f64 = |cost| cost.us_per_transaction;
        println!(
            "{way:?}: {:.1} us per transaction, of which its own {:.1}; ratio {:.4} (of the least \
             {:.4}); throughput {:.4}",
            medians(us),
            medians(|cost| cost.own_us_per_transaction),
            ratio(us),
            least_of(watched) / least_of(&costs[0]),
            ratio(|cost| cost.transactions_per_s),
        );
    }
    let foreign = median(costs.iter().flatten().map(|cost| cost.foreign_share).collect());
    if foreign > 0.05 {
        // Neighbours change what a transaction costs by more than the capture does.
        return println!("skipped: {:.0} % of the machine are in use by others", foreign * 100.0);
    }
    let all = least_of(&costs[3]) / least_of(&costs[0]);
    assert!(all < 1.03, "{all:.4}");
}

/// The least disturbed run.
fn least_of(costs: &[Cost]) -> f64 {
    costs.iter().map(|cost| cost.us_per_transaction).fold(f64::MAX, f64::min)
}

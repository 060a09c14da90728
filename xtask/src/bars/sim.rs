//! Simulation as a user types it: a trace of our format through `wearmark sim`, by processor time.

use super::tools::{bench, figure, folder, median, program, timed};
use super::{Sitting, Target};

/// Requests of the trace.
const REQUESTS: &str = "20000000";
const ROUNDS: usize = 3;

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let (program, folder) = (program()?, folder("sim")?);
    let trace = folder.join("trace.parquet");
    let (trace, write) = (trace.to_string_lossy(), ["trace", "generate", "oltp-like", "-n"]);
    timed(&program, &[&write[..], &[REQUESTS, "-o", &trace, "--quiet"]].concat())?;
    let devices = [
        ("linear", "micron-7400", &["--no-cache"][..], 30.0),
        ("linear and write cache", "intel-320", &[], 15.0),
        ("flash by timelines", "generic-tlc-48g", &[], 6.0),
        ("disk", "hitachi-15k450", &["--no-cache"], 3.0),
    ];
    let requests: f64 = REQUESTS.parse()?;
    for (what, profile, more, bar) in devices {
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            let words = ["sim", &trace, "-p", profile, "--quiet", "--json"];
            let (_, cpu_s) = timed(&program, &[&words[..], more].concat())?;
            rates.push(requests / cpu_s / 1e6);
        }
        let what = format!("{what} ({profile}), command");
        sitting.add_rate(what, median(rates), "M req/s", Target::AtLeast(bar));
    }
    std::fs::remove_dir_all(&folder)?;
    let text = bench("sim", "replay_rate")?;
    let rate = figure(&text, "linear_cache:", "M requests/s")?;
    let what = "linear and write cache, in memory, no command";
    sitting.add_rate(what, rate, "M req/s", Target::AtLeast(30.0));
    let text = bench("sim", "transactions_rate")?;
    for (name, what, bar) in [("commit:", "commits", 1.0), ("order_entry:", "order entry", 0.1)] {
        let rate = figure(&text, name, "simulated transactions")? / 1e6;
        let what = format!("transactions in virtual time, {what}");
        sitting.add_rate(what, rate, "M/s", Target::AtLeast(bar));
    }
    Ok(())
}

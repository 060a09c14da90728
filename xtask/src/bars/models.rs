//! Device models without the program around them: requests per second of one core.

use super::tools::{bench, figure};
use super::{Sitting, Target};

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let flash = bench("model", "flash_rate")?;
    let unit = "M requests/s per core";
    for (what, bar) in [("A1", 20.0), ("A2", 20.0), ("A3", 12.0), ("A5s", 12.0)] {
        let line = flash.lines().find(|line| line.starts_with(what)).unwrap_or(what);
        let name = line.split(':').next().unwrap_or(what);
        let rate = figure(&flash, what, unit)?;
        sitting.add_rate(
            format!("flash by timelines, {name}"),
            rate,
            "M req/s",
            Target::AtLeast(bar),
        );
    }
    let events = bench("model", "event_rate")?;
    for line in events.lines().filter(|line| line.contains(unit)) {
        let name = line.split("  ").next().unwrap_or(line);
        let rate = figure(line, name, unit)?;
        let what = format!("flash by events, {name}");
        sitting.add_rate(what, rate, "M req/s", Target::AtLeast(1.5));
    }
    let disks = bench("model", "hdd_rate")?;
    for name in ["random", "half streaming"] {
        let rate = figure(&disks, &format!("{name}:"), "M requests/s in order")?;
        let what = format!("disk in order, {name}");
        sitting.add_rate(what, rate, "M req/s", Target::AtLeast(3.0));
        let line = disks.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        let queued = figure(line, name, "M with the queue")?;
        sitting.add_rate(format!("disk with its queue, {name}"), queued, "M req/s", Target::Beside);
    }
    Ok(())
}

//! Whether the accounts of a captured run close: the block layer's trace against the kernel's
//! counters of the disk, the server's own count of commits against the client's.
//!
//! As root. Neither is a matter of speed, so the development build runs.

use anyhow::Context;
use serde_json::Value;

use super::tools::{development, folder, number, output};
use super::{Sitting, Target};

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let (program, folder) = (development("wearmark", None)?, folder("accounts")?);
    for server in ["postgresql", "mariadb"] {
        if !sitting.wants(server) {
            continue;
        }
        let (place, kept) = (folder.join(server), folder.join(format!("{server}.json")));
        let text = |path: &std::path::Path| path.to_string_lossy().into_owned();
        let (place, saved) = (text(&place), text(&kept));
        let arguments = [
            "oltp",
            "run",
            &place,
            "--dbms",
            server,
            "--access",
            "pipelined",
            "--warmup",
            "2s",
            "--duration",
            "20s",
            "--save",
            &saved,
            "--remove",
            "--quiet",
        ];
        output(&program, &arguments)?;
        let set: Value = serde_json::from_slice(&std::fs::read(&kept)?)?;
        let run = &set["runs"][0];
        let accounts = &run["server"]["accounts"];
        let closures = accounts["closures"].as_array().context("the disk was not captured")?;
        for closure in closures {
            let disk = closure["disk"].as_str().context("a disk has a name")?;
            let name = |what: &str| format!("{server}, {disk}: {what}");
            let difference = number(closure, &["difference"])?;
            let bar = Target::AtMost(0.001);
            sitting.add(name("trace off the kernel's counters"), difference.abs(), "share", bar);
            let foreign = number(closure, &["foreign_share"])?;
            sitting.add(name("bytes of other programs"), foreign, "share", Target::Beside);
        }
        let commits = number(run, &["server", "activity", "commits"])?;
        let done = number(run, &["result", "transactions_per_s"])?
            * number(run, &["result", "measured_s"])?;
        let name = format!("{server}: commits by the server over the client's");
        sitting.add(name, commits / done, "ratio", Target::Within(0.9, 1.1));
    }
    Ok(std::fs::remove_dir_all(&folder)?)
}

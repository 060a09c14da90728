//! Reading and writing traces as a user types it, by processor time.

use std::path::Path;

use super::tools::{folder, median, program, timed};
use super::{Sitting, Target};

const REQUESTS: &str = "10000000";
const ROUNDS: usize = 3;

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let (program, folder) = (program()?, folder("traces")?);
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let own = path("trace.parquet");
    let generate = ["trace", "generate", "oltp-like", "-n", REQUESTS, "-o", &own, "--quiet"];
    timed(&program, &generate)?;
    let cpu_s = |arguments: &[&str]| -> anyhow::Result<f64> {
        let rounds = (0..ROUNDS).map(|_| Ok(timed(&program, arguments)?.1));
        Ok(median(rounds.collect::<anyhow::Result<Vec<f64>>>()?))
    };
    let requests: f64 = REQUESTS.parse()?;
    let info = requests / cpu_s(&["trace", "info", &own, "--quiet", "--json"])? / 1e6;
    sitting.add_rate("trace info of our format", info, "M req/s", Target::AtLeast(10.0));
    let gb = |path: &str| -> anyhow::Result<f64> {
        Ok(std::fs::metadata(Path::new(path))?.len() as f64 / 1e9)
    };
    let per_request = gb(&own)? * 1e9 / requests;
    sitting.add("our format", per_request, "B/req", Target::AtMost(6.0));
    for (name, to_text, from_text) in [("spc", 0.5, 0.8), ("msr", 0.5, 0.8)] {
        let (text, back) = (path(&format!("trace.{name}")), path("back.parquet"));
        let convert = ["trace", "convert", &own, &text, "--to", name, "--quiet", "--force"];
        let out_s = cpu_s(&convert)?;
        let rate = gb(&text)? / out_s;
        let what = format!("Parquet to {name}, bytes of text");
        sitting.add(what, rate, "GB/s", Target::AtLeast(to_text));
        let convert = ["trace", "convert", &text, &back, "--quiet", "--force"];
        let rate = gb(&text)? / cpu_s(&convert)?;
        let what = format!("{name} to Parquet, bytes of text");
        sitting.add(what, rate, "GB/s", Target::AtLeast(from_text));
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

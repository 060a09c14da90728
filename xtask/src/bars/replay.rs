//! Replay of a trace at its times.

use serde_json::Value;

use super::tools::{example, folder, number, output};
use super::{Sitting, Target};

pub fn measure(sitting: &mut Sitting) -> anyhow::Result<()> {
    let program = example("probe", "replay_rate")?;
    let folder = folder("replay")?;
    for rate in ["1000", "5000", "20000"] {
        let text = output(&program, &[&folder.to_string_lossy(), rate, "6"])?;
        let json: Value = serde_json::from_str(&text)?;
        sitting.add(
            format!("duration over ideal at {rate}/s"),
            number(&json, &["duration_ratio"])?,
            "ratio",
            Target::Within(0.9995, 1.0005),
        );
        for (quantile, bound) in [("p50", 5.0), ("p99", 50.0)] {
            sitting.add(
                format!("issue lateness {quantile} at {rate}/s"),
                number(&json, &[&format!("lateness_ns_{quantile}")])? / 1e3,
                "us",
                Target::AtMost(bound),
            );
        }
    }
    Ok(())
}

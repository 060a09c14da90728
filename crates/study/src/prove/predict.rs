//! What a captured load would do on a device.
//!
//! The closed-loop simulation of the captured I/O: transactions per minute only, since it knows the
//! I/O of a transaction and not what its user waits for.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::Figures;

/// What `wearmark sim --closed --json` prints of a device, as far as it is used here.
#[derive(Deserialize)]
struct Simulated {
    closed_loop: Option<Closed>,
}

#[derive(Deserialize)]
struct Closed {
    transactions_per_s: f64,
}

/// The figures of the load that was captured as `prefix`, on a device; else why there are none.
pub(super) fn on(program: &Path, prefix: &Path, device: &str) -> Result<Figures, String> {
    let file = |layer: &str| {
        let mut path = prefix.as_os_str().to_owned();
        path.push(format!("-{layer}.parquet"));
        PathBuf::from(path)
    };
    let (device_trace, logical) = (file("device"), file("logical"));
    let trace = if device_trace.exists() { device_trace } else { logical };
    let mut command = Command::new(program);
    command.args(["sim", "--closed", "--json", "--quiet", "-p", device]).arg(&trace);
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().find_map(|line| line.strip_prefix("error: "));
        return Err(said.unwrap_or("the simulation failed").to_owned());
    }
    let found: Vec<Simulated> =
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let closed = found.into_iter().next().and_then(|device| device.closed_loop);
    match closed {
        Some(closed) if closed.transactions_per_s > 0.0 => Ok(Figures {
            transactions_per_min: closed.transactions_per_s * 60.0,
            kinds: Vec::new(),
        }),
        _ => Err("the captured I/O holds no transactions".to_owned()),
    }
}

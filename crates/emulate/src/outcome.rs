//! What came of serving a device.

use std::collections::BTreeMap;
use std::path::PathBuf;

use events::Warning;
use serde::Serialize;
use stats::Histogram;
use trace::Op;

use crate::Lost;
use crate::counters::OpCounters;

/// An emulation is called late where 99 % of its answers are later than this part of what the model
/// gives the typical request.
const LATE_SHARE: f64 = 0.2;

/// Below this share of the requests a kind of them changes nothing that anybody sees.
const FEW: f64 = 0.05;

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpOutcome {
    /// `read`, `write`, `trim`, `flush`.
    pub op: &'static str,
    /// Requests answered.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What the model gave them, us: the mean.
    pub service_us_mean: f64,
    /// The median.
    pub service_us_p50: f64,
    /// The 99th percentile.
    pub service_us_p99: f64,
}

impl OpOutcome {
    pub(crate) fn of(op: Op, counters: &OpCounters) -> Self {
        let service = &counters.service;
        let quantile = |q| if service.is_empty() { 0.0 } else { service.quantile(q) as f64 / 1e3 };
        Self {
            op: op.name(),
            requests: counters.requests,
            bytes: counters.bytes,
            service_us_mean: if service.is_empty() { 0.0 } else { service.mean() / 1e3 },
            service_us_p50: quantile(0.5),
            service_us_p99: quantile(0.99),
        }
    }
}

/// What came of serving one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The device.
    pub device: String,
    /// The directories that were on it.
    pub directories: Vec<PathBuf>,
    /// How long it was served, seconds.
    pub elapsed_s: f64,
    /// Requests by kind.
    pub ops: Vec<OpOutcome>,
    /// Most requests at once.
    pub depth_max: usize,
    /// What the path between program and emulator takes without a pause, us: answers leave earlier
    /// by it, and by more after a pause.
    pub path_us: f64,
    /// Whether idle processors were kept awake; where they sleep, the path differs from request to
    /// request by tens of microseconds.
    pub awake: bool,
    /// What the model gave the typical request, us.
    pub service_us_p50: f64,
    /// How much later than they should answers left, the mean, us.
    pub lateness_us_mean: f64,
    /// 99 % of the answers left no later than this after they should have, us.
    pub lateness_us_p99: f64,
    /// How much later than they should the answers left, ns.
    pub lateness: Histogram,
    /// The model's own counters.
    pub model: BTreeMap<String, u64>,
    /// What was lost, where the power was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
}

impl Outcome {
    /// Requests answered.
    pub fn requests(&self) -> u64 {
        self.ops.iter().map(|op| op.requests).sum()
    }

    /// What makes the emulation suspect.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let late = self.lateness_us_p99;
        if self.requests() > 0 && late > self.service_us_p50 * LATE_SHARE {
            let message = format!(
                "{}: 1 % of the answers left {late:.0} us late or more, where the device takes \
                 {:.0} us",
                self.device, self.service_us_p50
            );
            let hint = if self.awake {
                "run it with fewer other programs, or emulate a slower device"
            } else {
                "run it as root, so that idle processors can be kept awake, with fewer other \
                 programs, or emulate a slower device"
            };
            warnings.push(Warning::new("emulate", "emulation_late", message).with_hint(hint));
        }
        let few = (self.requests() as f64 * FEW) as u64;
        for op in self.ops.iter().filter(|op| op.requests > few) {
            if op.service_us_p50 * (1.0 + LATE_SHARE) >= self.path_us {
                continue;
            }
            let message = format!(
                "{}: a {} takes {:.0} us on the device and {:.0} us here, which is what the way to \
                 the emulator takes alone",
                self.device, op.op, op.service_us_p50, self.path_us
            );
            let hint = "what waits for these requests is slower here than on the device; \
                        predictions and runs in virtual time are not";
            warnings.push(Warning::new("emulate", "emulation_path", message).with_hint(hint));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(service_us: f64, flush_us: f64, lateness_us: f64) -> Outcome {
        let op = |op, requests, us| OpOutcome {
            op,
            requests,
            bytes: 0,
            service_us_mean: us,
            service_us_p50: us,
            service_us_p99: us,
        };
        Outcome {
            device: "it".to_owned(),
            directories: Vec::new(),
            elapsed_s: 1.0,
            ops: vec![op("write", 1_000, service_us), op("flush", 900, flush_us)],
            depth_max: 1,
            path_us: 24.0,
            awake: true,
            service_us_p50: service_us,
            lateness_us_mean: lateness_us / 10.0,
            lateness_us_p99: lateness_us,
            lateness: Histogram::new(),
            model: BTreeMap::new(),
            lost: None,
        }
    }

    #[test]
    fn what_the_device_does_faster_than_the_path_is_said() {
        let codes = |outcome: Outcome| -> Vec<String> {
            outcome.warnings().into_iter().map(|warning| warning.code.clone()).collect()
        };
        assert_eq!(codes(outcome(100.0, 50.0, 2.0)), [""; 0]);
        assert_eq!(codes(outcome(100.0, 0.0, 2.0)), ["emulation_path"]);
        assert_eq!(codes(outcome(100.0, 0.0, 30.0)), ["emulation_late", "emulation_path"]);
        let mut rare = outcome(100.0, 0.0, 2.0);
        rare.ops[1].requests = 40;
        assert_eq!(codes(rare), [""; 0]);
    }
}

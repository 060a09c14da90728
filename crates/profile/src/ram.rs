//! `kind = "ram"`: the section of a DRAM SSD, what it must satisfy, and the parameters that it
//! describes.

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::parameter::{Parameter, capacity_text};
use crate::rules::{Flaw, check_capacity, count, positive, time};

/// What the model of a DRAM SSD needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RamParameters {
    /// Size of the device.
    pub capacity: Option<Bytes>,
    /// Fixed time per request, ns.
    pub latency_ns: f64,
    /// Bytes per second across the interface.
    pub bytes_per_s: f64,
    /// Requests that the controller works on at once.
    pub ports: u32,
}

/// `[device]` of `kind = "ram"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RamSpec {
    /// Size of the device.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "capacity_text")]
    pub capacity: Option<Bytes>,
    /// Fixed time per request, us.
    pub latency_us: Parameter,
    /// MB (1,000,000 bytes) per second across the interface.
    pub interface_mb_per_s: Parameter,
    /// Requests that the controller works on at once.
    pub ports: Parameter,
}

impl RamSpec {
    /// The model parameters that the section describes.
    pub fn parameters(&self) -> RamParameters {
        RamParameters {
            capacity: self.capacity,
            latency_ns: self.latency_us.value * 1e3,
            bytes_per_s: self.interface_mb_per_s.value * 1e6,
            ports: self.ports.value as u32,
        }
    }
}

/// What a DRAM SSD must satisfy to exist.
pub(crate) fn check_ram(ram: &RamSpec) -> Result<(), Flaw> {
    check_capacity(ram.capacity)?;
    time("device.latency_us", &ram.latency_us)?;
    positive("device.interface_mb_per_s", &ram.interface_mb_per_s)?;
    count("device.ports", &ram.ports, 65_536.0)
}

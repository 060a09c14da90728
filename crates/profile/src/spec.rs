//! The sections of a profile, as they stand in its file.

use serde::{Deserialize, Serialize};

use crate::flash::FlashSpec;
use crate::hdd::HddSpec;
use crate::linear::LinearSpec;
use crate::ram::RamSpec;

/// `[profile]`: what the device is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Short name, as on the command line: `intel-x25-e`.
    pub name: String,
    /// One or two sentences for a person choosing a device.
    #[serde(default)]
    pub description: String,
    /// Kind of device: `sata-slc`, `nvme-tlc`, `hdd`, `dram-ssd`, `cloud-volume`, ...
    #[serde(default)]
    pub class: String,
    /// Papers, data sheets and runs that the parameters come from.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// `[state]`: what the device was like when the parameters held.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateOf {
    /// `fresh`, `steady` or `unknown`.
    pub condition: String,
    /// Share of the capacity that holds data, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<f64>,
    /// When it was measured or published, as a date or year.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub measured: String,
    /// Anything else that the figures depend on: machine, file system, firmware.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// `[validation]`: how well the profile was found to predict the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Error ratio E of simulated against measured response times.
    pub error_ratio: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
    /// E of the device against itself in a second run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_against_itself: Option<f64>,
    /// The trace, which the fit had not seen.
    pub trace: String,
    /// When.
    pub date: String,
}

/// `[device]`: the model and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DeviceSpec {
    /// `kind = "linear"`: lines.
    Linear(Box<LinearSpec>),
    /// `kind = "ram"`: a DRAM SSD.
    Ram(RamSpec),
    /// `kind = "flash"`: an SSD, page by page.
    Flash(Box<FlashSpec>),
    /// `kind = "hdd"`: a disk.
    Hdd(Box<HddSpec>),
}

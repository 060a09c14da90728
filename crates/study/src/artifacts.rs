//! What the stages of a study leave in its run directory: the one list of names, each with what the
//! file holds. Below every stage, so that none has to know another.

use std::collections::BTreeMap;

use fit::FittedLine;
use fit::measurement::Measurements;
use oltp::OltpResult;
use probe::reference::Measured;
use serde::{Deserialize, Serialize};

use crate::file::Oltp;
use crate::observe::Accounts;
use crate::prove::Place;
use crate::run_dir::Artifact;
use crate::scenarios::ScenarioResult;
use crate::validation::{Round, Validation};

/// The machine's fingerprint.
pub const MACHINE: Artifact<BTreeMap<String, String>> = Artifact::new("machine.json");

/// The captured device trace.
pub const DEVICE_TRACE: &str = "device.parquet";
/// The captured logical trace.
pub const LOGICAL_TRACE: &str = "logical.parquet";
/// I/O by layer and file class, and CPU.
pub const ACCOUNTS: Artifact<Accounts> = Artifact::new("accounts.json");
/// Reference measurements around the load.
pub const REFERENCES_OF_LOAD: Artifact<Vec<Measured>> = Artifact::new("references-load.json");
/// The result of the load.
pub const LOAD: Artifact<OltpResult> = Artifact::new("oltp.json");

/// Reference measurements between the cells of the probe.
pub const REFERENCES_OF_FIT: Artifact<Vec<Measured>> = Artifact::new("references-fit.json");
/// The cells of the probe.
pub const MEASUREMENTS: Artifact<Measurements> = Artifact::new("measurements.json");
/// The fitted profile.
pub const PROFILE: &str = "profile.toml";
/// What the fit leaves beside the profile.
pub const FIT: Artifact<FitReport> = Artifact::new("fit.json");
/// Rounds of the replay.
pub const REPLAY: Artifact<Vec<Round>> = Artifact::new("replay.json");
/// How wrong the profile is.
pub const VALIDATION: Artifact<Validation> = Artifact::new("validation.json");
/// The load on simulated devices.
pub const SCENARIOS: Artifact<Vec<ScenarioResult>> = Artifact::new("scenarios.json");

/// Says that the database is loaded, and how.
pub const LOADED: Artifact<Oltp> = Artifact::new("loaded.json");
/// The places with what is predicted for each, without runs.
pub const PREDICTED: Artifact<Vec<Place>> = Artifact::new("predictions.json");
/// The places with the runs there.
pub const PLACES: Artifact<Vec<Place>> = Artifact::new("places.json");

/// What the fit leaves beside the profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitReport {
    /// The fitted lines with their points.
    pub lines: Vec<FittedLine>,
}

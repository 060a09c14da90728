//! One run, with everything that is watched beside it.

use capture::sqlite::IoMode;
use dbms::{Instance, ServerCpu};
use events::Sink;
use oltp::{Options, Phase};
use trace::Trace;

use super::{Run, ServerRun};
use crate::Error;
use crate::stages::oltp::{Capture, observe};

/// What the database of a run is, beyond its options.
pub enum Target<'a> {
    /// SQLite, whose files are opened in this way.
    Embedded(IoMode),
    /// A server that wearmark started.
    Private(&'a Instance),
    /// A server that was there.
    Foreign,
}

/// A run and the traces that it left.
pub struct Made {
    /// The run.
    pub run: Run,
    /// Captured traces and what to call them.
    pub traces: Vec<(&'static str, Trace)>,
}

/// Makes one run on a loaded database.
///
/// # Errors
/// Those of [`oltp::run`] and of the capture.
pub fn make(
    options: Options,
    target: &Target<'_>,
    capture: Capture,
    sink: &dyn Sink,
) -> Result<Made, Error> {
    match target {
        Target::Embedded(io) => embedded(options, *io, capture, sink),
        Target::Private(instance) => on_server(&options, Some(instance), sink),
        Target::Foreign => on_server(&options, None, sink),
    }
}

fn embedded(
    options: Options,
    io: IoMode,
    capture: Capture,
    sink: &dyn Sink,
) -> Result<Made, Error> {
    let observed = observe(options, io, capture, sink)?;
    let traces = observed.captured.map_or_else(Vec::new, |captured| {
        vec![("device", captured.device), ("logical", captured.logical)]
    });
    let accounts = Some(observed.accounts);
    let run = Run { at: String::new(), result: observed.result, accounts, server: None };
    Ok(Made { run, traces })
}

fn on_server(
    options: &Options,
    instance: Option<&Instance>,
    sink: &dyn Sink,
) -> Result<Made, Error> {
    let mut cpu = CpuWithin::default();
    let result = oltp::run_observed(options, sink, &mut |phase| {
        if let Some(instance) = instance {
            cpu.at(phase, instance.cpu());
        }
    })?;
    if let Some(instance) = instance {
        instance.check()?;
    }
    let server = ServerRun {
        settings: instance.map(|instance| instance.settings().clone()),
        places: instance.map(|instance| instance.places().clone()),
        notes: instance.map_or_else(|| vec![FOREIGN.to_owned()], Instance::notes),
        cpu: cpu.used,
    };
    let run = Run { at: String::new(), result, accounts: None, server: Some(server) };
    Ok(Made { run, traces: Vec::new() })
}

/// What a server that wearmark did not start keeps to itself.
const FOREIGN: &str = "a server that was running already: its settings, places and processor time \
                       are not controlled and not seen, and its files are not captured";

/// The server's processor time within the measurement.
#[derive(Default)]
struct CpuWithin {
    begin: Option<ServerCpu>,
    used: Option<ServerCpu>,
}

impl CpuWithin {
    fn at(&mut self, phase: Phase, now: ServerCpu) {
        match (phase, self.begin) {
            (Phase::Measurement, _) => self.begin = Some(now),
            (Phase::End, Some(begin)) => {
                self.used = Some(ServerCpu {
                    user_s: now.user_s - begin.user_s,
                    system_s: now.system_s - begin.system_s,
                });
            }
            (Phase::WarmUp, _) | (Phase::End, None) => {}
        }
    }
}

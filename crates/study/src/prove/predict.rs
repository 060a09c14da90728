//! What a captured load would do on a device: transactions in virtual time, from empty caches on
//! and for as long as it is measured.

use std::path::Path;

use ::predict::{Prediction, Question};
use events::Quiet;

use super::{AsRun, By, DeviceIo, Figures, KindFigures, Place, Predicted};
use crate::Error;
use crate::host_stack::Devices;
use crate::predictions::{ask, asked_here, busy_ns, here, read_run};
use crate::profiles::read_device;
use crate::runs::Run;

/// What the load that was captured as `prefix` does at a place.
///
/// # Errors
/// A capture or a profile that cannot be read, or that nothing can be predicted from.
pub(super) fn at(prefix: &Path, place: &Place) -> Result<Option<Predicted>, Error> {
    let run = read_run(prefix)?;
    if place.profile.is_empty() {
        return Ok(Some(answer(&here(prefix)?)));
    }
    in_virtual_time(prefix, place, from_start(&run, Question::default()))
}

/// The same as it was run: at the speed that processors had in the runs `here`, beside emulators
/// whose answers were late, and with syncs that compute so much less than here, ns.
///
/// # Errors
/// As [`at`].
pub(super) fn as_run(
    prefix: &Path,
    place: &Place,
    here: &Place,
    sync_less_ns: f64,
) -> Result<Option<AsRun>, Error> {
    let run = read_run(prefix)?;
    let speed = here.speed_since(busy_ns(&run));
    let (emulator_ns, late_ns) = (place.emulator_ns().unwrap_or(0.0), place.late_ns());
    // Measured at the speed of the runs; what was captured is in the time of the capture.
    let sync_less_ns = sync_less_ns * speed;
    let asked = Question {
        speed: Some(speed),
        request_load_ns: emulator_ns as u64,
        request_late_ns: late_ns as u32,
        sync_less_ns: sync_less_ns as u64,
        ..Question::default()
    };
    let question = from_start(&run, asked);
    let found = if place.profile.is_empty() {
        Some(answer(&asked_here(prefix, &question)?))
    } else {
        in_virtual_time(prefix, place, question)?
    };
    let figures = found.map(|found| found.figures);
    Ok(figures.map(|figures| AsRun { figures, speed, emulator_ns, late_ns, sync_less_ns }))
}

/// As it is measured: from empty caches and for as long, where that was seen.
fn from_start(run: &Run, question: Question) -> Question {
    let from_start = run.server.as_ref().is_none_or(|server| server.start.is_some());
    Question { from_start, ..question }
}

/// Terminals, processors, locks and the log are simulated: what each kind of transaction takes from
/// request to answer.
fn in_virtual_time(
    prefix: &Path,
    place: &Place,
    question: Question,
) -> Result<Option<Predicted>, Error> {
    let devices = |profile: &str, host: Option<&str>| {
        let spec = host.map(|text| host::Spec::from_toml(text, "host")).transpose()?;
        Devices::new(read_device(profile)?, spec.as_ref())
    };
    let own = devices(&place.profile, place.host.as_deref())?;
    let log = place.log.as_ref().map(|log| devices(log, place.log_host.as_deref())).transpose()?;
    let question = Question { log_apart: log.is_some(), ..question };
    let (all, _) = ask(prefix, &question, &[own], log.as_ref(), &Quiet)?;
    Ok(all.devices.first().map(answer))
}

fn answer(found: &Prediction) -> Predicted {
    let ms = |ns: u64| ns as f64 / 1e6;
    let kinds = found.kinds.iter().map(|kind| KindFigures {
        kind: kind.kind.clone(),
        p50_ms: ms(kind.response_ns_p50),
        p99_ms: ms(kind.response_ns_p99),
    });
    Predicted {
        figures: Figures {
            transactions_per_min: found.per_min,
            kinds: kinds.collect(),
            busy_ns: Some(found.busy_ns),
        },
        transactions_per_min_interval: Some((found.per_min_low, found.per_min_high)),
        limits: found.limits.clone(),
        io: DeviceIo::by_op(found.io.iter().map(|io| DeviceIo {
            op: io.op.clone(),
            requests: io.requests,
            bytes: io.bytes,
        })),
        by: By::Capture,
    }
}

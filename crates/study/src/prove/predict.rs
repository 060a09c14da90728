//! What a captured load would do on a device: transactions in virtual time, from empty caches on
//! and for as long as it is measured.

use std::path::Path;

use ::predict::{Prediction, Question};
use events::Quiet;

use super::{By, DeviceIo, Figures, KindFigures, Place, Predicted};
use crate::Error;
use crate::host_stack::Devices;
use crate::predictions::{ask, here, read_run};
use crate::profiles::read_device;

/// What the load that was captured as `prefix` does at a place.
///
/// # Errors
/// A capture or a profile that cannot be read, or that nothing can be predicted from.
pub(super) fn at(prefix: &Path, place: &Place) -> Result<Option<Predicted>, Error> {
    beside(prefix, place, 0)
}

/// The same where an emulator computes this long for each request, ns.
///
/// # Errors
/// As [`at`].
pub(super) fn beside(
    prefix: &Path,
    place: &Place,
    request_load_ns: u64,
) -> Result<Option<Predicted>, Error> {
    let run = read_run(prefix)?;
    if place.profile.is_empty() {
        return Ok(Some(answer(&here(prefix)?)));
    }
    // As it is measured: from empty caches and for as long, where that was seen.
    let from_start = run.server.is_none_or(|server| server.start.is_some());
    let question = Question { from_start, request_load_ns, ..Question::default() };
    in_virtual_time(prefix, place, question)
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
        figures: Figures { transactions_per_min: found.per_min, kinds: kinds.collect() },
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

//! What a captured load would do on a device, from empty caches on and for as long as it is measured:
//! transactions in virtual time where a server was captured, the closed loop of the captured I/O
//! where SQLite was.

use std::path::Path;

use ::predict::{Prediction, Question};
use events::Quiet;

use super::{Figures, KindFigures, Place, Predicted};
use crate::Error;
use crate::captures::with;
use crate::predictions::{ask, here, read_run};
use crate::runs::{FROM_START, Run};
use crate::scenarios::read_profile;

/// What the load that was captured as `prefix` does at a place.
///
/// # Errors
/// A capture or a profile that cannot be read, or that nothing can be predicted from.
pub(super) fn at(prefix: &Path, place: &Place) -> Result<Option<Predicted>, Error> {
    let run = read_run(prefix)?;
    match (&run.server, place.profile.as_str()) {
        (Some(_), "") => Ok(Some(answer(&here(prefix)?))),
        (Some(server), profile) => {
            // As it is measured: from empty caches and for as long, where that was seen.
            let from_start = server.start.is_some();
            in_virtual_time(prefix, profile, place.log.as_deref(), from_start)
        }
        (None, "") => Ok(None),
        (None, profile) => by_its_io(prefix, &run, profile),
    }
}

/// Terminals, processors, locks and the log are simulated: what each kind of transaction takes from
/// request to answer.
fn in_virtual_time(
    prefix: &Path,
    device: &str,
    log: Option<&str>,
    from_start: bool,
) -> Result<Option<Predicted>, Error> {
    let profile = read_profile(device)?;
    let log = log.map(read_profile).transpose()?;
    let question = Question { log_apart: log.is_some(), from_start, ..Question::default() };
    let (all, _) = ask(prefix, &question, &[profile], log.as_ref(), &Quiet)?;
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
    }
}

/// Transactions per minute only: the I/O of a transaction is known, and not what its user waits for.
fn by_its_io(prefix: &Path, run: &Run, device: &str) -> Result<Option<Predicted>, Error> {
    let profile = read_profile(device)?;
    let read = |name: &str| {
        let path = with(prefix, &format!("-{name}.parquet"));
        let exists = path.exists();
        exists.then(|| formats::own::read(&path).map_err(Error::Trace)).transpose()
    };
    let options = &run.result.options;
    let measured = options.warmup.0..options.warmup.0 + options.measure.0;
    let mut per_min = None;
    if let Some(trace) = read(FROM_START)? {
        let mut device = model::device(&profile, 0);
        let per_s = sim::closed_loop_within(device.as_mut(), &trace, measured)?;
        per_min = per_s.map(|per_s| per_s * 60.0);
    }
    // A device so fast that it is through with the capture before its warm-up ends.
    let per_min = match (per_min, read("device")?) {
        (Some(per_min), _) => per_min,
        (None, Some(trace)) => {
            sim::closed_loop(model::device(&profile, 0).as_mut(), &trace)?.transactions_per_min()
        }
        (None, None) => return Ok(None),
    };
    Ok((per_min > 0.0).then(|| Predicted {
        figures: Figures { transactions_per_min: per_min, kinds: Vec::new() },
        transactions_per_min_interval: None,
        limits: Vec::new(),
    }))
}

//! What a captured load would do on a device: transactions in virtual time where a server was
//! captured, the closed loop of the captured I/O where SQLite was.

use std::path::Path;

use ::predict::{Prediction, Question};
use events::Quiet;

use super::{Figures, KindFigures, Place, Predicted};
use crate::Error;
use crate::predictions::{ask, here, read_run};
use crate::scenarios::read_profile;

/// What the load that was captured as `prefix` does at a place.
///
/// # Errors
/// A capture or a profile that cannot be read, or that nothing can be predicted from.
pub(super) fn at(prefix: &Path, place: &Place) -> Result<Option<Predicted>, Error> {
    match (read_run(prefix)?.server, place.profile.as_str()) {
        (Some(_), "") => Ok(Some(answer(&here(prefix)?))),
        (Some(_), profile) => in_virtual_time(prefix, profile, place.log.as_deref()),
        (None, "") => Ok(None),
        (None, profile) => by_its_io(prefix, profile),
    }
}

/// Terminals, processors, locks and the log are simulated: what each kind of transaction takes from
/// request to answer.
fn in_virtual_time(
    prefix: &Path,
    device: &str,
    log: Option<&str>,
) -> Result<Option<Predicted>, Error> {
    let profile = read_profile(device)?;
    let log = log.map(read_profile).transpose()?;
    let question = Question { log_apart: log.is_some(), ..Question::default() };
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
fn by_its_io(prefix: &Path, device: &str) -> Result<Option<Predicted>, Error> {
    let mut path = prefix.as_os_str().to_owned();
    path.push("-device.parquet");
    let trace = formats::own::read(Path::new(&path)).map_err(Error::Trace)?;
    let mut model = model::device(&read_profile(device)?, 0);
    let outcome = sim::closed_loop(model.as_mut(), &trace)?;
    let per_min = outcome.transactions_per_min();
    Ok((per_min > 0.0).then(|| Predicted {
        figures: Figures { transactions_per_min: per_min, kinds: Vec::new() },
        transactions_per_min_interval: None,
        limits: Vec::new(),
    }))
}

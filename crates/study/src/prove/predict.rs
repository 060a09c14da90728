//! What a captured load would do on a device: transactions in virtual time where a server was
//! captured, the closed loop of the captured I/O where SQLite was.

use std::path::Path;

use events::Quiet;
use predict::Question;

use super::{Figures, KindFigures};
use crate::Error;
use crate::predictions::{ask, read_run};
use crate::scenarios::read_profile;

/// The figures of the load that was captured as `prefix`, on a device; else why there are none.
pub(super) fn on(prefix: &Path, device: &str) -> Result<Figures, String> {
    let figures = || -> Result<Option<Figures>, Error> {
        match read_run(prefix)?.server {
            Some(_) => in_virtual_time(prefix, device),
            None => by_its_io(prefix, device),
        }
    };
    match figures() {
        Ok(Some(figures)) => Ok(figures),
        Ok(None) => Err("the captured I/O holds no transactions".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Terminals, processors, locks and the log are simulated: what each kind of transaction takes from
/// request to answer.
fn in_virtual_time(prefix: &Path, device: &str) -> Result<Option<Figures>, Error> {
    let profile = read_profile(device)?;
    let (all, _) = ask(prefix, &Question::default(), &[profile], None, &Quiet)?;
    let ms = |ns: u64| ns as f64 / 1e6;
    Ok(all.devices.first().map(|answer| Figures {
        transactions_per_min: answer.per_min,
        kinds: answer
            .kinds
            .iter()
            .map(|kind| KindFigures {
                kind: kind.kind.clone(),
                p50_ms: ms(kind.response_ns_p50),
                p99_ms: ms(kind.response_ns_p99),
            })
            .collect(),
    }))
}

/// Transactions per minute only: the I/O of a transaction is known, and not what its user waits for.
fn by_its_io(prefix: &Path, device: &str) -> Result<Option<Figures>, Error> {
    let mut path = prefix.as_os_str().to_owned();
    path.push("-device.parquet");
    let trace = formats::own::read(Path::new(&path)).map_err(Error::Trace)?;
    let mut model = read_profile(device)?.device(0);
    let outcome = sim::closed_loop(model.as_mut(), &trace)?;
    let per_min = outcome.transactions_per_min();
    Ok((per_min > 0.0).then(|| Figures { transactions_per_min: per_min, kinds: Vec::new() }))
}

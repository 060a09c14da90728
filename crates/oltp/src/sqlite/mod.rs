//! Embedded SQLite: loading, opening, and the five transactions.
//!
//! SQLite has one writer. One connection, on one worker thread, therefore runs all read-write
//! transactions (BEGIN IMMEDIATE), and further connections the read-only ones; which runs when is
//! decided by the queues of [`crate::users`], so SQLite's own locks are not met busy. A busy answer
//! can still come from another process: after SQLite's own wait it counts as a failed attempt and is
//! retried.

mod customer;
mod delivery;
mod load;
mod new_order;
mod open;
mod order_status;
mod payment;
mod schema;
mod session;
mod stock_level;

use std::path::PathBuf;

use crate::driver::{Driver, Lanes, Meter, Work, Worker};
use crate::options::{JournalMode, SqliteSettings};
use crate::{Error, Scale};

pub use load::{LoadReport, load};
pub(crate) use open::{count_run, open, open_read_only, read_meta, version};

/// SQLite with the settings of a run.
#[derive(Clone, Debug)]
pub struct Sqlite {
    path: PathBuf,
    settings: SqliteSettings,
    scale: Scale,
}

impl Sqlite {
    /// The driver for a loaded database of this scale.
    pub fn new(settings: &SqliteSettings, scale: Scale) -> Self {
        Self { path: settings.database(), settings: settings.clone(), scale }
    }
}

impl Driver for Sqlite {
    fn lanes(&self) -> Lanes {
        Lanes {
            writers: 1,
            readers: self.settings.readers as usize,
            overlap: self.settings.journal_mode == JournalMode::Wal,
        }
    }

    fn with_session(
        &self,
        worker: Worker,
        meter: &Meter,
        work: &mut Work<'_>,
    ) -> Result<(), Error> {
        let connection = open(&self.path, &self.settings, worker.writes)?;
        let mut session = session::SqliteSession::new(&connection, &self.path, self.scale, meter)?;
        work(&mut session)
    }
}

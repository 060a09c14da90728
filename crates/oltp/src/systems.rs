//! The DBMSs: the one place that knows all of them.

use crate::driver::Dbms;
use crate::mariadb::Mariadb;
use crate::postgresql::Postgresql;
use crate::sqlite::Sqlite;
use crate::{Database, Error, Workload};

impl Database {
    /// The DBMS, with its settings, for a workload.
    ///
    /// # Errors
    /// Settings without meaning for it.
    pub fn dbms(&self, workload: Workload) -> Result<Box<dyn Dbms>, Error> {
        self.validate()?;
        match self {
            Self::Sqlite(settings) => Ok(Box::new(Sqlite::new(settings, workload))),
            Self::Postgresql(settings) => Ok(Box::new(Postgresql::new(settings, workload))),
            Self::Mariadb(settings) => Ok(Box::new(Mariadb::new(settings, workload))),
        }
    }
}

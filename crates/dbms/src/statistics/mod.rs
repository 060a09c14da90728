//! What a server counts itself: snapshots, and what happened between two of them.
//!
//! [`Statistics::read`] takes all numbers that the server offers, under the server's own names;
//! [`Statistics::since`] subtracts, and puts the ones that both servers have, or that a report
//! needs, into [`Activity`]. A figure that a server does not count is `None`, never zero.
//!
//! Two cautions. PostgreSQL's sessions hand in their counts about once a second, and when they
//! end: take a snapshot after the sessions of a run have ended. And a server counts what it asks of
//! the kernel; what reaches the device is the block layer's account.
//!
//! Tested on real servers with a load of known size (`tests/it/statistics.rs`).

mod mariadb;
mod postgresql;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Address, Error, Login, System};

/// All numbers of a server at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Which server.
    pub system: System,
    /// Its version, in its own words.
    pub version: String,
    /// Size of its pages, bytes.
    pub page_bytes: u64,
    /// Its numbers, such as `wal.wal_bytes` or `Innodb_data_reads`.
    pub numbers: BTreeMap<String, f64>,
}

/// What a server did between two snapshots.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Activity {
    /// Transactions that were committed, those that only read included.
    pub commits: Option<u64>,
    /// Transactions that were rolled back.
    pub rollbacks: Option<u64>,
    /// Deadlocks that were broken.
    pub deadlocks: Option<u64>,
    /// Pages asked of the buffer: the logical reads.
    pub page_requests: Option<u64>,
    /// Pages that the buffer did not hold and that were read: from the kernel, not always a device.
    pub page_reads: Option<u64>,
    /// Pages written to the tables' files.
    pub page_writes: Option<u64>,
    /// Of these, by the sessions themselves, because they found no clean page.
    pub page_writes_by_sessions: Option<u64>,
    /// Pages written a second time against torn writes: InnoDB's doublewrite.
    pub doublewrite_pages: Option<u64>,
    /// Whole pages in the log against torn writes: PostgreSQL's full-page images.
    pub page_images_in_log: Option<u64>,
    /// Bytes of log.
    pub log_bytes: Option<u64>,
    /// Writes of log.
    pub log_writes: Option<u64>,
    /// Syncs of the log alone.
    pub log_syncs: Option<u64>,
    /// Syncs of all files, the log's included.
    pub syncs: Option<u64>,
    /// Bytes that sorts and hash tables wrote to temporary files.
    pub temp_bytes: Option<u64>,
    /// Temporary files or tables on disk.
    pub temp_files: Option<u64>,
    /// Checkpoints, by time and by log together.
    pub checkpoints: Option<u64>,
    /// Old row versions that nobody has removed yet, at the end: InnoDB's history list.
    pub history_length: Option<u64>,
    /// Every number that changed, by the server's own name.
    pub changes: BTreeMap<String, f64>,
}

impl Activity {
    /// Logical reads that the buffer answered, as a share.
    pub fn hit_share(&self) -> Option<f64> {
        let (requests, reads) = (self.page_requests?, self.page_reads?);
        (requests > 0).then(|| 1.0 - reads as f64 / requests as f64)
    }
}

impl Statistics {
    /// Asks a server, ours or any other, for its numbers.
    ///
    /// # Errors
    /// No server there; a user that may not see them.
    pub fn read(system: System, login: &Login) -> Result<Self, Error> {
        match system {
            System::Postgresql => postgresql::read(login),
            System::Mariadb => mariadb::read(login),
        }
    }

    /// What happened since an earlier snapshot of the same server. A server that was started in
    /// between counts from zero again: numbers that fell are left out.
    pub fn since(&self, earlier: &Self) -> Activity {
        let changed = self.numbers.iter().filter_map(|(name, now)| {
            let change = now - earlier.numbers.get(name)?;
            (change > 0.0).then(|| (name.clone(), change))
        });
        let between = Between { earlier, later: self };
        let mut activity = match self.system {
            System::Postgresql => postgresql::activity(&between),
            System::Mariadb => mariadb::activity(&between),
        };
        activity.changes = changed.collect();
        activity
    }
}

/// Two snapshots.
struct Between<'a> {
    earlier: &'a Statistics,
    later: &'a Statistics,
}

impl Between<'_> {
    /// How much the sum of these numbers grew; `None` where one is missing or fell.
    fn grew(&self, names: &[&str]) -> Option<u64> {
        let mut sum = 0.0;
        for name in names {
            sum += self.later.numbers.get(*name)? - self.earlier.numbers.get(*name)?;
        }
        (sum >= 0.0).then_some(sum as u64)
    }

    /// How much the sum of all numbers with this beginning and end grew; `None` where there is
    /// none.
    fn grew_like(&self, prefix: &str, suffix: &str) -> Option<u64> {
        let like = |name: &&String| name.starts_with(prefix) && name.ends_with(suffix);
        let names: Vec<&str> = self.later.numbers.keys().filter(like).map(String::as_str).collect();
        if names.is_empty() { None } else { self.grew(&names) }
    }

    /// A number as it is now.
    fn now(&self, name: &str) -> Option<u64> {
        self.later.numbers.get(name).map(|value| *value as u64)
    }
}

/// How far a server's log has come, asked again and again over one connection.
pub struct LogPosition(crate::postgresql::Connection);

impl LogPosition {
    /// `None` for MariaDB, whose log grows by the same for each transaction: it protects pages
    /// from torn writes elsewhere.
    ///
    /// # Errors
    /// No server there.
    pub fn ask(system: System, login: &Login) -> Result<Option<Self>, Error> {
        match system {
            System::Postgresql => Ok(Some(Self(crate::postgresql::Connection::connect(login)?))),
            System::Mariadb => Ok(None),
        }
    }

    /// Bytes that were inserted since the log began.
    ///
    /// # Errors
    /// A server that has gone.
    pub fn bytes(&mut self) -> Result<u64, Error> {
        postgresql::log_position(&mut self.0)
    }

    /// Bytes that can be inserted before a new segment must be filled.
    ///
    /// # Errors
    /// A server that has gone, or a role that may not look at the log (`pg_monitor`).
    pub fn ready_bytes(&mut self) -> Result<u64, Error> {
        postgresql::log_ready(&mut self.0)
    }
}

/// What can be neither controlled nor seen on a server that is not a private instance, in sentences
/// for a report.
pub fn limits(login: &Login) -> Vec<String> {
    let mut limits = vec![
        "buffer, log, flush and checkpoint settings are the server's own".to_owned(),
        "its files stay where they are; a run starts with whatever its buffer holds".to_owned(),
        "other clients' work is part of its numbers".to_owned(),
    ];
    limits.push(
        match &login.address {
            Address::Unix(_) => {
                "its processes run on this machine; their CPU time and I/O are not told apart from \
             other work of the same server"
            }
            Address::Tcp { .. } => {
                "CPU time and I/O of its processes are not seen where it runs on another machine"
            }
        }
        .to_owned(),
    );
    limits.push("it is never stopped, crashed or removed".to_owned());
    limits
}

/// The settings that decide how a server treats storage, by its own names.
///
/// # Errors
/// As [`Statistics::read`].
pub fn settings(system: System, login: &Login) -> Result<BTreeMap<String, String>, Error> {
    match system {
        System::Postgresql => postgresql::settings(login),
        System::Mariadb => mariadb::settings(login),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(numbers: &[(&str, f64)]) -> Statistics {
        Statistics {
            system: System::Mariadb,
            version: String::new(),
            page_bytes: 16384,
            numbers: numbers.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        }
    }

    #[test]
    fn what_is_not_counted_is_none_and_what_fell_is_left_out() {
        let names = ["Innodb_data_fsyncs", "Innodb_history_list_length", "Innodb_deadlocks"];
        let first = snapshot(&[(names[0], 5.0), (names[1], 9.0), (names[2], 3.0)]);
        let second = snapshot(&[(names[0], 8.0), (names[1], 4.0), (names[2], 1.0)]);
        let activity = second.since(&first);
        assert_eq!(activity.syncs, Some(3));
        assert_eq!(activity.history_length, Some(4));
        assert_eq!((activity.deadlocks, activity.commits), (None, None));
        assert_eq!(activity.changes.into_iter().collect::<Vec<_>>(), [(names[0].to_owned(), 3.0)]);
    }

    #[test]
    fn the_hit_share_of_nothing_is_unknown() {
        let of = |requests, reads| {
            Activity { page_requests: requests, page_reads: reads, ..Activity::default() }
                .hit_share()
        };
        assert_eq!(of(Some(10), Some(1)), Some(0.9));
        assert_eq!((of(Some(0), Some(0)), of(None, Some(1))), (None, None));
    }
}

//! Where the files of an instance go and how its server is set.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// Directories of an instance; `None` means inside `data`. Each holds a marker of ours and one
/// subdirectory for the server, and may lie on a device of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// Tables and indexes, and everything that has no place of its own.
    pub data: PathBuf,
    /// The log: `pg_wal`, `innodb_log_group_home_dir`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// Sorts and hash tables that outgrow memory: `temp_tablespaces`, `tmpdir`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temp: Option<PathBuf>,
    /// Old row versions: `innodb_undo_directory`. PostgreSQL has no such thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<PathBuf>,
}

impl Places {
    /// Everything below one directory.
    pub fn at(data: impl AsRef<Path>) -> Self {
        Self { data: data.as_ref().to_owned(), log: None, temp: None, undo: None }
    }
}

/// What a commit promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The log is synced before commit returns.
    #[default]
    Full,
    /// Commit returns before the log is synced: PostgreSQL's `synchronous_commit = off`, MariaDB's
    /// `innodb_flush_log_at_trx_commit = 2`.
    Relaxed,
    /// Nothing is ever synced: `fsync = off`, `innodb_flush_method = nosync`.
    Off,
}

/// How a server is set. The default is durable and has a buffer of 128 MiB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The buffer pool: `shared_buffers`, `innodb_buffer_pool_size`.
    pub buffer: Bytes,
    /// Page size; `None` is the server's own (8 KiB and 16 KiB). Only MariaDB has a choice: 4, 8,
    /// 16, 32 or 64 KiB, when the instance is created.
    pub page: Option<Bytes>,
    /// How far the log may grow before a checkpoint: `max_wal_size`, `innodb_log_file_size`.
    pub log_size: Bytes,
    /// Memory of one sort or join: `work_mem`, `sort_buffer_size` and `join_buffer_size`.
    pub work_memory: Bytes,
    /// Longest time between checkpoints: `checkpoint_timeout`, 30 s to one day. MariaDB flushes by
    /// log space and dirty share only and takes no notice.
    pub checkpoint: Nanos,
    /// What a commit promises.
    pub durability: Durability,
    /// Clients at once; three more are kept for administration.
    pub connections: u32,
    /// Past the kernel's page cache: `innodb_flush_method = O_DIRECT`. PostgreSQL before 16 cannot,
    /// and takes no notice.
    pub direct: bool,
    /// Further settings in the server's own words; they win over the ones above.
    pub extra: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            buffer: Bytes(128 << 20),
            page: None,
            log_size: Bytes(1 << 30),
            work_memory: Bytes(4 << 20),
            checkpoint: Nanos(300_000_000_000),
            durability: Durability::Full,
            connections: 100,
            direct: true,
            extra: Vec::new(),
        }
    }
}

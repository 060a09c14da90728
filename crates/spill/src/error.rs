//! Why a sort or a join cannot run, or did not come to its end.

use std::path::PathBuf;

use events::Hint;
use thiserror::Error;
use units::Bytes;

/// What ends a sort or a join. The temporary file is gone in every case.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The cluster size is none that the engine or the device can do.
    #[error("a cluster of {cluster} is not possible here: {why}")]
    Cluster {
        /// What was asked for.
        cluster: Bytes,
        /// Which rule it breaks.
        why: String,
        /// What to do instead.
        hint: String,
    },
    /// The memory does not hold the clusters that the work needs at once.
    #[error("{memory} of memory holds {held} clusters of {cluster}; at least {needed} are needed")]
    Memory {
        /// What was given.
        memory: Bytes,
        /// The cluster size.
        cluster: Bytes,
        /// Clusters that the memory holds.
        held: u64,
        /// Clusters needed.
        needed: u64,
    },
    /// Rows that cannot be made or stored.
    #[error("rows of {width_bytes} bytes are not possible here: {why}")]
    Width {
        /// What was asked for, bytes.
        width_bytes: u32,
        /// Which rule it breaks.
        why: String,
    },
    /// Some other setting out of its range.
    #[error("{what}")]
    Setting {
        /// Setting, value and rule.
        what: String,
    },
    /// The kernel refused something on the place of the temporary file.
    #[error("cannot {action} '{}': {source}", path.display())]
    Place {
        /// What was tried, an infinitive.
        action: &'static str,
        /// The directory.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// There is not enough room.
    #[error("the temporary file needs {needed}, but '{}' has {free} free", path.display())]
    TooFewFree {
        /// The directory.
        path: PathBuf,
        /// What it needs.
        needed: Bytes,
        /// What there is.
        free: Bytes,
    },
    /// A request failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What came out is not what went in.
    #[error("the output is wrong: {what}")]
    Wrong {
        /// What differs.
        what: String,
    },
    /// The user stopped it.
    #[error("stopped")]
    Interrupted,
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Cluster { hint, .. } => hint.clone(),
            Self::Memory { cluster, needed, .. } => {
                let least = Bytes(cluster.0 * needed);
                format!("give at least {least} of memory, or smaller clusters")
            }
            Self::Width { .. } => {
                "rows are at least 16 bytes wide and at most a cluster; see --width".to_owned()
            }
            Self::Setting { .. } => "change the setting as the message says".to_owned(),
            Self::Place { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                    "give an existing directory on the disk to measure".to_owned()
                }
                std::io::ErrorKind::PermissionDenied => {
                    "give a directory that you may write to".to_owned()
                }
                _ => "give a directory on another disk".to_owned(),
            },
            Self::TooFewFree { .. } | Self::Io(io::Error::NoSpace { .. }) => {
                "free some space, take fewer rows, or a directory on another disk".to_owned()
            }
            Self::Io(error) => return error.hint(),
            Self::Wrong { .. } => {
                "run it again on another disk or with --buffered: memory, disk or wearmark is at \
                 fault"
                    .to_owned()
            }
            Self::Interrupted => "nothing was kept; run it again".to_owned(),
        })
    }
}

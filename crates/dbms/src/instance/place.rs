//! The directories of an instance: made, marked, locked and removed.
//!
//! Every place is a directory that we made or that was empty. It gets a marker file and one
//! subdirectory per role, so that a place may be a mount point (whose root holds `lost+found`
//! only). Removing takes the roles and the markers, and the directories that we made; nothing else.
//! The marker of the data directory says what the instance is; a lock on the directory keeps two
//! programs from working with it.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::account::Account;
use super::{Places, Settings};
use crate::{Error, System};

/// The marker of the data directory.
const MARKER: &str = "wearmark-instance.json";
/// The marker of the other places.
const SIDE_MARKER: &str = "wearmark-place.json";
/// What a fresh file system holds.
const LOST_AND_FOUND: &str = "lost+found";

/// What the marker says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Marker {
    pub(super) schema: u32,
    pub(super) system: System,
    /// Version of the server that created it.
    pub(super) version: String,
    pub(super) places: Places,
    pub(super) settings: Settings,
    /// Directories that did not exist before, outermost first.
    pub(super) made: Vec<PathBuf>,
    /// False until the server's own files are complete.
    pub(super) complete: bool,
}

/// Where the server's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The data directory itself: `PGDATA`, `datadir`.
    pub data: PathBuf,
    /// The log files.
    pub log: PathBuf,
    /// Temporary files that outgrow memory.
    pub temp: PathBuf,
    /// Undo tablespaces; the data directory where they have no place of their own.
    pub undo: PathBuf,
    /// What the server writes about itself.
    pub messages: PathBuf,
}

impl Files {
    pub(super) fn of(system: System, places: &Places) -> Self {
        let data = places.data.join("data");
        let inside = |place: &Option<PathBuf>, role: &str, otherwise: PathBuf| match place {
            Some(place) => place.join(role),
            None => otherwise,
        };
        let (log, temp) = match system {
            System::Postgresql => (data.join("pg_wal"), data.join("base/pgsql_tmp")),
            System::Mariadb => (data.clone(), places.data.join("temp")),
        };
        Self {
            log: inside(&places.log, "log", log),
            temp: inside(&places.temp, "temp", temp),
            undo: inside(&places.undo, "undo", data.clone()),
            messages: places.data.join("server.log"),
            data,
        }
    }
}

/// Every place once, the data directory first.
fn roots(places: &Places) -> Vec<&Path> {
    let mut roots = vec![places.data.as_path()];
    for place in [&places.log, &places.temp, &places.undo].into_iter().flatten() {
        if !roots.contains(&place.as_path()) {
            roots.push(place);
        }
    }
    roots
}

/// Names of a directory's entries that are no fresh file system's.
fn entries(path: &Path) -> Result<Vec<String>, Error> {
    let fail = |source| Error::io(path, "reading the directory", source);
    let names = fs::read_dir(path).map_err(fail)?.map(|entry| {
        entry.map(|entry| entry.file_name().to_string_lossy().into_owned()).map_err(fail)
    });
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    Ok(names.into_iter().filter(|name| name != LOST_AND_FOUND).collect())
}

/// Makes or takes over the directories of a new instance and marks them. Nothing is left of it
/// where it fails.
pub(super) fn make(marker: &mut Marker, account: Option<&Account>) -> Result<File, Error> {
    let places = marker.places.clone();
    for root in roots(&places) {
        if root.exists() && !entries(root)?.is_empty() {
            return Err(Error::NotEmpty { path: root.to_owned() });
        }
        if let Some(account) = account {
            account.must_reach(root)?;
        }
    }
    let made = make_roots(marker, &places, account);
    if made.is_err() {
        remove(marker);
    }
    made
}

fn make_roots(
    marker: &mut Marker,
    places: &Places,
    account: Option<&Account>,
) -> Result<File, Error> {
    for root in roots(places) {
        let mut missing: Vec<PathBuf> =
            root.ancestors().take_while(|path| !path.exists()).map(Path::to_owned).collect();
        missing.reverse();
        for path in missing {
            let mut builder = DirBuilder::new();
            builder.mode(0o755).create(&path).map_err(|e| Error::io(&path, "creating", e))?;
            // Whatever the umask is: the server's user must come through.
            let open = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&path, open).map_err(|e| Error::io(&path, "opening", e))?;
            marker.made.push(path);
        }
    }
    write(marker)?;
    let lock = lock(&places.data)?;
    let side = format!("{{\"instance\": {:?}}}\n", places.data.display().to_string());
    for root in roots(places).into_iter().skip(1) {
        let path = root.join(SIDE_MARKER);
        fs::write(&path, &side).map_err(|source| Error::io(&path, "writing", source))?;
    }
    for role in role_directories(places) {
        directory_for(&role, account)?;
    }
    Ok(lock)
}

/// The server's own directories that we make for it.
fn role_directories(places: &Places) -> Vec<PathBuf> {
    let side = [(&places.log, "log"), (&places.temp, "temp"), (&places.undo, "undo")];
    let mut roles: Vec<PathBuf> =
        side.iter().filter_map(|(place, role)| Some(place.as_ref()?.join(role))).collect();
    roles.extend(["data", "run", "temp"].map(|role| places.data.join(role)));
    roles.sort();
    roles.dedup();
    roles
}

/// Makes a directory that only the server's user (and root) can use.
pub(super) fn directory_for(path: &Path, account: Option<&Account>) -> Result<(), Error> {
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .map_err(|source| Error::io(path, "creating", source))?;
    account.map_or(Ok(()), |account| account.own(path))
}

/// Writes the marker, whole or not at all.
pub(super) fn write(marker: &Marker) -> Result<(), Error> {
    let path = marker.places.data.join(MARKER);
    let text = serde_json::to_string_pretty(marker).expect("a marker has no map keys to refuse");
    let new = path.with_extension("new");
    fs::write(&new, text).map_err(|source| Error::io(&new, "writing", source))?;
    fs::rename(&new, &path).map_err(|source| Error::io(&path, "writing", source))
}

/// Reads the marker of an instance.
pub(super) fn read(data: &Path) -> Result<Marker, Error> {
    let text = fs::read_to_string(data.join(MARKER))
        .map_err(|_| Error::NotOurs { path: data.to_owned() })?;
    serde_json::from_str(&text).map_err(|_| Error::NotOurs { path: data.to_owned() })
}

/// Takes the lock of an instance, which is on its directory; held until the file is closed.
pub(super) fn lock(data: &Path) -> Result<File, Error> {
    let file = File::open(data).map_err(|_| Error::NotOurs { path: data.to_owned() })?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| Error::InUse {
        path: data.to_owned(),
        by: "another wearmark holds it".to_owned(),
    })?;
    Ok(file)
}

/// Removes what [`make`] and the server made. What cannot be removed stays, and is the result.
pub(super) fn remove(marker: &Marker) -> Vec<(PathBuf, std::io::Error)> {
    let mut left = Vec::new();
    let places = &marker.places;
    let mut note = |path: PathBuf, result: std::io::Result<()>| match result {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => left.push((path, error)),
        _ => {}
    };
    for role in role_directories(places) {
        let removed = fs::remove_dir_all(&role);
        note(role, removed);
    }
    for name in ["server.log", "wearmark.cnf", "start.sql", "wearmark-instance.new"] {
        let path = places.data.join(name);
        let removed = fs::remove_file(&path);
        note(path, removed);
    }
    for root in roots(places).into_iter().rev() {
        let name = if root == places.data { MARKER } else { SIDE_MARKER };
        let removed = fs::remove_file(root.join(name));
        note(root.join(name), removed);
    }
    for path in marker.made.iter().rev() {
        // Not empty: somebody else has put something there since.
        let _ = fs::remove_dir(path);
    }
    left
}

//! The ordinary user that a server runs as.
//!
//! Both servers refuse to run as root, and rightly. Where wearmark is root it picks the server's
//! own user (`postgres`, `mysql`) or else `nobody` from `/etc/passwd`; where it is not, the server
//! runs as whoever called.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{Error, System};

/// A user of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// The user for a server's processes; `None` where they may run as the caller.
    pub(crate) fn for_server(system: System) -> Result<Option<Self>, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let path = Path::new("/etc/passwd");
        let users = std::fs::read_to_string(path)
            .map_err(|source| Error::io(path, "looking for an ordinary user in", source))?;
        let own = match system {
            System::Postgresql => "postgres",
            System::Mariadb => "mysql",
        };
        let found = [own, "nobody"].iter().find_map(|name| in_passwd(&users, name));
        found.map(Some).ok_or_else(|| Error::NotReachable {
            directory: path.to_owned(),
            user: "nobody".to_owned(),
        })
    }

    /// Fails with the first directory above `path` (or `path` itself) that the user cannot enter.
    pub(crate) fn must_reach(&self, path: &Path) -> Result<(), Error> {
        let mut above: Vec<PathBuf> = path.ancestors().map(Path::to_owned).collect();
        above.reverse();
        for directory in above {
            let Ok(metadata) = std::fs::metadata(&directory) else { continue };
            if metadata.is_dir() && !self.may_enter(&metadata) {
                return Err(Error::NotReachable { directory, user: self.name.clone() });
            }
        }
        Ok(())
    }

    fn may_enter(&self, metadata: &Metadata) -> bool {
        let bit = if metadata.uid() == self.uid {
            0o100
        } else if metadata.gid() == self.gid {
            0o010
        } else {
            0o001
        };
        metadata.mode() & bit != 0
    }

    /// Gives a file or directory to the user.
    pub(crate) fn own(&self, path: &Path) -> Result<(), Error> {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
            .map_err(|source| Error::io(path, "changing the owner of", source))
    }
}

/// The line of passwd(5) for `name`.
fn in_passwd(text: &str, name: &str) -> Option<Account> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Account { name: name.to_owned(), uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        let text = "root:x:0:0::/root:/bin/sh\nmy:x:1:1::/:\nmysql:x:103:112:A,,:/x:/bin/false\n";
        let found = in_passwd(text, "mysql").unwrap();
        assert_eq!((found.uid, found.gid), (103, 112));
        assert_eq!(in_passwd(text, "mys"), None);
        assert_eq!(in_passwd("bad:x:y:z", "bad"), None);
    }

    #[test]
    fn the_first_directory_that_is_closed_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let closed = directory.path().join("closed");
        std::fs::create_dir_all(closed.join("inside")).unwrap();
        for (path, mode) in [(directory.path(), 0o755), (&closed, 0o700)] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let stranger = Account { name: "stranger".to_owned(), uid: 64_999, gid: 64_999 };
        let error = stranger.must_reach(&closed.join("inside")).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("user 'stranger' cannot enter '{}'", closed.display())
        );
    }
}

//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Writes a file through `fill`: it is there whole, or as it was before.
pub(super) fn write(path: &Path, fill: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let mut partial = Partial::create(path)?;
    match fill(&mut partial.file) {
        Ok(()) => partial.commit(),
        Err(error) => {
            partial.discard();
            Err(error)
        }
    }
}

/// A file under construction: `.NAME.partial` in the same directory, which gets its name when it is
/// complete and synced, so that a file called by the name is always complete, whatever is killed
/// when. It is locked while it is written; what a killed writer left is overwritten.
#[derive(Debug)]
pub(super) struct Partial {
    file: File,
    under: PathBuf,
    path: PathBuf,
}

impl Partial {
    /// Makes the partial file, empty.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let partial = partial_name(path)?;
        let at = Error::io(&partial);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&partial)
            .map_err(&at)?;
        let busy = "another process is writing this file";
        file.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => at(io::Error::new(io::ErrorKind::WouldBlock, busy)),
            fs::TryLockError::Error(error) => at(error),
        })?;
        file.set_len(0).map_err(&at)?;
        drop(at);
        Ok(Self { file, under: partial, path: path.to_owned() })
    }

    /// The file.
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Syncs the file and gives it its name; where that fails, removes it.
    pub(super) fn commit(self) -> Result<()> {
        let Self { file, under, path } = &self;
        let named = file
            .sync_all()
            .map_err(Error::io(under))
            .and_then(|()| fs::rename(under, path).map_err(Error::io(path)));
        if let Err(error) = named {
            self.discard();
            return Err(error);
        }
        // The rename lasts once the directory is on disk too.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = parent.unwrap_or(Path::new("."));
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(Error::io(directory))
    }

    /// Removes the file. That it failed is nothing to report: the first error is, and a partial
    /// file that stays behind is harmless.
    pub(super) fn discard(self) {
        let _ = fs::remove_file(&self.under);
    }
}

fn partial_name(path: &Path) -> Result<PathBuf> {
    let Some(name) = path.file_name() else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "this names no file");
        return Err(Error::Io { path: path.to_owned(), source });
    };
    let mut partial = std::ffi::OsString::from(".");
    partial.push(name);
    partial.push(".partial");
    Ok(path.with_file_name(partial))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn in_a_directory(run: impl FnOnce(&Path)) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        run(&directory.path().join("file"));
    }

    fn entries(path: &Path) -> usize {
        fs::read_dir(path.parent().expect("a directory")).expect("readable").count()
    }

    #[test]
    fn a_failure_leaves_the_old_file_and_nothing_else() {
        in_a_directory(|path| {
            fs::write(path, "old").expect("written");
            let failed = write(path, |file| {
                file.write_all(b"half").map_err(Error::io(path))?;
                Err(Error::damaged(path, 0, "made up"))
            });
            assert!(matches!(failed, Err(Error::Damaged { .. })));
            assert_eq!((fs::read(path).expect("there"), entries(path)), (b"old".to_vec(), 1));
        });
    }

    #[test]
    fn what_a_killed_writer_left_is_overwritten() {
        in_a_directory(|path| {
            let partial = partial_name(path).expect("a name");
            fs::write(&partial, "left over and longer").expect("written");
            write(path, |file| file.write_all(b"new").map_err(Error::io(path))).expect("written");
            assert_eq!((fs::read(path).expect("there"), entries(path)), (b"new".to_vec(), 1));
        });
    }

    #[test]
    fn two_writers_of_one_file_do_not_mix() {
        in_a_directory(|path| {
            write(path, |_| {
                let second = write(path, |_| Ok(()));
                let busy = "another process is writing this file";
                assert!(second.expect_err("locked").to_string().ends_with(busy));
                Ok(())
            })
            .expect("written");
        });
    }
}

//! Changes of names that no sync has made durable yet, and how to take them back.
//!
//! The model is an ordered journal, as ext4 has: names change in order, and syncing a file or a
//! directory makes durable every change up to the last one that concerned it. A removed file waits
//! in a directory of ours until its removal is durable.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::rc::Rc;

use rustix::fs::{AtFlags, RenameFlags, renameat, renameat_with, unlinkat};
use rustix::io::{Errno, Result};

/// A name in a directory.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) directory: Rc<File>,
    pub(crate) name: CString,
}

impl Place {
    pub(crate) fn new(directory: &Rc<File>, name: &CStr) -> Self {
        Self { directory: Rc::clone(directory), name: name.to_owned() }
    }
}

#[derive(Debug)]
enum Change {
    /// A name is new: a file, a directory, a link.
    Made(Place),
    /// A name is gone; what it named waits under this one.
    Removed(Place, CString),
    /// What had the first name has the second; what had that, if anything, waits under the third.
    /// One change: a program that replaces a file finds the old one or the new one, never none.
    Moved(Place, Place, Option<CString>),
}

/// The journal of names of one place.
#[derive(Debug)]
pub(crate) struct Names {
    /// Where removed files wait; without it every change is durable at once.
    waiting: Option<File>,
    /// Changes that are not durable, oldest first.
    changes: VecDeque<Change>,
    /// Number of the first of them.
    first: u64,
    /// Number for the next waiting file.
    next: u64,
}

impl Names {
    pub(crate) fn new(waiting: Option<File>) -> Self {
        Self { waiting, changes: VecDeque::new(), first: 1, next: 0 }
    }

    /// Number of the newest change; 0 where there was none.
    fn newest(&self) -> u64 {
        self.first + self.changes.len() as u64 - 1
    }

    fn push(&mut self, change: Change) -> u64 {
        if self.waiting.is_none() {
            return 0;
        }
        self.changes.push_back(change);
        self.newest()
    }

    /// Records a new name; tells the change's number.
    pub(crate) fn made(&mut self, place: Place) -> u64 {
        self.push(Change::Made(place))
    }

    /// Removes a name.
    pub(crate) fn remove(&mut self, place: Place) -> Result<u64> {
        let Some(waiting) = &self.waiting else {
            remove_at(&place.directory, &place.name)?;
            return Ok(0);
        };
        let name = CString::new(self.next.to_string()).expect("digits hold no zero byte");
        renameat(&*place.directory, &place.name, waiting, &name)?;
        self.next += 1;
        Ok(self.push(Change::Removed(place, name)))
    }

    /// Moves a name; what had the new one is removed.
    pub(crate) fn rename(&mut self, from: Place, to: Place, replaces: bool) -> Result<u64> {
        let Some(waiting) = self.waiting.as_ref().filter(|_| replaces) else {
            renameat(&*from.directory, &from.name, &*to.directory, &to.name)?;
            return Ok(self.push(Change::Moved(from, to, None)));
        };
        // At no moment is there nothing under the new name, even if we are killed here.
        let exchange = RenameFlags::EXCHANGE;
        renameat_with(&*from.directory, &from.name, &*to.directory, &to.name, exchange)?;
        let name = CString::new(self.next.to_string()).expect("digits hold no zero byte");
        renameat(&*from.directory, &from.name, waiting, &name)?;
        self.next += 1;
        Ok(self.push(Change::Moved(from, to, Some(name))))
    }

    /// Makes every change up to `number` durable.
    pub(crate) fn sync(&mut self, number: u64) {
        while self.first <= number
            && let Some(change) = self.changes.pop_front()
        {
            self.first += 1;
            if let Change::Removed(_, name) | Change::Moved(_, _, Some(name)) = change {
                self.discard(&name);
            }
        }
    }

    fn discard(&self, name: &CStr) {
        if let Some(waiting) = &self.waiting {
            _ = remove_at(waiting, name);
        }
    }

    /// Takes back every change after the first `keep` ones that are not durable, newest first;
    /// tells how many.
    pub(crate) fn take_back(&mut self, keep: usize) -> Result<usize> {
        let mut count = 0;
        while self.changes.len() > keep
            && let (Some(waiting), Some(change)) = (&self.waiting, self.changes.pop_back())
        {
            count += 1;
            match change {
                Change::Made(place) => {
                    remove_at(&place.directory, &place.name)?;
                }
                Change::Removed(place, name) => {
                    renameat(waiting, &name, &*place.directory, &place.name)?;
                }
                Change::Moved(from, to, replaced) => {
                    renameat(&*to.directory, &to.name, &*from.directory, &from.name)?;
                    if let Some(name) = replaced {
                        renameat(waiting, &name, &*to.directory, &to.name)?;
                    }
                }
            }
        }
        self.sync(self.newest());
        Ok(count)
    }

    /// Changes that are not durable.
    pub(crate) fn pending(&self) -> usize {
        self.changes.len()
    }
}

/// Removes a file or an empty directory.
fn remove_at(directory: &File, name: &CStr) -> Result<()> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::ISDIR) => unlinkat(directory, name, AtFlags::REMOVEDIR),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn directory(path: &Path) -> Rc<File> {
        Rc::new(File::open(path).unwrap())
    }

    fn listing(path: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(path).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| {
                let entry = entry.unwrap();
                let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                format!("{}={text}", entry.file_name().to_string_lossy())
            })
            .collect();
        names.sort();
        names
    }

    /// Replacing, removing and making names, with a sync in the middle.
    #[test]
    fn what_was_not_synced_is_taken_back() {
        let root = tempfile::tempdir().unwrap();
        let (live, waiting) = (root.path().join("live"), root.path().join("waiting"));
        std::fs::create_dir(&live).unwrap();
        std::fs::create_dir(&waiting).unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(live.join(name), name).unwrap();
        }
        let at = directory(&live);
        let place = |name: &str| Place::new(&at, &CString::new(name).unwrap());
        let mut names = Names::new(Some(File::open(&waiting).unwrap()));
        let durable = names.rename(place("a"), place("b"), true).unwrap();
        names.remove(place("c")).unwrap();
        std::fs::write(live.join("c"), "new").unwrap();
        names.made(place("c"));
        names.rename(place("c"), place("d"), false).unwrap();
        names.sync(durable);
        assert_eq!(listing(&live), ["b=a", "d=new"]);
        assert_eq!(names.pending(), 3);
        assert_eq!(names.take_back(0), Ok(3));
        assert_eq!(listing(&live), ["b=a", "c=c"]);
        assert!(listing(&waiting).is_empty());
    }
}

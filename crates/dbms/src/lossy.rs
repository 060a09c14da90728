//! A place that forgets, at a power cut, what was written and never synced.
//!
//! After `kill -9` the kernel still holds everything that a server wrote, so a server that never
//! syncs loses nothing by it. To catch it, the loss must be made: while the server runs, its
//! directories are served to it by [`emulate::Lossy`], in a mount namespace that only the server's
//! processes see. When the power is cut, they are killed and what was not synced is taken back.
//!
//! Tested with a program that writes and syncs, and with real servers in `tests/it/lossy.rs`. Why
//! this and not another way: `docs/journal/2026-11-21-torture.md`.

use std::path::Path;

pub use emulate::{Counts, Fate, Lost};
pub(crate) use emulate::{Lossy, mount_all};

use crate::Error;

/// Begins to serve a directory; nobody sees it until [`mount_all`].
pub(crate) fn serve(directory: &Path, lies: bool) -> Result<Lossy, Error> {
    Lossy::serve(directory, lies).map_err(|source| Error::io(directory, "serving", source))
}

/// Ends the serving, after the server's processes have ended; with a fate, takes back what was not
/// synced.
pub(crate) fn end(lossy: Lossy, fate: Option<Fate>) -> Result<(Lost, Counts), Error> {
    let directory = lossy.directory().to_owned();
    lossy.end(fate).map_err(|source| Error::io(&directory, "serving", source))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::instance::process::{Launch, Process};

    /// Runs a shell script in a forgetful directory that holds `old` and `other`, cuts the power
    /// and tells what is there.
    fn after(script: &str, lies: bool, fate: Option<Fate>) -> Option<(Vec<String>, Lost)> {
        if let Some(why) = Lossy::missing() {
            println!("skipped: {why}");
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("place");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("old"), "old").unwrap();
        std::fs::write(directory.join("other"), "other").unwrap();
        let lossy = serve(&directory, lies).unwrap();
        let points = vec![lossy.mount_point()];
        let output = root.path().join("output");
        let process = Process::start(Launch {
            program: "/bin/sh".into(),
            arguments: vec!["-euc".to_owned(), script.to_owned()],
            directory: directory.clone(),
            account: None,
            output: output.clone(),
            death_signal: rustix::process::Signal::KILL,
            input: None,
            before: Some(Box::new(move || mount_all(&points))),
        });
        let ended = process.unwrap().ended(Duration::from_mins(1)).unwrap();
        assert!(ended.success, "{}", std::fs::read_to_string(&output).unwrap());
        let (lost, _) = end(lossy, fate).unwrap();
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap_or_else(|_| "directory".to_owned());
            names.push(format!("{}={text}", path.file_name().unwrap().display()));
        }
        names.sort();
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2, "something waits still");
        Some((names, lost))
    }

    fn check(script: &str, expected: &[&str]) {
        if let Some((names, _)) = after(script, false, Some(Fate::All)) {
            assert_eq!(names, expected, "{script}");
        }
    }

    #[test]
    fn what_was_not_synced_is_gone() {
        check("echo -n x >> old; echo -n y > new; mkdir d", &["old=old", "other=other"]);
        check("echo -n x >> old; sync old; echo -n y >> old", &["old=oldx", "other=other"]);
        check("echo -n x > new; sync new", &["new=x", "old=old", "other=other"]);
        check("truncate -s 1 old; sync old; truncate -s 9 old", &["old=o", "other=other"]);
        check("echo -n 123 > old; rm other", &["old=old", "other=other"]);
    }

    #[test]
    fn names_become_durable_in_order() {
        let kept = ["new=x", "other=other"];
        check("echo -n x > new; rm old; sync new other .; rm other", &kept);
        // Syncing the file does not say that its new name is durable; syncing its directory does.
        check("echo -n x > t; sync t; mv t old; sync .", &["old=x", "other=other"]);
        check("echo -n x > t; sync t; mv t old; rm other", &["old=old", "other=other", "t=x"]);
        check("mkdir d; mv old d/o; rm d/o; rmdir d", &["old=old", "other=other"]);
        check("ln old l; rm old; sync .", &["l=old", "other=other"]);
        check(
            "ln -s old s; sync .; readlink s; ls -la; stat -f .",
            &["old=old", "other=other", "s=old"],
        );
    }

    #[test]
    fn a_write_with_o_dsync_is_durable() {
        let script = "dd if=/dev/zero of=other bs=2 count=1 conv=notrunc oflag=dsync";
        check(script, &["old=old", "other=\0\0her"]);
        let script = "dd if=/dev/zero of=other bs=2 count=1 conv=notrunc";
        check(script, &["old=old", "other=other"]);
        let script = "dd if=/dev/zero of=new bs=4096 count=2 oflag=direct; sync -d new; stat new";
        let zeros = format!("new={}", "\0".repeat(8192));
        check(script, &[&zeros, "old=old", "other=other"]);
    }

    #[test]
    fn a_place_that_lies_keeps_nothing_and_one_that_stops_in_order_keeps_all() {
        let script = "echo -n x >> old; sync old; rm other; sync .";
        let Some((lied, lost)) = after(script, true, Some(Fate::All)) else { return };
        assert_eq!(lied, ["old=old", "other=other"]);
        assert_eq!(lost, Lost { bytes: 1, files: 1, names: 1 });
        let (kept, lost) = after("echo -n x >> old", false, None).unwrap();
        assert_eq!(
            (kept, lost),
            (vec!["old=oldx".to_owned(), "other=other".to_owned()], Lost::default())
        );
    }

    /// By chance some sectors survive and some do not, the same ones for the same seed.
    #[test]
    fn by_chance_a_write_is_torn() {
        let script = "head -c 65536 /dev/zero > old; sync old; \
                      yes | dd of=other bs=65536 count=1 iflag=fullblock; \
                      yes | dd of=old bs=65536 count=1 conv=notrunc iflag=fullblock";
        let fate = |seed| Some(Fate::Some { seed });
        let Some((first, lost)) = after(script, false, fate(1)) else { return };
        assert!(first[0].contains('\0') && first[0].contains('y'), "{lost:?}");
        assert!(lost.bytes > 0 && lost.bytes < 2 * 65536, "{lost:?}");
        // Not assert_eq: it would print both files.
        assert!(after(script, false, fate(1)).unwrap() == (first.clone(), lost), "the same seed");
        assert!(after(script, false, fate(2)).unwrap().0 != first, "another seed");
    }
}

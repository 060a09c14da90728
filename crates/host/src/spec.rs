//! `stack.toml`: the sections `[page_cache]`, `[file_system]` and `[scheduler]`.

use serde::Deserialize;
use units::{Bytes, Nanos};

use crate::Error;
use crate::file_system::{self, BLOCK_BYTES, Journal, Kind, Sync};
use crate::page_cache::replacement::Policy;
use crate::page_cache::{self, PAGE_BYTES};
use crate::scheduler;

/// A host stack as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The page cache; without one all I/O is direct.
    pub page_cache: Option<page_cache::Settings>,
    /// The file system.
    pub file_system: file_system::Settings,
    /// What a flush of the trace is.
    pub sync: Sync,
    /// The block layer; without one the device gets requests as they are due.
    pub scheduler: Option<scheduler::Settings>,
    /// What the files are before the first request.
    pub files: Files,
}

/// What the files of a trace are before its first request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// As long as the trace uses them, with content.
    #[default]
    Written,
    /// As long, but only allocated (fallocate).
    Allocated,
    /// Absent: the first write makes them, and what lies behind their end grows them.
    Absent,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    page_cache: Option<PageCacheSpec>,
    file_system: FileSystemSpec,
    #[serde(default)]
    scheduler: Option<scheduler::Settings>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageCacheSpec {
    memory: Bytes,
    #[serde(default)]
    policy: Policy,
    read_ahead: Option<Bytes>,
    dirty_background: Option<f64>,
    dirty_hard: Option<f64>,
    wake: Option<Nanos>,
    expire: Option<Nanos>,
    write_back_mb_per_s: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSystemSpec {
    kind: Kind,
    journal: Option<Journal>,
    journal_size: Option<Bytes>,
    request: Option<Bytes>,
    tick: Option<Nanos>,
    #[serde(default)]
    sync: Sync,
    #[serde(default)]
    files: Files,
}

/// A field and what is wrong with it.
type Flaw = (&'static str, &'static str);

impl Spec {
    /// Reads a stack; `path` names it in errors.
    pub fn from_toml(text: &str, path: &str) -> Result<Self, Error> {
        let document: Document = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..at].split(|byte| *byte == b'\n').count();
            let cause = events::one_line(error.message());
            Error::Syntax { path: path.to_owned(), line, cause }
        })?;
        let made = document.page_cache.map(PageCacheSpec::settings).transpose();
        let made = made.and_then(|page_cache| {
            let FileSystemSpec { sync, files, .. } = document.file_system;
            let file_system = document.file_system.settings()?;
            let scheduler = document.scheduler;
            scheduler.as_ref().map_or(Ok(()), scheduler::Settings::check)?;
            Ok(Self { page_cache, file_system, sync, scheduler, files })
        });
        made.map_err(|(field, cause)| Error::Impossible {
            path: path.to_owned(),
            line: line_of(text, field),
            field: field.to_owned(),
            cause: cause.to_owned(),
        })
    }
}

impl PageCacheSpec {
    fn settings(self) -> Result<page_cache::Settings, Flaw> {
        let usual = page_cache::Settings::default();
        if self.memory.0 < PAGE_BYTES {
            return Err(("page_cache.memory", "a cache holds at least one page of 4 KiB"));
        }
        if self.memory.0 > 1 << 50 {
            return Err(("page_cache.memory", "a cache of more than 1 PiB"));
        }
        let read_ahead = self.read_ahead.map_or(usual.read_ahead_pages * PAGE_BYTES, |size| size.0);
        if !read_ahead.is_multiple_of(PAGE_BYTES) || read_ahead > 1 << 30 {
            let cause = "read-ahead is whole pages of 4 KiB, at most 1 GiB";
            return Err(("page_cache.read_ahead", cause));
        }
        let dirty_background = self.dirty_background.unwrap_or(usual.dirty_background);
        let dirty_hard = self.dirty_hard.unwrap_or(usual.dirty_hard);
        if !(0.0..=1.0).contains(&dirty_hard) {
            return Err(("page_cache.dirty_hard", "a share is from 0 to 1"));
        }
        if !(0.0..=dirty_hard).contains(&dirty_background) {
            return Err(("page_cache.dirty_background", "it is from 0 to dirty_hard"));
        }
        let (wake, expire) = (self.wake.map(|at| at.0), self.expire.map(|at| at.0));
        if wake.is_some_and(|wake| wake < 1_000_000) {
            return Err(("page_cache.wake", "the flusher wakes at most every millisecond"));
        }
        let rate = self.write_back_mb_per_s.map(|rate| rate * 1e6);
        if rate.is_some_and(|rate| !(1e3..=1e15).contains(&rate)) {
            return Err(("page_cache.write_back_mb_per_s", "a rate is above 0.001"));
        }
        Ok(page_cache::Settings {
            memory_bytes: self.memory.0,
            policy: self.policy,
            read_ahead_pages: read_ahead / PAGE_BYTES,
            dirty_background,
            dirty_hard,
            wake_ns: wake.unwrap_or(usual.wake_ns),
            expire_ns: expire.unwrap_or(usual.expire_ns),
            write_back_bytes_per_s: rate.map_or(usual.write_back_bytes_per_s, |rate| rate as u64),
        })
    }
}

impl FileSystemSpec {
    fn settings(self) -> Result<file_system::Settings, Flaw> {
        let usual = file_system::Settings::new(self.kind);
        let journal = self.journal.unwrap_or(usual.journal);
        let allowed = match self.kind {
            Kind::Ext2 => journal == Journal::None,
            Kind::Ext3 => matches!(journal, Journal::Ordered | Journal::Data),
            Kind::Ext4 => true,
            Kind::Xfs => self.journal.is_none(),
        };
        if !allowed {
            let cause = "ext2 has none, ext3 'ordered' or 'data', ext4 'none', 'ordered', 'data' \
                         or 'fast_commit'; the log of xfs is not chosen";
            return Err(("file_system.journal", cause));
        }
        let journal_bytes = self.journal_size.map_or(usual.journal_bytes, |size| size.0);
        if !journal_bytes.is_multiple_of(BLOCK_BYTES)
            || !(1 << 20..=64 << 20).contains(&journal_bytes)
        {
            let cause = "a journal is whole blocks of 4 KiB, 1 MiB to 64 MiB";
            return Err(("file_system.journal_size", cause));
        }
        let request_bytes = self.request.map_or(usual.request_bytes, |size| size.0);
        if !request_bytes.is_multiple_of(BLOCK_BYTES)
            || !(BLOCK_BYTES..=1 << 30).contains(&request_bytes)
        {
            let cause = "the longest request is whole blocks of 4 KiB, at most 1 GiB";
            return Err(("file_system.request", cause));
        }
        let tick_ns = self.tick.map_or(usual.tick_ns, |tick| tick.0);
        if tick_ns == 0 {
            return Err(("file_system.tick", "a tick takes time"));
        }
        Ok(file_system::Settings {
            kind: self.kind,
            journal,
            journal_bytes,
            request_bytes,
            tick_ns,
        })
    }
}

/// The line, from 1, of `section.key`; that of the section where the key stands elsewhere.
fn line_of(text: &str, field: &str) -> usize {
    let (section, key) = field.split_once('.').expect("a field stands in a section");
    let (mut inside, mut found) = (false, 1);
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[') {
            inside = name.trim_start().starts_with(section);
            if inside {
                found = number;
            }
        } else if inside && line.split('=').next().is_some_and(|own| own.trim() == key) {
            return number;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let error = Spec::from_toml(text, "stack.toml").expect_err(text);
        assert!(error.to_string().starts_with(expected), "{error}\nwhere {expected}");
    }

    #[test]
    fn a_short_stack_has_the_defaults_of_linux() {
        let text = "[page_cache]\nmemory = \"1GiB\"\n[file_system]\nkind = \"ext4\"\n";
        let spec = Spec::from_toml(text, "stack.toml").unwrap();
        assert_eq!(spec.page_cache, Some(page_cache::Settings::default()));
        assert_eq!(spec.file_system, file_system::Settings::new(Kind::Ext4));
        assert_eq!((spec.sync, spec.files), (Sync::Fdatasync, Files::Written));
    }

    #[test]
    fn a_scheduler_has_the_defaults_of_its_kernel() {
        let text = "[file_system]\nkind = \"ext4\"\n[scheduler]\nkind = \"cfq\"\n\
                    priorities = [0, 7]\n[scheduler.cfq]\nslice_idle = \"0\"\n";
        let found = Spec::from_toml(text, "stack.toml").unwrap().scheduler.unwrap();
        let mut expected = scheduler::Settings::new(scheduler::Kind::Cfq);
        expected.priorities = vec![0, 7];
        expected.cfq.slice_idle = Nanos(0);
        assert_eq!(found, expected);
        assert_eq!((found.nr_requests(), found.plugging()), (128, scheduler::Plugging::Legacy));
    }

    #[test]
    fn mistakes_are_found_with_their_line() {
        check("", "stack.toml:1: missing field `file_system`");
        check("[file_system]\nkind = \"ntfs\"\n", "stack.toml:2: unknown variant `ntfs`");
        check("[file_system]\nkind = \"xfs\"\nspeed = 1\n", "stack.toml:3: unknown field `speed`");
        let text = "[file_system]\nkind = \"xfs\"\n\njournal = \"data\"\n";
        check(text, "stack.toml:4: file_system.journal: ext2 has none");
        let text = "[file_system]\nkind = \"ext4\"\n[page_cache]\nmemory = \"1KiB\"\n";
        check(text, "stack.toml:4: page_cache.memory: a cache holds");
        let text = "[file_system]\nkind = \"ext4\"\n[page_cache]\nmemory = \"1MiB\"\n\
                    dirty_background = 0.5\n";
        check(text, "stack.toml:5: page_cache.dirty_background: it is from");
        let text = "[scheduler]\nkind = \"noop\"\n[file_system]\nkind = \"ext4\"\n";
        check(text, "stack.toml:2: unknown variant `noop`");
        let text = "[file_system]\nkind = \"ext4\"\n[scheduler]\ndepth = 0\n";
        check(text, "stack.toml:4: scheduler.depth: a device holds");
        let text = "[file_system]\nkind = \"ext4\"\n[scheduler]\nkind = \"bfq\"\n\
                    write_back_throttling = true\n";
        check(text, "stack.toml:5: scheduler.write_back_throttling: bfq turns it off");
        let text = "[file_system]\nkind = \"ext4\"\n[scheduler]\n[scheduler.bfq]\n\
                    max_budget = 0\n";
        check(text, "stack.toml:5: scheduler.max_budget: a budget has");
        let text = "[file_system]\nkind = \"ext4\"\njournal_size = \"1000\"\n";
        check(text, "stack.toml:3: file_system.journal_size: a journal is");
    }
}

//! `stack.toml`: the sections `[page_cache]`, `[file_system]`, `[volume]` and
//! `[cache_device]`.

use serde::Deserialize;
use units::{Bytes, Nanos};

use crate::Error;
use crate::file_system::{self, BLOCK_BYTES, Journal, Kind, Sync};
use crate::page_cache::replacement::Policy;
use crate::page_cache::{self, PAGE_BYTES};
use crate::volume::cache::{CacheSettings, CacheSpec};
use crate::volume::{self, VolumeSpec};

/// A host stack as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The page cache; without one all I/O is direct.
    pub page_cache: Option<page_cache::Settings>,
    /// The file system.
    pub file_system: file_system::Settings,
    /// The volume below the file system; without one that is the device itself.
    pub volume: Option<volume::Settings>,
    /// The fast device in front of that.
    pub cache_device: Option<CacheSettings>,
    /// What a flush of the trace is.
    pub sync: Sync,
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
    volume: Option<VolumeSpec>,
    #[serde(default)]
    cache_device: Option<CacheSpec>,
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
            let volume = document.volume.map(VolumeSpec::settings).transpose();
            let volume = volume.map_err(|unfit| (unfit.field, unfit.cause))?;
            let cache_device = document.cache_device.map(CacheSpec::settings).transpose();
            let cache_device = cache_device.map_err(|unfit| (unfit.field, unfit.cause))?;
            Ok(Self { page_cache, file_system, volume, cache_device, sync, files })
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
    let (section, key) = field.rsplit_once('.').expect("a field stands in a section");
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
        assert_eq!(spec.volume, None);
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
        let text = "[file_system]\nkind = \"ext4\"\njournal_size = \"1000\"\n";
        check(text, "stack.toml:3: file_system.journal_size: a journal is");
    }

    const FILES: &str = "[file_system]\nkind = \"ext4\"\n";

    #[test]
    fn a_short_volume_has_the_defaults_of_md() {
        let text = format!("{FILES}[volume]\nlevel = \"raid5\"\nmembers = 4\n");
        let spec = Spec::from_toml(&text, "stack.toml").unwrap();
        assert_eq!(spec.volume, Some(volume::Settings::new(volume::Level::Raid5, 4)));
    }

    #[test]
    fn a_long_volume_says_everything() {
        let text = format!(
            "{FILES}[volume]\nlevel = \"raid10\"\nmembers = 6\nchunk = \"64KiB\"\n\
             layout = \"far\"\nfailed = [2]\nread_balance = \"nearest_head\"\n\
             stripe_cache = 0\nwrite_hole = \"bitmap\"\n[volume.bitmap]\nregion = \"4MiB\"\n\
             [volume.controller]\nus_per_command = 12.5\nmb_per_s = 4000\ncache = \"512MiB\"\n\
             [volume.rebuild]\nmember = 2\nmost_per_second = \"1GiB\"\n"
        );
        let found = Spec::from_toml(&text, "stack.toml").unwrap().volume.unwrap();
        let expected = volume::Settings {
            chunk_bytes: 64 << 10,
            copies: volume::Copies::Far,
            failed: vec![2],
            read_balance: volume::ReadBalance::NearestHead,
            stripe_cache: 0,
            protection: volume::Protection::Bitmap {
                region_bytes: 4 << 20,
                delay_ns: 5_000_000_000,
            },
            controller: Some(volume::Controller {
                command_ns: 12_500,
                bytes_per_s: 4e9,
                cache_bytes: 512 << 20,
                ..volume::Controller::default()
            }),
            rebuild: Some(volume::Rebuild { most_bytes_per_s: 1 << 30, ..volume::Rebuild::of(2) }),
            ..volume::Settings::new(volume::Level::Raid10, 6)
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_cache_device_has_the_defaults_of_bcache() {
        let text = format!("{FILES}[cache_device]\nsize = \"1GiB\"\n");
        let spec = Spec::from_toml(&text, "stack.toml").unwrap();
        assert_eq!(spec.cache_device, Some(CacheSettings::new(1 << 30)));
        let text = format!("{text}mode = \"write_back\"\ndirty_target = 0.8\n");
        check(&text, "stack.toml:6: cache_device.dirty_target: it is from 0");
    }

    #[test]
    fn mistakes_of_a_volume_are_found_with_their_line() {
        let raid5 = "[volume]\nlevel = \"raid5\"\nmembers = 3\n";
        let check = |text: &str, expected: &str| check(&format!("{FILES}{text}"), expected);
        check("[volume]\nlevel = \"raid7\"\n", "stack.toml:4: unknown variant `raid7`");
        let text = "[volume]\nlevel = \"raid6\"\nmembers = 3\n";
        check(text, "stack.toml:5: volume.members: raid1 and raid10");
        check(&format!("{raid5}layout = \"far\"\n"), "stack.toml:6: volume.layout: raid5 and");
        check(&format!("{raid5}failed = [0, 1]\n"), "stack.toml:6: volume.failed: more is lost");
        check(&format!("{raid5}chunk = \"1000\"\n"), "stack.toml:6: volume.chunk: a chunk is");
        let text = format!("{raid5}[volume.journal]\nmode = \"write_back\"\n");
        check(&text, "stack.toml:6: volume.write_hole: a section says more");
        let text = format!("{raid5}failed = [1]\n[volume.rebuild]\n\nmember = 0\n");
        check(&text, "stack.toml:9: volume.rebuild.member: it is one of");
        let text = format!("{raid5}[volume.controller]\nqueue = 4\nus_per_command = -1\n");
        check(&text, "stack.toml:8: volume.controller.us_per_command: from 0");
    }
}

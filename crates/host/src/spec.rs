//! `stack.toml`: the sections `[page_cache]`, `[file_system]`, `[scheduler]`, `[volume]` and
//! `[cache_device]`.

use serde::Deserialize;
use units::{Bytes, Nanos};

use crate::Error;
use crate::file_system::log_structured::{self, Cleaner, Overwrite};
use crate::file_system::{self, BLOCK_BYTES, Journal, Kind, Sync};
use crate::page_cache::replacement::Policy;
use crate::page_cache::{self, PAGE_BYTES};
use crate::scheduler;
use crate::volume::cache::{CacheSettings, CacheSpec};
use crate::volume::{self, VolumeSpec};

/// A host stack as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// What turns calls on files into requests; without it a trace holds requests already.
    pub file_layer: Option<FileLayer>,
    /// The block layer; without one the device gets requests as they are due.
    pub scheduler: Option<scheduler::Settings>,
    /// The volume below the file system; without one that is the device itself.
    pub volume: Option<volume::Settings>,
    /// The fast device in front of that: its name, and how it is used.
    pub cache_device: Option<(String, CacheSettings)>,
}

/// From calls on files to requests.
#[derive(Clone, Debug, PartialEq)]
pub struct FileLayer {
    /// The page cache; without one all I/O is direct.
    pub page_cache: Option<page_cache::Settings>,
    /// The file system.
    pub file_system: file_system::Settings,
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
    #[serde(default)]
    file_system: Option<FileSystemSpec>,
    #[serde(default)]
    scheduler: Option<scheduler::Settings>,
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
    capacity: Option<Bytes>,
    nodatacow: Option<bool>,
    segment_size: Option<Bytes>,
    flush_on_sync: Option<bool>,
    in_place: Option<Overwrite>,
    cleaner: Option<CleanerSpec>,
}

/// `[file_system.cleaner]`.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CleanerSpec {
    policy: Option<CleanerPolicy>,
    interval: Option<Nanos>,
    segments_per_clean: Option<u32>,
    urgent_interval: Option<Nanos>,
    urgent_segments_per_clean: Option<u32>,
    start_below: Option<f64>,
    stop_above: Option<f64>,
    protection_period: Option<Nanos>,
    min_reclaimable: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CleanerPolicy {
    Greedy,
    CostBenefit,
    OldestFirst,
    Off,
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
        if matches!(
            document,
            Document {
                page_cache: None,
                file_system: None,
                scheduler: None,
                volume: None,
                cache_device: None
            }
        ) {
            let cause = "no section: a stack has [file_system], [scheduler], [volume] or \
                         [cache_device]"
                .to_owned();
            return Err(Error::Syntax { path: path.to_owned(), line: 1, cause });
        }
        let made = document.settings();
        made.map_err(|(field, cause)| Error::Impossible {
            path: path.to_owned(),
            line: line_of(text, field),
            field: field.to_owned(),
            cause: cause.to_owned(),
        })
    }
}

impl Document {
    fn settings(self) -> Result<Spec, Flaw> {
        let page_cache = self.page_cache.map(PageCacheSpec::settings).transpose()?;
        if page_cache.is_some() && self.file_system.is_none() {
            return Err(("page_cache.memory", "a page cache needs a [file_system]"));
        }
        let file_layer = self.file_system.map(|spec| {
            let (sync, files) = (spec.sync, spec.files);
            let file_system = spec.settings()?;
            Ok::<_, Flaw>(FileLayer { page_cache, file_system, sync, files })
        });
        let file_layer = file_layer.transpose()?;
        self.scheduler.as_ref().map_or(Ok(()), scheduler::Settings::check)?;
        let volume = self.volume.map(VolumeSpec::settings).transpose();
        let volume = volume.map_err(|unfit| (unfit.field, unfit.cause))?;
        let cache_device = self.cache_device.map(|spec| {
            let device = spec.device.clone();
            spec.settings().map(|settings| (device, settings))
        });
        let cache_device = cache_device.transpose().map_err(|unfit| (unfit.field, unfit.cause))?;
        Ok(Spec { file_layer, scheduler: self.scheduler, volume, cache_device })
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
            Kind::Xfs | Kind::Nilfs2 | Kind::F2fs | Kind::Btrfs => self.journal.is_none(),
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
        let log = self.log()?;
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
            capacity_bytes: self.capacity(log.segment_bytes)?,
            data_cow: !self.nodatacow.unwrap_or(false),
            log,
        })
    }
}

impl FileSystemSpec {
    fn log(&self) -> Result<log_structured::Settings, Flaw> {
        let usual = file_system::Settings::new(self.kind);
        let mut log = usual.log;
        let has_log_keys = self.segment_size.is_some() || self.cleaner.is_some();
        let has_capacity = usual.is_log() || self.kind == Kind::Btrfs;
        if self.capacity.is_some() && !has_capacity {
            return Err(("file_system.capacity", "only nilfs2, f2fs and btrfs need to know it"));
        }
        if !usual.is_log() && has_log_keys {
            let is_size = self.segment_size.is_some();
            let key = if is_size { "file_system.segment_size" } else { "file_system.cleaner" };
            return Err((key, "only nilfs2 and f2fs have a log"));
        }
        if self.kind != Kind::Btrfs && self.nodatacow.is_some() {
            return Err(("file_system.nodatacow", "only btrfs copies data on write"));
        }
        if self.kind != Kind::Nilfs2 && self.flush_on_sync.is_some() {
            return Err(("file_system.flush_on_sync", "only nilfs2 leaves the choice"));
        }
        if self.kind != Kind::F2fs && self.in_place.is_some() {
            return Err(("file_system.in_place", "only f2fs chooses"));
        }
        if !usual.is_log() {
            return Ok(log);
        }
        log.segment_bytes = self.segment_size.map_or(log.segment_bytes, |size| size.0);
        if !log.segment_bytes.is_multiple_of(BLOCK_BYTES)
            || !(64 << 10..=1 << 30).contains(&log.segment_bytes)
        {
            let cause = "a segment is whole blocks of 4 KiB, 64 KiB to 1 GiB";
            return Err(("file_system.segment_size", cause));
        }
        log.flushes = self.flush_on_sync.unwrap_or(log.flushes);
        log.in_place = self.in_place.unwrap_or(log.in_place);
        log.cleaner = self.cleaner.unwrap_or_default().over(log.cleaner, self.kind)?;
        Ok(log)
    }
}

impl FileSystemSpec {
    /// Bytes of the device; 0 where it does not matter.
    fn capacity(&self, segment_bytes: u64) -> Result<u64, Flaw> {
        let usual = file_system::Settings::new(self.kind);
        if !usual.is_log() {
            let bytes = self.capacity.map_or(0, |capacity| capacity.0);
            if self.capacity.is_some() && !(256 << 20..=1 << 42).contains(&bytes) {
                return Err(("file_system.capacity", "btrfs has from 256 MiB to 4 TiB"));
            }
            return Ok(bytes);
        }
        let Some(capacity) = self.capacity else {
            let cause = "a log-structured file system needs the capacity of its device";
            return Err(("file_system.capacity", cause));
        };
        let least = 32 * segment_bytes;
        if !(least..=1 << 43).contains(&capacity.0) {
            let cause = "a log has from 32 segments to 8 TiB";
            return Err(("file_system.capacity", cause));
        }
        Ok(capacity.0)
    }
}

impl CleanerSpec {
    /// What is said here, and the rest as usual.
    fn over(self, usual: Cleaner, kind: Kind) -> Result<Cleaner, Flaw> {
        for (field, is_said) in [
            ("file_system.cleaner.urgent_interval", self.urgent_interval.is_some()),
            (
                "file_system.cleaner.urgent_segments_per_clean",
                self.urgent_segments_per_clean.is_some(),
            ),
            ("file_system.cleaner.start_below", self.start_below.is_some()),
            ("file_system.cleaner.stop_above", self.stop_above.is_some()),
            ("file_system.cleaner.protection_period", self.protection_period.is_some()),
            ("file_system.cleaner.min_reclaimable", self.min_reclaimable.is_some()),
        ] {
            if is_said && kind != Kind::Nilfs2 {
                return Err((field, "only the cleaner of nilfs2 goes by it"));
            }
        }
        let nanos = |own: Option<Nanos>, usual: u64| own.map_or(usual, |own| own.0);
        let cleaner = Cleaner {
            policy: match self.policy {
                None => usual.policy,
                Some(CleanerPolicy::Greedy) => Some(log_structured::Policy::Greedy),
                Some(CleanerPolicy::CostBenefit) => Some(log_structured::Policy::CostBenefit),
                Some(CleanerPolicy::OldestFirst) => Some(log_structured::Policy::OldestFirst),
                Some(CleanerPolicy::Off) => None,
            },
            interval_ns: nanos(self.interval, usual.interval_ns),
            segments_per_clean: self.segments_per_clean.unwrap_or(usual.segments_per_clean),
            urgent_interval_ns: nanos(self.urgent_interval, usual.urgent_interval_ns),
            urgent_segments: self.urgent_segments_per_clean.unwrap_or(usual.urgent_segments),
            start_below: self.start_below.unwrap_or(usual.start_below),
            stop_above: self.stop_above.unwrap_or(usual.stop_above),
            protection_ns: nanos(self.protection_period, usual.protection_ns),
            min_reclaimable: self.min_reclaimable.unwrap_or(usual.min_reclaimable),
        };
        let share = 0.0..=1.0;
        for (field, interval_ns) in [
            ("file_system.cleaner.interval", cleaner.interval_ns),
            ("file_system.cleaner.urgent_interval", cleaner.urgent_interval_ns),
        ] {
            if !(1_000_000..=1 << 60).contains(&interval_ns) {
                return Err((field, "a cleaner works at most every millisecond"));
            }
        }
        for (field, segments) in [
            ("file_system.cleaner.segments_per_clean", cleaner.segments_per_clean),
            ("file_system.cleaner.urgent_segments_per_clean", cleaner.urgent_segments),
        ] {
            if !(1..=32).contains(&segments) {
                return Err((field, "1 to 32 segments are cleaned at once"));
            }
        }
        if !share.contains(&cleaner.stop_above) {
            return Err(("file_system.cleaner.stop_above", "a share is from 0 to 1"));
        }
        if !(0.0..=cleaner.stop_above).contains(&cleaner.start_below) {
            return Err(("file_system.cleaner.start_below", "it is from 0 to stop_above"));
        }
        if !share.contains(&cleaner.min_reclaimable) {
            return Err(("file_system.cleaner.min_reclaimable", "a share is from 0 to 1"));
        }
        Ok(cleaner)
    }
}

/// The line, from 1, of `section.key`, or of the key in a section below it; that of the section
/// where the key stands nowhere.
fn line_of(text: &str, field: &str) -> usize {
    let (section, key) = field.rsplit_once('.').expect("a field stands in a section");
    let mut named = "";
    let (mut heads, mut keys) = ([None; 2], [None; 2]);
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[') {
            named = name.trim_end_matches(']').trim();
        }
        let below = named.strip_prefix(section).and_then(|rest| rest.strip_prefix('.'));
        let found = match (named == section, below) {
            (true, _) => 0,
            (false, Some(_)) => 1,
            (false, None) => continue,
        };
        heads[found].get_or_insert(number);
        if line.split('=').next().is_some_and(|own| own.trim() == key) {
            keys[found].get_or_insert(number);
        }
    }
    keys.into_iter().chain(heads).flatten().next().unwrap_or(1)
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
        let layer = spec.file_layer.unwrap();
        assert_eq!(layer.page_cache, Some(page_cache::Settings::default()));
        assert_eq!(layer.file_system, file_system::Settings::new(Kind::Ext4));
        assert_eq!((layer.sync, layer.files), (Sync::Fdatasync, Files::Written));
        assert_eq!((spec.scheduler, spec.volume), (None, None));
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
        check("", "stack.toml:1: no section: a stack has");
        check("[page_cache]\nmemory = \"1GiB\"\n", "stack.toml:2: page_cache.memory: a page cache");
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
        let text = "[file_system]\nkind = \"nilfs2\"\n";
        check(text, "stack.toml:1: file_system.capacity: a log-structured file system needs");
        let text = "[file_system]\nkind = \"xfs\"\ncapacity = \"1GB\"\n";
        check(text, "stack.toml:3: file_system.capacity: only nilfs2, f2fs and btrfs");
        let text = "[file_system]\nkind = \"nilfs2\"\ncapacity = \"1GB\"\n\
                    [file_system.cleaner]\npolicy = \"off\"\nstop_above = 2\n";
        check(text, "stack.toml:6: file_system.cleaner.stop_above: a share");
        let text = "[file_system]\nkind = \"f2fs\"\ncapacity = \"1GB\"\n\
                    [file_system.cleaner]\nstop_above = 0.2\n";
        check(text, "stack.toml:5: file_system.cleaner.stop_above: only the cleaner of nilfs2");
        let text = "[file_system]\nkind = \"f2fs\"\ncapacity = \"1GB\"\nflush_on_sync = true\n";
        check(text, "stack.toml:4: file_system.flush_on_sync: only nilfs2");
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
        let text = "[cache_device]\ndevice = \"fast\"\nsize = \"1GiB\"\n";
        let spec = Spec::from_toml(text, "stack.toml").unwrap();
        assert_eq!(spec.cache_device, Some(("fast".to_owned(), CacheSettings::new(1 << 30))));
        let text = format!("{text}mode = \"write_back\"\ndirty_target = 0.8\n");
        check(&text, "stack.toml:5: cache_device.dirty_target: it is from 0");
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
        check(&text, "stack.toml:3: volume.write_hole: a section says more");
        let text = format!("{raid5}failed = [1]\n[volume.rebuild]\n\nmember = 0\n");
        check(&text, "stack.toml:9: volume.rebuild.member: it is one of");
        let text = format!("{raid5}[volume.controller]\nqueue = 4\nus_per_command = -1\n");
        check(&text, "stack.toml:8: volume.controller.us_per_command: from 0");
    }
}

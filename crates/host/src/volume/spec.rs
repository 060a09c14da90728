//! The section `[volume]` of a stack.

use serde::Deserialize;
use units::{Bytes, Nanos};

use super::map::Map;
use super::settings::{
    Controller, Copies, Level, Protection, ReadBalance, Rebuild, Settings, Unfit, Update,
};

/// A volume as text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VolumeSpec {
    level: Level,
    members: usize,
    chunk: Option<Bytes>,
    layout: Option<Layout>,
    #[serde(default)]
    failed: Vec<usize>,
    #[serde(default)]
    read_balance: ReadBalance,
    #[serde(default)]
    parity_update: Update,
    stripe_cache: Option<usize>,
    #[serde(default)]
    parity_us_per_column: f64,
    depth: Option<usize>,
    #[serde(default)]
    parity_trim: bool,
    #[serde(default)]
    write_hole: WriteHole,
    bitmap: Option<BitmapSpec>,
    journal: Option<JournalSpec>,
    controller: Option<ControllerSpec>,
    rebuild: Option<RebuildSpec>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Layout {
    LeftSymmetric,
    Near,
    Far,
    Offset,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WriteHole {
    #[default]
    None,
    Bitmap,
    Journal,
    Ppl,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BitmapSpec {
    region: Option<Bytes>,
    delay: Option<Nanos>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalSpec {
    #[serde(default)]
    mode: JournalMode,
    size: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalMode {
    #[default]
    WriteThrough,
    WriteBack,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ControllerSpec {
    contexts: Option<usize>,
    us_per_command: Option<f64>,
    mb_per_s: Option<f64>,
    us_per_write: Option<f64>,
    write_mb_per_s: Option<f64>,
    queue: Option<usize>,
    cache: Option<Bytes>,
    cache_us: Option<f64>,
    destages: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RebuildSpec {
    member: usize,
    least_per_second: Option<Bytes>,
    most_per_second: Option<Bytes>,
    step: Option<Bytes>,
}

impl VolumeSpec {
    /// The settings, checked for members that are large enough.
    pub(crate) fn settings(self) -> Result<Settings, Unfit> {
        let unfit = |field, cause| Err(Unfit { field, cause });
        let usual = Settings::new(self.level, self.members);
        let copies = match (self.level, self.layout) {
            (_, None)
            | (Level::Raid5 | Level::Raid6, Some(Layout::LeftSymmetric))
            | (Level::Raid10, Some(Layout::Near)) => Copies::Near,
            (Level::Raid10, Some(Layout::Far)) => Copies::Far,
            (Level::Raid10, Some(Layout::Offset)) => Copies::Offset,
            _ => {
                let cause = "raid5 and raid6 are 'left_symmetric', raid10 'near', 'far' or \
                             'offset'; the others have one layout";
                return unfit("volume.layout", cause);
            }
        };
        if !(0.0..=1e6).contains(&self.parity_us_per_column) {
            return unfit("volume.parity_us_per_column", "from 0 to 1,000,000 us");
        }
        let names = [
            (WriteHole::Bitmap, self.bitmap.is_some()),
            (WriteHole::Journal, self.journal.is_some()),
        ];
        if names.iter().any(|(kind, is_there)| *is_there && self.write_hole != *kind) {
            return unfit("volume.write_hole", "a section says more of what is not chosen here");
        }
        let protection = match self.write_hole {
            WriteHole::None => Protection::None,
            WriteHole::Ppl => Protection::Ppl,
            WriteHole::Bitmap => {
                let BitmapSpec { region, delay } = self.bitmap.unwrap_or_default();
                Protection::Bitmap {
                    region_bytes: region.map_or(64 << 20, |size| size.0),
                    delay_ns: delay.map_or(5_000_000_000, |delay| delay.0),
                }
            }
            WriteHole::Journal => {
                let JournalSpec { mode, size } = self.journal.unwrap_or_default();
                let write_back = mode == JournalMode::WriteBack;
                Protection::Journal { write_back, bytes: size.map_or(1 << 30, |size| size.0) }
            }
        };
        let settings = Settings {
            chunk_bytes: self.chunk.map_or(usual.chunk_bytes, |size| size.0),
            copies,
            failed: self.failed,
            read_balance: self.read_balance,
            update: self.parity_update,
            stripe_cache: self.stripe_cache.unwrap_or(usual.stripe_cache),
            parity_ns_per_column: (self.parity_us_per_column * 1e3).round() as u64,
            depth: self.depth,
            parity_trim: self.parity_trim,
            protection,
            controller: self.controller.map(ControllerSpec::controller).transpose()?,
            rebuild: self.rebuild.map(|spec| {
                let usual = Rebuild::of(spec.member);
                let or = |own: Option<Bytes>, usual| own.map_or(usual, |bytes| bytes.0);
                Rebuild {
                    least_bytes_per_s: or(spec.least_per_second, usual.least_bytes_per_s),
                    most_bytes_per_s: or(spec.most_per_second, usual.most_bytes_per_s),
                    step_bytes: or(spec.step, usual.step_bytes),
                    ..usual
                }
            }),
            ..usual
        };
        if settings.stripe_cache > 1 << 24 {
            return unfit("volume.stripe_cache", "at most 16 million columns");
        }
        Map::new(&settings, &vec![Some(1 << 42); settings.members.min(1 << 10)])?;
        Ok(settings)
    }
}

impl ControllerSpec {
    fn controller(self) -> Result<Controller, Unfit> {
        let usual = Controller::default();
        let ns = |us: Option<f64>, usual: u64| {
            us.map_or(Some(usual), |us| {
                (0.0..=1e6).contains(&us).then(|| (us * 1e3).round() as u64)
            })
        };
        let far = "from 0 to 1,000,000 us";
        let Some(command_ns) = ns(self.us_per_command, usual.command_ns) else {
            return Err(Unfit { field: "volume.controller.us_per_command", cause: far });
        };
        let Some(cache_ns) = ns(self.cache_us, usual.cache_ns) else {
            return Err(Unfit { field: "volume.controller.cache_us", cause: far });
        };
        let write_command_ns = match self.us_per_write.map(|us| ns(Some(us), 0)) {
            Some(None) => {
                return Err(Unfit { field: "volume.controller.us_per_write", cause: far });
            }
            Some(ns) => ns,
            None => None,
        };
        let contexts = self.contexts.unwrap_or(usual.contexts);
        if contexts > 1 << 16 {
            let cause = "at most 65,536 commands in parallel";
            return Err(Unfit { field: "volume.controller.contexts", cause });
        }
        Ok(Controller {
            contexts,
            command_ns,
            bytes_per_s: self.mb_per_s.map_or(usual.bytes_per_s, |rate| rate * 1e6),
            write_command_ns,
            write_bytes_per_s: self.write_mb_per_s.map(|rate| rate * 1e6),
            queue: self.queue.unwrap_or(usual.queue),
            cache_bytes: self.cache.map_or(usual.cache_bytes, |size| size.0),
            cache_ns,
            destages: self.destages.unwrap_or(usual.destages),
        })
    }
}

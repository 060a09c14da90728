//! The sections of a flash device, what they must satisfy, and the parameters that they describe.
//!
//! Counts of parts are plain numbers with one source for all; times and shares are parameters with
//! their own. Every part of the model has its section, so that a policy is exchanged by a
//! line.

mod queue;
mod slc;
mod zones;

pub use queue::QueueSpec;
pub use slc::SlcCacheSpec;
pub use zones::ZonesSpec;

use serde::{Deserialize, Serialize};
use units::Bytes;

use super::{
    AllocationScheme, CellKind, FlashParameters, GcMode, GcParameters, GcPolicy, Geometry,
    Isolation, Order, StreamParameters, Timing, Translation, WearParameters,
};
use crate::Parameter;
use crate::read_cache::ReadCacheSpec;
use crate::rules::{Flaw, count, flaw, optional, positive, share, time};

/// `[device]` of `kind = "flash"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashSpec {
    /// Share of the raw capacity that cannot be addressed, 0 to 1: `1 - logical / raw`.
    pub over_provisioning: Parameter,
    /// Time of the controller, added to every request, us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_us: Option<Parameter>,
    /// MB (1,000,000 bytes) per second between host and device, both directions together; no limit
    /// where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_mb_per_s: Option<Parameter>,
    /// Time of a read or a write on the interface besides its data, us: what bounds the rate of
    /// small requests at any depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_command_us: Option<Parameter>,
    /// Whether a request waits until the one before is done: a drive without command queueing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_at_a_time: bool,
    /// Which plane takes a page: an order such as `CWDP`, `by_die`, `round_robin` or `dynamic`.
    #[serde(default = "cwdp")]
    pub allocation: String,
    /// Streams that are written to blocks of their own.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub streams: u32,
    /// What becomes of pages of a stream that cleaning moves: `initial` (blocks that all streams
    /// share) or `persistent` (blocks of their stream).
    #[serde(default, skip_serializing_if = "is_default")]
    pub stream_isolation: Isolation,
    /// Share of the blocks that each stream gets, where they are persistently isolated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stream_shares: Vec<f64>,
    /// Whether planes of a die read, program and erase pages with the same number together, where
    /// one request has them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multi_plane: bool,
    /// Bytes of a summary programmed behind the last page of a block that requests filled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_bytes: Option<u32>,
    /// The parts.
    pub geometry: GeometrySpec,
    /// The speed of cells and bus.
    pub timing: TimingSpec,
    /// The translation layer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mapping: MappingSpec,
    /// Cleaning.
    pub gc: GcSpec,
    /// Wear.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wear: WearSpec,
    /// Memory that keeps what was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_cache: Option<ReadCacheSpec>,
    /// Blocks that are written as SLC first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCacheSpec>,
    /// Zones in place of the translation layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<ZonesSpec>,
    /// How requests that wait are treated; in the order of arrival where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSpec>,
    /// The state that a simulation starts from; an empty device where absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub precondition: PreconditionSpec,
}

fn cwdp() -> String {
    "CWDP".to_owned()
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_yes(value: &bool) -> bool {
    *value
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_one(value: &u32) -> bool {
    *value == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// `[device.geometry]`: counts of the parts, each within the next larger one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeometrySpec {
    /// Where they come from.
    pub source: String,
    /// Whether nobody measured or published them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// Buses.
    pub channels: u32,
    /// Chips on a channel.
    pub chips_per_channel: u32,
    /// Dies in a chip.
    pub dies_per_chip: u32,
    /// Planes of a die.
    pub planes_per_die: u32,
    /// Erase blocks of a plane.
    pub blocks_per_plane: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Data of a page.
    pub page: Bytes,
}

/// `[device.timing]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimingSpec {
    /// `slc`, `mlc`, `tlc` or `qlc`.
    pub cell: CellKind,
    /// Reading a page into the register, us.
    pub read_us: Parameter,
    /// Programming a page, us.
    pub program_us: Parameter,
    /// Erasing a block, us.
    pub erase_us: Parameter,
    /// Read time of each page class over `read_us`; all alike where absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_factors: Vec<f64>,
    /// Program time of each page class over `program_us`; all alike where absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program_factors: Vec<f64>,
    /// Million transfers per second of a channel.
    pub channel_mt_per_s: Parameter,
    /// Bits per transfer.
    #[serde(default = "eight", skip_serializing_if = "is_eight")]
    pub channel_width_bits: u32,
    /// Command and address cycles of a read or program, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_ns: Option<Parameter>,
}

fn eight() -> u32 {
    8
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_eight(value: &u32) -> bool {
    *value == 8
}

/// `[device.mapping]`: page-mapped where absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingSpec {
    /// `page`, `block`, `bast` or `fast`.
    pub layer: LayerSpec,
    /// Erase blocks, in as many planes, that are mapped as one; not for `page`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_blocks: Option<u32>,
    /// Log blocks of `bast` and `fast`, replacement blocks of `block`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_blocks: Option<u32>,
}

/// `layer` of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerSpec {
    /// Any logical page in any physical page of its plane.
    #[default]
    Page,
    /// Whole blocks and their replacements.
    Block,
    /// Whole blocks, each with a log of its own.
    Bast,
    /// Whole blocks with a log that they share.
    Fast,
}

/// `[device.gc]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GcSpec {
    /// Where the choices come from, or the grounds for assuming them.
    pub source: String,
    /// Whether nobody published them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// Which block: `greedy`, `fifo`, `d_choices`, `windowed` or `cost_benefit`.
    pub policy: PolicySpec,
    /// Blocks drawn by `d_choices`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<u32>,
    /// Oldest blocks that `windowed` chooses from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_blocks: Option<u32>,
    /// When: `foreground`, `deferred`, `incremental` or `idle`.
    #[serde(default)]
    pub mode: ModeSpec,
    /// Moves after each write in mode `incremental`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages_per_write: Option<u32>,
    /// How long a die has been idle when mode `idle` begins, us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_after_us: Option<Parameter>,
    /// Free blocks of a plane at which mode `idle` stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_blocks: Option<u32>,
    /// Cleaning starts when a plane has fewer free blocks.
    pub low_blocks: u32,
    /// Whether moved pages go to blocks of their own.
    #[serde(default = "yes")]
    pub separate: bool,
    /// Whether chips copy pages by themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copy_back: bool,
}

fn yes() -> bool {
    true
}

/// `policy` of cleaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicySpec {
    /// The block with the fewest live pages.
    Greedy,
    /// The block closed first.
    Fifo,
    /// The best of some drawn at random.
    DChoices,
    /// The best of the oldest ones.
    Windowed,
    /// Few live pages and long undisturbed.
    CostBenefit,
}

/// `mode` of cleaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModeSpec {
    /// Whole blocks, as soon as too few are free.
    #[default]
    Foreground,
    /// Whole blocks, when the next request waits for the die.
    Deferred,
    /// A few moves after every write.
    Incremental,
    /// Besides, while a die is idle.
    Idle,
}

/// `[device.wear]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WearSpec {
    /// Erases that a block stands; for ever where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pe_cycles: Option<Parameter>,
    /// Of this many blocks that have been free longest the least worn is written next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamic_look_blocks: Option<u32>,
    /// Difference of erase counts from which cold data move; never where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub static_spread_erases: Option<u32>,
}

/// `[device.precondition]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreconditionSpec {
    /// Share of the logical capacity that holds data, from its start.
    pub fill: f64,
    /// Whether it was written over and over at random instead of once in order.
    #[serde(default)]
    pub random: bool,
}

impl FlashSpec {
    /// The model parameters that the section describes.
    pub fn parameters(&self) -> FlashParameters {
        let geometry = self.geometry.geometry();
        let pages = FlashParameters::logical_pages_at(&geometry, self.over_provisioning.value);
        let zones = self.zones.as_ref();
        FlashParameters {
            geometry,
            timing: self.timing.timing(),
            logical_pages: zones.map_or(pages, |zones| zones.logical_pages(&geometry, pages)),
            zones: zones.map(|zones| zones.parameters(&geometry)),
            translation: self.mapping.translation(),
            allocation: self.allocation_scheme().unwrap_or(AllocationScheme::Dynamic),
            host_streams: self.streams,
            streams: StreamParameters {
                isolation: self.stream_isolation,
                block_shares: self.stream_shares.clone(),
            },
            slc: self.slc_cache.as_ref().map(|slc| slc.parameters(&geometry)),
            multi_plane: self.multi_plane,
            gc: self.gc.parameters(),
            wear: WearParameters {
                dynamic_look_blocks: self.wear.dynamic_look_blocks.unwrap_or(1),
                static_spread: self.wear.static_spread_erases,
                cycles_most: self.wear.pe_cycles.as_ref().map(|cycles| cycles.value as u32),
            },
            summary_bytes: self.summary_bytes,
            overhead_ns: ns(self.overhead_us.as_ref()),
            interface_bytes_per_s: self.interface_mb_per_s.as_ref().map(|rate| rate.value * 1e6),
            interface_command_ns: ns(self.interface_command_us.as_ref()),
            one_at_a_time: self.one_at_a_time,
            behind_cache: false,
            events: self.queue.as_ref().map(QueueSpec::parameters),
        }
    }

    fn allocation_scheme(&self) -> Option<AllocationScheme> {
        match self.allocation.as_str() {
            "dynamic" => Some(AllocationScheme::Dynamic),
            "by_die" => Some(AllocationScheme::ByDie(Order::CWDP)),
            "round_robin" => Some(AllocationScheme::RoundRobin),
            order => Order::parse(order).ok().map(AllocationScheme::Static),
        }
    }
}

impl GeometrySpec {
    fn geometry(&self) -> Geometry {
        Geometry {
            channels: self.channels,
            chips_per_channel: self.chips_per_channel,
            dies_per_chip: self.dies_per_chip,
            planes_per_die: self.planes_per_die,
            blocks_per_plane: self.blocks_per_plane,
            pages_per_block: self.pages_per_block,
            page_bytes: u32::try_from(self.page.0).unwrap_or(u32::MAX),
        }
    }
}

impl TimingSpec {
    fn timing(&self) -> Timing {
        let classes = |us: &Parameter, factors: &[f64]| {
            let one = [1.0];
            let factors = if factors.is_empty() { &one[..] } else { factors };
            factors.iter().map(|factor| us.value * 1e3 * factor).collect()
        };
        Timing {
            cell: self.cell,
            read_ns: classes(&self.read_us, &self.read_factors),
            program_ns: classes(&self.program_us, &self.program_factors),
            erase_ns: self.erase_us.value * 1e3,
            command_ns: self.command_ns.as_ref().map_or(0.0, |ns| ns.value),
            bus_transfers_per_s: self.channel_mt_per_s.value * 1e6,
            bus_width_bits: self.channel_width_bits,
        }
    }
}

impl MappingSpec {
    fn translation(&self) -> Translation {
        let (width, logs) = (self.width_blocks.unwrap_or(1), self.log_blocks.unwrap_or(1));
        match self.layer {
            LayerSpec::Page => Translation::Page,
            LayerSpec::Block => Translation::Block { width, open: logs },
            LayerSpec::Bast => Translation::Bast { width, logs },
            LayerSpec::Fast => Translation::Fast { width, logs },
        }
    }
}

impl GcSpec {
    fn parameters(&self) -> GcParameters {
        GcParameters {
            policy: match self.policy {
                PolicySpec::Greedy => GcPolicy::Greedy,
                PolicySpec::Fifo => GcPolicy::Fifo,
                PolicySpec::DChoices => GcPolicy::DChoices(self.choices.unwrap_or(0)),
                PolicySpec::Windowed => GcPolicy::Windowed(self.window_blocks.unwrap_or(0)),
                PolicySpec::CostBenefit => GcPolicy::CostBenefit,
            },
            mode: match self.mode {
                ModeSpec::Foreground => GcMode::Foreground,
                ModeSpec::Deferred => GcMode::Deferred,
                ModeSpec::Incremental => {
                    GcMode::Incremental { pages_per_write: self.pages_per_write.unwrap_or(0) }
                }
                ModeSpec::Idle => GcMode::Idle {
                    after_ns: ns(self.idle_after_us.as_ref()),
                    until_blocks: self.until_blocks.unwrap_or(0),
                },
            },
            low_blocks: self.low_blocks,
            separate: self.separate,
            copy_back: self.copy_back,
        }
    }
}

fn ns(parameter: Option<&Parameter>) -> u64 {
    parameter.map_or(0, |us| (us.value * 1e3).round() as u64)
}

pub(crate) fn check_flash(spec: &FlashSpec) -> Result<(), Flaw> {
    share("device.over_provisioning", &spec.over_provisioning)?;
    optional(time, "device.overhead_us", spec.overhead_us.as_ref())?;
    optional(positive, "device.interface_mb_per_s", spec.interface_mb_per_s.as_ref())?;
    optional(time, "device.interface_command_us", spec.interface_command_us.as_ref())?;
    if let Some(queue) = &spec.queue {
        queue.check()?;
    }
    if let Some(cache) = &spec.read_cache {
        cache.check()?;
        if spec.queue.is_some() {
            let cause = "it answers at once: leave device.queue out";
            return flaw("device.read_cache", cause);
        }
    }
    if let Some(slc) = &spec.slc_cache {
        slc.check()?;
    }
    if let Some(zones) = &spec.zones {
        zones.check(spec.geometry.page)?;
        if spec.precondition.random && !zones.translate {
            let cause = "zones are written in order; say zones.translate = true";
            return flaw("device.precondition.random", cause);
        }
    }
    if spec.allocation_scheme().is_none() {
        let cause =
            "it is an order of C, W, D and P such as CWDP, or by_die, round_robin or dynamic";
        return flaw("device.allocation", cause);
    }
    for (field, source) in
        [("device.geometry.source", &spec.geometry.source), ("device.gc.source", &spec.gc.source)]
    {
        if source.trim().is_empty() {
            return flaw(field, "it is empty; name the source, or the grounds for assuming");
        }
    }
    let timing = &spec.timing;
    time("device.timing.read_us", &timing.read_us)?;
    time("device.timing.program_us", &timing.program_us)?;
    time("device.timing.erase_us", &timing.erase_us)?;
    positive("device.timing.channel_mt_per_s", &timing.channel_mt_per_s)?;
    optional(time, "device.timing.command_ns", timing.command_ns.as_ref())?;
    for (field, factors) in
        [("read_factors", &timing.read_factors), ("program_factors", &timing.program_factors)]
    {
        if factors.iter().any(|factor| !factor.is_finite() || *factor < 0.0) {
            return flaw(&format!("device.timing.{field}"), "a factor is a positive number");
        }
        if !factors.is_empty() && factors.len() != timing.cell.bits() {
            let cause = format!("give one for each of the {} page classes", timing.cell.bits());
            return flaw(&format!("device.timing.{field}"), &cause);
        }
    }
    optional(time, "device.gc.idle_after_us", spec.gc.idle_after_us.as_ref())?;
    if let Some(cycles) = &spec.wear.pe_cycles {
        count("device.wear.pe_cycles", cycles, 1e9)?;
    }
    if !(0.0..=1.0).contains(&spec.precondition.fill) {
        return flaw("device.precondition.fill", "a share lies between 0 and 1");
    }
    let found = spec.parameters().flaw();
    found.map_err(|flaw| (format!("device.{}", flaw.field), flaw.cause))
}

#[cfg(test)]
mod tests;

//! `kind = "hdd"`: the sections of a disk, what they must satisfy, and the model that they
//! describe.
//!
//! Times that a disk does not have (a reselection on a bus without one) are left out and count as
//! zero. Zones are tables of their own; one `zones_source` says where all of them come from.

use serde::{Deserialize, Serialize};
use units::Bytes;

use super::{
    BufferParameters, BusParameters, Geometry, HddParameters, Order, Overheads, QueueParameters,
    ReadAhead, SECTOR_BYTES, SeekCurve, Sparing, Zone,
};
use crate::parameter::{Parameter, capacity_text};
use crate::rules::{Flaw, check_capacity, count, flaw, optional, positive, share, time};

/// `[device]` of `kind = "hdd"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HddSpec {
    /// Size of the device; what the zones hold where absent.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "capacity_text")]
    pub capacity: Option<Bytes>,
    /// Turns per minute.
    pub rpm: Parameter,
    /// Recording surfaces.
    pub heads: Parameter,
    /// Time to another head on the same cylinder, ms.
    pub head_switch_ms: Parameter,
    /// Added to a move of the arm before a write, ms; may be negative where the seek times are
    /// those of writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_settle_ms: Option<Parameter>,
    /// How tracks follow each other.
    #[serde(default)]
    pub order: Order,
    /// Which sectors are kept back.
    #[serde(default)]
    pub sparing: Sparing,
    /// Cylinders that share spares, with `sparing = "range"`.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub range_cylinders: u32,
    /// Where the zones come from.
    pub zones_source: String,
    /// Whether nobody measured or published the zones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub zones_assumed: bool,
    /// Seek times.
    pub seek: SeekSpec,
    /// Command processing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub overhead: OverheadSpec,
    /// The way to the host.
    pub bus: BusSpec,
    /// The buffer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub buffer: BufferSpec,
    /// Command queueing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueSpec>,
    /// From the first sector to the last.
    pub zone: Vec<ZoneSpec>,
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

/// `[device.seek]`: a table, or three figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekSpec {
    /// To the next cylinder, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_ms: Option<Parameter>,
    /// Mean over random pairs of cylinders, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_ms: Option<Parameter>,
    /// From the first cylinder to the last, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_ms: Option<Parameter>,
    /// Where the table comes from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// `[cylinders, ms]` by rising distance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<(u32, f64)>,
}

macro_rules! optional_parameters {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$doc])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $field: Option<Parameter>,)*
        }
        impl $name {
            /// Every field by its name.
            fn fields(&self) -> Vec<(&'static str, Option<&Parameter>)> {
                vec![$((stringify!($field), self.$field.as_ref())),*]
            }
        }
    };
}

optional_parameters! {
    /// `[device.overhead]`: command processing, us; zero where absent, and after a write the same
    /// as after a read where only that is given.
    OverheadSpec {
        /// Read found in the buffer, after a read.
        read_hit_us,
        /// The same after a write.
        read_hit_after_write_us,
        /// Read from the platter, after a read.
        read_miss_us,
        /// The same after a write.
        read_miss_after_write_us,
        /// Write reported from the buffer, after a read.
        write_hit_us,
        /// The same after a write.
        write_hit_after_write_us,
        /// Write reported from the platter, after a read.
        write_miss_us,
        /// The same after a write.
        write_miss_after_write_us,
        /// At the end of a read.
        read_completion_us,
        /// At the end of a write.
        write_completion_us,
    }
}

/// `[device.bus]`: the way to the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BusSpec {
    /// A sector of 512 bytes to the host, us.
    pub read_sector_us: Parameter,
    /// A sector of 512 bytes from the host, us.
    pub write_sector_us: Parameter,
    /// Share of a read that is in the buffer before the disk comes back to the bus, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_watermark: Option<Parameter>,
    /// Protocol times.
    #[serde(default, skip_serializing_if = "is_default")]
    pub protocol: ProtocolSpec,
}

optional_parameters! {
    /// `[device.bus.protocol]`: what a parallel bus costs besides data, us; zero where absent.
    ProtocolSpec {
        /// Before data move.
        preparation_us,
        /// Coming back to the bus for data.
        reselect_us,
        /// Coming back to the bus for the status of a write.
        status_reselect_us,
        /// From the command of a write to the request for its data.
        write_data_delay_us,
        /// From the command of a write to the start of the arm.
        write_move_delay_us,
        /// A write that needs the arm touches the platter no sooner.
        write_move_least_us,
    }
}

/// `[device.buffer]`: the buffer; none that caches where absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferSpec {
    /// Segments for reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<Parameter>,
    /// Sectors of 512 bytes that a segment holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_sectors: Option<Parameter>,
    /// Most sectors that a read is continued for; the segment's where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_most_sectors: Option<Parameter>,
    /// Writes that may wait in the buffer after they were reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_back: Option<Parameter>,
    /// Sectors that they may have together; a segment's each where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_back_sectors: Option<Parameter>,
    /// How far a read is continued.
    #[serde(default)]
    pub read_ahead: ReadAhead,
    /// Whether it may replace what the host has just read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_ahead_over_requested: bool,
    /// Whether a read found in the buffer starts it anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_ahead_after_hit: bool,
    /// Whether sectors that pass before the first requested one are kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_passed: bool,
    /// Whether a read starts with whatever sector of it comes first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub immediate_read: bool,
    /// Whether a write starts with whatever sector of it comes first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub immediate_write: bool,
    /// Whether written data serve reads.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_written: bool,
}

/// `[device.queue]`: command queueing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Commands that the disk holds and orders by positioning time.
    pub depth: Parameter,
    /// A command that waited so long goes first, ms.
    pub most_wait_ms: Parameter,
}

/// `[[device.zone]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneSpec {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder, inclusive.
    pub last_cylinder: u32,
    /// Sectors of 512 bytes on each track.
    pub sectors_per_track: u32,
    /// Skew where only the head changes, sectors.
    #[serde(default)]
    pub track_skew_sectors: f64,
    /// Skew where the cylinder changes, sectors.
    #[serde(default)]
    pub cylinder_skew_sectors: f64,
    /// Angle of the first sector, sectors.
    #[serde(default, skip_serializing_if = "is_default")]
    pub offset_sectors: f64,
    /// Sectors at the front that carry no logical number.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reserved_sectors: u32,
    /// Spares per track, cylinder, range or zone (tracks with `sparing = "tracks"`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub spares: u32,
    /// Skipped sectors, counted from the front of the zone (tracks with `sparing = "tracks"`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<u32>,
}

fn ns(parameter: Option<&Parameter>) -> u64 {
    parameter.map_or(0, |us| (us.value * 1e3).round() as u64)
}

fn pair(after_read: Option<&Parameter>, after_write: Option<&Parameter>) -> [u64; 2] {
    [ns(after_read), ns(after_write.or(after_read))]
}

fn whole(parameter: Option<&Parameter>, default: f64) -> u32 {
    parameter.map_or(default, |parameter| parameter.value) as u32
}

impl SeekSpec {
    /// The curve that the section describes.
    pub fn curve(&self) -> SeekCurve {
        match (&self.single_ms, &self.average_ms, &self.full_ms) {
            (Some(single), Some(average), Some(full)) if self.points.is_empty() => SeekCurve::Lee {
                single_ms: single.value,
                average_ms: average.value,
                full_ms: full.value,
            },
            _ => SeekCurve::Points(self.points.clone()),
        }
    }
}

impl HddSpec {
    /// The model parameters that the section describes.
    pub fn parameters(&self) -> HddParameters {
        HddParameters {
            geometry: self.geometry(),
            sectors: self.capacity.map(|capacity| capacity.0 / SECTOR_BYTES),
            rpm: self.rpm.value as u32,
            seek: self.seek.curve(),
            head_switch_ns: (self.head_switch_ms.value * 1e6).round() as u64,
            write_settle_ns: self
                .write_settle_ms
                .as_ref()
                .map_or(0, |ms| (ms.value * 1e6).round() as i64),
            overhead: self.overhead.overheads(),
            bus: self.bus.parameters(),
            buffer: self.buffer.parameters(),
            queue: self.queue.as_ref().map_or_else(QueueParameters::default, |queue| {
                QueueParameters {
                    depth: queue.depth.value as u32,
                    most_wait_ns: (queue.most_wait_ms.value * 1e6) as u64,
                }
            }),
        }
    }

    fn geometry(&self) -> Geometry {
        let zone = |zone: &ZoneSpec| Zone {
            first_cylinder: zone.first_cylinder,
            last_cylinder: zone.last_cylinder,
            sectors_per_track: zone.sectors_per_track,
            offset_sectors: zone.offset_sectors,
            track_skew_sectors: zone.track_skew_sectors,
            cylinder_skew_sectors: zone.cylinder_skew_sectors,
            reserved_sectors: zone.reserved_sectors,
            spares: zone.spares,
            slips: zone.slips.clone(),
        };
        Geometry {
            heads: self.heads.value as u32,
            order: self.order,
            sparing: self.sparing,
            range_cylinders: self.range_cylinders,
            zones: self.zone.iter().map(zone).collect(),
        }
    }
}

impl OverheadSpec {
    fn overheads(&self) -> Overheads {
        let both = |read: &Option<Parameter>, write: &Option<Parameter>| {
            pair(read.as_ref(), write.as_ref())
        };
        Overheads {
            read_hit_ns: both(&self.read_hit_us, &self.read_hit_after_write_us),
            read_miss_ns: both(&self.read_miss_us, &self.read_miss_after_write_us),
            write_hit_ns: both(&self.write_hit_us, &self.write_hit_after_write_us),
            write_miss_ns: both(&self.write_miss_us, &self.write_miss_after_write_us),
            read_completion_ns: ns(self.read_completion_us.as_ref()),
            write_completion_ns: ns(self.write_completion_us.as_ref()),
        }
    }
}

impl BusSpec {
    fn parameters(&self) -> BusParameters {
        let protocol = &self.protocol;
        BusParameters {
            read_sector_ns: ns(Some(&self.read_sector_us)),
            write_sector_ns: ns(Some(&self.write_sector_us)),
            preparation_ns: ns(protocol.preparation_us.as_ref()),
            reselect_ns: ns(protocol.reselect_us.as_ref()),
            status_reselect_ns: ns(protocol.status_reselect_us.as_ref()),
            write_data_delay_ns: ns(protocol.write_data_delay_us.as_ref()),
            write_move_delay_ns: ns(protocol.write_move_delay_us.as_ref()),
            write_move_least_ns: ns(protocol.write_move_least_us.as_ref()),
            read_watermark: self.read_watermark.as_ref().map_or(0.0, |share| share.value),
        }
    }
}

impl BufferSpec {
    fn parameters(&self) -> BufferParameters {
        let segment_sectors = whole(self.segment_sectors.as_ref(), 0.0);
        let write_back = whole(self.write_back.as_ref(), 0.0);
        let most = f64::from(write_back) * f64::from(segment_sectors);
        BufferParameters {
            segments: whole(self.segments.as_ref(), 0.0),
            segment_sectors,
            read_ahead: self.read_ahead,
            read_ahead_most_sectors: whole(
                self.read_ahead_most_sectors.as_ref(),
                f64::from(segment_sectors),
            ),
            read_ahead_over_requested: self.read_ahead_over_requested,
            read_ahead_after_hit: self.read_ahead_after_hit,
            keep_passed: self.keep_passed,
            immediate_read: self.immediate_read,
            immediate_write: self.immediate_write,
            read_written: self.read_written,
            write_back,
            write_back_sectors: whole(self.write_back_sectors.as_ref(), most),
        }
    }
}

/// What a disk must satisfy to exist.
pub(crate) fn check_hdd(spec: &HddSpec) -> Result<(), Flaw> {
    check_capacity(spec.capacity)?;
    count("device.rpm", &spec.rpm, 1e6)?;
    count("device.heads", &spec.heads, 255.0)?;
    milliseconds("device.head_switch_ms", &spec.head_switch_ms)?;
    if let Some(settle) = &spec.write_settle_ms {
        let size = Parameter { value: settle.value.abs(), ..settle.clone() };
        milliseconds("device.write_settle_ms", &size)?;
    }
    check_zones(spec)?;
    check_seek(spec)?;
    for (name, parameter) in spec.overhead.fields() {
        optional(time, &format!("device.overhead.{name}"), parameter)?;
    }
    positive("device.bus.read_sector_us", &spec.bus.read_sector_us)?;
    positive("device.bus.write_sector_us", &spec.bus.write_sector_us)?;
    optional(share, "device.bus.read_watermark", spec.bus.read_watermark.as_ref())?;
    for (name, parameter) in spec.bus.protocol.fields() {
        optional(time, &format!("device.bus.protocol.{name}"), parameter)?;
    }
    check_buffer(&spec.buffer)?;
    if let Some(queue) = &spec.queue {
        count("device.queue.depth", &queue.depth, 1024.0)?;
        positive("device.queue.most_wait_ms", &queue.most_wait_ms)?;
        milliseconds("device.queue.most_wait_ms", &queue.most_wait_ms)?;
    }
    Ok(())
}

/// A time of a mechanism: not negative, at most a minute.
fn milliseconds(field: &str, parameter: &Parameter) -> Result<(), Flaw> {
    time(field, parameter)?;
    if parameter.value > 60_000.0 {
        return flaw(field, "it is longer than a minute");
    }
    Ok(())
}

fn check_buffer(buffer: &BufferSpec) -> Result<(), Flaw> {
    let parts = [
        ("segments", &buffer.segments, 4096.0),
        ("segment_sectors", &buffer.segment_sectors, 1e9),
        ("read_ahead_most_sectors", &buffer.read_ahead_most_sectors, 1e9),
        ("write_back", &buffer.write_back, 4096.0),
        ("write_back_sectors", &buffer.write_back_sectors, 1e9),
    ];
    for (name, parameter, most) in parts {
        let field = format!("device.buffer.{name}");
        optional(|field, parameter| count(field, parameter, most), &field, parameter.as_ref())?;
    }
    if buffer.segments.is_some() && buffer.segment_sectors.is_none() {
        return flaw("device.buffer.segment_sectors", "segments need a size");
    }
    if buffer.read_ahead != ReadAhead::None && buffer.segments.is_none() {
        return flaw("device.buffer.read_ahead", "reading ahead needs segments to read into");
    }
    Ok(())
}

fn check_zones(spec: &HddSpec) -> Result<(), Flaw> {
    if spec.zones_source.trim().is_empty() {
        return flaw("device.zones_source", "its source is empty; name it, or why it is assumed");
    }
    if spec.zone.is_empty() {
        return flaw("device.zone", "a disk has at least one zone");
    }
    if spec.range_cylinders == 0 {
        return flaw("device.range_cylinders", "a range is at least one cylinder");
    }
    let heads = spec.heads.value as u64;
    let (mut next, mut held) = (0, 0u64);
    for (index, zone) in spec.zone.iter().enumerate() {
        let flawed = |key: &str, cause: &str| flaw(&format!("device.zone[{index}].{key}"), cause);
        if zone.first_cylinder < next {
            return flawed("first_cylinder", "it is inside the zone before");
        }
        if zone.last_cylinder < zone.first_cylinder {
            return flawed("last_cylinder", "it is before the first cylinder of the zone");
        }
        if zone.last_cylinder >= 16_000_000 {
            return flawed("last_cylinder", "more than 16 million cylinders");
        }
        if !(1..=1_000_000).contains(&zone.sectors_per_track) {
            return flawed("sectors_per_track", "a track has 1 to 1,000,000 sectors");
        }
        let skews = [zone.offset_sectors, zone.track_skew_sectors, zone.cylinder_skew_sectors];
        if skews.iter().any(|skew| !skew.is_finite() || *skew < 0.0) {
            return flawed("track_skew_sectors", "a skew is a positive number of sectors");
        }
        match zone.data_sectors(spec, heads) {
            Some(sectors) => held += sectors,
            None => return flawed("spares", "spares and reserved sectors leave no room for data"),
        }
        next = zone.last_cylinder + 1;
    }
    match spec.capacity {
        Some(Bytes(bytes)) if bytes / SECTOR_BYTES > held => {
            let cause = format!("the zones hold {} bytes only", held * SECTOR_BYTES);
            flaw("device.capacity", &cause)
        }
        _ => Ok(()),
    }
}

impl ZoneSpec {
    /// Sectors that are left for data, none where there are not any.
    fn data_sectors(&self, spec: &HddSpec, heads: u64) -> Option<u64> {
        let cylinders = u64::from(self.last_cylinder - self.first_cylinder) + 1;
        let per_track = u64::from(self.sectors_per_track);
        let (tracks, spares) = (cylinders * heads, u64::from(self.spares));
        let ranges = cylinders.div_ceil(u64::from(spec.range_cylinders));
        let kept_back = match spec.sparing {
            Sparing::None => self.slips.len() as u64,
            Sparing::Tracks => spares * per_track,
            Sparing::Track => spares * tracks,
            Sparing::Cylinder => spares * cylinders,
            Sparing::Range => spares * ranges,
            Sparing::Zone => spares,
        };
        let left =
            (tracks * per_track).checked_sub(kept_back + u64::from(self.reserved_sectors))?;
        (left > 0).then_some(left)
    }
}

fn check_seek(spec: &HddSpec) -> Result<(), Flaw> {
    let seek = &spec.seek;
    let three = [
        ("single_ms", &seek.single_ms),
        ("average_ms", &seek.average_ms),
        ("full_ms", &seek.full_ms),
    ];
    for (name, parameter) in three {
        optional(milliseconds, &format!("device.seek.{name}"), parameter.as_ref())?;
    }
    match (seek.points.is_empty(), three.iter().filter(|(_, value)| value.is_some()).count()) {
        (true, 3) => {}
        (false, 0) => return check_points(seek),
        (true, _) => {
            let cause = "give points, or all of single_ms, average_ms and full_ms";
            return flaw("device.seek.points", cause);
        }
        (false, _) => {
            return flaw("device.seek.points", "give points or the three figures, not both");
        }
    }
    let cylinders = spec.zone.last().map_or(1, |zone| zone.last_cylinder + 1);
    let (curve, mut longest) = (seek.curve(), 0.0);
    // A curve of three figures bends once: a thousand places find where it falls.
    for distance in (1..cylinders).step_by((cylinders as usize / 1000).max(1)) {
        let at = curve.at_ms(distance, cylinders);
        if at < longest {
            let cause = format!(
                "the curve through the three figures falls at {distance} cylinders: \
                 the average does not fit the other two"
            );
            return flaw("device.seek.average_ms", &cause);
        }
        longest = at;
    }
    Ok(())
}

fn check_points(seek: &SeekSpec) -> Result<(), Flaw> {
    let field = "device.seek.points";
    if seek.source.trim().is_empty() {
        return flaw("device.seek.source", "its source is empty; name it, or why it is assumed");
    }
    if seek.points.iter().any(|(_, ms)| !ms.is_finite() || !(0.0..=60_000.0).contains(ms)) {
        return flaw(field, "a seek takes from nothing to a minute");
    }
    if seek.points[0].0 == 0 || seek.points.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
        return flaw(field, "distances rise from at least 1");
    }
    // Measured tables jitter from point to point; a seek ten times as far is never faster.
    for (index, (distance, ms)) in seek.points.iter().enumerate() {
        let far = seek.points[index..].iter().find(|(far, _)| *far >= distance.saturating_mul(10));
        if let Some((far, far_ms)) = far.filter(|(_, far_ms)| far_ms < ms) {
            let cause = format!(
                "seeks are not monotone: {far} cylinders take {far_ms} ms, {distance} take {ms} ms"
            );
            return flaw(field, &cause);
        }
    }
    Ok(())
}

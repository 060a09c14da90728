//! What each DiskSim parameter means for the model.

use units::Bytes;

use super::syntax::Value;
use super::{Found, ImportError, Imported};
use crate::hdd::{
    BufferSpec, BusSpec, HddSpec, Order, OverheadSpec, ProtocolSpec, ReadAhead, SECTOR_BYTES,
    SeekSpec, Sparing, ZoneSpec,
};
use crate::{About, DeviceSpec, Parameter, Profile, StateOf};

/// The drive as a profile.
pub(super) fn profile(
    name: &str,
    disk: &Found,
    model: &Found,
    buses: &[Found],
    seek: Option<(String, String)>,
) -> Result<Imported, ImportError> {
    let mechanics = model.inner("Mechanical Model")?;
    let layout = model.inner("Layout Model")?;
    let sparing = sparing(&layout)?;
    let device = HddSpec {
        capacity: Some(Bytes(u64::from(model.whole("Block count")?) * SECTOR_BYTES)),
        rpm: mechanics.parameter("Rotation speed (in rpms)")?,
        heads: model.parameter("Number of data surfaces")?,
        head_switch_ms: mechanics.parameter("Head switch time")?,
        write_settle_ms: Some(mechanics.parameter("Add. write settling delay")?),
        order: order(&layout)?,
        sparing: sparing.0,
        range_cylinders: layout.whole("Rangesize for sparing")?.max(1),
        zones_source: layout.file.clone(),
        zones_assumed: false,
        seek: seek_times(&mechanics, seek)?,
        overhead: overheads(disk)?,
        bus: bus(disk, buses)?,
        buffer: buffer(disk)?,
        queue: None,
        zone: zones(&layout, sparing)?,
    };
    let profile = Profile {
        profile: About {
            name: name.to_owned(),
            description: format!("{}, from its DiskSim parameter files.", disk.block.name),
            class: "hdd".to_owned(),
            sources: vec![format!("{}, {}", disk.file, model.file)],
        },
        state: StateOf { condition: "unknown".to_owned(), ..StateOf::default() },
        device: DeviceSpec::Hdd(Box::new(device)),
        write_cache: None,
        limits: None,
        validation: None,
        cost: None,
        endurance: None,
        published: Vec::new(),
    };
    profile.check()?;
    Ok(Imported { profile, ignored: ignored(disk)? })
}

impl Found {
    fn evidence(&self, key: &str) -> String {
        format!("{}: {key}", self.file)
    }

    fn parameter(&self, key: &str) -> Result<Parameter, ImportError> {
        Ok(Parameter::new(self.number(key)?, self.evidence(key)))
    }

    /// A time that the file gives in ms, as us; none where it is zero.
    fn us(&self, key: &str) -> Result<Option<Parameter>, ImportError> {
        let us = round(self.number_or(key, 0.0)? * 1e3);
        Ok((us != 0.0).then(|| Parameter::new(us, self.evidence(key))))
    }

    fn on(&self, key: &str) -> Result<bool, ImportError> {
        Ok(self.number_or(key, 0.0)? != 0.0)
    }
}

/// Without the dust of binary fractions: to a thousandth of a nanosecond.
fn round(us: f64) -> f64 {
    (us * 1e6).round() / 1e6
}

fn order(layout: &Found) -> Result<Order, ImportError> {
    let key = "LBN-to-PBN mapping scheme";
    match layout.whole(key)? {
        0 => Ok(Order::Cylinders),
        // Scheme 2 differs in the zones that begin with an odd cylinder only.
        1 | 2 => Ok(Order::Serpentine),
        _ => Err(layout.wrong(key, "schemes 0 to 2 are known")),
    }
}

/// The scheme, and whether spares stand at the front of their cylinder.
fn sparing(layout: &Found) -> Result<(Sparing, bool), ImportError> {
    let key = "Sparing scheme used";
    match layout.whole(key)? {
        0 | 7 => Ok((Sparing::None, false)),
        1 => Ok((Sparing::Tracks, false)),
        2 | 4 => Ok((Sparing::Cylinder, false)),
        3 => Ok((Sparing::Track, false)),
        8 => Ok((Sparing::Range, false)),
        9 | 10 => Ok((Sparing::Zone, false)),
        5 | 6 => Err(layout.wrong(key, "spares at the front of cylinders are not modelled")),
        _ => Err(layout.wrong(key, "schemes 0 to 10 are known")),
    }
}

fn zones(layout: &Found, sparing: (Sparing, bool)) -> Result<Vec<ZoneSpec>, ImportError> {
    let mut zones = Vec::new();
    for item in layout.list("Zones")? {
        let Value::Block(block) = item else {
            return Err(layout.wrong("Zones", "it is not a list of blocks"));
        };
        let zone = Found { file: layout.file.clone(), block: block.clone() };
        let slips = zone.numbers("slips")?;
        if slips.iter().any(|slip| slip.fract() != 0.0 || *slip < 0.0 || *slip > 4e9) {
            return Err(zone.wrong("slips", "it is not a list of sector numbers"));
        }
        zones.push(ZoneSpec {
            first_cylinder: zone.whole("First cylinder number")?,
            last_cylinder: zone.whole("Last cylinder number")?,
            sectors_per_track: zone.whole("Blocks per track")?,
            track_skew_sectors: zone.number_or("Skew for track switch", 0.0)?,
            cylinder_skew_sectors: zone.number_or("Skew for cylinder switch", 0.0)?,
            offset_sectors: zone.number("Offset of first block")?,
            reserved_sectors: zone.whole("Empty space at zone front")?,
            spares: match sparing.0 {
                Sparing::None => 0,
                _ => zone.whole("Number of spares")?,
            },
            slips: slips.iter().map(|slip| *slip as u32).collect(),
        });
    }
    Ok(zones)
}

fn seek_times(mechanics: &Found, file: Option<(String, String)>) -> Result<SeekSpec, ImportError> {
    let from = |source: String, points| SeekSpec { source, points, ..SeekSpec::default() };
    match (mechanics.word("Seek type")?.as_str(), file) {
        ("extracted", Some((name, text))) => {
            let points = seek_file(&name, &text)?;
            Ok(from(name, points))
        }
        ("extracted", None) => Err(mechanics.missing("Full seek curve")),
        ("hpl", _) => {
            let values = mechanics.numbers("HPL seek equation values")?;
            Ok(from(mechanics.evidence("HPL seek equation values"), hpl(mechanics, &values, &[])?))
        }
        ("hplplus10", _) => {
            let values = mechanics.numbers("HPL seek equation values")?;
            let first = mechanics.numbers("First ten seek times")?;
            let source = mechanics.evidence("First ten seek times, HPL seek equation values");
            Ok(from(source, hpl(mechanics, &values, &first)?))
        }
        ("constant", _) => {
            let time = mechanics.number("Constant seek time")?;
            Ok(from(mechanics.evidence("Constant seek time"), vec![(1, time)]))
        }
        ("curve", _) => Ok(SeekSpec {
            single_ms: Some(mechanics.parameter("Single cylinder seek time")?),
            average_ms: Some(mechanics.parameter("Average seek time")?),
            full_ms: Some(mechanics.parameter("Full strobe seek time")?),
            ..SeekSpec::default()
        }),
        _ => {
            Err(mechanics
                .wrong("Seek type", "extracted, hpl, hplplus10, curve and constant are known"))
        }
    }
}

/// `Seek distances measured: N` and then N lines `distance, ms`.
fn seek_file(file: &str, text: &str) -> Result<Vec<(u32, f64)>, ImportError> {
    let wrong = |line: usize, cause: &str| ImportError::Syntax {
        file: file.to_owned(),
        line: line + 1,
        cause: cause.to_owned(),
    };
    let mut points = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        if line.trim().is_empty() {
            continue;
        }
        let point = line.split_once(',').and_then(|(distance, ms)| {
            Some((distance.trim().parse::<u32>().ok()?, ms.trim().parse::<f64>().ok()?))
        });
        points.push(point.ok_or_else(|| wrong(number, "expected 'cylinders, ms'"))?);
    }
    let head = text.lines().next().unwrap_or("");
    let count = head.rsplit(':').next().and_then(|count| count.trim().parse::<usize>().ok());
    match count {
        Some(count) if count == points.len() => Ok(points),
        _ => Err(wrong(0, "the first line does not state how many distances follow")),
    }
}

/// The equation of Ruemmler and Wilkes as points: roots below `values[0]` cylinders, a line beyond.
/// `first` are measured times of the shortest distances.
fn hpl(mechanics: &Found, values: &[f64], first: &[f64]) -> Result<Vec<(u32, f64)>, ImportError> {
    let key = "HPL seek equation values";
    let &[bound, root_base, root, line_base, line, single] = values else {
        return Err(mechanics.wrong(key, "it has not six values"));
    };
    if !(0.0..1e6).contains(&bound) {
        return Err(mechanics.wrong(key, "its first value is not a number of cylinders"));
    }
    let bound = bound as u32;
    let mut points: Vec<(u32, f64)> = (1..).zip(first.iter().copied()).collect();
    let mut distance = points.len() as u32 + 1;
    while distance < bound {
        let ms = if distance == 1 && single >= 0.0 {
            single
        } else {
            root_base + root * f64::from(distance).sqrt()
        };
        points.push((distance, round(ms)));
        // Steps that grow with the distance: the root is straight enough between them.
        distance += 1 + distance / 16;
    }
    if bound > 1 && points.last().is_some_and(|(last, _)| *last < bound - 1) {
        points.push((bound - 1, round(root_base + root * f64::from(bound - 1).sqrt())));
    }
    for distance in [bound.max(distance.min(bound)).max(1), bound.max(1) + 1000] {
        if points.last().is_none_or(|(last, _)| *last < distance) {
            points.push((distance, round(line_base + line * f64::from(distance))));
        }
    }
    Ok(points)
}

fn overheads(disk: &Found) -> Result<OverheadSpec, ImportError> {
    let scale = disk.number_or("Time scale for overheads", 1.0)?;
    let each = disk.number_or("Per-request overhead time", 0.0)? * 1e3;
    let time = |key: &str| -> Result<Option<Parameter>, ImportError> {
        let value = round((disk.number(key)? * 1e3 + each) * scale);
        if value < 0.0 {
            return Err(disk.wrong(key, "it is negative"));
        }
        Ok(Some(Parameter::new(value, disk.evidence(key))))
    };
    let completion = |key: &str| disk.us(key);
    let extra = disk.on("Extra write disconnect")?;
    let write = |key: &str| time(if extra { "Extradisc command overhead" } else { key });
    Ok(OverheadSpec {
        read_hit_us: time("Read hit over. after read")?,
        read_hit_after_write_us: time("Read hit over. after write")?,
        read_miss_us: time("Read miss over. after read")?,
        read_miss_after_write_us: time("Read miss over. after write")?,
        write_hit_us: write("Write hit over. after read")?,
        write_hit_after_write_us: write("Write hit over. after write")?,
        write_miss_us: write("Write miss over. after read")?,
        write_miss_after_write_us: write("Write miss over. after write")?,
        read_completion_us: completion("Read completion overhead")?,
        write_completion_us: completion("Write completion overhead")?,
    })
}

fn bus(disk: &Found, buses: &[Found]) -> Result<BusSpec, ImportError> {
    // The slowest of drive and buses decides.
    let slowest = |key: &str| -> Result<Parameter, ImportError> {
        let own = "Bulk sector transfer time";
        let mut slowest = (disk.number(own)?, disk.evidence(own));
        for bus in buses {
            let time = bus.number_or(key, 0.0)?;
            if time > slowest.0 {
                slowest = (time, bus.evidence(key));
            }
        }
        Ok(Parameter::new(round(slowest.0 * 1e3), slowest.1))
    };
    let watermark = disk.number_or("High (read) water mark", 0.0)?;
    let by_request = disk.on("Set watermark by reqsize")?;
    Ok(BusSpec {
        read_sector_us: slowest("Read block transfer time")?,
        write_sector_us: slowest("Write block transfer time")?,
        read_watermark: (by_request && watermark > 0.0)
            .then(|| Parameter::new(watermark, disk.evidence("High (read) water mark"))),
        protocol: protocol(disk)?,
    })
}

fn protocol(disk: &Found) -> Result<ProtocolSpec, ImportError> {
    let sum = |keys: &[&str]| -> Result<Option<Parameter>, ImportError> {
        let mut total = 0.0;
        for key in keys {
            total += disk.number_or(key, 0.0)? * 1e3;
        }
        let from = disk.evidence(&keys.join(" + "));
        Ok((total > 0.0).then(|| Parameter::new(round(total), from)))
    };
    let extra = disk.on("Extra write disconnect")?;
    Ok(ProtocolSpec {
        preparation_us: sum(&["Data preparation overhead"])?,
        reselect_us: sum(&["First reselect overhead"])?,
        status_reselect_us: sum(&["Other reselect overhead"])?,
        write_data_delay_us: if extra {
            sum(&[
                "Extradisc disconnect overhead",
                "Extradisc inter-disconnect delay",
                "First reselect overhead",
            ])?
        } else {
            None
        },
        write_move_delay_us: if extra { sum(&["Extradisc seek delta"])? } else { None },
        write_move_least_us: sum(&["Minimum seek delay"])?,
    })
}

fn buffer(disk: &Found) -> Result<BufferSpec, ImportError> {
    let key = "Enable caching in buffer";
    if !disk.on(key)? {
        return Ok(BufferSpec::default());
    }
    let segments = disk.whole("Number of buffer segments")?;
    let separate = disk.on("Use separate write segment")?;
    let read_segments = segments.saturating_sub(u32::from(separate)).max(1);
    let write_back = disk.whole("Fast write level")? > 0;
    let read_ahead = match disk.whole("Buffer continuous read")? {
        0 => ReadAhead::None,
        1 => ReadAhead::Track,
        2 => ReadAhead::Cylinder,
        3 => ReadAhead::Segment,
        4 => ReadAhead::NextTrack,
        _ => return Err(disk.wrong("Buffer continuous read", "types 0 to 4 are known")),
    };
    let segment_key = "Number of buffer segments";
    Ok(BufferSpec {
        segments: Some(Parameter::new(f64::from(read_segments), disk.evidence(segment_key))),
        segment_sectors: Some(disk.parameter("Segment size (in blks)")?),
        read_ahead_most_sectors: Some(disk.parameter("Maximum read-ahead (blks)")?),
        write_back: if write_back {
            Some(disk.parameter("Maximum number of write segments")?)
        } else {
            None
        },
        write_back_sectors: None,
        read_ahead,
        read_ahead_over_requested: disk.on("Read-ahead over requested")?,
        read_ahead_after_hit: disk.on("Read-ahead on idle hit")?,
        keep_passed: disk.on("Read any free blocks")?,
        immediate_read: disk.on("Immediate buffer read")?,
        immediate_write: disk.on("Immediate buffer write")?,
        read_written: disk.on("Allow read hits on write data")?,
    })
}

/// What is switched on and has no counterpart.
fn ignored(disk: &Found) -> Result<Vec<String>, ImportError> {
    let keys = [
        "Allow almost read hits",
        "Allow sneaky full read hits",
        "Allow sneaky partial read hits",
        "Allow sneaky intermediate read hits",
        "Allow write prebuffering",
        "Preseeking level",
        "Minimum read-ahead (blks)",
        "Disconnect write if seek",
        "Read disconnect afterread",
        "Read disconnect afterwrite",
        "Write disconnect overhead",
        "Extradisc 2nd disconnect overhead",
    ];
    let mut out = Vec::new();
    for key in keys {
        if disk.on(key)? {
            out.push(key.to_owned());
        }
    }
    Ok(out)
}

//! A made-up drive in the form of DiskSim's files.

use super::*;
use crate::{DeviceSpec, Profile};

const SPECS: &str = "
disksim_disk MADE_UP {
  Model = source made.model,
  Per-request overhead time = 0.1, Time scale for overheads = 2.0,
  Bulk sector transfer time = 0.05,
  Number of buffer segments = 4, Maximum number of write segments = 2,
  Segment size (in blks) = 64, Use separate write segment = 1,
  High (read) water mark = 0.5, Set watermark by reqsize = 1,
  Enable caching in buffer = 1, Buffer continuous read = 3,
  Maximum read-ahead (blks) = 60, Read-ahead over requested = 0, Fast write level = 2,
  Allow almost read hits = 1, Preseeking level = 0,
  Read hit over. after read = 0.2, Read hit over. after write = 0.3,
  Read miss over. after read = 0.4, Read miss over. after write = 0.5,
  Write hit over. after read = 0.6, Write hit over. after write = 0.7,
  Write miss over. after read = 0.8, Write miss over. after write = 0.9,
  Read completion overhead = 0.03
} # end
";

const MODEL: &str = "
dm_disk MADE_UP_model {
  Number of data surfaces = 2, Number of cylinders = 20, Block count = 700,
  Mechanical Model = dm_mech_g1 {
    Seek type = extracted, Full seek curve = made.seek,
    Add. write settling delay = -0.1, Head switch time = 0.5, Rotation speed (in rpms) = 6000
  },
  Layout Model = dm_layout_g1 {
    LBN-to-PBN mapping scheme = 1, Sparing scheme used = 9, Rangesize for sparing = 1,
    Zones = [ dm_layout_g1_zone {
      First cylinder number = 0, Last cylinder number = 19, Blocks per track = 20,
      Offset of first block = 0.0, Empty space at zone front = 3,
      Skew for track switch = 4, Skew for cylinder switch = 6, Number of spares = 5,
      slips = [ 7, 9 ], defects = []
    } ]
  }
}
";

const SEEK: &str = "Seek distances measured: 3\n1, 1.5\n5,\t2.5\n19, 6\n";

const PARV: &str = "disksim_global G { Init Seed = 42 }
disksim_bus BUS1 { type = 1, Read block transfer time = 0.08, Write block transfer time = 0.01 }
source made.diskspecs
topology disksim_iodriver d [ disksim_bus b [] ]
";

fn import_with(change: &dyn Fn(&str, &str) -> String) -> Result<Imported, ImportError> {
    let files = [
        ("made.diskspecs", SPECS),
        ("made.model", MODEL),
        ("made.seek", SEEK),
        ("made.parv", PARV),
    ];
    import("made", "made.parv", &mut |name| {
        let found = files.iter().find(|(own, _)| *own == name);
        found
            .map(|(name, text)| change(name, text))
            .filter(|text| !text.is_empty())
            .ok_or_else(|| std::io::ErrorKind::NotFound.into())
    })
}

#[test]
fn every_parameter_lands_where_it_belongs() {
    let imported = import_with(&|_, text| text.to_owned()).expect("it is sound");
    assert_eq!(imported.ignored, ["Allow almost read hits"]);
    let DeviceSpec::Hdd(disk) = &imported.profile.device else { panic!("a disk") };
    let found = disk.parameters();
    assert_eq!(found.sectors, Some(700));
    // Overheads are scaled together with the per-request time.
    assert_eq!(found.overhead.read_hit_ns, [600_000, 800_000]);
    assert_eq!(found.overhead.read_miss_ns, [1_000_000, 1_200_000]);
    assert_eq!(found.overhead.write_hit_ns, [1_400_000, 1_600_000]);
    assert_eq!(found.overhead.write_miss_ns, [1_800_000, 2_000_000]);
    assert_eq!(
        (found.overhead.read_completion_ns, found.overhead.write_completion_ns),
        (30_000, 0)
    );
    // The slower of drive and bus.
    assert_eq!((found.bus.read_sector_ns, found.bus.write_sector_ns), (80_000, 50_000));
    assert_eq!(found.bus.read_watermark, 0.5);
    assert_eq!((found.buffer.segments, found.buffer.segment_sectors), (3, 64));
    assert_eq!((found.buffer.write_back, found.buffer.write_back_sectors), (2, 128));
    assert_eq!((found.head_switch_ns, found.write_settle_ns, found.rpm), (500_000, -100_000, 6000));
    assert_eq!(found.seek.at_ms(3, 20), 2.0);
    let zone = &found.geometry.zones[0];
    assert_eq!((zone.spares, zone.reserved_sectors, zone.slips.as_slice()), (5, 3, &[7, 9][..]));
    assert_eq!(disk.rpm.source, "made.model: Rotation speed (in rpms)");
    // And it is a profile like any other: it reads back equal.
    let text = imported.profile.to_toml();
    assert_eq!(Profile::from_toml(&text, "made").as_ref(), Ok(&imported.profile), "{text}");
}

#[test]
fn equations_become_points() {
    let hpl = |text: &str| {
        text.replace(
            "Seek type = extracted",
            "Seek type = hplplus10, \
            HPL seek equation values = [ 300, 3.8, 0.33, 7.7, 0.006, -1.0 ], \
            First ten seek times = [ 2.8, 3.6, 3.8, 3.9, 4.2, 4.6, 4.7, 4.8, 4.9, 5.0 ]",
        )
    };
    let found = import_with(&|name, text| {
        if name == "made.model" { hpl(text) } else { text.to_owned() }
    });
    let profile = found.expect("it is sound").profile;
    let DeviceSpec::Hdd(disk) = &profile.device else { panic!("a disk") };
    let curve = disk.seek.curve();
    assert_eq!((curve.at_ms(1, 5000), curve.at_ms(10, 5000)), (2.8, 5.0));
    for distance in 11..3000u32 {
        let expected = if distance < 300 {
            3.8 + 0.33 * f64::from(distance).sqrt()
        } else {
            7.7 + 0.006 * f64::from(distance)
        };
        let off = (curve.at_ms(distance, 5000) - expected).abs();
        assert!(off < 2e-3, "{distance}: {off}");
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    let check = |file: &str, from: &str, to: &str, expected: &str| {
        let error = import_with(&|name, text| {
            if name == file { text.replace(from, to) } else { text.to_owned() }
        })
        .expect_err(expected);
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().is_some());
    };
    check("made.model", MODEL, "", "made.model: entity not found");
    check("made.parv", "source made.diskspecs", "", "made.parv:1: there is no disksim_disk block");
    check(
        "made.model",
        "= 6000",
        "= fast",
        "made.model:4: 'Rotation speed (in rpms)': it is not \
        a number",
    );
    check(
        "made.model",
        "Sparing scheme used = 9",
        "Sparing scheme used = 5",
        "made.model:8: \
        'Sparing scheme used': spares at the front of cylinders are not modelled",
    );
    check(
        "made.diskspecs",
        "Bulk sector transfer time = 0.05,",
        "",
        "made.diskspecs:2: 'Bulk \
        sector transfer time': it is missing",
    );
    check(
        "made.seek",
        "measured: 3",
        "measured: 4",
        "made.seek:1: the first line does not state \
        how many distances follow",
    );
    check("made.seek", "5,\t2.5", "five", "made.seek:3: expected 'cylinders, ms'");
    check(
        "made.model",
        "Block count = 700",
        "Block count = 900",
        "made:0: device.capacity: the \
        zones hold 405504 bytes only",
    );
    check(
        "made.diskspecs",
        "disksim_disk",
        "source made.diskspecs disksim_disk",
        "made.diskspecs:1: files name each other in a circle",
    );
}

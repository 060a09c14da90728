//! The printed figures of the shipped profiles come out of their models.

use profile::Profile;
use profile::linear::Pattern::{Random, Sequential};
use sim::{DepthOutcome, Synthetic, closed_loop_depth};

fn run(profile: &str, load: Synthetic, depth: usize) -> DepthOutcome {
    let text = profile::find_shipped(profile).expect("it ships");
    let profile = Profile::from_toml(text, profile).expect("it is sound");
    // The write caches of the papers' devices hold at most 64 MB: past that is steady state.
    // Spread over most of a device, so that random writes have no neighbours in a cache.
    let load = Synthetic { warm_up_requests: 20_000, range_bytes: 15 << 30, ..load };
    closed_loop_depth(model::device(&profile, 1).as_mut(), load, depth, 20_000)
}

#[track_caller]
fn check(what: &str, found: f64, printed: f64) {
    let error = found / printed - 1.0;
    assert!(error.abs() < 0.03, "{what}: {found:.0} against {printed} printed ({error:+.3})");
}

#[test]
fn request_rates() {
    for (profile, pattern, read_share, size, depth, printed) in [
        // Wang et al. 2011, Table 2, and figure 3 for 30 outstanding.
        ("mtron-pro-7500", Random, 0.0, 4096, 1, 130.0),
        ("mtron-pro-7500", Random, 0.0, 4096, 30, 130.0),
        ("mtron-pro-7500", Sequential, 0.0, 4096, 1, 21_000.0),
        ("mtron-pro-7500", Sequential, 1.0, 4096, 1, 12_000.0),
        ("mtron-pro-7500", Random, 1.0, 4096, 1, 12_000.0),
        ("mtron-pro-7500", Random, 1.0, 4096, 30, 12_000.0),
        // Petrov et al. 2011, Table 1.
        ("intel-x25-e", Random, 1.0, 4096, 32, 35_510.0),
        ("intel-x25-e", Random, 1.0, 16_384, 32, 12_743.0),
        ("intel-x25-e", Random, 0.0, 4096, 32, 5_953.0),
        ("intel-x25-e", Random, 0.0, 16_384, 32, 3_665.0),
        // CrystalDiskMark 2019.
        ("samsung-860-qvo", Random, 1.0, 4096, 1, 8_314.0),
        ("samsung-860-qvo", Random, 1.0, 4096, 32, 68_775.0),
        ("samsung-860-qvo", Random, 0.0, 4096, 1, 22_885.0),
        ("samsung-860-qvo", Random, 0.0, 4096, 32, 63_378.0),
        // AnandTech 2017 and Tom's Hardware.
        ("intel-p3700", Random, 1.0, 4096, 1, 12_800.0),
        ("intel-p3700", Random, 1.0, 4096, 128, 450_000.0),
        ("intel-p3700", Random, 0.0, 4096, 128, 150_000.0),
        ("intel-p4800x", Random, 1.0, 4096, 16, 584_800.0),
        ("intel-p4800x", Random, 0.0, 4096, 16, 500_000.0),
        // heise 2020.
        ("kioxia-cm6", Random, 1.0, 4096, 256, 1_400_000.0),
        ("kioxia-cm6", Random, 0.0, 4096, 256, 350_000.0),
        // The makers' figures; sources in the profiles.
        ("crucial-mx500", Random, 1.0, 4096, 32, 95_000.0),
        ("crucial-mx500", Random, 0.0, 4096, 32, 90_000.0),
        ("fusion-io-iodrive-duo", Random, 1.0, 4096, 512, 130_000.0),
        ("fusion-io-iodrive-duo", Random, 0.0, 4096, 512, 80_000.0),
        ("intel-320", Random, 1.0, 4096, 32, 50_000.0),
        ("intel-320", Random, 0.0, 4096, 32, 40_000.0),
        ("intel-p5600", Random, 1.0, 4096, 512, 1_000_000.0),
        ("intel-p5600", Random, 0.0, 4096, 512, 260_000.0),
        ("intel-x25-m-g2", Random, 1.0, 4096, 32, 35_000.0),
        ("intel-x25-m-g2", Random, 0.0, 4096, 32, 8_600.0),
        ("kioxia-cd6", Random, 1.0, 4096, 512, 1_000_000.0),
        ("kioxia-cd6", Random, 0.0, 4096, 512, 250_000.0),
        ("mangstor-mx6300", Random, 1.0, 4096, 512, 900_000.0),
        ("mangstor-mx6300", Random, 0.0, 4096, 512, 300_000.0),
        ("micron-7400", Random, 1.0, 4096, 512, 650_000.0),
        ("micron-7400", Random, 0.0, 4096, 512, 105_000.0),
        ("micron-7600-max", Random, 1.0, 4096, 512, 2_100_000.0),
        ("micron-7600-max", Random, 0.0, 4096, 512, 675_000.0),
        ("micron-9100-max", Random, 1.0, 4096, 512, 750_000.0),
        ("micron-9100-max", Random, 0.0, 4096, 512, 300_000.0),
        ("samsung-970-pro", Random, 1.0, 4096, 512, 500_000.0),
        ("samsung-970-pro", Random, 0.0, 4096, 512, 500_000.0),
        ("samsung-pm9a3", Random, 1.0, 4096, 512, 900_000.0),
        ("samsung-pm9a3", Random, 0.0, 4096, 512, 200_000.0),
        ("samsung-pm9d3a", Random, 1.0, 4096, 512, 2_000_000.0),
        ("samsung-pm9d3a", Random, 0.0, 4096, 512, 250_000.0),
        ("solidigm-p5810", Random, 1.0, 4096, 512, 865_000.0),
        ("solidigm-p5810", Random, 0.0, 4096, 512, 495_000.0),
        // Amazon EC2 user guide.
        ("aws-gp2", Random, 0.5, 4096, 64, 3_000.0),
        ("aws-gp3", Random, 1.0, 4096, 64, 3_000.0),
        ("aws-gp3", Random, 0.5, 16_384, 64, 3_000.0),
    ] {
        let outcome = run(profile, Synthetic::new(pattern, read_share, size), depth);
        let what = format!("{profile} {pattern:?} {read_share} {size} depth {depth}");
        check(&what, outcome.iops, printed);
    }
}

#[test]
fn bandwidths() {
    for (profile, read_share, printed_mb_per_s) in [
        ("mtron-pro-7500", 1.0, 130.0),
        ("mtron-pro-7500", 0.0, 120.0),
        ("intel-x25-e", 1.0, 250.0),
        ("intel-x25-e", 0.0, 170.0),
        ("ocz-vertex-ex", 1.0, 260.0),
        ("ocz-vertex-ex", 0.0, 100.0),
        ("samsung-mcaqe32g", 1.0, 56.0),
        ("samsung-mcaqe32g", 0.0, 32.0),
        ("samsung-860-qvo", 1.0, 561.8),
        ("samsung-860-qvo", 0.0, 529.6),
        ("intel-p3700", 1.0, 2_800.0),
        ("intel-p3700", 0.0, 1_900.0),
        ("kioxia-cm6", 1.0, 6_900.0),
        ("kioxia-cm6", 0.0, 4_200.0),
        ("aws-gp3", 0.5, 131.072),
        ("crucial-mx500", 1.0, 560.0),
        ("crucial-mx500", 0.0, 510.0),
        ("fusion-io-iodrive-duo", 1.0, 1_500.0),
        ("fusion-io-iodrive-duo", 0.0, 1_400.0),
        ("intel-320", 1.0, 250.0),
        ("intel-320", 0.0, 170.0),
        ("intel-p5600", 1.0, 7_000.0),
        ("intel-p5600", 0.0, 4_300.0),
        ("intel-x25-m-g2", 1.0, 250.0),
        ("intel-x25-m-g2", 0.0, 100.0),
        ("kioxia-cd6", 1.0, 6_200.0),
        ("kioxia-cd6", 0.0, 4_000.0),
        ("mangstor-mx6300", 1.0, 3_700.0),
        ("mangstor-mx6300", 0.0, 2_400.0),
        ("micron-7400", 1.0, 4_400.0),
        ("micron-7400", 0.0, 2_200.0),
        ("micron-7600-max", 1.0, 12_000.0),
        ("micron-7600-max", 0.0, 7_000.0),
        ("micron-9100-max", 1.0, 3_200.0),
        ("micron-9100-max", 0.0, 2_200.0),
        ("samsung-970-pro", 1.0, 3_500.0),
        ("samsung-970-pro", 0.0, 2_700.0),
        ("samsung-pm9a3", 1.0, 6_500.0),
        ("samsung-pm9a3", 0.0, 3_500.0),
        ("samsung-pm9d3a", 1.0, 12_000.0),
        ("samsung-pm9d3a", 0.0, 6_800.0),
        ("solidigm-p5810", 1.0, 6_400.0),
        ("solidigm-p5810", 0.0, 4_000.0),
    ] {
        let load = Synthetic::new(Sequential, read_share, 4 << 20);
        let outcome = run(profile, load, 32);
        check(&format!("{profile} {read_share}"), outcome.bytes_per_s / 1e6, printed_mb_per_s);
    }
}

#[test]
fn times_of_single_requests() {
    for (profile, pattern, read_share, size, printed_us) in [
        ("intel-x25-e", Random, 1.0, 4096, 161.0),
        ("intel-x25-e", Random, 1.0, 16_384, 294.0),
        ("intel-x25-e", Random, 0.0, 16_384, 377.0),
        ("intel-x25-e", Sequential, 1.0, 4096, 53.0),
        ("intel-p3700", Random, 1.0, 4096, 77.9),
        ("intel-p4800x", Random, 1.0, 4096, 8.9),
        ("kioxia-cm6", Random, 1.0, 4096, 90.0),
        ("kioxia-cm6", Random, 0.0, 4096, 20.0),
        ("samsung-mcaqe32g", Random, 1.0, 512, 209.0),
        ("fusion-io-iodrive-duo", Random, 1.0, 4096, 25.0),
        ("fusion-io-iodrive-duo", Random, 0.0, 4096, 35.0),
        ("micron-9100-max", Random, 1.0, 4096, 107.7),
        ("samsung-pm9d3a", Random, 1.0, 4096, 65.0),
        ("solidigm-p5810", Random, 0.0, 4096, 15.0),
    ] {
        let outcome = run(profile, Synthetic::new(pattern, read_share, size), 1);
        let times = if read_share == 1.0 { &outcome.reads } else { &outcome.writes };
        check(&format!("{profile} {pattern:?} {size}"), times.mean() / 1e3, printed_us);
    }
    let reads = run("intel-p3700", Synthetic::new(Random, 1.0, 4096), 1).reads;
    check("intel-p3700 median", reads.quantile(0.5) as f64 / 1e3, 76.0);
    check("intel-p3700 p99", reads.quantile(0.99) as f64 / 1e3, 96.0);
}

/// Reads all over a disk take its average seek and half a turn; over a part of it, less.
#[test]
fn disks_take_their_average_seek_and_half_a_turn() {
    for (name, seek_ms, turn_ms) in [
        ("hgst-hds72107", 8.2, 60_000.0 / 7200.0),
        ("seagate-savvio-15k", 3.2, 60_000.0 / 15_000.0),
        ("hitachi-15k450", 3.3, 60_000.0 / 15_000.0),
    ] {
        let text = profile::find_shipped(name).expect("it ships");
        let profile = Profile::from_toml(text, name).expect("it is sound");
        let mean_us = |share: f64| {
            let mut device = model::device(&profile, 1);
            let capacity = device.capacity().expect("a disk has one").0;
            let range_bytes = (capacity as f64 * share) as u64;
            let load = Synthetic { range_bytes, ..Synthetic::new(Random, 1.0, 512) };
            closed_loop_depth(device.as_mut(), load, 1, 20_000).reads.mean() / 1e3
        };
        check(name, mean_us(1.0), (seek_ms + turn_ms / 2.0) * 1e3);
        assert!(mean_us(0.02) < 0.8 * mean_us(1.0), "{name}: a short stroke is faster");
    }
}

/// Without its cache the Mtron takes every random write at the medium's pace: the first simulation
/// of Wang et al. 2010, whose response times were far too long.
#[test]
fn the_cache_is_what_makes_short_random_writes_short() {
    let text = profile::find_shipped("mtron-pro-7500").expect("it ships");
    let profile = Profile::from_toml(text, "mtron").expect("it is sound");
    let burst = Synthetic::new(Random, 0.0, 4096);
    let with = closed_loop_depth(model::device(&profile, 1).as_mut(), burst, 1, 2_000);
    let without =
        closed_loop_depth(model::device(&profile.without_cache(), 1).as_mut(), burst, 1, 2_000);
    check("with", with.writes.mean() / 1e3, 47.6);
    check("without", without.writes.mean() / 1e3, 7_692.0);
}

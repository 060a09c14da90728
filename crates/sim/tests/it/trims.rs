//! What trims do to write amplification, by theory.

use model::flash::theory;
use profile::{DeviceSpec, Profile};
use sim::{Watched, replay_with};
use trace::generate::patterns;

/// Where writes and trims go to pages at random, a page holds data if the last of the two was a
/// write: a share `w / (w + t)` of all. Cleaning sees only these (Frankie et al., "A Mathematical
/// Model of the Trim Command in NAND-Flash SSDs", ACMSE 2012, with trims of all pages alike).
#[test]
fn trimmed_pages_are_spare() {
    let text = profile::find_shipped("generic-slc-8g").expect("it ships");
    let text = text.replace("blocks_per_plane = 256", "blocks_per_plane = 128");
    let profile = Profile::from_toml(&text, "half").expect("it is sound");
    let DeviceSpec::Flash(spec) = &profile.device else { panic!("flash") };
    let parameters = spec.parameters();
    let geometry = parameters.geometry;
    let range = format!("{}KiB", parameters.capacity().0 / 1024);
    for (trims, count) in [("0", 1_500_000), ("0.2", 6_000_000)] {
        let options = [("reads", "0"), ("trims", trims), ("range", &range), ("rate", "1000/s")];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let load = patterns::find("random").expect("known").workload(&options).expect("sound");
        let trace = load.generate(3, count).expect("sound");
        let mut device = model::device(&profile, 1);
        // Two thirds of the requests for the share of trimmed pages to settle.
        let warm_up_ns = count * 1_000_000 * 2 / 3;
        let watched = Watched { warm_up_ns, ..Watched::default() };
        let found = replay_with(device.as_mut(), &trace, watched).expect("nobody stops it");
        let (first, last) = (found.wear[0], *found.wear.last().expect("marks"));
        let programmed = last.flash.expect("flash").programmed_bytes
            - first.flash.expect("flash").programmed_bytes;
        let amplification = programmed as f64 / (last.written_bytes - first.written_bytes) as f64;
        let trim_share: f64 = trims.parse().expect("a number");
        let in_use = f64::from(parameters.logical_pages) * (1.0 - trim_share);
        let room = found.counters["in_use_plane_pages"] as f64 * f64::from(geometry.plane_count());
        let expected = theory::greedy(in_use / room, geometry.pages_per_block);
        let error = amplification / expected - 1.0;
        assert!(error.abs() < 0.03, "trims {trims}: {amplification}, by theory {expected}");
    }
}

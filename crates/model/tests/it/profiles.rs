//! From profiles to devices; and the folder that the shipped ones are kept in.

use model::Device;
use model::flash::preconditioned;
use model::flash::reference::configuration_a;
use profile::flash::FlashSpec;
use profile::{DeviceSpec, Profile, find_shipped, shipped};

#[test]
fn every_file_of_the_folder_is_shipped() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles");
    let files = std::fs::read_dir(folder).expect("the folder of profiles");
    let mut kept: Vec<_> = files
        .map(|entry| entry.expect("listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    kept.sort();
    let shipped: Vec<_> = shipped().iter().map(|(name, _)| *name).collect();
    assert_eq!(kept, shipped);
}

#[test]
fn every_shipped_profile_becomes_a_device_of_its_capacity() {
    for (name, text) in shipped() {
        let profile = Profile::from_toml(text, name).unwrap_or_else(|error| panic!("{error}"));
        let device = model::device(&profile, 1);
        let counters = device.counters();
        assert_eq!(profile.capacity(), device.capacity(), "{name}: known without the device");
        // Credits are there from the start.
        let counts = counters.iter().filter(|counter| !counter.name.ends_with("_credits"));
        assert!(counts.into_iter().all(|counter| counter.value == 0), "{name}: {counters:?}");
    }
}

/// The small flash device, with `section` before `[device.wear]`.
fn slc(section: &str) -> Profile {
    let text = find_shipped("generic-slc-8g").expect("it ships");
    let text = text.replacen("[device.wear]", &format!("{section}\n[device.wear]"), 1);
    Profile::from_toml(&text, "my.toml").expect("it is sound")
}

fn flash(profile: &Profile) -> &FlashSpec {
    let DeviceSpec::Flash(spec) = &profile.device else { panic!("flash") };
    spec
}

#[test]
fn a_profile_of_configuration_a_is_configuration_a() {
    let profile = slc("");
    let spec = flash(&profile);
    let mut expected = configuration_a();
    expected.wear.dynamic_look_blocks = 1;
    expected.wear.cycles_most = Some(100_000);
    assert_eq!(spec.parameters(), expected);
    let device = preconditioned(&spec.parameters(), &spec.precondition, 1);
    assert_eq!(device.capacity().map(|bytes| bytes.0), Some(1_703_936 * 4096));
    assert!(device.locate(1_703_935).is_some(), "it was preconditioned");
    assert_eq!(device.counts().host_pages, 0);
}

#[test]
fn a_queue_makes_it_a_device_of_events() {
    let profile = slc("[device.queue]\nsource = \"assumed\"\nassumed = true\ndepth = 32\n\
        reads_first = true\nmap_cache_pages = 64\n");
    let spec = flash(&profile);
    let mut device = preconditioned(&spec.parameters(), &spec.precondition, 1);
    assert!(device.queued().is_some());
    assert!(device.locate(1_703_935).is_some(), "it was preconditioned");
    device.audit();
}

#[test]
fn a_read_cache_stands_before_flash() {
    let assumed = "source = \"assumed\", assumed = true";
    let profile = slc(&format!(
        "[device.read_cache]\nline = \"4KiB\"\npolicy = \"clock\"\n\
         capacity_mb = {{ value = 8, {assumed} }}\nhit_base_us = {{ value = 10, {assumed} }}\n\
         hit_us_per_kib = {{ value = 0.5, {assumed} }}\nports = {{ value = 2, {assumed} }}\n"
    ));
    let counters = model::device(&profile, 1).counters();
    assert!(counters.iter().any(|own| own.name == "read_cache_hits"));
}

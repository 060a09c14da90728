//! Sections become parameters, round-trip, and are refused where they stand.

use crate::{Profile, find_shipped};

fn read(name: &str, line: &str, with: &str) -> Result<Profile, crate::Error> {
    let text = find_shipped(name).expect("it ships");
    assert!(text.contains(line), "{name} has no '{line}'");
    Profile::from_toml(&text.replacen(line, with, 1), "my.toml")
}

#[test]
fn a_line_exchanges_a_policy() {
    for with in [
        "policy = \"fifo\"",
        "policy = \"d_choices\"\nchoices = 4",
        "policy = \"windowed\"\nwindow_blocks = 16",
        "policy = \"cost_benefit\"\nmode = \"incremental\"\npages_per_write = 8",
        "policy = \"greedy\"\nmode = \"idle\"\nuntil_blocks = 20",
        "policy = \"greedy\"\nmode = \"deferred\"",
    ] {
        let profile = read("generic-slc-8g", "policy = \"greedy\"", with).expect(with);
        let again = Profile::from_toml(&profile.to_toml(), "again.toml").expect(with);
        assert_eq!(again, profile, "{with}");
    }
    for with in [
        "allocation = \"CWDP\"\nstreams = 4",
        "allocation = \"PCWD\"\nmulti_plane = true",
        "allocation = \"CWDP\"\nstreams = 4\nstream_isolation = \"persistent\"",
        "allocation = \"CWDP\"\nstreams = 2\nstream_isolation = \"persistent\"\n\
         stream_shares = [0.3, 0.7]",
    ] {
        let profile = read("generic-slc-8g", "allocation = \"CWDP\"", with).expect(with);
        let again = Profile::from_toml(&profile.to_toml(), "again.toml").expect(with);
        assert_eq!(again, profile, "{with}");
    }
    for order in ["PDWC", "by_die", "round_robin", "dynamic"] {
        read("generic-slc-8g", "\"CWDP\"", &format!("\"{order}\"")).expect(order);
    }
}

const QUEUE: &str = "[device.queue]\nsource = \"assumed\"\nassumed = true\ndepth = 32\n\
    reads_first = true\nsuspend_us = { value = 20, source = \"assumed\", assumed = true }\n\
    read_retries = [0.01]\nmap_cache_pages = 64\n\n[device.wear]";

#[test]
fn a_queue_is_read_and_refused_where_it_takes_no_commands() {
    let profile = read("generic-slc-8g", "[device.wear]", QUEUE).expect("it is sound");
    let again = Profile::from_toml(&profile.to_toml(), "again.toml").expect("round trip");
    assert_eq!(again, profile);
    let silent = QUEUE.replace("reads_first = true\n", "");
    let silent = read("generic-slc-8g", "[device.wear]", &silent).expect("it is sound");
    assert_eq!(silent, profile, "reads go first where nothing is said");
    let error = read("generic-slc-8g", "[device.wear]", &QUEUE.replace("= 32", "= 0"));
    let error = error.expect_err("no commands").to_string();
    assert!(error.contains("device.queue.depth: a device takes at least"), "{error}");
}

const ZONES: &str = "[device.zones]\nsource = \"assumed\"\nassumed = true\n\
    size = \"32MiB\"\nopen_most = 14\ntranslate = true\n\n[device.wear]";

const SLC: &str = "[device.slc_cache]\ndynamic = true\n\
    share = { value = 0.05, source = \"assumed\", assumed = true }\n\
    read_us = { value = 30, source = \"assumed\", assumed = true }\n\
    program_us = { value = 200, source = \"assumed\", assumed = true }\n\
    fold_after_us = { value = 500, source = \"assumed\", assumed = true }\n\
    when_full = \"direct\"\n\n[device.wear]";

#[test]
fn dense_cells_get_an_slc_cache() {
    let profile = read("generic-tlc-48g", "[device.wear]", SLC).expect("it is sound");
    let again = Profile::from_toml(&profile.to_toml(), "again.toml").expect("round trip");
    assert_eq!(again, profile);
    let refused =
        |name: &str, text: &str| read(name, "[device.wear]", text).expect_err(text).to_string();
    let slc = refused("generic-slc-8g", SLC);
    assert!(slc.contains("device.slc_cache: all cells of the device are SLC"), "{slc}");
    let none = refused("generic-tlc-48g", &SLC.replace("0.05", "0.0001"));
    assert!(none.contains("device.slc_cache.share: a plane needs two blocks"), "{none}");
}

#[test]
fn flash_gets_a_read_cache() {
    let text = "[device.read_cache]\nline = \"4KiB\"\npolicy = \"clock\"\n\
        capacity_mb = { value = 8, source = \"assumed\", assumed = true }\n\
        hit_base_us = { value = 10, source = \"assumed\", assumed = true }\n\
        hit_us_per_kib = { value = 0.5, source = \"assumed\", assumed = true }\n\
        ports = { value = 2, source = \"assumed\", assumed = true }\n\n[device.wear]";
    let profile = read("generic-slc-8g", "[device.wear]", text).expect("it is sound");
    let again = Profile::from_toml(&profile.to_toml(), "again.toml").expect("round trip");
    assert_eq!(again, profile);
    let error = read("generic-slc-8g", "[device.wear]", &text.replace("4KiB", "5000"));
    let error = error.expect_err("no power of two").to_string();
    assert!(error.contains("device.read_cache.line: a line is a power of two"), "{error}");
}

#[test]
fn zones_take_the_place_of_the_translation_layer() {
    let profile = read("generic-slc-8g", "[device.wear]", ZONES).expect("it is sound");
    let again = Profile::from_toml(&profile.to_toml(), "again.toml").expect("round trip");
    assert_eq!(again, profile);
    let refused = |from: &str, to: &str| {
        let error = read("generic-slc-8g", "[device.wear]", &ZONES.replace(from, to));
        error.expect_err(to).to_string()
    };
    let random = refused("translate = true", "translate = false");
    assert!(random.contains("device.precondition.random: zones are written"), "{random}");
    let size = refused("32MiB", "33MB");
    assert!(size.contains("device.zones.size: a zone is a whole number of pages"), "{size}");
    let open = refused("= 14", "= 0");
    assert!(open.contains("device.zones.open_most: at least one"), "{open}");
}

#[test]
fn impossible_devices_are_refused_with_field_and_line() {
    for (line, with, expected) in [
        ("channels = 8", "channels = 0", "device.geometry.channels: a device has at least one"),
        ("page = \"4KiB\"", "page = 5000", "device.geometry.page: a page is a power of two"),
        ("read_us = { value = 50", "read_us = { value = -1", "device.timing.read_us: it is neg"),
        (
            "channel_mt_per_s = { value = 333",
            "channel_mt_per_s = { value = 0",
            "device.timing.channel_mt_per_s: it must be above zero",
        ),
        (
            "over_provisioning = { value = 0.1875",
            "over_provisioning = { value = 0.03",
            "device.over_provisioning: it cannot hold the data",
        ),
        (
            "over_provisioning = { value = 0.1875",
            "over_provisioning = { value = 1",
            "device.over_provisioning: nothing is left",
        ),
        ("\"CWDP\"", "\"CWXX\"", "device.allocation: it is an order"),
        ("low_blocks = 12", "low_blocks = 1", "device.gc.low_blocks: cleaning needs"),
        ("policy = \"greedy\"", "policy = \"d_choices\"", "device.gc.choices: a victim"),
        (
            "policy = \"greedy\"",
            "policy = \"greedy\"\nmode = \"incremental\"",
            "device.gc.pages_per_write: a cleaning that moves nothing",
        ),
        ("cell = \"slc\"", "cell = \"slc\"\nread_factors = [1.0, 2.0]", "device.timing.read_f"),
        ("fill = 1.0", "fill = 1.5", "device.precondition.fill: a share"),
    ] {
        let error = read("generic-slc-8g", line, with).expect_err(with).to_string();
        assert!(error.contains(expected), "{error}\n  expected {expected}");
        let line: usize = error.split(':').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
        assert!(line > 12, "{error}: the line of the field or of its section");
    }
}

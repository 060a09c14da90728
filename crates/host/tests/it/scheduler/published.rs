//! The defaults against the figures that were read from the kernels' sources, and these against the
//! file that says where: `WEARMARK_PUBLISHED` names the folder that holds `host.toml`.

use host::scheduler::Settings;
use units::Nanos;

#[test]
fn defaults_are_those_of_the_kernels() {
    let all = Settings::default();
    let ms = |time: Nanos| time.0 as f64 / 1e6;
    let (antic, deadline, cfq, kyber) = (all.anticipatory, all.deadline, all.cfq, all.kyber);
    let pairs = [
        ("as.read_expire", 125.0, ms(antic.read_expire)),
        ("as.write_expire", 250.0, ms(antic.write_expire)),
        ("as.read_batch_expire", 500.0, ms(antic.read_batch_expire)),
        ("as.write_batch_expire", 125.0, ms(antic.write_batch_expire)),
        ("as.antic_expire", 6.0, ms(antic.antic_expire)),
        ("deadline.read_expire", 500.0, ms(deadline.read_expire)),
        ("deadline.write_expire", 5000.0, ms(deadline.write_expire)),
        ("deadline.writes_starved", 2.0, f64::from(deadline.writes_starved)),
        ("deadline.fifo_batch", 16.0, f64::from(deadline.fifo_batch)),
        ("cfq.quantum", 4.0, f64::from(cfq.quantum)),
        ("cfq.fifo_expire_sync", 125.0, ms(cfq.fifo_expire_sync)),
        ("cfq.fifo_expire_async", 250.0, ms(cfq.fifo_expire_async)),
        ("cfq.slice_sync", 100.0, ms(cfq.slice_sync)),
        ("cfq.slice_async", 40.0, ms(cfq.slice_async)),
        ("cfq.slice_async_rq", 2.0, f64::from(cfq.slice_async_rq)),
        ("cfq.slice_idle", 8.0, ms(cfq.slice_idle)),
        ("cfq.back_seek_max", 16384.0, (cfq.back_seek_max.0 >> 10) as f64),
        ("cfq.back_seek_penalty", 2.0, cfq.back_seek_penalty as f64),
        ("kyber.depth_read", 256.0, f64::from(kyber.depth[0])),
        ("kyber.depth_sync_write", 128.0, f64::from(kyber.depth[1])),
        ("kyber.depth_other", 64.0, f64::from(kyber.depth[2])),
        ("kyber.batch_read", 16.0, f64::from(kyber.batch[0])),
        ("kyber.batch_sync_write", 8.0, f64::from(kyber.batch[1])),
        ("kyber.batch_other", 8.0, f64::from(kyber.batch[2])),
        ("kyber.target_read", 2.0, ms(kyber.read_lat)),
        ("kyber.target_write", 10.0, ms(kyber.write_lat)),
        ("wbt.window", 100.0, ms(all.throttle.window)),
    ];
    for (id, kernel, ours) in pairs {
        assert_eq!(ours, kernel, "{id}");
    }
    let Some(folder) = std::env::var_os("WEARMARK_PUBLISHED") else {
        println!("skipped: WEARMARK_PUBLISHED is not set");
        return;
    };
    let path = std::path::Path::new(&folder).join("host.toml");
    let text = std::fs::read_to_string(&path).expect("the folder holds host.toml");
    let table: toml::Table = text.parse().expect("it is TOML");
    let entries = table["entry"].as_array().expect("it has entries");
    let value = |id: &str| -> f64 {
        let entry = entries.iter().find(|entry| entry["id"].as_str() == Some(id)).expect(id);
        let value = &entry["value"];
        value.as_float().or(value.as_integer().map(|whole| whole as f64)).expect(id)
    };
    for (id, kernel, _) in pairs {
        assert_eq!(kernel, value(id), "{id}");
    }
}

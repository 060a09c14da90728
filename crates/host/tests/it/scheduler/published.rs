//! The defaults against the figures that were read from the kernels' sources, where they are there:
//! `WEARMARK_PUBLISHED` names the folder that holds `host.toml`.

use host::scheduler::Settings;
use units::Nanos;

#[test]
fn defaults_are_those_of_the_kernels() {
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
    let all = Settings::default();
    let ms = |time: Nanos| time.0 as f64 / 1e6;
    let (antic, deadline, cfq, kyber) = (all.anticipatory, all.deadline, all.cfq, all.kyber);
    let pairs = [
        ("as.read_expire", ms(antic.read_expire)),
        ("as.write_expire", ms(antic.write_expire)),
        ("as.read_batch_expire", ms(antic.read_batch_expire)),
        ("as.write_batch_expire", ms(antic.write_batch_expire)),
        ("as.antic_expire", ms(antic.antic_expire)),
        ("deadline.read_expire", ms(deadline.read_expire)),
        ("deadline.write_expire", ms(deadline.write_expire)),
        ("deadline.writes_starved", f64::from(deadline.writes_starved)),
        ("deadline.fifo_batch", f64::from(deadline.fifo_batch)),
        ("cfq.quantum", f64::from(cfq.quantum)),
        ("cfq.fifo_expire_sync", ms(cfq.fifo_expire_sync)),
        ("cfq.fifo_expire_async", ms(cfq.fifo_expire_async)),
        ("cfq.slice_sync", ms(cfq.slice_sync)),
        ("cfq.slice_async", ms(cfq.slice_async)),
        ("cfq.slice_async_rq", f64::from(cfq.slice_async_rq)),
        ("cfq.slice_idle", ms(cfq.slice_idle)),
        ("cfq.back_seek_max", (cfq.back_seek_max.0 >> 10) as f64),
        ("cfq.back_seek_penalty", cfq.back_seek_penalty as f64),
        ("kyber.depth_read", f64::from(kyber.depth[0])),
        ("kyber.depth_sync_write", f64::from(kyber.depth[1])),
        ("kyber.depth_other", f64::from(kyber.depth[2])),
        ("kyber.batch_read", f64::from(kyber.batch[0])),
        ("kyber.batch_sync_write", f64::from(kyber.batch[1])),
        ("kyber.batch_other", f64::from(kyber.batch[2])),
        ("kyber.target_read", ms(kyber.read_lat)),
        ("kyber.target_write", ms(kyber.write_lat)),
        ("wbt.window", ms(all.throttle.window)),
    ];
    for (id, ours) in pairs {
        assert_eq!(ours, value(id), "{id}");
    }
}

//! The disk model against eight really measured drives.
//!
//! The data are DiskSim's validation traces (measured service times) and parameter files, which
//! are not part of this repository: `shared/traces/disksim-valid.tar.zst` beside the workspace, or
//! under the path in `WEARMARK_SHARED`. Without them the test says that it was skipped.
//!
//! A trace is replayed as it was recorded: each request arrives its measured gap after the
//! completion of the one before. The figure is the demerit (Ruemmler and Wilkes), against that
//! which DiskSim reports for the same drive and trace.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use profile::disksim;
use trace::Op;
use units::{Bytes, Nanos};

use crate::support::request;

/// The drive, the figure of DiskSim in ms, and the most that ours may be: what it is, and 2 %.
const DRIVES: [(&str, f64, f64); 8] = [
    ("atlas10k", 0.268, 0.111),
    ("atlas_III", 0.378, 0.207),
    ("barracuda", 0.349, 0.239),
    ("cheetah9LP", 0.107, 0.082),
    ("dec_rz26", 0.340, 0.445),
    ("hp_c2247a", 0.090, 0.085),
    ("hp_c2490a", 0.254, 0.246),
    ("st41601n", 0.083, 0.088),
];

/// Names and contents of the archive; none where it is not at hand.
fn archive() -> Option<BTreeMap<String, String>> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let shared = std::env::var_os("WEARMARK_SHARED").map_or(PathBuf::from(beside), PathBuf::from);
    let path = shared.join("traces/disksim-valid.tar.zst");
    let Ok(file) = std::fs::File::open(&path) else {
        println!("skipped: no measured drives: {} is not there", path.display());
        return None;
    };
    let mut bytes = Vec::new();
    zstd::Decoder::new(file).expect("zstd").read_to_end(&mut bytes).expect("a whole archive");
    Some(untar(&bytes))
}

/// The regular files of a tar archive: headers of 512 bytes, contents padded to as much.
fn untar(bytes: &[u8]) -> BTreeMap<String, String> {
    let text = |field: &[u8]| {
        String::from_utf8_lossy(field).trim_end_matches(['\0', ' ']).trim().to_owned()
    };
    let mut files = BTreeMap::new();
    let mut at = 0;
    while at + 512 <= bytes.len() && bytes[at] != 0 {
        let header = &bytes[at..at + 512];
        let size = usize::from_str_radix(&text(&header[124..136]), 8).expect("an octal size");
        let content = &bytes[at + 512..at + 512 + size];
        if matches!(header[156], b'0' | 0) {
            let name = text(&header[..100]);
            let name = name.rsplit('/').next().unwrap_or("").to_owned();
            files.insert(name, String::from_utf8_lossy(content).into_owned());
        }
        at += 512 + size.next_multiple_of(512);
    }
    files
}

/// One measured request: `R|W  what  block  count  service_us  gap_us`.
struct Measured {
    op: Op,
    block: u64,
    count: u32,
    service_ns: u64,
    gap_ns: u64,
}

fn measured(text: &str) -> Vec<Measured> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ns = |field: &str| (field.parse::<f64>().expect("a time in us") * 1e3).round() as u64;
        Measured {
            op: if fields[0] == "R" { Op::Read } else { Op::Write },
            block: fields[2].parse().expect("a block"),
            count: fields[3].parse().expect("a count"),
            service_ns: ns(fields[4]),
            gap_ns: ns(fields[5]),
        }
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

#[test]
fn eight_measured_drives() {
    let Some(files) = archive() else { return };
    let mut better = 0;
    for (name, disksim, most) in DRIVES {
        let mut read = |file: &str| {
            files.get(file).cloned().ok_or_else(|| std::io::ErrorKind::NotFound.into())
        };
        let imported = disksim::import(name, &format!("{name}.parv"), &mut read)
            .unwrap_or_else(|error| panic!("{error}"));
        let mut device = model::device(&imported.profile, 1);
        let requests = measured(&files[&format!("{name}.trace")]);
        let (mut now, mut times, mut real) = (0, Vec::new(), Vec::new());
        for one in &requests {
            let request = request(one.op, one.block * 512, one.count * 512);
            assert!(Bytes(request.offset.0 + u64::from(request.len)) <= device.capacity().unwrap());
            let completion = device.submit(Nanos(now), &request).0;
            times.push(completion - now);
            real.push(one.service_ns);
            now = completion + one.gap_ns;
        }
        // Request by request, for a person who wants to know where a model goes wrong.
        if let Some(folder) = std::env::var_os("HDD_DUMP") {
            let rows = requests.iter().zip(&times).map(|(one, time)| {
                format!("{:?} {} {} {} {}\n", one.op, one.block, one.count, one.service_ns, time)
            });
            std::fs::write(PathBuf::from(folder).join(name), rows.collect::<String>()).unwrap();
        }
        let found = stats::demerit(&times, &real) / 1e6;
        let mean = |times: &[u64]| times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e6;
        println!(
            "{name:>10}: demerit {found:.3} ms, DiskSim {disksim:.3} ms; mean {:.3} ms, measured \
             {:.3} ms; ignored {:?}",
            mean(&times),
            mean(&real),
            imported.ignored
        );
        better += usize::from(found <= disksim);
        assert!(found <= most, "{name}: {found:.3} ms, was {most} ms");
    }
    println!("at most DiskSim's figure on {better} of {} drives", DRIVES.len());
}

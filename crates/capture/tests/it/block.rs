//! The block layer, where this machine lets us look at it.

use std::path::Path;

use capture::block;
use capture::sqlite::{FileClass, FileInfo};
use trace::Op;

#[test]
fn direct_writes_of_ours_show_with_place_size_and_class() {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let capture = match block::start(home) {
        Ok(capture) => capture,
        Err(unavailable) => {
            return println!("skipped: {unavailable} ({})", unavailable.remedy);
        }
    };
    let directory = tempfile::tempdir_in(home).unwrap();
    let path = directory.path().join("x");
    std::fs::write(&path, vec![1; 1 << 20]).unwrap();
    std::fs::File::open(&path).unwrap().sync_all().unwrap();
    let size = 1 << 20;
    let file = FileInfo { class: FileClass::Log, path, base_offset: 0, size };
    let physical = capture.finish(&[file]);
    let trace = &physical.trace;
    trace.validate().unwrap();
    let log = FileClass::Log as u16;
    let ours = trace.requests().filter(|request| request.stream == log && request.op == Op::Write);
    let bytes: u64 = ours.map(|request| u64::from(request.len)).sum();
    assert_eq!(bytes, size, "{:?}", trace.origin);
    let flushes = trace.requests().filter(|request| request.op == Op::Flush).count();
    assert!(flushes >= 1 || physical.stats.is_none_or(|stats| stats.flushes == 0));
    assert!(trace.service.as_ref().unwrap().iter().all(|service| *service > 0));
    println!("{} requests, {:?}", trace.count(), physical.stats);
    println!("losses {} unpaired {}", physical.losses, physical.unpaired);
}

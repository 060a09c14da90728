//! Cells on real files, with both engines.

use events::Quiet;
use io::engine::Device;
use io::target::{Need, TargetSpec, prepare};
use probe::{dry_run, run, run_on};
use trace::Op;

use crate::{cells, options, scratch};

const RANGE: u64 = 8 << 20;

#[test]
fn every_kind_of_cell_runs_on_a_file_and_cleans_up() {
    let Some(directory) = scratch() else { return };
    let plan = options(directory.path(), cells(), RANGE);
    let measured = run(&plan, &Quiet, &mut |_| {}).unwrap();
    assert_eq!(measured.cells.len(), cells().len());
    for result in &measured.cells {
        assert!(result.requests > 0, "{result:?}");
        assert!(result.classes.iter().all(|class| class.service.min_ns > 0));
    }
    let flushes = measured.cells[3].classes.iter().find(|class| class.op == Op::Flush);
    assert!(flushes.is_some_and(|class| class.service.count > 0));
    assert!(measured.target.logical_block_bytes >= 512);
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "only the file of the O_DIRECT check stays: {left:?}");
    let text = serde_json::to_string(&measured).unwrap();
    let read: fit::measurement::Measurements = serde_json::from_str(&text).unwrap();
    assert_eq!(
        read.cells[0].classes[0].service.buckets,
        measured.cells[0].classes[0].service.buckets
    );
}

#[test]
fn the_blocking_engine_measures_the_same_cells() {
    let Some(directory) = scratch() else { return };
    let plan = options(directory.path(), cells(), RANGE);
    let need = Need { range_bytes: RANGE, keep_file: false, must_write: true };
    let prepared = prepare(&TargetSpec::new(directory.path()), &need).unwrap();
    prepared.device.use_psync();
    assert_eq!(prepared.device.engine_name(), "psync");
    // Blocking calls need a thread per outstanding request.
    assert_eq!(prepared.device.layout(cells()[2].depth), (32, 1));
    let measured =
        run_on(&prepared.device, &prepared.info, &plan, Vec::new(), &Quiet, &mut |_| {}).unwrap();
    assert_eq!(measured.cells.len(), cells().len());
    assert!(measured.cells.iter().all(|result| result.requests > 0));
}

#[test]
fn preconditioning_writes_every_block_differently() {
    let Some(directory) = scratch() else { return };
    let path = directory.path().join("kept");
    let mut plan = options(&path, vec![cells()[0]], RANGE);
    plan.keep_file = true;
    run(&plan, &Quiet, &mut |_| {}).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, RANGE);
    let mut blocks: Vec<&[u8]> = bytes.chunks(4096).collect();
    let count = blocks.len();
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks.len(), count, "blocks of the range are equal to each other");
}

#[test]
fn a_dry_run_touches_nothing() {
    let Some(directory) = scratch() else { return };
    let summary = dry_run(&options(directory.path(), cells(), RANGE)).unwrap();
    assert_eq!(summary.steps.len(), cells().len() + 1);
    assert!(summary.writes_bytes >= RANGE && summary.expected_s > 0.3);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_is_truncated_during_the_run_ends_it() {
    let Some(directory) = scratch() else { return };
    let path = directory.path().join("shrinks");
    std::fs::write(&path, vec![7u8; RANGE as usize]).unwrap();
    let plan = options(&path, vec![cells()[0]; 4], RANGE);
    let outcome = run(&plan, &Quiet, &mut |_| {
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
    });
    match outcome {
        Err(probe::Error::Io(io::Error::Shrank { size, .. })) => assert_eq!(size.0, 4096),
        other => panic!("{other:?}"),
    }
    assert!(path.exists(), "a file of the user's is never removed");
}

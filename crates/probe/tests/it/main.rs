//! The probe crate from outside: on the null device, on devices that fail on purpose, on real
//! files.

mod faults;
mod files;
mod null;
mod replay;
mod safety;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use events::{Event, Sink};
use fit::measurement::{Arrival, Cell, Durability, Order};
use io::target::{TargetInfo, TargetSpec};
use probe::plan::closed;
use probe::{Options, PlanKind};

/// Keeps every event, and asks to stop at the n-th question.
#[derive(Default)]
struct Recording {
    events: Mutex<Vec<Event>>,
    questions: AtomicUsize,
    stop_at: Option<usize>,
}

impl Sink for Recording {
    fn emit(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }

    fn cancelled(&self) -> bool {
        let asked = self.questions.fetch_add(1, Ordering::Relaxed);
        self.stop_at.is_some_and(|stop_at| asked >= stop_at)
    }
}

impl Recording {
    fn taken(self) -> Vec<Event> {
        self.events.into_inner().unwrap()
    }
}

/// What is known about a device that is not there.
fn info(range_bytes: u64) -> TargetInfo {
    TargetInfo {
        path: "null".into(),
        range_bytes,
        logical_block_bytes: 512,
        writable: true,
        fresh: true,
        ..TargetInfo::default()
    }
}

/// A few short cells of every kind.
fn cells() -> Vec<Cell> {
    let poisson = Arrival::Poisson { rate_per_s: 20_000.0 };
    vec![
        closed(Order::Random, 1.0, 4096, 1),
        closed(Order::Sequential, 0.0, 8192, 4),
        closed(Order::Random, 0.5, 512, 32),
        Cell { durability: Durability::Flush, ..closed(Order::Sequential, 0.0, 4096, 1) },
        Cell { durability: Durability::Dsync, ..closed(Order::Random, 0.0, 4096, 2) },
        Cell { arrival: poisson, ..closed(Order::Random, 1.0, 4096, 64) },
    ]
}

fn options(path: impl Into<PathBuf>, cells: Vec<Cell>, range_bytes: u64) -> Options {
    Options {
        range_bytes,
        plan: PlanKind::Cells(cells),
        cell_seconds: Some(0.05),
        realtime: false,
        ..Options::new(TargetSpec::new(path))
    }
}

/// A scratch directory on a disk with O_DIRECT; says why there is none.
fn scratch() -> Option<tempfile::TempDir> {
    let home = std::env::var_os("CARGO_TARGET_TMPDIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    let directory = tempfile::tempdir_in(home).unwrap();
    let file = directory.path().join("direct");
    std::fs::write(&file, [0u8; 4096]).unwrap();
    let flags = rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::RDONLY;
    match rustix::fs::open(&file, flags, rustix::fs::Mode::empty()) {
        Ok(_) => Some(directory),
        Err(error) => {
            println!("skipped: no O_DIRECT under {}: {error}", directory.path().display());
            None
        }
    }
}

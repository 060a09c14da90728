//! A place on disk, small settings, and which servers there are.

use std::alloc::{self, GlobalAlloc, Layout};
use std::cell::Cell;
use std::path::{Path, PathBuf};

use dbms::{Durability, Error, Instance, Places, Programs, Settings, System};
use tempfile::TempDir;
use units::Bytes;

/// The servers that are installed; says which are not.
pub(crate) fn installed() -> Vec<System> {
    let found = |&system: &System| match Programs::find(system) {
        Ok(_) => true,
        Err(error) => {
            println!("skipped: {error}");
            false
        }
    };
    System::ALL.into_iter().filter(found).collect()
}

/// A directory on disk that is removed at the end. Every user can enter it.
pub(crate) fn place() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let below = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let place = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o755))
        .prefix("dbms-")
        .tempdir_in(below);
    place.unwrap()
}

/// Small, and fast to create: nothing is synced.
pub(crate) fn small() -> Settings {
    Settings {
        buffer: Bytes(16 << 20),
        log_size: Bytes(32 << 20),
        connections: 10,
        durability: Durability::Off,
        ..Settings::default()
    }
}

pub(crate) fn create(system: System, data: &Path) -> Result<Instance, Error> {
    Instance::create(system, &Places::at(data), &small(), &events::Quiet)
}

/// Names below a directory.
pub(crate) fn listing(path: &Path) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

/// Whether a process runs.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts what each thread allocates.
struct Counting;

// SAFETY: everything is passed on to the system's allocator; the counter allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { alloc::System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { alloc::System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often this thread has allocated.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.get()
}

//! What every fuzz target does with its bytes; the ordinary tests run the same on the seeds.
//!
//! The first byte chooses the options, the rest is the input. A reading gives a trace that holds
//! together or an error that names its place; reading with one thread or two gives the same.

use std::io::Cursor;
use std::path::Path;

use formats::{Format, ReadOptions, TimeUnit, own, read_from};
use trace::Trace;

/// Inputs beyond this find nothing that shorter ones do not.
pub const LONGEST_BYTES: usize = 256 << 10;

/// Reads the bytes as that format.
pub fn check(format: Format, data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let bytes = &bytes[..bytes.len().min(LONGEST_BYTES)];
    if format == Format::Own {
        check_own(bytes);
        return;
    }
    let options = options(*choice);
    let read = |options: &ReadOptions| {
        let read = read_from(Cursor::new(bytes.to_vec()), Path::new("fuzz"), format, options);
        read.map(|(trace, notes)| (trace, notes.bad)).map_err(|error| error.to_string())
    };
    let once = read(&options);
    match &once {
        Ok((trace, _)) => check_trace(trace),
        Err(message) => assert!(message.starts_with("fuzz"), "an error names its file: {message}"),
    }
    let parallel = read(&ReadOptions { threads: 2, ..options.clone() });
    assert_eq!(parallel, once, "threads make no difference");
}

fn options(choice: u8) -> ReadOptions {
    ReadOptions {
        lenient: choice & 1 != 0,
        queued_times: choice & 2 != 0,
        time_unit: (choice & 4 != 0).then_some(TimeUnit::Milliseconds),
        sector_bytes: (choice & 8 != 0).then_some(4096),
        read_is_one: (choice & 16 != 0).then_some(choice & 32 != 0),
        columns: (choice & 128 != 0)
            .then(|| "time:us,*,op,offset:sectors,size".parse().ok())
            .flatten(),
        ..ReadOptions::default()
    }
}

fn check_trace(trace: &Trace) {
    assert_eq!(trace.validate(), Ok(()));
}

/// Our own format is read from a file that can be sought in.
fn check_own(bytes: &[u8]) {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let thread = format!("{:?}", std::thread::current().id());
    let number: String = thread.chars().filter(char::is_ascii_digit).collect();
    let path = folder.join(format!("wearmark-fuzz-{}-{number}", std::process::id()));
    if std::fs::write(&path, bytes).is_ok() {
        if let Ok(trace) = own::read(&path) {
            check_trace(&trace);
        }
        _ = std::fs::remove_file(&path);
    }
}

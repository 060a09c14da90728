//! Long work with the interpreter's lock released, which Ctrl-C stops.
//!
//! A handler of Python runs only when its main thread asks for it. So the work is done by a thread
//! of its own while the caller's thread waits for it and asks, twenty times a second.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use events::{Event, Sink, Warning};
use pyo3::prelude::*;

use crate::failure::warn;

/// How often a waiting thread looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Stops readings, which take a flag that lives as long as the program. A signal ends all of them.
pub static READING: AtomicBool = AtomicBool::new(false);

/// Where the work sends its events: warnings are kept for Python, the rest is not shown.
#[derive(Default)]
pub struct Collect {
    stopped: AtomicBool,
    warnings: Mutex<Vec<Warning>>,
}

impl Sink for Collect {
    fn emit(&self, event: Event) {
        if let Event::Warning(warning) = event {
            self.warnings.lock().expect("no panic while holding the lock").push(warning);
        }
    }

    fn cancelled(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Runs the handlers of signals that came meanwhile.
fn handlers(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// Does `work` without the lock of the interpreter, and passes its warnings on.
///
/// # Errors
/// That of the work; the `KeyboardInterrupt`, or what another handler of a signal raised.
pub fn without_lock<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Collect) -> PyResult<T> + Send,
) -> PyResult<T> {
    let sink = Collect::default();
    let result = py.detach(|| {
        std::thread::scope(|scope| {
            let (done, wait) = mpsc::channel();
            let sink = &sink;
            let worker = scope.spawn(move || {
                let result = work(sink);
                // The other side waits for it until it comes.
                _ = done.send(());
                result
            });
            let mut signal = None;
            while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(LOOK_EVERY) {
                if signal.is_none()
                    && let Err(raised) = Python::attach(handlers)
                {
                    sink.stopped.store(true, Ordering::Relaxed);
                    READING.store(true, Ordering::Relaxed);
                    signal = Some(raised);
                }
            }
            let result = match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            match signal {
                Some(raised) => {
                    READING.store(false, Ordering::Relaxed);
                    Err(raised)
                }
                None => result,
            }
        })
    })?;
    warn(py, &sink.warnings.into_inner().expect("no thread of the work panicked"))?;
    Ok(result)
}

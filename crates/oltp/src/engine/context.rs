//! Tells the capture whose I/O this thread causes: all that the run knows of `capture`.

use super::users::Job;

/// Marks the I/O of this thread as that of a worker's transaction.
#[inline]
pub(crate) fn enter(worker: usize, transaction: u32, job: &Job) {
    capture::sqlite::set_context(capture::sqlite::Context {
        actor: worker as u16,
        transaction,
        kind: job.kind.code() as u8,
    });
}

/// Marks the I/O of this thread as nobody's: opening, checkpoints at close.
pub(crate) fn leave(worker: usize) {
    capture::sqlite::set_context(capture::sqlite::Context {
        actor: worker as u16,
        transaction: 0,
        kind: 0,
    });
}

/// The clock of the capture, ns.
#[inline]
pub(crate) fn clock_ns() -> u64 {
    capture::clock_ns()
}

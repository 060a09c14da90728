//! Transactions in virtual time: terminals, processors, locks, a log with group commit, background
//! tasks and devices.
//!
//! [`closed_loop`](crate::closed_loop) keeps what each captured actor did and when it waited; here
//! nothing of the capture's order is kept. Terminals draw *templates* (what one captured
//! transaction did: compute, lock, read, insert into the log, commit, wait for the client) and
//! everything that they wait for is simulated: the processors, the locks, the holder of the log,
//! the devices. So the number of terminals, the rate, the processors, the devices and the commit
//! rule can be asked about.
//!
//! - **Processors** ([`Processors`]): as Linux shares them (a queue each, the earliest eligible
//!   virtual deadline first, groups of tasks; `processors/fair.rs`), or processor sharing.
//! - **Terminals and sessions**: a terminal asks, a free session does it, first come first served.
//!   Of one kind of transaction the terminal need not wait for the answer ([`Setup::deferred`]).
//! - **Log** ([`Log`]): PostgreSQL's rule (`XLogFlush`: own position flushed, or wait for the
//!   holder of the write lock, or lead; the leader writes and flushes all that was inserted before
//!   it began; all waiters wake and look again) or InnoDB's (row locks are released before the
//!   flush; the leader wakes those it satisfied and one next leader). Written are whole pages, the
//!   last partial one again; full-page images and the filling of new segments add to it. A leader
//!   may wait for others to join it ([`CommitDelay`]).
//! - **Locks** ([`LockClass`]): one key of a class; of those who wait the first is next, or any, as
//!   the commit rule has it. Templates take classes in rising order, so there is no deadlock.
//! - **Background** ([`Background`]): rounds of steps by time or by transactions.
//! - **Caches that fill** ([`Warming`]): extra reads by the number of transactions since the start,
//!   by the kind of each, before it commits.
//! - **Devices**: one per file class or shared; a [`model::Queued`] one sees every arrival. Where
//!   two or more of these work at the same time, completions are looked for in steps of 1 us.
//!
//! Invariants, asserted: every transaction that started ended once or is in work at the end; the
//! waits of a transaction add up to its response, to the nanosecond; time never runs back. The same
//! setup gives the same bytes. Tested against closed forms: machine repairman, M/M/c, group commit
//! in the open and in the closed loop, hot rows.

mod commit;
mod desk;
mod engine;
mod events;
mod locks;
mod log;
mod outcome;
mod processors;
mod setup;
mod storage;
mod template;
mod terminals;

pub use engine::transactions;
pub use outcome::{IoOutcome, KindOutcome, LogOutcome, TransactionOutcome, Wait, Waits};
pub use setup::{
    Background, Class, CommitDelay, Delays, Discipline, Fill, GroupCommit, Images, Length, Load,
    LockClass, Log, Pace, Path, Processors, Scheduling, Setup, Switching, Think, Wakes, Warming,
};
pub use template::{Step, Template, Templates};

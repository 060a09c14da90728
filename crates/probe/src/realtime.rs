//! Asks the kernel to run a thread on time: real-time priority, resident memory, exact timers.
//!
//! Each is a request: what was refused is recorded in the certificate, never an error.

/// What the calling thread got, and gives back when dropped.
#[derive(Debug)]
pub(crate) struct Urgency {
    /// `fifo:10`, `nice:-20` or `normal`.
    pub(crate) priority: String,
    /// Whether all memory of the process is resident.
    pub(crate) memory_locked: bool,
    policy: libc::c_int,
    parameters: libc::sched_param,
    nice: libc::c_int,
}

/// Above ordinary threads, below the kernel's own real-time threads (50 and up).
const FIFO_PRIORITY: libc::c_int = 10;

/// Timers of the calling thread fire when they are due rather than up to 50 us later.
pub(crate) fn short_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes a number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

impl Urgency {
    /// Raises the calling thread as far as the kernel lets it, if `wanted`, and makes the memory
    /// that the process has now resident, if `lock_memory`.
    pub(crate) fn raise(wanted: bool, lock_memory: bool) -> Self {
        // SAFETY: these calls read or set scheduling parameters of the calling thread through
        // pointers to locals that outlive them.
        unsafe {
            let mut parameters: libc::sched_param = std::mem::zeroed();
            libc::sched_getparam(0, &raw mut parameters);
            let mut this = Self {
                priority: "normal".to_owned(),
                memory_locked: false,
                policy: libc::sched_getscheduler(0),
                parameters,
                nice: libc::getpriority(libc::PRIO_PROCESS, 0),
            };
            if !wanted {
                return this;
            }
            this.memory_locked = lock_memory && libc::mlockall(libc::MCL_CURRENT) == 0;
            let mut fifo = parameters;
            fifo.sched_priority = FIFO_PRIORITY;
            if libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const fifo) == 0 {
                this.priority = format!("fifo:{FIFO_PRIORITY}");
            } else if libc::setpriority(libc::PRIO_PROCESS, 0, -20) == 0 {
                "nice:-20".clone_into(&mut this.priority);
            }
            this
        }
    }
}

impl Drop for Urgency {
    fn drop(&mut self) {
        // SAFETY: as in `raise`.
        unsafe {
            if self.priority.starts_with("fifo") {
                libc::sched_setscheduler(0, self.policy, &raw const self.parameters);
            }
            if self.priority.starts_with("nice") {
                libc::setpriority(libc::PRIO_PROCESS, 0, self.nice);
            }
            if self.memory_locked {
                libc::munlockall();
            }
        }
    }
}

//! CPU time of one thread, and whether a thread is on a processor.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// User and system time that the calling thread has used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ThreadCpu {
    /// Seconds in user mode.
    pub user_s: f64,
    /// Seconds in the kernel.
    pub system_s: f64,
}

impl ThreadCpu {
    /// As of now.
    pub fn now() -> Self {
        // SAFETY: rusage is plain integers, for which zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a live rusage of this frame. RUSAGE_THREAD and a valid pointer
        // cannot fail.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Self { user_s: seconds(usage.ru_utime), system_s: seconds(usage.ru_stime) }
    }

    /// Both.
    pub fn total_s(self) -> f64 {
        self.user_s + self.system_s
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self { user_s: self.user_s - earlier.user_s, system_s: self.system_s - earlier.system_s }
    }
}

/// Tells whether a thread of this process runs (or is ready to), through `/proc/self/task/TID/stat`
/// (proc(5)).
#[derive(Debug)]
pub(crate) struct RunState(File);

impl RunState {
    /// For a thread by the kernel's number; none where /proc does not tell.
    pub fn open(thread: i32) -> Option<Self> {
        File::open(format!("/proc/self/task/{thread}/stat")).ok().map(Self)
    }

    /// Whether it is running or runnable, rather than asleep or in an I/O.
    pub fn runs(&self) -> bool {
        let mut text = [0; 64];
        let read = self.0.read_at(&mut text, 0).unwrap_or(0);
        // The state follows the command's name, which ends at the last parenthesis.
        let text = &text[..read];
        let end = text.iter().rposition(|&byte| byte == b')');
        end.and_then(|end| text.get(end + 2)) == Some(&b'R')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeping_thread_does_not_run() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        assert!(RunState::open(thread).unwrap().runs());
        let (sender, receiver) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            sender.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            let _ = stopped.recv();
        });
        let state = RunState::open(receiver.recv().unwrap()).unwrap();
        let asleep = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            !state.runs()
        });
        assert!(asleep);
        drop(stop);
        sleeper.join().unwrap();
    }

    #[test]
    fn only_this_threads_time_counts() {
        let before = ThreadCpu::now();
        std::thread::spawn(|| (0..20_000_000u64).fold(0, |a, b| std::hint::black_box(a ^ b)))
            .join()
            .unwrap();
        let asleep = ThreadCpu::now().since(before).total_s();
        let before = ThreadCpu::now();
        while ThreadCpu::now().since(before).total_s() < 0.02 {}
        assert!(asleep < 0.01, "{asleep}");
    }
}

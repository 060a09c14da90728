//! The event loop of one device: takes requests in from its ports, asks the model, answers on time.
//!
//! One thread, no locks on the way of a request. It sleeps until shortly before the next answer is
//! due and looks in turns at its ports and the clock for the rest, since a sleep ends late by tens
//! of microseconds: how late is learned while it serves ([`Sleeps`]).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use events::LiveTimes;
use model::{Device, Ram};
use profile::ram::RamParameters;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::Nanos;

use crate::clock::{now_ns, punctual};
use crate::counters::Counters;
use crate::faults::Faults;
use crate::line::{Charge, Done, Line};
use crate::path::Path;
use crate::port::{Port, Taken};
use crate::{Fate, Lost};

/// Pace of looking at orders and of publishing what was done, ns.
const CONTROL_EVERY: u64 = 50_000_000;
/// Pace of looking whether to stop when all ports have ended.
const STOP_EVERY: Duration = Duration::from_millis(2);
/// Requests taken in between two looks at the answers that are due.
const TAKEN_AT_ONCE: usize = 16;

/// What the thread of a device and its owner tell each other.
#[derive(Default)]
pub(crate) struct Shared {
    /// End now; what waits is not answered.
    pub(crate) stop: AtomicBool,
    /// Carried out in their order, soon.
    pub(crate) orders: Mutex<Vec<Order>>,
    /// What was done so far.
    pub(crate) status: Mutex<Status>,
    /// Answers since somebody looked, in the order of `Op::ALL`.
    pub(crate) live: Arc<[LiveTimes; 4]>,
    /// What to do with what was not made durable, at the end; nothing is taken back without.
    pub(crate) fate: Mutex<Option<Fate>>,
}

/// A change to what is served.
pub(crate) enum Order {
    /// Takes over from the device so far.
    Device(Box<dyn Device>),
    /// What fails from now on.
    Faults(Faults),
    /// The service has ended: what is served from now on does not count.
    End,
}

/// What a device is doing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    pub(crate) counters: Counters,
    pub(crate) depth: usize,
    pub(crate) model: Vec<model::Counter>,
    /// Whether all ports have ended.
    pub(crate) is_over: bool,
}

/// A device that takes one time for every request.
pub(crate) fn constant_device(time: Duration) -> Box<dyn Device> {
    Box::new(Ram::new(&RamParameters {
        capacity: None,
        latency_ns: time.as_nanos() as f64,
        bytes_per_s: 1e18,
        ports: 1024,
    }))
}

/// What a port is owed when a job is done.
enum Owed {
    /// The answer to a request.
    Answer(Vec<u8>),
    /// Word that so many bytes are written back.
    Written(u64),
}

type Payload = (usize, Owed);

/// How late sleeps end on this machine: 5 us on one, 50 us on a virtual one whose processor the
/// host has to wake. So long before an answer is due the thread watches the clock instead.
struct Sleeps {
    spin_ns: u64,
    least_ns: u64,
}

impl Sleeps {
    /// Watching for longer costs more than lateness does.
    const MOST_NS: u64 = 120_000;
    /// A step down for each sleep that ended in time and 32 up for each that did not keep about 97
    /// of 100 in time.
    const STEP_NS: u64 = 50;
    const UP: u64 = 32;

    fn new(least_ns: u64) -> Self {
        Self { spin_ns: least_ns, least_ns }
    }

    /// A sleep ended so late.
    fn ended(&mut self, late_ns: u64) {
        let most_ns = Self::MOST_NS.max(self.least_ns);
        self.spin_ns = if late_ns > self.spin_ns {
            (self.spin_ns + Self::UP * Self::STEP_NS).min(most_ns)
        } else {
            self.spin_ns.saturating_sub(Self::STEP_NS).max(self.least_ns)
        };
    }
}

/// How a device is served.
pub(crate) struct Manner {
    /// The clock is watched for the last part of a wait.
    pub(crate) spin: Nanos,
    /// What the way between program and emulator takes.
    pub(crate) path: Path,
    /// What goes wrong from the start.
    pub(crate) faults: Faults,
}

/// A device, its ports and its orders.
pub(crate) struct Server<'a> {
    line: Line<Payload>,
    ports: Vec<Option<Box<dyn Port>>>,
    /// Ports that have ended and hold what a power cut takes.
    ended: Vec<Box<dyn Port>>,
    sleeps: Sleeps,
    started: u64,
    faults: Faults,
    shared: &'a Shared,
    done: Vec<Done<Payload>>,
    /// Something has changed that no request tells of.
    is_changed: bool,
    /// What is published stays as it is.
    has_ended: bool,
}

impl<'a> Server<'a> {
    pub(crate) fn new(
        device: Box<dyn Device>,
        ports: Vec<Box<dyn Port>>,
        Manner { spin, path, faults }: Manner,
        shared: &'a Shared,
    ) -> Self {
        let started = now_ns();
        let mut line = Line::new(device, started);
        line.show_in(Arc::clone(&shared.live));
        line.set_path(path);
        Self {
            line,
            started,
            faults,
            ports: ports.into_iter().map(Some).collect(),
            ended: Vec::new(),
            sleeps: Sleeps::new(spin.0),
            shared,
            done: Vec::new(),
            is_changed: false,
            has_ended: false,
        }
    }

    /// Serves until told to stop or until every port has ended; then takes back what it is told to.
    pub(crate) fn run(mut self) -> io::Result<Lost> {
        punctual();
        let result = self.serve();
        self.publish();
        self.shared.status.lock().expect("no panic under the lock").is_over = true;
        result?;
        // Until then nobody has said whether the power is cut.
        while !self.ended.is_empty() && !self.shared.stop.load(Ordering::Relaxed) {
            std::thread::sleep(STOP_EVERY);
        }
        let fate = *self.shared.fate.lock().expect("no panic under the lock");
        let mut lost = Lost::default();
        if let Some(fate) = fate {
            for port in self.ports.iter_mut().flatten().chain(&mut self.ended) {
                lost += port.cut_power(fate)?;
            }
        }
        Ok(lost)
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut control_at = 0;
        loop {
            let now = now_ns();
            if now >= control_at {
                if self.shared.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                self.control(now);
                control_at = now + CONTROL_EVERY;
            }
            self.answer(now)?;
            let is_busy = self.take_in()?;
            if self.ports.iter().all(Option::is_none) {
                return Ok(());
            }
            if !is_busy {
                self.wait(control_at)?;
            }
        }
    }

    fn control(&mut self, now: u64) {
        let mut orders = self.shared.orders.lock().expect("no panic under the lock");
        for order in orders.drain(..) {
            match order {
                Order::Device(device) => self.line.replace(device, now),
                Order::Faults(faults) => self.faults = faults,
                Order::End => {
                    self.publish();
                    self.has_ended = true;
                }
            }
            self.is_changed = true;
        }
        drop(orders);
        self.publish();
    }

    fn publish(&mut self) {
        let mut status = self.shared.status.lock().expect("no panic under the lock");
        let counters = self.line.counters();
        self.is_changed |= status.counters.requests() != counters.requests();
        if !self.has_ended && std::mem::take(&mut self.is_changed) {
            status.counters.clone_from(counters);
            status.model = self.line.device().counters();
        }
        status.depth = self.line.depth();
    }

    /// Sends the answers that are due.
    fn answer(&mut self, now: u64) -> io::Result<()> {
        self.line.finish(now, &mut self.done);
        for done in self.done.drain(..) {
            let (port, owed) = done.payload;
            match (&mut self.ports[port], owed) {
                (Some(port), Owed::Answer(answer)) => port.send(&answer)?,
                (Some(port), Owed::Written(bytes)) => port.written(bytes),
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// Takes in what waits, a bounded number of requests per port; tells whether there was any.
    fn take_in(&mut self) -> io::Result<bool> {
        let mut is_busy = false;
        for index in 0..self.ports.len() {
            for _ in 0..TAKEN_AT_ONCE {
                let Some(port) = &mut self.ports[index] else { break };
                // Before the bytes are moved: that takes 2 us, a new page of a file 20 and more,
                // and all of it is a part of the device's time.
                let now = now_ns();
                match port.take()? {
                    Taken::Nothing => break,
                    Taken::Answered => {}
                    Taken::Job(charge, answer) => {
                        if self.faults.fails(now - self.started, &charge) {
                            port.written(charge.written_back.map_or(0, |back| back.bytes()));
                            if !answer.is_empty() {
                                let answer = port.failed(&answer);
                                port.send(&answer)?;
                            }
                        } else {
                            self.begin(index, now, &charge, answer);
                        }
                    }
                    Taken::Port(port) => self.ports.push(Some(port)),
                    Taken::Ended => self.close(index),
                }
                is_busy = true;
            }
        }
        Ok(is_busy)
    }

    /// A job begins; one without an answer only writes back.
    fn begin(&mut self, index: usize, now: u64, charge: &Charge, answer: Vec<u8>) {
        let reaches = |at: u64| {
            let elapsed = at.saturating_sub(self.started);
            self.started + self.faults.reaches_at(elapsed)
        };
        let back = charge.written_back.iter();
        for (file, (parts, since)) in
            back.flat_map(|back| back.writes.iter().map(|write| (back.file, write)))
        {
            let bytes = parts.iter().map(|part| part.len).sum();
            self.line.write_back(reaches(*since), file, parts, (index, Owed::Written(bytes)));
        }
        if !answer.is_empty() {
            self.line.arrive_later(now, reaches(now), charge, (index, Owed::Answer(answer)));
        }
    }

    /// Nothing more will come from a port.
    fn close(&mut self, index: usize) {
        let port = self.ports[index].take();
        self.ended.extend(port.filter(|port| port.outlives_its_users()));
    }

    /// Sleeps until a request comes, until an answer is nearly due, or until the next control.
    fn wait(&mut self, control_at: u64) -> io::Result<()> {
        let now = now_ns();
        let due = self.line.next_at();
        let due = due.map_or(u64::MAX, |at| at.saturating_sub(self.sleeps.spin_ns));
        let until = due.min(control_at);
        if until <= now {
            std::hint::spin_loop();
            return Ok(());
        }
        let left = until - now;
        let left = Timespec {
            tv_sec: (left / 1_000_000_000) as i64,
            tv_nsec: (left % 1_000_000_000) as i64,
        };
        let mut waiting: Vec<PollFd<'_>> = Vec::with_capacity(self.ports.len());
        for port in self.ports.iter().flatten() {
            let out = if port.wants_write() { PollFlags::OUT } else { PollFlags::empty() };
            let into = if port.wants_read() { PollFlags::IN } else { PollFlags::empty() };
            waiting.push(PollFd::from_borrowed_fd(port.fd(), into | out));
        }
        match poll(&mut waiting, Some(&left)) {
            Ok(0) => {
                self.sleeps.ended(now_ns().saturating_sub(until));
                Ok(())
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sleeps;

    /// Sleeps that end late by 20 to 70 us: the clock is watched for as long as all but the last
    /// few of them need, and no longer than the bound.
    #[test]
    fn the_clock_is_watched_for_as_long_as_sleeps_are_late() {
        let mut rng = stats::rng::Rng::new(1);
        let mut sleeps = Sleeps::new(10_000);
        let (mut in_time, mut all) = (0, 0);
        for number in 0..20_000 {
            let late = 20_000 + rng.below(50_000);
            if number >= 2_000 {
                all += 1;
                in_time += u32::from(late <= sleeps.spin_ns);
            }
            sleeps.ended(late);
        }
        let share = f64::from(in_time) / f64::from(all);
        assert!((0.95..0.99).contains(&share), "{share}");
        assert!((60_000..72_000).contains(&sleeps.spin_ns), "{}", sleeps.spin_ns);
        (0..1_000).for_each(|_| sleeps.ended(10_000_000));
        assert_eq!(sleeps.spin_ns, Sleeps::MOST_NS);
        (0..10_000).for_each(|_| sleeps.ended(1_000));
        assert_eq!(sleeps.spin_ns, 10_000);
    }
}

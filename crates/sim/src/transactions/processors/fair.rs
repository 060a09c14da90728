//! Processors of Linux: each has a queue of its own ([`Queue`]), and tasks go back to where they
//! ran last.
//!
//! A task that wakes up takes the processor from the one that runs there where the queue would
//! rather have it (`check_preempt_wakeup_fair`), so that one who computes long is interrupted by
//! those who compute little. A client and the task that serves it are two tasks; the tasks of a
//! group share what one task gets (`CONFIG_FAIR_GROUP_SCHED`, `calc_group_shares`): sessions of a
//! terminal with autogroups, control groups. A waking task looks for an idle processor only while
//! all are not too busy (`update_idle_cpu_scan`); one that idles takes somebody over at its next
//! tick, and now and then the mean lengths of busy queues are evened out (`load_balance`).

use super::super::events::{Events, What};
use super::super::setup::{Scheduling, Switching};
use super::queue::{Queue, WHOLE};

/// Ticks, ns: `CONFIG_HZ=250`.
const TICK_NS: u64 = 4_000_000;
/// Utilisation at which no idle processor is looked for: `imbalance_pct` of 117.
const BUSY: f64 = 0.85;
/// Half-life of the utilisation, ns (PELT).
const HALF_LIFE_NS: f64 = 32e6;
/// Time between two looks at the queues of busy processors, ns: 16 times an interval of 4 ms.
const EVEN_NS: u64 = 64_000_000;
/// Queues that differ by no more than this are even: `imbalance_pct`.
const UNEVEN: f64 = 1.17;
/// Mean lengths of queues are over about this many switches.
const SWITCHES: f64 = 256.0;
/// Scheduling: of the server, of the clients.
const GROUPS: usize = 2;
/// Who is a group in the queue of a processor.
const GROUP: u32 = u32::MAX - GROUPS as u32;

#[derive(Clone, Debug, Default)]
struct Task {
    home: u16,
    group: Option<u8>,
    /// What is owed to it while it sleeps.
    lag: i64,
    /// Still to run, ns.
    left: u64,
    /// Whether nobody waits for that.
    behind: bool,
    /// Where it ran last, and what tasks had run there when it stopped, ns.
    ran: Option<(usize, u64)>,
}

#[derive(Clone, Debug)]
struct Processor {
    queue: Queue,
    groups: [Queue; GROUPS],
    group_lag: [i64; GROUPS],
    /// Who runs.
    current: Option<u32>,
    /// From when on it runs, or was charged for.
    since: u64,
    /// What all tasks have run here, ns.
    ran_ns: u64,
    /// What it has to do before a task goes on, ns: it has interrupted others.
    owes_ns: u64,
    generation: u32,
    /// Somebody woke up who should run instead.
    resched: bool,
    /// Whether a look for others' work is due.
    looks: bool,
    /// Tasks that run or wait here, now and on average.
    awake: u32,
    load: f64,
}

#[derive(Debug)]
pub(super) struct Fair {
    processors: Vec<Processor>,
    tasks: Vec<Task>,
    /// Tasks of each group in all queues.
    in_group: [i64; GROUPS],
    wake_ns: u64,
    switching: Switching,
    /// Spent on switching, ns.
    pub(super) switching_ns: u64,
    finds_idle: bool,
    /// The processor whose task goes from one step to the next.
    in_hand: Option<usize>,
    busy: u32,
    /// Tasks that run or wait to run.
    awake: u32,
    even_at: u64,
    utilisation: f64,
    utilisation_at: u64,
}

/// Number of an actor's own task, or of its client's.
fn task(actor: u32, of_client: bool) -> u32 {
    2 * actor + u32::from(of_client)
}

impl Fair {
    pub(super) fn new(
        count: u32,
        slice_ns: u64,
        (wake_ns, switching): (u64, Switching),
        scheduling: Scheduling,
        terminals: u32,
        actors: usize,
    ) -> Self {
        let queue = Queue::new(slice_ns);
        let processor = Processor {
            groups: [queue.clone(), queue.clone()],
            queue,
            group_lag: [0; GROUPS],
            current: None,
            since: 0,
            ran_ns: 0,
            owes_ns: 0,
            generation: 0,
            resched: false,
            looks: false,
            awake: 0,
            load: 0.0,
        };
        let tasks = (0..actors as u32).flat_map(|actor| {
            let of_server = scheduling.server_group && actor < terminals;
            let own = Task { group: of_server.then_some(0), ..Task::default() };
            let client = Task { group: scheduling.client_group.then_some(1), ..Task::default() };
            // Clients lie across, so that half of them are on the processor of their server.
            [
                Task { home: (actor % count) as u16, ..own },
                Task { home: (actor / count % count) as u16, ..client },
            ]
        });
        Self {
            processors: vec![processor; count as usize],
            tasks: tasks.collect(),
            in_group: [0; GROUPS],
            wake_ns,
            switching,
            switching_ns: 0,
            finds_idle: scheduling.finds_idle,
            in_hand: None,
            busy: 0,
            awake: 0,
            even_at: EVEN_NS,
            utilisation: 0.0,
            utilisation_at: 0,
        }
    }

    /// A task that slept wants to run for `ns`.
    pub(super) fn ready(
        &mut self,
        (actor, of_client): (u32, bool),
        ns: u64,
        now: u64,
        events: &mut Events,
    ) {
        let who = task(actor, of_client);
        if std::mem::take(&mut self.tasks[who as usize].behind) {
            return self.goes_on_for(who, ns, now, events);
        }
        let at = self.place_for(who, now);
        self.tasks[who as usize].left = ns;
        self.tasks[who as usize].home = at as u16;
        let over = self.charge(at, now);
        self.awake += 1;
        self.enqueue(at, who);
        let processor = &self.processors[at];
        if processor.current.is_none() {
            self.switch(at, now, self.wake_ns, events);
        } else if over || self.preempts(at, who) {
            self.reschedule(at, now, events);
        } else {
            self.look_for_work(now, events);
        }
    }

    /// A task that has not slept yet has more to do.
    fn goes_on_for(&mut self, who: u32, ns: u64, now: u64, events: &mut Events) {
        let at = usize::from(self.tasks[who as usize].home);
        self.charge(at, now);
        self.tasks[who as usize].left += ns;
        let processor = &mut self.processors[at];
        if processor.current == Some(who) {
            processor.generation = processor.generation.wrapping_add(1);
            self.schedule(at, events);
        }
    }

    /// An actor's own task computes for `ns`, and nobody waits for that.
    pub(super) fn behind(&mut self, actor: u32, ns: u64, now: u64, events: &mut Events) {
        self.ready((actor, false), ns, now, events);
        self.tasks[task(actor, false) as usize].behind = true;
    }

    /// The one in hand goes on so, or leaves, if it is the actor's client.
    pub(super) fn go_on_behind(&mut self, actor: u32, ns: u64, now: u64, events: &mut Events) {
        self.go_on((actor, false), ns, now, events);
        self.tasks[task(actor, false) as usize].behind = true;
    }

    /// Where a task wakes up: where it ran last, or on an idle processor, where one is looked for.
    fn place_for(&mut self, who: u32, now: u64) -> usize {
        let home = usize::from(self.tasks[who as usize].home);
        if self.processors[home].current.is_none() || self.rests_at(home, who) {
            return home;
        }
        let is_idle = |processor: &Processor| processor.current.is_none();
        if self.busy as usize == self.processors.len() || !self.scans(now) {
            return home;
        }
        self.processors.iter().position(is_idle).unwrap_or(home)
    }

    fn rests_at(&self, at: usize, who: u32) -> bool {
        let processor = &self.processors[at];
        match self.tasks[who as usize].group {
            Some(group) => processor.groups[usize::from(group)].is_asleep(who),
            None => processor.queue.is_asleep(who),
        }
    }

    /// Whether so little is done that idle processors are looked for.
    fn scans(&mut self, now: u64) -> bool {
        self.use_until(now);
        let free = 1.0 - (self.utilisation / BUSY).powi(2);
        self.finds_idle || free * self.processors.len() as f64 >= 1.0
    }

    fn use_until(&mut self, now: u64) {
        let passed = (now - self.utilisation_at) as f64;
        self.utilisation_at = now;
        let keep = (-passed / HALF_LIFE_NS).exp2();
        let share = f64::from(self.busy) / self.processors.len() as f64;
        self.utilisation = self.utilisation * keep + share * (1.0 - keep);
    }

    /// Charges who runs until now; gives whether its slice is over.
    fn charge(&mut self, at: usize, now: u64) -> bool {
        let processor = &mut self.processors[at];
        let Some(current) = processor.current else { return false };
        let ns = now.saturating_sub(processor.since);
        processor.since = processor.since.max(now);
        processor.ran_ns += ns;
        let task = &mut self.tasks[current as usize];
        task.left = task.left.saturating_sub(ns);
        let over = processor.queue.charge(ns);
        match task.group {
            Some(group) => processor.groups[usize::from(group)].charge(ns) || over,
            None => over,
        }
    }

    fn enqueue(&mut self, at: usize, who: u32) {
        let processor = &mut self.processors[at];
        processor.awake += 1;
        let task = &mut self.tasks[who as usize];
        let lag = std::mem::take(&mut task.lag);
        let Some(group) = task.group.map(usize::from) else {
            return processor.queue.place(who, WHOLE, lag);
        };
        if !processor.groups[group].contains(who) {
            self.in_group[group] += 1;
        }
        processor.groups[group].place(who, WHOLE, lag);
        let entity = GROUP + group as u32;
        if !processor.queue.contains(entity) {
            let lag = processor.group_lag[group];
            processor.queue.place(entity, WHOLE, lag);
        }
        self.weigh(at, group);
    }

    /// A group has as much of a processor as of its tasks are there.
    fn weigh(&mut self, at: usize, group: usize) {
        let processor = &mut self.processors[at];
        let here = processor.groups[group].len() as i64;
        let weight = (WHOLE * here / self.in_group[group].max(1)).max(2);
        processor.queue.set_weight(GROUP + group as u32, weight);
    }

    fn preempts(&self, at: usize, who: u32) -> bool {
        let processor = &self.processors[at];
        match self.tasks[who as usize].group.map(usize::from) {
            Some(group) => {
                let entity = GROUP + group as u32;
                let own = &processor.groups[group];
                if processor.queue.current == Some(entity) {
                    own.choose() == Some(who)
                } else {
                    processor.queue.choose() == Some(entity)
                }
            }
            None => processor.queue.choose() == Some(who),
        }
    }

    fn reschedule(&mut self, at: usize, now: u64, events: &mut Events) {
        if self.in_hand == Some(at) {
            self.processors[at].resched = true;
            return;
        }
        let interrupt_ns = self.switching.interrupt_ns;
        if let Some(own) = self.in_hand {
            self.processors[own].owes_ns += interrupt_ns;
            self.switching_ns += interrupt_ns;
        }
        self.switching_ns += interrupt_ns;
        self.switch(at, now, interrupt_ns, events);
    }

    /// What a task that goes on computes more, since others have run where it did, ns.
    fn cold_ns(&self, at: usize, who: u32) -> u64 {
        let Switching { cold_share, cold_ns, .. } = self.switching;
        let task = &self.tasks[who as usize];
        let others = match task.ran {
            Some((last, ran_ns)) if last == at => self.processors[at].ran_ns - ran_ns,
            _ => u64::MAX,
        };
        ((task.left.min(others) as f64 * cold_share) as u64).min(cold_ns)
    }

    /// Lets the next one run, or nobody.
    fn switch(&mut self, at: usize, now: u64, wake_ns: u64, events: &mut Events) {
        self.use_until(now);
        self.even_out(now);
        let before = self.processors[at].current;
        let was_busy = before.is_some();
        if let Some(before) = before {
            self.tasks[before as usize].ran = Some((at, self.processors[at].ran_ns));
        }
        let next = self.pick(at);
        let cold_ns = next.map_or(0, |next| self.cold_ns(at, next));
        self.switching_ns += cold_ns;
        let processor = &mut self.processors[at];
        let owed_ns = std::mem::take(&mut processor.owes_ns);
        processor.load += (f64::from(processor.awake) - processor.load) / SWITCHES;
        processor.current = next;
        processor.resched = false;
        processor.generation = processor.generation.wrapping_add(1);
        processor.since = now + owed_ns + wake_ns + cold_ns;
        match (was_busy, next.is_some()) {
            (false, true) => self.busy += 1,
            (true, false) => self.busy -= 1,
            _ => {}
        }
        if next.is_some() {
            self.schedule(at, events);
        }
    }

    fn schedule(&self, at: usize, events: &mut Events) {
        let processor = &self.processors[at];
        let Some(current) = processor.current else { return };
        let task = &self.tasks[current as usize];
        let own =
            task.group.map_or(u64::MAX, |group| processor.groups[usize::from(group)].slice_left());
        let ns = task.left.min(processor.queue.slice_left()).min(own);
        let generation = processor.generation;
        events.push(processor.since + ns, What::Burst { processor: at as u16, generation });
    }

    /// Who is next; those who sleep and owe no more leave.
    fn pick(&mut self, at: usize) -> Option<u32> {
        let processor = &mut self.processors[at];
        processor.queue.current = None;
        processor.groups.iter_mut().for_each(|group| group.current = None);
        loop {
            let entity = processor.queue.choose()?;
            if entity < GROUP {
                if processor.queue.is_asleep(entity) {
                    processor.queue.remove(entity);
                    continue;
                }
                processor.queue.current = Some(entity);
                return Some(entity);
            }
            let group = (entity - GROUP) as usize;
            let own = &mut processor.groups[group];
            let Some(who) = own.choose() else {
                processor.group_lag[group] = processor.queue.remove(entity);
                continue;
            };
            if own.is_asleep(who) {
                own.remove(who);
                self.in_group[group] -= 1;
                continue;
            }
            own.current = Some(who);
            processor.queue.current = Some(entity);
            return Some(who);
        }
    }

    /// What an event was of: the actor whose computing is done, if any.
    pub(super) fn over(
        &mut self,
        (at, generation): (u16, u32),
        now: u64,
        events: &mut Events,
    ) -> Option<u32> {
        let at = usize::from(at);
        if self.processors[at].generation != generation {
            return None;
        }
        let slice_over = self.charge(at, now);
        self.processors[at].resched |= slice_over;
        let current = self.processors[at].current.expect("an event of one that runs");
        if self.tasks[current as usize].left > 0 {
            self.switch(at, now, 0, events);
            return None;
        }
        self.in_hand = Some(at);
        if std::mem::take(&mut self.tasks[current as usize].behind) {
            self.leave(now, events);
            return None;
        }
        Some(current / 2)
    }

    /// The one in hand wants to run for `ns`, as itself or as the other of the two.
    pub(super) fn go_on(
        &mut self,
        (actor, of_client): (u32, bool),
        ns: u64,
        now: u64,
        events: &mut Events,
    ) {
        let at = self.in_hand.expect("somebody is in hand");
        let who = task(actor, of_client);
        if self.processors[at].current != Some(who) {
            self.ready((actor, of_client), ns, now, events);
            return self.leave(now, events);
        }
        self.in_hand = None;
        self.tasks[who as usize].left = ns;
        if self.processors[at].resched {
            self.switch(at, now, 0, events);
        } else {
            let processor = &mut self.processors[at];
            processor.generation = processor.generation.wrapping_add(1);
            processor.since = now + std::mem::take(&mut processor.owes_ns);
            self.schedule(at, events);
        }
    }

    /// The one in hand sleeps.
    pub(super) fn leave(&mut self, now: u64, events: &mut Events) {
        let at = self.in_hand.take().expect("somebody is in hand");
        let processor = &mut self.processors[at];
        let who = processor.current.expect("it runs");
        self.awake -= 1;
        processor.awake -= 1;
        let task = &mut self.tasks[who as usize];
        match task.group.map(usize::from) {
            None => task.lag = processor.queue.sleep(who).unwrap_or(0),
            Some(group) => {
                if let Some(lag) = processor.groups[group].sleep(who) {
                    task.lag = lag;
                    self.in_group[group] -= 1;
                }
                if processor.groups[group].is_empty() {
                    processor.group_lag[group] = processor.queue.remove(GROUP + group as u32);
                } else {
                    self.weigh(at, group);
                }
            }
        }
        self.switch(at, now, 0, events);
        if self.processors[at].current.is_none() {
            if self.finds_idle {
                self.take_over(at, now, events);
            } else {
                self.look_for_work(now, events);
            }
        }
    }

    /// A processor that idles while others wait looks at them at its next tick.
    fn look_for_work(&mut self, now: u64, events: &mut Events) {
        if self.busy as usize == self.processors.len() || self.awake <= self.busy {
            return;
        }
        for (at, one) in self.processors.iter_mut().enumerate() {
            if one.current.is_none() && !one.looks {
                one.looks = true;
                let tick = (now / TICK_NS + 1) * TICK_NS;
                events.push(tick, What::Balance(at as u16));
            }
        }
    }

    /// The tick of a processor that may idle.
    pub(super) fn balance(&mut self, at: u16, now: u64, events: &mut Events) {
        let at = usize::from(at);
        self.processors[at].looks = false;
        if self.processors[at].current.is_none() {
            self.take_over(at, now, events);
            self.look_for_work(now, events);
        }
    }

    /// An idle processor takes a task from the one with the longest queue.
    fn take_over(&mut self, at: usize, now: u64, events: &mut Events) {
        if self.awake <= self.busy {
            return;
        }
        let longest = (0..self.processors.len()).max_by_key(|at| self.processors[*at].awake);
        let Some(from) = longest.filter(|from| self.processors[*from].awake > 1) else { return };
        if self.pull(from, at, now) {
            self.switch(at, now, self.wake_ns, events);
        }
    }

    /// Moves a task that waits to another queue; tells whether there was one.
    fn pull(&mut self, from: usize, to: usize, now: u64) -> bool {
        self.charge(from, now);
        self.charge(to, now);
        let Some(who) = self.processors[from].waiting() else { return false };
        let processor = &mut self.processors[from];
        processor.awake -= 1;
        let task = &mut self.tasks[who as usize];
        task.home = to as u16;
        match task.group.map(usize::from) {
            None => task.lag = processor.queue.remove(who),
            Some(group) => {
                task.lag = processor.groups[group].remove(who);
                self.in_group[group] -= 1;
                if processor.groups[group].is_empty() {
                    processor.group_lag[group] = processor.queue.remove(GROUP + group as u32);
                } else {
                    self.weigh(from, group);
                }
            }
        }
        self.enqueue(to, who);
        true
    }

    /// Evens out the queues of busy processors, now and then.
    fn even_out(&mut self, now: u64) {
        if now < self.even_at {
            return;
        }
        self.even_at = now + EVEN_NS;
        if (self.busy as usize) < self.processors.len() {
            return;
        }
        let load = |at: &usize| self.processors[*at].load;
        let by_load = |a: &usize, b: &usize| load(a).total_cmp(&load(b));
        let from = (0..self.processors.len()).max_by(by_load).expect("there is one");
        let to = (0..self.processors.len()).min_by(by_load).expect("there is one");
        let (most, least) = (load(&from), load(&to));
        if most > least * UNEVEN {
            let moves = ((most - least) / 2.0) as u32;
            let _moved = (0..moves).take_while(|_| self.pull(from, to, now)).count();
        }
    }
}

impl Processor {
    /// A task that waits here.
    fn waiting(&self) -> Option<u32> {
        let own = self.queue.waiting_below(GROUP);
        own.or_else(|| self.groups.iter().find_map(|group| group.waiting_below(GROUP)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Tasks that compute for ever, 50 us at a time; gives what each got of `until`.
    fn shares(fair: &mut Fair, events: &mut Events, tasks: usize, until: u64) -> Vec<f64> {
        let mut had = vec![0.0; tasks];
        while let Some((now, what)) = events.pop().filter(|(now, _)| *now < until) {
            match what {
                What::Burst { processor, generation } => {
                    let current = fair.processors[usize::from(processor)].current;
                    if let Some(actor) = fair.over((processor, generation), now, events) {
                        let who = current.expect("it ran");
                        had[who as usize] += 50_000.0 / until as f64;
                        fair.go_on((actor, who % 2 == 1), 50_000, now, events);
                    }
                }
                What::Balance(at) => fair.balance(at, now, events),
                _ => unreachable!("there are no other events"),
            }
        }
        had
    }

    fn fair(count: u32, scheduling: Scheduling, actors: usize) -> (Fair, Events) {
        (
            Fair::new(count, MS, (0, Switching::default()), scheduling, actors as u32, actors),
            Events::default(),
        )
    }

    #[test]
    fn a_group_gets_what_one_task_gets() {
        for (scheduling, server, client) in [
            (Scheduling { client_group: true, ..Scheduling::default() }, 1.0 / 3.0, 1.0 / 6.0),
            (Scheduling::default(), 0.25, 0.25),
            (
                Scheduling { client_group: true, server_group: true, ..Scheduling::default() },
                0.25,
                0.25,
            ),
        ] {
            let (mut fair, mut events) = fair(1, scheduling, 2);
            for who in [(0, false), (1, false), (0, true), (1, true)] {
                fair.ready(who, 50_000, 0, &mut events);
            }
            let had = shares(&mut fair, &mut events, 4, 3000 * MS);
            for (at, share) in [(0, server), (1, client), (2, server), (3, client)] {
                assert!((had[at] - share).abs() < 0.01, "{scheduling:?}: {had:?}");
            }
        }
    }

    /// One who computes for 2 ms, and one who wakes up meanwhile: it waits for the end of the slice
    /// where nothing is owed to it, and interrupts where something is.
    #[test]
    fn who_wakes_up_interrupts_where_it_is_owed_something() {
        for (lag, done_at) in [(0, MS + 30_001), (400_000, 130_000)] {
            let (mut fair, mut events) = fair(1, Scheduling::default(), 2);
            fair.ready((0, false), 2 * MS, 0, &mut events);
            fair.tasks[2].lag = lag;
            fair.ready((1, false), 30_000, 100_000, &mut events);
            let mut done = Vec::new();
            while let Some((now, what)) = events.pop() {
                let What::Burst { processor, generation } = what else { continue };
                if let Some(actor) = fair.over((processor, generation), now, &mut events) {
                    done.push((actor, now));
                    fair.leave(now, &mut events);
                }
            }
            assert_eq!(done, [(1, done_at), (0, 2 * MS + 30_000)]);
        }
    }

    /// Who wakes a task on another processor that computes pays for the interrupt, and so does that
    /// processor.
    #[test]
    fn an_interrupt_costs_both_processors() {
        let switching = Switching { interrupt_ns: 8000, ..Switching::default() };
        let mut fair = Fair::new(2, MS, (0, switching), Scheduling::default(), 4, 4);
        let mut events = Events::default();
        fair.ready((0, false), 2 * MS, 0, &mut events);
        fair.ready((1, false), 100_000, 0, &mut events);
        // Actor 2 sleeps on the processor of actor 0, and is owed something.
        fair.tasks[4].lag = 400_000;
        let mut done = Vec::new();
        while let Some((now, what)) = events.pop() {
            let What::Burst { processor, generation } = what else { continue };
            let Some(actor) = fair.over((processor, generation), now, &mut events) else {
                continue;
            };
            done.push((actor, now));
            if done.len() == 1 {
                fair.ready((2, false), 30_000, now, &mut events);
                fair.go_on((1, false), 50_000, now, &mut events);
            } else {
                fair.leave(now, &mut events);
            }
        }
        let after = 100_000 + 8000;
        let computed = 2 * MS + 30_000 + 8000;
        assert_eq!(done, [(1, 100_000), (2, after + 30_000), (1, after + 50_000), (0, computed)]);
        assert_eq!(fair.switching_ns, 16_000);
    }

    /// On busy processors everybody stays where it is; an idle one takes somebody over at its tick.
    #[test]
    fn work_moves_only_at_a_tick_of_one_that_idles() {
        let (mut fair, mut events) = fair(2, Scheduling::default(), 4);
        (fair.utilisation, fair.busy) = (1.0, 0);
        for (actor, ns) in [(0, 9 * MS), (2, 9 * MS), (1, MS)] {
            fair.ready((actor, false), ns, 0, &mut events);
        }
        assert_eq!(fair.tasks[4].home, 0, "actor 2 waits behind actor 0");
        let mut moved = None;
        while let Some((now, what)) = events.pop() {
            match what {
                What::Balance(at) => {
                    fair.balance(at, now, &mut events);
                    moved.get_or_insert((now, at));
                }
                What::Burst { processor, generation } => {
                    if fair.over((processor, generation), now, &mut events).is_some() {
                        fair.leave(now, &mut events);
                    }
                }
                _ => unreachable!("there are no other events"),
            }
        }
        assert_eq!(moved, Some((TICK_NS, 1)));
        assert_eq!((fair.busy, fair.awake), (0, 0));
        assert!(fair.processors.iter().all(|one| one.awake == 0));
    }
}

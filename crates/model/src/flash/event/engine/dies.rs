//! What dies and channels do, and what they do next.

use profile::flash::Suspend;
use stats::rng;

use super::{Engine, Happening, Kind, PageOp};
use crate::flash::event::array::Work;
use crate::flash::event::{MOST_OVERTAKES, Reason};
use crate::flash::gc::Victim;
use crate::observe::Cause;

impl<V: Victim> Engine<V> {
    /// Interrupts `at` for a read, where that is allowed and worth it.
    pub(super) fn suspend(&mut self, at: u32) {
        let Some(Suspend { suspend_ns, most, .. }) = self.events_of.suspend else { return };
        let die = &mut self.dies[at as usize];
        let can = matches!(die.work, Work::Programming(_) | Work::Copying(_) | Work::Erasing(_));
        let left = die.until.saturating_sub(self.clock);
        if !can || die.suspended.is_some() || die.suspends >= most || left <= suspend_ns {
            return;
        }
        // Where reads do not go first they are among the others: bring this one to the front.
        if !self.events_of.reads_first {
            let read = die.others.pop_back().expect("the read that asks for it");
            die.reads.push_back(read);
        }
        die.suspended = Some((die.work, left));
        die.interrupted = std::mem::take(&mut die.joined);
        die.suspends += 1;
        self.suspends += 1;
        self.begin(at, Work::Suspending, suspend_ns);
    }

    /// Lets the die do `work`, which takes `ns`.
    pub(super) fn begin(&mut self, at: u32, work: Work, ns: u64) {
        self.note_work(at, work);
        let die = &mut self.dies[at as usize];
        die.work = work;
        die.until = self.clock + ns;
        die.generation = die.generation.wrapping_add(1);
        let event = Happening::Die(at, die.generation);
        self.schedule(self.clock + ns, event);
    }

    /// Chooses what the idle die `at` does next.
    pub(super) fn dispatch(&mut self, at: u32) {
        if self.dies[at as usize].suspended.is_some() {
            return self.dispatch_suspended(at);
        }
        self.dies[at as usize].suspends = 0;
        let urgent = self.plane_below(at, self.urgent_below);
        let others_wait = urgent.is_some() || !self.dies[at as usize].others.is_empty();
        let die = &mut self.dies[at as usize];
        let patient = die.overtakes < MOST_OVERTAKES || !others_wait;
        if let Some(number) = patient.then(|| die.reads.pop_front()).flatten() {
            die.overtakes += u32::from(others_wait);
            return self.sense(at, number);
        }
        die.overtakes = 0;
        if urgent.is_some_and(|plane| self.clean(at, plane, Reason::Short)) {
            return;
        }
        if let Some(&number) = self.dies[at as usize].others.front() {
            let PageOp { kind, plane, stream, .. } = self.ops[number as usize];
            if !kind.writes() {
                self.dies[at as usize].others.pop_front();
                return self.sense(at, number);
            }
            if self.store.has_room(plane, stream) {
                let first = self.furthest_behind(at);
                let number = self.dies[at as usize].others.remove(first).expect("it waits");
                self.note_turn(at, number);
                return self.wait_for_bus(at, number);
            }
            let is_full = self.store.must_fold(plane);
            let cleans = self.clean(at, plane, if is_full { Reason::Full } else { Reason::Short });
            assert!(cleans, "plane {plane} is full and has nothing to clean");
            return;
        }
        let short = self.plane_below(at, self.start_below);
        if short.is_some_and(|plane| self.clean(at, plane, Reason::Short)) {
            return;
        }
        self.rest(at);
    }

    /// Folds, where the idle die `at` has something to fold: at once where it does so already, else
    /// after a while.
    fn rest(&mut self, at: u32) {
        let Some(after_ns) = self.fold_after_ns else { return };
        let planes = self.store.geometry.planes_per_die;
        let mut planes = at * planes..(at + 1) * planes;
        let Some(plane) = planes.find(|plane| self.store.can_fold(*plane)) else { return };
        let die = &self.dies[at as usize];
        if die.folds {
            self.clean(at, plane, Reason::Idle);
        } else {
            let event = Happening::Rested(at, die.generation);
            self.schedule(self.clock + after_ns, event);
        }
    }

    /// Nothing came for die `at` since it became idle at `generation`.
    pub(super) fn rested(&mut self, at: u32, generation: u32) {
        let die = &mut self.dies[at as usize];
        if die.generation == generation && die.work == Work::Idle {
            die.folds = true;
            self.dispatch(at);
        }
    }

    /// While something is suspended, reads go on; then it resumes.
    pub(super) fn dispatch_suspended(&mut self, at: u32) {
        let resume_ns = self.events_of.suspend.map_or(0, |suspend| suspend.resume_ns);
        let die = &mut self.dies[at as usize];
        if let Some(number) = die.reads.pop_front() {
            return self.sense(at, number);
        }
        let (work, left) = die.suspended.take().expect("something is suspended");
        die.joined = std::mem::take(&mut die.interrupted);
        self.begin(at, work, left + resume_ns);
    }

    /// A plane of die `at` with fewer free blocks than `bound`, or in the middle of a victim while
    /// it is below.
    pub(super) fn plane_below(&self, at: u32, bound: u32) -> Option<u32> {
        let planes = self.store.geometry.planes_per_die;
        (at * planes..(at + 1) * planes).find(|plane| self.store.blocks.free_count(*plane) < bound)
    }

    /// The next step of cleaning `plane`, and of the planes that take part in it; `false` where
    /// there is nothing to clean.
    pub(super) fn clean(&mut self, at: u32, plane: u32, reason: Reason) -> bool {
        if !self.cleans(plane, reason) {
            return false;
        }
        let mut planes = vec![plane];
        self.cleaned_beside(at, &mut planes, reason);
        let to = self.move_first(&mut planes);
        let Some(to) = to else {
            self.begin(at, Work::Erasing(planes[0]), self.times.erase_ns);
            self.dies[at as usize].joined = planes.split_off(1);
            return true;
        };
        let from: Vec<u32> = planes.iter().map(|plane| self.copy(*plane)).collect();
        self.begin(at, Work::Copying(planes[0]), self.times.copy_ns(&from, to));
        true
    }

    /// Whether there is a victim in `plane` that is cleaned, from now on where it was not.
    pub(super) fn cleans(&mut self, plane: u32, reason: Reason) -> bool {
        if !self.store.is_cleaning(plane) {
            if !self.store.begin(plane, reason) {
                return false;
            }
            self.note_cleaning(plane, true);
        }
        true
    }

    /// Moves the next page of the victim of `plane`; gives its number in the old block.
    fn copy(&mut self, plane: u32) -> u32 {
        let (lpn, from, _) = self.store.move_next(plane).expect("a page is left");
        if let Some(cache) = self.map_cache.as_mut().filter(|_| lpn < self.logical_pages) {
            let page = cache.page_of(lpn);
            if !cache.change(page) {
                self.stale[plane as usize].insert(page);
            }
        }
        from
    }

    pub(super) fn sense(&mut self, at: u32, number: u32) {
        let lpn = self.ops[number as usize].lpn;
        // The page may have moved while the read waited, and its old place still holds it.
        let page = self.store.find(lpn).map_or(0, |ppn| self.store.timed_page(ppn));
        let once = u64::from(self.times.read_ns[page as usize]);
        let sensings = 1 + self.retries();
        let joined = self.reads_beside(at, number);
        self.dies[at as usize].folds = false;
        for number in joined.iter().copied().chain([number]) {
            self.note_turn(at, number);
            self.note(number, Cause::Medium, self.clock + once);
            self.note(number, Cause::Retry, self.clock + once * sensings);
        }
        self.begin(at, Work::Sensing(number), once * sensings);
        self.dies[at as usize].joined = joined;
    }

    /// How often a page is sensed again.
    pub(super) fn retries(&mut self) -> u64 {
        let shares = &self.events_of.read_retries;
        if shares.is_empty() {
            return 0;
        }
        self.sensings += 1;
        let draw = rng::at(self.seed, self.sensings) >> 11;
        let mut left = draw as f64 / (1u64 << 53) as f64;
        for (place, share) in shares.iter().enumerate() {
            if left < *share {
                return place as u64 + 1;
            }
            left -= share;
        }
        0
    }

    pub(super) fn work_ends(&mut self, at: u32) {
        self.note_work(at, Work::Idle);
        match std::mem::replace(&mut self.dies[at as usize].work, Work::Idle) {
            Work::Sensing(number) => return self.wait_for_bus(at, number),
            Work::Programming(number) => {
                let joined = std::mem::take(&mut self.dies[at as usize].joined);
                joined.into_iter().chain([number]).for_each(|number| self.programmed(number));
            }
            Work::Erasing(plane) => {
                let joined = std::mem::take(&mut self.dies[at as usize].joined);
                self.erased(&[joined, vec![plane]].concat());
            }
            Work::Copying(_) | Work::Suspending => {}
            Work::Idle | Work::Transferring(_) => unreachable!("neither ends by itself"),
        }
        if self.dies[at as usize].work == Work::Idle {
            self.dispatch(at);
        }
    }

    fn programmed(&mut self, number: u32) {
        let PageOp { kind, lpn, slot, .. } = self.ops[number as usize];
        self.unused_ops.push(number);
        if kind == Kind::Write {
            // Beyond the program itself it was interrupted.
            self.note(number, Cause::Retry, self.clock);
            self.note_part(number);
            self.pending[lpn as usize] -= 1;
            self.part_done(slot);
        }
    }

    fn erased(&mut self, planes: &[u32]) {
        for &plane in planes {
            self.store.erased(plane);
            self.note_cleaning(plane, false);
        }
        // These give the die something to do, so they come after all planes.
        for &plane in planes {
            let stale = std::mem::take(&mut self.stale[plane as usize]);
            for page in stale {
                self.repair_map(page);
            }
        }
    }

    /// Page `page` of the map is wrong in flash: it is read, changed and written.
    pub(super) fn repair_map(&mut self, page: u32) {
        let lpn = self.logical_pages + page;
        match self.store.find(lpn) {
            Some(ppn) => {
                let plane = self.store.plane_of(ppn);
                self.queue_map_op(Kind::MapMerge, lpn, plane);
            }
            None => self.write_map(lpn),
        }
    }

    pub(super) fn wait_for_bus(&mut self, at: u32, number: u32) {
        self.note_work(at, Work::Transferring(number));
        let die = &mut self.dies[at as usize];
        die.folds = false;
        die.work = Work::Transferring(number);
        die.generation = die.generation.wrapping_add(1);
        let channel = usize::from(die.channel);
        self.buses[channel].waiting.push_back(at);
        if self.buses[channel].serving.is_none() {
            self.transfer(channel);
        }
    }

    pub(super) fn transfer(&mut self, channel: usize) {
        let bus = &mut self.buses[channel];
        let Some(at) = bus.waiting.pop_front() else { return };
        bus.serving = Some(at);
        let Work::Transferring(number) = self.dies[at as usize].work else {
            unreachable!("a die that waits for its channel")
        };
        let op = &self.ops[number as usize];
        // A write always moves a whole page: a part of one was completed before.
        let writes = matches!(op.kind, Kind::Write | Kind::MapWrite | Kind::Merge);
        let bytes = if writes { self.store.geometry.page_bytes } else { op.bytes };
        let end = self.clock + self.times.transfer_ns(bus, bytes);
        self.note_transfer(channel as u32, number, end);
        self.schedule(end, Happening::Channel(channel as u32));
    }

    pub(super) fn transfer_ends(&mut self, channel: u32) {
        let at = self.buses[channel as usize].serving.take().expect("a die was served");
        let Work::Transferring(number) = self.dies[at as usize].work else {
            unreachable!("a die that transferred")
        };
        let PageOp { kind, lpn, slot, .. } = self.ops[number as usize];
        // The pages of a command cross the channel one after another.
        let next = self.transferred_next(at, number);
        if let Some(next) = next {
            self.note_work(at, Work::Transferring(next));
            self.dies[at as usize].work = Work::Transferring(next);
            self.buses[channel as usize].waiting.push_front(at);
        }
        self.transfer(channel as usize);
        if kind.writes() {
            if next.is_none() {
                self.program(at, number);
            }
            return;
        }
        if next.is_none() {
            self.note_work(at, Work::Idle);
            self.dies[at as usize].work = Work::Idle;
        }
        match kind {
            Kind::Merge => self.queue_write(number),
            _ => self.unused_ops.push(number),
        }
        match kind {
            Kind::Read => {
                self.note_part(number);
                self.part_done(slot);
            }
            Kind::MapRead => self.map_fetched(lpn - self.logical_pages),
            Kind::MapMerge => self.write_map(lpn),
            _ => {}
        }
        if self.dies[at as usize].work == Work::Idle {
            self.dispatch(at);
        }
    }

    /// Programs write `number`, whose data came last, and those that join it.
    fn program(&mut self, at: u32, number: u32) {
        let joined = std::mem::take(&mut self.dies[at as usize].joined);
        let mut ns = 0;
        for &number in joined.iter().chain([&number]) {
            let PageOp { kind, lpn, plane, stream, .. } = self.ops[number as usize];
            let ppn = match kind {
                Kind::Write if self.is_outdated(number) => self.store.waste(plane, stream),
                _ => self.store.write(lpn, plane, stream),
            };
            self.map_pages_written += u64::from(kind == Kind::MapWrite);
            ns = ns.max(u64::from(self.times.program_ns[self.store.timed_page(ppn) as usize]));
        }
        for &number in joined.iter().chain([&number]) {
            self.note(number, Cause::SharedWait, self.clock);
            self.note(number, Cause::Medium, self.clock + ns);
        }
        self.begin(at, Work::Programming(number), ns);
        self.dies[at as usize].joined = joined;
        self.place_held();
    }

    /// Whether a later write of the same page, or a trim, was faster; if not, it is now the newest.
    pub(super) fn is_outdated(&mut self, number: u32) -> bool {
        let PageOp { lpn, version, .. } = self.ops[number as usize];
        let newest = &mut self.newest[lpn as usize];
        // The numbers may wrap; those on their way at the same time are close to each other.
        let outdated = version.wrapping_sub(*newest) as i32 <= 0 && *newest != 0;
        if !outdated {
            *newest = version;
        }
        outdated
    }
}

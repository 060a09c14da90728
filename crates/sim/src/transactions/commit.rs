//! Commits: who flushes the log, who waits, when locks are released.

use trace::Op;

use super::engine::{Engine, Then};
use super::events::What;
use super::log::Stage;
use super::outcome::Wait;

impl Engine<'_> {
    /// An actor asks that the log be durable up to its last record.
    pub(super) fn commit(&mut self, id: u32) {
        let (rule, task) = (self.setup.log.rule, self.is_task(id));
        self.actors[id as usize].as_client = false;
        if task {
            self.actors[id as usize].position = self.log.inserted();
        } else if !self.log.is_flushed(self.actors[id as usize].position) {
            self.log.outcome.commits += 1;
        }
        if !rule.locks_outlive_flush {
            self.unlock(id);
        }
        if self.setup.log.commit_waits || task {
            self.actors[id as usize].then = Then::Check;
        } else {
            self.unlock(id);
        }
    }

    /// Whether the actor's last record is durable; otherwise it waits or leads.
    pub(super) fn committed(&mut self, id: u32) -> bool {
        if self.log.is_flushed(self.actors[id as usize].position) {
            return true;
        }
        let leads = self.log.lead_or_wait(id, self.now);
        let actor = &mut self.actors[id as usize];
        actor.wait = if leads { Wait::LogFlush } else { Wait::LogWait } as usize;
        if leads && let Some(ns) = self.delay(id) {
            self.actors[id as usize].then = Then::Lead(Stage::Join);
            self.events.push(self.now + ns, What::Go(id));
        } else if leads {
            let stage = self.log.next_stage();
            self.lead(id, stage);
        }
        false
    }

    /// How long a leader waits for others to join it, ns; none where too few are in work.
    fn delay(&self, leader: u32) -> Option<u64> {
        let delay = self.setup.log.delay.filter(|delay| delay.ns > 0)?;
        let terminals = &self.actors[..self.setup.terminals as usize];
        let others = (0u32..)
            .zip(terminals)
            .filter(|(id, actor)| *id != leader && actor.busy && actor.wait != Wait::Lock as usize);
        let enough = delay.siblings as usize;
        (others.take(enough).count() == enough).then_some(delay.ns)
    }

    /// The holder of the log takes its next stage; gives what it must compute, ns.
    pub(super) fn lead(&mut self, id: u32, stage: Stage) -> Option<u64> {
        let class = self.setup.log.class;
        let next = match stage {
            Stage::Join => {
                let stage = self.log.join();
                return self.lead(id, stage);
            }
            Stage::Fill => {
                // The kernel sends them together and waits for all; the last one stands for them.
                let mut pieces = self.log.fill().peekable();
                while let Some(piece) = pieces.next() {
                    match pieces.peek() {
                        Some(_) => self.send((class, Op::Write), piece),
                        None => self.issue(id, Wait::LogFlush, (class, Op::Write), piece),
                    }
                }
                Stage::FillFlush
            }
            Stage::FillFlush => {
                self.issue(id, Wait::LogFlush, (class, Op::Flush), (0, 0));
                Stage::Write
            }
            Stage::Write => {
                let (bytes, at) = self.log.write();
                self.issue(id, Wait::LogFlush, (class, Op::Write), (bytes, at));
                Stage::Written
            }
            Stage::Written if self.setup.log.between_cpu_ns > 0 => {
                self.actors[id as usize].then = Then::Lead(Stage::Flush);
                return Some(self.processors.scaled(self.setup.log.between_cpu_ns));
            }
            Stage::Written => return self.lead(id, Stage::Flush),
            Stage::Flush => {
                self.issue(id, Wait::LogFlush, (class, Op::Flush), (0, 0));
                self.log.next_stage()
            }
            Stage::Computed => {
                self.actors[id as usize].then = Then::Lead(Stage::Release);
                return Some(self.processors.scaled(self.setup.log.leader_cpu_ns));
            }
            Stage::Release => unreachable!("released by its caller"),
        };
        self.actors[id as usize].then = Then::Lead(next);
        None
    }

    /// Releases the log and wakes those who waited for it.
    pub(super) fn release_log(&mut self, id: u32) {
        self.actors[id as usize].then = Then::Check;
        let actors = &self.actors;
        let mut woken = std::mem::take(&mut self.woken);
        woken.clear();
        let positions = |waiter: u32| actors[waiter as usize].position;
        woken.extend_from_slice(self.log.release(positions, self.now));
        let ns = self.processors.scaled(self.setup.log.waiter_cpu_ns);
        for waiter in &woken {
            self.charge(*waiter);
            if ns == 0 {
                self.events.push(self.now, What::Go(*waiter));
            } else {
                self.ready(*waiter, ns);
            }
        }
        self.woken = woken;
    }

    /// Releases all locks of an actor.
    pub(super) fn unlock(&mut self, id: u32) {
        while let Some(key) = self.actors[id as usize].keys.pop() {
            let rng = self.setup.log.rule.next_at_random.then_some(&mut self.rng);
            if let Some(next) = self.locks.release(key, id, rng) {
                self.charge(next);
                self.events.push(self.now, What::Go(next));
            }
        }
    }
}

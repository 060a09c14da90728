//! Where the time of requests goes in the event model, and what its resources do: kept only while
//! somebody watches.
//!
//! Every operation on a page has a path of its own, which begins as that of its command; the one
//! that ends last hands its path back. While an operation waits for its die, what the die does
//! meanwhile says what it waits for: cleaning, pages of the map, interrupting something, or else
//! other requests (the queue). An operation that is interrupted itself spends that time on
//! resuming.
//!
//! What was on its way before anybody watched has no path ([`UNSEEN`]); whoever asks counts its
//! time as unknown. Nothing here is part of the state, and nothing here decides anything.
//!
//! Invariants: the parts of a path sum to completion less arrival; spans of a track never overlap.

use std::collections::BTreeMap;

use profile::flash::NONE;

use super::{Engine, Kind};
use crate::flash::event::array::Work;
use crate::flash::gc::Victim;
use crate::observe::{Activity, Cause, Path, Probe, Purpose, Span, Track, TrackKind};
use crate::queued::NO_REQUEST;

/// The moment of what was not watched from its beginning.
const UNSEEN: u64 = u64::MAX;

/// A path in the making.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// Everything before is spent.
    at: u64,
    path: Path,
    /// What the die had spent on each of [`WAITS`] when the wait for it began.
    waits: [u64; WAITS.len()],
}

impl Account {
    const UNSEEN: Self = Self { at: UNSEEN, path: Path::EMPTY, waits: [0; WAITS.len()] };

    fn until(&mut self, cause: Cause, moment: u64) {
        if self.at != UNSEEN {
            self.path.spend(cause, moment.saturating_sub(self.at));
            self.at = self.at.max(moment);
        }
    }
}

/// What a wait for a die can be for, besides other requests.
const WAITS: [Cause; 3] = [Cause::Gc, Cause::Mapping, Cause::Retry];

/// What a die is at.
#[derive(Clone, Copy, Debug, Default)]
struct DieAccount {
    /// Place in [`WAITS`], and since when.
    doing: Option<(usize, u64)>,
    totals: [u64; WAITS.len()],
    /// The span that is open.
    open: Option<(Activity, Purpose, u64, u64)>,
}

impl DieAccount {
    fn totals_at(&self, now: u64) -> [u64; WAITS.len()] {
        let mut totals = self.totals;
        if let Some((place, since)) = self.doing {
            totals[place] += now - since;
        }
        totals
    }
}

/// All that is kept while somebody watches.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    operations: Vec<Account>,
    commands: Vec<Account>,
    dies: Vec<DieAccount>,
    /// By plane: since when its victim is cleaned.
    cleaning: Vec<Option<u64>>,
    finished: BTreeMap<u64, Path>,
    /// With the ticket of the request that they belong to, or that arrived last.
    spans: Vec<(u64, Span)>,
    arrived: u64,
}

fn account(all: &mut Vec<Account>, number: u32) -> &mut Account {
    if all.len() <= number as usize {
        all.resize(number as usize + 1, Account::UNSEEN);
    }
    &mut all[number as usize]
}

impl<V: Victim> Engine<V> {
    /// Somebody watches from now on, or nobody.
    pub fn watch(&mut self, is_watched: bool) {
        if is_watched != self.ledger.is_some() {
            self.ledger = is_watched.then(|| {
                let dies = vec![DieAccount::default(); self.dies.len()];
                let cleaning = vec![None; self.planes.len()];
                Box::new(Ledger { dies, cleaning, ..Ledger::default() })
            });
        }
    }

    /// Hands over what happened since the last time.
    pub fn tell(&mut self, probe: &mut dyn Probe) {
        let Some(ledger) = &mut self.ledger else { return };
        for (ticket, span) in ledger.spans.drain(..) {
            if ticket != NO_REQUEST {
                probe.request(ticket as usize);
            }
            probe.span(&span);
        }
    }

    /// The path of a request that completed.
    pub fn path_of(&mut self, ticket: u64) -> Path {
        let path = self.ledger.as_mut().and_then(|ledger| ledger.finished.remove(&ticket));
        path.unwrap_or_default()
    }

    /// The command of `slot` arrived.
    pub(super) fn note_arrival(&mut self, slot: u32, ticket: u64) {
        let Some(ledger) = &mut self.ledger else { return };
        ledger.arrived = ticket;
        *account(&mut ledger.commands, slot) = Account { at: self.clock, ..Account::UNSEEN };
    }

    /// The command of `slot` spent its time until `moment` on `cause`.
    pub(super) fn note_command(&mut self, slot: u32, cause: Cause, moment: u64) {
        if let Some(ledger) = &mut self.ledger {
            account(&mut ledger.commands, slot).until(cause, moment);
        }
    }

    /// The command of `slot` crosses the interface for `ns` until `end`.
    pub(super) fn note_crossing(&mut self, slot: u32, ns: u64, end: u64) {
        let ticket = self.host.command(slot).ticket;
        let Some(ledger) = &mut self.ledger else { return };
        let command = account(&mut ledger.commands, slot);
        command.until(Cause::SharedWait, end - ns);
        command.until(Cause::Transfer, end);
        let track = Track::new(TrackKind::Interface, 0);
        push(&mut ledger.spans, ticket, Span::new(track, Activity::Transfer, end - ns, end));
    }

    /// The command of `slot` is complete.
    pub(super) fn note_completion(&mut self, slot: u32) {
        let ticket = self.host.command(slot).ticket;
        let Some(ledger) = &mut self.ledger else { return };
        let command = *account(&mut ledger.commands, slot);
        if command.at != UNSEEN {
            ledger.finished.insert(ticket, command.path);
        }
    }

    /// Operation `number` begins, as a part of its command where it has one.
    pub(super) fn note_operation(&mut self, number: u32) {
        let slot = self.ops[number as usize].slot;
        let Some(ledger) = &mut self.ledger else { return };
        let begun = match slot {
            NONE => Account { at: self.clock, ..Account::UNSEEN },
            slot => *account(&mut ledger.commands, slot),
        };
        *account(&mut ledger.operations, number) = begun;
    }

    /// Operation `number` spent its time until `moment` on `cause`.
    pub(super) fn note(&mut self, number: u32, cause: Cause, moment: u64) {
        if let Some(ledger) = &mut self.ledger {
            account(&mut ledger.operations, number).until(cause, moment);
        }
    }

    /// Operation `number` is done, and with it this part of its command.
    pub(super) fn note_part(&mut self, number: u32) {
        let slot = self.ops[number as usize].slot;
        let Some(ledger) = &mut self.ledger else { return };
        let done = *account(&mut ledger.operations, number);
        *account(&mut ledger.commands, slot) = done;
    }

    /// Operation `number` waits for die `at` from now on.
    pub(super) fn note_wait(&mut self, at: u32, number: u32) {
        let Some(ledger) = &mut self.ledger else { return };
        let waits = ledger.dies[at as usize].totals_at(self.clock);
        account(&mut ledger.operations, number).waits = waits;
    }

    /// The wait of operation `number` for die `at` is over.
    pub(super) fn note_turn(&mut self, at: u32, number: u32) {
        let clock = self.clock;
        let Some(ledger) = &mut self.ledger else { return };
        let totals = ledger.dies[at as usize].totals_at(clock);
        let waiting = account(&mut ledger.operations, number);
        let parts = WAITS.iter().zip(totals).zip(waiting.waits);
        for ((cause, now), then) in parts {
            waiting.until(*cause, waiting.at.saturating_add(now - then));
        }
        waiting.until(Cause::Queue, clock);
    }

    /// Die `at` does `work` from now on; what it did ends here.
    pub(super) fn note_work(&mut self, at: u32, work: Work) {
        if self.ledger.is_none() {
            return;
        }
        let (activity, purpose) = match work {
            Work::Idle | Work::Transferring(_) => (None, self.purpose(work)),
            Work::Sensing(_) => (Some(Activity::Read), self.purpose(work)),
            Work::Programming(_) => (Some(Activity::Write), self.purpose(work)),
            Work::Copying(_) => (Some(Activity::Write), Purpose::Gc),
            Work::Erasing(_) => (Some(Activity::Erase), Purpose::Gc),
            Work::Suspending => (Some(Activity::Command), Purpose::Request),
        };
        let doing = match (work, purpose) {
            (Work::Suspending, _) => Some(2),
            (_, Purpose::Mapping) => Some(1),
            (_, Purpose::Gc) => Some(0),
            _ => None,
        };
        let ticket = self.ticket_of(work);
        let clock = self.clock;
        let Some(ledger) = &mut self.ledger else { return };
        let die = &mut ledger.dies[at as usize];
        die.totals = die.totals_at(clock);
        die.doing = doing.map(|place| (place, clock));
        let ended = die.open.take();
        die.open = activity.map(|activity| (activity, purpose, clock, ticket));
        if let Some((activity, purpose, since, ticket)) = ended {
            let span = Span::new(Track::new(TrackKind::Die, at), activity, since, clock);
            push(&mut ledger.spans, ticket, span.on_behalf_of(purpose));
        }
    }

    fn purpose(&self, work: Work) -> Purpose {
        let (Work::Sensing(number) | Work::Programming(number) | Work::Transferring(number)) = work
        else {
            return Purpose::Request;
        };
        match self.ops[number as usize].kind {
            Kind::MapRead | Kind::MapMerge | Kind::MapWrite => Purpose::Mapping,
            Kind::Read | Kind::Merge | Kind::Write => Purpose::Request,
        }
    }

    /// The request that `work` is for, or that arrived last.
    fn ticket_of(&mut self, work: Work) -> u64 {
        let slot = match work {
            Work::Sensing(number) | Work::Programming(number) | Work::Transferring(number) => {
                self.ops[number as usize].slot
            }
            _ => NONE,
        };
        let arrived = self.ledger.as_ref().map_or(NO_REQUEST, |ledger| ledger.arrived);
        if slot == NONE { arrived } else { self.host.command(slot).ticket }
    }

    /// Channel `channel` moves the data of operation `number` until `end`.
    pub(super) fn note_transfer(&mut self, channel: u32, number: u32, end: u64) {
        let clock = self.clock;
        let purpose = self.purpose(Work::Transferring(number));
        let ticket = self.ticket_of(Work::Transferring(number));
        let Some(ledger) = &mut self.ledger else { return };
        let operation = account(&mut ledger.operations, number);
        operation.until(Cause::SharedWait, clock);
        operation.until(Cause::Transfer, end);
        let track = Track::new(TrackKind::Channel, channel);
        let span = Span::new(track, Activity::Transfer, clock, end);
        push(&mut ledger.spans, ticket, span.on_behalf_of(purpose));
    }

    /// `plane` is cleaned from now on, or no longer.
    pub(super) fn note_cleaning(&mut self, plane: u32, is_cleaned: bool) {
        let clock = self.clock;
        let Some(ledger) = &mut self.ledger else { return };
        let since =
            std::mem::replace(&mut ledger.cleaning[plane as usize], is_cleaned.then_some(clock));
        if let Some(since) = since.filter(|_| !is_cleaned) {
            let track = Track::new(TrackKind::Gc, plane);
            let span = Span::new(track, Activity::Collect, since, clock);
            push(&mut ledger.spans, ledger.arrived, span.on_behalf_of(Purpose::Gc));
        }
    }
}

fn push(spans: &mut Vec<(u64, Span)>, ticket: u64, span: Span) {
    if span.end_ns > span.start_ns {
        spans.push((ticket, span));
    }
}

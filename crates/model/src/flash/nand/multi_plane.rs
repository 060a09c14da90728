//! Multi-plane commands: the planes of a die program, read or erase together.
//!
//! One command serves pages with the same number in different planes of a die (ONFI 5.1, section
//! 5.7, "Multi-plane operations"): their data cross the channel one after another, the cells work
//! once. Pages are joined within a request (a trim, for erases), as a controller can that has them
//! all at once; a page of another request would make an earlier one wait, which no later request
//! does here. Anything else that the die did in between ends the command.
//!
//! Invariants: a joined page never ends before the pages that it joined; a command has at most one
//! page of each plane, all with the same number. Tested by the arithmetic of saturated geometries.

use super::{Nand, PageAt, die_track, tell_transfer};
use crate::observe::{Activity, Cause, Span, Watch};

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Program,
    Erase,
}

/// The command that a die carried out last, and that may be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joint {
    /// The request that it belongs to.
    stamp: u64,
    kind: Kind,
    page: u32,
    /// Planes of the die that take part, a bit each.
    planes: u64,
    /// When the die was free for it.
    start: u64,
    /// When all data so far were in their registers: cells are read or begin to be written.
    ready: u64,
    end: u64,
}

const NEVER: Joint =
    Joint { stamp: 0, kind: Kind::Erase, page: 0, planes: 0, start: 0, ready: 0, end: 0 };

/// What is needed to join commands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Joints {
    by_die: Vec<Joint>,
    planes_per_die: u32,
    stamp: u64,
}

impl Joints {
    pub(super) fn new(dies: usize, planes_per_die: u32) -> Self {
        Self { by_die: vec![NEVER; dies], planes_per_die, stamp: 0 }
    }
}

impl Nand {
    /// What follows, up to [`Nand::part`], belongs to one request and may share commands, where the
    /// device can.
    pub(in crate::flash) fn join(&mut self) {
        if let Some(joints) = &mut self.joints {
            joints.stamp += 1;
        }
        self.joining = self.joints.is_some();
    }

    /// The request is over: nothing joins its commands any more.
    pub(in crate::flash) fn part(&mut self) {
        self.joining = false;
    }

    /// The command of the die of `at` that a page there can join.
    fn joined(&self, kind: Kind, at: PageAt, die: usize) -> Option<Joint> {
        let joints = self.joints.as_ref().filter(|_| self.joining)?;
        let own = joints.by_die[die];
        let bit = 1u64 << (at.plane % joints.planes_per_die);
        let fits = own.stamp == joints.stamp
            && (own.kind, own.page) == (kind, at.page)
            && own.planes & bit == 0
            && own.end == self.die_free_at[die];
        fits.then_some(Joint { planes: own.planes | bit, ..own })
    }

    /// A command for one page, that others may join.
    fn first(&self, kind: Kind, at: PageAt, start: u64) -> Joint {
        let joints = self.joints.as_ref().expect("a device with multi-plane commands");
        let planes = 1u64 << (at.plane % joints.planes_per_die);
        let stamp = joints.stamp;
        Joint { stamp, kind, page: at.page, planes, start, ready: start, end: start }
    }

    fn note(&mut self, die: usize, joint: Joint) {
        self.die_free_at[die] = joint.end;
        self.joints.as_mut().expect("a device with multi-plane commands").by_die[die] = joint;
    }

    /// [`Nand::program`] where commands may be shared.
    pub(super) fn program_joint<W: Watch>(
        &mut self,
        (now, earliest): (u64, u64),
        at: PageAt,
        watch: &mut W,
    ) -> u64 {
        let die = self.die_of_plane[at.plane as usize] as usize;
        let joined = self.joined(Kind::Program, at, die);
        let free_at = self.die_free_at[die];
        let joint = joined.unwrap_or_else(|| self.first(Kind::Program, at, free_at));
        let start = joint.start.max(earliest);
        let channel = usize::from(self.channel_of_die[die]);
        // A die moves one page at a time.
        let after = start.max(joint.ready);
        let moved = self.channels[channel].reserve(now, after, self.page_ps + self.command_ps);
        let ready = moved.end.max(joint.ready);
        let end = ready + u64::from(self.program_ns[at.page as usize]);
        if W::ACTIVE {
            self.tell_wait(earliest, start, die, watch);
            tell_transfer(start, moved, channel, watch);
            watch.spend(Cause::Medium, end - moved.end);
            let from = if joined.is_some() { joint.end } else { moved.end };
            watch.span(Span::new(die_track(die), Activity::Write, from, end));
        }
        self.note(die, Joint { ready, end, ..joint });
        end
    }

    /// [`Nand::read`] where commands may be shared.
    pub(super) fn read_joint<W: Watch>(
        &mut self,
        now: u64,
        at: PageAt,
        bytes: u32,
        watch: &mut W,
    ) -> u64 {
        let die = self.die_of_plane[at.plane as usize] as usize;
        let joined = self.joined(Kind::Read, at, die);
        let free_at = self.die_free_at[die].max(now);
        let mut joint = joined.unwrap_or_else(|| self.first(Kind::Read, at, free_at));
        joint.ready = joint.start + u64::from(self.read_ns[at.page as usize]);
        let channel = usize::from(self.channel_of_die[die]);
        let ps = self.transfer_ps(bytes);
        // A die moves one page at a time.
        let after = if joined.is_some() { joint.end } else { joint.ready };
        let moved = self.channels[channel].reserve(now, after, ps);
        if W::ACTIVE {
            self.tell_wait(now, joint.start, die, watch);
            watch.spend(Cause::Medium, joint.ready - joint.start);
            tell_transfer(joint.ready, moved, channel, watch);
            if joined.is_none() {
                watch.span(Span::new(die_track(die), Activity::Read, joint.start, joint.ready));
            }
        }
        self.note(die, Joint { end: moved.end.max(joint.end), ..joint });
        moved.end
    }

    /// Erases a block of `plane` at `now`, or when its die is free, together with those of other
    /// planes of it where commands are shared. Gives the end.
    pub fn erase<W: Watch>(&mut self, plane: u32, now: u64, watch: &mut W) -> u64 {
        if !self.joining {
            return self.clean(plane, now, self.erase_ns, watch);
        }
        let at = PageAt { plane, page: 0 };
        let die = self.die_of_plane[plane as usize] as usize;
        let joint = if let Some(joint) = self.joined(Kind::Erase, at, die) {
            joint
        } else {
            let end = self.clean(plane, now, self.erase_ns, watch);
            Joint { end, ..self.first(Kind::Erase, at, end - self.erase_ns) }
        };
        self.note(die, joint);
        joint.end
    }
}

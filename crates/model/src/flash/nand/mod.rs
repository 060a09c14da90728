//! The flash array in time: what every translation layer issues its operations to.
//!
//! A die works on one command at a time and takes them in the order in which they are issued; a
//! channel carries one transfer at a time and takes them where they fit ([`super::channel`]).
//!
//! - **program**: the data cross the channel into the die's page register once both are free, then
//!   the die is busy programming.
//! - **read**: the die reads the page into its register, then the data cross the channel once that
//!   is free; the die stays busy until its register is empty.
//! - **copy** (cleaning): read and program on the same die, in between over the channel and back
//!   unless the chips can copy back. Transfers of cleaning lengthen the copy but do not delay those
//!   of requests, which go first on the bus; at most one page, a few microseconds, would be the
//!   difference.
//! - **erase**: the die is busy.
//!
//! Where the device has multi-plane commands, pages of one request share them ([`multi_plane`]).
//!
//! Invariants: no operation ends before it was issued; a die's operations do not overlap; a
//! saturated geometry moves exactly what its arithmetic says (tests in `tests/it/flash`).

mod multi_plane;

use profile::flash::{Geometry, Timing};

use multi_plane::Joints;

use super::channel::{Channel, Reservation};
use super::snapshot::{Reader, Writer};
use crate::SnapshotError;
use crate::observe::{Activity, Cause, Purpose, Span, Track, TrackKind, Watch};

/// Where a page is, as far as time is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageAt {
    /// Its plane.
    pub plane: u32,
    /// Its place in its block.
    pub page: u32,
}

/// Dies and channels with their timelines.
#[derive(Clone, Debug, PartialEq)]
pub struct Nand {
    pub(crate) die_free_at: Vec<u64>,
    pub(crate) channels: Vec<Channel>,
    /// The latest uninterrupted cleaning of each die.
    cleaned_from: Vec<u64>,
    cleaned_until: Vec<u64>,
    channel_of_die: Vec<u16>,
    die_of_plane: Vec<u32>,
    /// By place of the page in its block, ns.
    read_ns: Vec<u32>,
    program_ns: Vec<u32>,
    erase_ns: u64,
    page_ps: u64,
    command_ps: u64,
    page_bytes: u32,
    /// Both transfers of a copy; zero where the chips copy back.
    copy_bus_ns: u64,
    uniform_copy_ns: Option<u64>,
    /// Multi-plane commands, where the device has them.
    joints: Option<Joints>,
    /// Whether a request issues pages that may share commands.
    joining: bool,
}

impl Nand {
    /// An idle array.
    pub fn new(geometry: &Geometry, timing: &Timing, copy_back: bool) -> Self {
        let dies = 0..geometry.die_count();
        let planes = 0..geometry.plane_count();
        let page_ps = timing.bus_ps(geometry.page_bytes);
        let command_ps = timing.command_ps();
        let copy_bus_ps = if copy_back { 0 } else { 2 * (page_ps + command_ps) };
        let copy_bus_ns = (copy_bus_ps + 500) / 1000;
        let one_class = timing.read_ns.len() == 1 && timing.program_ns.len() == 1;
        let cells_ns = timing.read_ns[0].round() as u64 + timing.program_ns[0].round() as u64;
        Self {
            die_free_at: vec![0; dies.len()],
            cleaned_from: vec![0; dies.len()],
            cleaned_until: vec![0; dies.len()],
            channels: vec![Channel::new(); geometry.channels as usize],
            channel_of_die: dies.map(|die| geometry.channel_of_die(die) as u16).collect(),
            die_of_plane: planes.map(|plane| geometry.die_of_plane(plane)).collect(),
            read_ns: timing.read_table(geometry),
            program_ns: timing.program_table(geometry),
            erase_ns: timing.erase_ns.round() as u64,
            page_ps,
            command_ps,
            page_bytes: geometry.page_bytes,
            copy_bus_ns,
            uniform_copy_ns: one_class.then_some(cells_ns + copy_bus_ns),
            joints: None,
            joining: false,
        }
    }

    /// The same array, with multi-plane commands where `multi_plane`.
    #[must_use]
    pub fn with_multi_plane(self, geometry: &Geometry, multi_plane: bool) -> Self {
        let joints = || Joints::new(geometry.die_count() as usize, geometry.planes_per_die);
        Self { joints: multi_plane.then(joints), ..self }
    }

    /// The same array, in which pages numbered one beyond those of a block have times of their own,
    /// ns: those of an SLC cache.
    #[must_use]
    pub(crate) fn with_slc(mut self, read_ns: u32, program_ns: u32) -> Self {
        self.read_ns.push(read_ns);
        self.program_ns.push(program_ns);
        self
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    /// When the die of `plane` is free next.
    #[inline]
    pub fn free_at(&self, plane: u32) -> u64 {
        self.die_free_at[self.die_of_plane[plane as usize] as usize]
    }

    /// Reads page `page` of a block of `plane` at `now` and moves `bytes` of it to the controller.
    /// Gives the end of the transfer.
    #[inline]
    pub fn read<W: Watch>(&mut self, now: u64, at: PageAt, bytes: u32, watch: &mut W) -> u64 {
        if self.joining {
            return self.read_joint(now, at, bytes, watch);
        }
        let die = self.die_of_plane[at.plane as usize] as usize;
        let start = self.die_free_at[die].max(now);
        let ready = start + u64::from(self.read_ns[at.page as usize]);
        let channel = usize::from(self.channel_of_die[die]);
        let ps = self.transfer_ps(bytes);
        let moved = self.channels[channel].reserve(now, ready, ps);
        if W::ACTIVE {
            self.tell_wait(now, start, die, watch);
            watch.spend(Cause::Medium, ready - start);
            watch.span(Span::new(die_track(die), Activity::Read, start, ready));
            tell_transfer(ready, moved, channel, watch);
        }
        self.die_free_at[die] = moved.end;
        moved.end
    }

    /// Keeps the die of `plane` at work for `ns` after `from`, for the request that it served last;
    /// gives the end.
    pub fn work<W: Watch>(&mut self, plane: u32, from: u64, ns: u64, watch: &mut W) -> u64 {
        let die = self.die_of_plane[plane as usize] as usize;
        let end = from + ns;
        watch.spend(Cause::Mapping, ns);
        watch.span(Span::new(die_track(die), Activity::Write, from, end));
        self.die_free_at[die] = end;
        end
    }

    /// Moves a page, asked for at `now` and not before `start`, to its die and programs it. Gives
    /// the end of the program.
    #[inline]
    pub fn program<W: Watch>(
        &mut self,
        (now, earliest): (u64, u64),
        at: PageAt,
        watch: &mut W,
    ) -> u64 {
        if self.joining {
            return self.program_joint((now, earliest), at, watch);
        }
        let die = self.die_of_plane[at.plane as usize] as usize;
        let start = self.die_free_at[die].max(earliest);
        let channel = usize::from(self.channel_of_die[die]);
        let ps = self.page_ps + self.command_ps;
        let moved = self.channels[channel].reserve(now, start, ps);
        let end = moved.end + u64::from(self.program_ns[at.page as usize]);
        if W::ACTIVE {
            self.tell_wait(earliest, start, die, watch);
            tell_transfer(start, moved, channel, watch);
            watch.spend(Cause::Medium, end - moved.end);
            watch.span(Span::new(die_track(die), Activity::Write, moved.end, end));
        }
        self.die_free_at[die] = end;
        end
    }

    /// Tells of the wait for `die` from `from` to `until`: its cleaning, and what came before.
    fn tell_wait<W: Watch>(&self, from: u64, until: u64, die: usize, watch: &mut W) {
        let (start, end) = (self.cleaned_from[die], self.cleaned_until[die]);
        let cleaning = end.min(until).saturating_sub(start.max(from));
        watch.spend(Cause::Gc, cleaning);
        watch.spend(Cause::Queue, until - from - cleaning);
    }

    /// How long a copy takes from page `from` of a block to page `to` of another of the same die.
    #[inline]
    pub fn copy_ns(&self, from: u32, to: u32) -> u64 {
        u64::from(self.read_ns[from as usize])
            + u64::from(self.program_ns[to as usize])
            + self.copy_bus_ns
    }

    /// How long any copy takes where all pages are alike.
    #[inline]
    pub fn uniform_copy_ns(&self) -> Option<u64> {
        self.uniform_copy_ns
    }

    /// How long an erase takes.
    #[inline]
    pub fn erase_ns(&self) -> u64 {
        self.erase_ns
    }

    /// Keeps the die of `plane` busy cleaning for `ns` from when it is free, but not before `from`:
    /// copies and erases. Gives the end.
    pub fn clean<W: Watch>(&mut self, plane: u32, from: u64, ns: u64, watch: &mut W) -> u64 {
        self.occupy((plane, from), ns, Purpose::Gc, watch)
    }

    /// Keeps the die of a plane busy with moving pages and erasing for `ns` from when it is free,
    /// but not before a moment, for a purpose of its own. Gives the end.
    pub(crate) fn occupy<W: Watch>(
        &mut self,
        (plane, from): (u32, u64),
        ns: u64,
        purpose: Purpose,
        watch: &mut W,
    ) -> u64 {
        let die = self.die_of_plane[plane as usize] as usize;
        let start = self.die_free_at[die].max(from);
        let end = start + ns;
        self.die_free_at[die] = end;
        if self.cleaned_until[die] != start {
            self.cleaned_from[die] = start;
        }
        self.cleaned_until[die] = end;
        if W::ACTIVE {
            let span = Span::new(die_track(die), Activity::Collect, start, end);
            watch.span(span.on_behalf_of(purpose));
        }
        end
    }

    /// What the die of `plane` did since `from` was a part of cleaning.
    pub fn count_as_cleaning(&mut self, plane: u32, from: u64) {
        let die = self.die_of_plane[plane as usize] as usize;
        if self.cleaned_until[die] != from {
            self.cleaned_from[die] = from;
        }
        self.cleaned_until[die] = self.die_free_at[die];
    }

    #[inline]
    fn transfer_ps(&self, bytes: u32) -> u64 {
        if bytes == self.page_bytes {
            return self.page_ps + self.command_ps;
        }
        // Multiplying first keeps the rounding below a picosecond per byte.
        self.page_ps * u64::from(bytes) / u64::from(self.page_bytes) + self.command_ps
    }

    pub(crate) fn save(&self, to: &mut Writer) {
        to.u64s(&self.die_free_at);
        to.u64s(&self.cleaned_from);
        to.u64s(&self.cleaned_until);
        self.channels.iter().for_each(|channel| channel.save(to));
    }

    pub(crate) fn load(&mut self, from: &mut Reader) -> Result<(), SnapshotError> {
        from.u64s(&mut self.die_free_at)?;
        from.u64s(&mut self.cleaned_from)?;
        from.u64s(&mut self.cleaned_until)?;
        self.channels.iter_mut().try_for_each(|channel| channel.load(from))
    }
}

fn die_track(die: usize) -> Track {
    Track::new(TrackKind::Die, die as u32)
}

/// Tells of a transfer that could have started at `ready`.
fn tell_transfer<W: Watch>(ready: u64, moved: Reservation, channel: usize, watch: &mut W) {
    watch.spend(Cause::SharedWait, moved.start - ready);
    watch.spend(Cause::Transfer, moved.end - moved.start);
    if moved.remembered {
        let track = Track::new(TrackKind::Channel, channel as u32);
        watch.span(Span::new(track, Activity::Transfer, moved.start, moved.end));
    }
}

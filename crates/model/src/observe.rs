//! Where the time of a request goes: how models tell, and who listens.
//!
//! Two questions, two answers:
//!
//! - *Why did this request take so long?* A [`Path`] splits the time from submission to completion
//!   by [`Cause`], along the critical path: its parts sum to exactly that time. Where a request is
//!   served by parallel parts (pages on several dies), the path is that of the part that ended
//!   last.
//! - *What did the device do meanwhile?* [`Span`]s say which resource ([`Track`]) was busy from
//!   when to when, for a request or for work of the device's own ([`Purpose`]). Spans of one
//!   exclusive track never overlap. A [`Probe`] collects them; `sim::timeline` draws them.
//!
//! How a model reports: write its one code path once, generic over [`Watch`], and let
//! [`crate::Device::submit`] call it with [`Off`] and
//! [`crate::Device::submit_observed`] with [`On`]:
//!
//! ```
//! use model::observe::{Activity, Cause, Off, On, Path, Probe, Span, Track, Watch};
//! use model::Device;
//! use trace::Request;
//! use units::Nanos;
//!
//! struct OneServer {
//!     free_at: u64,
//! }
//!
//! impl OneServer {
//!     fn serve<W: Watch>(&mut self, now: u64, watch: &mut W) -> u64 {
//!         let start = self.free_at.max(now);
//!         self.free_at = start + 1_000;
//!         watch.spend(Cause::Queue, start - now);
//!         watch.spend(Cause::Medium, 1_000);
//!         watch.span(Span::new(Track::server(0), Activity::Read, start, self.free_at));
//!         self.free_at
//!     }
//! }
//!
//! impl Device for OneServer {
//!     fn submit(&mut self, now: Nanos, _request: &Request) -> Nanos {
//!         Nanos(self.serve(now.0, &mut Off))
//!     }
//!     fn submit_observed(
//!         &mut self,
//!         now: Nanos,
//!         _request: &Request,
//!         probe: &mut dyn Probe,
//!     ) -> (Nanos, Path) {
//!         let mut watch = On::new(probe);
//!         let completion = self.serve(now.0, &mut watch);
//!         (Nanos(completion), watch.into_path())
//!     }
//! }
//! ```
//!
//! With [`Off`] every call is an empty function that the compiler removes, so an unobserved
//! simulation pays nothing. A model over another model passes requests on with [`Watch::forward`]
//! (the path goes on behind) or [`Watch::background`] (the device's own work: spans, no path). What
//! is expensive to work out belongs behind `if W::ACTIVE`.
//!
//! Invariants, property-tested for every model: observing changes no completion; the parts of a
//! path sum to completion - submission; spans of an exclusive track never overlap and none runs
//! back.

use trace::Request;
use units::Nanos;

use crate::Device;

/// What a part of a request's time was spent on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Cause {
    /// Waiting for a free parallel unit: a server, a die, the arm, a queue slot.
    Queue = 0,
    /// Waiting for a resource that all units share: a bus, a channel, a rate limit.
    SharedWait = 1,
    /// Controller, firmware and command overhead.
    Controller = 2,
    /// Moving data across an interface, bus or channel.
    Transfer = 3,
    /// Served by a cache.
    Cache = 4,
    /// The medium itself: the line of a linear model, cell reads and programs, data under the head.
    Medium = 5,
    /// Moving the arm and switching heads.
    Seek = 6,
    /// Waiting for the platter to turn.
    Rotation = 7,
    /// Reading or writing the map from address to place.
    Mapping = 8,
    /// Waiting for garbage collection, wear levelling or an erase.
    Gc = 9,
    /// Waiting for a cache to write something back.
    Destage = 10,
    /// Making writes durable, and waiting for those that a flush covers.
    Flush = 11,
    /// Reading again, correcting errors, resuming what was suspended.
    Retry = 12,
    /// The model does not say.
    Unknown = 13,
}

impl Cause {
    /// How many there are.
    pub const COUNT: usize = 14;
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Queue,
        Self::SharedWait,
        Self::Controller,
        Self::Transfer,
        Self::Cache,
        Self::Medium,
        Self::Seek,
        Self::Rotation,
        Self::Mapping,
        Self::Gc,
        Self::Destage,
        Self::Flush,
        Self::Retry,
        Self::Unknown,
    ];

    /// The name used in files and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::SharedWait => "shared_wait",
            Self::Controller => "controller",
            Self::Transfer => "transfer",
            Self::Cache => "cache",
            Self::Medium => "medium",
            Self::Seek => "seek",
            Self::Rotation => "rotation",
            Self::Mapping => "mapping",
            Self::Gc => "gc",
            Self::Destage => "destage",
            Self::Flush => "flush",
            Self::Retry => "retry",
            Self::Unknown => "unknown",
        }
    }
}

/// The time of one request by cause, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path([u64; Cause::COUNT]);

impl Path {
    /// No time at all.
    pub const EMPTY: Self = Self([0; Cause::COUNT]);

    /// All of `ns` for one cause.
    pub fn of(cause: Cause, ns: u64) -> Self {
        let mut path = Self::default();
        path.spend(cause, ns);
        path
    }

    /// Adds `ns` to a cause.
    #[inline]
    pub fn spend(&mut self, cause: Cause, ns: u64) {
        self.0[cause as usize] += ns;
    }

    /// Adds another path that follows this one.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// What a cause took, ns.
    pub fn get(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// By [`Cause::ALL`], ns.
    pub fn parts(&self) -> &[u64; Cause::COUNT] {
        &self.0
    }

    /// Everything, ns: completion - submission.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// A kind of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrackKind {
    /// What connects the device to its host, or a limit that all its units share.
    Interface,
    /// A port of a cache in front of the device.
    CachePort,
    /// Flushes.
    Flush,
    /// A parallel unit that is not further described.
    Server,
    /// The arm of a disk.
    Arm,
    /// The track buffer of a disk.
    Buffer,
    /// A bus to dies.
    Channel,
    /// A unit of flash that does one thing at a time; or a plane, where planes work on their own.
    Die,
    /// Garbage collection: an account of a die, plane or domain, beside the dies' own spans.
    Gc,
}

impl TrackKind {
    /// The name on a timeline.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::CachePort => "cache port",
            Self::Flush => "flush",
            Self::Server => "server",
            Self::Arm => "arm",
            Self::Buffer => "buffer",
            Self::Channel => "channel",
            Self::Die => "die",
            Self::Gc => "gc",
        }
    }
}

/// One resource of a device: it does one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Track {
    /// What it is.
    pub kind: TrackKind,
    /// Which one of its kind, from 0.
    pub index: u32,
}

impl Track {
    /// Resource `index` of a kind.
    #[inline]
    pub const fn new(kind: TrackKind, index: u32) -> Self {
        Self { kind, index }
    }

    /// The parallel unit `index`.
    #[inline]
    pub const fn server(index: u32) -> Self {
        Self::new(TrackKind::Server, index)
    }
}

/// What a resource does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// Reads.
    Read,
    /// Writes or programs.
    Write,
    /// Erases.
    Erase,
    /// Moves data.
    Transfer,
    /// Answers from a cache or takes into it.
    Hit,
    /// Makes writes durable.
    Flush,
    /// Forgets a range.
    Trim,
    /// Moves the arm.
    Seek,
    /// Turns to the sector.
    Rotate,
    /// Works on a command.
    Command,
    /// Collects garbage, as a whole.
    Collect,
}

impl Activity {
    /// The name on a timeline.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Erase => "erase",
            Self::Transfer => "transfer",
            Self::Hit => "hit",
            Self::Flush => "flush",
            Self::Trim => "trim",
            Self::Seek => "seek",
            Self::Rotate => "rotate",
            Self::Command => "command",
            Self::Collect => "collect",
        }
    }
}

impl From<trace::Op> for Activity {
    fn from(op: trace::Op) -> Self {
        match op {
            trace::Op::Read => Self::Read,
            trace::Op::Write => Self::Write,
            trace::Op::Trim => Self::Trim,
            trace::Op::Flush => Self::Flush,
        }
    }
}

/// Whose work it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// The request's.
    #[default]
    Request,
    /// A cache writes back.
    Destage,
    /// Garbage collection.
    Gc,
    /// Wear levelling.
    WearLevelling,
    /// The map.
    Mapping,
    /// Reading on in advance.
    ReadAhead,
    /// Moving data from fast cells into dense ones.
    Folding,
}

impl Purpose {
    /// The name on a timeline.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Destage => "destage",
            Self::Gc => "gc",
            Self::WearLevelling => "wear levelling",
            Self::Mapping => "mapping",
            Self::ReadAhead => "read ahead",
            Self::Folding => "folding",
        }
    }
}

/// A resource at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which.
    pub track: Track,
    /// At what.
    pub activity: Activity,
    /// For whom.
    pub purpose: Purpose,
    /// From, ns of virtual time.
    pub start_ns: u64,
    /// To; not before `start_ns`.
    pub end_ns: u64,
}

impl Span {
    /// Work for the request at hand.
    #[inline]
    pub const fn new(track: Track, activity: Activity, start_ns: u64, end_ns: u64) -> Self {
        Self { track, activity, purpose: Purpose::Request, start_ns, end_ns }
    }

    /// The same work for another purpose.
    #[inline]
    #[must_use]
    pub const fn on_behalf_of(self, purpose: Purpose) -> Self {
        Self { purpose, ..self }
    }
}

/// Listens to what a device does.
pub trait Probe {
    /// The spans that follow belong to request `index` of the trace, or were caused by its arrival.
    ///
    /// [`Device::submit_due_observed`] says so; a model that serves requests in another order than
    /// they came says so itself.
    fn request(&mut self, index: usize) {
        let _ = index;
    }

    /// A resource was or will be at work. Spans come in no particular order.
    fn span(&mut self, span: &Span);

    /// Request `index` completes along `path`: said by who submits requests, not by models.
    fn completed(&mut self, index: usize, request: &Request, completion_ns: u64, path: &Path) {
        let _ = (index, request, completion_ns, path);
    }
}

/// Listens to nothing: for those who only want paths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deaf;

impl Probe for Deaf {
    #[inline]
    fn span(&mut self, _span: &Span) {}
}

/// What a model tells about the request at hand while it works out its completion.
pub trait Watch {
    /// Whether anybody listens.
    const ACTIVE: bool;

    /// The request spends `ns` on `cause`.
    fn spend(&mut self, cause: Cause, ns: u64);

    /// The request goes along `path`, which was worked out apart.
    fn follow(&mut self, path: &Path);

    /// A resource is at work.
    fn span(&mut self, span: Span);

    /// What follows is told of request `index` of the trace, in a model that serves requests in
    /// another order than they came.
    fn request(&mut self, index: usize) {
        let _ = index;
    }

    /// The path of the request at hand so far; what follows starts a new one.
    fn take_path(&mut self) -> Path {
        Path::default()
    }

    /// Submits `request` to the device behind on behalf of the request at hand, whose path goes on
    /// there.
    fn forward<D: Device + ?Sized>(
        &mut self,
        behind: &mut D,
        now: Nanos,
        request: &Request,
    ) -> Nanos;

    /// Submits `request` to the device behind for the model's own `purpose`; no part of the path.
    fn background<D: Device + ?Sized>(
        &mut self,
        behind: &mut D,
        now: Nanos,
        request: &Request,
        purpose: Purpose,
    ) -> Nanos;
}

/// Passes spans on as work of cleaning, and leaves the path of the request at hand alone.
#[derive(Debug)]
pub(crate) struct ForGc<'a, W>(pub(crate) &'a mut W);

impl<W: Watch> Watch for ForGc<'_, W> {
    const ACTIVE: bool = W::ACTIVE;

    fn spend(&mut self, _cause: Cause, _ns: u64) {}

    fn follow(&mut self, _path: &Path) {}

    fn span(&mut self, span: Span) {
        self.0.span(span.on_behalf_of(Purpose::Gc));
    }

    fn forward<D: Device + ?Sized>(
        &mut self,
        behind: &mut D,
        now: Nanos,
        request: &Request,
    ) -> Nanos {
        self.0.background(behind, now, request, Purpose::Gc)
    }

    fn background<D: Device + ?Sized>(
        &mut self,
        behind: &mut D,
        now: Nanos,
        request: &Request,
        purpose: Purpose,
    ) -> Nanos {
        self.0.background(behind, now, request, purpose)
    }
}

/// No observer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Off;

impl Watch for Off {
    const ACTIVE: bool = false;

    #[inline]
    fn spend(&mut self, _cause: Cause, _ns: u64) {}

    #[inline]
    fn follow(&mut self, _path: &Path) {}

    #[inline]
    fn span(&mut self, _span: Span) {}

    #[inline]
    fn forward<D: Device + ?Sized>(
        &mut self,
        behind: &mut D,
        now: Nanos,
        request: &Request,
    ) -> Nanos {
        behind.submit(now, request)
    }

    #[inline]
    fn background<D: Device + ?Sized>(
        &mut self,
        behind: &mut D,
        now: Nanos,
        request: &Request,
        _purpose: Purpose,
    ) -> Nanos {
        behind.submit(now, request)
    }
}

/// The way of a request through moments: each spends what lies between the moment before and it.
///
/// A moment that has passed already costs nothing, so work that runs beside other work is told in
/// the order in which it ends, and the parts sum to the last moment less the first.
pub(crate) struct Way<'a, W> {
    pub watch: &'a mut W,
    at_ns: u64,
}

impl<'a, W: Watch> Way<'a, W> {
    /// From `at_ns` on.
    #[inline]
    pub fn new(watch: &'a mut W, at_ns: u64) -> Self {
        Self { watch, at_ns }
    }

    /// Until `moment_ns` the request spends its time on `cause`.
    #[inline]
    pub fn until(&mut self, cause: Cause, moment_ns: u64) {
        if W::ACTIVE {
            self.watch.spend(cause, moment_ns.saturating_sub(self.at_ns));
            self.at_ns = self.at_ns.max(moment_ns);
        }
    }
}

/// A probe listens, and the path of the request at hand is kept.
pub struct On<'a> {
    probe: &'a mut dyn Probe,
    path: Path,
}

impl<'a> On<'a> {
    /// For one request.
    pub fn new(probe: &'a mut dyn Probe) -> Self {
        Self { probe, path: Path::default() }
    }

    /// Where its time went.
    pub fn into_path(self) -> Path {
        self.path
    }
}

impl Watch for On<'_> {
    const ACTIVE: bool = true;

    #[inline]
    fn spend(&mut self, cause: Cause, ns: u64) {
        self.path.spend(cause, ns);
    }

    fn follow(&mut self, path: &Path) {
        self.path.add(path);
    }

    #[inline]
    fn span(&mut self, span: Span) {
        debug_assert!(span.start_ns <= span.end_ns, "{span:?} ends before it starts");
        if span.end_ns > span.start_ns {
            self.probe.span(&span);
        }
    }

    fn request(&mut self, index: usize) {
        self.probe.request(index);
    }

    fn take_path(&mut self) -> Path {
        std::mem::take(&mut self.path)
    }

    fn forward<D: Device + ?Sized>(
        &mut self,
        behind: &mut D,
        now: Nanos,
        request: &Request,
    ) -> Nanos {
        let (completion, path) = behind.submit_observed(now, request, self.probe);
        self.path.add(&path);
        completion
    }

    fn background<D: Device + ?Sized>(
        &mut self,
        behind: &mut D,
        now: Nanos,
        request: &Request,
        purpose: Purpose,
    ) -> Nanos {
        let mut probe = OnBehalf { probe: self.probe, purpose };
        behind.submit_observed(now, request, &mut probe).0
    }
}

/// Passes spans on with the purpose of the layer in front; what a device behind does for purposes
/// of its own keeps those.
struct OnBehalf<'a> {
    probe: &'a mut dyn Probe,
    purpose: Purpose,
}

impl Probe for OnBehalf<'_> {
    fn request(&mut self, index: usize) {
        self.probe.request(index);
    }

    fn span(&mut self, span: &Span) {
        match span.purpose {
            Purpose::Request => self.probe.span(&span.on_behalf_of(self.purpose)),
            _ => self.probe.span(span),
        }
    }
}

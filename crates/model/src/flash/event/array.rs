//! Dies and channels of the event model: what waits for them, what they work on.

use std::collections::VecDeque;

use profile::flash::{FlashParameters, Geometry, NONE};

use crate::SnapshotError;
use crate::flash::snapshot::{Reader, Writer};

/// What a die does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing.
    Idle,
    /// Cells to page register, for an operation.
    Sensing(u32),
    /// Waits for its channel or transfers, for an operation.
    Transferring(u32),
    /// Page register to cells, for an operation.
    Programming(u32),
    /// Moves a page of a plane to another block of it.
    Copying(u32),
    /// Erases the victim of a plane.
    Erasing(u32),
    /// Interrupts a program, a copy or an erase.
    Suspending,
}

impl Work {
    /// As two numbers.
    fn numbers(self) -> [u32; 2] {
        match self {
            Self::Idle => [0, 0],
            Self::Sensing(number) => [1, number],
            Self::Transferring(number) => [2, number],
            Self::Programming(number) => [3, number],
            Self::Copying(plane) => [4, plane],
            Self::Erasing(plane) => [5, plane],
            Self::Suspending => [6, 0],
        }
    }

    /// The end of the numbers of what can take part in it.
    fn joins(self, operations: usize, planes: u32) -> usize {
        if matches!(self, Self::Erasing(_)) { planes as usize } else { operations }
    }

    /// From them, where there are this many operations and planes.
    fn from_numbers([kind, number]: [u32; 2], operations: usize, planes: u32) -> Option<Self> {
        let operation = || Some(number).filter(|number| (*number as usize) < operations);
        let plane = || Some(number).filter(|plane| *plane < planes);
        Some(match kind {
            0 => Self::Idle,
            1 => Self::Sensing(operation()?),
            2 => Self::Transferring(operation()?),
            3 => Self::Programming(operation()?),
            4 => Self::Copying(plane()?),
            5 => Self::Erasing(plane()?),
            6 => Self::Suspending,
            _ => return None,
        })
    }
}

/// A die.
#[derive(Clone, Debug)]
pub(super) struct Die {
    pub work: Work,
    /// When the present work ends, where that is known.
    pub until: u64,
    /// Ends of earlier works that were interrupted are told by it.
    pub generation: u32,
    /// What was interrupted, and how much of it is left, ns.
    pub suspended: Option<(Work, u64)>,
    /// Times that the present work was interrupted.
    pub suspends: u32,
    /// What takes part in the present work besides the one that it names, in other planes:
    /// operations, or planes where it is an erase.
    pub joined: Vec<u32>,
    /// The same for what was interrupted.
    pub interrupted: Vec<u32>,
    /// Reads, where they go first.
    pub reads: VecDeque<u32>,
    /// Everything else, in the order of arrival.
    pub others: VecDeque<u32>,
    /// Reads that went before something else since something else was served.
    pub overtakes: u32,
    /// It was idle for so long that it folds, until an operation comes.
    pub folds: bool,
    pub channel: u16,
}

/// A channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Bus {
    /// The die that it serves.
    pub serving: Option<u32>,
    /// Dies that wait, in the order of arrival.
    pub waiting: VecDeque<u32>,
    /// What earlier transfers lost to whole nanoseconds, ps.
    pub carry_ps: u64,
}

/// Times of all operations.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub read_ns: Vec<u32>,
    pub program_ns: Vec<u32>,
    pub erase_ns: u64,
    page_ps: u64,
    command_ps: u64,
    page_bytes: u32,
    copy_bus_ns: u64,
}

impl Times {
    /// Pages numbered one beyond those of a block have the times of the SLC cache.
    pub fn new(parameters: &FlashParameters) -> Self {
        let FlashParameters { geometry, timing, slc, .. } = parameters;
        let with = |mut table: Vec<u32>, more: Option<u32>| {
            table.extend(more);
            table
        };
        let page_ps = timing.bus_ps(geometry.page_bytes);
        let command_ps = timing.command_ps();
        let copy_bus_ps = if parameters.gc.copy_back { 0 } else { 2 * (page_ps + command_ps) };
        Self {
            read_ns: with(timing.read_table(geometry), slc.map(|slc| slc.read_ns)),
            program_ns: with(timing.program_table(geometry), slc.map(|slc| slc.program_ns)),
            erase_ns: timing.erase_ns.round() as u64,
            page_ps,
            command_ps,
            page_bytes: geometry.page_bytes,
            copy_bus_ns: (copy_bus_ps + 500) / 1000,
        }
    }

    /// Time of copies whose pages have the numbers `from` in their old blocks, in other planes
    /// each, and all of them `to` in the new ones: those of the same number are read together.
    pub fn copy_ns(&self, from: &[u32], to: u32) -> u64 {
        let anew = |at: &usize| !from[..*at].contains(&from[*at]);
        let reads = (0..from.len()).filter(anew).map(|at| self.read_ns[from[at] as usize]);
        reads.map(u64::from).sum::<u64>()
            + u64::from(self.program_ns[to as usize])
            + self.copy_bus_ns * from.len() as u64
    }

    /// Time of `bytes` on `bus`, which takes the rounding along.
    pub fn transfer_ns(&self, bus: &mut Bus, bytes: u32) -> u64 {
        let ps = self.page_ps * u64::from(bytes) / u64::from(self.page_bytes) + self.command_ps;
        let ps = ps + bus.carry_ps;
        bus.carry_ps = ps % 1000;
        ps / 1000
    }
}

impl Die {
    pub fn all(geometry: &Geometry) -> Vec<Self> {
        let die = |number| Self {
            work: Work::Idle,
            until: 0,
            generation: 0,
            suspended: None,
            suspends: 0,
            joined: Vec::new(),
            interrupted: Vec::new(),
            reads: VecDeque::new(),
            others: VecDeque::new(),
            overtakes: 0,
            folds: false,
            channel: geometry.channel_of_die(number) as u16,
        };
        (0..geometry.die_count()).map(die).collect()
    }

    pub fn save(&self, to: &mut Writer) {
        let Self { work, until, generation, suspended, suspends, reads, others, .. } = self;
        let Self { overtakes, folds, channel: _, joined, interrupted, .. } = self;
        to.u32s(&work.numbers());
        let (paused, left) = suspended.unwrap_or((Work::Idle, 0));
        to.u32s(&paused.numbers());
        to.u64s(&[*until, left]);
        to.u32s(&[*generation, *suspends, *overtakes, u32::from(*folds)]);
        to.list(reads.iter().copied());
        to.list(others.iter().copied());
        to.list(joined.iter().copied());
        to.list(interrupted.iter().copied());
    }

    /// Out of a snapshot of a device with this many `operations` and `planes`.
    pub fn load(
        &mut self,
        from: &mut Reader,
        operations: usize,
        planes: u32,
    ) -> Result<(), SnapshotError> {
        let (mut work, mut paused, mut times, mut numbers) = ([0; 2], [0; 2], [0; 2], [0; 4]);
        from.u32s(&mut work)?;
        from.u32s(&mut paused)?;
        from.u64s(&mut times)?;
        from.u32s(&mut numbers)?;
        let of = |numbers| Work::from_numbers(numbers, operations, planes);
        let (Some(work), Some(paused)) = (of(work), of(paused)) else {
            return Err(from.damaged());
        };
        self.work = work;
        self.suspended = (paused != Work::Idle).then_some((paused, times[1]));
        self.until = times[0];
        [self.generation, self.suspends, self.overtakes, _] = numbers;
        self.folds = numbers[3] == 1;
        self.reads = from.list(operations)?;
        self.others = from.list(operations)?;
        self.joined = from.list(work.joins(operations, planes))?;
        self.interrupted = from.list(paused.joins(operations, planes))?;
        Ok(())
    }

    /// Operations that wait.
    pub fn waiting(&self) -> usize {
        self.reads.len() + self.others.len()
    }
}

impl Bus {
    pub fn save(&self, to: &mut Writer) {
        let Self { serving, waiting, carry_ps } = self;
        to.u32(serving.unwrap_or(NONE));
        to.list(waiting.iter().copied());
        to.u64(*carry_ps);
    }

    /// Out of a snapshot of a device with this many `dies`.
    pub fn load(&mut self, from: &mut Reader, dies: usize) -> Result<(), SnapshotError> {
        self.serving = Some(from.index(dies as u32)?).filter(|die| *die != NONE);
        self.waiting = from.list(dies)?;
        self.carry_ps = from.u64()?;
        Ok(())
    }
}

//! Everything that makes a flash device, and which of it cannot be.

use units::Bytes;

use super::{
    AllocationScheme, Error, EventParameters, Flaw, GcMode, GcParameters, GcPolicy, Geometry,
    Isolation, SlcParameters, StreamParameters, Timing, Translation, WearParameters,
    ZoneParameters,
};

/// The parameters of a flash device.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashParameters {
    /// Its parts.
    pub geometry: Geometry,
    /// Its speed.
    pub timing: Timing,
    /// Pages that a host can address; the rest of the raw capacity is over-provisioned.
    pub logical_pages: u32,
    /// How logical pages are found.
    pub translation: Translation,
    /// Which plane takes a page, where any may.
    pub allocation: AllocationScheme,
    /// Streams that are written to blocks of their own, at least 1; requests belong to the stream
    /// of their number modulo this.
    pub host_streams: u32,
    /// How streams are kept apart.
    pub streams: StreamParameters,
    /// Zones in place of the translation layer; pages anywhere where `None`.
    pub zones: Option<ZoneParameters>,
    /// Blocks that are written as SLC first; none where `None`.
    pub slc: Option<SlcParameters>,
    /// Whether planes of a die read, program and erase pages with the same number together.
    pub multi_plane: bool,
    /// Cleaning.
    pub gc: GcParameters,
    /// Wear.
    pub wear: WearParameters,
    /// Bytes of a summary that is programmed behind the last page of a block that requests filled;
    /// it takes no page of [`Geometry::pages_per_block`].
    pub summary_bytes: Option<u32>,
    /// Time of the controller, added to every request, ns.
    pub overhead_ns: u64,
    /// Bytes per second between host and device, in both directions together; not a limit where
    /// `None`.
    pub interface_bytes_per_s: Option<f64>,
    /// Time that a read or a write takes on the interface besides its data, ns.
    pub interface_command_ns: u64,
    /// Whether a request waits until the one before is done: a drive without command queueing.
    pub one_at_a_time: bool,
    /// Whether writes come from a cache in front, in whose times the interface is contained.
    pub behind_cache: bool,
    /// How the device treats its queue; by timelines, in the order of arrival, where `None`.
    pub events: Option<EventParameters>,
}

impl FlashParameters {
    /// Logical pages of a device of `geometry` that keeps `share` of its raw capacity to itself,
    /// rounded to the nearest.
    pub fn logical_pages_at(geometry: &Geometry, share: f64) -> u32 {
        (geometry.page_count() as f64 * (1.0 - share)).round().clamp(0.0, f64::from(u32::MAX))
            as u32
    }

    /// Bytes that a host can address.
    pub fn capacity(&self) -> Bytes {
        Bytes(u64::from(self.logical_pages) * u64::from(self.geometry.page_bytes))
    }

    /// Share of the raw capacity that is not addressable, 0 to 1: the definition of profiles.
    pub fn over_provisioning(&self) -> f64 {
        1.0 - f64::from(self.logical_pages) / self.geometry.page_count() as f64
    }

    /// Raw capacity beyond the addressable one over the addressable one: what much of the
    /// literature and most data sheets call over-provisioning.
    pub fn spare_over_logical(&self) -> f64 {
        self.geometry.page_count() as f64 / f64::from(self.logical_pages) - 1.0
    }

    /// Blocks of each plane that cannot hold old data: the free ones that cleaning keeps, and the
    /// open ones.
    pub fn reserved_blocks_per_plane(&self) -> u32 {
        let cache = self.slc.filter(|slc| !slc.dynamic).map_or(0, |slc| slc.blocks);
        self.gc.low_blocks + self.frontiers_per_plane() + cache
    }

    /// Open blocks of each plane: of the streams, and for moved pages.
    pub fn frontiers_per_plane(&self) -> u32 {
        let for_moves = match self.streams.isolation {
            _ if !self.gc.separate => 0,
            Isolation::Initial => 1,
            Isolation::Persistent => self.host_streams,
        };
        self.host_streams + for_moves
    }

    /// Time of a summary, ns.
    pub fn summary_ns(&self) -> u64 {
        let last = self.geometry.pages_per_block as usize - 1;
        self.summary_bytes.map_or(0, |bytes| {
            let moved_ps = self.timing.bus_ps(bytes) + self.timing.command_ps();
            let program_ns = self.timing.program_table(&self.geometry)[last];
            u64::from(program_ns) + (moved_ps + 500) / 1000
        })
    }

    /// Logical pages that the fullest plane must hold.
    pub fn plane_pages_most(&self) -> u64 {
        u64::from(self.logical_pages).div_ceil(u64::from(self.geometry.plane_count()))
    }

    /// Blocks that each plane can lose before it cannot hold its data.
    pub fn spare_blocks_per_plane(&self) -> u32 {
        let room = self.geometry.blocks_per_plane - self.reserved_blocks_per_plane();
        let needed = self.plane_pages_most() / u64::from(self.geometry.pages_per_block) + 1;
        room.saturating_sub(needed as u32)
    }

    /// Refuses a device that cannot exist.
    ///
    /// # Errors
    /// [`Error::Impossible`] with the parameter, as a profile calls it, and the cause.
    pub fn check(&self) -> Result<(), Error> {
        Ok(self.flaw()?)
    }

    pub(crate) fn flaw(&self) -> Result<(), Flaw> {
        self.geometry.flaw()?;
        self.timing.flaw()?;
        self.wear.flaw()?;
        if self.logical_pages == 0 {
            return Err(Flaw::new("over_provisioning", "nothing is left to hold data"));
        }
        if self.host_streams == 0 || self.host_streams > 64 {
            return Err(Flaw::new("streams", "there are from 1 to 64 streams"));
        }
        self.streams.flaw(self.host_streams, self.gc.policy)?;
        if self.gc.low_blocks < 2 {
            let cause = "cleaning needs one free block for new data and one for moves";
            return Err(Flaw::new("gc.low_blocks", cause));
        }
        if matches!(self.gc.policy, GcPolicy::DChoices(0)) {
            return Err(Flaw::new("gc.choices", "a victim is chosen from at least one block"));
        }
        if matches!(self.gc.policy, GcPolicy::Windowed(0)) {
            return Err(Flaw::new("gc.window_blocks", "a window has at least one block"));
        }
        match self.gc.mode {
            GcMode::Incremental { pages_per_write: 0 } => {
                let cause = "a cleaning that moves nothing never ends";
                return Err(Flaw::new("gc.pages_per_write", cause));
            }
            GcMode::Idle { until_blocks, .. } if until_blocks < self.gc.low_blocks => {
                let cause = "it is below gc.low_blocks, where writes wait for cleaning";
                return Err(Flaw::new("gc.until_blocks", cause));
            }
            _ => {}
        }
        self.interface_flaw()?;
        if self.multi_plane && self.geometry.planes_per_die > 64 {
            return Err(Flaw::new("multi_plane", "a command takes at most 64 planes"));
        }
        if let Some(slc) = &self.slc {
            slc.flaw(self)?;
        }
        if let Some(events) = &self.events {
            return self.event_flaw(events);
        }
        if let Some(zones) = &self.zones {
            if self.translation != Translation::Page || self.summary_bytes.is_some() {
                let cause = "a device of zones has no translation layer and no summaries";
                return Err(Flaw::new("zones", cause));
            }
            return zones.flaw(self);
        }
        match self.translation {
            Translation::Page => self.capacity_flaw(),
            blocks => blocks.flaw(self),
        }
    }

    fn interface_flaw(&self) -> Result<(), Flaw> {
        if self.interface_bytes_per_s.is_some_and(|rate| !rate.is_finite() || rate < 1e3) {
            return Err(Flaw::new("interface_mb_per_s", "no interface is that slow"));
        }
        if self.interface_command_ns > 0 && self.interface_bytes_per_s.is_none() {
            let cause = "commands take time on an interface: give its interface_mb_per_s";
            return Err(Flaw::new("interface_command_us", cause));
        }
        if self.interface_command_ns > 3_600_000_000_000 {
            return Err(Flaw::new("interface_command_us", "it is longer than an hour"));
        }
        if self.overhead_ns > 3_600_000_000_000 {
            return Err(Flaw::new("overhead_us", "it is longer than an hour"));
        }
        Ok(())
    }

    /// What the event model has not, and whether there is room for its map.
    fn event_flaw(&self, events: &EventParameters) -> Result<(), Flaw> {
        events.flaw()?;
        if self.translation != Translation::Page {
            let cause = "the event model has a page map only";
            return Err(Flaw::new("mapping.kind", cause));
        }
        if self.streams.isolation == Isolation::Persistent {
            let cause = "the event model moves pages of all streams to shared blocks";
            return Err(Flaw::new("stream_isolation", cause));
        }
        if self.zones.is_some() {
            return Err(Flaw::new("zones", "the event model has a page map only"));
        }
        if self.one_at_a_time {
            let cause = "the event model counts commands: give queue.depth = 1";
            return Err(Flaw::new("one_at_a_time", cause));
        }
        if self.summary_bytes.is_some() {
            return Err(Flaw::new("summary_bytes", "the event model has no summaries"));
        }
        let logical_pages = self.logical_pages.saturating_add(events.map_pages(self));
        Self { logical_pages, events: None, ..self.clone() }.flaw()
    }

    /// Cleaning needs a closed block with a dead page whenever it starts.
    fn capacity_flaw(&self) -> Result<(), Flaw> {
        let Geometry { blocks_per_plane, pages_per_block, .. } = self.geometry;
        let reserved = self.reserved_blocks_per_plane();
        let room =
            u64::from(blocks_per_plane.saturating_sub(reserved)) * u64::from(pages_per_block);
        let needed = self.plane_pages_most();
        if needed >= room {
            return Err(Flaw::new(
                "over_provisioning",
                format!(
                    "it cannot hold the data: each plane holds up to {needed} logical pages, and \
                     of its {blocks_per_plane} blocks {reserved} are reserved for cleaning and \
                     open blocks, which leaves {room} pages"
                ),
            ));
        }
        Ok(())
    }
}

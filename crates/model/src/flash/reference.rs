//! Configuration A and its loads: the small device on which flash simulators were compared.
//!
//! 8 GiB raw of SLC in 32 planes, 18.75 % of it over-provisioned, static allocation CWDP, greedy
//! cleaning below 12 free blocks (5 %) of a plane, no cache. Requests are one page, uniform random,
//! with Poisson arrivals. MQSim (Tavakkol et al., FAST 2018) gives a mean response of 562 us for
//! writes at 5,000/s on the empty device and 226 us for 70 % reads at 10,000/s after a fill; both
//! are golden numbers here. Every load is made of counter-mode random numbers, so that any part
//! of it can be made anywhere.

use profile::flash::{
    AllocationScheme, CellKind, FlashParameters, GcMode, GcParameters, GcPolicy, Geometry, Order,
    StreamParameters, Timing, Translation, WearParameters,
};
use stats::rng;
use trace::{Op, Request, Stream, Trace};
use units::{Bytes, Nanos};

/// Configuration A.
pub fn configuration_a() -> FlashParameters {
    let geometry = Geometry {
        channels: 8,
        chips_per_channel: 2,
        dies_per_chip: 1,
        planes_per_die: 2,
        blocks_per_plane: 256,
        pages_per_block: 256,
        page_bytes: 4096,
    };
    FlashParameters {
        geometry,
        timing: Timing {
            cell: CellKind::Slc,
            read_ns: vec![50_000.0],
            program_ns: vec![500_000.0],
            erase_ns: 3_500_000.0,
            command_ns: 0.0,
            bus_transfers_per_s: 333e6,
            bus_width_bits: 8,
        },
        logical_pages: FlashParameters::logical_pages_at(&geometry, 0.1875),
        translation: Translation::Page,
        allocation: AllocationScheme::Static(Order::CWDP),
        host_streams: 1,
        streams: StreamParameters::default(),
        zones: None,
        slc: None,
        multi_plane: false,
        gc: GcParameters {
            policy: GcPolicy::Greedy,
            mode: GcMode::Foreground,
            low_blocks: 12,
            separate: true,
            copy_back: false,
        },
        wear: WearParameters::default(),
        summary_bytes: None,
        overhead_ns: 0,
        interface_bytes_per_s: None,
        interface_command_ns: 0,
        one_at_a_time: false,
        behind_cache: false,
        events: None,
    }
}

/// Configuration A made 1 TiB large: 32,768 blocks in each of the 32 planes.
pub fn configuration_a_of_1_tib() -> FlashParameters {
    let mut parameters = configuration_a();
    parameters.geometry.blocks_per_plane = 32_768;
    let geometry = &parameters.geometry;
    parameters.logical_pages = FlashParameters::logical_pages_at(geometry, 0.1875);
    parameters
}

/// Requests of one page each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// How many.
    pub requests: u64,
    /// Mean arrivals per second; gaps are exponential.
    pub per_s: f64,
    /// Share of reads, 0 to 1.
    pub read_share: f64,
    /// Pages addressed, from the first.
    pub pages: u32,
    /// Bytes per page.
    pub page_bytes: u32,
    /// Decides everything random.
    pub seed: u64,
}

impl Load {
    /// Uniform random requests on the whole of `parameters`.
    pub fn on(parameters: &FlashParameters, requests: u64, per_s: f64, read_share: f64) -> Self {
        let page_bytes = parameters.geometry.page_bytes;
        Self { requests, per_s, read_share, pages: parameters.logical_pages, page_bytes, seed: 1 }
    }

    /// The page of request `index`, uniform.
    #[inline]
    pub fn page(&self, index: u64) -> u32 {
        scaled(rng::at(self.seed, 3 * index), u64::from(self.pages)) as u32
    }

    /// The load as a trace from time `start_ns`; page `k` of a sequential fill is request `k`.
    fn trace(&self, start_ns: u64, page: impl Fn(u64) -> u32) -> Trace {
        let stream = Stream { name: "data".to_owned() };
        let mut trace = Trace { streams: vec![stream], ..Trace::default() };
        let mut now = start_ns as f64;
        for index in 0..self.requests {
            now += exponential(rng::at(self.seed, 3 * index + 1), 1e9 / self.per_s);
            let read = unit(rng::at(self.seed, 3 * index + 2)) < self.read_share;
            trace.push(Request {
                due: Nanos(now as u64),
                offset: Bytes(u64::from(page(index)) * u64::from(self.page_bytes)),
                len: self.page_bytes,
                op: if read { Op::Read } else { Op::Write },
                stream: 0,
            });
        }
        trace
    }

    /// Uniform random requests from `start_ns`.
    pub fn uniform(&self, start_ns: u64) -> Trace {
        self.trace(start_ns, |index| self.page(index))
    }

    /// One request after another through the pages, from the first again after the last.
    pub fn sequential(&self, start_ns: u64) -> Trace {
        self.trace(start_ns, |index| (index % u64::from(self.pages)) as u32)
    }
}

/// A random word as a number in `0..bound`.
fn scaled(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

fn exponential(word: u64, mean: f64) -> f64 {
    -mean * (1.0 - unit(word)).ln()
}

//! From parameters to a device: the one place where a room becomes a type.
//!
//! Every choice of a profile is made here, once; nothing is dispatched in the loop over requests.
//! Tested by everything that builds a device.

use profile::flash::{
    AllocationScheme, Error, FlashParameters, GcPolicy, PreconditionSpec, Translation,
    ZoneParameters,
};

use super::allocation::{Allocation, ByDie, Dynamic, Static};
use super::gc::{ByStream, CostBenefit, DChoices, Fifo, Greedy, PolicyContext, Victim, Windowed};
use super::mapping::block::{Bast, Fast, Replacement};
use super::mapping::{BlockMapped, PageMapped, SlcCached, Zoned};
use super::{EventFlash, Flash, FlashDevice, HostLog};

/// Makes the device of `parameters`, empty; `seed` decides every random choice.
///
/// # Errors
/// Where no such device can exist.
pub fn build(parameters: &FlashParameters, seed: u64) -> Result<Box<dyn FlashDevice>, Error> {
    parameters.check()?;
    if let Some(zones) = &parameters.zones {
        return Ok(zoned(parameters, zones, seed));
    }
    match parameters.translation {
        Translation::Page => {}
        Translation::Block { width, open } => {
            return Ok(blockwise(parameters, width, seed, |n| Replacement::new(n, open)));
        }
        Translation::Bast { width, logs } => {
            return Ok(blockwise(parameters, width, seed, |n| Bast::new(n, logs)));
        }
        Translation::Fast { width, logs } => {
            return Ok(blockwise(parameters, width, seed, |n| Fast::new(n, logs)));
        }
    }
    let context = PolicyContext { geometry: &parameters.geometry, pools_per_plane: 1, seed };
    if !parameters.streams.block_shares.is_empty() {
        let greedy = parameters.gc.policy == GcPolicy::Greedy;
        let victims = ByStream::new(&context, &parameters.streams.block_shares, greedy);
        return Ok(with_victims(parameters, victims, seed));
    }
    Ok(match parameters.gc.policy {
        GcPolicy::Greedy => with_victims(parameters, Greedy::new(&context), seed),
        GcPolicy::Fifo => with_victims(parameters, Fifo::new(&context), seed),
        GcPolicy::DChoices(d) => with_victims(parameters, DChoices::new(&context, d), seed),
        GcPolicy::Windowed(w) => with_victims(parameters, Windowed::new(&context, w), seed),
        GcPolicy::CostBenefit => with_victims(parameters, CostBenefit::new(&context), seed),
    })
}

/// The device of `parameters`, holding data as `state` says.
///
/// # Panics
/// Where no such device can exist: a profile is checked before.
pub fn preconditioned(
    parameters: &FlashParameters,
    state: &PreconditionSpec,
    seed: u64,
) -> Box<dyn FlashDevice> {
    let mut device = build(parameters, seed).expect("a checked profile");
    if state.fill > 0.0 {
        device.precondition(state.fill, state.random, seed);
    }
    device
}

/// A device that maps whole blocks; `layer` makes its layer for so many logical blocks.
fn blockwise<L: super::mapping::block::Layer + 'static>(
    parameters: &FlashParameters,
    width: u32,
    seed: u64,
    layer: impl FnOnce(usize) -> L,
) -> Box<dyn FlashDevice> {
    Box::new(Flash::new(parameters, BlockMapped::new(parameters, width, layer), seed))
}

/// A device of zones, behind a log of the host's where it has one.
fn zoned(parameters: &FlashParameters, zones: &ZoneParameters, seed: u64) -> Box<dyn FlashDevice> {
    if zones.host_log_low_zones.is_some() {
        return Box::new(HostLog::new(parameters, zones, seed));
    }
    let mapping = Zoned::new(parameters, zones, parameters.logical_pages);
    Box::new(Flash::new(parameters, mapping, seed))
}

fn with_victims<V: Victim + 'static>(
    parameters: &FlashParameters,
    victims: V,
    seed: u64,
) -> Box<dyn FlashDevice> {
    if let Some(events) = &parameters.events {
        return Box::new(EventFlash::new(parameters, events, victims, seed));
    }
    let geometry = &parameters.geometry;
    match parameters.allocation {
        AllocationScheme::Static(order) => {
            with_allocation(parameters, victims, Static::new(geometry, order), seed)
        }
        AllocationScheme::ByDie(order) => {
            with_allocation(parameters, victims, ByDie::new(geometry, order), seed)
        }
        AllocationScheme::RoundRobin | AllocationScheme::Dynamic => {
            let by_load = parameters.allocation == AllocationScheme::Dynamic;
            with_allocation(parameters, victims, Dynamic::new(geometry, by_load), seed)
        }
    }
}

fn with_allocation<V: Victim + 'static, A: Allocation + 'static>(
    parameters: &FlashParameters,
    victims: V,
    allocation: A,
    seed: u64,
) -> Box<dyn FlashDevice> {
    let main = PageMapped::new(parameters, victims, allocation);
    match parameters.slc {
        Some(slc) => {
            let cached = SlcCached::new(parameters, slc, main);
            Box::new(Flash::new(parameters, cached, seed))
        }
        None => Box::new(Flash::new(parameters, main, seed)),
    }
}

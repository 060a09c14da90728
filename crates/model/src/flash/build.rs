//! From parameters to a device: the one place where a choice becomes a type.
//!
//! The usual choices are types of their own, so that nothing is dispatched in the loop over
//! requests; the others are branches ([`Chosen`], [`Free`]), since each type is compiled again.
//! Tested by everything that builds a device.

use profile::flash::{
    AllocationScheme, Error, FlashParameters, GcPolicy, PreconditionSpec, Translation,
    ZoneParameters,
};

use super::allocation::{Allocation, ByDie, Dynamic, Free, Static};
use super::gc::{Chosen, Greedy, PolicyContext};
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
    Ok(page_mapped(parameters, seed))
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

/// A device that maps whole blocks; `layer` makes its layer for this many logical blocks.
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

/// A device with a page map. What most profiles name is compiled for itself; the other combinations
/// share code that asks at every call which one it is, since each would be compiled again.
fn page_mapped(parameters: &FlashParameters, seed: u64) -> Box<dyn FlashDevice> {
    let geometry = &parameters.geometry;
    let greedy = (parameters.gc.policy == GcPolicy::Greedy
        && parameters.streams.block_shares.is_empty())
    .then(|| Greedy::new(&PolicyContext { geometry, pools_per_plane: 1, seed }));
    if let Some(events) = &parameters.events {
        let Some(greedy) = greedy else {
            let victims = Chosen::new(parameters, seed);
            return Box::new(EventFlash::new(parameters, events, victims, seed));
        };
        return Box::new(EventFlash::new(parameters, events, greedy, seed));
    }
    let victims = || Chosen::new(parameters, seed);
    match (parameters.allocation, greedy) {
        (AllocationScheme::Static(order), Some(greedy)) if parameters.slc.is_none() => {
            let mapping = PageMapped::new(parameters, greedy, Static::new(geometry, order));
            Box::new(Flash::new(parameters, mapping, seed))
        }
        (AllocationScheme::Static(order), _) => {
            cached(parameters, victims(), Static::new(geometry, order), seed)
        }
        (AllocationScheme::ByDie(order), _) => {
            cached(parameters, victims(), Free::ByDie(ByDie::new(geometry, order)), seed)
        }
        (AllocationScheme::RoundRobin, _) => {
            cached(parameters, victims(), Free::Dynamic(Dynamic::new(geometry, false)), seed)
        }
        (AllocationScheme::Dynamic, _) => {
            cached(parameters, victims(), Free::Dynamic(Dynamic::new(geometry, true)), seed)
        }
    }
}

/// A page map with an SLC cache, where the device has one.
fn cached<A: Allocation + 'static>(
    parameters: &FlashParameters,
    victims: Chosen,
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

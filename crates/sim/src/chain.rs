//! Chains of dependent requests: what one actor issues one after another.
//!
//! Between the end of one request of an actor and the issue of its next lies CPU time, taken as
//! captured: `due[i + 1] - (due[i] + service[i])`, zero where the capture shows them overlapping.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::Device;
use trace::Trace;
use units::Nanos;

use crate::Error;

/// Response times (completion - issue, ns) of a captured trace, in trace order, when every actor
/// waits for the simulated device. The same as `probe`'s dependent replay measures on a real one.
///
/// # Errors
/// Where the trace is malformed or was not observed.
pub fn closed_loop_responses(device: &mut dyn Device, trace: &Trace) -> Result<Vec<u64>, Error> {
    let mut responses = vec![0; trace.count()];
    walk(device, trace, |index, issue, completion| responses[index] = completion - issue)?;
    Ok(responses)
}

/// Walks all chains in virtual time and tells of each request: index, issue, completion. The actor
/// with the earliest next issue goes first, the lower number at a tie. Returns the actors.
pub(crate) fn walk(
    device: &mut dyn Device,
    trace: &Trace,
    mut each: impl FnMut(usize, u64, u64),
) -> Result<u64, Error> {
    trace.validate()?;
    let observed = trace.observed.as_ref().ok_or(Error::NotObserved)?;
    let count = observed.actor.iter().max().map_or(0, |&most| usize::from(most) + 1);
    let mut chains = vec![Vec::new(); count];
    for (index, &actor) in observed.actor.iter().enumerate() {
        chains[usize::from(actor)].push(index);
    }
    // (next issue, actor, position in its chain)
    let mut ready: BinaryHeap<Reverse<(u64, usize, usize)>> = chains
        .iter()
        .enumerate()
        .filter_map(|(actor, chain)| chain.first().map(|&i| Reverse((trace.due[i], actor, 0))))
        .collect();
    let actors = ready.len() as u64;
    while let Some(Reverse((issue, actor, position))) = ready.pop() {
        let index = chains[actor][position];
        let completion = device.submit(Nanos(issue), &trace.request(index)).0;
        each(index, issue, completion);
        if let Some(&next) = chains[actor].get(position + 1) {
            let captured_end = trace.due[index] + observed.service[index];
            let gap = trace.due[next].saturating_sub(captured_end);
            ready.push(Reverse((completion + gap, actor, position + 1)));
        }
    }
    Ok(actors)
}

//! Devices and runs that the flash tests share.

use model::Device;
use model::flash::reference::Load;
use model::flash::{FlashDevice, build};
use profile::flash::FlashParameters;
use trace::Trace;

/// The device of `parameters`, which can exist.
pub fn device(parameters: &FlashParameters) -> Box<dyn FlashDevice> {
    build(parameters, 1).expect("a device that can exist")
}

/// Whether the slow set is asked for; says so where it is not.
pub fn slow(what: &str) -> bool {
    let slow = std::env::var_os("SLOW").is_some();
    if !slow {
        println!("skipped: {what}; SLOW=1 runs it");
    }
    slow
}

/// Runs `trace`; gives the completion of every request.
pub fn completions<D: Device + ?Sized>(device: &mut D, trace: &Trace) -> Vec<u64> {
    let mut completions = vec![0; trace.count()];
    device.submit_due(trace, 0..trace.count(), &mut completions);
    completions
}

/// Runs `trace`; gives the mean response in us.
pub fn mean_us<D: Device + ?Sized>(device: &mut D, trace: &Trace) -> f64 {
    let completions = completions(device, trace);
    let responses = completions.iter().zip(&trace.due).map(|(at, due)| at - due);
    responses.sum::<u64>() as f64 / trace.count() as f64 / 1e3
}

/// Writes all pages of `device` once, in order; gives a time at which it is idle again.
pub fn fill<D: Device + ?Sized>(device: &mut D, parameters: &FlashParameters) -> u64 {
    let mut load = Load::on(parameters, u64::from(parameters.logical_pages), 1e6, 0.0);
    load.seed = 7;
    let done = completions(device, &load.sequential(0));
    done.into_iter().max().unwrap_or(0)
}

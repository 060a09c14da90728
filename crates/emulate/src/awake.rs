//! Processors kept from sleeping, so that the way to the emulator takes the same each time.
//!
//! A processor that has gone to sleep is back after tens of microseconds, on a virtual machine
//! later than on its own: more than the emulated device's time where that is a fast one, and
//! different from one request to the next.

use std::fs::{File, OpenOptions};
use std::io::Write;

/// While it lives, idle processors poll instead of sleeping (Linux, `Documentation/power/
/// pm_qos_interface.rst`: a bound of 0 us on the latency of waking up, held by an open file).
#[derive(Debug)]
pub struct Awake {
    _bound: File,
}

impl Awake {
    /// `None` where it is not allowed: only root may ask for it.
    pub fn keep() -> Option<Self> {
        let mut bound = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
        bound.write_all(&0i32.to_ne_bytes()).ok()?;
        Some(Self { _bound: bound })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// The kernel's own answer: the smallest bound that anybody holds.
    #[test]
    fn the_kernel_knows_the_bound() {
        let Some(awake) = Awake::keep() else {
            return println!("skipped: /dev/cpu_dma_latency may not be written");
        };
        let mut bound = [1; 4];
        File::open("/dev/cpu_dma_latency").unwrap().read_exact(&mut bound).unwrap();
        assert_eq!(i32::from_ne_bytes(bound), 0);
        drop(awake);
    }
}

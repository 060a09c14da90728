//! From device numbers to small indices.

use std::collections::HashMap;

/// Devices seen. Beyond 65,534 the last index stands for the rest, and [`Devices::overflowed`] says
/// so.
#[derive(Debug, Default)]
pub(super) struct Devices {
    numbers: Vec<u32>,
    index: HashMap<u32, u16>,
    /// The last one looked up: most traces have one device.
    last: Option<(u32, u16)>,
}

/// Indices stay below the mark of an empty slot in the table of requests.
const MOST_DEVICES: usize = u16::MAX as usize - 1;

impl Devices {
    #[inline]
    pub(super) fn index(&mut self, number: u32) -> u16 {
        match self.last {
            Some((last, index)) if last == number => index,
            _ => self.look_up(number),
        }
    }

    fn look_up(&mut self, number: u32) -> u16 {
        let index = match self.index.get(&number) {
            Some(index) => *index,
            None if self.numbers.len() >= MOST_DEVICES => MOST_DEVICES as u16 - 1,
            None => {
                let index = self.numbers.len() as u16;
                self.numbers.push(number);
                self.index.insert(number, index);
                index
            }
        };
        self.last = Some((number, index));
        index
    }

    /// The numbers in the order of their indices.
    pub(super) fn into_numbers(self) -> Vec<u32> {
        self.numbers
    }
}

//! Which plane takes a page that is written: the schemes by name.
//!
//! - **static**: decided by the logical page number. The four letters of an order such as `CWDP`
//!   name channel, way (chip), die and plane; the first varies fastest from page to page (Hu et
//!   al., "Exploring and Exploiting the Multilevel Parallelism Inside SSDs", IEEE TC 2013). A page
//!   stays in its plane for ever.
//! - **by die**: the die by the logical page number, in that order; its planes in turn.
//! - **round robin**: the next plane in channel-first order, whatever is written.
//! - **dynamic**: the plane whose die is free first; among equals the next in turn.
//!
//! With an event queue and multi-plane commands the last two take the planes of a die one after
//! another, so that what is written together is programmed together.
//!
//! The last three skip planes that hold as much as they can.

use super::{Error, Flaw, Geometry};

/// The schemes by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationScheme {
    /// By the logical page number, in an order such as `CWDP`.
    Static(Order),
    /// The die by the logical page number, in an order such as `CWDP`; its planes in turn.
    ByDie(Order),
    /// The next plane in turn.
    RoundRobin,
    /// The plane whose die is free first.
    Dynamic,
}

/// The order in which pages spread over channels (C), ways (W), dies (D) and planes (P).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order([u8; 4]);

impl Order {
    /// Channel first, then way, die and plane: the most parallel one for small requests.
    pub const CWDP: Self = Self(*b"CWDP");

    /// The planes of a die first: what multi-plane commands ask for.
    pub const PCWD: Self = Self(*b"PCWD");

    /// The four letters of the order.
    pub fn name(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("CWDP")
    }

    /// Reads an order of four letters, in any case.
    ///
    /// # Errors
    /// Where it does not name each of C, W, D and P once.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let upper = text.to_ascii_uppercase();
        let letters = <[u8; 4]>::try_from(upper.as_bytes()).ok();
        let complete = |letters: &[u8; 4]| b"CWDP".iter().all(|letter| letters.contains(letter));
        letters.filter(complete).map(Self).ok_or_else(|| {
            let cause = "an order names each of C, W, D and P once, as CWDP does";
            Flaw::new("allocation", cause).into()
        })
    }

    /// The planes of `geometry` in this order.
    pub fn planes(self, geometry: &Geometry) -> Vec<u32> {
        let counts = [
            geometry.channels,
            geometry.chips_per_channel,
            geometry.dies_per_chip,
            geometry.planes_per_die,
        ];
        let place = self.0.map(|letter| b"CWDP".iter().position(|own| *own == letter).unwrap_or(0));
        let at = |slot: u32| {
            let mut rest = slot;
            let mut part = [0; 4];
            for place in place {
                part[place] = rest % counts[place];
                rest /= counts[place];
            }
            geometry.plane_at(part)
        };
        (0..geometry.plane_count()).map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Geometry = Geometry {
        channels: 2,
        chips_per_channel: 2,
        dies_per_chip: 1,
        planes_per_die: 2,
        blocks_per_plane: 8,
        pages_per_block: 4,
        page_bytes: 4096,
    };

    #[test]
    fn the_first_letter_varies_fastest() {
        let planes = |order: &str| Order::parse(order).expect(order).planes(&SMALL);
        // Plane numbers are channel * 4 + chip * 2 + plane.
        assert_eq!(planes("CWDP"), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(planes("PDWC"), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(planes("wcpd"), [0, 2, 4, 6, 1, 3, 5, 7]);
        for wrong in ["", "CWD", "CWDD", "CWDPX", "ABCD"] {
            assert!(Order::parse(wrong).is_err(), "{wrong}");
        }
    }
}

//! Packets on a byte stream: three bytes of length, one of sequence, then the payload.
//!
//! A payload of 2^24 - 1 bytes goes on in the next packet; [`Input`] joins such chains in place.

use std::io::{self, Read};
use std::ops::Range;

use super::fields::malformed;
use crate::Error;

/// Longest payload that is taken from a server, joined: 64 MiB.
pub const PACKET_MAX: usize = 64 << 20;

/// Longest payload of one packet; one of exactly this length is continued.
pub(super) const PART_MAX: usize = 0xff_ffff;

/// Bytes in front of a payload.
pub(super) const HEADER: usize = 4;

/// Free space that a read is given at least.
const READ_MIN: usize = 4 << 10;

/// What was received and not yet read.
#[derive(Debug)]
pub(super) struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Sequence number of the last packet that was taken.
    sequence: u8,
}

impl Default for Input {
    fn default() -> Self {
        Self { buffer: vec![0; 16 << 10], start: 0, end: 0, sequence: 0 }
    }
}

impl Input {
    /// Sequence number of the last packet.
    pub fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Whether everything that was received has been read.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The bytes of a packet that [`Input::packet`] found; valid until the next call of a `&mut`
    /// method.
    #[inline]
    pub fn bytes(&self, packet: Range<usize>) -> &[u8] {
        &self.buffer[packet]
    }

    /// Takes the next packet, where it has arrived whole.
    #[inline]
    pub fn packet(&mut self) -> Result<Option<Range<usize>>, Error> {
        let Some(first) = self.part(self.start)? else { return Ok(None) };
        if first.len() < PART_MAX {
            self.sequence = self.buffer[first.start - 1];
            self.start = first.end;
            return Ok(Some(first));
        }
        self.joined(first)
    }

    /// The payload of the packet that begins at `at`, where it has arrived.
    #[inline]
    fn part(&self, at: usize) -> Result<Option<Range<usize>>, Error> {
        let received = &self.buffer[at..self.end];
        let Some(header) = received.first_chunk::<HEADER>() else { return Ok(None) };
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        if at + len - self.start > PACKET_MAX {
            return Err(malformed("a packet of more than 64 MiB"));
        }
        let payload = at + HEADER..at + HEADER + len;
        Ok((payload.end <= self.end).then_some(payload))
    }

    /// A chain of packets, joined over their headers once all of them have arrived.
    #[cold]
    fn joined(&mut self, first: Range<usize>) -> Result<Option<Range<usize>>, Error> {
        let (mut last, mut parts) = (first.clone(), 1);
        while last.len() == PART_MAX {
            let Some(part) = self.part(last.end)? else { return Ok(None) };
            (last, parts) = (part, parts + 1);
        }
        self.sequence = self.buffer[last.start - 1];
        self.start = last.end;
        let mut end = first.end;
        for k in 1..parts {
            let from = first.start + k * (PART_MAX + HEADER);
            let to = if k + 1 == parts { last.end } else { from + PART_MAX };
            self.buffer.copy_within(from..to, end);
            end += to - from;
        }
        Ok(Some(first.start..end))
    }

    /// Receives what there is, at least one byte.
    pub fn fill(&mut self, stream: &mut impl Read) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.buffer.len() - self.end < READ_MIN {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            // Bounded: a packet over PACKET_MAX is refused before it has arrived.
            if self.buffer.len() - self.end < self.buffer.len() / 2 {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        loop {
            match stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.end += count;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Begins a packet; [`end`] writes its length.
#[inline]
pub(super) fn begin(output: &mut Vec<u8>, sequence: u8) -> usize {
    output.extend_from_slice(&[0, 0, 0, sequence]);
    output.len()
}

/// Ends the packet whose payload began at `start`; a long one is split.
#[inline]
pub(super) fn end(output: &mut Vec<u8>, start: usize) {
    let len = output.len() - start;
    if len < PART_MAX {
        output[start - HEADER..start - 1].copy_from_slice(&(len as u32).to_le_bytes()[..3]);
    } else {
        split(output, start);
    }
}

#[cold]
fn split(output: &mut Vec<u8>, start: usize) {
    let payload = output.split_off(start);
    let first = output[start - 1];
    output.truncate(start - HEADER);
    let mut parts = payload.chunks(PART_MAX).peekable();
    let mut sequence = first;
    let mut full = true;
    while full {
        // A chain ends with a packet that is not full, if need be an empty one.
        let part = parts.next().unwrap_or_default();
        full = part.len() == PART_MAX;
        output.extend_from_slice(&(part.len() as u32).to_le_bytes()[..3]);
        output.push(sequence);
        output.extend_from_slice(part);
        sequence = sequence.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hands out bytes in pieces of given lengths.
    struct Pieces<'a> {
        bytes: &'a [u8],
        lens: Vec<usize>,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let len = self.lens.pop().unwrap_or(usize::MAX).max(1);
            let len = len.min(into.len()).min(self.bytes.len());
            into[..len].copy_from_slice(&self.bytes[..len]);
            self.bytes = &self.bytes[len..];
            Ok(len)
        }
    }

    fn received(bytes: &[u8], lens: Vec<usize>) -> Vec<Vec<u8>> {
        let (mut input, mut packets) = (Input::default(), Vec::new());
        let mut stream = Pieces { bytes, lens };
        loop {
            while let Some(packet) = input.packet().unwrap() {
                packets.push(input.bytes(packet).to_vec());
            }
            if input.fill(&mut stream).is_err() {
                assert!(input.is_empty());
                return packets;
            }
        }
    }

    proptest! {
        #[test]
        fn packets_come_back_however_they_are_cut(
            lens in prop::collection::vec(0usize..40_000, 0..8),
            pieces in prop::collection::vec(0usize..9000, 0..40),
        ) {
            let mut sent = Vec::new();
            let packets: Vec<Vec<u8>> = lens.iter().map(|&len| vec![len as u8; len]).collect();
            for packet in &packets {
                let start = begin(&mut sent, 3);
                sent.extend_from_slice(packet);
                end(&mut sent, start);
            }
            prop_assert_eq!(received(&sent, pieces), packets);
        }
    }

    #[test]
    fn long_payloads_are_split_and_joined() {
        for len in [PART_MAX - 1, PART_MAX, PART_MAX + 1, 2 * PART_MAX, 2 * PART_MAX + 7] {
            let payload: Vec<u8> = (0..len).map(|k| (k / 251) as u8).collect();
            let mut sent = Vec::new();
            for _ in 0..2 {
                let start = begin(&mut sent, 0);
                sent.extend_from_slice(&payload);
                end(&mut sent, start);
            }
            let packets = received(&sent, vec![1, 2, 3, 5_000_000, 99]);
            assert!(packets == [payload.clone(), payload], "{len}");
        }
    }

    #[test]
    fn a_chain_without_end_is_refused() {
        let mut input = Input::default();
        let part = [[0xff, 0xff, 0xff, 0].as_slice(), &vec![7; PART_MAX]].concat();
        for _ in 0..3 {
            let mut stream = Pieces { bytes: &part, lens: Vec::new() };
            while input.fill(&mut stream).is_ok() {
                assert!(matches!(input.packet(), Ok(None)));
            }
        }
        let mut stream = Pieces { bytes: &part, lens: Vec::new() };
        let mut refused = false;
        while !refused && input.fill(&mut stream).is_ok() {
            refused = input.packet().is_err();
        }
        assert!(refused);
    }
}

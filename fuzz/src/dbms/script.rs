//! A server that says its text whatever it is told.

use std::io::{Read, Result, Write};

/// Stands for the client's SCRAM nonce, which is as long, in what the server says.
pub const NONCE: &[u8; 24] = b"NONCENONCENONCENONCENONC";

/// What comes before the nonce in the client's first SCRAM message.
const BEFORE_NONCE: &[u8] = b"n,,n=,r=";

/// How long the message is whose beginning this is, where that can be told.
pub type Length = fn(&[u8]) -> Option<usize>;

/// A server as a stream.
pub struct Script {
    said: Vec<u8>,
    at: usize,
    /// Cuts what is said into messages, each a read.
    length: Option<Length>,
}

impl Script {
    pub fn new(said: &[u8], length: Option<Length>) -> Self {
        Self { said: said.to_vec(), at: 0, length }
    }
}

impl Read for Script {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let rest = &self.said[self.at..];
        let message = self.length.and_then(|length| length(rest)).unwrap_or(rest.len());
        let count = message.max(1).min(rest.len()).min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

impl Write for Script {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let begin = bytes.windows(BEFORE_NONCE.len()).position(|part| part == BEFORE_NONCE);
        let nonce = begin.and_then(|at| bytes.get(at + BEFORE_NONCE.len()..));
        if let Some(nonce) = nonce.and_then(|rest| rest.get(..NONCE.len())) {
            let rest = &mut self.said[self.at..];
            let place = rest.windows(NONCE.len()).position(|part| part == NONCE);
            if let Some(place) = place {
                rest[place..place + NONCE.len()].copy_from_slice(nonce);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

//! The simulator of a page: a packed trace, questions about it on some device, answers.
//!
//! Everything is text or bytes, so that the same code answers in a test, in the program and, as
//! WebAssembly, in a browser ([`module`] is that build). `tests/it` asks both and compares the
//! answers byte by byte.
//!
//! Invariants: a question gets an answer or an error, never a panic; the same trace and question
//! give the same bytes on every machine.

#![deny(unsafe_code)]

mod ask;
#[cfg(target_arch = "wasm32")]
mod exports;
mod packed;

pub use ask::{Answer, Class, Device, Field, Question, Simulate, answer};
pub use packed::{pack, unpack};

/// This crate as a WebAssembly module, compressed with gzip; `cargo xtask wasm` makes it.
#[cfg(not(target_arch = "wasm32"))]
pub fn module() -> &'static [u8] {
    include_bytes!("../assets/simulator.wasm.gz")
}

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

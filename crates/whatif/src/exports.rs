//! What the WebAssembly module exports: two buffers, and calls that read one and fill the other.
//!
//! A page reserves the input with [`reserve`], copies bytes there, then calls [`load`] for a packed
//! trace or [`ask`] for a question; the answer is [`length`] bytes at [`output`]. Addresses are
//! those of the module's own memory, which the page sees as an array: no pointer is followed here.

#![allow(unsafe_code, reason = "an exported name is one that the linker must trust")]

use std::sync::{Mutex, PoisonError};

use trace::Trace;

/// What the page and the module hand each other.
#[derive(Default)]
struct Hands {
    input: Vec<u8>,
    output: String,
    trace: Option<Trace>,
}

static HANDS: Mutex<Option<Hands>> = Mutex::new(None);

fn with<T>(what: impl FnOnce(&mut Hands) -> T) -> T {
    let mut hands = HANDS.lock().unwrap_or_else(PoisonError::into_inner);
    what(hands.get_or_insert_default())
}

/// Makes room for `length` bytes of input and says where.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    with(|hands| {
        hands.input = vec![0; length];
        hands.input.as_mut_ptr()
    })
}

/// Takes the input as a packed trace; its requests, or -1 where it is none.
#[unsafe(no_mangle)]
pub extern "C" fn load() -> f64 {
    with(|hands| {
        hands.trace = crate::unpack(&std::mem::take(&mut hands.input));
        hands.trace.as_ref().map_or(-1.0, |trace| trace.count() as f64)
    })
}

/// Takes the input as a question and answers it.
#[unsafe(no_mangle)]
pub extern "C" fn ask() {
    with(|hands| {
        let question = String::from_utf8_lossy(&hands.input);
        let none = Trace::default();
        hands.output = crate::answer(hands.trace.as_ref().unwrap_or(&none), &question);
    });
}

/// Where the answer stands.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    with(|hands| hands.output.as_ptr())
}

/// Bytes of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn length() -> usize {
    with(|hands| hands.output.len())
}

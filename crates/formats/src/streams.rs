//! The streams of a trace while it is read: from the numbers or names in the file to indices.
//!
//! Indices are given in the order of appearance and put in the order of the numbers (or names) at
//! the end, so that the answer does not depend on who appeared first, nor on the threads that read.
//! A trace holds at most 65,535 streams; one more is an error that says so, never a fold.

#![allow(clippy::inline_always, reason = "a call per field would cost more than the field")]

use std::collections::HashMap;

use trace::Stream;

use super::cause::Cause;

/// Most streams that a trace can hold: one index stays free.
pub const MOST_STREAMS: usize = u16::MAX as usize;

/// What a file calls a stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Number(u64),
    Name(Box<[u8]>),
}

/// Streams seen so far.
#[derive(Clone, Debug)]
pub struct Streams {
    /// Put in front of a number to make a name, such as `asu`.
    prefix: &'static str,
    /// In the order of appearance.
    keys: Vec<Key>,
    /// Index plus one of each small number seen.
    small: Vec<u16>,
    large: HashMap<u64, u16>,
    names: HashMap<Box<[u8]>, u16>,
    /// The last name looked up and its index: most files change it rarely.
    last_name: Option<(Vec<u8>, u16)>,
}

/// Numbers below this are looked up in a table.
const SMALL: u64 = 1 << 16;

impl Streams {
    /// None yet; a number `n` will be called `{prefix}n`.
    pub fn new(prefix: &'static str) -> Self {
        Self {
            prefix,
            keys: Vec::new(),
            small: Vec::new(),
            large: HashMap::new(),
            names: HashMap::new(),
            last_name: None,
        }
    }

    /// None, named in the same way.
    pub(super) fn same_kind(&self) -> Self {
        Self::new(self.prefix)
    }

    /// Streams seen.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// Index of a number seen before.
    #[inline(always)]
    pub(super) fn known(&self, number: u64) -> Option<u16> {
        match self.small.get(number as usize) {
            Some(index) => index.checked_sub(1),
            None if number < SMALL => None,
            None => self.large.get(&number).copied(),
        }
    }

    /// Index of a name seen before.
    #[inline]
    pub(super) fn known_name(&self, name: &[u8]) -> Option<u16> {
        match &self.last_name {
            Some((last, index)) if last == name => Some(*index),
            _ => self.names.get(name).copied(),
        }
    }

    /// Index of a stream that the file gives a number.
    #[inline]
    pub fn number(&mut self, number: u64) -> Result<u16, Cause> {
        if let Some(known) = self.known(number) {
            return Ok(known);
        }
        let index = self.add(Key::Number(number))?;
        if number >= SMALL {
            self.large.insert(number, index);
            return Ok(index);
        }
        if self.small.len() <= number as usize {
            self.small.resize(number as usize + 1, 0);
        }
        self.small[number as usize] = index + 1;
        Ok(index)
    }

    /// Index of a stream that the file gives a name; a comma in it is shown as an underscore.
    #[inline]
    pub fn name(&mut self, name: &[u8]) -> Result<u16, Cause> {
        let index = if let Some(known) = self.known_name(name) {
            known
        } else {
            let index = self.add(Key::Name(name.into()))?;
            self.names.insert(name.into(), index);
            index
        };
        let (last, last_index) = self.last_name.get_or_insert_default();
        if last != name || *last_index != index {
            last.clear();
            last.extend_from_slice(name);
            *last_index = index;
        }
        Ok(index)
    }

    fn add(&mut self, key: Key) -> Result<u16, Cause> {
        if self.keys.len() == MOST_STREAMS {
            return Err(Cause::Said("more than 65,535 streams; cut the trace by volume first"));
        }
        self.keys.push(key);
        Ok(self.keys.len() as u16 - 1)
    }

    /// For each stream of `other` its index here, adding those that are new.
    pub(super) fn absorb(&mut self, other: &Self) -> Result<Vec<u16>, Cause> {
        other
            .keys
            .iter()
            .map(|key| match key {
                Key::Number(number) => self.number(*number),
                Key::Name(name) => self.name(name),
            })
            .collect()
    }

    /// The table in the order of numbers, then names, and for each index so far its place in it.
    pub(super) fn finish(self) -> (Vec<Stream>, Vec<u16>) {
        let mut order: Vec<u16> = (0..self.keys.len() as u16).collect();
        order.sort_by_key(|index| &self.keys[usize::from(*index)]);
        let mut place = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            place[usize::from(*old)] = new as u16;
        }
        let name = |old: &u16| match &self.keys[usize::from(*old)] {
            Key::Number(number) => format!("{}{number}", self.prefix),
            Key::Name(name) => {
                String::from_utf8_lossy(name).replace(',', "_").escape_debug().to_string()
            }
        };
        (order.iter().map(|old| Stream { name: name(old) }).collect(), place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_come_out_in_the_order_of_numbers_then_names() {
        let mut streams = Streams::new("asu");
        let indices: Vec<u16> =
            [7, 1 << 40, 2, 7].map(|n| streams.number(n).expect("room")).to_vec();
        assert_eq!(indices, [0, 1, 2, 0]);
        assert_eq!(streams.name(b"b"), Ok(3));
        assert_eq!(streams.name(b"a"), Ok(4));
        assert_eq!((streams.name(b"a"), streams.name(b"b"), streams.count()), (Ok(4), Ok(3), 5));
        let (table, place) = streams.finish();
        let names: Vec<_> = table.iter().map(|stream| stream.name.as_str()).collect();
        assert_eq!(names, ["asu2", "asu7", "asu1099511627776", "a", "b"]);
        assert_eq!(place, [1, 2, 0, 4, 3]);
    }

    #[test]
    fn an_empty_name_is_a_name() {
        let mut streams = Streams::new("");
        assert_eq!((streams.number(3), streams.name(b"")), (Ok(0), Ok(1)));
    }

    #[test]
    fn one_stream_too_many_is_refused() {
        let mut streams = Streams::new("volume");
        for number in 0..MOST_STREAMS as u64 {
            assert_eq!(streams.number(number * 3), Ok(number as u16));
        }
        assert_eq!(streams.number(3), Ok(1));
        let refused = streams.number(1).expect_err("one too many").to_string();
        assert_eq!(refused, "more than 65,535 streams; cut the trace by volume first");
    }

    #[test]
    fn absorbed_streams_keep_their_identity() {
        let (mut one, mut two) = (Streams::new("v"), Streams::new("v"));
        for number in [5, 6] {
            one.number(number).expect("room");
        }
        two.name(b"x").expect("room");
        for number in [6, 1 << 50, 5] {
            two.number(number).expect("room");
        }
        assert_eq!(one.absorb(&two), Ok(vec![2, 1, 3, 0]));
    }
}

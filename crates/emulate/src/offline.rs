//! Requests without a kernel, a client or a clock behind them, for tests and fuzzing: bytes in,
//! replies out.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;

use crate::fuse::layout::Layout;
use crate::fuse::place::{Behaviour, Place};
use crate::fuse::port::respond;
use crate::line::Charge;
use crate::nbd::{Session, Store};
use crate::port::Taken;
use crate::{Fate, Lost};

/// Asserts that what is charged lies on the device.
fn check(charge: &Charge, capacity: u64) {
    let back = charge.written_back.iter().flat_map(|back| &back.writes);
    for part in charge.parts.iter().chain(back.flat_map(|(parts, _)| parts)) {
        let end = part.offset.checked_add(part.len);
        assert!(end.is_some_and(|end| end <= capacity), "{part:?} lies on {capacity} bytes");
    }
}

/// A directory that is served to nobody.
pub struct Directory {
    place: Place,
    capacity: u64,
}

impl Directory {
    /// Serves `directory` on a device of this many bytes; what waits to be removed for good is kept
    /// in `waiting`.
    ///
    /// # Errors
    /// A directory that cannot be opened.
    pub fn open(directory: &Path, waiting: &Path, capacity: u64) -> io::Result<Self> {
        let behaviour = Behaviour {
            waiting: Some(File::open(waiting)?),
            lies: false,
            write_back: true,
            layout: Some(Rc::new(RefCell::new(Layout::new(capacity)))),
            old_bytes_max: capacity,
        };
        Ok(Self { place: Place::new(File::open(directory)?, behaviour)?, capacity })
    }

    /// The reply to a request, where it has one.
    pub fn answer(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let (charge, reply) = respond(&mut self.place, request)?;
        check(&charge, self.capacity);
        Some(reply)
    }

    /// Takes back what was not synced.
    ///
    /// # Errors
    /// What the file system below refuses.
    pub fn cut_power(&mut self, fate: Fate) -> io::Result<Lost> {
        Ok(self.place.cut_power(fate)?)
    }
}

/// A block device for one client.
pub struct Export {
    session: Session,
    store: Rc<RefCell<Store>>,
}

impl Export {
    /// A device of this many bytes in memory.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(size: u64) -> Result<Self, crate::Error> {
        let store = Rc::new(RefCell::new(Store::in_memory(size, true)?));
        Ok(Self { session: Session::new(Rc::clone(&store)), store })
    }

    /// What the client is told after it has said this; `None` once the connection is over.
    pub fn answer(&mut self, mut said: &[u8]) -> Option<Vec<u8>> {
        let mut told = Vec::new();
        loop {
            match self.session.message() {
                Some(Taken::Ended) => return None,
                Some(Taken::Job(charge, reply)) => {
                    check(&charge, self.store.borrow().size());
                    self.session.output.extend(reply);
                }
                Some(_) => {}
                None if said.is_empty() => return Some(told),
                None => {
                    let received = self.session.receive(|into| io::Read::read(&mut said, into));
                    received.expect("bytes in memory can be read");
                }
            }
            told.append(&mut self.session.output);
        }
    }

    /// Takes back what was not flushed.
    ///
    /// # Errors
    /// What the file system below refuses.
    pub fn cut_power(&mut self, fate: Fate) -> io::Result<Lost> {
        self.store.borrow_mut().cut_power(fate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 1 << 20;

    fn request(code: u32, node: u64, body: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![0; 40];
        bytes[4..8].copy_from_slice(&code.to_ne_bytes());
        bytes[16..24].copy_from_slice(&node.to_ne_bytes());
        bytes.extend(body.concat());
        bytes
    }

    fn write(node: u64, offset: u64, data: &[u8]) -> Vec<u8> {
        let len = (data.len() as u32).to_ne_bytes();
        request(16, node, &[&[0; 8], &offset.to_ne_bytes(), &len, &[0; 20], data])
    }

    fn resize(node: u64, size: u64) -> Vec<u8> {
        request(4, node, &[&[8, 0, 0, 0], &[0; 12], &size.to_ne_bytes(), &[0; 64]])
    }

    /// The error of the reply, 0 for none.
    fn errno(reply: Option<Vec<u8>>) -> i32 {
        -i32::from_ne_bytes(reply.unwrap()[4..8].try_into().unwrap())
    }

    fn check(run: impl FnOnce(&mut Directory, &Path)) {
        let root = tempfile::tempdir().unwrap();
        let (live, waiting) = (root.path().join("live"), root.path().join("waiting"));
        std::fs::create_dir(&live).unwrap();
        std::fs::create_dir(&waiting).unwrap();
        std::fs::write(live.join("f"), [7; 100]).unwrap();
        std::fs::write(root.path().join("outside"), "mine").unwrap();
        let mut directory = Directory::open(&live, &waiting, CAPACITY).unwrap();
        assert_eq!(errno(directory.answer(&request(1, 1, &[b"f\0"]))), 0);
        run(&mut directory, root.path());
    }

    #[test]
    fn no_name_leads_out_of_the_directory() {
        check(|directory, root| {
            for name in [&b"../outside\0"[..], b"..\0", b".\0", b"\0"] {
                assert_eq!(errno(directory.answer(&request(10, 1, &[name]))), libc::EINVAL);
                assert_eq!(errno(directory.answer(&request(1, 1, &[name]))), libc::EINVAL);
            }
            assert!(root.join("outside").exists());
        });
    }

    #[test]
    fn offsets_beyond_the_largest_file_are_refused() {
        check(|directory, _| {
            for offset in [u64::MAX, u64::MAX - 4095, 1 << 63] {
                assert_eq!(errno(directory.answer(&write(2, offset, b"ab"))), libc::EFBIG);
                let place = [&[0; 8], &offset.to_ne_bytes()[..], &9u64.to_ne_bytes()].concat();
                let punch = request(43, 2, &[&place, &[3, 0, 0, 0, 0, 0, 0, 0]]);
                assert_eq!(errno(directory.answer(&punch)), libc::EFBIG);
            }
        });
    }

    /// A sparse file of a TiB costs no memory to cut, and what then was durable stays.
    #[test]
    fn old_bytes_beyond_the_bound_make_all_so_far_durable() {
        check(|directory, root| {
            assert_eq!(errno(directory.answer(&resize(2, 1 << 40))), 0);
            assert_eq!(errno(directory.answer(&request(20, 2, &[&[0; 16]]))), 0);
            assert_eq!(errno(directory.answer(&resize(2, 3))), 0);
            assert_eq!(directory.cut_power(Fate::All).unwrap().files, 0);
            assert_eq!(std::fs::read(root.join("live/f")).unwrap(), [7; 3]);
        });
    }

    /// A count that lies is no work.
    #[test]
    fn a_batch_of_nodes_to_forget_ends_with_its_request() {
        check(|directory, _| {
            let batch = request(42, 0, &[&u32::MAX.to_ne_bytes(), &[0; 4], &[2; 16]]);
            let begun = std::time::Instant::now();
            assert_eq!(directory.answer(&batch), None);
            assert!(begun.elapsed() < std::time::Duration::from_secs(1));
        });
    }
}

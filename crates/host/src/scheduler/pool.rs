//! The requests between arrival and completion, in slots that are used again.
//!
//! An entry is what the device will get: one request, or several that were merged. Its members are
//! what arrived. Entries are also linked into lists in order of arrival (a FIFO of a scheduler, the
//! queue of those that wait for a slot), each in at most one list at a time, so that a request
//! leaves the middle of its list in constant time and nothing is allocated for it.

use trace::{Op, Request};
use units::{Bytes, Nanos};

/// Names an entry while it is there.
pub(super) type Id = u32;

/// No entry.
pub(super) const NOBODY: Id = Id::MAX;

/// One request of the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub op: Op,
    /// Somebody waits for it: a read, or a write that bypasses the page cache.
    pub sync: bool,
    /// The process.
    pub stream: u16,
    /// First byte.
    pub start: u64,
    /// Byte behind the last one.
    pub end: u64,
    /// When it, or what it was merged into, arrived, ns.
    pub arrived: u64,
    /// When the device got it, ns.
    pub issued: u64,
    /// When the scheduler that holds it lets it go first, ns.
    pub expires: u64,
    first: u32,
    last: u32,
    previous: Id,
    next: Id,
}

impl Entry {
    /// Whether it moves data towards the device: a write or a trim.
    pub fn writes(&self) -> bool {
        self.op != Op::Read
    }

    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }
}

/// What arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub ticket: u64,
    pub arrived: u64,
    pub bytes: u64,
    next: u32,
}

/// All entries.
#[derive(Debug, Default)]
pub(super) struct Pool {
    entries: Vec<Entry>,
    free: Vec<Id>,
    members: Vec<Member>,
    free_members: Vec<u32>,
}

impl std::ops::Index<Id> for Pool {
    type Output = Entry;

    #[inline]
    fn index(&self, id: Id) -> &Entry {
        &self.entries[id as usize]
    }
}

impl std::ops::IndexMut<Id> for Pool {
    #[inline]
    fn index_mut(&mut self, id: Id) -> &mut Entry {
        &mut self.entries[id as usize]
    }
}

impl Pool {
    /// An entry for `request`, which arrived at `now` as `ticket`.
    pub fn add(&mut self, now: u64, ticket: u64, request: &Request, sync: bool) -> Id {
        let bytes = u64::from(request.len);
        let member = self.add_member(Member { ticket, arrived: now, bytes, next: NOBODY });
        let entry = Entry {
            op: request.op,
            sync,
            stream: request.stream,
            start: request.offset.0,
            end: request.offset.0 + bytes,
            arrived: now,
            issued: now,
            expires: u64::MAX,
            first: member,
            last: member,
            previous: NOBODY,
            next: NOBODY,
        };
        if let Some(id) = self.free.pop() {
            self[id] = entry;
            id
        } else {
            self.entries.push(entry);
            (self.entries.len() - 1) as Id
        }
    }

    fn add_member(&mut self, member: Member) -> u32 {
        if let Some(index) = self.free_members.pop() {
            self.members[index as usize] = member;
            index
        } else {
            self.members.push(member);
            (self.members.len() - 1) as u32
        }
    }

    /// Adds what arrived at `now` as `ticket` to the end, or the front, of entry `id`.
    pub fn merge(&mut self, id: Id, now: u64, ticket: u64, request: &Request) {
        let bytes = u64::from(request.len);
        let member = self.add_member(Member { ticket, arrived: now, bytes, next: NOBODY });
        let last = self[id].last;
        self.members[last as usize].next = member;
        let entry = &mut self[id];
        entry.last = member;
        if entry.end == request.offset.0 {
            entry.end += bytes;
        } else {
            assert_eq!(entry.start, request.offset.0 + bytes, "only neighbours are merged");
            entry.start = request.offset.0;
        }
    }

    /// The request that the device gets at `now` for entry `id`.
    pub fn request(&self, id: Id, now: u64) -> Request {
        let entry = &self[id];
        let len = u32::try_from(entry.bytes()).expect("merged requests have a largest size");
        let (due, offset) = (Nanos(now), Bytes(entry.start));
        Request { due, offset, len, op: entry.op, stream: entry.stream }
    }

    /// The ticket of its first member, while it is there.
    pub fn ticket(&self, id: Id) -> Option<u64> {
        let first = self.entries.get(id as usize)?.first;
        self.members.get(first as usize).map(|member| member.ticket)
    }

    /// Removes entry `id`, whose members are told to `tell` in order of arrival.
    pub fn remove(&mut self, id: Id, mut tell: impl FnMut(Member)) {
        let mut bytes = 0;
        let mut at = self[id].first;
        while at != NOBODY {
            let member = self.members[at as usize];
            bytes += member.bytes;
            self.free_members.push(at);
            at = member.next;
            tell(member);
        }
        assert_eq!(bytes, self[id].bytes(), "the bytes of the members add up");
        self[id].first = NOBODY;
        self.free.push(id);
    }
}

/// Entries in an order of arrival.
#[derive(Debug)]
pub(super) struct List {
    front: Id,
    back: Id,
}

impl Default for List {
    fn default() -> Self {
        Self { front: NOBODY, back: NOBODY }
    }
}

impl List {
    pub fn is_empty(&self) -> bool {
        self.front == NOBODY
    }

    pub fn front(&self) -> Option<Id> {
        (self.front != NOBODY).then_some(self.front)
    }

    pub fn push_back(&mut self, id: Id, pool: &mut Pool) {
        (pool[id].previous, pool[id].next) = (self.back, NOBODY);
        if self.back == NOBODY {
            self.front = id;
        } else {
            pool[self.back].next = id;
        }
        self.back = id;
    }

    pub fn remove(&mut self, id: Id, pool: &mut Pool) {
        let (previous, next) = (pool[id].previous, pool[id].next);
        if previous == NOBODY {
            assert_eq!(self.front, id, "it is in this list");
            self.front = next;
        } else {
            pool[previous].next = next;
        }
        if next == NOBODY {
            self.back = previous;
        } else {
            pool[next].previous = previous;
        }
    }

    pub fn pop_front(&mut self, pool: &mut Pool) -> Option<Id> {
        let id = self.front()?;
        self.remove(id, pool);
        Some(id)
    }
}

//! Whose turn it is in a column, and how many columns are in work.
//!
//! A write holds its columns from its first read to its last write; two that share one follow one
//! another in the order of their arrival. At most `most` columns are in work; who finds no room
//! waits in line. As in md (`raid5_get_active_stripe`, drivers/md/raid5.c), once somebody had to
//! wait nobody enters before less than three quarters of the room are taken, and who wants a column
//! that is in work anyway does not stand in that line. md takes the columns of a request one by
//! one, this takes them together: a request of more columns than there are runs alone. Since Linux
//! 4.1 md adds columns while they run out and memory lasts; here their number stays.
//!
//! A request looks at each of its columns once when it comes, and is woken once: the work for a
//! request does not depend on how many others wait.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Who has a column, and who wants it next, in order.
#[derive(Clone, Debug)]
struct Column {
    holder: u32,
    behind: VecDeque<u32>,
}

/// Something that wants columns.
#[derive(Clone, Debug)]
struct Entry<W> {
    columns: Vec<Range<u64>>,
    /// Its columns that others have first.
    blocked: u64,
    /// What it takes of the room, in columns.
    takes: u64,
    /// Others worked on a column of it when it came.
    follows: bool,
    /// Until it starts.
    work: Option<W>,
}

/// The columns that are in work or wanted. `W` says what for.
#[derive(Clone, Debug)]
pub(super) struct Turns<W> {
    most: u64,
    in_work: u64,
    was_full: bool,
    /// Only asked, never walked.
    columns: HashMap<u64, Column>,
    entries: Vec<Entry<W>>,
    free: Vec<u32>,
    /// Those that nobody is before in any column, by when they may enter.
    line: VecDeque<u32>,
    /// Columns and entries looked at so far.
    pub steps: u64,
}

impl<W> Turns<W> {
    /// Room for `most` columns in work.
    pub fn new(most: u64) -> Self {
        let (columns, line) = Default::default();
        let (entries, free) = Default::default();
        Self { most, in_work: 0, was_full: false, columns, entries, free, line, steps: 0 }
    }

    /// `work` wants `columns`, which do not overlap. They count as in work but where `is_counted`
    /// is not set.
    pub fn ask(
        &mut self,
        columns: impl Iterator<Item = Range<u64>>,
        is_counted: bool,
        work: W,
    ) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            let columns = Vec::new();
            self.entries.push(Entry { columns, blocked: 0, takes: 0, follows: false, work: None });
            self.entries.len() as u32 - 1
        });
        let entry = &mut self.entries[number as usize];
        entry.columns.extend(columns);
        (entry.work, entry.blocked, entry.takes) = (Some(work), 0, 0);
        for column in entry.columns.iter().cloned().flatten() {
            self.steps += 1;
            entry.takes += u64::from(is_counted);
            self.columns
                .entry(column)
                .and_modify(|known| {
                    known.behind.push_back(number);
                    entry.blocked += 1;
                })
                .or_insert(Column { holder: number, behind: VecDeque::new() });
        }
        entry.follows = entry.blocked > 0;
        if entry.blocked == 0 {
            self.line.push_back(number);
        }
        number
    }

    /// The next one that may start, as its number and what it wanted its columns for.
    pub fn start(&mut self) -> Option<(u32, W)> {
        let number = *self.line.front()?;
        self.steps += 1;
        let entry = &mut self.entries[number as usize];
        self.was_full &= self.in_work * 4 >= self.most * 3;
        let has_room = self.in_work + entry.takes <= self.most;
        if self.in_work > 0 && entry.takes > 0 {
            if !has_room {
                self.was_full = true;
                return None;
            }
            if self.was_full && !entry.follows {
                return None;
            }
        }
        self.line.pop_front();
        self.in_work += entry.takes;
        Some((number, entry.work.take().expect("it starts once")))
    }

    /// What was started as `number` is done with its columns.
    pub fn release(&mut self, number: u32) {
        let entry = &mut self.entries[number as usize];
        self.in_work -= entry.takes;
        let mut columns = std::mem::take(&mut entry.columns);
        let standing = self.line.len();
        for column in columns.drain(..).flatten() {
            self.steps += 1;
            let known = self.columns.get_mut(&column).expect("it is held");
            assert_eq!(known.holder, number, "two work on one column");
            let Some(next) = known.behind.pop_front() else {
                self.columns.remove(&column);
                continue;
            };
            known.holder = next;
            let entry = &mut self.entries[next as usize];
            entry.blocked -= 1;
            if entry.blocked == 0 {
                self.line.push_back(next);
            }
        }
        // Their columns are in the cache: they go before those who need new ones.
        let woken = self.line.len() - standing;
        self.line.rotate_right(woken);
        self.entries[number as usize].columns = columns;
        self.free.push(number);
    }

    /// Whether nobody works on a column or wants one.
    pub fn is_idle(&self) -> bool {
        self.columns.is_empty() && self.in_work == 0 && self.line.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for the columns of each, and starts what may start.
    fn started(turns: &mut Turns<usize>) -> Vec<usize> {
        std::iter::from_fn(|| turns.start().map(|(_, work)| work)).collect()
    }

    fn ask(turns: &mut Turns<usize>, columns: Range<u64>, work: usize) -> u32 {
        turns.ask(std::iter::once(columns), true, work)
    }

    #[test]
    fn who_shares_a_column_follows_in_order_of_arrival() {
        let mut turns = Turns::new(100);
        let first = ask(&mut turns, 0..2, 0);
        let second = ask(&mut turns, 1..4, 1);
        // Column 3 is nobody's yet, but somebody who came before wants it.
        let third = ask(&mut turns, 3..4, 2);
        ask(&mut turns, 9..10, 3);
        assert_eq!(started(&mut turns), [0, 3]);
        turns.release(first);
        assert_eq!(started(&mut turns), [1]);
        turns.release(second);
        assert_eq!(started(&mut turns), [2]);
        turns.release(third);
        assert!(started(&mut turns).is_empty() && !turns.is_idle());
    }

    #[test]
    fn no_more_columns_than_there_is_room_are_in_work() {
        let mut turns = Turns::new(8);
        let held: Vec<u32> = (0..20).map(|at| ask(&mut turns, at..at + 1, at as usize)).collect();
        assert_eq!(started(&mut turns), (0..8).collect::<Vec<_>>());
        // 7 and 6 of 8 are three quarters or more.
        turns.release(held[3]);
        turns.release(held[0]);
        assert!(started(&mut turns).is_empty());
        // Who follows on a column that was in work does not wait for that.
        ask(&mut turns, 5..6, 100);
        turns.release(held[5]);
        assert_eq!(started(&mut turns), [100, 8, 9]);
        // Too many for the room: alone, and nobody overtakes.
        let mut turns = Turns::new(8);
        let small = ask(&mut turns, 0..1, 0);
        let large = ask(&mut turns, 10..30, 1);
        ask(&mut turns, 40..41, 2);
        assert_eq!(started(&mut turns), [0]);
        turns.release(small);
        assert_eq!(started(&mut turns), [1]);
        turns.release(large);
        assert_eq!(started(&mut turns), [2]);
    }

    /// Everybody starts, nobody beside one that shares a column with it and came before.
    #[test]
    fn turns_agree_with_a_list() {
        let mut state = 1_u64;
        let mut draw = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % most
        };
        let mut turns = Turns::new(u64::MAX / 8);
        // In order of arrival, with the number of those that work.
        let mut list: Vec<(usize, Range<u64>, Option<u32>)> = Vec::new();
        for work in 0..5000 {
            let start = draw(30);
            let columns = start..start + 1 + draw(5);
            list.push((work, columns.clone(), None));
            ask(&mut turns, columns, work);
            if draw(3) > 0 {
                let working: Vec<_> = (0..list.len()).filter(|at| list[*at].2.is_some()).collect();
                if let Some(at) = working.get(draw(1 + working.len() as u64) as usize) {
                    turns.release(list.remove(*at).2.expect("it works"));
                }
            }
            let overlap = |a: &Range<u64>, b: &Range<u64>| a.start < b.end && b.start < a.end;
            let mut expected: Vec<usize> = (0..list.len())
                .filter(|at| list[*at].2.is_none())
                .filter(|at| list[..*at].iter().all(|other| !overlap(&other.1, &list[*at].1)))
                .map(|at| list[at].0)
                .collect();
            let mut found = Vec::new();
            while let Some((number, work)) = turns.start() {
                list.iter_mut().find(|entry| entry.0 == work).expect("it asked").2 = Some(number);
                found.push(work);
            }
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}

//! Read-ahead of one open file, as Linux does it on demand (mm/readahead.c of 2.6.32; 6.x has the
//! same rules): a sequential reader gets windows that grow up to a maximum, and the next window is
//! read when the reader comes to a marked page of the current one.
//!
//! With a maximum of 2560 KiB and 4 KiB reads from the start of a file, the device sees reads of
//! 16, 64, 256, 512 and 1024 KiB at offsets 0, 4, 16, 80 and 336 KiB (counted on Linux 6.18, loop
//! device); with 128 KiB it sees 16, 32, 64, 128, 128.

/// What to read from the device for a miss or for a marked page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First page.
    pub first: u64,
    /// Pages.
    pub pages: u64,
    /// Pages at the end of the window that nobody asked for yet. The first of them is marked.
    pub ahead: u64,
}

/// State of one open file.
#[derive(Clone, Debug, Default)]
pub struct ReadAhead {
    first: u64,
    pages: u64,
    ahead: u64,
    /// Page read last, where there is one.
    previous: Option<u64>,
}

impl ReadAhead {
    /// Says that the reader has read up to and with `page`.
    pub fn passed(&mut self, page: u64) {
        self.previous = Some(page);
    }

    /// Whether a reader that comes to the cached `page` finds the mark there.
    pub fn is_marked(&self, page: u64) -> bool {
        self.ahead > 0 && self.pages > 0 && page == self.first + self.pages - self.ahead
    }

    /// What to read where the mark at `page` was found: the next window, all of it ahead. `max`
    /// pages at most.
    pub fn at_mark(&mut self, max: u64) -> Window {
        self.advance(max)
    }

    /// What to read for the missing `page`, where `asked` pages from it on are wanted.
    /// `cached_before` is the number of cached pages without a gap in front of it, counted up to
    /// `max`: a history that makes the reader sequential even where this state knows nothing.
    pub fn at_miss(&mut self, page: u64, asked: u64, cached_before: u64, max: u64) -> Window {
        let follows = self.previous.is_some_and(|last| page == last || page == last + 1);
        if max == 0 {
            return Window { first: page, pages: asked, ahead: 0 };
        }
        if page > 0 && self.pages > 0 && page == self.first + self.pages {
            return self.advance(max);
        }
        if page == 0 || follows || asked > max {
            return self.begin(page, asked, max);
        }
        if cached_before > 0 && cached_before >= asked {
            // From the start of the file: the whole past is a sequential run.
            let seen = if cached_before >= page { cached_before * 2 } else { cached_before };
            (self.first, self.pages, self.ahead) = (page, (seen + asked).min(max), 1);
            return self.window();
        }
        Window { first: page, pages: asked.min(max), ahead: 0 }
    }

    fn begin(&mut self, page: u64, asked: u64, max: u64) -> Window {
        self.first = page;
        self.pages = first_window(asked, max);
        self.ahead = if self.pages > asked { self.pages - asked } else { self.pages };
        if self.pages <= asked {
            // The mark would be met at once: what follows is read together with it, as far as the
            // maximum allows.
            let next = next_window(self.pages, max);
            if self.pages + next <= max {
                (self.pages, self.ahead) = (self.pages + next, next);
            } else {
                (self.pages, self.ahead) = (max, max / 2);
            }
        }
        self.window()
    }

    fn advance(&mut self, max: u64) -> Window {
        self.first += self.pages;
        self.pages = next_window(self.pages, max);
        self.ahead = self.pages;
        self.window()
    }

    fn window(&self) -> Window {
        Window { first: self.first, pages: self.pages, ahead: self.ahead }
    }
}

/// Pages of the first window for a reader that asks for `asked`.
fn first_window(asked: u64, max: u64) -> u64 {
    let rounded = asked.next_power_of_two();
    if rounded <= max / 32 {
        rounded * 4
    } else if rounded <= max / 4 {
        rounded * 2
    } else {
        max
    }
}

/// Pages of the window after one of `current`.
fn next_window(current: u64, max: u64) -> u64 {
    let grown = if current < max / 16 { current * 4 } else { current * 2 };
    grown.min(max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows in KiB that a sequential 4 KiB reader causes, with the page at which it was.
    fn windows(max_kib: u64, count: usize) -> Vec<(u64, u64)> {
        let (mut state, mut cached, mut found) = (ReadAhead::default(), 0, Vec::new());
        for page in 0.. {
            let max = max_kib / 4;
            let window = if page >= cached {
                Some(state.at_miss(page, 1, page.min(max), max))
            } else if state.is_marked(page) {
                Some(state.at_mark(max))
            } else {
                None
            };
            if let Some(window) = window {
                assert_eq!(window.first, cached, "windows join");
                cached = window.first + window.pages;
                found.push((page * 4, window.pages * 4));
            }
            state.passed(page);
            if found.len() == count {
                break;
            }
        }
        found
    }

    #[test]
    fn windows_grow_as_counted_on_linux() {
        let counted = [(0, 16), (4, 64), (16, 256), (80, 512), (336, 1024)];
        assert_eq!(windows(2560, 5), counted);
        let sizes: Vec<u64> = windows(128, 6).into_iter().map(|(_, size)| size).collect();
        assert_eq!(sizes, [16, 32, 64, 128, 128, 128]);
    }

    #[test]
    fn a_random_reader_gets_what_it_asks_for() {
        let mut state = ReadAhead::default();
        for page in [1000, 7, 50_000, 312] {
            let window = state.at_miss(page, 2, 0, 640);
            assert_eq!(window, Window { first: page, pages: 2, ahead: 0 });
            state.passed(page + 1);
        }
    }

    #[test]
    fn a_history_of_cached_pages_makes_a_sequential_reader() {
        let mut state = ReadAhead::default();
        state.passed(3);
        let window = state.at_miss(500, 2, 6, 640);
        assert_eq!(window, Window { first: 500, pages: 8, ahead: 1 });
        assert!(state.is_marked(507));
    }
}

//! The tracer's binary formats: what a page holds, and where a field lies in an event.
//!
//! Page: `events/header_page` tells the offsets of time stamp, commit word and data. Events: a
//! 32-bit word with a 5-bit type and a 27-bit time difference, then data (include/linux/
//! ring_buffer.h of the kernel). Fields: the `format` file of each tracepoint; nothing of either
//! is assumed to be where it was on another kernel.
//!
//! Invariant: malformed bytes end the page, they never panic. Tested on hand-built pages and the
//! format text of a 6.18 kernel, and by feeding noise.

/// Where the parts of a page are, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageLayout {
    pub commit_offset: usize,
    pub commit_size: usize,
    pub data_offset: usize,
    pub page_size: usize,
}

/// One field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub offset: usize,
    pub size: usize,
}

impl Field {
    /// The field's value in an event, where it is there: up to eight bytes, native order.
    pub(crate) fn number(self, event: &[u8]) -> Option<u64> {
        let bytes = event.get(self.offset..self.offset + self.size)?;
        let mut wide = [0; 8];
        if cfg!(target_endian = "little") {
            wide.get_mut(..self.size)?.copy_from_slice(bytes);
        } else {
            wide.get_mut(8usize.checked_sub(self.size)?..)?.copy_from_slice(bytes);
        }
        Some(u64::from_ne_bytes(wide))
    }

    /// The field's bytes up to the first zero.
    pub(crate) fn text(self, event: &[u8]) -> Option<&[u8]> {
        let bytes = event.get(self.offset..self.offset + self.size)?;
        bytes.split(|byte| *byte == 0).next()
    }
}

/// A `format` file: the event's number and its fields.
pub(crate) fn event_id(format: &str) -> Option<u16> {
    format.lines().find_map(|line| line.strip_prefix("ID: "))?.trim().parse().ok()
}

/// A field of a `format` file by name.
pub(crate) fn field(format: &str, name: &str) -> Option<Field> {
    format.lines().find_map(|line| {
        let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
        let mut declared = parts.next()?.split(['[', ' ']).rev();
        // `char rwbs[10]` names rwbs: the last word that is not the bracket's content.
        let found = declared.find(|word| !word.is_empty() && !word.ends_with(']'))?;
        (found == name).then_some(())?;
        let mut number = |key: &str| parts.find_map(|part| part.strip_prefix(key)?.parse().ok());
        Some(Field { offset: number("offset:")?, size: number("size:")? })
    })
}

/// The layout that `events/header_page` tells.
pub(crate) fn page_layout(header: &str) -> Option<PageLayout> {
    let (commit, data) = (field(header, "commit")?, field(header, "data")?);
    Some(PageLayout {
        commit_offset: commit.offset,
        commit_size: commit.size,
        data_offset: data.offset,
        page_size: data.offset + data.size,
    })
}

/// Calls `each` with time stamp and bytes of every event of a page.
pub(crate) fn events(page: &[u8], layout: PageLayout, mut each: impl FnMut(u64, &[u8])) {
    let stamp = Field { offset: 0, size: 8 }.number(page);
    let commit = Field { offset: layout.commit_offset, size: layout.commit_size }.number(page);
    let (Some(mut time), Some(commit)) = (stamp, commit) else { return };
    // The upper bits flag missed events; the loss counters of `stats` count those exactly.
    let length = (commit & 0xf_ffff) as usize;
    let Some(mut rest) = page.get(layout.data_offset..layout.data_offset + length) else { return };
    let word =
        |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    while let Some(head) = word(rest, 0) {
        let (kind, delta) = if cfg!(target_endian = "little") {
            (head & 31, u64::from(head >> 5))
        } else {
            (head >> 27, u64::from(head & 0x07ff_ffff))
        };
        let next = u64::from(word(rest, 4).unwrap_or(0));
        let total = match kind {
            PADDING if delta == 0 => return,
            PADDING | 0 => 4 + next as usize,
            TIME_EXTEND | TIME_STAMP => 8,
            words => 4 + 4 * words as usize,
        };
        match kind {
            TIME_EXTEND => time = time.wrapping_add((next << 27) + delta),
            // The absolute stamp has 59 bits; the rest is as before.
            TIME_STAMP => time = (time & !((1 << 59) - 1)) | ((next << 27) + delta),
            _ => time = time.wrapping_add(delta),
        }
        let Some(event) = rest.get(..total) else { return };
        match kind {
            PADDING | TIME_EXTEND | TIME_STAMP => {}
            0 => each(time, event.get(8..).unwrap_or_default()),
            _ => each(time, &event[4..]),
        }
        rest = &rest[total..];
    }
}

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As a 6.18 kernel prints it.
    const FORMAT: &str = "\
name: block_rq_issue
ID: 2104
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;
\tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;

print fmt: \"%d,%d %s\", ((unsigned int) ((REC->dev) >> 20))
";
    const HEADER: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
";
    const LAYOUT: PageLayout =
        PageLayout { commit_offset: 8, commit_size: 8, data_offset: 16, page_size: 4096 };

    #[test]
    fn fields_are_found_by_name() {
        assert_eq!(event_id(FORMAT), Some(2104));
        let at = |name| field(FORMAT, name).map(|field| (field.offset, field.size));
        assert_eq!(at("dev"), Some((8, 4)));
        assert_eq!(at("sector"), Some((16, 8)));
        assert_eq!(at("nr_sector"), Some((24, 4)));
        assert_eq!(at("rwbs"), Some((34, 10)));
        assert_eq!(at("cmd"), Some((60, 4)));
        assert_eq!(at("rw"), None);
        assert_eq!(page_layout(HEADER), Some(LAYOUT));
        assert_eq!(page_layout("nonsense"), None);
    }

    fn head(kind: u32, delta: u32) -> u32 {
        (delta << 5) + kind
    }

    fn page(stamp: u64, words: &[u32]) -> Vec<u8> {
        let mut page = stamp.to_ne_bytes().to_vec();
        page.extend(((words.len() as u64 * 4) | (1 << 31)).to_ne_bytes());
        page.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        page.resize(4096, 0xee);
        page
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn each_kind_of_entry() {
        let page = page(
            1000,
            &[
                // Two words, 5 ns later.
                head(2, 5),
                0xa,
                0xb,
                // 2^27 + 3 ns pass.
                head(TIME_EXTEND, 3),
                1,
                // The next word is the length: itself and two words.
                head(0, 7),
                12,
                0xc,
                0xd,
                // Twelve bytes to skip.
                head(PADDING, 1),
                8,
                0,
                head(1, 9),
                0xf,
                // The page ends here.
                head(PADDING, 0),
                77,
                1,
                2,
            ],
        );
        let mut seen = Vec::new();
        events(&page, LAYOUT, |time, event| {
            let words = event.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap()));
            seen.push((time, words.collect::<Vec<_>>()));
        });
        let after_extend = 1005 + (1 << 27) + 3;
        let expected = vec![
            (1005, vec![0xa, 0xb]),
            (after_extend + 7, vec![0xc, 0xd]),
            (after_extend + 7 + 1 + 9, vec![0xf]),
        ];
        assert_eq!(seen, expected);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn an_absolute_stamp_replaces_the_time() {
        let page = page((1 << 60) + 5, &[head(TIME_STAMP, 1), 2, head(1, 4), 0xa]);
        let mut times = Vec::new();
        events(&page, LAYOUT, |time, _| times.push(time));
        assert_eq!(times, [(1 << 60) + (2 << 27) + 1 + 4]);
    }

    proptest! {
        #[test]
        fn noise_never_panics(
            mut bytes in prop::collection::vec(any::<u8>(), 0..256), length in 0..300u64,
        ) {
            if let Some(commit) = bytes.get_mut(8..16) {
                commit.copy_from_slice(&length.to_ne_bytes());
            }
            events(&bytes, LAYOUT, |_, event| {
                let _ = Field { offset: 16, size: 8 }.number(event);
                let _ = Field { offset: 34, size: 10 }.text(event);
            });
        }
    }
}

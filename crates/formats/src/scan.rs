//! Lines of numbers at the speed of memory: masks of separators, digits eight at a time.
//!
//! A field of unknown length read digit by digit costs a mispredicted branch or two, 15 to 20
//! cycles each, several times a line. Here one look at 64 bytes gives a bit for every separator,
//! the positions of fields follow by counting zeros, and a field becomes a number without a branch
//! on its length: its digits are shifted to the top of a word and added up by three multiplications
//! (D. Lemire, "Quickly parsing eight digits", 2018; J. Langdale and D. Lemire, "Parsing Gigabytes
//! of JSON per Second", VLDB Journal 28, 2019, for the masks).
//!
//! A format describes its usual line in [`FastLine::fast`]; a line that is any different, long, at
//! the end of the text or wrong goes to [`LineFormat::line`], which defines what the format is. The
//! property tests of every format check that both give the same rows.
//!
//! All separators that formats use (`,` `.` space, tab, carriage return, newline) are below `'0'`,
//! so one comparison finds them. On x86-64 it is SSE2, which every such processor has; elsewhere
//! the same masks come from 64-bit words, and the tests compare both.

#![allow(clippy::inline_always, reason = "a call per field would cost more than the field")]

use trace::Op;

use super::batch::{Batch, Row};
use super::cause::Cause;
use super::decode::{LineFormat, is_blank, without_return};
use super::streams::Streams;

/// Bytes of a line that are looked at; longer ones are slow.
pub(super) const LINE_BYTES: usize = 64;
/// Bytes behind the start of a line that must exist, so that words can be read anywhere in it.
pub(super) const WINDOW_BYTES: usize = 80;
/// Rows put aside before they are appended to the columns.
const BLOCK_ROWS: usize = 256;

/// The bytes from the start of a line.
pub(super) type Window = [u8; WINDOW_BYTES];

/// A format whose usual line can be read fast.
pub(super) trait FastLine: LineFormat {
    /// Whether rows have service times.
    const HAS_SERVICE: bool;

    /// Reads a usual line; `None` sends it to [`LineFormat::line`].
    /// It must end with a field whose separator is a newline.
    fn fast<M: Machine>(&self, line: &mut Fields<'_, M>, streams: &Streams) -> Option<Row>;
}

/// The fields of a line, from left to right.
pub(super) struct Fields<'a, M> {
    machine: M,
    window: &'a Window,
    /// Separators not passed yet, a bit each.
    separators: u64,
    /// Where the next field starts.
    start: u32,
    /// The lengths of numbers of up to 8 digits, less one, or-ed.
    lengths: u32,
    /// Not zero once something is unusual.
    unusual: u64,
}

/// As a separator: a space or a tab.
pub(super) const BLANK: u8 = b' ';

/// `'0'` eight times.
const ZEROS: u64 = 0x3030_3030_3030_3030;
/// Added to a byte, sets its highest bit where it was 10 or more.
const TO_TEN: u64 = 0x7676_7676_7676_7676;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// The digits of a field at the top of a word, less `'0'` each, and zeros below.
#[derive(Clone, Copy)]
pub(super) struct Digits(pub u64);

impl<'a, M: Machine> Fields<'a, M> {
    #[inline(always)]
    fn word(&self, at: u32) -> u64 {
        // At most 64 + 1 + 8, so that the check below goes away.
        let at = at as usize;
        match self.window.get(at..at + 8) {
            Some(bytes) => u64::from_le_bytes(bytes.try_into().unwrap_or_default()),
            None => 0,
        }
    }

    /// Passes the next separator, which should be `separator`; gives the length of the field.
    #[inline(always)]
    fn pass(&mut self, separator: u8) -> u32 {
        let at = self.separators.trailing_zeros();
        self.separators &= self.separators.wrapping_sub(1);
        let found = self.window[at as usize];
        self.unusual |= if separator == BLANK {
            u64::from(found ^ b' ') * u64::from(found ^ b'\t')
        } else {
            u64::from(found ^ separator)
        };
        // Where no separator is left, `at` is 64 and the length wraps: too long for every field.
        let length = at.wrapping_sub(self.start);
        self.start = at + 1;
        length
    }

    /// The digits of a number of 1 to 8.
    #[inline(always)]
    pub fn digits8(&mut self, separator: u8) -> Digits {
        let word = self.word(self.start);
        let length = self.pass(separator);
        self.lengths |= length.wrapping_sub(1);
        Digits((word ^ ZEROS).wrapping_shl(length.wrapping_mul(8).wrapping_neg()))
    }

    /// A number that mostly has one or two digits.
    #[inline(always)]
    pub fn small(&mut self, separator: u8) -> u64 {
        let word = self.word(self.start) ^ ZEROS;
        let length = self.pass(separator);
        if length > 2 {
            self.lengths |= length - 1;
            return self.value(Digits(word.wrapping_shl(length.wrapping_mul(8).wrapping_neg())));
        }
        self.unusual |= u64::from(length == 0);
        let (first, second) = (word & 0xff, (word >> 8) & 0xff);
        let (value, last) =
            if length == 2 { (first * 10 + second, second) } else { (first, first) };
        self.unusual |= u64::from(first > 9) | u64::from(last > 9);
        value
    }

    /// The digits of a number of 1 to 16: the upper eight and the lower eight.
    #[inline(always)]
    pub fn digits16(&mut self, separator: u8) -> [Digits; 2] {
        let low = self.word(self.start) ^ ZEROS;
        let high = self.word(self.start + 8) ^ ZEROS;
        let length = self.pass(separator);
        self.unusual |= u64::from(length.wrapping_sub(1) >> 4);
        let both = (u128::from(high) << 64) | u128::from(low);
        let both = both.wrapping_shl(length.wrapping_mul(8).wrapping_neg());
        [Digits(both as u64), Digits((both >> 64) as u64)]
    }

    /// The digits of a number of 17 to 19: the top ones, then eight, then eight.
    #[inline(always)]
    pub fn digits19(&mut self, separator: u8) -> [Digits; 3] {
        let start = self.start;
        let length = self.pass(separator);
        if length.wrapping_sub(17) > 2 {
            self.unusual = 1;
            return [Digits(0); 3];
        }
        let top =
            (self.word(start) ^ ZEROS).wrapping_shl((length - 16).wrapping_mul(8).wrapping_neg());
        let end = start + length;
        [Digits(top), Digits(self.word(end - 16) ^ ZEROS), Digits(self.word(end - 8) ^ ZEROS)]
    }

    /// The digits behind a decimal point, up to 9: the first eight, and the ninth.
    #[inline(always)]
    pub fn fraction(&mut self, separator: u8) -> (Digits, u64) {
        let word = self.word(self.start) ^ ZEROS;
        let ninth_at = self.start as usize + 8;
        let length = self.pass(separator);
        if length > 8 {
            let ninth = self.window[ninth_at] ^ b'0';
            self.unusual |= u64::from(length > 9) | u64::from(ninth > 9);
            return (Digits(word), u64::from(ninth));
        }
        self.unusual |= u64::from(length == 0);
        (Digits(word & u64::MAX.wrapping_shr(length.wrapping_mul(8).wrapping_neg())), 0)
    }

    /// What four fields of digits say.
    #[inline(always)]
    pub fn values(&mut self, digits: [Digits; 4]) -> [u64; 4] {
        let (values, valid) = self.machine.values(digits.map(|digits| digits.0));
        self.unusual |= u64::from(!valid);
        values.map(u64::from)
    }

    /// What one field of digits says.
    #[inline(always)]
    pub fn value(&mut self, digits: Digits) -> u64 {
        let (value, not_digits) = value(digits.0);
        self.unusual |= not_digits;
        value
    }

    /// A field of one byte.
    #[inline(always)]
    pub fn byte(&mut self, separator: u8) -> u8 {
        let byte = self.window[self.start as usize];
        let length = self.pass(separator);
        self.unusual |= u64::from(length ^ 1);
        byte
    }

    /// `r` or `w`, either case.
    #[inline(always)]
    pub fn read_or_write(&mut self, separator: u8) -> Op {
        // 'r' and 'w' differ in bits 0 and 2: both must be as in the one or as in the other.
        let difference = (self.byte(separator) | 0x20) ^ b'r';
        self.unusual |= u64::from((difference & !5) | ((difference ^ (difference >> 2)) & 1));
        if difference & 1 == 1 { Op::Write } else { Op::Read }
    }

    /// `Read` or `Write`.
    #[inline(always)]
    pub fn word_read_or_write(&mut self, separator: u8) -> Op {
        match self.bytes(separator) {
            b"Read" => Op::Read,
            b"Write" => Op::Write,
            _ => {
                self.unusual = 1;
                Op::Read
            }
        }
    }

    /// `0` or `1`; whether it is the latter.
    #[inline(always)]
    pub fn bit(&mut self, separator: u8) -> bool {
        let bit = self.byte(separator) ^ b'0';
        self.unusual |= u64::from(bit & !1);
        bit == 1
    }

    /// Where the next field starts.
    #[inline(always)]
    pub fn position(&self) -> usize {
        self.start as usize
    }

    /// Everything from a position to the last separator passed.
    #[inline(always)]
    pub fn since(&self, position: usize) -> &'a [u8] {
        self.window.get(position..(self.start as usize).saturating_sub(1)).unwrap_or_default()
    }

    /// A field as it is.
    #[inline(always)]
    pub fn bytes(&mut self, separator: u8) -> &'a [u8] {
        let start = self.start as usize;
        let length = self.pass(separator) as usize;
        self.window.get(start..start.wrapping_add(length)).unwrap_or_default()
    }

    /// Notes what makes the line unusual.
    #[inline(always)]
    pub fn unusual(&mut self, whether: bool) {
        self.unusual |= u64::from(whether);
    }

    #[inline(always)]
    fn is_usual(&self) -> bool {
        self.unusual | u64::from(self.lengths >> 3) == 0
    }
}

/// The number that a word of digits says, and whether any was none.
#[inline(always)]
fn value(digits: u64) -> (u64, u64) {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (low.wrapping_add(high) >> 32, digits.wrapping_add(TO_TEN) & HIGH_BITS)
}

/// What a processor may do better than others.
pub(super) trait Machine: Copy {
    /// A bit for every byte of a line below `'0'` or above 127.
    fn separators(self, window: &Window) -> u64;

    /// The numbers that four words of digits say, and whether all of them were digits.
    fn values(self, digits: [u64; 4]) -> ([u32; 4], bool);
}

/// Any processor.
#[derive(Clone, Copy)]
pub(super) struct Words;

impl Machine for Words {
    #[inline(always)]
    fn separators(self, window: &Window) -> u64 {
        const LOW: u64 = !HIGH_BITS;
        /// Gathers the lowest bits of eight bytes in the highest byte.
        const GATHER: u64 = 0x0102_0408_1020_4080;
        let mut separators = 0;
        let (words, _) = window[..LINE_BYTES].as_chunks::<8>();
        for (index, bytes) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*bytes);
            // A byte of at least '0' plus 0x50 carries into its high bit.
            let at_least = (word & LOW) + 0x5050_5050_5050_5050;
            let below = (!at_least | word) & HIGH_BITS;
            separators |= ((below >> 7).wrapping_mul(GATHER) >> 56) << (8 * index);
        }
        separators
    }

    #[inline(always)]
    fn values(self, digits: [u64; 4]) -> ([u32; 4], bool) {
        let values = digits.map(value);
        let wrong = values.iter().fold(0, |all, (_, wrong)| all | wrong);
        (values.map(|(value, _)| value as u32), wrong == 0)
    }
}

/// Reads whole lines with what `machine` can do.
#[inline(always)]
pub(super) fn lines_with<F: FastLine, M: Machine>(
    format: &F,
    text: &[u8],
    out: &mut Batch,
    machine: M,
) -> Result<(), (usize, Cause)> {
    let mut block = Block::default();
    let mut start = 0;
    while start < text.len() {
        if let Some(window) = text[start..].first_chunk::<WINDOW_BYTES>() {
            let separators = machine.separators(window);
            let mut fields =
                Fields { machine, window, separators, start: 0, lengths: 0, unusual: 0 };
            let row = format.fast(&mut fields, &out.streams);
            // Every separator passed was the right one and the last was a newline: that is the
            // line.
            if let Some(row) = row
                && fields.is_usual()
            {
                start += fields.start as usize;
                block.push::<F>(row, out);
                continue;
            }
        }
        block.flush::<F>(out);
        start = slow(format, text, start, out)?;
    }
    block.flush::<F>(out);
    Ok(())
}

/// Takes one line the slow way; gives where the next one starts.
#[cold]
#[inline(never)]
fn slow(
    format: &dyn LineFormat,
    text: &[u8],
    start: usize,
    out: &mut Batch,
) -> Result<usize, (usize, Cause)> {
    #[cfg(test)]
    SLOW_LINES.with(|lines| lines.set(lines.get() + 1));
    let end = text[start..].iter().position(|byte| *byte == b'\n');
    let end = end.map_or(text.len(), |end| start + end);
    match without_return(&text[start..end]) {
        line if is_blank(line) => out.skip_line(),
        line => format.line(line, out).map_err(|cause| (start, cause))?,
    }
    Ok(end + 1)
}

#[cfg(test)]
thread_local! {
    static SLOW_LINES: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Lines that were read the slow way while `run` did.
#[cfg(test)]
pub(super) fn slow_lines(run: impl FnOnce()) -> u64 {
    let before = SLOW_LINES.with(std::cell::Cell::get);
    run();
    SLOW_LINES.with(std::cell::Cell::get) - before
}

/// Rows that wait to be appended: the columns grow in blocks, without a check per row.
struct Block {
    count: usize,
    due: [u64; BLOCK_ROWS],
    offset: [u64; BLOCK_ROWS],
    len: [u32; BLOCK_ROWS],
    op: [Op; BLOCK_ROWS],
    stream: [u16; BLOCK_ROWS],
    service: [u64; BLOCK_ROWS],
}

impl Default for Block {
    fn default() -> Self {
        Self {
            count: 0,
            due: [0; BLOCK_ROWS],
            offset: [0; BLOCK_ROWS],
            len: [0; BLOCK_ROWS],
            op: [Op::Read; BLOCK_ROWS],
            stream: [0; BLOCK_ROWS],
            service: [0; BLOCK_ROWS],
        }
    }
}

impl Block {
    #[inline(always)]
    fn push<F: FastLine>(&mut self, row: Row, out: &mut Batch) {
        let at = self.count % BLOCK_ROWS;
        self.due[at] = row.due_ns;
        self.offset[at] = row.offset_bytes;
        self.len[at] = row.len_bytes;
        self.op[at] = row.op;
        self.stream[at] = row.stream;
        if F::HAS_SERVICE {
            self.service[at] = row.service_ns;
        }
        self.count += 1;
        if self.count == BLOCK_ROWS {
            self.flush::<F>(out);
        }
    }

    #[inline(never)]
    fn flush<F: FastLine>(&mut self, out: &mut Batch) {
        let count = self.count;
        out.due.extend_from_slice(&self.due[..count]);
        out.offset.extend_from_slice(&self.offset[..count]);
        out.len.extend_from_slice(&self.len[..count]);
        out.op.extend_from_slice(&self.op[..count]);
        out.stream.extend_from_slice(&self.stream[..count]);
        if F::HAS_SERVICE {
            out.service.extend_from_slice(&self.service[..count]);
        }
        self.count = 0;
    }
}

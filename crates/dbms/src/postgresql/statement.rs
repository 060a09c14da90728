//! Prepared statements, and the Bind and Execute messages that run them.

use super::binary;

/// A statement that the server has prepared. It belongs to the connection that prepared it.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The start of every Bind of it: empty portal name, statement name, one format code (binary)
    /// for all parameters, number of parameters.
    head: Box<[u8]>,
    pub(super) parameters: u16,
    /// Columns of its answer; none for a statement without one.
    pub(super) columns: u16,
    /// Parameters and results travel as text.
    text: bool,
}

impl Statement {
    pub(super) fn new(name: &str, parameters: u16, columns: u16) -> Self {
        let mut head = vec![0];
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(&[0, 0, 1, 0, 1]);
        head.extend_from_slice(&parameters.to_be_bytes());
        Self { head: head.into(), parameters, columns, text: false }
    }

    /// The same statement, whose parameters and results travel as text: the server reads and writes
    /// any type then. Values are bound with [`Bind::text`] and [`Bind::null`] only.
    #[must_use]
    pub fn with_text(self) -> Self {
        // The format code of all parameters, the last but the number of parameters.
        let mut head = self.head.into_vec();
        let at = head.len() - 3;
        head[at] = 0;
        Self { head: head.into(), text: true, ..self }
    }

    /// Number of its parameters.
    pub fn parameters(&self) -> usize {
        usize::from(self.parameters)
    }

    /// Columns of its answer; 0 for a statement without one.
    pub fn columns(&self) -> usize {
        usize::from(self.columns)
    }
}

/// Results in binary, or as text; then Execute of the empty portal, all rows.
const TAIL: [u8; 14] = [0, 1, 0, 1, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];
const TEXT_TAIL: [u8; 14] = [0, 1, 0, 0, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];

/// A run of a prepared statement in the making: its parameters, in order, then [`Bind::run`].
#[must_use = "nothing is run before run()"]
pub struct Bind<'c> {
    out: &'c mut Vec<u8>,
    start: usize,
    left: u16,
    tail: &'static [u8; 14],
    pending: &'c mut u32,
}

impl<'c> Bind<'c> {
    #[inline]
    pub(super) fn new(out: &'c mut Vec<u8>, pending: &'c mut u32, statement: &Statement) -> Self {
        let start = out.len();
        out.extend_from_slice(&[b'B', 0, 0, 0, 0]);
        out.extend_from_slice(&statement.head);
        let tail = if statement.text { &TEXT_TAIL } else { &TAIL };
        Self { out, start, left: statement.parameters, tail, pending }
    }

    #[inline]
    fn one(&mut self) -> &mut Vec<u8> {
        assert!(self.left > 0, "more parameters than the statement has");
        self.left -= 1;
        self.out
    }

    /// An `integer`.
    #[inline]
    pub fn i32(mut self, value: i32) -> Self {
        binary::push_i32(self.one(), value);
        self
    }

    /// An `integer` from a number that fits one.
    #[inline]
    pub fn u32(self, value: u32) -> Self {
        self.i32(value as i32)
    }

    /// A `bigint`.
    #[inline]
    pub fn i64(mut self, value: i64) -> Self {
        binary::push_i64(self.one(), value);
        self
    }

    /// A text.
    #[inline]
    pub fn text(mut self, text: &str) -> Self {
        binary::push_bytes(self.one(), text.as_bytes());
        self
    }

    /// A `numeric` in units of the last of `scale` places.
    #[inline]
    pub fn decimal(mut self, value: i64, scale: u16) -> Self {
        binary::push_decimal(self.one(), value, scale);
        self
    }

    /// A `timestamp` of milliseconds since 1970.
    #[inline]
    pub fn timestamp_ms(mut self, ms: i64) -> Self {
        binary::push_timestamp_ms(self.one(), ms);
        self
    }

    /// A NULL.
    #[inline]
    pub fn null(mut self) -> Self {
        binary::push_null(self.one());
        self
    }

    /// An array of `element` type whose values `push` appends, each with its length.
    #[inline]
    pub fn array<T>(
        mut self,
        element: u32,
        values: impl ExactSizeIterator<Item = T>,
        mut push: impl FnMut(&mut Vec<u8>, T),
    ) -> Self {
        let out = self.one();
        let start = binary::begin_array(out, element, values.len());
        values.for_each(|value| push(out, value));
        binary::end_array(out, start);
        self
    }

    /// An `integer[]`.
    #[inline]
    pub fn i32s(self, values: impl ExactSizeIterator<Item = i32>) -> Self {
        self.array(binary::oid::INT4, values, binary::push_i32)
    }

    /// Adds the run to the pipeline. It is sent with the next `sync`.
    #[inline]
    pub fn run(self) {
        assert_eq!(self.left, 0, "fewer parameters than the statement has");
        self.out.extend_from_slice(&self.tail[..4]);
        let len = (self.out.len() - self.start - 1) as i32;
        self.out[self.start + 1..self.start + 5].copy_from_slice(&len.to_be_bytes());
        self.out.extend_from_slice(&self.tail[4..]);
        *self.pending += 1;
    }
}

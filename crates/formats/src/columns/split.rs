//! Lines into fields, by any of the separators that text traces have.

use crate::column_list::{MOST_COLUMNS, Position};

/// What stands between two fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// This byte; fields are trimmed, and a quoted one may hold it.
    Byte(u8),
    /// White space of any length.
    Blanks,
}

impl Separator {
    /// All of them, the most telling first: blanks stand in most lines, whatever separates them.
    pub const ALL: [Self; 5] =
        [Self::Byte(b'\t'), Self::Byte(b';'), Self::Byte(b'|'), Self::Byte(b','), Self::Blanks];

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Byte(b'\t') => "tabs",
            Self::Byte(b';') => "semicolons",
            Self::Byte(b'|') => "bars",
            Self::Byte(_) => "commas",
            Self::Blanks => "blanks",
        }
    }
}

/// The first `N` fields of a line. Few make a line cheaper to read than all of them.
pub(crate) struct Fields<'a, const N: usize = MOST_COLUMNS> {
    texts: [&'a [u8]; N],
    count: usize,
    /// Some fields were not looked at, so that none can be counted from the end.
    cut: bool,
}

impl<'a> Fields<'a> {
    /// Splits a line; fields beyond [`MOST_COLUMNS`] are not looked at.
    #[inline]
    pub fn split(line: &'a [u8], separator: Separator) -> Self {
        Self::split_some(line, separator, MOST_COLUMNS)
    }
}

impl<'a, const N: usize> Fields<'a, N> {
    /// Splits off the first `most` fields of a line.
    #[inline]
    pub fn split_some(line: &'a [u8], separator: Separator, most: usize) -> Self {
        let mut found = Self { texts: [&[]; N], count: 0, cut: false };
        match separator {
            Separator::Blanks => found.blanks(line, most.min(N)),
            Separator::Byte(byte) => found.bytes(line, byte, most.min(N)),
        }
        found
    }

    fn blanks(&mut self, line: &'a [u8], most: usize) {
        let mut at = 0;
        while self.count < most {
            while line.get(at).is_some_and(u8::is_ascii_whitespace) {
                at += 1;
            }
            let start = at;
            while line.get(at).is_some_and(|byte| !byte.is_ascii_whitespace()) {
                at += 1;
            }
            if start == at {
                return;
            }
            self.texts[self.count] = &line[start..at];
            self.count += 1;
        }
        self.cut = at < line.trim_ascii_end().len();
    }

    fn bytes(&mut self, line: &'a [u8], separator: u8, most: usize) {
        let mut rest = line;
        while self.count < most {
            let end = field_end(rest, separator);
            self.texts[self.count] = bare(&rest[..end]);
            self.count += 1;
            match rest.get(end + 1..) {
                Some(behind) => rest = behind,
                None => return,
            }
        }
        self.cut = true;
    }

    /// The field that many places from the start; `None` behind the last.
    #[inline]
    pub fn front(&self, place: usize) -> Option<&'a [u8]> {
        (place < self.count).then(|| self.texts[place])
    }

    /// The field that many places from the end, the last being 1.
    #[inline]
    pub fn back(&self, place: usize) -> Option<&'a [u8]> {
        self.front(self.count.checked_sub(place).filter(|_| !self.cut)?)
    }

    /// The field in a position.
    #[inline]
    pub fn at(&self, position: Position) -> Option<&'a [u8]> {
        match position {
            Position::Front(place) => self.front(place),
            Position::Back(place) => self.back(place),
        }
    }

    /// All of them.
    pub fn all(&self) -> &[&'a [u8]] {
        &self.texts[..self.count]
    }
}

/// Where the field at the start of `rest` ends: at its separator, or at the end of the line.
#[inline]
fn field_end(rest: &[u8], separator: u8) -> usize {
    let find = |from: usize| {
        let found = rest[from..].iter().position(|byte| *byte == separator);
        found.map_or(rest.len(), |at| from + at)
    };
    if let [b'"', quoted @ ..] = rest
        && let Some(quote) = quoted.iter().position(|byte| *byte == b'"')
    {
        return find(quote + 2);
    }
    find(0)
}

/// Without the blanks around it, and the quotes.
#[inline]
fn bare(field: &[u8]) -> &[u8] {
    let field = match field {
        [b' ' | b'\t', ..] | [.., b' ' | b'\t' | b'\r'] => field.trim_ascii(),
        _ => field,
    };
    match field {
        [b'"', inner @ .., b'"'] => inner,
        _ => field,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(line: &[u8], separator: Separator, expected: &[&[u8]]) {
        assert_eq!(Fields::split(line, separator).all(), expected, "{}", line.escape_ascii());
    }

    #[test]
    fn fields_are_trimmed_and_unquoted() {
        check(b"a, b ,,\"c,d\",e", Separator::Byte(b','), &[b"a", b"b", b"", b"c,d", b"e"]);
        check(b"a ; b;", Separator::Byte(b';'), &[b"a", b"b", b""]);
        check(b" a\t b  c ", Separator::Blanks, &[b"a", b"b", b"c"]);
        check(b"\"open,x", Separator::Byte(b','), &[b"\"open", b"x"]);
        let fields = Fields::split(b"1 2 3", Separator::Blanks);
        assert_eq!((fields.front(2), fields.front(3)), (Some(&b"3"[..]), None));
        assert_eq!((fields.back(3), fields.back(4)), (Some(&b"1"[..]), None));
    }

    proptest! {
        #[test]
        fn plain_fields_come_back_from_any_separator(
            fields in prop::collection::vec("[a-z0-9.]{1,8}", 1..80), which in 0usize..5,
        ) {
            let separator = Separator::ALL[which];
            let between = match separator {
                Separator::Byte(byte) => char::from(byte).to_string(),
                Separator::Blanks => " \t ".to_owned(),
            };
            let line = fields.join(&between);
            let split = Fields::split(line.as_bytes(), separator);
            let expected: Vec<&[u8]> =
                fields.iter().take(MOST_COLUMNS).map(String::as_bytes).collect();
            prop_assert_eq!(split.all(), &expected[..]);
        }
    }
}

//! Reading the fields of one packet: little-endian integers, length-encoded integers and strings.
//!
//! Every reader checks the packet's end; what lies beyond is an error, never a panic.

use crate::Error;

/// A packet that is too short or says what it may not.
pub(super) fn malformed(what: &str) -> Error {
    Error::Protocol { what: what.to_owned() }
}

/// What is left of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn new(packet: &'a [u8]) -> Self {
        Self { rest: packet }
    }

    /// Everything that was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (head, rest) =
            self.rest.split_at_checked(len).ok_or_else(|| malformed("a packet that was cut"))?;
        self.rest = rest;
        Ok(head)
    }

    /// A little-endian integer of `len` bytes, at most 8.
    pub fn integer(&mut self, len: usize) -> Result<u64, Error> {
        let mut word = [0; 8];
        word[..len].copy_from_slice(self.bytes(len)?);
        Ok(u64::from_le_bytes(word))
    }

    pub fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.integer(1)? as u8)
    }

    pub fn u16(&mut self) -> Result<u16, Error> {
        Ok(self.integer(2)? as u16)
    }

    pub fn u32(&mut self) -> Result<u32, Error> {
        Ok(self.integer(4)? as u32)
    }

    /// A length-encoded integer; none is NULL.
    #[inline]
    pub fn length(&mut self) -> Result<Option<u64>, Error> {
        Ok(Some(match self.u8()? {
            0xfb => return Ok(None),
            0xfc => self.integer(2)?,
            0xfd => self.integer(3)?,
            0xfe => self.integer(8)?,
            0xff => return Err(malformed("a length that no length can be")),
            small => u64::from(small),
        }))
    }

    /// A length-encoded integer that cannot be NULL.
    pub fn count(&mut self) -> Result<u64, Error> {
        self.length()?.ok_or_else(|| malformed("NULL where a number belongs"))
    }

    /// A length-encoded string; none is NULL.
    #[inline]
    pub fn string(&mut self) -> Result<Option<&'a [u8]>, Error> {
        match self.length()? {
            None => Ok(None),
            Some(len) => {
                let len = usize::try_from(len).map_err(|_| malformed("a string that is cut"))?;
                self.bytes(len).map(Some)
            }
        }
    }

    /// Everything up to a zero byte, or to the end where there is none.
    pub fn until_zero(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|&byte| byte == 0);
        let text = &self.rest[..end.unwrap_or(self.rest.len())];
        self.rest = end.map_or(&[], |end| &self.rest[end + 1..]);
        text
    }
}

/// Appends a length-encoded string.
#[inline]
pub(super) fn push_string(output: &mut Vec<u8>, text: &[u8]) {
    let len = text.len() as u64;
    match len {
        0..=0xfa => output.push(len as u8),
        0xfb..=0xffff => {
            output.push(0xfc);
            output.extend_from_slice(&(len as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            output.push(0xfd);
            output.extend_from_slice(&len.to_le_bytes()[..3]);
        }
        _ => {
            output.push(0xfe);
            output.extend_from_slice(&len.to_le_bytes());
        }
    }
    output.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_come_back(lens in prop::collection::vec(0usize..70_000, 0..5)) {
            let mut packet = Vec::new();
            for &len in &lens {
                push_string(&mut packet, &vec![len as u8; len]);
            }
            let mut fields = Fields::new(&packet);
            for &len in &lens {
                prop_assert_eq!(fields.string().unwrap().unwrap(), vec![len as u8; len]);
            }
            prop_assert!(fields.rest().is_empty());
        }

        #[test]
        fn anything_is_read_or_refused(packet in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut fields = Fields::new(&packet);
            while fields.string().is_ok() && !fields.rest().is_empty() {}
            let mut fields = Fields::new(&packet);
            while fields.count().is_ok() {}
            let _ = fields.until_zero();
        }
    }

    #[test]
    fn the_four_widths_of_a_length() {
        let check = |bytes: &[u8], expected| {
            assert_eq!(Fields::new(bytes).length().unwrap(), expected);
        };
        check(&[250], Some(250));
        check(&[0xfb], None);
        check(&[0xfc, 0xfb, 0], Some(251));
        check(&[0xfd, 0, 0, 1], Some(65_536));
        check(&[0xfe, 0, 0, 0, 1, 0, 0, 0, 0], Some(1 << 24));
        assert!(Fields::new(&[0xff]).length().is_err());
        assert!(Fields::new(&[0xfc, 1]).length().is_err());
    }
}

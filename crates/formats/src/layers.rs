//! What a text or binary trace is wrapped in: compression, an archive, an encoding of text.
//!
//! Each layer is recognised by its magic, never by the name, and undone while reading, so that
//! standard input works like a file: gzip (RFC 1952), Zstandard (RFC 8878), bzip2, xz, zip and tar
//! (see [`super::archive`]), UTF-16 and UTF-8 with a byte order mark. Layers may stand in each
//! other (`.tar.gz`, a zip of a `.bz2`), at most [`MOST_LAYERS`] deep.
//!
//! Tests: every form of one text, alone and in each other, cut short, read in trickles.

use std::io::{self, Read};

use super::archive::{Source, Tar, Zip};

/// Archives of archives end somewhere; what is deeper is a bomb.
const MOST_LAYERS: usize = 5;
/// The mark of a tar archive stands at the end of its first header.
const HEAD_BYTES: u64 = 512;

/// What wraps an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    Zip,
    Tar,
    Utf16 { big: bool },
    ByteOrderMark,
}

impl Layer {
    fn of(head: &[u8]) -> Option<Self> {
        // Skippable frames of Zstandard have any of sixteen magics that end so.
        let skippable = head.get(1..4) == Some(&[0x2a, 0x4d, 0x18]);
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ if skippable => Some(Self::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => {
                Some(Self::Bzip2)
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [b'P', b'K', 3, 4, ..] => Some(Self::Zip),
            [0xff, 0xfe, ..] => Some(Self::Utf16 { big: false }),
            [0xfe, 0xff, ..] => Some(Self::Utf16 { big: true }),
            [0xef, 0xbb, 0xbf, ..] => Some(Self::ByteOrderMark),
            _ if head.get(257..262) == Some(b"ustar") => Some(Self::Tar),
            _ => None,
        }
    }

    /// Its name; `None` for what is not worth telling.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
            Self::Bzip2 => Some("bzip2"),
            Self::Xz => Some("xz"),
            Self::Zip => Some("zip"),
            Self::Tar => Some("tar"),
            Self::Utf16 { .. } => Some("UTF-16"),
            Self::ByteOrderMark => None,
        }
    }

    fn undo(self, whole: Source) -> io::Result<Source> {
        Ok(match self {
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(whole)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(whole)?),
            Self::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(whole)),
            Self::Xz => Box::new(lzma_rust2::XzReader::new(whole, true)),
            Self::Zip => Box::new(Zip::new(whole)),
            Self::Tar => Box::new(Tar::new(whole)),
            Self::Utf16 { big } => Box::new(Utf16::new(whole, big)),
            Self::ByteOrderMark => {
                let mut whole = whole;
                io::copy(&mut (&mut whole).take(3), &mut io::sink())?;
                whole
            }
        })
    }
}

/// An input without its layers.
pub(super) struct Unwrapped {
    /// Its first bytes, read already.
    pub head: Vec<u8>,
    /// What follows them.
    pub rest: Source,
    /// Names of the layers, the outer one first.
    pub layers: Vec<&'static str>,
}

/// Takes all layers off, or fails with the name of the one that is damaged.
pub(super) fn unwrap(mut rest: Source) -> Result<Unwrapped, (Option<&'static str>, io::Error)> {
    let mut layers = Vec::new();
    for _ in 0..=MOST_LAYERS {
        let mut head = Vec::new();
        let read = (&mut rest).take(HEAD_BYTES).read_to_end(&mut head);
        read.map_err(|error| (layers.last().copied(), error))?;
        let Some(layer) = Layer::of(&head) else { return Ok(Unwrapped { head, rest, layers }) };
        layers.extend(layer.name());
        let whole = Box::new(io::Cursor::new(head).chain(rest));
        rest = layer.undo(whole).map_err(|error| (layer.name(), error))?;
    }
    let error = io::Error::new(io::ErrorKind::Unsupported, "more than five layers of packing");
    Err((None, error))
}

/// Text of 16-bit units as UTF-8; a unit that is no character becomes U+FFFD.
struct Utf16 {
    inner: Source,
    big: bool,
    /// Bytes whose unit, or whose second half of a pair, is still to come.
    waiting: Vec<u8>,
    out: Vec<u8>,
    taken: usize,
}

impl Utf16 {
    fn new(inner: Source, big: bool) -> Self {
        Self { inner, big, waiting: Vec::new(), out: Vec::new(), taken: 0 }
    }

    /// Decodes what waits; all of it where nothing follows.
    fn decode(&mut self, at_end: bool) {
        let (pairs, odd) = self.waiting.as_chunks::<2>();
        let mut units: Vec<u16> = pairs
            .iter()
            .map(
                |pair| if self.big { u16::from_be_bytes(*pair) } else { u16::from_le_bytes(*pair) },
            )
            .collect();
        let mut kept = odd.to_vec();
        if let Some(last @ 0xd800..0xdc00) = units.last().copied()
            && !at_end
        {
            // The first half of a pair.
            units.pop();
            let bytes = if self.big { last.to_be_bytes() } else { last.to_le_bytes() };
            kept.splice(0..0, bytes);
        }
        self.out.clear();
        self.taken = 0;
        let mut room = [0; 4];
        for character in char::decode_utf16(units) {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            // The byte order mark itself says nothing more.
            if character != '\u{feff}' {
                self.out.extend_from_slice(character.encode_utf8(&mut room).as_bytes());
            }
        }
        if at_end && !kept.is_empty() {
            self.out.extend_from_slice("\u{fffd}".as_bytes());
            kept.clear();
        }
        self.waiting = kept;
    }
}

impl Read for Utf16 {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.out.len() {
            let mut piece = [0; 8192];
            let count = self.inner.read(&mut piece)?;
            self.waiting.extend_from_slice(&piece[..count]);
            let at_end = count == 0;
            if at_end && self.waiting.is_empty() {
                return Ok(0);
            }
            self.decode(at_end);
        }
        let count = room.len().min(self.out.len() - self.taken);
        room[..count].copy_from_slice(&self.out[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(text).expect("compressed");
        encoder.finish().expect("compressed")
    }

    /// By `xz --format=xz` where it is installed.
    fn xz(text: &[u8]) -> Option<Vec<u8>> {
        let mut command = std::process::Command::new("xz");
        command.arg("-zc").stdin(std::process::Stdio::piped());
        let child = command.stdout(std::process::Stdio::piped()).spawn();
        let Ok(mut child) = child else {
            println!("skipped: xz is not installed");
            return None;
        };
        let mut stdin = child.stdin.take().expect("a pipe");
        let text = text.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&text));
        let output = child.wait_with_output().expect("ends").stdout;
        writer.join().expect("ends").expect("written");
        Some(output)
    }

    fn utf16(text: &str, big: bool) -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
    }

    /// Hands out a few bytes at a time.
    struct Trickle(io::Cursor<Vec<u8>>, usize);

    impl Read for Trickle {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            let count = room.len().min(self.1);
            self.0.read(&mut room[..count])
        }
    }

    fn read(bytes: Vec<u8>, step: usize) -> io::Result<(Vec<u8>, Vec<&'static str>)> {
        let source = Trickle(io::Cursor::new(bytes), step);
        let mut found = unwrap(Box::new(source)).map_err(|(_, error)| error)?;
        let mut all = found.head;
        found.rest.read_to_end(&mut all)?;
        Ok((all, found.layers))
    }

    #[test]
    fn every_layer_is_taken_off() {
        let text = "0,1,512,r,0.5\n".repeat(3000) + "\u{20ac} \u{1f4be}\n";
        let plain = text.as_bytes();
        let mut forms = vec![
            (bzip2(plain), "bzip2"),
            (utf16(&text, false), "UTF-16"),
            (utf16(&text, true), "UTF-16"),
            (bzip2(&utf16(&text, true)), "bzip2 UTF-16"),
            ([b"\xef\xbb\xbf", plain].concat(), ""),
            ([bzip2(&plain[..14]), bzip2(&plain[14..])].concat(), "bzip2"),
        ];
        forms.extend(xz(plain).map(|form| (form, "xz")));
        for (form, names) in forms {
            for step in [1, 7, 4096, 1 << 20] {
                let (found, layers) = read(form.clone(), step).expect(names);
                assert!(found == plain, "{names} in steps of {step}");
                assert_eq!(layers.join(" "), names);
            }
        }
    }

    #[test]
    fn a_layer_that_is_cut_short_is_an_error() {
        let text: Vec<u8> = (0..40_000u32).flat_map(u32::to_le_bytes).collect();
        for form in [Some(bzip2(&text)), xz(&text)].into_iter().flatten() {
            let cut = form[..form.len() - 9].to_vec();
            assert!(read(cut, 1 << 20).is_err());
            let mut changed = form;
            let middle = changed.len() / 2;
            changed[middle] ^= 0x55;
            assert!(read(changed, 1 << 20).is_err());
        }
    }

    #[test]
    fn packing_within_packing_ends_somewhere() {
        let mut bytes = b"0,1,512,r,0\n".to_vec();
        for _ in 0..MOST_LAYERS {
            bytes = bzip2(&bytes);
        }
        assert_eq!(read(bytes.clone(), 99).expect("reads").0, b"0,1,512,r,0\n");
        let error = read(bzip2(&bytes), 99).expect_err("too deep");
        assert_eq!(error.to_string(), "more than five layers of packing");
    }
}

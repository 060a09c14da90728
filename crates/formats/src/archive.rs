//! The one file of an archive, read as a stream: tar (POSIX.1-2017 `pax`, "ustar Interchange
//! Format") and zip (PKWARE APPNOTE 6.3, sections 4.3 and 4.4).
//!
//! A trace comes alone in its archive, beside folders and files such as `._name` that macOS adds.
//! An archive of several files is refused: which of them is the trace, and whether they are one, is
//! the user's to say. Of zip the local headers are read, not the directory at the end, so that
//! standard input works; files are stored or deflated, and their checksum is compared. The common
//! crates for both lend an entry that borrows its archive, which an input that owns its reader
//! cannot hold.
//!
//! Tests: archives made by `tar` and `zip`, by hand where those are absent, cut short, changed.

use std::io::{self, BufReader, Read};

/// A reader whose beginning says what it is.
pub(super) type Source = Box<dyn Read + Send>;

/// A header and the unit of everything in a tar archive.
const BLOCK_BYTES: usize = 512;

fn refused(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, message)
}

fn several(name: &[u8]) -> io::Error {
    let name = String::from_utf8_lossy(name);
    refused(format!("the archive holds several files; behind the first is '{name}'"))
}

fn corrupt(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// What macOS puts beside a file, which is not the file.
fn is_beside(name: &[u8]) -> bool {
    let last = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.starts_with(b"__MACOSX/") || last.starts_with(b"._") || last == b".DS_Store"
}

fn skip(reader: &mut impl Read, bytes: u64) -> io::Result<()> {
    match io::copy(&mut reader.take(bytes), &mut io::sink())? {
        skipped if skipped == bytes => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The first regular file of a tar archive.
pub(super) struct Tar {
    inner: Source,
    /// Bytes of the file still to come; `None` in front of it.
    left: Option<u64>,
    padding: u64,
    done: bool,
}

impl Tar {
    pub fn new(inner: Source) -> Self {
        Self { inner, left: None, padding: 0, done: false }
    }

    /// Goes to the next regular file: its name and size. `None` at the end of the archive.
    fn next_file(&mut self) -> io::Result<Option<(Vec<u8>, u64)>> {
        loop {
            let mut block = Vec::new();
            (&mut self.inner).take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
            // Two blocks of zeros end an archive; some end without.
            if block.iter().all(|byte| *byte == 0) {
                return Ok(None);
            }
            if block.len() < BLOCK_BYTES {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if block.get(257..262) != Some(b"ustar") {
                return Err(corrupt("a header lacks the mark ustar"));
            }
            let size = tar_size(&block[124..136]).ok_or_else(|| corrupt("a size is no number"))?;
            self.padding = size.next_multiple_of(BLOCK_BYTES as u64) - size;
            let end = block[..100].iter().position(|byte| *byte == 0).unwrap_or(100);
            let name = block[..end].to_vec();
            if matches!(block[156], b'0' | 0 | b'7') && !is_beside(&name) {
                return Ok(Some((name, size)));
            }
            skip(&mut self.inner, size + self.padding)?;
        }
    }
}

/// A size: octal digits, or big-endian bytes behind a set high bit (GNU).
fn tar_size(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let bytes = field.last_chunk::<8>()?;
        return Some(u64::from_be_bytes(*bytes)).filter(|size| *size < 1 << 62);
    }
    let text = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok()
}

impl Read for Tar {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.left.is_none() {
            let Some((_, size)) = self.next_file()? else { return Ok(0) };
            self.left = Some(size);
        }
        let left = self.left.unwrap_or(0);
        if left == 0 {
            if !self.done {
                self.done = true;
                skip(&mut self.inner, self.padding)?;
                if let Some((name, _)) = self.next_file()? {
                    return Err(several(&name));
                }
            }
            return Ok(0);
        }
        let most = left.min(room.len() as u64) as usize;
        let count = self.inner.read(&mut room[..most])?;
        if count == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left = Some(left - count as u64);
        Ok(count)
    }
}

/// The first file of a zip archive.
pub(super) struct Zip {
    state: State,
    crc: flate2::Crc,
    /// The checksum that the header names; `None` where it stands behind the file.
    expected: Option<u32>,
}

enum State {
    Header(BufReader<Source>),
    Stored(io::Take<BufReader<Source>>),
    Deflated(flate2::bufread::DeflateDecoder<BufReader<Source>>),
    Done,
}

/// A local file header, without its signature.
struct Local {
    flags: u16,
    method: u16,
    crc: u32,
    size: u64,
    name: Vec<u8>,
}

impl Local {
    fn read(reader: &mut impl Read) -> io::Result<Self> {
        let mut fixed = [0; 26];
        reader.read_exact(&mut fixed)?;
        let le16 = |at: usize| u16::from_le_bytes([fixed[at], fixed[at + 1]]);
        let le32 = |at: usize| u32::from(le16(at)) | u32::from(le16(at + 2)) << 16;
        let mut name = vec![0; usize::from(le16(22))];
        reader.read_exact(&mut name)?;
        let mut extra = vec![0; usize::from(le16(24))];
        reader.read_exact(&mut extra)?;
        let size = match le32(14) {
            u32::MAX => zip64_size(&extra).ok_or_else(|| corrupt("a zip64 size is missing"))?,
            size => u64::from(size),
        };
        Ok(Self { flags: le16(2), method: le16(4), crc: le32(10), size, name })
    }

    /// Its sizes and checksum stand behind the file.
    fn is_streamed(&self) -> bool {
        self.flags & 8 != 0
    }
}

/// The compressed size in the extra field of zip64: behind the uncompressed one.
fn zip64_size(mut extra: &[u8]) -> Option<u64> {
    while let [a, b, c, d, rest @ ..] = extra {
        let length = usize::from(u16::from_le_bytes([*c, *d]));
        if u16::from_le_bytes([*a, *b]) == 1 {
            let bytes = rest.get(8..16)?.first_chunk::<8>()?;
            return Some(u64::from_le_bytes(*bytes));
        }
        extra = rest.get(length..)?;
    }
    None
}

impl Zip {
    pub fn new(inner: Source) -> Self {
        let state = State::Header(BufReader::new(inner));
        Self { state, crc: flate2::Crc::new(), expected: None }
    }

    /// From headers to the first file.
    fn open(&mut self, mut reader: BufReader<Source>) -> io::Result<State> {
        loop {
            let mut signature = [0; 4];
            reader.read_exact(&mut signature)?;
            if signature != *b"PK\x03\x04" {
                return Ok(State::Done);
            }
            let local = Local::read(&mut reader)?;
            if local.flags & 1 != 0 {
                return Err(refused("the archive is encrypted".to_owned()));
            }
            if local.name.ends_with(b"/") || (is_beside(&local.name) && !local.is_streamed()) {
                skip(&mut reader, local.size)?;
                continue;
            }
            self.expected = (!local.is_streamed()).then_some(local.crc);
            return match local.method {
                0 if !local.is_streamed() => Ok(State::Stored(reader.take(local.size))),
                8 => Ok(State::Deflated(flate2::bufread::DeflateDecoder::new(reader))),
                method => Err(refused(format!("the archive uses method {method} of zip"))),
            };
        }
    }

    /// Behind the first file: its checksum, and that no other follows.
    fn close(&mut self, mut reader: BufReader<Source>) -> io::Result<()> {
        let mut signature = [0; 4];
        reader.read_exact(&mut signature)?;
        let expected = if let Some(crc) = self.expected {
            crc
        } else {
            // A descriptor; its own signature and the width of its sizes are left open.
            if signature == *b"PK\x07\x08" {
                reader.read_exact(&mut signature)?;
            }
            let crc = u32::from_le_bytes(signature);
            skip(&mut reader, 8)?;
            reader.read_exact(&mut signature)?;
            if !signature.starts_with(b"PK") {
                skip(&mut reader, 4)?;
                reader.read_exact(&mut signature)?;
            }
            crc
        };
        if expected != self.crc.sum() {
            return Err(corrupt("the checksum is another"));
        }
        while signature == *b"PK\x03\x04" {
            let local = Local::read(&mut reader)?;
            if !is_beside(&local.name) && !local.name.ends_with(b"/") {
                return Err(several(&local.name));
            }
            if local.is_streamed() {
                return Ok(());
            }
            skip(&mut reader, local.size)?;
            reader.read_exact(&mut signature)?;
        }
        Ok(())
    }
}

impl Read for Zip {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = match &mut self.state {
                State::Header(_) => {
                    let State::Header(reader) = std::mem::replace(&mut self.state, State::Done)
                    else {
                        return Ok(0);
                    };
                    self.state = self.open(reader)?;
                    continue;
                }
                State::Stored(file) => {
                    let count = file.read(room)?;
                    if count == 0 && file.limit() > 0 && !room.is_empty() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    count
                }
                State::Deflated(file) => file.read(room)?,
                State::Done => return Ok(0),
            };
            self.crc.update(&room[..count]);
            if count == 0 && !room.is_empty() {
                match std::mem::replace(&mut self.state, State::Done) {
                    State::Stored(file) => self.close(file.into_inner())?,
                    State::Deflated(file) => self.close(file.into_inner())?,
                    State::Header(_) | State::Done => {}
                }
            }
            return Ok(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// A tar archive of these entries: name, kind, content.
    fn tar(entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
        let mut all = Vec::new();
        for (name, kind, content) in entries {
            let mut block = [0u8; BLOCK_BYTES];
            block[..name.len()].copy_from_slice(name.as_bytes());
            block[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
            block[156] = *kind;
            block[257..265].copy_from_slice(b"ustar\x0000");
            all.extend_from_slice(&block);
            all.extend_from_slice(content);
            all.resize(all.len().next_multiple_of(BLOCK_BYTES), 0);
        }
        all.resize(all.len() + 2 * BLOCK_BYTES, 0);
        all
    }

    /// A zip archive of these entries: name, whether deflated, whether streamed, content.
    fn zip(entries: &[(&str, bool, bool, &[u8])]) -> Vec<u8> {
        let mut all = Vec::new();
        for (name, deflated, streamed, content) in entries {
            let mut crc = flate2::Crc::new();
            crc.update(content);
            let body = if *deflated {
                let fast = flate2::Compression::fast();
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), fast);
                encoder.write_all(content).expect("compressed");
                encoder.finish().expect("compressed")
            } else {
                content.to_vec()
            };
            let sizes = [crc.sum(), body.len() as u32, content.len() as u32].map(u32::to_le_bytes);
            let sizes = sizes.concat();
            all.extend_from_slice(b"PK\x03\x04\x14\0");
            all.extend_from_slice(&[if *streamed { 8 } else { 0 }, 0]);
            all.extend_from_slice(&[if *deflated { 8 } else { 0 }, 0, 0, 0, 0, 0]);
            all.extend_from_slice(if *streamed { &[0; 12] } else { &sizes });
            all.extend_from_slice(&(name.len() as u16).to_le_bytes());
            all.extend_from_slice(&[0, 0]);
            all.extend_from_slice(name.as_bytes());
            all.extend_from_slice(&body);
            if *streamed {
                all.extend_from_slice(b"PK\x07\x08");
                all.extend_from_slice(&sizes);
            }
        }
        all.extend_from_slice(b"PK\x01\x02 and the directory");
        all
    }

    fn all_of(mut reader: impl Read) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        reader.read_to_end(&mut all).map(|_| all)
    }

    fn untar(bytes: &[u8]) -> io::Result<Vec<u8>> {
        all_of(Tar::new(Box::new(io::Cursor::new(bytes.to_vec()))))
    }

    fn unzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
        all_of(Zip::new(Box::new(io::Cursor::new(bytes.to_vec()))))
    }

    #[test]
    fn the_one_file_of_an_archive_is_read() {
        let text = b"0,1,512,r,0\n".repeat(700);
        let entries: [(&str, u8, &[u8]); 4] = [
            ("folder/", b'5', b""),
            ("folder/._a", b'0', b"junk"),
            ("pax", b'x', b"11 a=b\n"),
            ("folder/a", b'0', &text),
        ];
        assert_eq!(untar(&tar(&entries)).expect("reads"), text);
        for (deflated, streamed) in [(true, true), (true, false), (false, false)] {
            let entries: [(&str, bool, bool, &[u8]); 3] = [
                ("folder/", false, false, b""),
                ("folder/a", deflated, streamed, &text),
                ("__MACOSX/._a", true, false, b"junk"),
            ];
            assert_eq!(unzip(&zip(&entries)).expect("reads"), text, "{deflated} {streamed}");
        }
        assert_eq!(untar(&tar(&[])).expect("reads"), b"");
    }

    #[test]
    fn several_files_are_refused_by_name() {
        let error = untar(&tar(&[("a", b'0', b"x"), ("b.csv", b'0', b"y")])).expect_err("two");
        assert!(error.to_string().ends_with("behind the first is 'b.csv'"), "{error}");
        let error = unzip(&zip(&[("a", true, true, b"x"), ("b.csv", true, true, b"y")]));
        let error = error.expect_err("two").to_string();
        assert!(error.ends_with("behind the first is 'b.csv'"), "{error}");
    }

    #[test]
    fn archives_cut_short_or_changed_are_errors() {
        let text = b"0,1,512,r,0\n".repeat(700);
        let whole = tar(&[("a", b'0', &text)]);
        for cut in [100, 600, 5000] {
            assert!(untar(&whole[..cut]).is_err(), "tar cut to {cut}");
        }
        for (deflated, streamed) in [(true, true), (true, false), (false, false)] {
            let whole = zip(&[("a", deflated, streamed, &text)]);
            for cut in [10, 40, whole.len() / 2] {
                assert!(unzip(&whole[..cut]).is_err(), "zip cut to {cut}");
            }
            let mut changed = whole.clone();
            changed[31 + 20] ^= 0x20;
            assert!(unzip(&changed).is_err(), "{deflated} {streamed}");
        }
        let mut encrypted = zip(&[("a", true, false, b"x")]);
        encrypted[6] |= 1;
        assert_eq!(unzip(&encrypted).expect_err("no").to_string(), "the archive is encrypted");
    }
}

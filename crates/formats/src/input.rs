//! Where the bytes of a trace come from: a file or standard input, without what wraps them.
//!
//! Compression, archives and encodings are undone while reading, see [`super::layers`]; several
//! members or frames in a row are one input. A stream that ends early or is corrupt is an error
//! with its place in the unwrapped bytes.
//!
//! Tests: all forms of one text, cut short, read in trickles.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::layers::{self, Unwrapped};
use crate::options::Stop;
use crate::{Error, Result};

/// The name that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// One input, decompressed.
pub(super) struct Input {
    /// What errors call it.
    path: PathBuf,
    /// Looked at but not consumed.
    start: Vec<u8>,
    start_taken: usize,
    reader: Box<dyn Read + Send>,
    /// Bytes handed out.
    taken: u64,
    stop: Stop,
    /// Names of what wrapped it, the outer one first.
    pub compression: Option<String>,
    /// Size of the plain file, where it is one.
    pub size_bytes: Option<u64>,
}

impl Input {
    /// Opens a file, or standard input by its name `-`.
    pub fn open(path: &Path, stop: Stop) -> Result<Self> {
        if path == Path::new(STANDARD_INPUT) {
            return Self::new(io::stdin(), Path::new("standard input"), None, stop);
        }
        let file = File::open(path).map_err(Error::io(path))?;
        let metadata = file.metadata().map_err(Error::io(path))?;
        let size = metadata.is_file().then_some(metadata.len());
        Self::new(file, path, size, stop)
    }

    /// Around anything; `path` is what errors call it.
    pub fn new(
        reader: impl Read + Send + 'static,
        path: &Path,
        size_bytes: Option<u64>,
        stop: Stop,
    ) -> Result<Self> {
        let unwrapped = layers::unwrap(Box::new(reader));
        let Unwrapped { head, rest, layers } =
            unwrapped.map_err(|(layer, error)| fault(path, layer, 0, error))?;
        let kind = (!layers.is_empty()).then(|| layers.join(", "));
        let is_plain = kind.is_none();
        Ok(Self {
            path: path.to_owned(),
            start: head,
            start_taken: 0,
            reader: rest,
            taken: 0,
            stop,
            compression: kind,
            size_bytes: size_bytes.filter(|_| is_plain),
        })
    }

    /// What errors call it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes still to come, where known.
    pub fn rest(&self) -> Option<u64> {
        self.size_bytes.map(|size| size.saturating_sub(self.taken))
    }

    /// Whether the file can be opened again and read as it is: no pipe, not compressed.
    pub fn can_be_read_again(&self) -> bool {
        self.size_bytes.is_some()
    }

    /// The first `count` bytes, fewer only where the input has fewer; they are still to be read.
    pub fn peek(&mut self, count: usize) -> Result<&[u8]> {
        let missing = count.saturating_sub(self.start.len()) as u64;
        let read = (&mut self.reader).take(missing).read_to_end(&mut self.start);
        read.map_err(|error| self.fault(error))?;
        Ok(&self.start[..count.min(self.start.len())])
    }

    /// Reads some bytes; zero only at the end. Every reader of a trace comes here for each piece,
    /// so that endless inputs, and small ones that decompress to endless ones, can be stopped.
    pub fn read(&mut self, room: &mut [u8]) -> Result<usize> {
        if self.stop.is_wanted() {
            return Err(Error::Interrupted { path: self.path.clone() });
        }
        let waiting = &self.start[self.start_taken..];
        let count = if waiting.is_empty() {
            loop {
                match self.reader.read(room) {
                    Ok(count) => break count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(self.fault(error)),
                }
            }
        } else {
            let count = waiting.len().min(room.len());
            room[..count].copy_from_slice(&waiting[..count]);
            self.start_taken += count;
            count
        };
        self.taken += count as u64;
        Ok(count)
    }

    fn fault(&self, error: io::Error) -> Error {
        let offset = self.taken + (self.start.len() - self.start_taken) as u64;
        fault(&self.path, self.compression.as_deref(), offset, error)
    }
}

/// What a failed read means: of a compressed stream, mostly that the file is damaged.
fn fault(path: &Path, layer: Option<&str>, offset: u64, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::Unsupported {
        let hint = "take the trace out and give it alone, also through a pipe (tar -xOf ARCHIVE \
                    FILE | wearmark trace info -)";
        let (path, cause) = (path.to_owned(), error.to_string());
        return Error::Format { path, cause, hint: hint.to_owned() };
    }
    match layer {
        Some(kind) if error.raw_os_error().is_none() => {
            let cause = match error.kind() {
                io::ErrorKind::UnexpectedEof => format!("the {kind} stream ends early"),
                _ => format!("the {kind} stream is corrupt ({error})"),
            };
            Error::damaged(path, offset, cause)
        }
        _ => Error::io(path)(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).expect("compressed");
        encoder.finish().expect("compressed")
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 1).expect("compressed")
    }

    fn read_all(bytes: Vec<u8>, peek: usize, step: usize) -> Result<Vec<u8>> {
        let mut input =
            Input::new(io::Cursor::new(bytes), Path::new("file"), None, Stop::default())?;
        input.peek(peek)?;
        let mut all = Vec::new();
        let mut room = vec![0; step];
        loop {
            match input.read(&mut room)? {
                0 => return Ok(all),
                count => all.extend_from_slice(&room[..count]),
            }
        }
    }

    #[test]
    fn every_form_reads_the_same_whatever_was_looked_at() {
        let text: Vec<u8> = (0..5000u32).flat_map(u32::to_le_bytes).collect();
        for form in [text.clone(), gzip(&text), zstd(&text)] {
            for (peek, step) in [(0, 1), (1, 7), (3, 1000), (4096, 4096), (1 << 20, 1 << 20)] {
                assert_eq!(read_all(form.clone(), peek, step).expect("reads"), text);
            }
        }
    }

    #[test]
    fn members_in_a_row_are_one_input() {
        for compress in [gzip, zstd] {
            let bytes = [compress(b"one "), compress(b""), compress(b"two")].concat();
            assert_eq!(read_all(bytes, 2, 100).expect("reads"), b"one two");
        }
        let skippable =
            [&[0x53, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9], zstd(b"x").as_slice()].concat();
        assert_eq!(read_all(skippable, 0, 9).expect("reads"), b"x");
    }

    #[test]
    fn an_endless_input_is_stopped() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let options = crate::ReadOptions { stop: Stop::on(&STOP), ..Default::default() };
        // Blank lines without end, from a reader that asks to stop.
        struct Endless(u32);
        impl Read for Endless {
            fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
                self.0 += 1;
                assert!(self.0 < 1_000, "nobody looks whether to stop");
                STOP.store(self.0 > 20, Ordering::Relaxed);
                room.fill(b'\n');
                Ok(room.len())
            }
        }
        let found = crate::read_from(Endless(0), Path::new("-"), crate::Format::Spc, &options);
        assert!(matches!(found, Err(Error::Interrupted { .. })), "{found:?}");
    }

    #[test]
    fn short_inputs_are_themselves() {
        for text in [&b""[..], b"\x1f", b"\x28\xb5\x2f", b"abc", b"abcd"] {
            assert_eq!(read_all(text.to_vec(), 10, 3).expect("reads"), text);
        }
    }

    #[test]
    fn cut_or_damaged_streams_are_named() {
        let text = vec![b'x'; 100_000];
        for (kind, bytes) in [("gzip", gzip(&text)), ("zstd", zstd(&text))] {
            let error = read_all(bytes[..bytes.len() - 3].to_vec(), 0, 1 << 20).expect_err("cut");
            let expected = format!("the {kind} stream ends early");
            assert!(error.to_string().ends_with(&expected), "{error}");
            let mut bytes = bytes;
            let middle = bytes.len() / 2;
            bytes[middle..].fill(0xee);
            let error = read_all(bytes, 0, 1 << 20).expect_err("damaged");
            assert!(matches!(error, Error::Damaged { .. }), "{error}");
        }
    }
}

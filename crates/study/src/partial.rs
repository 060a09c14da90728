//! Results of a stage as they come, one JSON document per line: what a stopped stage keeps.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::run_dir::RunDir;

/// An open file of results.
#[derive(Debug)]
pub(crate) struct Partial<T> {
    path: PathBuf,
    file: File,
    kind: PhantomData<T>,
}

impl<T: Serialize + DeserializeOwned> Partial<T> {
    /// Opens the file, made if it is not there, and reads what it holds. The last line of a killed
    /// run may be torn: it is cut off, and its result is made again.
    pub(crate) fn open(run: &RunDir, name: &str) -> Result<(Self, Vec<T>), Error> {
        let path = run.join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let done: Vec<T> = lines.map_while(|line| serde_json::from_str(line).ok()).collect();
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Error::io(&path, "open"))?;
        let whole: usize = text.split_inclusive('\n').take(done.len()).map(str::len).sum();
        file.set_len(whole as u64).map_err(Error::io(&path, "truncate"))?;
        file.seek(SeekFrom::End(0)).map_err(Error::io(&path, "seek"))?;
        Ok((Self { path, file, kind: PhantomData }, done))
    }

    /// Appends a result.
    pub(crate) fn push(&mut self, result: &T) -> Result<(), Error> {
        let mut line = serde_json::to_vec(result).expect("a result holds only plain values");
        line.push(b'\n');
        self.file.write_all(&line).map_err(Error::io(&self.path, "write"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::lock(dir.path().to_owned()).unwrap();
        let open = || Partial::<u32>::open(&run, "numbers").unwrap();
        let (mut partial, done) = open();
        assert_eq!(done, [0; 0]);
        partial.push(&10).unwrap();
        partial.push(&200).unwrap();
        partial.file.set_len(5).unwrap();
        let (mut partial, done) = open();
        assert_eq!(done, [10]);
        partial.push(&3000).unwrap();
        assert_eq!(open().1, [10, 3000]);
    }
}

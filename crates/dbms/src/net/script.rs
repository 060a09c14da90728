//! A server that is a list of bytes, for tests.

use std::io::{Cursor, Read, Result, Write};
use std::sync::{Arc, Mutex};

/// What a server says, whatever it is told.
pub(crate) struct Script {
    said: Cursor<Vec<u8>>,
    sent: Arc<Mutex<Vec<u8>>>,
}

impl Script {
    pub fn new(said: Vec<u8>) -> Self {
        Self { said: Cursor::new(said), sent: Arc::default() }
    }

    /// What it was told; stays good when the script has gone into a connection.
    pub fn sent(&self) -> Arc<Mutex<Vec<u8>>> {
        Arc::clone(&self.sent)
    }
}

impl Read for Script {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        self.said.read(into)
    }
}

impl Write for Script {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.sent.lock().expect("one thread").write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

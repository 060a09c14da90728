//! Timelines as a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use trace::Trace;

use super::Compared;
use crate::Error;

/// Writes the timelines of `compared` into `path`, compressed where its name ends in `.gz`.
pub fn write_timeline(path: &Path, compared: &Compared, trace: &Trace) -> Result<(), Error> {
    let file = BufWriter::new(File::create(path).map_err(Error::io(path, "create"))?);
    let is_gz = path.extension().is_some_and(|extension| extension == "gz");
    let written = if is_gz {
        let mut out = GzEncoder::new(file, Compression::fast());
        render(&mut out, compared, trace).and_then(|()| out.finish()?.flush())
    } else {
        let mut out = file;
        render(&mut out, compared, trace).and_then(|()| out.flush())
    };
    written.map_err(Error::io(path, "write"))
}

fn render(out: &mut dyn Write, compared: &Compared, trace: &Trace) -> std::io::Result<()> {
    let names = compared.devices.iter().map(|device| device.profile.as_str());
    let devices: Vec<_> = names.zip(&compared.timelines).collect();
    let mut result = Ok(());
    sim::timeline::write(&devices, trace, &mut |piece| {
        if result.is_ok() {
            result = out.write_all(piece.as_bytes());
        }
    });
    result
}

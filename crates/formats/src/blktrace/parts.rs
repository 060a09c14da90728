//! The files of one trace: `NAME.blktrace.0`, `NAME.blktrace.1`, ... one per processor.

use std::io;
use std::path::{Path, PathBuf};

/// All files of the trace that `path` belongs to, in the order of their processors; `path` alone
/// where it is not named that way.
pub(super) fn parts(path: &Path) -> io::Result<Vec<PathBuf>> {
    let Some((stem, _)) = split(path) else {
        return Ok(vec![path.to_owned()]);
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        let name = PathBuf::from(entry?.file_name());
        if let Some((other, cpu)) = split(&name)
            && other == stem
        {
            found.push((cpu, folder.map_or(name.clone(), |folder| folder.join(&name))));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Name and processor of `NAME.blktrace.N`, also where it is compressed (`.gz`, `.zst`).
fn split(path: &Path) -> Option<(String, u32)> {
    let name = path.file_name()?.to_str()?;
    let (name, suffix) = match name.rsplit_once('.') {
        Some((front, suffix @ ("gz" | "zst"))) => (front, suffix),
        _ => (name, ""),
    };
    let (stem, cpu) = name.rsplit_once(".blktrace.")?;
    Some((format!("{stem} {suffix}"), cpu.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_names_all_of_its_trace() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for name in ["sda.blktrace.10", "sda.blktrace.9", "sdb.blktrace.0", "sda.blktrace.x", "sda"]
        {
            std::fs::write(directory.path().join(name), b"").expect("written");
        }
        let names = |name: &str| -> Vec<String> {
            let found = parts(&directory.path().join(name)).expect("listed");
            found.iter().map(|path| path.file_name().unwrap().display().to_string()).collect()
        };
        assert_eq!(names("sda.blktrace.10"), ["sda.blktrace.9", "sda.blktrace.10"]);
        assert_eq!(names("sda.blktrace.x"), ["sda.blktrace.x"]);
        assert_eq!(names("sda"), ["sda"]);
    }
}

//! Where the journal of an ext4 file system lies on its disk.
//!
//! The journal is an inode without a name, so FIEMAP cannot be asked. The superblock keeps a copy
//! of that inode's block map (kernel Documentation/filesystems/ext4: `s_jnl_blocks`, extent tree);
//! it is read from the device, read-only, as root. Any other file system, any surprise: no journal,
//! and its blocks count as foreign.
//!
//! Tested on hand-made superblocks.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Most levels that an extent tree may have (five in ext4).
const LEVELS: u32 = 5;

/// Extents of the journal, start and length in bytes of the file system's device.
pub(super) fn extents(device: &Path) -> Vec<(u64, u64)> {
    let Ok(file) = File::open(device) else { return Vec::new() };
    let read = |offset: u64, length: usize| {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset).ok().map(|()| bytes)
    };
    parse(read).unwrap_or_default()
}

/// Reads superblock and tree with the help of `read(offset, length)`.
fn parse(read: impl Fn(u64, usize) -> Option<Vec<u8>>) -> Option<Vec<(u64, u64)>> {
    let superblock = read(1024, 1024)?;
    (u16_at(&superblock, 0x38)? == 0xef53).then_some(())?;
    // Only one kind of backup is defined: the map and the size of the inode.
    (*superblock.get(0xfd)? == 1).then_some(())?;
    let block_bytes = 1024u64.checked_shl(u32_at(&superblock, 0x18)?)?;
    let mut found = Vec::new();
    let root = superblock.get(0x10c..0x10c + 60)?;
    descend(root, block_bytes, LEVELS, &read, &mut found)?;
    Some(found)
}

fn descend(
    node: &[u8],
    block_bytes: u64,
    levels: u32,
    read: &impl Fn(u64, usize) -> Option<Vec<u8>>,
    found: &mut Vec<(u64, u64)>,
) -> Option<()> {
    (u16_at(node, 0)? == 0xf30a).then_some(())?;
    let (entries, depth) = (u16_at(node, 2)?, u16_at(node, 6)?);
    for entry in 0..usize::from(entries) {
        let at = 12 + 12 * entry;
        if depth == 0 {
            let length = u64::from(u16_at(node, at + 4)?);
            let high = u64::from(u16_at(node, at + 6)?);
            let start = high << 32 | u64::from(u32_at(node, at + 8)?);
            // Longer than 32768 means allocated, but never written.
            let length = if length > 32_768 { length - 32_768 } else { length };
            found.push((start.checked_mul(block_bytes)?, length * block_bytes));
        } else {
            let high = u64::from(u16_at(node, at + 8)?);
            let child = high << 32 | u64::from(u32_at(node, at + 4)?);
            let node = read(child.checked_mul(block_bytes)?, block_bytes as usize)?;
            descend(&node, block_bytes, levels.checked_sub(1)?, read, found)?;
        }
    }
    Some(())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(depth: u16, entries: &[[u8; 12]]) -> Vec<u8> {
        let mut bytes = vec![0x0a, 0xf3, entries.len() as u8, 0, 4, 0, depth as u8, 0, 0, 0, 0, 0];
        bytes.extend(entries.iter().flatten());
        bytes.resize(4096, 0);
        bytes
    }

    fn leaf(length: u16, start: u32) -> [u8; 12] {
        let mut entry = [0; 12];
        entry[4..6].copy_from_slice(&length.to_le_bytes());
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry
    }

    fn disk(root: &[u8], child: &[u8]) -> impl Fn(u64, usize) -> Option<Vec<u8>> {
        let mut superblock = vec![0; 1024];
        superblock[0x38..0x3a].copy_from_slice(&[0x53, 0xef]);
        superblock[0x18] = 2;
        superblock[0xfd] = 1;
        superblock[0x10c..0x10c + 60].copy_from_slice(&root[..60]);
        let child = child.to_vec();
        move |offset, length| {
            let from = if offset == 1024 { &superblock } else { &child };
            (offset == 1024 || offset == 77 * 4096).then(|| from[..length].to_vec())
        }
    }

    #[test]
    fn extents_in_the_superblock_and_in_a_tree() {
        let leaves = [leaf(10, 100), leaf(32_768 + 5, 200)];
        let expected = vec![(100 * 4096, 10 * 4096), (200 * 4096, 5 * 4096)];
        assert_eq!(parse(disk(&node(0, &leaves), &[])), Some(expected.clone()));
        let mut index = [0; 12];
        index[4] = 77;
        assert_eq!(parse(disk(&node(1, &[index]), &node(0, &leaves))), Some(expected));
        // A tree that leads to itself ends.
        assert_eq!(parse(disk(&node(1, &[index]), &node(1, &[index]))), None);
    }

    #[test]
    fn another_file_system_has_none() {
        assert_eq!(parse(|_, length| Some(vec![0; length])), None);
        assert_eq!(parse(|_, _| None), None);
        assert_eq!(extents(Path::new("/nowhere")), []);
    }
}

//! A client of NBD that may say anything.

use emulate::offline::Export;

use super::fate;

/// Bytes of the device.
const SIZE: u64 = 1 << 20;

/// Inputs beyond this find nothing that shorter ones do not. A request of 28 bytes can ask for the
/// whole device, so this bounds the work too.
const LONGEST_BYTES: usize = 16 << 10;

/// Says the bytes in pieces, then cuts the power.
pub fn check(data: &[u8]) {
    let Some((&choice, said)) = data.split_first() else { return };
    let said = &said[..said.len().min(LONGEST_BYTES)];
    let mut export = Export::new(SIZE).expect("memory for a device");
    for piece in said.chunks(if choice & 2 == 0 { LONGEST_BYTES } else { 7 }) {
        if export.answer(piece).is_none() {
            break;
        }
    }
    export.cut_power(fate(choice)).expect("what was written can be taken back");
}

fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let head = [&b"IHAVEOPT"[..], &number.to_be_bytes(), &(data.len() as u32).to_be_bytes()];
    [&head.concat(), data].concat()
}

/// A request: command, flags, where, how much, and the data of a write.
fn request(kind: u16, flags: u16, offset: u64, len: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(u64::from_be_bytes(*b"a cookie").to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes.extend(data);
    bytes
}

/// Inputs to begin with: whole conversations of well-behaved clients.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    const FUA: u16 = 1;
    let flags = [0, 0, 0, 3];
    let go = option(7, &[0, 0, 0, 1, b'x', 0, 1, 0, 3]);
    let work = [
        request(1, 0, 4096, 8, b"8 bytes."),
        request(0, 0, 4096, 4096, b""),
        request(1, FUA, 8192, 4, b"more"),
        request(3, 0, 0, 0, b""),
        request(4, 0, 0, 65536, b""),
        request(6, FUA, 65536, 4096, b""),
        request(0, 0, 1 << 20, 512, b""),
        request(2, 0, 0, 0, b""),
    ];
    let lists = [option(3, b""), option(6, &[0, 0, 0, 0, 0, 0]), option(5, b""), option(2, b"")];
    let with = |choice: u8, said: &[&[u8]]| [&[choice], said.concat().as_slice()].concat();
    vec![
        ("go", with(0, &[&flags, &go, &work.concat()])),
        ("in-pieces", with(3, &[&flags, &go, &work.concat()])),
        ("export-name", with(1, &[&[0, 0, 0, 1], &option(1, b"x"), &work.concat()])),
        ("options", with(2, &[&flags, &lists.concat()])),
    ]
}

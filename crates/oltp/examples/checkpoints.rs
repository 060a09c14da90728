//! Checkpoints of InnoDB that pass a page which no sync covers, from a trace of system calls:
//! `checkpoints TRACE`, where TRACE is what
//! `strace -f -ttt -T -y -xx -s 32 -e trace=pwrite64,fsync,fdatasync -o TRACE -p PID` left.
//!
//! A checkpoint says that every page older than it is durable. For each one written (to the block
//! 4096 or 8192 of `ib_logfile0`), the pages of `ibdata1`, `undo*` and `*.ibd` are looked at whose
//! last write had ended and whose LSN is below it. A page is *covered* where a sync of its file
//! began after that write had ended, and ended before the checkpoint's write began; it is *in
//! doubt* where the only sync after it had begun before the write ended: POSIX does not say that
//! such a sync covers it.

use std::collections::HashMap;
use std::error::Error;
use std::fs;

/// A call of one file.
#[derive(Debug, PartialEq)]
enum Call {
    Write { offset: u64, head: Vec<u8> },
    Sync,
}

/// When a call ran, us, on which file.
#[derive(Debug)]
struct Event {
    from_us: u64,
    to_us: u64,
    file: String,
    call: Call,
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("checkpoints TRACE")?;
    let text = fs::read(&path)?;
    let events = events(&String::from_utf8_lossy(&text));
    let found = checkpoints(&events);
    for doubt in &found.doubts {
        println!(
            "checkpoint {} at {}: {} page {} of LSN {}, written {} to {}, was synced from {} on",
            doubt.checkpoint,
            seconds(doubt.at_us),
            doubt.file,
            doubt.page,
            doubt.lsn,
            seconds(doubt.from_us),
            seconds(doubt.to_us),
            doubt.synced_us.map_or_else(|| "never".to_owned(), seconds),
        );
    }
    let mut unsafe_ones: Vec<u64> = found.doubts.iter().map(|doubt| doubt.checkpoint).collect();
    unsafe_ones.dedup();
    println!(
        "{} of {} checkpoints pass a page that no sync covers, {} pages in all; {} of these were \
         written while a sync was under way that ended before the checkpoint",
        unsafe_ones.len(),
        found.checkpoints,
        found.doubts.len(),
        found.doubts.iter().filter(|doubt| doubt.overlapped).count()
    );
    Ok(())
}

fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// The calls of a trace in the order in which they ended, writes of the log by when they began: a
/// sync that ends later than that is too late for a checkpoint. A call that another thread's line
/// cuts in two is put together again.
fn events(text: &str) -> Vec<Event> {
    let mut open: HashMap<&str, (u64, String)> = HashMap::new();
    let mut events = Vec::new();
    for line in text.lines() {
        let mut words = line.splitn(3, char::is_whitespace).filter(|word| !word.is_empty());
        let (Some(task), Some(at), Some(rest)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Some(at_us) = time_us(at) else { continue };
        if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
            open.insert(task, (at_us, begun.to_owned()));
        } else if let Some(ended) = rest.split_once("resumed>").map(|(_, ended)| ended) {
            let Some((from_us, begun)) = open.remove(task) else { continue };
            events.extend(event(from_us, &format!("{begun}{ended}")));
        } else {
            events.extend(event(at_us, rest));
        }
    }
    let is_log = |event: &Event| event.file.ends_with("ib_logfile0");
    events.sort_by_key(|event| if is_log(event) { event.from_us } else { event.to_us });
    events
}

fn time_us(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    Some(whole.parse::<u64>().ok()? * 1_000_000 + part.parse::<u64>().ok()?)
}

/// `pwrite64(12</data/ibdata1>, "\x00\x01..."..., 16384, 6979584) = 16384 <0.000272>`
fn event(from_us: u64, text: &str) -> Option<Event> {
    let (name, rest) = text.split_once('(')?;
    let (_, rest) = rest.split_once('<')?;
    let (file, rest) = rest.split_once('>')?;
    let (arguments, result) = rest.rsplit_once(") ")?;
    let (value, took) = result.split_once('<')?;
    if value.trim().trim_start_matches('=').trim().starts_with('-') {
        return None;
    }
    let took: f64 = took.trim_end().trim_end_matches('>').parse().ok()?;
    let call = match name.trim() {
        "pwrite64" => {
            let (_, offset) = arguments.rsplit_once(',')?;
            Call::Write { offset: offset.trim().parse().ok()?, head: bytes(arguments)? }
        }
        "fsync" | "fdatasync" => Call::Sync,
        _ => return None,
    };
    let to_us = from_us + (took * 1e6).round() as u64;
    Some(Event { from_us, to_us, file: name_of(file), call })
}

/// The first bytes of a buffer: `"\x00\x01"`.
fn bytes(arguments: &str) -> Option<Vec<u8>> {
    let text = arguments.split('"').nth(1)?;
    let codes = text.split("\\x").filter(|code| !code.is_empty());
    codes.map(|code| u8::from_str_radix(code, 16).ok()).collect()
}

/// A path as strace shows it with `-xx`, or as it is.
fn name_of(file: &str) -> String {
    if !file.contains("\\x") {
        return file.to_owned();
    }
    let codes = file.split("\\x").filter(|code| !code.is_empty());
    let name: Vec<u8> = codes.filter_map(|code| u8::from_str_radix(code, 16).ok()).collect();
    String::from_utf8_lossy(&name).into_owned()
}

/// A page that a checkpoint passed.
#[derive(Debug, PartialEq)]
struct Doubt {
    checkpoint: u64,
    at_us: u64,
    file: String,
    page: u64,
    lsn: u64,
    from_us: u64,
    to_us: u64,
    synced_us: Option<u64>,
    /// Whether a sync was under way when it was written.
    overlapped: bool,
}

#[derive(Debug, Default)]
struct Found {
    checkpoints: usize,
    doubts: Vec<Doubt>,
}

/// Bytes of a page.
const PAGE: u64 = 16384;

/// A page's last write that no sync covers yet.
struct Written {
    lsn: u64,
    from_us: u64,
    to_us: u64,
    overlapped: bool,
}

fn checkpoints(events: &[Event]) -> Found {
    let mut found = Found::default();
    let mut last = 0;
    let mut pages: HashMap<(&str, u64), Written> = HashMap::new();
    for event in events {
        let file = event.file.as_str();
        match &event.call {
            Call::Write { offset: 4096 | 8192, head } if file.ends_with("ib_logfile0") => {
                let lsn = number(head, 0);
                if lsn <= last {
                    continue;
                }
                last = lsn;
                found.checkpoints += 1;
                for ((file, page), write) in &pages {
                    let written = write.to_us < event.from_us && write.lsn < lsn;
                    if written {
                        found.doubts.push(Doubt {
                            checkpoint: lsn,
                            at_us: event.from_us,
                            file: (*file).to_owned(),
                            page: *page,
                            lsn: write.lsn,
                            from_us: write.from_us,
                            to_us: write.to_us,
                            synced_us: None,
                            overlapped: write.overlapped,
                        });
                    }
                }
            }
            // The doublewrite buffer is not where pages are read from.
            Call::Write { offset, head } if is_data(file) && head.len() >= 24 => {
                let (page, lsn) = (offset / PAGE, number(head, 16));
                if number(head, 0) & 0xffff_ffff != page {
                    continue;
                }
                let (from_us, to_us) = (event.from_us, event.to_us);
                pages.insert((file, page), Written { lsn, from_us, to_us, overlapped: false });
            }
            Call::Sync if is_data(file) => {
                let covered = |at: &(&str, u64), write: &Written| {
                    at.0 == file && write.to_us <= event.from_us
                };
                for doubt in &mut found.doubts {
                    let same = doubt.file == file && doubt.to_us <= event.from_us;
                    if same && doubt.synced_us.is_none() {
                        doubt.synced_us = Some(event.from_us);
                    }
                }
                pages.retain(|key, write| !covered(key, write));
                // What is left of the file was written while this sync was under way.
                pages.iter_mut().filter(|(key, _)| key.0 == file).for_each(|(_, write)| {
                    write.overlapped |= write.from_us < event.to_us;
                });
            }
            _ => {}
        }
    }
    found.doubts.sort_by_key(|doubt| (doubt.checkpoint, doubt.page));
    found
}

fn is_data(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let extension = std::path::Path::new(name).extension();
    name.starts_with("ibdata") || name.starts_with("undo") || extension.is_some_and(|e| e == "ibd")
}

/// Eight bytes of a page's head, big-endian.
fn number(head: &[u8], at: usize) -> u64 {
    head.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
}

//! Commands for machines on which wearmark may not be installed or run as root: what they print or
//! write is read by `wearmark trace`.
//!
//! Only forms that the crate `formats` reads are named: the binary of `blktrace(8)`, and the text
//! of `blkparse(1)`, which a program for `bpftrace(8)` prints too (a line as `blkparse/mod.rs` of
//! that crate describes it). Tested by reading lines of that shape.

/// The commands, for a device and a time, as a shell script.
pub fn commands(device: &str, seconds: u64) -> String {
    let name = device.rsplit('/').next().unwrap_or(device);
    // A completion ends with its error, an issue with the name of the program; a flush has no
    // sector.
    let line = |action: &str, end: &str, last: &str| {
        format!(
            "printf(\"%d,%d %d 1 %d.%09d %d {action} %s %d + %d [{end}]\\n\", args->dev >> 20, \
             args->dev & 0xfffff, cpu, elapsed / 1000000000, elapsed % 1000000000, pid, \
             args->rwbs, args->nr_sector ? args->sector : 0, args->nr_sector, {last});"
        )
    };
    format!(
        "# The block layer of {device} for {seconds} s. One of these, as root; then, anywhere:\n\
         #   wearmark trace info {name}.blktrace.0      (or {name}.txt)\n\
         \n\
         # 1. blktrace: the least work, all of a request's steps\n\
         blktrace -d {device} -w {seconds} -o {name}\n\
         \n\
         # 2. bpftrace: the same lines as blkparse prints; of all disks\n\
         timeout -s INT {seconds} bpftrace -q -o {name}.txt -e '\n\
         tracepoint:block:block_rq_issue {{ {} }}\n\
         tracepoint:block:block_rq_complete {{ {} }}'\n\
         \n\
         # 'perf record' is not on the list: wearmark does not read what perf writes.\n",
        line("D", "%s", "comm"),
        line("C", "%d", "0"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_its_lines() {
        let text = commands("/dev/sda", 30);
        assert!(text.contains("blktrace -d /dev/sda -w 30 -o sda\n"), "{text}");
        assert!(text.contains("block_rq_issue") && text.contains("block_rq_complete"), "{text}");
    }
}

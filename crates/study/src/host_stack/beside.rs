//! What the model says that the device gets, beside what it really got.

use host::Asked;
use host::file_system::Cause;
use serde::Serialize;
use trace::{Op, Trace};

use super::real::Real;

const SECOND_NS: u64 = 1_000_000_000;

/// Requests to the device, content of files apart from what the file system adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Content of files.
    pub files: Asked,
    /// Journal, metadata, and all flushes.
    pub other: Asked,
}

/// Both sides, and how far apart they are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// Whether content of files is told from the rest; where not, `files` has both.
    pub is_attributed: bool,
    /// The model.
    pub modelled: Side,
    /// The kernel.
    pub real: Side,
    /// Share of the bytes written that the model writes in another second than the kernel, or
    /// that one of them does not write.
    pub written_elsewhen: f64,
    /// Requests that the capture of the device lost.
    pub lost: u64,
    /// How late calls were made, 99 of 100 less, us.
    pub late_p99_us: f64,
}

impl Beside {
    /// `modelled` as [`host::Stack`] leaves it, `real` as captured.
    pub fn new(modelled: &Trace, real: &Real) -> Self {
        Self {
            modelled: side(modelled, real.is_attributed),
            real: side(&real.trace, real.is_attributed),
            is_attributed: real.is_attributed,
            written_elsewhen: elsewhen(modelled, &real.trace),
            lost: real.lost,
            late_p99_us: real.late_p99_ns as f64 / 1e3,
        }
    }

    /// As rows of cells, the first one the header.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let mut rows =
            vec![["", "MODELLED", "REAL", "MODELLED / REAL"].map(str::to_owned).to_vec()];
        let mut row = |name: String, modelled: f64, real: f64, format: &dyn Fn(f64) -> String| {
            if modelled == 0.0 && real == 0.0 {
                return;
            }
            let ratio =
                if real == 0.0 { "-".to_owned() } else { format!("{:.3}", modelled / real) };
            rows.push(vec![name, format(modelled), format(real), ratio]);
        };
        let count = |value: f64| format!("{value}");
        let bytes = |value: f64| report::format::bytes(value);
        let sides = [
            (
                if self.is_attributed { "files" } else { "all" },
                &self.modelled.files,
                &self.real.files,
            ),
            ("file system", &self.modelled.other, &self.real.other),
        ];
        for (name, modelled, real) in sides {
            for (what, modelled, real) in
                [("reads", modelled.read, real.read), ("writes", modelled.write, real.write)]
            {
                let (own, its) = (modelled.requests as f64, real.requests as f64);
                row(format!("{name}: {what}"), own, its, &count);
                row(
                    format!("{name}: bytes of {what}"),
                    modelled.bytes as f64,
                    real.bytes as f64,
                    &bytes,
                );
                let mean = |bytes: u64, requests: f64| bytes as f64 / requests.max(1.0);
                let means = (mean(modelled.bytes, own), mean(real.bytes, its));
                row(format!("{name}: mean of {what}"), means.0, means.1, &bytes);
            }
        }
        let flushes = |side: &Side| side.other.flushes as f64;
        row("flushes".to_owned(), flushes(&self.modelled), flushes(&self.real), &count);
        let mut only = |name: &str, value: String| {
            rows.push(vec![name.to_owned(), String::new(), value, String::new()]);
        };
        only("written in another second", format!("{:.1} %", 100.0 * self.written_elsewhen));
        only("calls made late, p99", format!("{:.1} ms", self.late_p99_us / 1e3));
        rows
    }
}

fn side(trace: &Trace, is_attributed: bool) -> Side {
    let own = |name: &str| {
        let causes = [Cause::Data, Cause::ReadAhead, Cause::Fill];
        !is_attributed || causes.iter().any(|cause| cause.name() == name)
    };
    let of_files: Vec<bool> = trace.streams.iter().map(|stream| own(&stream.name)).collect();
    let mut side = Side::default();
    for request in trace.requests() {
        let (files, other) = (&mut side.files, &mut side.other);
        let part = if of_files[usize::from(request.stream)] { files } else { &mut *other };
        let traffic = match request.op {
            Op::Read => &mut part.read,
            Op::Write => &mut part.write,
            Op::Flush => {
                other.flushes += 1;
                continue;
            }
            Op::Trim => continue,
        };
        traffic.requests += 1;
        traffic.bytes += u64::from(request.len);
    }
    side
}

/// Half of the sum of what differs from second to second, over the larger sum of bytes written.
fn elsewhen(modelled: &Trace, real: &Trace) -> f64 {
    let by_second = |trace: &Trace| {
        let mut seconds: Vec<u64> = Vec::new();
        for request in trace.requests().filter(|request| request.op == Op::Write) {
            let second = (request.due.0 / SECOND_NS) as usize;
            if seconds.len() <= second {
                seconds.resize(second + 1, 0);
            }
            seconds[second] += u64::from(request.len);
        }
        seconds
    };
    let (own, its) = (by_second(modelled), by_second(real));
    let at = |seconds: &[u64], second: usize| seconds.get(second).copied().unwrap_or(0);
    let both = (0..own.len().max(its.len())).map(|second| at(&own, second).min(at(&its, second)));
    let most = own.iter().sum::<u64>().max(its.iter().sum());
    if most == 0 { 0.0 } else { 1.0 - both.sum::<u64>() as f64 / most as f64 }
}

#[cfg(test)]
mod tests {
    use trace::{Request, Stream};
    use units::{Bytes, Nanos};

    use super::*;

    fn writes(stream: &str, at: &[(u64, u32)]) -> Trace {
        let streams = vec![Stream { name: stream.to_owned() }];
        let mut trace = Trace { streams, ..Trace::default() };
        for &(second, len) in at {
            let due = Nanos(second * SECOND_NS);
            trace.push(Request { due, offset: Bytes(0), len, op: Op::Write, stream: 0 });
        }
        trace
    }

    #[test]
    fn what_is_written_in_another_second_counts_once() {
        let model = writes("data", &[(0, 100), (1, 100)]);
        assert_eq!(elsewhen(&model, &writes("data", &[(0, 100), (1, 100)])), 0.0);
        assert_eq!(elsewhen(&model, &writes("data", &[(0, 200)])), 0.5);
        assert_eq!(elsewhen(&model, &writes("data", &[(0, 100), (1, 300)])), 0.5);
        assert_eq!(elsewhen(&model, &writes("data", &[(5, 200)])), 1.0);
    }

    #[test]
    fn streams_of_files_are_told_from_those_of_the_file_system() {
        let trace = writes("data", &[(0, 8)]);
        let mut real = Real { trace, is_attributed: true, lost: 3, late_p99_ns: 5000 };
        let beside = Beside::new(&writes("journal", &[(0, 8)]), &real);
        assert_eq!(beside.modelled.other.write, beside.real.files.write);
        assert_eq!(beside.real.files.write.bytes, 8);
        assert_eq!((beside.lost, beside.late_p99_us), (3, 5.0));
        let rows = beside.rows();
        assert_eq!(rows[1].join(" "), "files: writes 0 1 0.000");
        assert_eq!(rows[rows.len() - 2][2], "0.0 %");
        real.is_attributed = false;
        let beside = Beside::new(&writes("journal", &[(0, 8)]), &real);
        assert_eq!(beside.modelled.files.write, beside.real.files.write);
        assert_eq!(beside.rows()[1].join(" "), "all: writes 1 1 1.000");
    }
}

//! The formats by name.

use serde::{Deserialize, Serialize};

macro_rules! formats {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $title:literal;)*) => {
        /// A format that [`read`](crate::read) knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[doc = $doc])* #[serde(rename = $name)] $variant,)*
        }

        impl Format {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name that `--format` takes, also used in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The name for people.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

formats! {
    /// wearmark's own: Parquet.
    Own = "own", "wearmark Parquet";
    /// Storage Performance Council text, as the UMass repository has it.
    Spc = "spc", "SPC text";
    /// Microsoft Research Cambridge CSV.
    Msr = "msr", "MSR Cambridge CSV";
    /// Alibaba block traces of 2020, CSV.
    Alibaba = "alibaba", "Alibaba CSV";
    /// Tencent Cloud Block Storage CSV.
    Tencent = "tencent", "Tencent CBS CSV";
    /// SYSTOR '17 (LUN traces of Fujitsu) CSV.
    Systor17 = "systor17", "SYSTOR'17 CSV";
    /// DiskSim's default input.
    Disksim = "disksim", "DiskSim ascii";
    /// DiskSim's validation traces, with measured service times.
    DisksimValidate = "disksim-validate", "DiskSim validate";
    /// SSDsim's input, times in ns.
    Ssdsim = "ssdsim", "SSDsim ascii";
    /// MQSim's input, the same fields as SSDsim's.
    Mqsim = "mqsim", "MQSim ascii";
    /// What the kernel's block tracer writes, binary.
    Blktrace = "blktrace", "blktrace binary";
    /// The default text of blkparse.
    Blkparse = "blkparse", "blkparse text";
    /// fio's iolog, version 2 or 3.
    FioIolog = "fio-iolog", "fio iolog";
    /// CloudPhysics, binary.
    Vscsi = "vscsi", "CloudPhysics vscsi binary";
    /// CloudPhysics as CSV.
    VscsiCsv = "vscsi-csv", "CloudPhysics CSV";
    /// libCacheSim's oracleGeneral, binary.
    OracleGeneral = "oracle-general", "oracleGeneral binary";
    /// Events in the plain list of WiscSee.
    Wiscsee = "wiscsee", "WiscSee event list";
    /// hfplayer's CSV, with measured latencies.
    Hfplayer = "hfplayer", "hfplayer CSV";
    /// Hewlett-Packard's SRT, binary, with service times.
    HpSrt = "hp-srt", "HP SRT binary";
    /// Text whose columns the user or a header line names.
    Columns = "columns", "text in columns";
    /// Block I/O as bcc's biosnoop prints it.
    Biosnoop = "biosnoop", "biosnoop text";
    /// Tracepoints of the block layer, from perf script or trace_pipe.
    Tracepoints = "tracepoints", "block tracepoints (perf script, trace_pipe)";
    /// Disk events of Windows as xperf prints them.
    Etw = "etw", "ETW/xperf text";
    /// VMware's vscsiStats command trace, CSV.
    VscsiStats = "vscsi-stats", "vscsiStats CSV";
    /// Traces of FIU's I/O deduplication.
    Iodedup = "iodedup", "FIU iodedup text";
    /// Logs of Sysinternals DiskMon.
    Diskmon = "diskmon", "DiskMon log";
    /// Loads of blkreplay.
    Blkreplay = "blkreplay", "blkreplay load";
    /// fio's latency log with offsets.
    FioLatency = "fio-latency", "fio latency log";
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|format| format.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|format| format.name()).collect();
            format!("'{text}' is none of the formats {}", names.join(", "))
        })
    }
}

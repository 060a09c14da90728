//! The formats: one entry each. Adding a format is one file and one line here.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trace::Trace;

use super::decode::{Decoder, LineFormat, Times};
use super::{
    Notes, ReadOptions, alibaba, blkparse, blktrace, disksim, disksim_validate, fio_iolog,
    fio_latency, hfplayer, hp_srt, msr, oracle_general, own, spc, ssdsim, systor17, tencent, vscsi,
    vscsi_csv, wiscsee,
};
use crate::Result;

macro_rules! formats {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $title:literal;)*) => {
        /// A format that [`read`](super::read) knows.
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
    /// fio's latency log with offsets.
    FioLatency = "fio-latency", "fio latency log";
}

/// How a format is read.
pub(super) enum Reader {
    /// By itself, from a file that it can seek in.
    File(fn(&Path, &ReadOptions, &mut Notes) -> Result<Trace>),
    /// Line by line, in parallel where that helps.
    Lines(fn(&ReadOptions) -> Box<dyn LineFormat>),
    /// In order.
    Stream(fn(&ReadOptions) -> Box<dyn Decoder>),
}

/// The start of an input, for detection.
pub(super) struct Start<'a> {
    /// Its first bytes, decompressed.
    pub bytes: &'a [u8],
    /// The first lines that are not blank, without newlines; the last may be cut where `bytes` end.
    pub lines: Vec<&'a [u8]>,
    /// How the input is going to be read.
    pub options: &'a ReadOptions,
}

/// How well an input fits a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guess {
    /// 100 for a magic number or a header line that nothing else has; 50 and more for lines that all
    /// fit and are plausible; less where something speaks against it.
    pub score: u8,
    /// What says so, a few words.
    pub evidence: String,
}

/// Finds the files of a trace of which one is named.
pub(super) type Parts = fn(&Path) -> std::io::Result<Vec<PathBuf>>;

/// All there is to know about a format.
pub(super) struct Entry {
    pub format: Format,
    /// How well an input fits; `None` where it cannot be this.
    pub guess: fn(&Start<'_>) -> Option<Guess>,
    pub reader: Reader,
    pub times: Times,
    /// Whether rows have service times.
    pub has_service: bool,
    /// Put in front of a stream's number.
    pub stream_prefix: &'static str,
    /// What a line or record looks like; starts a hint.
    pub grammar: &'static str,
    /// All files of a trace of which one is named, in order: one per CPU for blktrace.
    pub parts: Option<Parts>,
}

/// The formats that this build reads.
pub(super) static TABLE: &[&Entry] = &[
    &OWN,
    &spc::ENTRY,
    &msr::ENTRY,
    &alibaba::ENTRY,
    &tencent::ENTRY,
    &systor17::ENTRY,
    &vscsi_csv::ENTRY,
    &disksim::ENTRY,
    &ssdsim::ENTRY,
    &ssdsim::MQSIM,
    &blktrace::ENTRY,
    &blkparse::ENTRY,
    &disksim_validate::ENTRY,
    &fio_iolog::ENTRY,
    &fio_latency::ENTRY,
    &hfplayer::ENTRY,
    &hp_srt::ENTRY,
    &oracle_general::ENTRY,
    &vscsi::ENTRY,
    &wiscsee::ENTRY,
];

static OWN: Entry = Entry {
    format: Format::Own,
    guess: |start| {
        let evidence = "starts with the Parquet mark PAR1".to_owned();
        start.bytes.starts_with(own::PARQUET_MARK).then_some(Guess { score: 100, evidence })
    },
    reader: Reader::File(own::read_noting),
    times: Times::Relative,
    has_service: true,
    stream_prefix: "",
    grammar: "",
    parts: None,
};

/// The entry of a format.
pub(super) fn entry(format: Format) -> Option<&'static Entry> {
    TABLE.iter().copied().find(|entry| entry.format == format)
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Self::ALL.iter().copied().find(|format| format.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|format| format.name()).collect();
            format!("'{text}' is none of the formats {}", names.join(", "))
        })
    }
}

//! The formats: one entry each. Adding a format is one file and one line here.

use super::decode::Times;
use super::entry::{Entry, Guess, Reader};
use super::format::Format;
use super::{
    alibaba, blkparse, blktrace, columns, disksim, disksim_validate, fio_iolog, fio_latency,
    hfplayer, hp_srt, msr, oracle_general, own, spc, ssdsim, systor17, tencent, tracepoints, vscsi,
    vscsi_csv, wiscsee,
};

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
    &columns::ENTRY,
    &columns::BIOSNOOP,
    &columns::ETW,
    &columns::VSCSI_STATS,
    &columns::IODEDUP,
    &columns::DISKMON,
    &columns::BLKREPLAY,
    &tracepoints::ENTRY,
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

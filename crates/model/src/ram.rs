//! A DRAM SSD: memory behind a controller and an interface.
//!
//! Every request spends a fixed time in one of `ports` controllers and then crosses the one
//! interface at its bandwidth; memory itself is never the limit. That is the device of Oi, "A
//! performance study of a DRAM SSD under OLTP" (2007): a PCI card with 16 GB. Reads, writes and
//! addresses do not matter; a flush costs the controller time, since nothing is volatile that a
//! flush could move (such devices carry a battery).
//!
//! Invariants: those of the crate; throughput never exceeds the interface, and with one port never
//! `1 / (latency + size / bandwidth)`.

use profile::ram::RamParameters;
use trace::{Op, Request};
use units::Bytes;

use crate::device::submit_by_serving;
use crate::observe::{Activity, Cause, Span, Track, TrackKind, Watch};
use crate::slots::Slots;
use crate::snapshot::{SnapshotReader, SnapshotWriter, fingerprint};
use crate::{Counter, Device, SnapshotError};

/// The model of a DRAM SSD.
#[derive(Clone, Debug)]
pub struct Ram {
    latency_ns: u64,
    ns_per_byte: f64,
    ports: Slots,
    interface_free_at: u64,
    capacity: Option<Bytes>,
    requests: u64,
    bytes: u64,
    /// Of the parameters.
    fingerprint: u64,
}

impl Ram {
    /// The device of `parameters` with nothing outstanding.
    pub fn new(parameters: &RamParameters) -> Self {
        Self {
            latency_ns: parameters.latency_ns as u64,
            ns_per_byte: 1e9 / parameters.bytes_per_s,
            ports: Slots::new(parameters.ports as usize),
            interface_free_at: 0,
            capacity: parameters.capacity,
            requests: 0,
            bytes: 0,
            fingerprint: fingerprint(parameters),
        }
    }
}

impl Ram {
    #[inline]
    fn serve<W: Watch>(&mut self, now: u64, request: &Request, watch: &mut W) -> u64 {
        let (port, start) = self.ports.start(now);
        let ready = start + self.latency_ns;
        watch.spend(Cause::Queue, start - now);
        watch.spend(Cause::Controller, self.latency_ns);
        let moves_data = matches!(request.op, Op::Read | Op::Write);
        let completion = if moves_data {
            let transfer = (f64::from(request.len) * self.ns_per_byte) as u64;
            let admitted = self.interface_free_at.max(ready);
            self.interface_free_at = admitted + transfer;
            self.bytes += u64::from(request.len);
            watch.spend(Cause::SharedWait, admitted - ready);
            watch.spend(Cause::Transfer, transfer);
            let interface = Track::new(TrackKind::Interface, 0);
            let end = self.interface_free_at;
            watch.span(Span::new(interface, Activity::Transfer, admitted, end));
            self.interface_free_at
        } else {
            ready
        };
        self.ports.occupy(port, completion);
        watch.span(Span::new(Track::server(port as u32), request.op.into(), start, completion));
        self.requests += 1;
        completion
    }
}

impl Device for Ram {
    submit_by_serving!();

    fn snapshot(&self) -> Option<Vec<u8>> {
        let mut to = SnapshotWriter::new("ram", self.fingerprint);
        self.ports.save(&mut to);
        to.u64s(&[self.interface_free_at, self.requests, self.bytes]);
        Some(to.finish())
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let mut from = SnapshotReader::new(bytes, "ram", self.fingerprint)?;
        self.ports.load(&mut from)?;
        [self.interface_free_at, self.requests, self.bytes] = from.array()?;
        from.finish()
    }

    fn capacity(&self) -> Option<Bytes> {
        self.capacity
    }

    fn counters(&self) -> Vec<Counter> {
        vec![
            Counter { name: "device_requests", value: self.requests },
            Counter { name: "device_bytes", value: self.bytes },
        ]
    }
}

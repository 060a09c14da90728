//! Observing flash changes nothing and accounts for all time; every request completes under
//! cleaning, in every mode.

use std::collections::BTreeMap;

use model::Device;
use model::flash::reference::{Load, configuration_a};
use model::observe::{Cause, Probe, Purpose, Span, Track, TrackKind};
use profile::flash::{AllocationScheme, FlashParameters, GcMode, Order, Translation};

use super::support::device;

#[derive(Default)]
struct Spans(BTreeMap<Track, Vec<(u64, u64)>>);

impl Probe for Spans {
    fn span(&mut self, span: &Span) {
        self.0.entry(span.track).or_default().push((span.start_ns, span.end_ns));
    }
}

fn parameters(mode: GcMode, copy_back: bool) -> FlashParameters {
    let mut parameters = configuration_a();
    let geometry = &mut parameters.geometry;
    (geometry.channels, geometry.blocks_per_plane, geometry.pages_per_block) = (2, 64, 32);
    parameters.logical_pages = FlashParameters::logical_pages_at(geometry, 0.25);
    parameters.gc.mode = mode;
    parameters.gc.low_blocks = 4;
    parameters.gc.copy_back = copy_back;
    parameters
}

const MODES: [GcMode; 3] = [
    GcMode::Foreground,
    GcMode::Incremental { pages_per_write: 6 },
    GcMode::Idle { after_ns: 100_000, until_blocks: 6 },
];

#[test]
fn observation_accounts_for_all_time() {
    for mode in MODES {
        let parameters = parameters(mode, false);
        let (mut plain, mut observed) = (device(&parameters), device(&parameters));
        for device in [&mut plain, &mut observed] {
            device.precondition(1.0, true, 5);
        }
        let trace = Load::on(&parameters, 20_000, 4e2, 0.5).uniform(0);
        let mut spans = Spans::default();
        let mut cleaning_ns = 0;
        for request in trace.requests() {
            let expected = plain.submit(request.due, &request);
            let (found, path) = observed.submit_observed(request.due, &request, &mut spans);
            assert_eq!(found, expected, "{mode:?}");
            assert_eq!(path.total(), found.0 - request.due.0, "{mode:?}: {path:?}");
            assert_eq!(path.get(Cause::Unknown), 0);
            cleaning_ns += path.get(Cause::Gc);
        }
        assert!(cleaning_ns > 0, "{mode:?}: no request waited for cleaning");
        for (track, spans) in &mut spans.0 {
            spans.sort_unstable();
            let overlap = spans.windows(2).find(|pair| pair[0].1 > pair[1].0);
            assert_eq!(overlap, None, "{mode:?}: {track:?}");
        }
        let counts = plain.counts();
        assert_eq!(counts.host_pages + counts.read_pages, 20_000, "requests in = requests out");
        plain.audit();
    }
}

/// Mean response and amplification of a slow load.
fn run(mode: GcMode, copy_back: bool) -> (f64, f64) {
    let parameters = parameters(mode, copy_back);
    let mut device = device(&parameters);
    device.precondition(1.0, true, 5);
    let trace = Load::on(&parameters, 40_000, 2e2, 0.5).uniform(0);
    let mean_us = super::support::mean_us(device.as_mut(), &trace);
    device.audit();
    (mean_us, device.counts().write_amplification())
}

#[test]
fn modes_of_cleaning_trade_waits_for_copies() {
    let [foreground, incremental, idle] = MODES.map(|mode| run(mode, false));
    println!("{foreground:?} {incremental:?} {idle:?}");
    assert!(incremental.0 < foreground.0, "small steps are waited for less");
    assert!(idle.0 < foreground.0, "idle time hides cleaning");
    assert!(idle.1 >= foreground.1 * 0.99, "more free blocks are less room");
    let copy_back = run(GcMode::Foreground, true);
    assert!(copy_back.0 < foreground.0, "copies without the channel are shorter");
    assert_eq!(copy_back.1, foreground.1, "and as many");
}

/// Merges keep dies at work: as long as their copies and erases take.
#[test]
fn merges_are_seen() {
    for translation in [
        Translation::Bast { width: 1, logs: 4 },
        Translation::Fast { width: 4, logs: 4 },
        Translation::Block { width: 1, open: 3 },
    ] {
        let mut parameters = parameters(GcMode::Foreground, false);
        parameters.translation = translation;
        parameters.allocation = AllocationScheme::Static(Order::CWDP);
        let mut device = device(&parameters);
        let trace = Load::on(&parameters, 4_000, 1e2, 0.0).uniform(0);
        let (mut cleaned, mut merges, mut waited_ns) = (0, Merges::default(), 0);
        for request in trace.requests() {
            let (_, path) = device.submit_observed(request.due, &request, &mut merges);
            waited_ns += path.get(Cause::Gc);
        }
        let counts = device.counts();
        // Within a plane: 50 us to read, 500 us to program, and over the bus both ways.
        let bus_ns: f64 = 2.0 * 4096.0 / 333e6 * 1e9;
        cleaned += counts.moved_pages * (550_000 + bus_ns.round() as u64);
        cleaned += counts.erased_blocks * 3_500_000;
        assert!(counts.moved_pages > 1_000 && waited_ns > 0, "{translation:?}: {counts:?}");
        if translation == (Translation::Bast { width: 1, logs: 4 }) {
            let error = merges.die_ns as f64 / cleaned as f64 - 1.0;
            assert!(error.abs() < 1e-6, "{} {cleaned}", merges.die_ns);
        }
        assert!(merges.die_ns > cleaned / 2, "{translation:?}: {} {cleaned}", merges.die_ns);
    }
}

/// How long dies worked on merges.
#[derive(Default)]
struct Merges {
    die_ns: u64,
}

impl Probe for Merges {
    fn span(&mut self, span: &Span) {
        if span.purpose == Purpose::Gc && span.track.kind == TrackKind::Die {
            self.die_ns += span.end_ns - span.start_ns;
        }
    }
}

//! Watching a device changes nothing, accounts for all time, and shows no resource at two things at
//! once, whatever the device is.

use std::collections::BTreeMap;

use model::Device;
use model::observe::{Cause, Path, Probe, Span, Track};
use proptest::prelude::*;
use trace::Trace;

use crate::kinds::{aged, kinds, rows};

/// Keeps every span.
#[derive(Default)]
struct Spans(BTreeMap<Track, Vec<Span>>);

impl Probe for Spans {
    fn span(&mut self, span: &Span) {
        self.0.entry(span.track).or_default().push(*span);
    }
}

fn watch(device: &mut dyn Device, trace: &Trace, batch: usize) -> (Vec<u64>, Vec<Path>, Spans) {
    let count = trace.count();
    let (mut completions, mut paths) = (vec![0; count], vec![Path::default(); count]);
    let mut spans = Spans::default();
    for start in (0..count).step_by(batch) {
        let range = start..count.min(start + batch);
        let (completions, paths) = (&mut completions[range.clone()], &mut paths[range.clone()]);
        device.submit_due_observed(trace, range, completions, paths, &mut spans);
    }
    (completions, paths, spans)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn all_time_is_accounted_for(rows in rows(160), batch in 1usize..50) {
        let trace = aged(&rows);
        for (name, make) in kinds() {
            let (mut plain, mut watched) = (make(), make());
            let mut expected = vec![0; trace.count()];
            plain.submit_due(&trace, 0..trace.count(), &mut expected);
            let (found, paths, mut spans) = watch(watched.as_mut(), &trace, batch);
            prop_assert_eq!(&found, &expected, "{}", &name);
            prop_assert_eq!(watched.counters(), plain.counters(), "{}", &name);
            prop_assert_eq!(watched.snapshot(), plain.snapshot(), "{}", &name);
            for ((path, at), due) in paths.iter().zip(&found).zip(&trace.due) {
                prop_assert_eq!(path.total(), at - due, "{}: {:?}", &name, path);
                prop_assert_eq!(path.get(Cause::Unknown), 0, "{} tells all", &name);
            }
            for (track, spans) in &mut spans.0 {
                spans.sort_by_key(|span| span.start_ns);
                let overlap = spans.windows(2).find(|pair| pair[0].end_ns > pair[1].start_ns);
                prop_assert_eq!(overlap, None, "{}: {:?}", &name, track);
            }
        }
    }
}

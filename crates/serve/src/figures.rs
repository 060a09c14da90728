//! Events of a run added up as metrics.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use events::{Completed, Ending, Event};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// Upper bounds of the buckets of a histogram, ns: two per octave from 1 us to 137 s. A request of
/// exactly that time is in the next one, since times are whole nanoseconds.
fn bounds_ns() -> impl Iterator<Item = u64> {
    (10..37).flat_map(|bit| [1 << bit, 3 << (bit - 1)]).chain([1 << 37])
}

/// Number of [`bounds_ns`].
const BOUNDS: usize = 55;

/// Pairs of a label's name and its value.
type Labels = Vec<(&'static str, String)>;

/// Response times of one class since the start.
#[derive(Debug)]
struct Times {
    requests: u64,
    sum_ns: u64,
    /// By [`bounds_ns`], then what took longer.
    buckets: Vec<u64>,
}

impl Default for Times {
    fn default() -> Self {
        Self { requests: 0, sum_ns: 0, buckets: vec![0; BOUNDS + 1] }
    }
}

impl Times {
    fn add(&mut self, completed: &Completed) {
        self.requests += completed.requests;
        self.sum_ns += completed.sum_ns;
        for (lower_ns, requests) in &completed.buckets {
            // The stream's buckets are finer and share these bounds: each lies within one of ours.
            let at = bounds_ns().position(|bound| *lower_ns < bound).unwrap_or(BOUNDS);
            self.buckets[at] += requests;
        }
    }
}

/// What a run has told so far.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    times: BTreeMap<Labels, Times>,
    in_flight: BTreeMap<Labels, u64>,
    progress: BTreeMap<Labels, f64>,
    remaining_s: BTreeMap<Labels, f64>,
    samples: BTreeMap<Labels, f64>,
    warnings: BTreeMap<Labels, u64>,
    ended: BTreeMap<Labels, u64>,
}

impl Figures {
    /// Adds an event.
    pub fn take(&mut self, event: &Event) {
        let of = |stage: &String| vec![("stage", stage.clone())];
        match event {
            Event::Progress { stage, done, eta_s, .. } => {
                self.progress.insert(of(stage), *done);
                if let Some(eta_s) = eta_s {
                    self.remaining_s.insert(of(stage), *eta_s);
                }
            }
            Event::Sample { stage, series, value, .. } => {
                let labels = vec![("stage", stage.clone()), ("series", series.clone())];
                self.samples.insert(labels, *value);
            }
            Event::Completions { stage, device, in_flight, classes, .. } => {
                let mut labels = of(stage);
                labels.extend(device.iter().map(|device| ("device", device.clone())));
                for completed in classes {
                    let mut labels = labels.clone();
                    labels.push(("class", completed.class.clone()));
                    self.times.entry(labels).or_default().add(completed);
                }
                self.in_flight.insert(labels, *in_flight);
            }
            Event::Warning(warning) => {
                let labels = vec![("stage", warning.stage.clone()), ("code", warning.code.clone())];
                *self.warnings.entry(labels).or_default() += 1;
            }
            Event::Done { stage, ending, .. } => {
                let ending = match ending {
                    Ending::Complete => "complete",
                    Ending::Interrupted => "interrupted",
                    Ending::Failed => "failed",
                };
                let labels = vec![("stage", stage.clone()), ("ending", ending.to_owned())];
                *self.ended.entry(labels).or_default() += 1;
                self.remaining_s.insert(of(stage), 0.0);
                self.in_flight.retain(|labels, _| !labels.contains(&("stage", stage.clone())));
            }
            _ => {}
        }
    }

    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        let help = "The program that offers these figures.";
        encoder.encode_descriptor("build", help, None, MetricType::Info)?.encode_info(&version)?;
        let help = "Requests completed, by class.";
        let mut family = encoder.encode_descriptor("requests", help, None, MetricType::Counter)?;
        for (labels, times) in &self.times {
            let mut metric = family.encode_family(labels)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&times.requests, None)?;
        }
        let (help, unit) = ("Response times of completed requests.", Some(&Unit::Seconds));
        let kind = MetricType::Histogram;
        let mut family = encoder.encode_descriptor("response", help, unit, kind)?;
        for (labels, times) in &self.times {
            let bounds = bounds_ns().map(|ns| ns as f64 / 1e9).chain([f64::MAX]);
            let buckets: Vec<_> = bounds.zip(times.buckets.iter().copied()).collect();
            let sum_s = times.sum_ns as f64 / 1e9;
            let mut metric = family.encode_family(labels)?;
            metric.encode_histogram::<NoLabelSet>(sum_s, times.requests, &buckets, None)?;
        }
        let help = "Requests that wait or are worked at.";
        let mut family =
            encoder.encode_descriptor("requests_in_flight", help, None, MetricType::Gauge)?;
        for (labels, count) in &self.in_flight {
            family.encode_family(labels)?.encode_gauge(count)?;
        }
        let ratio = Unit::Other("ratio".to_owned());
        let help = ("progress", "Share of a stage that is done.");
        gauges(encoder, help, Some(&ratio), &self.progress)?;
        let help = ("remaining", "Expected time to the end of a stage.");
        gauges(encoder, help, Some(&Unit::Seconds), &self.remaining_s)?;
        let help = ("sample", "Last value of a series, whose name ends with its unit.");
        gauges(encoder, help, None, &self.samples)?;
        counters(encoder, ("warnings", "Warnings told."), &self.warnings)?;
        counters(encoder, ("stages", "Stages that ended, by how."), &self.ended)
    }
}

fn gauges(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    unit: Option<&Unit>,
    values: &BTreeMap<Labels, f64>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (labels, value) in values {
        family.encode_family(labels)?.encode_gauge(value)?;
    }
    Ok(())
}

fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    values: &BTreeMap<Labels, u64>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in values {
        let mut metric = family.encode_family(labels)?;
        metric.encode_counter::<NoLabelSet, _, u64>(value, None)?;
    }
    Ok(())
}

/// Figures that are written while they change.
#[derive(Debug)]
pub(crate) struct Shared(pub Arc<Mutex<Figures>>);

impl Collector for Shared {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.lock().expect("no panic under the lock").encode(&mut encoder)
    }
}

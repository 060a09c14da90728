//! What devices did, for the Perfetto UI (ui.perfetto.dev) and anything else that reads the Trace
//! Event Format of Chrome.
//!
//! A [`Timeline`] collects one device's spans and requests within a window of virtual time, up to a
//! limit; [`fn@write`] lays several devices out as processes and their resources as threads.
//! Requests overlap, so they are asynchronous events with their path as arguments; how many are
//! outstanding is a counter. Times are microseconds with three decimals: exact.
//!
//! Invariants: tracks do one thing at a time (the models' promise); what does not fit the limit is
//! counted, never silently left out. Tested by reading the file back.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use model::observe::{Cause, Path, Probe, Purpose, Span, Track};
use trace::{Request, Trace};

/// What one device did in a window of virtual time.
#[derive(Clone, Debug)]
pub struct Timeline {
    window_ns: Range<u64>,
    most_events: usize,
    at_request: usize,
    spans: Vec<(Span, usize)>,
    requests: Vec<Served>,
    left_out: u64,
}

/// One request and where its time went.
#[derive(Clone, Copy, Debug)]
struct Served {
    index: usize,
    due_ns: u64,
    completion_ns: u64,
    path: Path,
}

impl Timeline {
    /// What overlaps `window_ns`, at most `most_events` spans and requests.
    pub fn new(window_ns: Range<u64>, most_events: usize) -> Self {
        Self {
            window_ns,
            most_events,
            at_request: 0,
            spans: Vec::new(),
            requests: Vec::new(),
            left_out: 0,
        }
    }

    /// Spans and requests of the window that did not fit the limit.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The spans kept, each with the index of the request that it belongs to or whose arrival
    /// caused it.
    pub fn spans(&self) -> &[(Span, usize)] {
        &self.spans
    }

    /// Whether something from `start_ns` to `end_ns` is to be kept.
    fn wants(&mut self, start_ns: u64, end_ns: u64) -> bool {
        if end_ns <= self.window_ns.start || start_ns >= self.window_ns.end {
            return false;
        }
        let fits = self.spans.len() + self.requests.len() < self.most_events;
        self.left_out += u64::from(!fits);
        fits
    }

    /// How many requests are outstanding from when on.
    fn outstanding(&self) -> Vec<(u64, i64)> {
        let arrivals = self.requests.iter().map(|served| (served.due_ns, 1));
        let departures = self.requests.iter().map(|served| (served.completion_ns, -1));
        let mut steps: Vec<(u64, i64)> = arrivals.chain(departures).collect();
        steps.sort_unstable();
        let mut count = 0;
        for step in &mut steps {
            count += step.1;
            step.1 = count;
        }
        // Of several at one time the last counts.
        steps.reverse();
        steps.dedup_by_key(|step| step.0);
        steps.reverse();
        steps
    }
}

impl Probe for Timeline {
    fn request(&mut self, index: usize) {
        self.at_request = index;
    }

    fn span(&mut self, span: &Span) {
        if self.wants(span.start_ns, span.end_ns) {
            self.spans.push((*span, self.at_request));
        }
    }

    fn completed(&mut self, index: usize, request: &Request, completion_ns: u64, path: &Path) {
        let due_ns = request.due.0;
        if self.wants(due_ns, completion_ns) {
            self.requests.push(Served { index, due_ns, completion_ns, path: *path });
        }
    }
}

/// Gives `take` the text of the timelines of `devices`, piece by piece. `trace` is what they
/// served.
pub fn write(devices: &[(&str, &Timeline)], trace: &Trace, take: &mut dyn FnMut(&str)) {
    take("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    let mut lines = Lines { take, text: String::new(), is_first: true };
    for (number, (name, timeline)) in devices.iter().enumerate() {
        device(&mut lines, number + 1, name, timeline, trace);
    }
    take("\n]}\n");
}

/// Events, one on a line, with commas between them.
struct Lines<'a> {
    take: &'a mut dyn FnMut(&str),
    text: String,
    is_first: bool,
}

impl Lines<'_> {
    fn event(&mut self, event: std::fmt::Arguments<'_>) {
        self.text.clear();
        self.text.push_str(if self.is_first { "" } else { ",\n" });
        self.is_first = false;
        self.text.write_fmt(event).expect("a string takes everything");
        (self.take)(&self.text);
    }
}

fn device(lines: &mut Lines<'_>, pid: usize, name: &str, timeline: &Timeline, trace: &Trace) {
    let name = Escaped(name);
    lines.event(format_args!(
        r#"{{"ph":"M","pid":{pid},"name":"process_name","args":{{"name":"{name}"}}}}"#
    ));
    let tracks: BTreeSet<Track> = timeline.spans.iter().map(|(span, _)| span.track).collect();
    for track in &tracks {
        let (tid, kind, index) = (thread(*track), track.kind.name(), track.index);
        lines.event(format_args!(
            r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"thread_name","args":{}}}"#,
            format_args!(r#"{{"name":"{kind} {index}"}}"#)
        ));
        lines.event(format_args!(
            r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"thread_sort_index","args":{}}}"#,
            format_args!(r#"{{"sort_index":{tid}}}"#)
        ));
    }
    for (at_ns, count) in timeline.outstanding() {
        let at = Micros(at_ns);
        lines.event(format_args!(
            r#"{{"ph":"C","pid":{pid},"name":"outstanding","ts":{at},"args":{}}}"#,
            format_args!(r#"{{"requests":{count}}}"#)
        ));
    }
    for served in &timeline.requests {
        request(lines, pid, served, trace);
    }
    let mut spans: Vec<&(Span, usize)> = timeline.spans.iter().collect();
    spans.sort_by_key(|(span, _)| (span.track, span.start_ns));
    for (span, request) in spans {
        let (tid, activity) = (thread(span.track), span.activity.name());
        let (at, length) = (Micros(span.start_ns), Micros(span.end_ns - span.start_ns));
        let purpose = span.purpose.name();
        let of = if span.purpose == Purpose::Request { "" } else { purpose };
        let gap = if of.is_empty() { "" } else { " " };
        lines.event(format_args!(
            r#"{{"ph":"X","pid":{pid},"tid":{tid},"name":"{of}{gap}{activity}",{}}}"#,
            format_args!(
                r#""cat":"{purpose}","ts":{at},"dur":{length},"args":{{"request":{request}}}"#
            )
        ));
    }
}

/// A request as an asynchronous event.
fn request(lines: &mut Lines<'_>, pid: usize, served: &Served, trace: &Trace) {
    let (id, request) = (served.index, trace.request(served.index));
    let stream = trace.streams.get(usize::from(request.stream));
    let stream = Escaped(stream.map_or("", |stream| stream.name.as_str()));
    let op = request.op.name();
    let (from, to) = (Micros(served.due_ns), Micros(served.completion_ns));
    let mut path = String::new();
    for cause in Cause::ALL {
        if served.path.get(cause) > 0 {
            let time = Micros(served.path.get(cause));
            write!(path, r#","{}_us":{time}"#, cause.name()).expect("a string takes everything");
        }
    }
    let (offset, len) = (request.offset.0, request.len);
    lines.event(format_args!(
        r#"{{"ph":"b","pid":{pid},"cat":"request","id":{id},"name":"{op} {stream}",{}}}"#,
        format_args!(r#""ts":{from},"args":{{"offset":{offset},"bytes":{len}{path}}}"#)
    ));
    lines.event(format_args!(
        r#"{{"ph":"e","pid":{pid},"cat":"request","id":{id},"name":"{op} {stream}","ts":{to}}}"#
    ));
}

/// A number for each track, in the order of the kinds. Readers keep 32 bits of it.
fn thread(track: Track) -> u64 {
    const MOST: u64 = 1_000_000;
    (track.kind as u64 + 1) * MOST + u64::from(track.index) % MOST
}

/// Nanoseconds as microseconds.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Text inside a JSON string.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '"' | '\\' => write!(f, "\\{c}"),
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c)),
            c => f.write_char(c),
        })
    }
}

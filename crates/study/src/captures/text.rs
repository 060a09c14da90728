//! A capture as tables and sentences for the terminal.

use capture::server::Row;
use report::format;

use super::{Capture, Ending};

/// Pieces of text in their order: tables as rows of cells, and lines between them.
pub enum Piece {
    /// Rows, the first one the header.
    Table(Vec<Vec<String>>),
    /// A line.
    Line(String),
}

/// The whole capture.
pub fn text(capture: &Capture) -> Vec<Piece> {
    let mut found = vec![Piece::Line(format!("{}: {}", capture.captured, lasted(capture)))];
    if !capture.calls.is_empty() {
        found.push(Piece::Table(io(&capture.calls, "CALLS ON")));
    }
    for (disk, rows) in &capture.disks {
        found.push(Piece::Table(io(rows, &format!("DISK {disk}"))));
    }
    if !capture.roles.is_empty() {
        found.push(Piece::Table(roles(capture)));
    }
    found.extend(requests(capture).into_iter().map(Piece::Line));
    for file in &capture.files {
        let state = match &file.missing {
            None => file.holds.clone(),
            Some(why) => format!("NOT WRITTEN: {why}"),
        };
        found.push(Piece::Line(format!("{}: {state}", file.name)));
    }
    found
}

fn lasted(capture: &Capture) -> String {
    let seconds = capture.seconds;
    match capture.ending {
        Ending::Unfinished => "not finished".to_owned(),
        Ending::Complete => format!("captured for {seconds:.1} s"),
        Ending::Interrupted => format!("stopped after {seconds:.1} s"),
        Ending::ServerEnded => format!("it ended after {seconds:.1} s"),
        Ending::Full => format!("memory was full after {seconds:.1} s"),
    }
}

fn io(rows: &[Row], what: &str) -> Vec<Vec<String>> {
    let header =
        [what, "OPERATION", "PER SECOND", "MEAN SIZE", "BYTES/S", "P50", "P99", "LONGEST", "BY"];
    let mut found = vec![header.map(str::to_owned).to_vec()];
    for row in rows {
        let mean = row.bytes as f64 / row.requests.max(1) as f64;
        let [p50, _, p99, max] = row.service_ns.map(|ns| format::duration_ns(ns as f64));
        let by = row.by.iter().filter(|(_, share)| *share >= 0.005).take(3);
        let by = by.map(|(role, share)| format!("{role} {}", format::percent(*share)));
        found.push(vec![
            row.class.clone(),
            row.op.clone(),
            format::count(row.per_s),
            if row.bytes > 0 { format::bytes(mean) } else { String::new() },
            if row.bytes > 0 { format::bytes_per_s(row.bytes_per_s) } else { String::new() },
            p50,
            p99,
            max,
            by.collect::<Vec<String>>().join(", "),
        ]);
    }
    found
}

fn roles(capture: &Capture) -> Vec<Vec<String>> {
    let header = ["ROLE", "TASKS", "ON A PROCESSOR", "WAITED FOR ONE"];
    let mut found = vec![header.map(str::to_owned).to_vec()];
    let share = |seconds: f64| format::percent(seconds / capture.seconds.max(1e-9));
    for role in capture.roles.iter().filter(|role| role.cpu_s >= 0.0005 || role.tasks > 0) {
        found.push(vec![
            role.role.clone(),
            role.tasks.to_string(),
            share(role.cpu_s),
            share(role.ready_s),
        ]);
    }
    found.push(vec![
        "(this capture)".to_owned(),
        String::new(),
        share(capture.own_cpu_s),
        String::new(),
    ]);
    found
}

fn requests(capture: &Capture) -> Vec<String> {
    let Some(all) = capture.requests.as_ref() else { return Vec::new() };
    if all.count == 0 {
        return vec!["no client sent a request".to_owned()];
    }
    let mut found = vec![format!(
        "{} requests per second from {} sessions ({:.1} at a time, busy {}); {} of them commit",
        format::count(all.per_s),
        all.sessions,
        all.sessions_mean,
        format::percent(all.busy_share),
        format::count(all.commits_per_s),
    )];
    for kind in &all.kinds {
        let [p50, p90, p99, p999] = kind.response_ns.map(|ns| format::duration_ns(ns as f64));
        found.push(format!(
            "  {}: {} requests, answered in {p50} (p50), {p90} (p90), {p99} (p99), {p999} (p99.9)",
            kind.kind, kind.count
        ));
    }
    let think = format::duration_ns(all.think_ns_mean);
    found.push(if all.scheduled {
        format!(
            "clients keep to a schedule (open loop); {think} from an answer to the next request"
        )
    } else {
        format!("clients wait for answers (closed loop) and think {think} between requests")
    });
    if let Some(commits) = capture.activity.as_ref().and_then(|activity| activity.commits) {
        let per_s = commits as f64 / capture.seconds.max(1e-9);
        found.push(format!("{} commits per second by the server's counters", format::count(per_s)));
    }
    found
}

//! The table of a sweep.

use report::format;

use super::{Done, Measured, fastest};

/// Heading and one row per place and cluster size; the fastest of a place carries a `*`.
pub fn text(all: &[Measured]) -> Vec<Vec<String>> {
    let header = [
        "PLACE", "CLUSTER", "ELAPSED", "WAITING", "CPU", "READ", "WRITTEN", "RUNS", "FAN-IN",
        "PASSES",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let best = fastest(all);
    for (index, measured) in all.iter().enumerate() {
        let star = if best.contains(&index) { " *" } else { "" };
        let mut row = vec![
            measured.place.clone(),
            measured.resources().cluster.to_string(),
            format!("{}{star}", format::duration_ns(measured.elapsed_ns() as f64)),
            format::duration_ns(measured.sum(|phase| phase.waited_ns) as f64),
            format::duration_ns(measured.sum(|phase| phase.cpu_ns) as f64),
            format::bytes(measured.sum(|phase| phase.read_bytes) as f64),
            format::bytes(measured.sum(|phase| phase.written_bytes) as f64),
        ];
        row.extend(shape(&measured.done));
        rows.push(row);
    }
    if let Some(Measured { done: Done::Join(_), .. }) = all.first() {
        rows[0].splice(7.., ["PARTS", "SPLIT AGAIN", "IN BLOCKS"].map(str::to_owned));
    }
    rows
}

fn shape(done: &Done) -> [String; 3] {
    match done {
        Done::Sort(sort) => {
            let plan = &sort.plan;
            [plan.runs.to_string(), plan.fan_in.to_string(), format!("{:.2}", plan.passes)]
        }
        Done::Join(join) => {
            let plan = &join.plan;
            [plan.parts, plan.split_again, plan.in_blocks].map(|count| count.to_string())
        }
    }
}

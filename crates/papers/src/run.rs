//! Runs experiments on all processors; results stand in the order of the experiments.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use events::{Ending, Event, Sink, Step};

use crate::{Effort, Experiment, Found, Paper};

/// The stage that events name.
pub const STAGE: &str = "papers";

/// What every experiment found, and whether the user stopped it.
pub fn all(
    papers: &[Paper],
    experiments: &[Experiment],
    effort: Effort,
    threads: usize,
    sink: &dyn Sink,
) -> (Vec<(Experiment, Vec<Found>)>, bool) {
    let step = |experiment: &Experiment| Step {
        name: format!("{} {}", experiment.paper, experiment.name),
        expected_s: 3.0,
        writes_bytes: 0,
    };
    let of = |experiment: &Experiment| papers.iter().find(|paper| paper.name == experiment.paper);
    let wanted: Vec<(&Paper, Experiment)> =
        experiments.iter().filter_map(|own| Some((of(own)?, *own))).collect();
    let steps = wanted.iter().map(|(_, own)| step(own)).collect();
    sink.emit(Event::Plan { stage: STAGE.to_owned(), steps });
    let start = Instant::now();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Mutex<Vec<Option<Vec<Found>>>> = Mutex::new(vec![None; wanted.len()]);
    let work = || {
        while !sink.cancelled() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((paper, experiment)) = wanted.get(index) else { return };
            let found = (experiment.run)(paper, effort);
            results.lock().expect("no holder panics")[index] = Some(found);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            sink.emit(Event::Progress {
                stage: STAGE.to_owned(),
                done: done as f64 / wanted.len() as f64,
                doing: format!("{} {}", experiment.paper, experiment.name),
                eta_s: None,
            });
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, wanted.len().max(1)) {
            scope.spawn(work);
        }
    });
    let results = results.into_inner().expect("all threads have ended");
    let stopped = results.iter().any(Option::is_none);
    let found = wanted.iter().zip(results);
    let found = found.filter_map(|((_, own), found)| Some((*own, found?))).collect();
    sink.emit(Event::Done {
        stage: STAGE.to_owned(),
        elapsed_s: start.elapsed().as_secs_f64(),
        ending: if stopped { Ending::Interrupted } else { Ending::Complete },
    });
    (found, stopped)
}

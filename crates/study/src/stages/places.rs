//! The load really run, here and on emulated devices: loaded once, captured once, predicted, and
//! then run in rounds. Each run is kept as it ends; a resumed study goes on after the last.

use crate::Error;
use crate::artifacts::{LOAD, LOADED, PLACES, PREDICTED};
use crate::context::Context;
use crate::file::StudyFile;
use crate::partial::Partial;
use crate::prove::{Place, Run, Watch, Workshop, run_of};

/// Runs so far, each with the index of its place.
const PARTIAL: &str = "places.partial.jsonl";

/// Seconds that copying, starting, mounting and ending add to a run.
const AROUND_S: f64 = 8.0;

/// Seconds that loading takes about.
pub(crate) fn load_s(study: &StudyFile) -> f64 {
    8.0 + study.oltp.bytes() as f64 / 12e6
}

/// Seconds that a run takes about.
pub(crate) fn run_s(study: &StudyFile) -> f64 {
    (study.oltp.warmup + study.oltp.duration).as_secs_f64() + AROUND_S
}

/// Bytes that a run writes: a copy of the database, and about 16 MB/s.
pub(crate) fn run_bytes(study: &StudyFile) -> u64 {
    let running_s = (study.oltp.warmup + study.oltp.duration).as_secs_f64();
    study.oltp.bytes() + (running_s * 16e6) as u64
}

/// Runs of all rounds.
pub(crate) fn runs(study: &StudyFile) -> u64 {
    let emulated = study.scenario.iter().filter(|scenario| study.is_emulated(scenario)).count();
    u64::from(study.oltp.rounds) * (1 + emulated as u64)
}

/// Loads the database.
pub(crate) fn load(context: &Context<'_>) -> Result<(), Error> {
    let workshop = Workshop::new(context.run, context.study)?;
    let expected = context.expected_s;
    let tell = |elapsed: f64| context.progress_of("loading the database", elapsed, expected);
    let watch = Watch { tell: &tell, cancelled: &|| context.cancelled() };
    if !workshop.is_loaded() && workshop.load(&watch)?.is_none() {
        return Ok(());
    }
    context.finish(&LOADED, &context.study.oltp)
}

/// Runs the load here and captures it.
pub(crate) fn capture(context: &Context<'_>) -> Result<(), Error> {
    let workshop = Workshop::new(context.run, context.study)?;
    let expected = context.expected_s;
    let tell = |elapsed: f64| context.progress_of("capturing the load", elapsed, expected);
    let watch = Watch { tell: &tell, cancelled: &|| context.cancelled() };
    let Some(result) = workshop.capture(&watch)? else { return Ok(()) };
    for warning in &result.warnings {
        context.warn(warning.clone());
    }
    context.finish(&LOAD, &result)
}

/// Predicts the load at every place.
pub(crate) fn predict(context: &Context<'_>) -> Result<(), Error> {
    let workshop = Workshop::new(context.run, context.study)?;
    let mut places = Place::all(context.study)?;
    let count = places.len() as f64;
    for (index, place) in places.iter_mut().enumerate() {
        if context.cancelled() {
            return Ok(());
        }
        let name = place.name.clone();
        let tell = |_| context.progress(context.stage, index as f64 / count, &name, None);
        tell(0.0);
        let watch = Watch { tell: &tell, cancelled: &|| context.cancelled() };
        match workshop.predict(place, &watch) {
            Ok(None) if context.cancelled() => return Ok(()),
            Ok(predicted) => place.predicted = predicted,
            Err(why) => place.not_predicted = Some(why.to_string()),
        }
    }
    context.finish(&PREDICTED, &places)
}

/// Runs the load at every place, in rounds.
pub(crate) fn measure(context: &Context<'_>) -> Result<(), Error> {
    let study = context.study;
    let workshop = Workshop::new(context.run, study)?;
    let mut places = context.run.read(&PREDICTED)?;
    let (mut partial, done) = Partial::<(usize, Run)>::open(context.run, PARTIAL)?;
    let order = order(study.oltp.rounds, &runs_at(context, &places));
    let (total, mut at) = (order.len(), done.len());
    for (index, run) in done {
        places[index].runs.push(run);
    }
    let each_s = context.expected_s / total as f64;
    while let Some(&(round, index)) = order.get(at) {
        let place = &mut places[index];
        let doing = format!("round {round} of {}: {}", study.oltp.rounds, place.name);
        let tell = |elapsed: f64| {
            let spent = at as f64 + (elapsed / each_s).min(0.95);
            let left = (total as f64 - spent) * each_s;
            context.progress(context.stage, spent / total as f64, &doing, Some(left));
        };
        tell(0.0);
        let watch = Watch { tell: &tell, cancelled: &|| context.cancelled() };
        let Some((result, served)) = workshop.run(place, &watch)? else { return Ok(()) };
        let run = run_of(round, &result, &served);
        partial.push(&(index, run.clone()))?;
        place.runs.push(run);
        at += 1;
    }
    for warning in places.iter().flat_map(|place| &place.runs).flat_map(|run| &run.warnings) {
        context.warn(warning.clone());
    }
    let here = places[0].clone();
    for index in runs_at(context, &places) {
        let place = &mut places[index];
        if place.predicted.is_none() {
            continue;
        }
        let name = place.name.clone();
        let tell = |_| context.progress(context.stage, 0.99, &format!("predicting {name}"), None);
        let watch = Watch { tell: &tell, cancelled: &|| context.cancelled() };
        place.as_run = workshop.as_run(place, &here, &watch)?;
        if context.cancelled() {
            return Ok(());
        }
    }
    workshop.remove()?;
    context.finish(&PLACES, &places)?;
    context.run.remove(PARTIAL)
}

/// The places where the load really runs, by their index.
fn runs_at(context: &Context<'_>, places: &[Place]) -> Vec<usize> {
    let study = context.study;
    let runs = |index: usize| match index.checked_sub(1) {
        None => true,
        Some(scenario) => study.is_emulated(&study.scenario[scenario]),
    };
    (0..places.len()).filter(|index| runs(*index)).collect()
}

/// Round and place of every run: forwards, then backwards, in turns.
fn order(rounds: u32, places: &[usize]) -> Vec<(u32, usize)> {
    let mut order = Vec::new();
    for round in 1..=rounds {
        let mut turn: Vec<_> = places.iter().map(|index| (round, *index)).collect();
        if round.is_multiple_of(2) {
            turn.reverse();
        }
        order.extend(turn);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_go_forwards_and_backwards() {
        let found = order(3, &[0, 2]);
        assert_eq!(found, [(1, 0), (1, 2), (2, 2), (2, 0), (3, 0), (3, 2)]);
    }
}

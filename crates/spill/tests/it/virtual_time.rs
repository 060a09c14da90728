//! On device models: closed forms of the time, the same bytes twice, agreement with a replay.

use events::Quiet;
use profile::Profile;
use spill::{Keys, Medium as _, Simulated, SortPlan, join, sort};

use crate::support::{constant, resources, rows};

/// A sort of 20,000 rows of 100 bytes.
fn elapsed_ns(base_ns: f64, parallelism: u32, depth: u32) -> (u64, u64) {
    let rows = rows(20_000, 100, Keys::Random);
    let resources = resources(256 << 10, 4096, depth);
    let plan = SortPlan::new(&rows, &resources).unwrap();
    let sorted = sort(&constant(base_ns, parallelism), rows, resources, false, &Quiet).unwrap();
    (sorted.elapsed_ns, (plan.written_bytes + plan.read_bytes) / 4096)
}

#[test]
fn one_at_a_time_takes_the_sum_of_its_requests() {
    let (elapsed, requests) = elapsed_ns(100_000.0, 1, 1);
    assert_eq!(elapsed, requests * 100_000);
    // A device that does one at a time is no faster for being asked eight at a time.
    let (elapsed, requests) = elapsed_ns(100_000.0, 1, 8);
    assert_eq!(elapsed, requests * 100_000);
}

#[test]
fn requests_in_flight_overlap() {
    // Eight at a time: an eighth of the sum, and a little more where the engine has to wait for a
    // certain one (start and end of a merge).
    let (elapsed, requests) = elapsed_ns(100_000.0, 8, 8);
    let ideal = requests * 100_000 / 8;
    assert!(elapsed >= ideal && elapsed < ideal * 13 / 10, "{elapsed} ns, ideally {ideal}");
}

#[test]
fn work_takes_its_time_per_row() {
    let rows = rows(20_000, 100, Keys::Random);
    let slow = |cpu_ns| {
        let parameters = profile::find_shipped("intel-p3700").unwrap();
        let profile = Profile::from_toml(parameters, "intel-p3700").unwrap();
        let medium = Simulated::new("p3700", model::device(&profile, 1), cpu_ns);
        let sorted = sort(&medium, rows, resources(1 << 20, 4096, 16), false, &Quiet).unwrap();
        assert_eq!(medium.cpu_ns(), sorted.cpu_ns());
        (sorted.elapsed_ns, sorted.cpu_ns())
    };
    let (fast, none) = slow(0);
    let (slow, cpu) = slow(10_000);
    // Every row is worked on once in its run and once in the one merge.
    assert_eq!((none, cpu), (0, 20_000 * 2 * 10_000));
    assert!(slow >= cpu && slow < cpu + fast, "{slow} ns for {cpu} ns of work");
}

#[test]
fn the_same_again_is_the_same_bytes() {
    for profile in ["intel-x25-e", "seagate-savvio-15k", "ocz-vertex-ex"] {
        let text = profile::find_shipped(profile).unwrap();
        let once = || {
            let profile = Profile::from_toml(text, profile).unwrap();
            let medium = Simulated::new("x", model::device(&profile, 3), 0);
            let rows = rows(20_000, 100, Keys::Random);
            let sorted = sort(&medium, rows, resources(128 << 10, 8192, 8), true, &Quiet).unwrap();
            sorted.trace.as_ref().unwrap().validate().unwrap();
            (sorted.elapsed_ns, sorted.trace)
        };
        assert!(once() == once(), "{profile}");
    }
}

#[test]
fn a_trace_replays_in_the_time_that_it_took() {
    // The requests of the engine on a model, submitted to a fresh one when they are due.
    for profile in ["intel-x25-e", "hgst-hds72107"] {
        let text = profile::find_shipped(profile).unwrap();
        let profile = Profile::from_toml(text, profile).unwrap();
        let medium = Simulated::new("x", model::device(&profile, 3), 0);
        let inputs = (rows(5_000, 100, Keys::Ascending), rows(9_000, 100, Keys::Uniform(5_000)));
        let joined = join(&medium, inputs, resources(64 << 10, 4096, 4), true, &Quiet).unwrap();
        let mut trace = joined.trace.unwrap();
        // The engine's requests carry no stream to the device.
        trace.stream.fill(0);
        let service = trace.service.clone().unwrap();
        let again = sim::responses(&mut *model::device(&profile, 3), &trace);
        let ends = |times: &[u64]| {
            times.iter().zip(&trace.due).map(|(time, due)| time + due).max().unwrap()
        };
        assert_eq!(ends(&again), ends(&service), "{}", profile.name());
    }
}

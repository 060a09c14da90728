//! What the fuzz targets of study files and kept runs do, on their seeds and on mutations of them.

mod advice;
#[path = "../../../../fuzz/src/study.rs"]
mod entry;
#[path = "../../../../fuzz/src/seeds.rs"]
mod seeds;

#[test]
fn any_study_file_is_read_or_refused() {
    seeds::run("study", entry::check_file);
}

#[test]
fn any_file_of_a_run_is_read_or_refused() {
    seeds::run("kept", entry::check_kept);
}

/// Seeds are there to be read, not only to be refused.
#[test]
fn every_seed_reads_and_every_kind_of_file_has_one() {
    let path = std::path::Path::new("seed");
    let mut seen = [0; 4];
    for seed in seeds::of("kept") {
        let (kind, text) = (seed[0] % 4, &seed[1..]);
        seen[usize::from(kind)] += 1;
        let read = match kind {
            0 => study::runs::RunSet::parse(text, path).err(),
            1 => study::run_dir::parse_json::<study::result::StudyResult>(text, path, "").err(),
            2 => study::captures::Capture::parse(text, path).err(),
            _ => None,
        };
        assert!(read.is_none(), "{read:?}");
    }
    assert!(seen.iter().all(|&seeds| seeds > 0), "{seen:?}");
}

/// A file can say that its series has intervals of no length.
#[test]
fn a_series_of_no_intervals_is_compared() {
    let path = std::path::Path::new("seed");
    for seed in seeds::of("kept").iter().filter(|seed| seed[0] % 4 == 0) {
        let mut file: serde_json::Value = serde_json::from_slice(&seed[1..]).unwrap();
        let series = &mut file["runs"][0]["result"]["series"];
        assert!(series["interval_s"].is_number() && series["measure_from_s"].is_number());
        series["interval_s"] = 0.0.into();
        series["measure_from_s"] = 1.0.into();
        let set = study::runs::RunSet::parse(file.to_string().as_bytes(), path).unwrap();
        assert!(!study::runs::compare::compare(&set, &set, 0.05).is_empty());
    }
}

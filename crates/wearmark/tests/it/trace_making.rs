//! Generating and imitating traces: every command of that section of the guide, and its mistakes.

use std::fs;

use crate::program::{fine, listing, place, refused};

#[test]
fn every_listed_pattern_and_recipe_makes_a_trace_that_reads() {
    let dir = place();
    let list: serde_json::Value =
        serde_json::from_str(&fine(dir.path(), &["trace", "generate", "--list", "--json"]))
            .unwrap();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert!(names.len() > 20 && names.contains(&"financial1-like"), "{names:?}");
    let text = fine(dir.path(), &["trace", "generate", "--list"]);
    for name in names {
        assert!(text.contains(name), "{name} is not in\n{text}");
        let made = fine(dir.path(), &["trace", "generate", name, "-n", "500", "-o", "t.parquet"]);
        assert_eq!(made, "500 requests written to t.parquet\n");
    }
    let info: serde_json::Value =
        serde_json::from_str(&fine(dir.path(), &["trace", "info", "t.parquet", "--json"])).unwrap();
    assert_eq!(info["all"]["requests"], 500);
}

#[test]
fn a_seed_makes_the_same_file_and_options_count() {
    let dir = place();
    let make = |seed: &str, to: &str| {
        let zipf = ["trace", "generate", "zipf", "--option", "size=8KiB", "--option", "reads=0.7"];
        fine(dir.path(), &[&zipf[..], &["--seed", seed, "-o", to]].concat());
        fs::read(dir.path().join(to)).unwrap()
    };
    assert_eq!(make("1", "a.parquet"), make("1", "b.parquet"));
    assert_ne!(make("1", "a.parquet"), make("2", "c.parquet"));
    let info: serde_json::Value =
        serde_json::from_str(&fine(dir.path(), &["trace", "info", "a.parquet", "--json"])).unwrap();
    assert_eq!(info["all"]["mean_size_bytes"], 8192.0);
}

#[test]
fn a_recipe_can_be_printed_changed_and_run() {
    let dir = place();
    let text = fine(dir.path(), &["trace", "generate", "uflip-bursts", "--recipe"]);
    fs::write(dir.path().join("mine.toml"), text.replace("pause_ms = 100.0", "pause_ms = 7.0"))
        .unwrap();
    fine(dir.path(), &["trace", "generate", "mine.toml", "-n", "11", "-o", "t.parquet"]);
    fine(dir.path(), &["trace", "convert", "t.parquet", "t.spc"]);
    let spc = fs::read_to_string(dir.path().join("t.spc")).unwrap();
    // Ten at 1 ms, then the pause of 7 ms.
    assert!(spc.lines().last().unwrap().contains(",0.017000"), "{spc}");
}

#[test]
fn a_trace_is_imitated_and_its_recipe_makes_the_same_imitation() {
    let dir = place();
    fine(dir.path(), &["trace", "generate", "oltp-like", "-n", "8000", "-o", "mine.parquet"]);
    let imitate = ["trace", "imitate", "mine.parquet", "-o", "like.parquet"];
    let text = fine(dir.path(), &[&imitate[..], &["--save-recipe", "mine.toml"]].concat());
    assert!(text.contains("8000 requests") && text.contains("miss-ratio curve"), "{text}");
    let recipe = ["trace", "generate", "mine.toml", "-o", "again.parquet"];
    fine(dir.path(), &recipe);
    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert_eq!(read("like.parquet"), read("again.parquet"));
    assert!(read("mine.toml").len() <= 66_000);
    let json = fine(
        dir.path(),
        &[&imitate[..], &["--requests", "20000", "--seed", "2", "--json"]].concat(),
    );
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["requests"], 20_000);
    assert!(report["distances"]["gap_error"].as_f64().unwrap() < 0.1, "{json}");
    assert_eq!(listing(dir.path()), ["again.parquet", "like.parquet", "mine.parquet", "mine.toml"]);
}

#[test]
fn mistakes_are_named_with_a_hint() {
    let dir = place();
    let make = |rest: &[&'static str]| [&["trace", "generate"][..], rest].concat();
    let wrong = |rest: &[&'static str], cause: &str| refused(dir.path(), &make(rest), cause);
    wrong(&["absent", "-o", "t.parquet"], "no pattern, recipe or file is called 'absent'");
    wrong(&["zipf"], "no name for the trace");
    wrong(&["zipf", "--option", "sise=1", "-o", "t.parquet"], "sise is no option of zipf");
    wrong(&["oltp-like", "--option", "size=1", "-o", "t.parquet"], "a recipe has no option 'size'");
    fs::write(dir.path().join("bad.toml"), "kind = 'workload'\n").unwrap();
    wrong(&["bad.toml", "-o", "t.parquet"], "bad.toml");
    fine(dir.path(), &["trace", "generate", "zipf", "-n", "100", "-o", "z.parquet"]);
    refused(dir.path(), &["trace", "imitate", "z.parquet"], "nothing to write");
    assert_eq!(listing(dir.path()), ["bad.toml", "z.parquet"]);
}

/// The commands of the guide's page, line by line, in one directory.
#[test]
fn every_command_of_the_guide_works() {
    let dir = place();
    let guide = include_str!("../../../../docs/guide/making-traces.md");
    let mut commands = 0;
    for block in guide.split("```sh\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            let (line, to) = line.split_once(" > ").map_or((line, None), |(l, to)| (l, Some(to)));
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words[0], "wearmark", "{line}");
            let text = fine(dir.path(), &words[1..]);
            if let Some(to) = to {
                fs::write(dir.path().join(to), text).unwrap();
            }
            commands += 1;
        }
    }
    assert!(commands >= 8);
    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert_eq!(read("longer.parquet"), read("again.parquet"));
}

use profile::Profile;
use serde_json::{Value, json};
use trace::{Op, Trace};
use whatif::answer;

use crate::load::database;

fn ask(trace: &Trace, question: &Value) -> Value {
    serde_json::from_str(&answer(trace, &question.to_string())).expect("an answer is JSON")
}

fn text(name: &str) -> &'static str {
    profile::find_shipped(name).expect("it ships")
}

/// Equal but for the last digit, which the reader of JSON may round.
fn close(found: &Value, expected: f64) {
    let found = found.as_f64().expect("a number");
    assert!((found / expected - 1.0).abs() < 1e-15 * 4.0, "{found} {expected}");
}

#[test]
fn the_answer_is_that_of_the_simulator() {
    let trace = database(4_000);
    let question = json!({"ask": "simulate", "device": "intel-x25-e-ftl", "seed": 3});
    let found = ask(&trace, &question);
    let profile = Profile::from_toml(text("intel-x25-e-ftl"), "x").unwrap();
    let outcome = sim::replay(model::device(&profile, 3).as_mut(), &trace);
    let all = outcome.response();
    assert_eq!(found["classes"][0]["p99_ns"], all.quantile(0.99));
    close(&found["classes"][0]["mean_ns"], all.mean());
    let reads = outcome.response_of(Op::Read);
    assert_eq!(found["classes"][1]["name"], "read");
    assert_eq!(found["classes"][1]["p50_ns"], reads.quantile(0.5));
    close(&found["completed_per_s"], outcome.completed_per_s());
    let programmed = outcome.wear.last().unwrap().flash.unwrap().programmed_bytes as f64;
    let writes: u64 = (0..trace.count()).map(|k| trace.request(k)).fold(0, |sum, request| {
        sum + if request.op == Op::Write { u64::from(request.len) } else { 0 }
    });
    close(&found["write_amplification"], programmed / writes as f64);
}

#[test]
fn what_is_changed_changes_what_it_should() {
    let trace = database(4_000);
    let asked = |more: Value| {
        let mut question = json!({"ask": "simulate", "device": "hitachi-15k450"});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ask(&trace, &question)
    };
    let as_is = asked(json!({}));
    let twice = asked(json!({"rate": 2}));
    let ratio = twice["offered_per_s"].as_f64().unwrap() / as_is["offered_per_s"].as_f64().unwrap();
    assert!((ratio - 2.0).abs() < 1e-3, "{ratio}");
    assert_eq!(asked(json!({"times": 5}))["requests"], 20_000);
    let without = asked(json!({"cache_mb": 0}));
    let (bare, cached) = (&without["classes"][2], &asked(json!({"cache_mb": 64}))["classes"][2]);
    assert_eq!((&bare["name"], &without["cache_mb"]), (&json!("write"), &Value::Null));
    assert!(cached["p50_ns"].as_u64() < bare["p50_ns"].as_u64(), "{cached} {bare}");

    let fields = ask(&trace, &json!({"ask": "fields", "device": "intel-x25-e"}));
    let field = fields.as_array().unwrap().iter().find(|own| own["value"].as_f64() > Some(1.0));
    let field = field.expect("a profile has numbers");
    let (path, value) = (field["path"].as_str().unwrap(), field["value"].as_f64().unwrap());
    let with = |value: f64| {
        let fields = json!({path: value});
        ask(&trace, &json!({"ask": "simulate", "device": "intel-x25-e", "fields": fields}))
    };
    assert_eq!(
        with(value)["classes"],
        ask(
            &trace,
            &json!({"ask": "simulate",
        "device": "intel-x25-e"})
        )["classes"],
        "{path} as it was"
    );
    assert_ne!(with(value)["classes"], with(value * 3.0)["classes"], "{path}");
}

#[test]
fn a_cache_that_a_device_has_not_is_named_as_assumed() {
    let trace = database(100);
    let without = text("intel-x25-e-ftl");
    assert!(!without.contains("[write_cache]"), "the test needs a device without a cache");
    let found = ask(&trace, &json!({"ask": "simulate", "device": without, "cache_mb": 64}));
    assert_eq!(found["cache_mb"], 64.0);
    assert!(found["assumed"].as_str().unwrap().contains("is assumed"), "{found}");
}

#[test]
fn what_cannot_be_answered_says_why() {
    let trace = database(1_000);
    let told = |question: Value| {
        let found = ask(&trace, &question);
        assert!(found["hint"].is_string(), "{found}");
        found["error"].as_str().expect("an error").to_owned()
    };
    assert!(told(json!({"ask": "simulate", "device": "no such device"})).contains("the profile"));
    assert!(told(json!({"ask": "simulate", "device": "intel-x25-e", "rate": 0})).contains("rate"));
    let many = json!({"ask": "simulate", "device": "intel-x25-e", "times": 5_001});
    assert!(told(many).contains("5001000 requests are more than"));
    let absent = json!({"ask": "simulate", "device": "intel-x25-e", "fields": {"device.wings": 2}});
    assert!(told(absent).contains("wings"));
    assert!(told(json!({"ask": "the time"})).contains("the time"));
    let none = answer(&Trace::default(), r#"{"ask": "simulate", "device": "intel-x25-e"}"#);
    assert!(none.contains("no request"), "{none}");
}

//! Real sockets: what a reader gets, and who gets nothing.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use events::{Completed, Ending, Warning};

use super::*;

fn listen() -> Metrics {
    Metrics::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap()
}

/// The answer to a request of these words, with a Host header of its own.
fn ask(metrics: &Metrics, words: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(metrics.address()).unwrap();
    write!(stream, "{words} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn completions(requests: u64, buckets: &[(u64, u64)]) -> Event {
    Event::Completions {
        stage: "oltp".to_owned(),
        device: None,
        at_s: 1.0,
        span_s: 1.0,
        in_flight: 3,
        classes: vec![Completed {
            class: "new_order".to_owned(),
            requests,
            sum_ns: 1_500_000,
            buckets: buckets.to_vec(),
        }],
    }
}

#[test]
fn intervals_add_up_to_counters_and_histograms() {
    let metrics = listen();
    metrics.take(&completions(3, &[(900, 1), (1024, 1), (1 << 40, 1)]));
    metrics.take(&completions(2, &[(1280, 2)]));
    metrics.take(&Event::Warning(Warning::new("oltp", "other_load", "x")));
    let text = ask(&metrics, "GET /metrics", "localhost");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains(CONTENT_TYPE), "{head}");
    for line in [
        "# UNIT wearmark_response_seconds seconds",
        "# TYPE wearmark_requests counter",
        r#"wearmark_requests_total{stage="oltp",class="new_order"} 5"#,
        r#"wearmark_response_seconds_sum{stage="oltp",class="new_order"} 0.003"#,
        r#"wearmark_response_seconds_bucket{le="0.000001024",stage="oltp",class="new_order"} 1"#,
        r#"wearmark_response_seconds_bucket{le="0.000001536",stage="oltp",class="new_order"} 4"#,
        r#"wearmark_response_seconds_bucket{le="+Inf",stage="oltp",class="new_order"} 5"#,
        r#"wearmark_requests_in_flight{stage="oltp"} 3"#,
        r#"wearmark_warnings_total{stage="oltp",code="other_load"} 1"#,
    ] {
        assert!(body.lines().any(|found| found == line), "no {line} in\n{body}");
    }
    assert!(body.ends_with("# EOF\n"), "{body}");
}

#[test]
fn a_stage_that_ended_has_nothing_in_flight() {
    let metrics = listen();
    metrics.take(&completions(1, &[(900, 1)]));
    let (stage, ending) = ("oltp".to_owned(), Ending::Interrupted);
    metrics.take(&Event::Done { stage, elapsed_s: 1.0, ending });
    let text = ask(&metrics, "GET /metrics", "localhost");
    assert!(!text.contains("wearmark_requests_in_flight{"), "{text}");
    assert!(text.contains(r#"wearmark_stages_total{stage="oltp",ending="interrupted"} 1"#));
}

#[test]
fn names_of_others_and_writes_are_refused() {
    let metrics = listen();
    let status = |words: &str, host: &str| ask(&metrics, words, host)[9..12].to_owned();
    assert_eq!(status("GET /metrics", "127.0.0.1:9464"), "200");
    assert_eq!(status("GET /metrics", "rebound.example:9464"), "403");
    assert_eq!(status("POST /metrics", "localhost"), "405");
    assert_eq!(status("GET /", "localhost"), "404");
}

#[test]
fn a_port_that_is_taken_is_an_error_with_a_hint() {
    let first = listen();
    let error = Metrics::listen(first.address()).unwrap_err();
    assert!(error.to_string().contains(&first.address().to_string()), "{error}");
    assert!(error.hint().is_some());
}

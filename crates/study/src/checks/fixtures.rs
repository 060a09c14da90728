//! Results for tests.

use serde_json::{Value, json};

/// A probe of one cell: `iops` with this many windows around it, and 2,000 requests of 1 or 2 ms.
pub(super) fn probe(iops: f64, windows: i32) -> String {
    let windows: Vec<Value> = (0..windows)
        .map(|at| {
            let iops = iops * (1.0 + 0.01 * f64::from(at % 5 - 2));
            json!({ "at_s": at, "iops": iops, "p99_ns": 1 })
        })
        .collect();
    let service = json!({
        "count": 2000, "mean_ns": 1.1e6, "min_ns": 1_000_000, "max_ns": 2_000_000,
        "buckets": [[1_000_000, 1800], [2_000_000, 200]],
    });
    json!({
        "schema": 1,
        "target": { "path": "x", "kind": "file", "range_bytes": 4096,
                    "logical_block_bytes": 512, "facts": {} },
        "cells": [{
            "cell": { "order": "random", "read_share": 1.0, "size_bytes": 4096, "depth": 1,
                      "durability": "none", "arrival": "closed" },
            "started_s": 0.0, "elapsed_s": 1.0, "requests": iops as u64, "bytes": 1,
            "cpu_user_ns": 1.0, "cpu_system_ns": 1.0,
            "classes": [{ "op": "read", "service": service, "response": service }],
            "windows": windows, "steady": null, "warnings": [],
        }],
        "warnings": [],
    })
    .to_string()
}

use super::*;
use serde_json::{Value, json};

fn valid() -> Value {
    json!({
        "name": "measure", "operations": {"read": 0.95, "update": 0.05},
        "distribution": {"kind": "zipfian", "theta": 0.99, "scrambled": true},
        "loop": {"kind": "open", "arrivals": "poisson", "rate_per_second": 20000},
        "duration_seconds": 5.0, "operation_count": null,
        "interval_seconds": 0.25, "record_latency": true,
    })
}

#[test]
fn the_documented_forms_are_taken() {
    for (field, value) in [
        ("name", json!("again")),
        ("distribution", json!({"kind": "uniform"})),
        ("distribution", json!({"kind": "latest", "theta": 0.99})),
        ("distribution", json!({"kind": "sequential"})),
        (
            "distribution",
            json!({"kind": "hotspot", "hot_keys": 0.2, "hot_operations": 0.8}),
        ),
        ("loop", json!({"kind": "closed"})),
        (
            "loop",
            json!({"kind": "open", "arrivals": "constant", "rate_per_second": 0.5}),
        ),
        ("operations", json!({"insert": 1.0})),
        ("operation_count", json!(100_000)),
    ] {
        let mut phase = valid();
        phase[field] = value;
        PhaseConfig::from_json(&phase.to_string(), Protocol::MemcachedText).expect("valid");
    }
}

#[test]
fn every_mistake_is_named() {
    for (field, value, sentence) in [
        (
            "operations",
            json!({"read": 0.9}),
            "must add up to 1, not 0.9",
        ),
        ("operations", json!({}), "must add up to 1"),
        (
            "operations",
            json!({"read": 2.0, "update": -1.0}),
            "the fraction of read must be between 0 and 1, not 2",
        ),
        (
            "operations",
            json!({"lpush": 1.0}),
            "lpush is a command of Redis",
        ),
        (
            "operations",
            json!({"scan": 1.0}),
            "unknown variant `scan`, expected one of `read`",
        ),
        (
            "distribution",
            json!({"kind": "zipfian", "theta": -0.5}),
            "theta must be between 0 and 100, not -0.5",
        ),
        (
            "distribution",
            json!({"kind": "uniform", "theta": 1}),
            "unknown field `theta`",
        ),
        (
            "distribution",
            json!({"kind": "hotspot", "hot_keys": 0, "hot_operations": 0.5}),
            "hot_keys must be",
        ),
        (
            "loop",
            json!({"kind": "closed", "rate_per_second": 5}),
            "unknown field `rate_per_second`",
        ),
        (
            "loop",
            json!({"kind": "open", "arrivals": "poisson", "rate_per_second": 0}),
            "rate_per_second must be",
        ),
        ("duration_seconds", json!(null), "would never end"),
        (
            "duration_seconds",
            json!(-1),
            "duration_seconds must be positive",
        ),
        (
            "operation_count",
            json!(0),
            "operation_count must be between 1 and 1e15, not 0",
        ),
        (
            "interval_seconds",
            json!(0),
            "interval_seconds must be between",
        ),
    ] {
        let mut phase = valid();
        phase[field] = value;
        let message = PhaseConfig::from_json(&phase.to_string(), Protocol::MemcachedText)
            .expect_err(sentence)
            .to_string();
        assert!(message.contains(sentence), "{message}");
    }
}

//! What the generator can do from one core, against a responder on another that answers at once:
//! `cargo bench -p load --bench null -- [PROTOCOL [GENERATOR_CORE RESPONDER_CORE [SECONDS [tcp|unix [DEPTH]]]]]`.
use load::{LoadClient, NullResponder};
use serde_json::json;
use std::time::Duration;

/// Connections, requests outstanding on each, and how keys are drawn.
const SETTINGS: [(usize, usize, &str); 4] = [
    (50, 1, "uniform"),
    (50, 1, "zipfian"),
    (50, 50, "uniform"),
    (50, 50, "zipfian"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let argument = |index: usize, default: &str| {
        arguments
            .get(index)
            .map_or(default, |argument| argument)
            .to_owned()
    };
    let protocol = argument(0, "memcached_text");
    let generator_core: usize = argument(1, "0").parse()?;
    let responder_core: usize = argument(2, "1").parse()?;
    let seconds: f64 = argument(3, "3").parse()?;
    let (only_kind, only_depth) = (argument(4, ""), argument(5, ""));
    let socket = std::env::temp_dir().join(format!("load-null-{}.sock", std::process::id()));
    let endpoints = [
        json!({"kind": "tcp", "host": "127.0.0.1", "port": 0}),
        json!({"kind": "unix", "path": socket}),
    ];
    for endpoint in endpoints {
        for (connections, pipeline, distribution) in SETTINGS {
            let skips = |only: &str, this: &str| !only.is_empty() && only != this;
            if skips(&only_kind, endpoint["kind"].as_str().unwrap_or_default())
                || skips(&only_depth, &pipeline.to_string())
            {
                continue;
            }
            let mut responder =
                NullResponder::new(&protocol, &endpoint.to_string(), Some(responder_core))?;
            let target: serde_json::Value = serde_json::from_str(&responder.endpoint())?;
            let client = LoadClient::new(
                &json!({
                    "target": target, "protocol": protocol, "connections": connections,
                    "cores": [generator_core], "pipeline": pipeline, "seed": 1, "verify": true,
                    "keys": {"count": 100_000, "size": {"kind": "fixed", "bytes": 24}},
                    "values": {"kind": "fixed", "bytes": 100},
                })
                .to_string(),
            )?;
            let keys = match distribution {
                "uniform" => json!({"kind": "uniform"}),
                _ => json!({"kind": "zipfian", "theta": 0.99, "scrambled": true}),
            };
            client.start_phase(
                &json!({
                    "name": "null", "operations": {"read": 1.0},
                    "distribution": keys,
                    "loop": {"kind": "closed"}, "duration_seconds": seconds, "interval_seconds": 0.25,
                })
                .to_string(),
            )?;
            while !client.wait(Duration::from_secs(1)) {}
            let result = client.phase_result()?;
            println!(
                "{protocol} over {}, {connections} connections x {pipeline}, {distribution} keys: {:.0} requests/s, \
                 generator idle {:.1} %, \
                 {:.0} ns of processor time a request{}",
                target["kind"].as_str().unwrap_or_default(),
                result.operations as f64 / result.duration_seconds,
                result.generator_idle_ratio * 100.0,
                result.generator_cpu_seconds * 1e9 / result.operations.max(1) as f64,
                result
                    .failed
                    .map_or(String::new(), |why| format!(", FAILED: {why}")),
            );
            client.close();
            responder.stop();
        }
    }
    Ok(())
}

//! The generator against a server that is correct, and against servers that are not.
mod correct;
mod faults;
mod open_loop;
mod phases;
mod tls;
mod toy;

use load::{LoadClient, PhaseResult};
use serde_json::{Value, json};
use std::time::Duration;

const PROTOCOLS: [&str; 3] = ["memcached_text", "memcached_meta", "resp"];

/// Much longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// `base` with the members of `changes` in place of its own.
fn with(mut base: Value, changes: Value) -> Value {
    let (Value::Object(base_members), Value::Object(changes)) = (&mut base, changes) else {
        panic!("objects");
    };
    base_members.extend(changes);
    base
}

/// A client of a server on `port`: few keys, so that they collide.
fn client(port: u16, changes: Value) -> LoadClient {
    let config = json!({
        "target": {"kind": "tcp", "host": "127.0.0.1", "port": port},
        "protocol": "memcached_text", "connections": 4, "seed": 1,
        "keys": {"count": 50, "size": {"kind": "fixed", "bytes": 24}},
        "values": {"kind": "fixed", "bytes": 100},
    });
    LoadClient::new(&with(config, changes).to_string()).expect("a client")
}

/// A closed loop of 1,000 operations, half reads and half updates.
fn phase(changes: Value) -> String {
    let phase = json!({
        "name": "test", "operations": {"read": 0.5, "update": 0.5}, "distribution": {"kind": "uniform"},
        "loop": {"kind": "closed"}, "operation_count": 1000, "interval_seconds": 0.1,
    });
    with(phase, changes).to_string()
}

fn preload(keys: u64) -> String {
    let sequential = json!({"kind": "sequential"});
    phase(
        json!({"operations": {"insert": 1.0}, "distribution": sequential, "operation_count": keys}),
    )
}

/// Run a phase to its end.
fn run(client: &LoadClient, phase: &str) -> PhaseResult {
    client.start_phase(phase).expect("a phase");
    assert!(client.wait(PATIENCE), "the phase hangs");
    client.phase_result().expect("it has ended")
}

/// Run a phase that must go well.
fn run_well(client: &LoadClient, phase: &str) -> PhaseResult {
    let result = run(client, phase);
    assert_eq!(result.failed, None);
    assert_eq!((result.errors, &result.first_error), (0, &None));
    assert_eq!((result.wrong_values, &result.first_wrong), (0, &None));
    result
}

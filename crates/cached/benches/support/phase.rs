//! One phase of load, to its end.

use load::{LoadClient, PhaseResult};
use serde_json::{Value, json};
use std::error::Error;
use std::time::Duration;

/// Keys of the data set, each of which is asked for once where no time is given.
pub const KEYS: u64 = 100_000;

/// In a closed loop, for so many seconds. A rate of wrong answers is none: these are an error.
pub fn run_phase(
    client: &mut LoadClient,
    operations: &Value,
    distribution: &Value,
    seconds: Option<f64>,
) -> Result<PhaseResult, Box<dyn Error>> {
    client.start_phase(
        &json!({
            "name": "phase", "operations": operations, "distribution": distribution, "loop": {"kind": "closed"},
            "duration_seconds": seconds, "operation_count": seconds.is_none().then_some(KEYS), "interval_seconds": 0.25,
        })
        .to_string(),
    )?;
    while !client.wait(Duration::from_secs(1)) {}
    let result = client.phase_result()?;
    let failed = result.failed.as_ref().or(result.first_wrong.as_ref());
    match failed.or(result.first_error.as_ref()) {
        Some(why) => Err(why.clone().into()),
        None => Ok(result),
    }
}

/// Every key is written once.
pub fn load_all(client: &mut LoadClient) -> Result<(), Box<dyn Error>> {
    let (inserts, in_order) = (json!({"insert": 1.0}), json!({"kind": "sequential"}));
    run_phase(client, &inserts, &in_order, None).map(drop)
}

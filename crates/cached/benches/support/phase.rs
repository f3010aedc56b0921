//! One phase of load, to its end.

use load::{LoadClient, PhaseResult};
use serde_json::{Value, json};
use std::error::Error;
use std::time::Duration;

/// Keys of the data set.
pub const KEYS: u64 = 100_000;

/// When a phase ends.
#[allow(dead_code, reason = "a benchmark may need only one")]
pub enum Until {
    Seconds(f64),
    Operations(u64),
}

/// In a closed loop. A rate of wrong answers is none: these are an error.
pub fn run_phase(
    client: &mut LoadClient,
    operations: &Value,
    distribution: &Value,
    until: Until,
) -> Result<PhaseResult, Box<dyn Error>> {
    let (seconds, operations_max) = match until {
        Until::Seconds(seconds) => (Some(seconds), None),
        Until::Operations(count) => (None, Some(count)),
    };
    client.start_phase(
        &json!({
            "name": "phase", "operations": operations, "distribution": distribution, "loop": {"kind": "closed"},
            "duration_seconds": seconds, "operation_count": operations_max, "interval_seconds": 0.25,
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

/// Every one of `keys` keys is written once.
pub fn load_all(client: &mut LoadClient, keys: u64) -> Result<(), Box<dyn Error>> {
    let (inserts, in_order) = (json!({"insert": 1.0}), json!({"kind": "sequential"}));
    run_phase(client, &inserts, &in_order, Until::Operations(keys)).map(drop)
}

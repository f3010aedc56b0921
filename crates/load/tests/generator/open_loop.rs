//! The open loop: operations are meant to start whether or not the server keeps up.
use crate::toy::{Behaviour, Reply, Toy};
use crate::{client, phase, run_well};
use load::PhaseResult;
use serde_json::json;
use std::time::Duration;

fn total(result: &PhaseResult, kind: &str, longer_than_seconds: f64) -> u64 {
    let of_kind = result
        .histograms
        .iter()
        .filter(|histogram| histogram.kind == kind);
    of_kind
        .flat_map(|histogram| {
            let config =
                histogram::Config::new(histogram.grouping_power, histogram.max_value_power)
                    .expect("valid");
            let counts = histogram.index.iter().zip(&histogram.count);
            counts.filter_map(move |(&index, &count)| {
                let (lowest, _) = bucket_bounds(&config, index);
                (lowest as f64 * 1e-9 >= longer_than_seconds).then_some(count)
            })
        })
        .sum()
}

fn bucket_bounds(config: &histogram::Config, index: u32) -> (u64, u64) {
    let mut counts = vec![0; config.total_buckets()];
    counts[index as usize] = 1;
    let one = histogram::Histogram::from_buckets(
        config.grouping_power(),
        config.max_value_power(),
        counts,
    )
    .expect("valid");
    let bucket = one.quantile_bucket(0.5).expect("valid").expect("one value");
    (bucket.start(), bucket.end())
}

#[test]
fn every_arrival_is_sent_and_counted() {
    for arrivals in ["constant", "poisson"] {
        let toy = Toy::start(Behaviour::default());
        let client = client(toy.port, json!({"connections": 3, "pipeline": 2}));
        let open = json!({"kind": "open", "arrivals": arrivals, "rate_per_second": 5000});
        let result = run_well(
            &client,
            &phase(json!({"loop": open, "operation_count": 2000})),
        );
        assert_eq!((result.operations, result.unsent_operations), (2000, 0));
        assert_eq!(result.offered_operations_per_second, Some(5000.0));
        for kind in ["response", "service", "lag"] {
            assert_eq!(total(&result, kind, 0.0), 2000, "{kind}");
        }
        assert!(result.lag_p99_seconds.is_some());
        // The last of 2,000 constant arrivals is due after 1999 / 5000 s.
        assert!(arrivals == "poisson" || result.duration_seconds >= 0.3998);
    }
}

#[test]
fn a_pause_of_the_server_delays_all_that_was_due_meanwhile() {
    let toy = Toy::start(Behaviour {
        reply: |number, reply| match number {
            100 => Reply::SendLate(reply, Duration::from_millis(400)),
            _ => Reply::Send(reply),
        },
        ..Behaviour::default()
    });
    let client = client(toy.port, json!({"connections": 1}));
    let open = json!({"kind": "open", "arrivals": "constant", "rate_per_second": 1000});
    let result = run_well(
        &client,
        &phase(json!({"loop": open, "operation_count": 1000})),
    );
    assert_eq!(result.operations, 1000);
    // 400 operations were due in the pause; those of its first half waited for half of it at least.
    let (late, slow) = (
        total(&result, "response", 0.2),
        total(&result, "service", 0.2),
    );
    assert!((195..1000).contains(&late), "{late}");
    assert!(
        slow < late && slow >= 1,
        "the server itself was slow {slow} times"
    );
    assert!(total(&result, "lag", 0.19) >= 190);
}

#[test]
fn what_could_not_be_sent_is_counted() {
    let toy = Toy::start(Behaviour {
        reply: |_, reply| Reply::SendLate(reply, Duration::from_millis(10)),
        ..Behaviour::default()
    });
    let client = client(toy.port, json!({"connections": 2}));
    let open = json!({"kind": "open", "arrivals": "constant", "rate_per_second": 10_000});
    let half = json!({"loop": open, "operation_count": null, "duration_seconds": 0.5});
    let result = run_well(&client, &phase(half));
    assert_eq!(result.operations + result.unsent_operations, 5000);
    assert!(
        result.operations <= 110,
        "two connections, 10 ms an operation"
    );
    let slowest = result
        .histograms
        .iter()
        .filter(|histogram| histogram.kind == "response");
    assert!(
        slowest
            .map(|histogram| histogram.max_seconds)
            .fold(0.0, f64::max)
            > 0.4
    );
}

#[test]
fn a_closed_loop_has_no_lag() {
    let toy = Toy::start(Behaviour::default());
    let client = client(toy.port, json!({}));
    let result = run_well(&client, &phase(json!({})));
    assert_eq!(
        (result.lag_p99_seconds, result.offered_operations_per_second),
        (None, None)
    );
    assert_eq!(total(&result, "lag", 0.0), 0);
    assert_eq!(total(&result, "response", 0.0), 1000);
}

//! Phases, their intervals, and what a client remembers between them.
use crate::toy::{Behaviour, Reply, Toy};
use crate::{PATIENCE, client, phase, preload, run_well};
use load::Interval;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

fn metric(interval: &Interval, name: &str) -> Option<f64> {
    let found = interval.metrics.iter().find(|(metric, _)| *metric == name);
    found.map(|(_, value)| *value)
}

#[test]
fn intervals_report_totals_that_grow_over_phases() {
    let toy = Toy::start(Behaviour {
        reply: |_, reply| Reply::SendLate(reply, Duration::from_millis(1)),
        ..Behaviour::default()
    });
    let client = client(toy.port, json!({}));
    let short = json!({"operation_count": 200, "interval_seconds": 0.01});
    let first = run_well(&client, &phase(short.clone()));
    let second = run_well(&client, &phase(short));
    let intervals = client.poll();
    assert!(intervals.len() >= 4, "{}", intervals.len());
    assert!(intervals.is_sorted_by_key(|interval| interval.timestamp_ns));
    let totals: Vec<f64> = intervals
        .iter()
        .map(|interval| metric(interval, "load_operations_total").expect("always there"))
        .collect();
    assert!(totals.is_sorted());
    let last = totals.last().copied().expect("some");
    assert!(last > 200.0 && last <= 400.0);
    for interval in &intervals {
        let idle = metric(interval, "load_idle_ratio").expect("always there");
        assert!((0.0..=1.0).contains(&idle));
        assert!(
            metric(interval, "load_throughput_operations_per_second").expect("always there") >= 0.0
        );
        assert_eq!(
            metric(interval, "load_lag_seconds{quantile=\"0.99\"}"),
            None
        );
        if let Some(median) = metric(interval, "load_response_seconds{quantile=\"0.5\"}") {
            assert!(median >= 0.001, "the server takes a millisecond");
            assert!(metric(interval, "load_service_seconds{quantile=\"1\"}") >= Some(median));
        }
    }
    assert!(client.poll().is_empty(), "each is reported once");
    assert!(first.end_ns <= second.start_ns);
    assert!(
        intervals
            .iter()
            .all(|interval| interval.timestamp_ns > first.start_ns)
    );
}

#[test]
fn an_open_loop_reports_lag() {
    let toy = Toy::start(Behaviour::default());
    let client = client(toy.port, json!({}));
    let open = json!({"kind": "open", "arrivals": "poisson", "rate_per_second": 2000});
    run_well(&client, &phase(json!({"loop": open})));
    let intervals = client.poll();
    let lag = |interval: &Interval| metric(interval, "load_lag_seconds{quantile=\"0.99\"}");
    assert!(intervals.iter().any(|interval| lag(interval).is_some()));
}

#[test]
fn latency_is_not_recorded_where_it_is_not_wanted() {
    let toy = Toy::start(Behaviour::default());
    let client = client(toy.port, json!({}));
    let result = run_well(&client, &phase(json!({"record_latency": false})));
    assert_eq!((result.operations, result.histograms.len()), (1000, 0));
    let response =
        |interval: &Interval| metric(interval, "load_response_seconds{quantile=\"0.5\"}");
    assert!(
        client
            .poll()
            .iter()
            .all(|interval| response(interval).is_none())
    );
}

#[test]
fn a_duration_ends_a_phase() {
    let toy = Toy::start(Behaviour::default());
    let client = client(toy.port, json!({"pipeline": 3}));
    let result = run_well(
        &client,
        &phase(json!({"operation_count": null, "duration_seconds": 0.2})),
    );
    assert!(result.duration_seconds >= 0.2 && result.operations > 0);
    let spanned = (result.end_ns - result.start_ns) as f64 * 1e-9;
    assert!((spanned - result.duration_seconds).abs() < 1e-6);
}

/// A server that answers only when `depth` requests are there proves that so many are sent without an answer.
#[test]
fn a_closed_loop_keeps_the_pipeline_full() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let depth = 16;
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let request = "get user00000000000000000000\r\n".len();
        let mut requests = vec![0; request * depth];
        while stream.read_exact(&mut requests).is_ok() {
            stream
                .write_all(&b"END\r\n".repeat(depth))
                .expect("a reader");
        }
    });
    let client = client(port, json!({"connections": 1, "pipeline": depth}));
    let reads = json!({"operations": {"read": 1.0}, "operation_count": 160});
    assert_eq!(run_well(&client, &phase(reads)).misses, 160);
}

#[test]
fn a_stopped_phase_reports_what_it_did() {
    let toy = Toy::start(Behaviour::default());
    let client = client(toy.port, json!({}));
    client
        .start_phase(&phase(json!({"operation_count": 1_000_000_000})))
        .expect("a phase");
    while client
        .poll()
        .iter()
        .all(|interval| metric(interval, "load_operations_total") == Some(0.0))
    {
        assert!(!client.wait(Duration::from_millis(10)));
    }
    client.stop_phase();
    let result = client.phase_result().expect("it has ended");
    assert!(result.operations > 0 && result.failed.is_none() && result.wrong_values == 0);
    run_well(&client, &preload(50));
}

#[test]
fn a_closed_client_says_so() {
    let toy = Toy::start(Behaviour::default());
    let client = client(toy.port, json!({}));
    assert!(client.phase_result().is_err() && client.wait(PATIENCE));
    client
        .start_phase(&phase(json!({"operation_count": 1_000_000_000})))
        .expect("a phase");
    client.close();
    assert!(client.phase_result().is_ok());
    let message = client
        .start_phase(&phase(json!({})))
        .expect_err("closed")
        .to_string();
    assert_eq!(message, "the load client is closed");
}

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::super::spec::{Measured, Quantity};
use super::*;
use crate::Status;
use crate::readers::tests::sample;

const OUTLET_4: &str = "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.4";
const ENERGY_4: &str = "1.3.6.1.4.1.318.1.1.26.9.4.3.1.11.4";

/// A power strip on the loopback: answers each request with whatever datagrams `respond` makes of it, until dropped.
struct Agent {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    fn start(respond: impl Fn(Message) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let port = socket.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !stopped.load(Ordering::Relaxed) {
                if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    let request = decode(&buffer[..length]).unwrap();
                    assert_eq!(request.kind, Kind::Get);
                    for answer in respond(request) {
                        socket.send_to(&answer, from).unwrap();
                    }
                }
            }
        });
        Self {
            port,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

fn answer(request: Message, values: Vec<Value>) -> Message {
    let names = request.bindings.into_iter().map(|(name, _)| name);
    Message {
        kind: Kind::Response,
        bindings: names.zip(values).collect(),
        ..request
    }
}

fn reading(oid: &str, domain: &str, quantity: Quantity, scale: f64) -> StripReading {
    StripReading {
        oid: oid.parse().unwrap(),
        measured: Measured {
            domain: domain.to_owned(),
            quantity,
            scale,
        },
    }
}

fn watts() -> Vec<StripReading> {
    vec![reading(OUTLET_4, "outlet-4", Quantity::Watts, 1.0)]
}

fn strip(port: u16, readings: &[StripReading], timeout_seconds: f64) -> Box<dyn Reader> {
    build(&StripSpec {
        address: "127.0.0.1".to_owned(),
        port,
        community: "public".to_owned(),
        readings: readings.to_vec(),
        interval_seconds: 60.0,
        timeout_seconds,
    })
}

const COLUMN: &str = r#"power_watts{domain="outlet-4",meter="snmp"}"#;
/// Long enough for any machine; where it is waited for, the test is about waiting.
const PATIENT: f64 = 30.0;

#[test]
fn outlets_are_asked_all_at_once_and_scaled() {
    let agent = Agent::start(|request| {
        assert_eq!(request.community, b"public");
        let values = vec![
            Value::Integer(613),
            Value::Counter32(7),
            Value::Text(b" 94.5 ".to_vec()),
        ];
        vec![encode(&answer(request, values))]
    });
    let readings = [
        reading(OUTLET_4, "strip", Quantity::Watts, 10.0),
        reading(ENERGY_4, "outlet-4", Quantity::Joules, 360_000.0),
        reading("1.3.6.1.4.1.1.5", "outlet-5", Quantity::Watts, 1.0),
    ];
    let mut reader = strip(agent.port, &readings, PATIENT);
    let row = sample(&mut *reader);
    assert_eq!(
        row.get(r#"power_watts{domain="strip",meter="snmp"}"#),
        6130.0
    );
    assert_eq!(
        row.get(r#"power_watts{domain="outlet-5",meter="snmp"}"#),
        94.5
    );
    assert_eq!(
        row.get(r#"energy_joules_total{domain="outlet-4",meter="snmp"}"#),
        0.0
    );
    let probe = reader.probes().remove(0);
    assert_eq!(
        (probe.status, probe.name.as_str()),
        (Status::Ok, "power:snmp:127.0.0.1")
    );
    assert!(probe.reason.contains("read every 60 s"), "{}", probe.reason);
}

#[test]
fn only_the_answer_to_the_request_counts() {
    let agent = Agent::start(|request| {
        let late = Message {
            request_id: request.request_id.wrapping_sub(1),
            ..answer(request.clone(), vec![Value::Integer(1)])
        };
        let own = Message {
            kind: Kind::Get,
            ..answer(request.clone(), vec![Value::Integer(2)])
        };
        let right = encode(&answer(request, vec![Value::Gauge32(250)]));
        let cut = right[..right.len() - 1].to_vec();
        vec![
            encode(&late),
            encode(&own),
            b"hello".to_vec(),
            vec![],
            cut,
            right,
        ]
    });
    let mut reader = strip(agent.port, &watts(), PATIENT);
    assert_eq!(sample(&mut *reader).get(COLUMN), 250.0);
    assert_eq!(reader.probes()[0].status, Status::Ok);
}

#[test]
fn what_a_strip_does_not_measure_is_missing_with_the_reason() {
    type Respond = fn(Message) -> Message;
    let refusals: [(Respond, &str); 5] = [
        (
            |request| answer(request, vec![Value::NoSuchInstance]),
            "7.4 is not there",
        ),
        (
            |request| answer(request, vec![Value::NoSuchObject]),
            "7.4 is not known there",
        ),
        // What strips say that do not measure outlets.
        (
            |request| answer(request, vec![Value::Integer(-1)]),
            "cannot be true",
        ),
        (
            |request| Message {
                error_status: 16,
                ..answer(request, vec![Value::Unspecified])
            },
            "authorizationError",
        ),
        (
            |request| answer(request, vec![]),
            "7.4 is not in the answer",
        ),
    ];
    for (respond, words) in refusals {
        let agent = Agent::start(move |request| vec![encode(&respond(request))]);
        let readings = watts();
        let mut reader = strip(agent.port, &readings, PATIENT);
        let probe = reader.probes().remove(0);
        assert_eq!(probe.status, Status::Missing);
        assert!(probe.reason.contains(words), "{words}: {}", probe.reason);
        assert_eq!(probe.columns, [COLUMN]);
        assert!(sample(&mut *reader).0.is_empty());
    }
}

#[test]
fn a_strip_that_does_not_answer_says_what_to_check() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let reader = strip(port, &watts(), 0.02);
    let reason = reader.probes().remove(0).reason;
    assert!(
        reason.contains(&format!(
            "127.0.0.1 port {port} did not answer within 0.02 s"
        )),
        "{reason}"
    );
    drop(silent);
    let reader = strip(port, &watts(), PATIENT);
    let reason = reader.probes().remove(0).reason;
    assert!(reason.contains("cannot reach"), "{reason}");
}

#[test]
fn requests_of_two_runs_have_different_numbers_none_of_them_negative() {
    for (now, number) in [
        (0, 0),
        (1023, 0),
        (1024, 1),
        (5 << 10, 5),
        ((1 << 41) - 1, i32::MAX),
        (1 << 41, 0),
        ((1 << 42) + (7 << 10), 7),
        (u64::MAX, i32::MAX),
    ] {
        assert_eq!(first_request_id(now), number, "{now}");
    }
}

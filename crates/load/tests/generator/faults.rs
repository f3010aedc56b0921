//! Servers that misbehave: each is found out, and none makes a phase hang.
use crate::toy::{Behaviour, Reply, Toy};
use crate::{PATIENCE, PROTOCOLS, client, phase, preload, run, run_well};
use load::{LoadClient, PhaseResult};
use serde_json::json;
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// Preload and then read and update, on a server whose gets find `value`.
fn with_values(value: fn(&crate::toy::Store, &[u8]) -> Option<Vec<u8>>) -> Vec<PhaseResult> {
    let run_on = |protocol: &&str| {
        let toy = Toy::start(Behaviour {
            value,
            ..Behaviour::default()
        });
        let client = client(toy.port, json!({"protocol": protocol, "multiget": 2}));
        run_well(&client, &preload(50));
        run(&client, &phase(json!({})))
    };
    PROTOCOLS.iter().map(run_on).collect()
}

fn assert_wrong(results: Vec<PhaseResult>, sentence: &str) {
    for result in results {
        assert_eq!(result.failed, None, "wrong values do not end a phase");
        assert!(result.wrong_values > 0);
        let first = result.first_wrong.expect("a sentence");
        assert!(first.starts_with("the value of key user000"), "{first}");
        assert!(first.contains(sentence), "{first}");
    }
}

#[test]
fn the_value_of_another_key_is_wrong() {
    let results = with_values(|store, key| {
        let other = store.values.keys().find(|other| *other != key)?;
        store.values.get(other)?.last().cloned()
    });
    assert_wrong(results, "is the value of the key with id");
}

#[test]
fn a_value_of_another_length_is_wrong() {
    let results = with_values(|store, key| Some(store.values.get(key)?.last()?[..99].to_vec()));
    assert_wrong(results, "has 99 bytes where 100 were written");
}

#[test]
fn a_torn_value_is_wrong() {
    let results = with_values(|store, key| {
        let history = store.values.get(key)?;
        let [.., older, newer] = history.as_slice() else {
            return history.last().cloned();
        };
        Some([&newer[..50], &older[50..]].concat())
    });
    assert_wrong(results, "is torn: from byte 5");
}

#[test]
fn a_stale_value_is_wrong() {
    let results = with_values(|store, key| store.values.get(key)?.first().cloned());
    assert_wrong(results, "is stale: version 1, though version");
}

#[test]
fn a_value_from_another_run_is_wrong() {
    for protocol in PROTOCOLS {
        let toy = Toy::start(Behaviour::default());
        let earlier = client(toy.port, json!({"protocol": protocol}));
        run_well(&earlier, &preload(50));
        let later = client(toy.port, json!({"protocol": protocol}));
        let result = run(&later, &phase(json!({"operations": {"read": 1.0}})));
        assert_eq!(result.wrong_values, result.hits);
        assert!(
            result
                .first_wrong
                .expect("a sentence")
                .contains("from another run?")
        );
    }
}

#[test]
fn an_answer_for_a_key_that_was_not_asked_for_is_wrong() {
    fn disguise(_: usize, reply: Vec<u8>) -> Reply {
        let text = String::from_utf8_lossy(&reply);
        if text.starts_with("VALUE user0") {
            let mut reply = reply;
            reply[6..10].copy_from_slice(b"loser"[..4].as_ref());
            return Reply::Send(reply);
        }
        Reply::Send(reply)
    }
    let toy = Toy::start(Behaviour {
        reply: disguise,
        ..Behaviour::default()
    });
    let client = client(toy.port, json!({}));
    run_well(&client, &preload(50));
    let result = run(&client, &phase(json!({})));
    let first = result.first_wrong.expect("a sentence");
    assert!(
        first.contains("was answered with key \"lose0000"),
        "{first}"
    );
    assert!(first.ends_with("which was not asked for"), "{first}");
}

#[test]
fn refusals_are_errors_and_do_not_end_the_phase() {
    let refuse: [fn(usize, Vec<u8>) -> Reply; 3] = [
        |number, reply| {
            refused(
                number,
                reply,
                b"SERVER_ERROR out of memory storing object\r\n",
            )
        },
        |number, reply| {
            refused(
                number,
                reply,
                b"SERVER_ERROR out of memory storing object\r\n",
            )
        },
        |number, reply| {
            refused(
                number,
                reply,
                b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
            )
        },
    ];
    fn refused(number: usize, reply: Vec<u8>, error: &[u8]) -> Reply {
        Reply::Send(if number % 10 == 9 {
            error.to_vec()
        } else {
            reply
        })
    }
    for (protocol, reply) in PROTOCOLS.into_iter().zip(refuse) {
        let toy = Toy::start(Behaviour {
            reply,
            ..Behaviour::default()
        });
        let client = client(toy.port, json!({"protocol": protocol, "pipeline": 4}));
        let mix = json!({"operations": {"read": 0.5, "insert": 0.2, "read_modify_write": 0.3}});
        let result = run(&client, &phase(mix));
        assert_eq!(result.failed, None);
        assert_eq!(result.wrong_values, 0, "{:?}", result.first_wrong);
        assert_eq!(result.operations + result.errors, 1000);
        assert!(result.errors >= 100, "{}", result.errors);
        let first = result.first_error.expect("a sentence");
        assert!(
            first.contains(" was answered with \"") && first.contains("mem"),
            "{first}"
        );
    }
}

/// How a phase ends on a server that does this to the replies.
fn failure(protocol: &str, reply: fn(usize, Vec<u8>) -> Reply) -> (PhaseResult, String) {
    failure_within(60.0, protocol, reply)
}

fn failure_within(
    stall_timeout_seconds: f64,
    protocol: &str,
    reply: fn(usize, Vec<u8>) -> Reply,
) -> (PhaseResult, String) {
    let toy = Toy::start(Behaviour {
        reply,
        ..Behaviour::default()
    });
    let changes = json!({
        "protocol": protocol, "connections": 2, "stall_timeout_seconds": stall_timeout_seconds,
    });
    let client = client(toy.port, changes);
    let result = run(&client, &phase(json!({"operation_count": 100_000_000})));
    let failed = result.failed.clone().expect("a reason");
    assert!(
        failed.contains("connection 0") || failed.contains("connection 1"),
        "{failed}"
    );
    (result, failed)
}

#[test]
fn a_connection_that_closes_ends_the_phase() {
    for protocol in PROTOCOLS {
        let (result, why) = failure(protocol, |number, reply| match number {
            ..200 => Reply::Send(reply),
            _ => Reply::SendAndClose(Vec::new()),
        });
        assert!(why.starts_with("the server closed connection"), "{why}");
        assert!(result.operations >= 199, "what was done before counts");
    }
}

#[test]
fn a_value_that_is_cut_off_ends_the_phase() {
    for protocol in PROTOCOLS {
        let (_, why) = failure(protocol, |number, mut reply| {
            if number < 200 {
                return Reply::Send(reply);
            }
            reply.truncate(reply.len() / 2);
            Reply::SendAndClose(reply)
        });
        assert!(why.starts_with("the server closed connection"), "{why}");
    }
}

#[test]
fn a_malformed_reply_ends_the_phase() {
    for protocol in PROTOCOLS {
        let (_, why) = failure(protocol, |number, reply| match number {
            ..200 => Reply::Send(reply),
            _ => Reply::Send(b"<html>\r\n".to_vec()),
        });
        assert!(why.starts_with("the server sent an unknown"), "{why}");
        assert!(why.contains("<html>"), "{why}");
    }
}

#[test]
fn an_answer_to_something_else_ends_the_phase() {
    for (protocol, other) in PROTOCOLS
        .into_iter()
        .zip([&b"MN\r\n"[..], b"END\r\n", b"*5\r\n"])
    {
        let reply: fn(usize, Vec<u8>) -> Reply = match other {
            b"MN\r\n" => |_, _| Reply::Send(b"MN\r\n".to_vec()),
            b"END\r\n" => |_, _| Reply::Send(b"END\r\n".to_vec()),
            _ => |_, _| Reply::Send(b"*5\r\n".to_vec()),
        };
        let (_, why) = failure(protocol, reply);
        assert!(why.contains("an answer that does not belong to a"), "{why}");
    }
}

#[test]
fn bytes_that_nobody_asked_for_end_the_phase() {
    let (_, why) = failure("memcached_text", |_, reply| {
        Reply::Send([&reply, &b"END\r\n"[..]].concat())
    });
    assert!(
        why.contains("bytes that belong to no request: \"END"),
        "{why}"
    );
}

#[test]
fn an_announced_length_beyond_all_values_ends_the_phase() {
    let (_, why) = failure("memcached_meta", |_, _| {
        Reply::Send(b"VA 4000000000\r\n".to_vec())
    });
    assert!(why.contains("a reply of 4000000"), "{why}");
}

#[test]
fn a_server_that_falls_silent_ends_the_phase() {
    for protocol in PROTOCOLS {
        let (result, why) = failure_within(0.4, protocol, |number, reply| match number {
            ..200 => Reply::Send(reply),
            _ => Reply::Keep,
        });
        assert!(
            why.contains("has not answered connection") && why.contains("for 0.4 s"),
            "{why}"
        );
        assert!(result.operations <= 200);
    }
}

#[test]
fn a_server_that_falls_silent_in_a_value_ends_the_phase() {
    let (_, why) = failure_within(0.4, "memcached_text", |number, reply| match number {
        ..200 => Reply::Send(reply),
        _ => Reply::Send(reply[..reply.len() - 1].to_vec()),
    });
    assert!(why.contains("has not answered connection"), "{why}");
}

#[test]
fn a_server_that_never_reads_ends_the_phase() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let changes = json!({
        "values": {"kind": "fixed", "bytes": 8 << 20}, "stall_timeout_seconds": 0.3,
        "keys": {"count": 2, "size": {"kind": "fixed", "bytes": 24}}, "pipeline": 8,
    });
    let client = client(port, changes);
    let result = run(&client, &preload(1000));
    assert!(
        result
            .failed
            .expect("a reason")
            .contains("has not answered connection")
    );
    assert_eq!(result.operations, 0);
}

#[test]
fn a_phase_can_be_stopped_whatever_the_server_does() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let client = client(port, json!({"stall_timeout_seconds": 3600}));
    client.start_phase(&phase(json!({}))).expect("a phase");
    assert!(!client.wait(Duration::from_millis(50)));
    assert!(client.phase_result().is_err() && client.start_phase(&phase(json!({}))).is_err());
    let began = Instant::now();
    client.stop_phase();
    assert!(began.elapsed() < PATIENCE);
    let result = client.phase_result().expect("it has ended");
    assert_eq!((result.operations, result.failed), (0, None));
}

#[test]
fn a_client_goes_on_after_the_server_came_back() {
    let toy = Toy::start(Behaviour {
        reply: |number, reply| match number {
            60..65 => Reply::SendAndClose(reply),
            _ => Reply::Send(reply),
        },
        ..Behaviour::default()
    });
    let client = client(toy.port, json!({}));
    run_well(&client, &preload(50));
    assert!(run(&client, &phase(json!({}))).failed.is_some());
    let result = (0..5)
        .map(|_| run(&client, &phase(json!({}))))
        .find(|result| result.failed.is_none());
    let result = result.expect("only five replies are spoiled");
    assert_eq!((result.operations, result.wrong_values), (1000, 0));
}

#[test]
fn keys_that_run_out_end_the_phase() {
    let toy = Toy::start(Behaviour::default());
    let short = json!({"keys": {"count": 50, "size": {"kind": "fixed", "bytes": 6}}});
    let client = client(toy.port, short);
    let result = run(&client, &phase(json!({"operations": {"insert": 1.0}})));
    let why = result.failed.expect("a reason");
    assert!(
        why.starts_with("there are only 100 different keys of this size"),
        "{why}"
    );
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    drop(listener);
    let config = json!({
        "target": {"kind": "tcp", "host": "127.0.0.1", "port": port}, "protocol": "resp", "connections": 1, "seed": 1,
        "keys": {"count": 5, "size": {"kind": "fixed", "bytes": 24}}, "values": {"kind": "fixed", "bytes": 1},
    });
    let message = LoadClient::new(&config.to_string())
        .expect_err("nobody there")
        .to_string();
    assert!(
        message.starts_with(&format!("cannot connect to 127.0.0.1:{port}: ")),
        "{message}"
    );
    let message =
        LoadClient::new(&crate::with(config.clone(), json!({"cores": [100_000]})).to_string());
    let message = message.expect_err("no such core").to_string();
    assert!(
        message.starts_with("core 100000 is not there or not allowed"),
        "{message}"
    );
    let keys = json!({"keys": {"count": 1_u64 << 40, "size": {"kind": "fixed", "bytes": 24}}});
    let message = LoadClient::new(&crate::with(config, keys).to_string());
    let message = message.expect_err("too many to remember").to_string();
    assert!(
        message.starts_with("to verify 1099511627776 keys takes"),
        "{message}"
    );
}

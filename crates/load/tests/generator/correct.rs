//! A correct server: everything adds up, and nothing is called wrong.
use crate::toy::{Behaviour, Reply, Toy};
use crate::{PROTOCOLS, client, phase, preload, run, run_well};
use load::{NullResponder, Operation, PhaseResult};
use serde_json::json;
use std::collections::HashSet;

/// Counts agree with each other and with the histograms.
fn check_sums(result: &PhaseResult) {
    let sum = |count: fn(&load::OperationCounts) -> u64| -> u64 {
        result.per_operation.values().map(count).sum()
    };
    assert_eq!(sum(|counts| counts.count), result.operations);
    assert_eq!(sum(|counts| counts.errors), result.errors);
    assert_eq!(sum(|counts| counts.hits), result.hits);
    assert_eq!(sum(|counts| counts.misses), result.misses);
    for (operation, counts) in result
        .per_operation
        .iter()
        .filter(|(_, counts)| counts.count > 0)
    {
        for kind in ["response", "service"] {
            let found = result
                .histograms
                .iter()
                .find(|histogram| histogram.operation == *operation && histogram.kind == kind)
                .expect("a histogram of every operation");
            assert_eq!(found.count.iter().sum::<u64>(), counts.count);
            assert!(found.mean_seconds > 0.0 && found.mean_seconds <= found.max_seconds);
        }
    }
    assert!(result.bytes_sent > 0 && result.bytes_received > 0);
    assert!((0.0..=1.0).contains(&result.generator_idle_ratio));
    assert!(result.generator_cpu_seconds > 0.0 && result.start_ns < result.end_ns);
}

#[test]
fn every_protocol_reads_what_it_wrote() {
    for protocol in PROTOCOLS {
        for (pipeline, multiget) in [(1, 1), (8, 1), (1, 5), (8, 5)] {
            let toy = Toy::start(Behaviour::default());
            let depth = json!({"protocol": protocol, "pipeline": pipeline, "multiget": multiget});
            let client = client(toy.port, depth);
            let loaded = run_well(&client, &preload(50));
            assert_eq!((loaded.operations, loaded.hits, loaded.misses), (50, 0, 0));
            assert_eq!(toy.store().values.len(), 50);
            let mix = json!({"operations": {"read": 0.4, "update": 0.3, "read_modify_write": 0.3}});
            let result = run_well(&client, &phase(mix));
            check_sums(&result);
            assert_eq!(result.operations, 1000);
            assert_eq!(result.misses, 0);
            for (operation, counts) in &result.per_operation {
                let keys = match operation.name() {
                    "read" => multiget,
                    "update" => 0,
                    _ => 1,
                };
                assert_eq!(counts.hits, keys * counts.count, "{protocol} {operation}");
            }
        }
    }
}

#[test]
fn every_set_has_the_flags_and_the_expiry_that_were_asked_for() {
    let words = |words: &[&str]| -> HashSet<Vec<Vec<u8>>> {
        [words.iter().map(|word| word.as_bytes().to_vec()).collect()].into()
    };
    for (protocol, flags, expire_seconds, expected) in [
        ("memcached_text", 0, 0, &["0", "0"][..]),
        ("memcached_text", 7, 60, &["7", "60"]),
        ("memcached_meta", 0, 0, &[]),
        ("memcached_meta", 7, 60, &["F7", "T60"]),
        ("resp", 0, 0, &[]),
        ("resp", 0, 60, &["EX", "60"]),
    ] {
        let toy = Toy::start(Behaviour::default());
        toy.store().told_flags = flags;
        let client = client(
            toy.port,
            json!({
                "protocol": protocol, "flags": flags, "expire_seconds": expire_seconds, "pipeline": 3,
            }),
        );
        run_well(&client, &preload(50));
        let mix = json!({"operations": {"read": 0.4, "update": 0.3, "read_modify_write": 0.3}});
        let result = run_well(&client, &phase(mix));
        assert_eq!((result.operations, result.misses), (1000, 0));
        assert_eq!(toy.store().attributes, words(expected), "{protocol}");
    }
}

#[test]
fn flags_that_do_not_come_back_are_wrong() {
    let toy = Toy::start(Behaviour::default());
    let client = client(toy.port, json!({"flags": 7}));
    run_well(&client, &preload(50));
    toy.store().told_flags = 6;
    let result = run(&client, &phase(json!({"operations": {"read": 1.0}})));
    assert_eq!(result.wrong_values, 1000);
    let wrong = result.first_wrong.expect("what is wrong");
    assert!(
        wrong.ends_with("has the flags 6 where 7 were written"),
        "{wrong}"
    );
}

#[test]
fn an_answer_with_wrong_flags_and_a_wrong_value_is_one_wrong_answer() {
    let toy = Toy::start(Behaviour {
        value: |_, _| Some(b"nonsense".to_vec()),
        ..Behaviour::default()
    });
    toy.store().told_flags = 6;
    let client = client(toy.port, json!({"flags": 7}));
    let result = run(&client, &phase(json!({"operations": {"read": 1.0}})));
    assert_eq!((result.hits, result.wrong_values), (1000, 1000));
}

#[test]
fn what_has_no_expiry_is_refused_where_one_is_asked_for() {
    let toy = Toy::start(Behaviour::default());
    let client = client(toy.port, json!({"protocol": "resp", "expire_seconds": 60}));
    let error = client
        .start_phase(&phase(json!({"operations": {"lpush": 1.0}})))
        .expect_err("lists do not expire");
    assert_eq!(
        error.to_string(),
        "phase test: expire_seconds must be 0, as lpush has none"
    );
}

#[test]
fn values_of_every_size_are_read_back_however_they_arrive() {
    for protocol in PROTOCOLS {
        for (bytes, keys, operations) in [
            (0, 50, 500),
            (7, 50, 500),
            (16, 50, 500),
            (40_000, 20, 200),
            (3 << 20, 3, 30),
        ] {
            for in_pieces in [false, true] {
                let mut behaviour = Behaviour::default();
                if in_pieces {
                    // Short replies byte by byte, so that every one is cut everywhere.
                    behaviour.reply = |_, reply| {
                        let piece = (reply.len() / 300).max(1);
                        Reply::SendInPieces(reply, piece)
                    };
                }
                let toy = Toy::start(behaviour);
                let sizes = json!({
                    "protocol": protocol, "pipeline": 3, "multiget": 2,
                    "keys": {"count": keys, "size": {"kind": "fixed", "bytes": 24}},
                    "values": {"kind": "fixed", "bytes": bytes},
                });
                let client = client(toy.port, sizes);
                run_well(&client, &preload(keys));
                let result = run_well(&client, &phase(json!({"operation_count": operations})));
                assert_eq!((result.operations, result.misses), (operations, 0));
            }
        }
    }
}

#[test]
fn etc_sizes_are_read_back() {
    let toy = Toy::start(Behaviour::default());
    let etc = json!({"keys": {"count": 2000, "size": {"kind": "etc"}}, "values": {"kind": "etc"}});
    let client = client(toy.port, etc);
    run_well(&client, &preload(2000));
    let result = run_well(&client, &phase(json!({"operation_count": 5000})));
    assert_eq!(result.misses, 0);
    let store = toy.store();
    let sizes: std::collections::HashSet<usize> = store.values.keys().map(Vec::len).collect();
    assert!(sizes.len() > 20, "keys have {} sizes", sizes.len());
}

#[test]
fn redis_structures_are_used() {
    let toy = Toy::start(Behaviour::default());
    let client = client(toy.port, json!({"protocol": "resp", "pipeline": 4}));
    let stage = |operation: &str| {
        let result = run_well(&client, &phase(json!({"operations": {operation: 1.0}})));
        check_sums(&result);
        assert_eq!(result.operations, 1000);
        (result.hits, result.misses)
    };
    assert_eq!(stage("lpop"), (0, 1000));
    assert_eq!(stage("lpush"), (0, 0));
    let (hits, misses) = stage("lpop");
    assert!(hits > 500 && hits + misses == 1000);
    assert_eq!(stage("zrange"), (0, 1000));
    assert_eq!(stage("zadd"), (0, 0));
    assert_eq!(stage("zrange"), (1000, 0));
    assert_eq!(stage("sadd"), (0, 0));
}

#[test]
fn misses_are_counted_and_never_wrong() {
    let forgetful = Behaviour {
        // Forgets half of all keys, and remembers them again.
        value: |store, key| {
            let history = store.values.get(key)?;
            (history.len() % 2 == 0).then(|| history.last().cloned())?
        },
        ..Behaviour::default()
    };
    for protocol in PROTOCOLS {
        for multiget in [1, 4] {
            let toy = Toy::start(forgetful);
            let client = client(
                toy.port,
                json!({"protocol": protocol, "multiget": multiget}),
            );
            run_well(&client, &preload(50));
            let result = run_well(&client, &phase(json!({})));
            let reads = &result.per_operation[&Operation::Read];
            assert_eq!(reads.hits + reads.misses, reads.count * multiget);
            assert!(reads.hits > 0 && reads.misses > 0);
        }
    }
}

#[test]
fn inserts_extend_the_key_space_and_are_read() {
    let toy = Toy::start(Behaviour::default());
    let client = client(toy.port, json!({"pipeline": 4}));
    run_well(&client, &preload(50));
    let newest = json!({
        "operations": {"read": 0.5, "insert": 0.5}, "distribution": {"kind": "latest", "theta": 0.99},
    });
    let result = run_well(&client, &phase(newest));
    let inserts = &result.per_operation[&Operation::Insert];
    assert_eq!(toy.store().values.len() as u64, 50 + inserts.count);
    assert_eq!(result.misses, 0, "only keys that are there are read");
    // A preload goes over the same keys again.
    run_well(&client, &preload(50 + inserts.count));
    assert_eq!(toy.store().values.len() as u64, 50 + inserts.count);
}

#[test]
fn workers_on_several_cores_share_the_work() {
    let cores = net::affinity::allowed_cores();
    let cores = &cores[..cores.len().min(3)];
    let toy = Toy::start(Behaviour::default());
    let client = client(
        toy.port,
        json!({"cores": cores, "connections": 7, "pipeline": 2}),
    );
    run_well(&client, &preload(50));
    assert_eq!(toy.store().values.len(), 50);
    let open = json!({"loop": {"kind": "open", "arrivals": "constant", "rate_per_second": 20_000}});
    for changes in [json!({}), open] {
        let result = run_well(&client, &phase(changes));
        check_sums(&result);
        assert_eq!(result.operations, 1000);
    }
}

#[test]
fn the_same_seed_asks_the_same_questions() {
    let histories = || {
        let toy = Toy::start(Behaviour::default());
        let client = client(toy.port, json!({"connections": 1}));
        run_well(&client, &preload(50));
        run_well(
            &client,
            &phase(json!({"distribution": {"kind": "zipfian", "theta": 0.99}})),
        );
        toy.store().values.clone()
    };
    assert!(histories() == histories());
}

#[test]
fn without_verification_only_hits_are_counted() {
    let toy = Toy::start(Behaviour {
        value: |_, _| Some(b"nonsense".to_vec()),
        ..Behaviour::default()
    });
    let unverified = client(toy.port, json!({"verify": false}));
    let result = run_well(&unverified, &phase(json!({"operations": {"read": 1.0}})));
    assert_eq!((result.hits, result.misses), (1000, 0));
    let verified = client(toy.port, json!({}));
    let result = run(&verified, &phase(json!({"operations": {"read": 1.0}})));
    assert_eq!((result.hits, result.wrong_values), (1000, 1000));
}

#[test]
fn the_null_responder_answers_everything() {
    let socket = std::env::temp_dir().join(format!("load-null-test-{}.sock", std::process::id()));
    let endpoints = [
        json!({"kind": "tcp", "host": "127.0.0.1", "port": 0}),
        json!({"kind": "unix", "path": socket}),
    ];
    for protocol in PROTOCOLS {
        for endpoint in &endpoints {
            let mut responder =
                NullResponder::new(protocol, &endpoint.to_string(), None).expect("a responder");
            let target: serde_json::Value =
                serde_json::from_str(&responder.endpoint()).expect("JSON");
            let changes = json!({
                "target": target, "protocol": protocol, "pipeline": 16, "multiget": 3,
                "values": {"kind": "fixed", "bytes": 300_000},
            });
            let client = client(0, changes);
            let result = run_well(&client, &phase(json!({"operation_count": 500})));
            check_sums(&result);
            let reads = &result.per_operation[&Operation::Read];
            assert_eq!((reads.hits, reads.misses), (0, 3 * reads.count));
            client.close();
            responder.stop();
            client.close();
        }
    }
    assert!(!socket.exists());
}

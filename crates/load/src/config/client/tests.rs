use super::*;
use serde_json::{Value, json};

pub(crate) fn valid() -> Value {
    json!({
        "target": {"kind": "tcp", "host": "127.0.0.1", "port": 11211},
        "protocol": "memcached_text",
        "connections": 50, "cores": [1], "pipeline": 1, "multiget": 1, "flags": 0, "expire_seconds": 0, "seed": 42, "verify": true,
        "keys": {"count": 100_000, "size": {"kind": "fixed", "bytes": 24}},
        "values": {"kind": "fixed", "bytes": 1000},
    })
}

#[test]
fn the_documented_form_is_taken() {
    for (pointer, value) in [
        (
            "/target",
            json!({"kind": "unix", "path": "/run/cache.sock"}),
        ),
        ("/protocol", json!("memcached_meta")),
        ("/protocol", json!("resp")),
        ("/keys/size", json!({"kind": "etc"})),
        ("/values", json!({"kind": "etc"})),
        ("/values", json!({"kind": "sys"})),
        ("/cores", json!([])),
        ("/flags", json!(u32::MAX)),
        ("/expire_seconds", json!(30 * 24 * 3600)),
    ] {
        let mut config = valid();
        *config.pointer_mut(pointer).expect("a field") = value;
        ClientConfig::from_json(&config.to_string()).expect("valid");
    }
}

#[test]
fn every_mistake_is_named() {
    for (pointer, value, sentence) in [
        (
            "/connections",
            json!(0),
            "connections must be between 1 and 100000, not 0",
        ),
        (
            "/pipeline",
            json!(0),
            "pipeline must be between 1 and 65536, not 0",
        ),
        ("/pipeline", json!(30_000), "lower connections or pipeline"),
        (
            "/multiget",
            json!(2000),
            "multiget must be between 1 and 1024, not 2000",
        ),
        ("/cores", json!([1, 1]), "cores [1, 1] names a core twice"),
        ("/keys/count", json!(0), "keys.count must be between 1 and"),
        (
            "/expire_seconds",
            json!(30 * 24 * 3600 + 1),
            "expire_seconds must be between 0 and 2592000, not 2592001",
        ),
        ("/flags", json!(1_u64 << 32), "invalid value"),
        ("/keys/size/bytes", json!("long"), "invalid type"),
        (
            "/values/bytes",
            json!(99_999_999),
            "values.bytes must be between 0 and 33554432",
        ),
        (
            "/values",
            json!({"kind": "etc", "bytes": 1}),
            "unknown field `bytes`",
        ),
        (
            "/protocol",
            json!("http"),
            "unknown variant `http`, expected one of `memcached_text`",
        ),
        (
            "/target",
            json!({"kind": "tcp", "host": "x", "port": 1, "path": "/"}),
            "unknown field `path`",
        ),
    ] {
        let mut config = valid();
        *config.pointer_mut(pointer).expect("a field") = value;
        let message = ClientConfig::from_json(&config.to_string())
            .expect_err(sentence)
            .to_string();
        assert!(message.contains(sentence), "{message}");
    }
    let xdp = |source: &str, mac: &str| {
        json!({
            "kind": "xdp", "interface": "eth0", "source": source, "destination": "198.18.0.2",
            "destination_mac": mac, "ports": [11211],
        })
    };
    let mac = "02:00:00:00:00:fe";
    for (target, sentence) in [
        (
            xdp("198.18.0.1:40000", "02:00:00:00:00"),
            "a MAC address is like",
        ),
        (
            xdp("198.18.0.1:40000", "02:00:00:00:00:+1"),
            "a MAC address is like",
        ),
        (xdp("[fd00::1]:40000", mac), "must be of one version of IP"),
        (
            xdp("198.18.0.1:65530", mac),
            "needs a port with 49 ports behind it",
        ),
        (
            xdp("198.18.0.1:0", mac),
            "needs a port with 49 ports behind it",
        ),
    ] {
        let mut config = valid();
        config["target"] = target;
        let message = ClientConfig::from_json(&config.to_string()).expect_err(sentence);
        assert!(message.to_string().contains(sentence), "{message}");
    }
    let mut config = valid();
    config["target"] = xdp("198.18.0.1:40000", mac);
    ClientConfig::from_json(&config.to_string()).expect("valid");
    config["target"]["ports"] = json!([1, 2, 3]);
    config["connections"] = json!(5);
    config["cores"] = json!([0, 1]);
    let message = ClientConfig::from_json(&config.to_string()).expect_err("too few ways");
    assert!(
        message
            .to_string()
            .contains("ports must be between 1 and 2, not 3"),
        "{message}"
    );
    let mut config = valid();
    config["conections"] = json!(1);
    let message = ClientConfig::from_json(&config.to_string())
        .expect_err("a typo")
        .to_string();
    assert!(
        message.contains("unknown field `conections`, expected one of"),
        "{message}"
    );
}

#[test]
fn redis_has_no_flags() {
    let mut config = valid();
    config["protocol"] = json!("resp");
    config["expire_seconds"] = json!(60);
    ClientConfig::from_json(&config.to_string()).expect("it has expiry");
    config["flags"] = json!(7);
    let error = ClientConfig::from_json(&config.to_string()).expect_err("flags");
    assert_eq!(error.to_string(), "flags must be 0, not 7: Redis has none");
}

//! Instructions that two builds of `rackscope-cached` execute for a request, the kernel's left out, as callgrind counts them:
//! `cargo bench -p cached --bench instructions -- NEW OLD [NAME]`
//! (two programs; a part of the names of the settings to count).
//!
//! One worker, epoll, one connection. Each program runs twice, once with more requests; the difference leaves out start
//! and filling. Counts hardly differ from run to run, so they show what rates cannot.

#[path = "support/arguments.rs"]
mod arguments;
#[path = "support/phase.rs"]
mod phase;
#[path = "support/running.rs"]
mod running;

use arguments::arguments;
use load::LoadClient;
use phase::{KEYS, Until, load_all, run_phase};
use running::Running;
use serde_json::json;
use std::error::Error;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

struct Setting {
    name: &'static str,
    protocol: &'static str,
    /// Of 100 requests, how many write.
    updates: f64,
    /// Requests outstanding.
    depth: usize,
    /// Keys of a read request.
    keys: usize,
    value_bytes: usize,
    /// Keys that are asked for, at most.
    keys_max: u64,
}

const GET: Setting = Setting {
    name: "get",
    protocol: "memcached_text",
    updates: 0.0,
    depth: 1,
    keys: 1,
    value_bytes: 32,
    keys_max: KEYS,
};

const SETTINGS: [Setting; 9] = [
    GET,
    Setting {
        name: "set",
        updates: 100.0,
        ..GET
    },
    Setting {
        name: "get, 16 deep",
        depth: 16,
        ..GET
    },
    Setting {
        name: "half, 16 deep",
        depth: 16,
        updates: 50.0,
        ..GET
    },
    Setting {
        name: "get, 50 deep",
        depth: 50,
        ..GET
    },
    Setting {
        name: "mg, 16 deep",
        protocol: "memcached_meta",
        depth: 16,
        ..GET
    },
    Setting {
        name: "reads of 100 keys",
        keys: 100,
        ..GET
    },
    Setting {
        name: "large get",
        value_bytes: 25_000,
        keys_max: 4000,
        ..GET
    },
    Setting {
        name: "large set",
        updates: 100.0,
        value_bytes: 25_000,
        keys_max: 4000,
        ..GET
    },
];

/// Requests of the shorter run; the longer one makes three times as many.
const REQUESTS: u64 = 8_000;

/// Instructions of a server that is started, filled, asked `requests` times and ended.
fn executed(program: &str, setting: &Setting, requests: u64) -> Result<f64, Box<dyn Error>> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let counts = std::env::temp_dir().join(format!("callgrind-{port}"));
    let server = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .args([program, "-l", "127.0.0.1", "-p", &port.to_string()])
        .args(["-U", "0", "-t", "1", "-m", "512", "--transport", "epoll"])
        .stderr(Stdio::null())
        .spawn()?;
    let mut server = Running(server);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if let Some(status) = server.0.try_wait()? {
            return Err(format!("{program} under valgrind ended: {status}").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut client = LoadClient::new(
        &json!({
            "target": {"kind": "tcp", "host": "127.0.0.1", "port": port}, "protocol": setting.protocol,
            "connections": 1, "cores": [0], "pipeline": setting.depth,
            "multiget": setting.keys, "seed": 1, "verify": true,
            "keys": {"count": setting.keys_max, "size": {"kind": "fixed", "bytes": 24}},
            "values": {"kind": "fixed", "bytes": setting.value_bytes},
        })
        .to_string(),
    )?;
    load_all(&mut client, setting.keys_max)?;
    let update = setting.updates / 100.0;
    run_phase(
        &mut client,
        &json!({"read": 1.0 - update, "update": update}),
        &json!({"kind": "zipfian", "theta": 0.99, "scrambled": true}),
        Until::Operations(requests),
    )?;
    drop(client);
    let pid = rustix::process::Pid::from_child(&server.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    server.0.wait()?;
    let total = total(&counts);
    std::fs::remove_file(&counts)?;
    total
}

/// What callgrind's file says of the whole run.
fn total(counts: &Path) -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string(counts)?;
    let mut totals = text
        .lines()
        .filter_map(|line| line.strip_prefix("totals: "));
    Ok(totals
        .next()
        .ok_or("callgrind wrote no totals")?
        .trim()
        .parse()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments();
    let [new, old, rest @ ..] = &arguments[..] else {
        return Err("give the paths of a new and of an old rackscope-cached".into());
    };
    let name = rest.first().map_or("", String::as_str);
    for setting in SETTINGS.iter().filter(|one| one.name.contains(name)) {
        let of_a_request = |program: &str| -> Result<f64, Box<dyn Error>> {
            let requests = REQUESTS / setting.keys as u64;
            let few = executed(program, setting, requests)?;
            let many = executed(program, setting, 3 * requests)?;
            Ok((many - few) / (2 * requests) as f64)
        };
        let (new, old) = (of_a_request(new)?, of_a_request(old)?);
        println!(
            "{:18} {new:8.0} instructions a request, {old:8.0} before: {:.3}",
            setting.name,
            new / old
        );
    }
    Ok(())
}

//! What 10 million items of 32 + 64 bytes take of memory, in `rackscope-cached` and in memcached:
//! `cargo bench -p cached --bench memory -- CACHED MEMCACHED [ITEMS]`.
//! Each is given room for all of them, filled, and asked how many it holds; what it takes is its resident size in
//! `/proc/PID/status`.

#[path = "support/arguments.rs"]
mod arguments;
#[path = "support/running.rs"]
mod running;

use arguments::arguments;
use load::LoadClient;
use running::Running;
use serde_json::json;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

const KEY_BYTES: usize = 32;
const VALUE_BYTES: usize = 64;

/// Items that it holds when full, and its resident bytes before and after.
fn fill(program: &str, more: &[&str], items: u64) -> Result<(u64, u64, u64), Box<dyn Error>> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let megabytes = (items * 400 / 1_000_000).max(64).to_string();
    let server = Command::new(program)
        .args(["-l", "127.0.0.1", "-U", "0", "-t", "1", "-m", &megabytes])
        .args(["-p", &port.to_string()])
        .args(more)
        .stderr(Stdio::null())
        .spawn()?;
    let server = Running(server);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let before = resident_bytes(server.0.id())?;
    let client = LoadClient::new(
        &json!({
            "target": {"kind": "tcp", "host": "127.0.0.1", "port": port}, "protocol": "memcached_text",
            "connections": 16, "cores": [0], "pipeline": 64, "multiget": 1, "seed": 1, "verify": false,
            "keys": {"count": items, "size": {"kind": "fixed", "bytes": KEY_BYTES}},
            "values": {"kind": "fixed", "bytes": VALUE_BYTES},
        })
        .to_string(),
    )?;
    client.start_phase(
        &json!({
            "name": "fill", "operations": {"insert": 1.0}, "distribution": {"kind": "sequential"},
            "loop": {"kind": "closed"}, "operation_count": items, "interval_seconds": 1.0,
        })
        .to_string(),
    )?;
    while !client.wait(Duration::from_secs(1)) {}
    if let Some(why) = client.phase_result()?.failed {
        return Err(why.into());
    }
    Ok((held(port)?, before, resident_bytes(server.0.id())?))
}

fn held(port: u16) -> Result<u64, Box<dyn Error>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"stats\r\n")?;
    for line in BufReader::new(stream).lines() {
        if let Some(count) = line?.strip_prefix("STAT curr_items ") {
            return Ok(count.parse()?);
        }
    }
    Err("the server does not say how many items it holds".into())
}

fn resident_bytes(pid: u32) -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    Ok(kilobytes.ok_or("no resident size")?.parse::<u64>()? * 1024)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments();
    let [ours, theirs, rest @ ..] = &arguments[..] else {
        return Err("give the paths of rackscope-cached and of memcached".into());
    };
    let items = rest.first().map_or(Ok(10_000_000), |text| text.parse())?;
    let root: &[&str] = if rustix::process::geteuid().is_root() {
        &["-u", "nobody"]
    } else {
        &[]
    };
    let mut resident = Vec::new();
    for (name, program, more) in [("cache", ours, &[][..]), ("memcached", theirs, root)] {
        let (held, before, after) = fill(program, more, items)?;
        println!(
            "{name:9} holds {held} of {items} items of {KEY_BYTES} + {VALUE_BYTES} bytes in {:.0} MB resident ({:.0} MB when \
             empty): {:.1} bytes an item beside key and value",
            after as f64 / 1e6,
            before as f64 / 1e6,
            (after - before) as f64 / held as f64 - (KEY_BYTES + VALUE_BYTES) as f64,
        );
        resident.push(after as f64 / held as f64);
    }
    println!(
        "an item takes {:.2} of what it takes in memcached",
        resident[0] / resident[1]
    );
    Ok(())
}

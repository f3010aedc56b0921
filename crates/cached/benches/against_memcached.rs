//! `rackscope-cached -t 1`, over epoll and over io_uring, and `memcached -t 1` side by side, in turns, on one core, under
//! YCSB-B from another:
//! `cargo bench -p cached --bench against_memcached -- CACHED MEMCACHED [SECONDS [ROUNDS [NAME]]]`
//! (two programs, in settings of connections x requests outstanding x keys of a read; how long a measurement is; how often
//! all are measured, in the order ABCCBA; a part of the names of the settings to measure).
//!
//! Beside rates it tells the server's processor time for a request: where the client is the limit, rates say nothing.

#[path = "support/arguments.rs"]
mod arguments;
#[path = "support/pairs.rs"]
mod pairs;
#[path = "support/phase.rs"]
mod phase;
#[path = "support/running.rs"]
mod running;

use arguments::arguments;
use load::LoadClient;
use pairs::{median, processor_seconds, ratio};
use phase::{KEYS, Until, load_all, run_phase};
use running::Running;
use serde_json::json;
use std::error::Error;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What is asked for.
struct Setting {
    name: &'static str,
    over_unix: bool,
    connections: usize,
    /// Requests outstanding on each.
    depth: usize,
    /// Keys of a read request; with more than one, all are reads.
    keys: usize,
    value_bytes: usize,
}

const fn setting(
    name: &'static str,
    connections: usize,
    depth: usize,
    keys: usize,
    value_bytes: usize,
) -> Setting {
    Setting {
        name,
        over_unix: false,
        connections,
        depth,
        keys,
        value_bytes,
    }
}

const SETTINGS: [Setting; 9] = [
    setting("one client", 1, 1, 1, 1000),
    setting("unpipelined", 50, 1, 1, 1000),
    setting("unpipelined, small values", 50, 1, 1, 100),
    Setting {
        over_unix: true,
        ..setting("unpipelined, unix socket", 50, 1, 1, 100)
    },
    setting("16 deep, small values", 50, 16, 1, 32),
    setting("50 deep, small values", 50, 50, 1, 32),
    setting("50 deep", 50, 50, 1, 1000),
    setting("reads of 100 keys", 50, 1, 100, 32),
    setting("large values", 50, 1, 1, 25_000),
];

const SERVER_CORE: &str = "0";
const CLIENT_CORE: usize = 1;

struct System {
    client: LoadClient,
    rates: Vec<f64>,
    /// Processor time of the server for a request, in nanoseconds.
    costs: Vec<f64>,
    server: Running,
    keys: usize,
}

impl System {
    fn start(program: &str, more: &[&str], setting: &Setting) -> Result<Self, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let socket = std::env::temp_dir().join(format!("against-memcached-{port}"));
        let mut command = Command::new("taskset");
        command.args([
            "-c",
            SERVER_CORE,
            program,
            "-l",
            "127.0.0.1",
            "-U",
            "0",
            "-t",
            "1",
            "-m",
            "4096",
        ]);
        if setting.over_unix {
            command.arg("-s").arg(&socket);
        } else {
            command.args(["-p", &port.to_string()]);
        }
        let server = Running(command.args(more).stderr(Stdio::null()).spawn()?);
        let is_ready = || match setting.over_unix {
            true => UnixStream::connect(&socket).is_ok(),
            false => TcpStream::connect(("127.0.0.1", port)).is_ok(),
        };
        while !is_ready() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let target = match setting.over_unix {
            true => json!({"kind": "unix", "path": socket}),
            false => json!({"kind": "tcp", "host": "127.0.0.1", "port": port}),
        };
        let client = LoadClient::new(
            &json!({
                "target": target, "protocol": "memcached_text",
                "connections": setting.connections, "cores": [CLIENT_CORE], "pipeline": setting.depth,
                "multiget": setting.keys, "seed": 1, "verify": true,
                "keys": {"count": KEYS, "size": {"kind": "fixed", "bytes": 24}},
                "values": {"kind": "fixed", "bytes": setting.value_bytes},
            })
            .to_string(),
        )?;
        let mut system = Self {
            client,
            rates: Vec::new(),
            costs: Vec::new(),
            server,
            keys: setting.keys,
        };
        load_all(&mut system.client, KEYS)?;
        system.measure(1.0)?;
        system.rates.clear();
        system.costs.clear();
        Ok(system)
    }

    fn measure(&mut self, seconds: f64) -> Result<(), Box<dyn Error>> {
        let zipfian = json!({"kind": "zipfian", "theta": 0.99, "scrambled": true});
        let before = processor_seconds(self.server.0.id())?;
        let operations = match self.keys {
            1 => json!({"read": 0.95, "update": 0.05}),
            _ => json!({"read": 1.0}),
        };
        let result = run_phase(
            &mut self.client,
            &operations,
            &zipfian,
            Until::Seconds(seconds),
        )?;
        let asked = match self.keys {
            1 => result.operations,
            _ => result.hits + result.misses,
        } as f64;
        self.rates.push(asked / result.duration_seconds);
        let spent = processor_seconds(self.server.0.id())? - before;
        self.costs.push(spent * 1e9 / asked);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments();
    let [ours, theirs, rest @ ..] = &arguments[..] else {
        return Err("give the paths of rackscope-cached and of memcached".into());
    };
    let seconds: f64 = rest.first().map_or(Ok(1.0), |text| text.parse())?;
    let rounds: usize = rest.get(1).map_or(Ok(4), |text| text.parse())?;
    let name = rest.get(2).map_or("", String::as_str);
    let root: &[&str] = if rustix::process::geteuid().is_root() {
        &["-u", "nobody"]
    } else {
        &[]
    };
    for setting in SETTINGS.iter().filter(|one| one.name.contains(name)) {
        let mut systems = [
            System::start(ours, &["--transport", "epoll"], setting)?,
            System::start(ours, &["--transport", "io_uring"], setting)?,
            System::start(theirs, root, setting)?,
        ];
        for round in 0..rounds {
            // ABC, then CBA: what drifts over time hits all alike.
            for place in 0..systems.len() {
                let turn = match round % 2 {
                    0 => place,
                    _ => systems.len() - 1 - place,
                };
                systems[turn].measure(seconds)?;
            }
        }
        println!(
            "{}: {} x {} x {}, {} B, {rounds} rounds of {seconds} s",
            setting.name, setting.connections, setting.depth, setting.keys, setting.value_bytes,
        );
        for (name, system) in ["epoll", "io_uring", "memcached"].iter().zip(&systems) {
            println!(
                "  {name:9} {:9.0}/s, {:6.0} ns of processor; rate {} of epoll's, {} of memcached's; processor {} of epoll's",
                median(&system.rates),
                median(&system.costs),
                ratio(&system.rates, &systems[0].rates),
                ratio(&system.rates, &systems[2].rates),
                ratio(&system.costs, &systems[0].costs),
            );
        }
    }
    Ok(())
}

//! What a request costs a server of several workers beside one of one, 16 deep on 50 connections, with keys from a uniform
//! distribution and clients that do not know whose they are:
//! `cargo bench -p cached --bench workers -- CACHED [SECONDS [ROUNDS [WORKERS [SERVER_CORES [CLIENT_CORE [BEFORE]]]]]]`
//! (how long a measurement is; how often all are measured, in the order ABCCBA; `BEFORE` is another version of the program).
//!
//! It tells the server's processor time for a request, and its ratio to that of one worker.

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
use std::process::{Command, Stdio};
use std::time::Duration;

const CONNECTIONS: usize = 50;
const DEPTH: usize = 16;
const VALUE_BYTES: usize = 32;

/// Shares of requests that are writes.
const WRITES: [f64; 2] = [0.05, 0.5];

struct System {
    name: String,
    client: LoadClient,
    server: Running,
    /// Processor time of the server for a request in nanoseconds, of each mix.
    costs: [Vec<f64>; WRITES.len()],
    rates: [Vec<f64>; WRITES.len()],
}

impl System {
    fn start(
        name: &str,
        program: &str,
        (cores, client_core): (&str, usize),
        more: &[&str],
    ) -> Result<Self, Box<dyn Error>> {
        // The workers' own ports follow the common one, and may be taken.
        let (server, port) = loop {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let common = ["-l", "127.0.0.1", "-m", "1024", "-p", &port.to_string()];
            let mut command = Command::new("taskset");
            command.args(["-c", cores, program]).args(common).args(more);
            let mut server = Running(command.stderr(Stdio::null()).spawn()?);
            while server.0.try_wait()?.is_none() && TcpStream::connect(("127.0.0.1", port)).is_err()
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            if server.0.try_wait()?.is_none() {
                break (server, port);
            }
        };
        let mut client = LoadClient::new(
            &json!({
                "target": {"kind": "tcp", "host": "127.0.0.1", "port": port}, "protocol": "memcached_text",
                "connections": CONNECTIONS, "cores": [client_core], "pipeline": DEPTH, "seed": 1, "verify": true,
                "keys": {"count": KEYS, "size": {"kind": "fixed", "bytes": 24}},
                "values": {"kind": "fixed", "bytes": VALUE_BYTES},
            })
            .to_string(),
        )?;
        load_all(&mut client, KEYS)?;
        Ok(Self {
            name: name.to_owned(),
            client,
            server,
            costs: Default::default(),
            rates: Default::default(),
        })
    }

    fn measure(&mut self, mix: usize, seconds: f64) -> Result<(), Box<dyn Error>> {
        let before = processor_seconds(self.server.0.id())?;
        let writes = WRITES[mix];
        let operations = json!({"read": 1.0 - writes, "update": writes});
        let uniform = json!({"kind": "uniform"});
        let result = run_phase(
            &mut self.client,
            &operations,
            &uniform,
            Until::Seconds(seconds),
        )?;
        let spent = processor_seconds(self.server.0.id())? - before;
        self.costs[mix].push(spent * 1e9 / result.operations as f64);
        self.rates[mix].push(result.operations as f64 / result.duration_seconds);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments();
    let [program, rest @ ..] = &arguments[..] else {
        return Err("give the path of rackscope-cached".into());
    };
    let argument =
        |index: usize, default: &'static str| rest.get(index).map_or(default, |text| text);
    let seconds: f64 = argument(0, "1").parse()?;
    let rounds: usize = argument(1, "4").parse()?;
    let workers = argument(2, "2");
    let cores = (argument(3, "0"), argument(4, "1").parse()?);
    let mut systems = vec![System::start("one worker", program, cores, &["-t", "1"])?];
    for mode in ["erew", "crew", "crcw"] {
        let options = ["-t", workers, "--access", mode, "--transport", "epoll"];
        systems.push(System::start(mode, program, cores, &options)?);
        if let Some(before) = rest.get(5) {
            systems.push(System::start(
                &format!("{mode} before"),
                before,
                cores,
                &options,
            )?);
        }
    }
    for round in 0..rounds {
        for mix in 0..WRITES.len() {
            // ABC, then CBA: what drifts over time hits all alike.
            for place in 0..systems.len() {
                let turn = match round % 2 {
                    0 => place,
                    _ => systems.len() - 1 - place,
                };
                systems[turn].measure(mix, seconds)?;
            }
        }
    }
    for (mix, writes) in WRITES.iter().enumerate() {
        println!(
            "{CONNECTIONS} x {DEPTH}, {VALUE_BYTES} B, {:.0} % writes, {workers} workers on cores {}, {rounds} rounds of {seconds} s",
            100.0 * writes,
            cores.0,
        );
        for system in &systems {
            println!(
                "  {:12} {:9.0}/s, {:5.0} ns of processor, {} of one worker's",
                system.name,
                median(&system.rates[mix]),
                median(&system.costs[mix]),
                ratio(&system.costs[mix], &systems[0].costs[mix]),
            );
        }
    }
    Ok(())
}

//! What a request costs the server beside a program that only receives and sends: on one core, in turns, under reads of
//! one key from another: `cargo bench -p cached --bench bare -- CACHED [SECONDS [ROUNDS]]`.
//!
//! That program gets the same requests in the same order, and sends replies of the same length out of one buffer. What it
//! takes is the kernel's.

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
use net::{Endpoint, Events, Interest, ListenOptions, Listener, Poller, Stream};
use pairs::{median, processor_seconds, ratio};
use phase::{KEYS, Until, load_all, run_phase};
use running::Running;
use serde_json::json;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SERVER_CORE: &str = "0";
const CLIENT_CORE: usize = 1;
const CONNECTIONS: usize = 50;
const KEY_BYTES: usize = 24;
const VALUES_BYTES: [usize; 3] = [100, 1000, 25_000];

/// What this program is called with to be that program.
const BARE: &str = "--receive-and-send";

struct System {
    server: Running,
    client: LoadClient,
    rates: Vec<f64>,
    /// Processor time of the server for a request, in nanoseconds.
    costs: Vec<f64>,
}

impl System {
    fn new(server: Running, port: u16, value_bytes: usize) -> Result<Self> {
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let client = LoadClient::new(
            &json!({
                "target": {"kind": "tcp", "host": "127.0.0.1", "port": port}, "protocol": "memcached_text",
                "connections": CONNECTIONS, "cores": [CLIENT_CORE], "pipeline": 1, "seed": 1, "verify": false,
                "keys": {"count": KEYS, "size": {"kind": "fixed", "bytes": KEY_BYTES}},
                "values": {"kind": "fixed", "bytes": value_bytes},
            })
            .to_string(),
        )?;
        Ok(Self {
            server,
            client,
            rates: Vec::new(),
            costs: Vec::new(),
        })
    }

    fn cached(program: &str, value_bytes: usize) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let (on, port_text) = (["-c", SERVER_CORE, program], port.to_string());
        let memory = ["-t", "1", "-m", "4096", "-p", &port_text];
        let mut command = Command::new("taskset");
        command.args(on).args(memory).stderr(Stdio::null());
        let server = Running(command.spawn()?);
        let mut system = Self::new(server, port, value_bytes)?;
        load_all(&mut system.client, KEYS)?;
        Ok(system)
    }

    fn bare(value_bytes: usize) -> Result<Self> {
        let this = std::env::current_exe()?;
        let server = Command::new("taskset")
            .args(["-c", SERVER_CORE])
            .arg(this)
            .args([BARE, &value_bytes.to_string()])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut server = Running(server);
        let mut port = String::new();
        let out = server.0.stdout.take().ok_or("no output")?;
        BufReader::new(out).read_line(&mut port)?;
        Self::new(server, port.trim().parse()?, value_bytes)
    }

    fn measure(&mut self, seconds: f64) -> Result<()> {
        let zipfian = json!({"kind": "zipfian", "theta": 0.99, "scrambled": true});
        let before = processor_seconds(self.server.0.id())?;
        let reads = json!({"read": 1.0});
        let result = run_phase(&mut self.client, &reads, &zipfian, Until::Seconds(seconds))?;
        if result.misses > 0 {
            return Err("a key was not found".into());
        }
        let spent = processor_seconds(self.server.0.id())? - before;
        let operations = result.operations as f64;
        self.rates.push(operations / result.duration_seconds);
        self.costs.push(spent * 1e9 / operations);
        Ok(())
    }
}

/// Receive what there is, and send a reply: one request of one key at a time is all that comes.
fn receive_and_send(value_bytes: usize) -> Result<()> {
    const KEY_AT: usize = "VALUE ".len();
    let key = "k".repeat(KEY_BYTES);
    let value = "v".repeat(value_bytes);
    let mut reply = format!("VALUE {key} 0 {value_bytes}\r\n{value}\r\nEND\r\n").into_bytes();
    let here = Endpoint::Tcp(([127, 0, 0, 1], 0).into());
    let listener = Listener::bind(&here, ListenOptions::default())?;
    if let Endpoint::Tcp(address) = listener.endpoint() {
        println!("{}", address.port());
    }
    let poller = Poller::new()?;
    let mut events = Events::with_capacity(256);
    poller.add(&listener, 0, Interest::READ)?;
    let mut streams: Vec<Option<Stream>> = vec![None];
    let mut buffer = vec![0; 64 << 10];
    loop {
        poller.wait(&mut events, None)?;
        for event in &*events {
            let token = event.token() as usize;
            let Some(stream) = &streams[token] else {
                while let Some(stream) = listener.accept()? {
                    let interest = Interest::READ.or(Interest::EDGE);
                    poller.add(&stream, streams.len() as u64, interest)?;
                    streams.push(Some(stream));
                }
                continue;
            };
            let received = stream.read(&mut buffer).unwrap_or(0);
            let Some(key) = buffer[..received].get("get ".len()..received.max(2) - 2) else {
                streams[token] = None;
                continue;
            };
            reply[KEY_AT..KEY_AT + KEY_BYTES].copy_from_slice(key);
            let mut sent = 0;
            while sent < reply.len() {
                // The client reads: where the socket is full, it soon is not.
                sent += stream.write(&reply[sent..]).unwrap_or(0);
            }
        }
    }
}

fn main() -> Result<()> {
    let arguments = arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [program, rest @ ..] = &arguments[..] else {
        return Err("give the path of rackscope-cached".into());
    };
    if *program == BARE {
        return receive_and_send(rest.first().unwrap_or(&"").parse()?);
    }
    let seconds: f64 = rest.first().map_or(Ok(0.4), |text| text.parse())?;
    let rounds: usize = rest.get(1).map_or(Ok(30), |text| text.parse())?;
    for value_bytes in VALUES_BYTES {
        let mut systems = [
            System::cached(program, value_bytes)?,
            System::bare(value_bytes)?,
        ];
        for system in &mut systems {
            system.measure(1.0)?;
            system.rates.clear();
            system.costs.clear();
        }
        for round in 0..rounds {
            // AB, then BA: what drifts over time hits both alike.
            let first = round % 2;
            systems[first].measure(seconds)?;
            systems[1 - first].measure(seconds)?;
        }
        let [cached, bare] = &systems;
        println!(
            "{value_bytes} B, {CONNECTIONS} connections, {rounds} rounds of {seconds} s: processor {:.0} ns a request, {:.0} ns to receive \
             and send: {}; rate {:.0}/s, {:.0}/s: {}",
            median(&cached.costs),
            median(&bare.costs),
            ratio(&cached.costs, &bare.costs),
            median(&cached.rates),
            median(&bare.rates),
            ratio(&cached.rates, &bare.rates),
        );
    }
    Ok(())
}

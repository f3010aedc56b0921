//! How many requests `rackscope-cached -t 1` answers by each transport, in turns:
//! `cargo run --release -p cached --example transports -- CACHED [SECONDS [ROUNDS [SERVER_CORE CLIENT_CORE [NAME]]]]`
//! (the program; how long a measurement is; how often each is measured; only those of this name). One core serves, one drives. Keys of 16 bytes,
//! values of 32, 95 % reads; every value is checked.

use load::LoadClient;
use serde_json::{Value, json};
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Transport {
    name: &'static str,
    kind: &'static str,
    protocol: &'static str,
    /// Connections or flows.
    connections: usize,
    /// Requests or datagrams on their way in each.
    depth: usize,
    /// Requests of a datagram.
    batch: usize,
}

const fn transport(
    name: &'static str,
    kind: &'static str,
    protocol: &'static str,
    (connections, depth, batch): (usize, usize, usize),
) -> Transport {
    Transport {
        name,
        kind,
        protocol,
        connections,
        depth,
        batch,
    }
}

const TRANSPORTS: [Transport; 5] = [
    transport("TCP, unpipelined", "tcp", "memcached_text", (50, 1, 1)),
    transport("TCP, 50 deep", "tcp", "memcached_text", (50, 50, 1)),
    transport("UDP, one on its way", "udp", "memcached_text", (50, 1, 1)),
    transport(
        "UDP, one request a datagram",
        "udp",
        "memcached_text",
        (4, 128, 1),
    ),
    transport("UDP, 32 requests a datagram", "udp", "batch", (4, 16, 32)),
];

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

struct System {
    client: LoadClient,
    _server: Running,
    rates: Vec<f64>,
}

impl System {
    fn start(
        program: &str,
        transport: &Transport,
        cores: (usize, usize),
    ) -> Result<Self, Box<dyn Error>> {
        let mut server = Command::new(program)
            .args([
                "-p",
                "0",
                "-U",
                "free",
                "-m",
                "1024",
                "--cores",
                &cores.0.to_string(),
            ])
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(server.stderr.take().ok_or("no standard error")?).lines();
        let server = Running(server);
        let mut port = || -> Result<u16, Box<dyn Error>> {
            let line = lines.next().ok_or("the server said nothing")??;
            let (_, rest) = line.rsplit_once("127.0.0.1:").ok_or(line.clone())?;
            Ok(rest.split_whitespace().next().unwrap_or_default().parse()?)
        };
        let (tcp, udp) = (port()?, port()?);
        let target = match transport.kind {
            "tcp" => json!({"kind": "tcp", "host": "127.0.0.1", "port": tcp}),
            kind => json!({"kind": kind, "host": "127.0.0.1", "ports": [udp]}),
        };
        let client = LoadClient::new(
            &json!({
                "target": target, "protocol": transport.protocol, "connections": transport.connections,
                "cores": [cores.1], "pipeline": transport.depth, "batch": transport.batch, "seed": 1, "verify": true,
                "keys": {"count": KEYS, "size": {"kind": "fixed", "bytes": 20}},
                "values": {"kind": "fixed", "bytes": 32},
            })
            .to_string(),
        )?;
        let mut system = Self {
            client,
            _server: server,
            rates: Vec::new(),
        };
        system.phase(
            &json!({"insert": 1.0}),
            &json!({"kind": "sequential"}),
            None,
        )?;
        Ok(system)
    }

    fn phase(
        &mut self,
        operations: &Value,
        distribution: &Value,
        seconds: Option<f64>,
    ) -> Result<load::PhaseResult, Box<dyn Error>> {
        self.client.start_phase(
            &json!({
                "name": "phase", "operations": operations, "distribution": distribution, "loop": {"kind": "closed"},
                "duration_seconds": seconds, "operation_count": seconds.is_none().then_some(KEYS),
                "interval_seconds": 0.25,
            })
            .to_string(),
        )?;
        while !self.client.wait(Duration::from_secs(1)) {}
        let result = self.client.phase_result()?;
        let wrong = result.failed.clone().or_else(|| result.first_wrong.clone());
        match wrong.or_else(|| result.first_error.clone()) {
            Some(why) => Err(why.into()),
            None => Ok(result),
        }
    }

    fn measure(&mut self, seconds: f64) -> Result<(), Box<dyn Error>> {
        let zipfian = json!({"kind": "zipfian", "theta": 0.99, "scrambled": true});
        let result = self.phase(
            &json!({"read": 0.95, "update": 0.05}),
            &zipfian,
            Some(seconds),
        )?;
        self.rates
            .push(result.operations as f64 / result.duration_seconds);
        Ok(())
    }
}

const KEYS: u64 = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, rest @ ..] = &arguments[..] else {
        return Err("give the path of rackscope-cached".into());
    };
    let number = |at: usize, otherwise: usize| -> Result<usize, Box<dyn Error>> {
        Ok(rest.get(at).map_or(Ok(otherwise), |text| text.parse())?)
    };
    let seconds: f64 = rest.first().map_or(Ok(1.0), |text| text.parse())?;
    let (rounds, cores) = (number(1, 5)?, (number(2, 0)?, number(3, 1)?));
    let name = rest.get(4).map_or("", String::as_str);
    let transports = || {
        let all = TRANSPORTS.iter();
        all.filter(|transport| transport.name.contains(name))
    };
    let mut systems = Vec::new();
    for transport in transports() {
        systems.push(System::start(program, transport, cores)?);
    }
    for round in 0..=rounds {
        for system in &mut systems {
            system.measure(seconds)?;
            if round == 0 {
                // To warm up.
                system.rates.clear();
            }
        }
    }
    for (transport, system) in transports().zip(&mut systems) {
        let rates = &mut system.rates;
        rates.sort_by(f64::total_cmp);
        println!(
            "{:30} {:3} x {:3} x {:2}: {:6.3} M/s ({:.3} to {:.3} over {rounds} rounds)",
            transport.name,
            transport.connections,
            transport.depth,
            transport.batch,
            rates[rates.len() / 2] / 1e6,
            rates[0] / 1e6,
            rates[rates.len() - 1] / 1e6,
        );
    }
    Ok(())
}

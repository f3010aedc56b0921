//! `rackscope-cached -t 1` and `memcached -t 1` side by side, in turns, on one core, under YCSB-B from another:
//! `cargo run --release -p cached --example against_memcached -- CACHED MEMCACHED [SECONDS [ROUNDS]]`
//! (two programs; how long a measurement is; how often each pair is measured, in the order ABBA).
//!
//! Beside rates it tells the server's processor time for a request: where the client is the limit, rates say nothing.

use load::LoadClient;
use serde_json::{Value, json};
use std::error::Error;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What is asked: connections, requests outstanding on each, value bytes.
const SETTINGS: [(&str, usize, usize, usize); 5] = [
    ("one client", 1, 1, 1000),
    ("unpipelined", 50, 1, 1000),
    ("unpipelined, small values", 50, 1, 100),
    ("pipelined", 50, 32, 1000),
    ("pipelined, small values", 50, 32, 100),
];

const SERVER_CORE: &str = "0";
const CLIENT_CORE: usize = 1;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

struct System {
    client: LoadClient,
    rates: Vec<f64>,
    /// Processor time of the server for a request, in nanoseconds.
    costs: Vec<f64>,
    server: Running,
}

impl System {
    fn start(
        program: &str,
        more: &[&str],
        connections: usize,
        depth: usize,
        value_bytes: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
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
            "1024",
            "-p",
            &port.to_string(),
        ]);
        let server = Running(command.args(more).stderr(Stdio::null()).spawn()?);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let client = LoadClient::new(
            &json!({
                "target": {"kind": "tcp", "host": "127.0.0.1", "port": port}, "protocol": "memcached_text",
                "connections": connections, "cores": [CLIENT_CORE], "pipeline": depth, "seed": 1, "verify": true,
                "keys": {"count": 100_000, "size": {"kind": "fixed", "bytes": 24}},
                "values": {"kind": "fixed", "bytes": value_bytes},
            })
            .to_string(),
        )?;
        let mut system = Self {
            client,
            rates: Vec::new(),
            costs: Vec::new(),
            server,
        };
        system.phase(
            &json!({"insert": 1.0}),
            &json!({"kind": "sequential"}),
            None,
        )?;
        system.measure(1.0)?;
        system.rates.clear();
        system.costs.clear();
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
                "duration_seconds": seconds, "operation_count": seconds.is_none().then_some(100_000), "interval_seconds": 0.25,
            })
            .to_string(),
        )?;
        while !self.client.wait(Duration::from_secs(1)) {}
        let result = self.client.phase_result()?;
        match result.failed {
            Some(why) => Err(why.into()),
            None => Ok(result),
        }
    }

    fn measure(&mut self, seconds: f64) -> Result<(), Box<dyn Error>> {
        let zipfian = json!({"kind": "zipfian", "theta": 0.99, "scrambled": true});
        let before = processor_seconds(self.server.0.id())?;
        let result = self.phase(
            &json!({"read": 0.95, "update": 0.05}),
            &zipfian,
            Some(seconds),
        )?;
        self.rates
            .push(result.operations as f64 / result.duration_seconds);
        let spent = processor_seconds(self.server.0.id())? - before;
        self.costs.push(spent * 1e9 / result.operations as f64);
        Ok(())
    }
}

/// User and system time of a process so far (`proc_pid_stat(5)`, fields 14 and 15).
fn processor_seconds(pid: u32) -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = text
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(11)
        .take(2);
    let ticks = fields.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [ours, theirs, rest @ ..] = &arguments[..] else {
        return Err("give the paths of rackscope-cached and of memcached".into());
    };
    let seconds: f64 = rest.first().map_or(Ok(1.0), |text| text.parse())?;
    let rounds: usize = rest.get(1).map_or(Ok(4), |text| text.parse())?;
    let root: &[&str] = if rustix::process::geteuid().is_root() {
        &["-u", "nobody"]
    } else {
        &[]
    };
    for (name, connections, depth, value_bytes) in SETTINGS {
        let mut a = System::start(ours, &[], connections, depth, value_bytes)?;
        let mut b = System::start(theirs, root, connections, depth, value_bytes)?;
        for round in 0..rounds {
            // ABBA: what drifts over time hits both alike.
            if round % 2 == 0 {
                a.measure(seconds)?;
                b.measure(seconds)?;
            } else {
                b.measure(seconds)?;
                a.measure(seconds)?;
            }
        }
        let ratios: Vec<f64> = a.rates.iter().zip(&b.rates).map(|(a, b)| a / b).collect();
        let (least, most) = ratios
            .iter()
            .fold((f64::MAX, 0.0_f64), |(least, most), &ratio| {
                (least.min(ratio), most.max(ratio))
            });
        println!(
            "{name:28} {connections:3} x {depth:2}, {value_bytes:4} B values: {:9.0}/s against {:9.0}/s, ratio {:.2} ({least:.2} to {most:.2} over {rounds} pairs); {:.0} ns against {:.0} ns of processor",
            mean(&a.rates),
            mean(&b.rates),
            mean(&ratios),
            mean(&a.costs),
            mean(&b.costs),
        );
    }
    Ok(())
}

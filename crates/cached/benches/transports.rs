//! How many requests `rackscope-cached -t 1` answers by each transport, in turns:
//! `cargo bench -p cached --bench transports -- CACHED [SECONDS [ROUNDS [SERVER_CORE CLIENT_CORE [NAME]]]]`
//! (the program; how long a measurement is; how often each is measured; only those of this name). One core serves, one
//! drives. Keys of 20 bytes, values of 32, 95 % reads; every value is checked. Processor time is the server's and the
//! client's for a request: what others take of the cores changes it less than the rate.
//!
//! As root, also over a veth pair between two network namespaces that it makes: AF_XDP, and the kernel's UDP.

#[path = "../../xdp/tests/common/mod.rs"]
mod common;

#[path = "support/arguments.rs"]
mod arguments;
#[path = "support/phase.rs"]
mod phase;
#[path = "support/running.rs"]
mod running;

use arguments::arguments;
use common::{Pair, pair};
use load::LoadClient;
use phase::{KEYS, Until, load_all, run_phase};
use running::Running;
use serde_json::json;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Tcp,
    Udp,
    /// The kernel's UDP between two namespaces, each datagram by a system call of its own.
    VethUdp,
    /// AF_XDP at both ends.
    VethXdp,
}

struct Transport {
    name: &'static str,
    way: Way,
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
    way: Way,
    protocol: &'static str,
    (connections, depth, batch): (usize, usize, usize),
) -> Transport {
    Transport {
        name,
        way,
        protocol,
        connections,
        depth,
        batch,
    }
}

impl Transport {
    /// Queues of a pair of interfaces: one for each flow that has one.
    fn queues(&self) -> u32 {
        match self.way {
            Way::VethXdp => self.connections as u32,
            _ => 1,
        }
    }
}

const TRANSPORTS: [Transport; 7] = [
    transport("TCP, unpipelined", Way::Tcp, "memcached_text", (50, 1, 1)),
    transport("TCP, 50 deep", Way::Tcp, "memcached_text", (50, 50, 1)),
    transport(
        "UDP, one on its way",
        Way::Udp,
        "memcached_text",
        (50, 1, 1),
    ),
    transport(
        "UDP, one request a datagram",
        Way::Udp,
        "memcached_text",
        (1, 512, 1),
    ),
    transport(
        "UDP, 32 requests a datagram",
        Way::Udp,
        "batch",
        (4, 16, 32),
    ),
    transport(
        "UDP over veth, one request a datagram",
        Way::VethUdp,
        "memcached_text",
        (4, 32, 1),
    ),
    transport(
        "AF_XDP over veth, 32 requests a datagram",
        Way::VethXdp,
        "batch",
        (1, 64, 32),
    ),
];

impl Running {
    /// What it has used: `utime` and `stime` of proc_pid_stat(5), in hundredths of seconds.
    fn processor_seconds(&self) -> Result<f64, Box<dyn Error>> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let (_, fields) = stat.rsplit_once(") ").ok_or("no such process")?;
        let used = fields.split(' ').skip(11).take(2).map(str::parse::<f64>);
        Ok(used.sum::<Result<f64, _>>()? / 100.0)
    }
}

struct System {
    name: String,
    client: LoadClient,
    server: Running,
    _pair: Option<Pair>,
    rates: Vec<f64>,
    /// Processor time of a request, in nanoseconds: the server's and the client's.
    costs: Vec<[f64; 2]>,
}

impl System {
    fn start(
        program: &str,
        transport: &Transport,
        cores: (usize, usize),
    ) -> Result<Option<Self>, Box<dyn Error>> {
        let pair = match transport.way {
            Way::Tcp | Way::Udp => None,
            Way::VethUdp | Way::VethXdp => match pair(transport.queues()) {
                None => return Ok(None),
                pair => pair,
            },
        };
        let host = pair
            .as_ref()
            .map_or("127.0.0.1".to_owned(), |pair| pair.right.ipv4.to_string());
        let mut command = Command::new(program);
        command
            .args(["-p", "0", "-U", "11211", "-m", "1024", "-l", &host])
            .args(["--cores", &cores.0.to_string()])
            .stderr(Stdio::piped());
        if pair.is_none() {
            command.args(["-U", "free"]);
        }
        if transport.way == Way::VethXdp {
            command.args(["--xdp", "right"]);
        }
        let mut server = match &pair {
            Some(pair) => pair.right.namespace.run(|| command.spawn()),
            None => command.spawn(),
        }?;
        let mut lines = BufReader::new(server.stderr.take().ok_or("no standard error")?).lines();
        let server = Running(server);
        let mut port = || -> Result<u16, Box<dyn Error>> {
            let line = lines.next().ok_or("the server said nothing")??;
            let (_, rest) = line.rsplit_once(&format!("{host}:")).ok_or(line.clone())?;
            Ok(rest.split_whitespace().next().unwrap_or_default().parse()?)
        };
        let (tcp, udp) = (port()?, port()?);
        let mut name = transport.name.to_owned();
        let target = match (transport.way, &pair) {
            (Way::Tcp, _) => json!({"kind": "tcp", "host": host, "port": tcp}),
            (Way::VethXdp, Some(pair)) => {
                let how = lines.next().ok_or("the server said nothing")??;
                let (_, how) = how.rsplit_once("right: ").ok_or(how.clone())?;
                name += &format!(" ({})", how.split(" (").next().unwrap_or_default());
                let mac = pair.right.interface.hardware_address;
                json!({
                    "kind": "xdp", "interface": "left", "source": format!("{}:40000", pair.left.ipv4),
                    "destination": host, "destination_mac": mac.map(|byte| format!("{byte:02x}")).join(":"),
                    "ports": [udp],
                })
            }
            (way, _) => {
                json!({"kind": "udp", "host": host, "ports": [udp], "joined": way == Way::Udp})
            }
        };
        let config = json!({
                "target": target, "protocol": transport.protocol, "connections": transport.connections,
                "cores": [cores.1], "pipeline": transport.depth, "batch": transport.batch, "seed": 1, "verify": true,
                "keys": {"count": KEYS, "size": {"kind": "fixed", "bytes": 20}},
                "values": {"kind": "fixed", "bytes": 32},
        });
        let connect = || LoadClient::new(&config.to_string());
        let client = match &pair {
            Some(pair) => pair.left.namespace.run(connect),
            None => connect(),
        }?;
        let mut system = Self {
            name,
            client,
            server,
            _pair: pair,
            rates: Vec::new(),
            costs: Vec::new(),
        };
        load_all(&mut system.client, KEYS)?;
        Ok(Some(system))
    }

    fn measure(&mut self, seconds: f64) -> Result<(), Box<dyn Error>> {
        let zipfian = json!({"kind": "zipfian", "theta": 0.99, "scrambled": true});
        let before = self.server.processor_seconds()?;
        let result = run_phase(
            &mut self.client,
            &json!({"read": 0.95, "update": 0.05}),
            &zipfian,
            Until::Seconds(seconds),
        )?;
        let operations = result.operations as f64;
        self.rates.push(operations / result.duration_seconds);
        let server = self.server.processor_seconds()? - before;
        let seconds = [server, result.generator_cpu_seconds];
        self.costs
            .push(seconds.map(|seconds| seconds * 1e9 / operations));
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments();
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
        if let Some(system) = System::start(program, transport, cores)? {
            systems.push((transport, system));
        }
    }
    for round in 0..=rounds {
        for (_, system) in &mut systems {
            system.measure(seconds)?;
            if round == 0 {
                // To warm up.
                system.rates.clear();
                system.costs.clear();
            }
        }
    }
    for (transport, system) in &mut systems {
        let rates = &mut system.rates;
        rates.sort_by(f64::total_cmp);
        let mut median = |of: usize| {
            system.costs.sort_by(|a, b| a[of].total_cmp(&b[of]));
            system.costs[rounds / 2][of]
        };
        let (server, client) = (median(0), median(1));
        println!(
            "{:56} {:3} x {:3} x {:2}: {:6.3} M/s ({:.3} to {:.3} over {rounds} rounds), {server:5.0} + {client:5.0} ns of processor time",
            system.name,
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

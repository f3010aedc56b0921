//! Datagrams over AF_XDP: between two network namespaces, joined by a veth pair of two queues.

#[path = "../../xdp/tests/common/mod.rs"]
mod common;
use crate::support::datagrams::{Sender, delete, get, set};
use crate::support::{Client, PATIENCE, PROGRAM, Server, run};
use common::{End, Pair, pair};
use load::{LoadClient, PhaseResult};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::Instant;
use wire::batch::{Answer, Refusal, Request};
use wire::memcached::partition_map::owner;

/// In namespaces of their own, tests do not meet.
const PORT: u16 = 11_211;

/// A server on the right that takes datagrams over AF_XDP.
fn server(end: &End, arguments: &[&str]) -> Server {
    let address = end.ipv4.to_string();
    let (interface, port) = (end.interface.name.as_str(), PORT.to_string());
    let all = [
        &["-l", &address, "-U", &port, "--xdp", interface],
        arguments,
    ];
    let mut server = end.namespace.run(|| Server::start(&all.concat()));
    let mut line = server.message();
    while !line.contains("AF_XDP") {
        assert!(line.starts_with("rackscope-cached: "), "{line:?}");
        line = server.message();
    }
    let found = "rackscope-cached: datagrams are served over AF_XDP on right: native, copied, 2 queues (zero-copy refused: ";
    assert!(line.starts_with(found), "{line}");
    server
}

/// A client in the namespace of the left, by the kernel's sockets.
fn sender(pair: &Pair, port: u16) -> Sender {
    let address = format!("{}:{port}", pair.right.ipv4);
    pair.left.namespace.run(|| Sender::to(&address))
}

fn connect(pair: &Pair, server: &Server) -> Client {
    pair.left.namespace.run(|| server.connect())
}

fn mac(end: &End) -> String {
    let bytes = end.interface.hardware_address;
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

fn load_client(pair: &Pair, ports: &[u16], protocol: &str, batch: usize) -> LoadClient {
    let config = json!({
        "target": {
            "kind": "xdp", "interface": pair.left.interface.name, "source": format!("{}:40000", pair.left.ipv4),
            "destination": pair.right.ipv4, "destination_mac": mac(&pair.right), "ports": ports,
        },
        "protocol": protocol, "batch": batch, "connections": 2, "pipeline": 16, "seed": 7, "verify": true,
        "keys": {"count": 3000, "size": {"kind": "fixed", "bytes": 24}},
        "values": {"kind": "fixed", "bytes": 100},
    });
    let namespace = &pair.left.namespace;
    namespace.run(|| LoadClient::new(&config.to_string()).expect("a client"))
}

fn phase(client: &LoadClient, operations: Value, kind: &str, count: u64) -> PhaseResult {
    let phase = json!({
        "name": "phase", "operations": operations, "distribution": {"kind": kind}, "loop": {"kind": "closed"},
        "operation_count": count, "interval_seconds": 0.25,
    });
    client.start_phase(&phase.to_string()).expect("a phase");
    assert!(client.wait(PATIENCE));
    let result = client.phase_result().expect("a result");
    assert_eq!(
        (&result.failed, result.operations),
        (&None, count),
        "{:?}",
        result.first_error
    );
    result
}

#[test]
fn a_load_reads_what_it_wrote() {
    let Some(pair) = pair(2) else { return };
    for (arguments, ports, protocol, batch) in [
        (&[][..], &[PORT][..], "batch", 32),
        (&[], &[PORT], "batch", 1),
        (&[], &[PORT], "memcached_text", 1),
        (&["-t", "2"], &[PORT], "batch", 7),
        (
            &["-t", "2", "--access", "erew"],
            &[PORT + 1, PORT + 2],
            "batch",
            32,
        ),
        (
            &["-t", "2", "--access", "crew"],
            &[PORT + 1, PORT + 2],
            "batch",
            1,
        ),
        // Where letters go from worker to worker, and are answered by the kernel.
        (
            &["-t", "2", "--access", "erew"],
            &[PORT],
            "memcached_text",
            1,
        ),
    ] {
        let server = server(&pair.right, arguments);
        let client = load_client(&pair, ports, protocol, batch);
        phase(&client, json!({"insert": 1.0}), "sequential", 3000);
        let result = phase(
            &client,
            json!({"read": 0.5, "update": 0.5}),
            "uniform",
            20_000,
        );
        assert_eq!(
            (result.wrong_values, result.misses),
            (0, 0),
            "{:?}",
            result.first_wrong
        );
        assert!(result.hits > 9000, "{}", result.hits);
        let mut told = connect(&pair, &server);
        let received = told.statistic("datagrams_received");
        assert!(received >= 23_000 / batch as u64, "{received}");
        assert_eq!(told.statistic("datagrams_dropped"), 0);
        // What was served over AF_XDP, the kernel did not see; it sends the replies to forwarded datagrams.
        let counted = pair.right.namespace.run(|| {
            let table = std::fs::read_to_string("/proc/thread-self/net/snmp").expect("read");
            table
                .lines()
                .filter(|line| line.starts_with("Udp: "))
                .nth(1)
                .and_then(|line| line.split(' ').nth(1)?.parse::<u64>().ok())
        });
        assert_eq!(counted, Some(0), "datagrams that the kernel received");
    }
}

#[test]
fn sockets_of_the_kernel_are_answered_too() {
    let Some(pair) = pair(2) else { return };
    for arguments in [
        &[][..],
        &["-t", "2"],
        &["-t", "2", "--access", "erew"],
        &["-t", "2", "--access", "crew"],
    ] {
        let server = server(&pair.right, arguments);
        let mut sender = sender(&pair, PORT);
        for number in 0..20 {
            let stored = sender.text(&format!("set key{number} 3 0 1\r\nx\r\n"));
            assert_eq!(stored, "STORED\r\n");
            let read = sender.text(&format!("get key{number}\r\n"));
            assert_eq!(read, format!("VALUE key{number} 3 1\r\nx\r\nEND\r\n"));
        }
        let several = sender.text("get key1 none key2\r\nmg key1 f\r\n");
        assert_eq!(
            several,
            "VALUE key1 3 1\r\nx\r\nVALUE key2 3 1\r\nx\r\nEND\r\nHD f3\r\n"
        );
        // An answer of many datagrams.
        let large = "v".repeat(100_000);
        let mut client = connect(&pair, &server);
        client.ask(format!("set large 0 0 100000\r\n{large}\r\n").as_bytes());
        assert_eq!(
            sender.text("get large\r\n"),
            format!("VALUE large 0 100000\r\n{large}\r\nEND\r\n")
        );
        // What is no datagram of ours is passed over.
        for noise in [&b""[..], b"x", &[0xff; 1000]] {
            sender.socket.send(noise).expect("send");
        }
        assert_eq!(sender.text("get none\r\n"), "END\r\n");
    }
}

#[test]
fn batches_are_answered_as_long_as_a_packet_is() {
    let Some(pair) = pair(2) else { return };
    let server = server(&pair.right, &[]);
    let mut sender = sender(&pair, PORT);
    let keys: Vec<String> = (0..30).map(|number| format!("key{number}")).collect();
    let sets: Vec<Request<'_>> = keys.iter().map(|key| set(key, key)).collect();
    assert_eq!(sender.batch(&sets), vec!["Done"; 30]);
    let mut gets: Vec<Request<'_>> = keys.iter().map(|key| get(key)).collect();
    gets.extend([get("none"), delete("key7"), get("key7")]);
    let mut expected: Vec<String> = keys.iter().map(|key| format!("5 {key}")).collect();
    expected.extend(["NotFound", "Done", "NotFound"].map(str::to_owned));
    assert_eq!(sender.batch(&gets), expected);
    // 1500 bytes less headers, frame, and what is in front of the value.
    let longest = 1500 - 28 - 8 - 12;
    let mut client = connect(&pair, &server);
    for bytes in [700, longest, longest + 1] {
        client.ask(format!("set v{bytes} 5 0 {bytes}\r\n{}\r\n", "l".repeat(bytes)).as_bytes());
    }
    let long = |bytes: usize| format!("5 {}", "l".repeat(bytes));
    let too_large = format!("{:?}", Answer::Refused(Refusal::TooLarge));
    let (most, more) = (format!("v{longest}"), format!("v{}", longest + 1));
    // Several datagrams, and the refusal in its place.
    assert_eq!(
        sender.batch(&[
            get("v700"),
            get("v700"),
            get("v700"),
            get(&most),
            get("key1"),
            get(&more),
            get("key2")
        ]),
        [
            long(700),
            long(700),
            long(700),
            long(longest),
            "5 key1".to_owned(),
            too_large,
            "5 key2".to_owned()
        ]
    );
    // What comes in fragments, the kernel puts together, and what it answers may be as long.
    let value = "f".repeat(5_000);
    assert_eq!(
        sender.batch(&[set("fragments", &value), get("fragments"), get(&more)]),
        ["Done".to_owned(), format!("5 {value}"), long(longest + 1)]
    );
}

#[test]
fn who_chooses_the_queue_chooses_the_worker() {
    let Some(pair) = pair(2) else { return };
    let server = server(&pair.right, &["-t", "2", "--access", "erew"]);
    let refused = format!("{:?}", Answer::Refused(Refusal::OtherWorker));
    // The kernel sends from one core on one queue: either worker may be asked, but always the same.
    pair.left.namespace.run(|| {
        net::affinity::pin_current_thread(net::affinity::allowed_cores()[0]).expect("a core");
        let mut sender = Sender::to(&format!("{}:{PORT}", pair.right.ipv4));
        let mut asked = None;
        for number in 0..50 {
            let key = format!("key{number}");
            let answers = sender.batch(&[set(&key, "v"), get(&key)]);
            let is_here = answers == ["Done", "5 v"];
            assert!(is_here || answers == [&refused[..]; 2], "{answers:?}");
            let worker = owner(key.as_bytes(), 2);
            let worker = if is_here { worker } else { 1 - worker };
            assert_eq!(*asked.get_or_insert(worker), worker);
        }
    });
    drop(server);
}

/// However the server ends, the kernel has the interface back.
#[test]
fn nothing_stays_at_the_interface() {
    let Some(pair) = pair(2) else { return };
    for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
        let server = server(&pair.right, &["-t", "2"]);
        assert!(pair.right.has_program());
        let mut sender = sender(&pair, PORT);
        assert_eq!(sender.text("get a\r\n"), "END\r\n");
        server.end_by(signal);
        // The kernel tidies up behind a process that ended.
        let deadline = Instant::now() + PATIENCE;
        while pair.right.has_program() {
            assert!(
                Instant::now() < deadline,
                "{signal:?} left the program behind"
            );
        }
    }
}

#[test]
fn what_is_missing_is_named() {
    let port = PORT.to_string();
    let (status, _, told) = run(&["-p", "0", "-U", &port, "--xdp", "no-such-one"]);
    assert_eq!(status, Some(1));
    assert_eq!(
        told,
        "rackscope-cached: --xdp: there is no network interface 'no-such-one' here: `ip link` lists those there are. \
         Without --xdp, datagrams are served through the kernel\n"
    );
    let Some(pair) = pair(2) else { return };
    let right = &pair.right;
    let end = |arguments: &[&str]| {
        let fixed = ["-p", "0", "-U", &port, "--xdp", "right"];
        let (status, _, told) = right.namespace.run(|| run(&[&fixed, arguments].concat()));
        assert_eq!((status, told.lines().count()), (Some(1), 1), "{told}");
        told
    };
    right.namespace.ip("link set lo up");
    assert!(end(&[]).contains("no datagram for a loopback address comes over it. Give -l"));
    right.namespace.ip("link set right mtu 1400");
    assert!(end(&["-l", "198.18.0.2"]).contains("its packets are 1400 bytes long"));
    right.namespace.ip("link set right mtu 1500");
    // Another server has it already.
    let _first = server(right, &[]);
    assert!(end(&["-l", "0.0.0.0", "-U", "11300"]).contains("has another XDP program already"),);
}

/// Rights are given to a copy of the program that everybody may run.
#[test]
fn a_missing_right_is_named() {
    let Some(pair) = pair(1) else { return };
    let folder = crate::support::Folder::new("rights");
    let program = folder.path("rackscope-cached");
    std::fs::copy(PROGRAM, &program).expect("copy the program");
    let output = pair.right.namespace.run(|| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.args([&program, "-p", "0", "-l", "198.18.0.2", "-U", "11211"]);
        command.args(["--xdp", "right"]).stdin(Stdio::null());
        command.output()
    });
    let Ok(output) = output else {
        eprintln!("skipped: no setpriv of util-linux");
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(
        told,
        "rackscope-cached: --xdp: not permitted to make a map of sockets: run as root, or give the program CAP_BPF and \
         CAP_NET_ADMIN (before Linux 5.8 CAP_SYS_ADMIN) (setcap, or the container's options). Without --xdp, datagrams \
         are served through the kernel\n"
    );
}

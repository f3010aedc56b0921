//! What clients are served over TLS.

use crate::authority::{Authority, BOTH_VERSIONS, TlsServer, Wire, install, shake};
use crate::support::{Client, run, shown, tcp};
use rustix::process::{Pid, Signal, kill_process};
use rustls::{HandshakeKind, ProtocolVersion, version};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

#[test]
fn both_versions_carry_commands_of_every_size() {
    for threads in ["1", "2"] {
        let tls = TlsServer::start("carry", &["-t", threads, "-I", "4m"]);
        for (one, name) in BOTH_VERSIONS.into_iter().zip(["1.2", "1.3"]) {
            let wire = tls.wire(&tls.authority.client(&[one], None));
            assert_eq!(wire.conn.protocol_version(), Some(one.version), "{name}");
            let mut client = Client::over(wire);
            assert_eq!(client.ask(b"flush_all\r\n"), b"OK\r\n");
            assert_eq!(client.ask(b"get a\r\n"), b"END\r\n");
            assert_eq!(client.ask(b"set a 5 0 3\r\nabc\r\n"), b"STORED\r\n");
            assert_eq!(
                client.ask_slowly(b"get a\r\n"),
                b"VALUE a 5 3\r\nabc\r\nEND\r\n"
            );
            for bytes in [4_000, 16_384, 65_536, 1_000_000, 4_000_000_u32] {
                let value: Vec<u8> = (0..bytes).map(|place| (place % 251) as u8).collect();
                let head = format!("set k 0 0 {bytes}\r\n");
                client.send(head.as_bytes());
                for piece in value.chunks(1 + bytes as usize / 7) {
                    client.send(piece);
                }
                let answer = client.ask(b"\r\nget k\r\n");
                let head = format!("STORED\r\nVALUE k 0 {bytes}\r\n");
                assert_eq!(shown(&answer[..head.len()]), shown(head.as_bytes()));
                assert!(
                    answer[head.len()..answer.len() - 7] == value,
                    "{bytes} of {name}"
                );
            }
        }
    }
}

#[test]
fn a_burst_of_many_commands_is_answered_in_order() {
    let tls = TlsServer::start("burst", &["-t", "2"]);
    let (mut questions, mut answers) = (String::new(), String::new());
    for number in 0..20_000 {
        let key = number % 77;
        questions += &format!("set k{key} 0 0 6\r\n{number:06}\r\nget k{key}\r\n");
        answers += &format!("STORED\r\nVALUE k{key} 0 6\r\n{number:06}\r\nEND\r\n");
    }
    let mut client = tls.connect();
    // As much as neither side has to hold back for the other to read.
    let (mut asked, mut told) = (questions.as_bytes(), Vec::new());
    while let Some((burst, rest)) = asked.split_at_checked(30_000.min(asked.len()))
        && !burst.is_empty()
    {
        client.send(burst);
        asked = rest;
        if rest.is_empty() {
            client.send(b"mn\r\n");
            told.extend_from_slice(&client.receive());
        } else {
            told.extend_from_slice(&client.some());
        }
    }
    assert!(told == answers.as_bytes(), "{}", shown(&told));
}

/// With each worker's keys its own, a connection goes from one to another with long commands, and with answers that the
/// client does not read yet.
#[test]
fn a_connection_moves_between_workers() {
    for mode in ["erew", "crew"] {
        let tls = TlsServer::start("moves", &["-t", "3", "--access", mode]);
        for one in BOTH_VERSIONS {
            let mut client = Client::over(tls.wire(&tls.authority.client(&[one], None)));
            let value = "v".repeat(20_000);
            let (mut stores, mut reads) = (String::new(), String::new());
            let mut expected = String::new();
            for number in 0..200 {
                stores.push_str(&format!("set k{number} 7 0 20000\r\n{value}\r\n"));
                reads.push_str(&format!("get k{number}\r\nmg k{number} s\r\n"));
                expected.push_str(&format!(
                    "VALUE k{number} 7 20000\r\n{value}\r\nEND\r\nHD s20000\r\n"
                ));
            }
            assert_eq!(client.ask(stores.as_bytes()), b"STORED\r\n".repeat(200));
            assert!(client.ask(reads.as_bytes()) == expected.as_bytes());
            assert!(client.ask_slowly(b"get k0 k1 k2\r\n").len() > 60_000);
            assert!(client.statistic("moves") > 100, "{mode}");
            assert!(client.statistic("forwards") > 100, "{mode}");
            client.send(b"get k0 k1 k2 k3\r\nquit\r\n");
            // Without the server's last word this is an error.
            assert!(client.rest().len() > 80_000);
        }
        let mut client = tls.connect();
        assert_eq!(client.statistic("ssl_proto_errors"), 0);
        // Each worker's own place is encrypted as the common one is.
        let map = String::from_utf8(client.ask(b"stats partitions\r\n")).expect("text");
        let ports: Vec<&str> = map
            .lines()
            .filter_map(|line| Some(line.split_once(":port ")?.1))
            .collect();
        assert_eq!(ports.len(), 3, "{map}");
        for port in ports {
            let config = tls.authority.client(&BOTH_VERSIONS, None);
            let wire = shake(tcp(&format!("127.0.0.1:{port}")), &config).expect("shake hands");
            assert_eq!(Client::over(wire).ask(b"get none\r\n"), b"END\r\n");
        }
    }
}

#[test]
fn over_io_uring_it_is_refused_or_epoll_serves() {
    let tls = TlsServer::start("ring", &["--transport", "auto", "-v"]);
    let settings = String::from_utf8(tls.connect().ask(b"stats settings\r\n")).expect("text");
    assert!(settings.contains("STAT transport epoll\r\n"), "{settings}");
    let said = tls.server.said();
    assert_eq!(
        said,
        "rackscope-cached: io_uring encrypts nothing here; epoll serves instead\n"
    );
    let files = format!(
        "ssl_chain_cert={},ssl_key={}",
        tls.folder.path("chain.pem"),
        tls.folder.path("key.pem")
    );
    let arguments = ["-p", "0", "-Z", "-o", &files, "--transport", "io_uring"];
    let (status, _, message) = run(&arguments);
    assert_eq!(status, Some(1));
    assert_eq!(
        message,
        "rackscope-cached: io_uring encrypts nothing here. Choose --transport epoll, or leave the other out\n"
    );
}

#[test]
fn the_binary_protocol_is_spoken_too() {
    let tls = TlsServer::start("binary", &[]);
    let mut client = tls.connect();
    let noop = [&[0x80, 0x0a][..], &[0; 22]].concat();
    client.send(&noop.repeat(3));
    let mut answers = Vec::new();
    while answers.len() < 3 * 24 {
        answers.extend_from_slice(&client.some());
    }
    for answer in answers.chunks(24) {
        assert_eq!(answer[..2], [0x81, 0x0a]);
    }
}

#[test]
fn who_leaves_is_told_that_nothing_was_cut_off() {
    let tls = TlsServer::start("leave", &[]);
    let mut client = tls.connect();
    client.send(b"set a 0 0 1\r\n1\r\nget a\r\nquit\r\nget a\r\n");
    // Without the server's last word this is an error.
    assert_eq!(client.rest(), b"STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n");
    // A client that says that it will say no more still hears the answers.
    let mut wire = tls.wire(&tls.authority.client(&BOTH_VERSIONS, None));
    wire.write_all(b"get a\r\n").expect("send");
    wire.conn.send_close_notify();
    wire.flush().expect("send");
    let mut answer = String::new();
    wire.read_to_string(&mut answer)
        .expect("the server's last word");
    assert_eq!(answer, "VALUE a 0 1\r\n1\r\nEND\r\n");
    let mut other = tls.connect();
    while other.statistic("curr_connections") > 1 {}
    assert_eq!(other.statistic("ssl_handshake_errors"), 0);
    assert_eq!(other.statistic("ssl_proto_errors"), 0);
}

#[test]
fn keys_may_be_changed_as_the_client_goes() {
    let tls = TlsServer::start("update", &[]);
    let mut wire = tls.wire(&tls.authority.client(&[&version::TLS13], None));
    for number in 0..20 {
        wire.conn.refresh_traffic_keys().expect("new keys");
        write!(wire, "set k{number} 0 0 1\r\nx\r\n").expect("send");
        let mut answer = [0; 8];
        wire.read_exact(&mut answer).expect("receive");
        assert_eq!(&answer, b"STORED\r\n");
    }
}

#[test]
fn the_oldest_version_is_the_operator_s_choice() {
    let tls = TlsServer::start("oldest", &["-o", "ssl_min_version=3"]);
    let old = tls.authority.client(&[&version::TLS12], None);
    assert!(tls.try_wire(&old).is_err());
    let wire = tls.wire(&tls.authority.client(&BOTH_VERSIONS, None));
    assert_eq!(wire.conn.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    let mut client = Client::over(wire);
    assert_eq!(client.statistic("ssl_handshake_errors"), 1);
}

#[test]
fn suites_are_the_operator_s_choice() {
    let ciphers = "ssl_ciphers=TLS_CHACHA20_POLY1305_SHA256:ECDHE-ECDSA-AES128-GCM-SHA256";
    let tls = TlsServer::start("suites", &["-o", ciphers]);
    for (one, suite) in [
        (&version::TLS12, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
        (&version::TLS13, "TLS13_CHACHA20_POLY1305_SHA256"),
    ] {
        let wire = tls.wire(&tls.authority.client(&[one], None));
        let found = wire.conn.negotiated_cipher_suite().expect("a suite");
        assert_eq!(format!("{:?}", found.suite()), suite);
    }
}

/// Ask something, so that tickets for later sessions arrive, and leave.
fn visit(mut wire: Wire) -> Option<HandshakeKind> {
    wire.write_all(b"mn\r\nquit\r\n").expect("send");
    let mut answer = String::new();
    wire.read_to_string(&mut answer).expect("receive");
    assert_eq!(answer, "MN\r\n");
    wire.conn.handshake_kind()
}

#[test]
fn sessions_are_resumed_where_that_is_asked_for() {
    for (arguments, kind) in [
        (&[][..], HandshakeKind::Full),
        (&["-o", "ssl_session_cache"], HandshakeKind::Resumed),
    ] {
        let tls = TlsServer::start("resume", arguments);
        for one in BOTH_VERSIONS {
            let config = tls.authority.client(&[one], None);
            assert_eq!(visit(tls.wire(&config)), Some(HandshakeKind::Full));
            assert_eq!(visit(tls.wire(&config)), Some(kind), "{arguments:?}");
        }
        if kind == HandshakeKind::Resumed {
            assert_eq!(tls.connect().statistic("ssl_new_sessions"), 3);
        }
    }
}

#[test]
fn client_certificates_are_asked_for_as_told() {
    let clients = Authority::new("the clients'");
    let known = clients.vouch("client.test");
    let untrusted = Authority::new("somebody's").vouch("client.test");
    for (mode, without) in [("1", true), ("2", false), ("3", false)] {
        let option = format!("ssl_verify_mode={mode},ssl_ca_cert=FOLDERclients.pem");
        let tls = TlsServer::start_trusting("verify", &["-o", &option], &clients);
        let mut refused = 0;
        for one in BOTH_VERSIONS {
            for (identity, expected) in [
                (Some(&known), true),
                (None, without),
                (Some(&untrusted), false),
            ] {
                let config = tls.authority.client(&[one], identity);
                // In TLS 1.3 a client is done before it is judged.
                let served = tls.try_wire(&config).and_then(|mut wire| {
                    wire.write_all(b"mn\r\n")?;
                    let mut answer = [0; 4];
                    wire.read_exact(&mut answer)?;
                    assert_eq!(&answer, b"MN\r\n");
                    Ok(())
                });
                let who = if identity.is_some() { "one" } else { "none" };
                assert_eq!(served.is_ok(), expected, "mode {mode}, {who}: {served:?}");
                refused += u64::from(!expected);
            }
        }
        let mut client =
            Client::over(tls.wire(&tls.authority.client(&BOTH_VERSIONS, Some(&known))));
        assert_eq!(client.statistic("ssl_handshake_errors"), refused);
    }
}

#[test]
fn an_address_may_stay_plain_and_so_do_metrics() {
    let tls = TlsServer::start(
        "notls",
        &[
            "-p",
            "0",
            "-l",
            "127.0.0.1,notls:127.0.0.1:0",
            "--metrics",
            "127.0.0.1:0",
        ],
    );
    let [encrypted, plain] = tls.server.addresses() else {
        panic!("{:?}", tls.server.addresses());
    };
    assert_ne!(encrypted, plain);
    let (mut one, mut other) = (tls.connect(), Client::connect(plain));
    assert_eq!(one.ask(b"set a 0 0 1\r\n1\r\n"), b"STORED\r\n");
    assert_eq!(other.ask(b"get a\r\n"), b"VALUE a 0 1\r\n1\r\nEND\r\n");
    let mut server = tls.server;
    let line = server.message();
    let metrics = line
        .trim_end()
        .strip_prefix("rackscope-cached: metrics at http://");
    let metrics = metrics.and_then(|rest| rest.strip_suffix("/metrics"));
    let mut client = Client::connect(metrics.unwrap_or_else(|| panic!("{line}")));
    client.send(b"GET /metrics HTTP/1.0\r\n\r\n");
    let answer = String::from_utf8(client.rest()).expect("text");
    for line in [
        "rackscope_cached_ssl_handshake_errors_total 0\n",
        "# TYPE rackscope_cached_time_since_server_cert_refresh gauge\n",
    ] {
        assert!(answer.contains(line), "{answer}");
    }
}

#[test]
fn settings_say_how_it_is_encrypted() {
    let tls = TlsServer::start("settings", &["-o", "ssl_min_version=3,ssl_session_cache"]);
    let answer = String::from_utf8(tls.connect().ask(b"stats settings\r\n")).expect("text");
    let chain = format!("STAT ssl_chain_cert {}\r\n", tls.folder.path("chain.pem"));
    for line in [
        "STAT ssl_enabled yes\r\n",
        &chain,
        "STAT ssl_verify_mode 0\r\n",
        "STAT ssl_ca_cert NULL\r\n",
        "STAT ssl_session_cache yes\r\n",
        "STAT ssl_min_version tlsv1.3\r\n",
    ] {
        assert!(answer.contains(line), "{line}: {answer}");
    }
    let plain = crate::support::Server::start(&[]);
    let answer = String::from_utf8(plain.connect().ask(b"stats settings\r\n")).expect("text");
    assert!(answer.contains("STAT ssl_enabled no\r\n"), "{answer}");
    assert_eq!(plain.connect().ask(b"refresh_certs\r\n"), b"ERROR\r\n");
}

#[test]
fn certificates_are_read_again_when_asked() {
    let mut tls = TlsServer::start("refresh", &[]);
    let mut before = tls.connect();
    let mut authority = &tls.authority;
    let (second, third) = (Authority::new("the second"), Authority::new("the third"));
    for next in [&second, &third] {
        install(&tls.folder, &next.vouch("cache.test"));
        // Nothing changes by itself.
        assert!(tls.try_wire(&next.client(&BOTH_VERSIONS, None)).is_err());
        tls.wire(&authority.client(&BOTH_VERSIONS, None));
        if authority.pem() == tls.authority.pem() {
            assert_eq!(before.ask(b"refresh_certs\r\n"), b"OK\r\n");
        } else {
            let pid = Pid::from_raw(tls.server.pid() as i32).expect("a process");
            kill_process(pid, Signal::HUP).expect("send a signal");
        }
        while tls.try_wire(&next.client(&BOTH_VERSIONS, None)).is_err() {}
        assert!(
            tls.try_wire(&authority.client(&BOTH_VERSIONS, None))
                .is_err()
        );
        tls.wire(&next.client(&BOTH_VERSIONS, None));
        authority = next;
    }
    // Those who were there go on.
    assert_eq!(before.ask(b"get a\r\n"), b"END\r\n");
    assert!(before.statistic("time_since_server_cert_refresh") < 20);
    // What is of no use is not used.
    std::fs::write(tls.folder.path("chain.pem"), "").expect("write a file");
    let asked_at = Instant::now();
    for _ in 0..1000 {
        assert_eq!(before.ask(b"refresh_certs\r\n"), b"OK\r\n");
    }
    let said = tls.server.message();
    assert!(
        said.contains("stay as they are. -o ssl_chain_cert="),
        "{said}"
    );
    // However often that is, it is done once a second: after one before, and for the last question.
    let errors = before.statistic("server_cert_refresh_errors");
    assert!(
        (1..=asked_at.elapsed().as_secs() + 2).contains(&errors),
        "{errors}"
    );
    tls.wire(&authority.client(&BOTH_VERSIONS, None));
}

/// A file that cannot be read on keeps nobody waiting, however often it is asked for.
#[test]
fn clients_are_served_while_certificates_are_read() {
    let tls = TlsServer::start("slow-refresh", &["-l", "127.0.0.1,notls:127.0.0.1:0"]);
    let (mut one, mut other) = (tls.connect(), Client::connect(&tls.server.addresses()[1]));
    // A pipe that nobody writes to.
    let chain = tls.folder.path("chain.pem");
    std::fs::remove_file(&chain).expect("remove a file");
    let made = Command::new("mkfifo").arg(&chain).status();
    assert!(made.expect("make a pipe").success());
    for _ in 0..100 {
        one.send(b"refresh_certs\r\n");
    }
    assert_eq!(other.ask(b"get a\r\n"), b"END\r\n");
    tls.connect();
    Client::connect(&tls.server.addresses()[1]).ask(b"get a\r\n");
    one.send(b"mn\r\n");
    assert_eq!(one.receive(), b"OK\r\n".repeat(100));
}

#[test]
fn openssl_is_served() {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("skipped: this host has no openssl");
        return;
    }
    // A key of RSA, which the certificates of other tests are not.
    let folder = crate::support::Folder::new("openssl");
    let (chain, key) = (folder.path("chain.pem"), folder.path("key.pem"));
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30",
        ])
        .args(["-subj", "/CN=cache.test", "-out", &chain, "-keyout", &key])
        .output()
        .expect("run openssl");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    // Both in one file, as memcached takes them.
    let both = folder.path("both.pem");
    let read = |path: &str| std::fs::read_to_string(path).expect("a file");
    std::fs::write(&both, read(&chain) + &read(&key)).expect("write a file");
    let server = crate::support::Server::start(&["-Z", "-o", &format!("ssl_chain_cert={both}")]);
    for version in ["-tls1_2", "-tls1_3"] {
        let mut client = Command::new("openssl")
            .args(["s_client", "-quiet", "-verify_return_error", version])
            .args(["-CAfile", &chain, "-connect", server.address()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("run openssl");
        let mut input = client.stdin.take().expect("piped");
        input
            .write_all(b"set a 0 0 3\r\nabc\r\nget a\r\nquit\r\n")
            .expect("send");
        let output = client.wait_with_output().expect("wait for openssl");
        drop(input);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "STORED\r\nVALUE a 0 3\r\nabc\r\nEND\r\n",
            "{version}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn python_is_served() {
    const CLIENT: &str = r#"
import socket, ssl, sys
host, port, authority = sys.argv[1], int(sys.argv[2]), sys.argv[3]
context = ssl.create_default_context(cafile=authority)
for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
    context.minimum_version = context.maximum_version = version
    with socket.create_connection((host, port), timeout=20) as plain:
        with context.wrap_socket(plain, server_hostname="cache.test") as client:
            value = bytes(range(256)) * 4000
            client.sendall(b"set k 7 0 %d\r\n%b\r\nget k\r\nmn\r\n" % (len(value), value))
            expected = b"STORED\r\nVALUE k 7 %d\r\n%b\r\nEND\r\nMN\r\n" % (len(value), value)
            answer = b""
            while len(answer) < len(expected):
                piece = client.recv(1 << 16)
                assert piece, answer[-100:]
                answer += piece
            assert answer == expected
            print(client.version())
"#;
    if Command::new("python3")
        .args(["-c", "import ssl"])
        .output()
        .is_ok_and(|output| !output.status.success())
        || Command::new("python3").arg("-V").output().is_err()
    {
        eprintln!("skipped: this host has no Python with TLS");
        return;
    }
    let tls = TlsServer::start("python", &["-I", "2m"]);
    let authority = tls.folder.path("authority.pem");
    std::fs::write(&authority, tls.authority.pem()).expect("write a file");
    let (host, port) = tls.server.address().rsplit_once(':').expect("a port");
    let output = Command::new("python3")
        .args(["-c", CLIENT, host, port, &authority])
        .output()
        .expect("run Python");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "TLSv1.2\nTLSv1.3\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_client_too_many_hears_nothing_that_is_not_tls() {
    let tls = TlsServer::start("many", &["-c", "1"]);
    let mut first = tls.connect();
    let mut stream = tcp(tls.server.address());
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("receive");
    assert_eq!(said, b"");
    assert_eq!(first.statistic("rejected_connections"), 1);
}

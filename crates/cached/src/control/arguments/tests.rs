use super::*;

fn parse_line(line: &str) -> Result<Request, String> {
    parse(line.split_whitespace().map(OsString::from)).map_err(|error| error.to_string())
}

fn options(line: &str) -> Options {
    match parse_line(line) {
        Ok(Request::Serve(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn options_read_as_memcached_reads_them() {
    assert_eq!(options(""), Options::default());
    let long = options(
        "--port=0 --listen=::1,localhost --memory-limit 128 --threads 2 --conn-limit 9 --max-item-size 512k --udp-port 0",
    );
    assert_eq!(
        long,
        options("-p0 -l ::1,localhost -m128 -t 2 -c 9 -I 524288 -U 0")
    );
    assert_eq!(
        (long.port, long.threads, long.item_bytes_max),
        (0, 2, Some(524_288))
    );
    assert_eq!(options("-vv").verbosity, 2);
    assert_eq!(options("--cores 0,3").cores, [0, 3]);
    assert_eq!(options("--access crew").access, Access::Crew);
    assert_eq!(options("-U 7").udp_port, Some(7));
    assert_eq!(options("-U free").udp_port, Some(0));
    assert_eq!(options("--transport epoll").transport, Transport::Epoll);
    assert_eq!(
        options("--transport=io_uring").transport,
        Transport::IoUring
    );
    let past = options("-U 7 --xdp eth0");
    assert_eq!(past.interface.as_deref(), Some("eth0"));
    assert_eq!(
        options("-s /tmp/x").unix_socket,
        Some(PathBuf::from("/tmp/x"))
    );
    let unit = options(
        "-d -P /run/x.pid -u nobody -b 9 -B ascii -F -A -M -k -r -R 20 -C -f 1.25 -n 48 -L -W -X -a 770",
    );
    assert_eq!(unit.process.pid_file, Some(PathBuf::from("/run/x.pid")));
    assert_eq!(unit.process.user.as_deref(), Some("nobody"));
    assert!(unit.process.is_daemon && unit.process.locks_memory && unit.process.dumps_core);
    assert!(!unit.allows_flush && unit.allows_shutdown && !unit.evicts);
    assert_eq!((unit.backlog, unit.unix_socket_mode), (9, 0o770));
    assert_eq!(unit.protocols, Protocols::Text);
    let extended = options("-o modern,idle_timeout=30,hashpower=20 -o slab_reassign");
    assert_eq!(extended.idle_seconds_max, 30);
    assert_eq!(options("-e /x").memory_file, Some(PathBuf::from("/x")));
    assert_eq!(options("-Y /x").protocols, Protocols::Text);
    assert_eq!(
        options("--metrics 127.0.0.1:9150").metrics,
        Some(([127, 0, 0, 1], 9150).into())
    );
    assert_eq!(parse_line("-p 0 -h"), Ok(Request::Help));
    assert_eq!(parse_line("-V"), Ok(Request::Version));
}

#[test]
fn mistakes_name_the_option_and_what_it_takes() {
    for (line, part) in [
        ("-p 65536", "-p 65536: a port is 0 to 65535"),
        ("-p", "-p"),
        ("-U x", "-U x: a port is 1 to 65535"),
        ("-U 11211 -Y /x", "-U: who gives a password"),
        ("--xdp eth0", "--xdp: say the UDP port with -U"),
        ("--xdp eth0 -U free", "--xdp: say the UDP port with -U"),
        ("-m 0", "-m 0: memory is in MiB"),
        ("-m lots", "-m lots"),
        ("-I 1t", "-I 1t: give bytes"),
        ("-I 99999999999g", "-I"),
        ("-I k", "-I k"),
        ("-t 0", "-t 0: threads"),
        ("--access all", "--access all: give erew, crew or crcw"),
        ("--cores 0,x", "--cores 0,x: give core numbers"),
        ("--transport udp", "--transport udp: give auto, epoll or"),
        ("-l ,", "-l ,"),
        ("-a 9", "-a 9: give a file's mode in octal"),
        ("-b 0", "-b 0: a backlog is"),
        ("-B both", "-B both: give auto, ascii or binary"),
        ("-Y /x -B binary", "-Y: passwords need the text protocol"),
        ("-o idle_timeout=x", "-o idle_timeout=x: give"),
        ("-o modern,sideways", "-o sideways: there is no such"),
        ("-D :", "invalid option '-D'"),
        ("--metrics 9150", "--metrics 9150: give ADDRESS:PORT"),
        ("--color", "--color"),
        ("serve", "serve"),
    ] {
        let message = parse_line(line).expect_err(line);
        assert!(message.contains(part), "{line}: {message}");
    }
}

//! What is answered to each command, over each kind of socket, however the bytes arrive.

use crate::support::{Client, Folder, Server, shown};

/// Questions and answers, in order, on a server that starts empty. CAS numbers, which are the server's to choose, are
/// in `cas_numbers_change_with_the_item`.
const EXCHANGES: &[(&str, &str)] = &[
    // Storing and reading.
    ("get a\r\n", "END\r\n"),
    ("set a 5 0 3\r\nabc\r\n", "STORED\r\n"),
    ("get a\r\n", "VALUE a 5 3\r\nabc\r\nEND\r\n"),
    (
        "get a b a\r\n",
        "VALUE a 5 3\r\nabc\r\nVALUE a 5 3\r\nabc\r\nEND\r\n",
    ),
    ("get  a   b  \r\n", "VALUE a 5 3\r\nabc\r\nEND\r\n"),
    ("get a\n", "VALUE a 5 3\r\nabc\r\nEND\r\n"),
    ("set empty 0 0 0\r\n\r\n", "STORED\r\n"),
    ("get empty\r\n", "VALUE empty 0 0\r\n\r\nEND\r\n"),
    (
        "set wild 4294967295 0 10\r\n\r\nEND\r\n\0 x\r\n",
        "STORED\r\n",
    ),
    (
        "get wild\r\n",
        "VALUE wild 4294967295 10\r\n\r\nEND\r\n\0 x\r\nEND\r\n",
    ),
    ("add a 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
    ("add b 1 0 1\r\nx\r\n", "STORED\r\n"),
    ("replace c 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
    ("replace b 2 0 2\r\nyy\r\n", "STORED\r\n"),
    ("append b 9 9 2\r\nzz\r\n", "STORED\r\n"),
    ("prepend b 9 9 1\r\n>\r\n", "STORED\r\n"),
    ("get b\r\n", "VALUE b 2 5\r\n>yyzz\r\nEND\r\n"),
    ("append c 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
    ("prepend c 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
    ("cas c 0 0 1 1\r\nx\r\n", "NOT_FOUND\r\n"),
    ("cas b 0 0 1 999999999\r\nx\r\n", "EXISTS\r\n"),
    ("delete b\r\n", "DELETED\r\n"),
    ("delete b\r\n", "NOT_FOUND\r\n"),
    ("delete a 0\r\n", "DELETED\r\n"),
    // Numbers.
    ("incr n 1\r\n", "NOT_FOUND\r\n"),
    ("set n 7 0 2\r\n98\r\n", "STORED\r\n"),
    ("incr n 1\r\n", "99\r\n"),
    ("incr n 1\r\n", "100\r\n"),
    ("decr n 1\r\n", "99\r\n"),
    ("get n\r\n", "VALUE n 7 3\r\n99 \r\nEND\r\n"),
    ("incr n 1\r\n", "100\r\n"),
    ("decr n 1000\r\n", "0\r\n"),
    (
        "incr n 18446744073709551615\r\n",
        "18446744073709551615\r\n",
    ),
    ("incr n 2\r\n", "1\r\n"),
    (
        "incr n x\r\n",
        "CLIENT_ERROR invalid numeric delta argument\r\n",
    ),
    (
        "incr n -1\r\n",
        "CLIENT_ERROR invalid numeric delta argument\r\n",
    ),
    (
        "incr n 18446744073709551616\r\n",
        "CLIENT_ERROR invalid numeric delta argument\r\n",
    ),
    ("set n 0 0 3\r\none\r\n", "STORED\r\n"),
    (
        "incr n 1\r\n",
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
    ),
    (
        "decr empty 1\r\n",
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
    ),
    // Expiry.
    ("set e 0 -1 1\r\nx\r\n", "STORED\r\n"),
    ("get e\r\n", "END\r\n"),
    ("set e 0 2592001 1\r\nx\r\n", "STORED\r\n"),
    ("get e\r\n", "END\r\n"),
    ("set e 0 2592000 1\r\nx\r\n", "STORED\r\n"),
    ("get e\r\n", "VALUE e 0 1\r\nx\r\nEND\r\n"),
    ("touch e 100\r\n", "TOUCHED\r\n"),
    ("gat 0 e c\r\n", "VALUE e 0 1\r\nx\r\nEND\r\n"),
    ("mg e t\r\n", "HD t-1\r\n"),
    ("gat -1 e\r\n", "VALUE e 0 1\r\nx\r\nEND\r\n"),
    ("get e\r\n", "END\r\n"),
    ("touch e 0\r\n", "NOT_FOUND\r\n"),
    ("touch wild -1\r\n", "TOUCHED\r\n"),
    ("get wild\r\n", "END\r\n"),
    ("gat 0\r\n", "END\r\n"),
    ("gat x e\r\n", "CLIENT_ERROR invalid exptime argument\r\n"),
    ("touch e x\r\n", "CLIENT_ERROR invalid exptime argument\r\n"),
    // Silence.
    (
        "set q 0 0 1 noreply\r\n1\r\nget q\r\n",
        "VALUE q 0 1\r\n1\r\nEND\r\n",
    ),
    (
        "incr q 1 noreply\r\ntouch q 0 noreply\r\nget q\r\n",
        "VALUE q 0 1\r\n2\r\nEND\r\n",
    ),
    (
        "add q 0 0 1 noreply\r\nx\r\nappend q 0 0 1 noreply\r\n3\r\nget q\r\n",
        "VALUE q 0 2\r\n23\r\nEND\r\n",
    ),
    (
        "delete q noreply\r\ndelete q 0 noreply\r\nverbosity 1 noreply\r\nget q\r\n",
        "END\r\n",
    ),
    ("set q x 0 1 noreply\r\n", ""),
    ("flush_all 1000 noreply\r\n", ""),
    // Everything else.
    ("verbosity 1\r\n", "OK\r\n"),
    ("verbosity\r\n", "ERROR\r\n"),
    (
        "verbosity x\r\n",
        "CLIENT_ERROR bad command line format\r\n",
    ),
    (
        "version\r\n",
        concat!(
            "VERSION 1.6.18-rackscope-",
            env!("CARGO_PKG_VERSION"),
            "\r\n"
        ),
    ),
    ("shutdown\r\n", "ERROR: shutdown not enabled\r\n"),
    ("shutdown x\r\n", "ERROR: shutdown not enabled\r\n"),
    ("stats reset\r\n", "RESET\r\n"),
    ("stats nonsense\r\n", "ERROR\r\n"),
    (
        "flush_all x\r\n",
        "CLIENT_ERROR invalid exptime argument\r\n",
    ),
    ("flush_all 0 0 0\r\n", "ERROR\r\n"),
    (
        "set f 0 0 1\r\nx\r\nflush_all 1000\r\nget f\r\n",
        "STORED\r\nOK\r\nVALUE f 0 1\r\nx\r\nEND\r\n",
    ),
    ("flush_all\r\nget f\r\n", "OK\r\nEND\r\n"),
    (
        "set f 0 0 1\r\nx\r\nget f\r\n",
        "STORED\r\nVALUE f 0 1\r\nx\r\nEND\r\n",
    ),
    // Mistakes.
    ("\r\n", "ERROR\r\n"),
    ("get\r\n", "ERROR\r\n"),
    ("get \r\n", "ERROR\r\n"),
    ("GET f\r\n", "ERROR\r\n"),
    ("bogus\r\n", "ERROR\r\n"),
    ("set f 0 0\r\n", "ERROR\r\n"),
    ("set f 0 0 1 1 1\r\n", "ERROR\r\n"),
    (
        "set f 0 0 x\r\n",
        "CLIENT_ERROR bad command line format\r\n",
    ),
    (
        "set f 0 0 -1\r\n",
        "CLIENT_ERROR bad command line format\r\n",
    ),
    (
        "set f 0 0 2147483646\r\n",
        "CLIENT_ERROR bad command line format\r\n",
    ),
    (
        "set f -1 0 1\r\nx\r\n",
        "CLIENT_ERROR bad command line format\r\nERROR\r\n",
    ),
    ("cas f 0 0 1\r\n", "ERROR\r\n"),
    (
        "cas f 0 0 1 x\r\n",
        "CLIENT_ERROR bad command line format\r\n",
    ),
    (
        "set f 0 0 1\r\nxyz\r\n",
        "CLIENT_ERROR bad data chunk\r\nERROR\r\n",
    ),
    ("get f\r\n", "VALUE f 0 1\r\nx\r\nEND\r\n"),
    (
        "delete f 5\r\n",
        "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n",
    ),
    ("delete\r\n", "ERROR\r\n"),
    // Meta commands.
    ("mg m v\r\n", "EN\r\n"),
    ("mg m v q\r\n", ""),
    ("mg m k Oabc\r\n", "EN km Oabc\r\n"),
    ("ms m 2 F7 T100 k O1\r\nhi\r\n", "HD km O1\r\n"),
    ("mg m v f s k h Oxyz\r\n", "VA 2 f7 s2 km h0 Oxyz\r\nhi\r\n"),
    ("mg m h\r\n", "HD h1\r\n"),
    ("mg m v q\r\n", "VA 2\r\nhi\r\n"),
    ("ms m 1 q\r\nx\r\nmg m v\r\n", "VA 1\r\nx\r\n"),
    ("ms m 1 ME q\r\ny\r\n", "NS\r\n"),
    (
        "ms m 1 MA\r\ny\r\nms m 1 MP\r\nw\r\nmg m v\r\n",
        "HD\r\nHD\r\nVA 3\r\nwxy\r\n",
    ),
    ("ms mm 1 MR\r\ny\r\n", "NS\r\n"),
    ("ms mm 1 C5\r\ny\r\n", "NF\r\n"),
    ("ms m 1 C999999\r\ny\r\n", "EX\r\n"),
    (
        "ms m 1 MZ\r\ny\r\n",
        "CLIENT_ERROR invalid mode for ms M token\r\n",
    ),
    ("ms m x\r\n", "CLIENT_ERROR bad command line format\r\n"),
    ("ms m\r\n", "CLIENT_ERROR bad command line format\r\n"),
    (
        "ms m 2\r\nabcd\r\n",
        "CLIENT_ERROR bad data chunk\r\nERROR\r\n",
    ),
    ("mg m v v\r\n", "CLIENT_ERROR duplicate flag\r\n"),
    ("mg m Z\r\n", "CLIENT_ERROR invalid flag\r\n"),
    (
        "mg m O12345678901234567890123456789012\r\n",
        "CLIENT_ERROR opaque token too long\r\n",
    ),
    ("mg\r\n", "ERROR\r\n"),
    ("md m q k\r\n", ""),
    ("md m q k O3\r\n", "NF km O3\r\n"),
    ("md m Z\r\n", "CLIENT_ERROR invalid or duplicate flag\r\n"),
    // Renewal: one client wins, others are told so.
    ("mg r N30 v\r\n", "VA 0 W\r\n\r\n"),
    ("mg r N30 v\r\n", "VA 0 Z\r\n\r\n"),
    ("ms r 1 T0\r\nx\r\nmg r R30\r\n", "HD\r\nHD\r\n"),
    (
        "ms r 1 T20\r\nx\r\nmg r R30\r\nmg r R30\r\n",
        "HD\r\nHD W\r\nHD Z\r\n",
    ),
    (
        "ms r 1\r\nx\r\nmd r I\r\nmg r v\r\nmg r v\r\n",
        "HD\r\nHD\r\nVA 1 X W\r\nx\r\nVA 1 Z X\r\nx\r\n",
    ),
    // Counting.
    ("ma c\r\n", "NF\r\n"),
    ("ma c N0 J13 v\r\n", "VA 2\r\n13\r\n"),
    ("ma c v D7\r\n", "VA 2\r\n20\r\n"),
    ("ma c v MD D21\r\n", "VA 1\r\n0\r\n"),
    ("ma c q\r\n", ""),
    ("ma c M+ v\r\n", "VA 1\r\n2\r\n"),
    (
        "ma c MX\r\n",
        "CLIENT_ERROR invalid mode for ma M token\r\n",
    ),
    (
        "ma r\r\n",
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
    ),
    // Binary keys.
    ("ms AAEC 1 b\r\nx\r\n", "HD\r\n"),
    ("mg AAEC b k v\r\n", "VA 1 kAAEC b\r\nx\r\n"),
    ("mg !!!! b\r\n", "CLIENT_ERROR error decoding key\r\n"),
    ("md AAEC b k\r\n", "HD kAAEC b\r\n"),
];

fn compare(client: &mut Client, slowly: bool) {
    for (question, expected) in EXCHANGES {
        let answer = if slowly {
            client.ask_slowly(question.as_bytes())
        } else {
            client.ask(question.as_bytes())
        };
        assert_eq!(
            shown(&answer),
            shown(expected.as_bytes()),
            "after {question:?}"
        );
    }
}

#[test]
fn every_command_over_tcp() {
    compare(&mut Server::start(&[]).connect(), false);
}

#[test]
fn every_command_with_several_workers() {
    compare(&mut Server::start(&["-t", "3"]).connect(), false);
}

#[test]
fn every_command_over_a_unix_socket() {
    let folder = Folder::new("protocol");
    let server = Server::start(&["-s", &folder.path("socket")]);
    compare(&mut server.connect(), false);
}

#[test]
fn every_command_byte_by_byte() {
    compare(&mut Server::start(&[]).connect(), true);
}

#[test]
fn every_command_in_one_burst() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let (mut questions, mut answers) = (String::new(), String::new());
    for (question, answer) in EXCHANGES {
        questions += question;
        answers += answer;
    }
    assert_eq!(
        shown(&client.ask(questions.as_bytes())),
        shown(answers.as_bytes())
    );
}

#[test]
fn cas_numbers_change_with_the_item() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let cas = |client: &mut Client| -> String {
        let answer = String::from_utf8(client.ask(b"gets k\r\n")).expect("text");
        answer
            .lines()
            .next()
            .and_then(|line| line.split(' ').nth(4))
            .expect("a CAS number")
            .to_owned()
    };
    let mut seen = Vec::new();
    for change in [
        "set k 0 0 1\r\n1\r\n",
        "replace k 0 0 1\r\n1\r\n",
        "append k 0 0 1\r\n1\r\n",
        "prepend k 0 0 1\r\n1\r\n",
        "incr k 1\r\n",
        "decr k 1\r\n",
        "ms k 2 F1\r\n20\r\n",
        "ma k\r\n",
        "md k I\r\n",
    ] {
        client.ask(change.as_bytes());
        let now = cas(&mut client);
        assert!(
            !seen.contains(&now),
            "{change:?} left the number as it was, {now}"
        );
        seen.push(now);
    }
    for same in [
        "get k\r\n",
        "gat 0 k\r\n",
        "touch k 0\r\n",
        "add k 0 0 1\r\n1\r\n",
        "cas k 0 0 1 1\r\n1\r\n",
        "mg k T0\r\n",
    ] {
        client.ask(same.as_bytes());
        assert_eq!(Some(&cas(&mut client)), seen.last(), "{same:?}");
    }
    let (old, now) = (seen[0].clone(), cas(&mut client));
    assert_eq!(
        client.ask(format!("cas k 3 0 1 {old}\r\nx\r\n").as_bytes()),
        b"EXISTS\r\n"
    );
    assert_eq!(
        client.ask(format!("cas k 3 0 1 {now}\r\nx\r\n").as_bytes()),
        b"STORED\r\n"
    );
    assert_eq!(
        client.ask(format!("cas k 3 0 1 {now}\r\ny\r\n").as_bytes()),
        b"EXISTS\r\n"
    );
    assert_eq!(client.ask(b"get k\r\n"), b"VALUE k 3 1\r\nx\r\nEND\r\n");
    // An older number may store a value that is marked as stale.
    let now = cas(&mut client);
    assert_eq!(
        client.ask(format!("ms k 1 C{old} I\r\nz\r\nmg k v\r\n").as_bytes()),
        b"HD\r\nVA 1 X W\r\nz\r\n"
    );
    assert_eq!(client.ask(format!("md k C{now}\r\n").as_bytes()), b"EX\r\n");
    let now = cas(&mut client);
    assert_eq!(
        client.ask(format!("mg k c\r\nmd k C{now}\r\n").as_bytes()),
        format!("HD c{now} Z X\r\nHD\r\n").as_bytes()
    );
}

#[test]
fn keys_have_up_to_250_bytes() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    let (long, longer) = ("k".repeat(250), "k".repeat(251));
    assert_eq!(
        client.ask(format!("set {long} 0 0 1\r\nx\r\n").as_bytes()),
        b"STORED\r\n"
    );
    assert_eq!(
        client.ask(format!("get {long}\r\n").as_bytes()),
        format!("VALUE {long} 0 1\r\nx\r\nEND\r\n").as_bytes()
    );
    let bad = b"CLIENT_ERROR bad command line format\r\n";
    for line in [
        format!("get {longer}\r\n"),
        format!("get {long} {longer} x\r\n"),
        format!("gat 0 {longer}\r\n"),
        format!("delete {longer}\r\n"),
        format!("incr {longer} 1\r\n"),
        format!("touch {longer} 1\r\n"),
        format!("set {longer} 0 0 1\r\n"),
        format!("mg {longer} v\r\n"),
        format!("md {longer}\r\n"),
        format!("ma {longer}\r\n"),
        format!("me {longer}\r\n"),
    ] {
        assert_eq!(shown(&client.ask(line.as_bytes())), shown(bad), "{line}");
    }
}

#[test]
fn a_line_without_end_closes_the_connection_and_says_why() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.send(&[b'x'; 2100]);
    assert_eq!(shown(&client.rest()), "CLIENT_ERROR line too long\\r\\n");
    let mut client = server.connect();
    client.send(b"GET / HTTP/1.0\r\n");
    assert_eq!(client.rest(), b"");
    let mut client = server.connect();
    client.send(b"set a 0 0 1\r\nx\r\nget a\r\nquit\r\nget a\r\n");
    assert_eq!(client.rest(), b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
    assert_eq!(server.connect().ask(b"mg a v\r\n"), b"VA 1\r\nx\r\n");
}

#[test]
fn statistics_count_what_happened() {
    let server = Server::start(&["-m", "32"]);
    let mut client = server.connect();
    client.ask(b"set a 0 0 3\r\nabc\r\nget a\r\nget b\r\ngat 0 a\r\ntouch b 0\r\nincr a 1\r\nset n 0 0 1\r\n1\r\nincr n 1\r\ndecr x 1\r\n");
    client.ask(b"cas a 0 0 1 999\r\nx\r\ncas b 0 0 1 1\r\nx\r\ndelete a\r\ndelete a\r\n");
    for (name, expected) in [
        ("pid", u64::from(server.pid())),
        ("curr_connections", 1),
        ("total_connections", 1),
        ("max_connections", 1024),
        ("cmd_get", 2),
        ("get_hits", 1),
        ("get_misses", 1),
        ("cmd_set", 4),
        ("cmd_touch", 2),
        ("touch_hits", 1),
        ("touch_misses", 1),
        ("incr_hits", 1),
        ("incr_misses", 0),
        ("decr_misses", 1),
        ("cas_badval", 1),
        ("cas_misses", 1),
        ("delete_hits", 1),
        ("delete_misses", 1),
        ("curr_items", 1),
        ("total_items", 2),
        ("bytes", 7 + 1 + 1),
        ("evictions", 0),
        ("limit_maxbytes", 32 << 20),
        ("threads", 1),
    ] {
        assert_eq!(client.statistic(name), expected, "{name}");
    }
    let (read, written) = (
        client.statistic("bytes_read"),
        client.statistic("bytes_written"),
    );
    assert_eq!(
        client.statistic("bytes_read"),
        read + 2 * "stats\r\nmn\r\n".len() as u64
    );
    assert!(client.statistic("bytes_written") > written + 1000);
    let all = String::from_utf8(client.ask(b"stats\r\n")).expect("text");
    for name in [
        "uptime",
        "time",
        "version",
        "rusage_user",
        "rusage_system",
        "hash_bytes",
    ] {
        assert!(
            all.contains(&format!("STAT {name} ")),
            "{name} is missing in {all}"
        );
    }
    assert!(all.ends_with("END\r\n"));
    assert_eq!(client.ask(b"stats reset\r\n"), b"RESET\r\n");
    for (name, expected) in [
        ("get_hits", 0),
        ("cmd_set", 0),
        ("total_items", 0),
        ("total_connections", 0),
        ("curr_connections", 1),
        ("curr_items", 1),
    ] {
        assert_eq!(client.statistic(name), expected, "{name} after reset");
    }
    let settings = String::from_utf8(client.ask(b"stats settings\r\n")).expect("text");
    assert!(
        settings.contains("STAT maxbytes 33554432\r\n")
            && settings.contains("STAT item_size_max 1048576\r\n"),
        "{settings}"
    );
}

//! Who watches is told what happens.

use crate::support::memcached::{Memcached, memcached_program};
use crate::support::{Client, Server};

const KINDS: [&[&str]; 4] = [
    &["-t", "1"],
    &["-t", "3"],
    &["-t", "3", "--access", "erew"],
    &["-t", "2", "--access", "crew"],
];

/// A connection that watches.
struct Watcher {
    client: Client,
    told: String,
}

impl Watcher {
    fn start(mut client: Client, what: &str) -> Self {
        client.send(format!("watch {what}\r\n").as_bytes());
        assert_eq!(client.until(b"\r\n"), b"OK\r\n");
        Self {
            client,
            told: String::new(),
        }
    }

    /// The next lines that `is_wanted`, so many of them, in their order, without what differs from time to time.
    fn lines(&mut self, count: usize, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
        loop {
            let whole = self.told.rfind('\n').map_or(0, |end| end + 1);
            let mut found: Vec<&str> = self.told[..whole].lines().collect();
            found.retain(|line| is_wanted(line));
            if found.len() >= count {
                assert_eq!(found.len(), count, "{found:?}");
                found.sort_by_key(|line| number(line));
                let found = found.iter().map(|line| line_without_times(line)).collect();
                self.told.clear();
                return found;
            }
            let more = self.client.some();
            assert!(!more.is_empty(), "closed after {}", self.told);
            self.told += &String::from_utf8(more).expect("text");
        }
    }
}

fn number(line: &str) -> u64 {
    let rest = line.split_once(" gid=").expect("a number").1;
    let digits = rest.split(' ').next().expect("a word");
    digits.parse().expect("a number")
}

fn line_without_times(line: &str) -> String {
    let (time, rest) = line.split_once(" gid=").expect("a number");
    let time = time.strip_prefix("ts=").expect("a time");
    let (seconds, fraction) = time.split_once('.').expect("a fraction");
    assert!(
        seconds
            .parse::<u64>()
            .is_ok_and(|seconds| seconds > 1 << 30)
    );
    assert!(fraction.parse::<u32>().is_ok_and(|micro| micro < 1_000_000));
    let words = rest.split(' ').skip(1).map(|word| {
        let word = if word.starts_with("cfd=") {
            "cfd=N"
        } else {
            word
        };
        let word = if word.starts_with("rport=") {
            "rport=N"
        } else {
            word
        };
        format!("{word} ")
    });
    words.collect::<String>().trim_end().to_owned()
}

#[test]
fn reads_and_stores_are_told() {
    for kind in KINDS {
        let server = Server::start(kind);
        let mut watcher = Watcher::start(server.connect(), "fetchers mutations");
        let mut client = server.connect();
        client.ask(b"set a 0 0 3\r\nabc\r\nget a b\r\nadd a 0 0 1\r\nx\r\nms c/d 2 T90\r\nhi\r\nmg c/d v\r\ngat 0 a\r\ncas a 0 0 1 1\r\nx\r\n");
        assert_eq!(
            watcher.lines(8, |_| true),
            [
                "type=item_store key=a status=stored cmd=set ttl=0 clsid=1 cfd=N size=3",
                "type=item_get key=a status=found clsid=1 cfd=N size=3",
                "type=item_get key=b status=not_found clsid=0 cfd=N size=0",
                "type=item_store key=a status=not_stored cmd=add ttl=0 clsid=1 cfd=N size=1",
                "type=item_store key=c%2Fd status=stored cmd=set ttl=90 clsid=1 cfd=N size=2",
                "type=item_get key=c%2Fd status=found clsid=1 cfd=N size=2",
                "type=item_get key=a status=found clsid=1 cfd=N size=3",
                "type=item_store key=a status=exists cmd=cas ttl=0 clsid=1 cfd=N size=1",
            ]
        );
        assert_eq!(client.statistic("log_watchers"), 1);
        assert!(client.statistic("log_watcher_sent") >= 8);
        let connections = client.ask(b"stats conns\r\n");
        let connections = String::from_utf8(connections).expect("text");
        assert_eq!(connections.matches(" conn_watch\r\n").count(), 1);
        // What it says itself is not listened to, until it goes away.
        watcher.client.send(b"set z 0 0 1\r\nz\r\nget a\r\n");
        assert_eq!(client.ask(b"get z\r\n"), b"END\r\n");
        drop(watcher);
        while client.statistic("log_watchers") > 0 {}
        let written = client.statistic("log_worker_written");
        client.ask(b"get a\r\nset a 0 0 1\r\ny\r\n");
        assert_eq!(client.statistic("log_worker_written"), written);
    }
}

#[test]
fn evictions_are_told() {
    for kind in KINDS {
        let server = Server::start(&[kind, &["-m", "3", "-I", "64k"]].concat());
        let mut watcher = Watcher::start(server.connect(), "evictions");
        let mut client = server.connect();
        let value = "v".repeat(50_000);
        for number in 0..200 {
            client.ask(format!("set k{number} 0 1000 50000\r\n{value}\r\n").as_bytes());
        }
        let count = client.statistic("evictions");
        assert!(count > 50);
        for line in watcher.lines(count as usize, |_| true) {
            assert!(line.starts_with("type=eviction key=k"), "{line}");
            assert!(line.ends_with(" clsid=1 size=50000"), "{line}");
            assert!(line.contains(" fetch=no ttl="), "{line}");
        }
    }
}

#[test]
fn connections_are_told() {
    for kind in KINDS {
        let server = Server::start(kind);
        let mut watcher = Watcher::start(server.connect(), "connevents");
        drop(server.connect());
        let mut lines = watcher.lines(2, |line| line.contains("type=conn_"));
        lines.sort_unstable_by(|one, other| other.cmp(one));
        assert_eq!(
            lines,
            [
                "type=conn_new rip=127.0.0.1 rport=N transport=tcp cfd=N",
                "type=conn_close rip=127.0.0.1 rport=N transport=tcp reason=normal cfd=N",
            ]
        );
    }
}

#[test]
fn nobody_waits_for_a_watcher_that_does_not_read() {
    for kind in [KINDS[0], KINDS[1]] {
        let server = Server::start(kind);
        let mut watcher = Watcher::start(server.connect(), "fetchers");
        let mut client = server.connect();
        let questions = "get nothing-that-is-there\r\n".repeat(5000);
        // Until its socket and its mailbox are full.
        while client.statistic("log_watcher_skipped") == 0 {
            client.ask(questions.as_bytes());
        }
        // Once there is room again it is told how many it missed.
        while !watcher.told.contains("\nskipped=") {
            let more = watcher.client.some();
            watcher.told += &String::from_utf8(more).expect("text");
            client.ask(b"get again\r\n");
        }
    }
}

#[test]
fn some_cannot_watch() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    assert_eq!(client.ask(b"watch nonsense\r\n"), b"ERROR\r\n");
    assert_eq!(client.ask(b"watch proxyreqs\r\n"), b"ERROR\r\n");
    assert_eq!(
        client.ask(b"get a\r\nwatch\r\n"),
        b"END\r\nERROR cannot pipeline other commands before watch\r\n"
    );
    let watchers: Vec<_> = (0..20)
        .map(|_| Watcher::start(server.connect(), ""))
        .collect();
    assert_eq!(
        client.ask(b"watch\r\n"),
        b"WATCHER_TOO_MANY log watcher limit reached\r\n"
    );
    drop(watchers);
    let server = Server::start(&["-W"]);
    assert_eq!(
        server.connect().ask(b"watch\r\n"),
        b"CLIENT_ERROR watch commands not allowed\r\n"
    );
}

#[test]
fn stores_are_told_as_memcached_tells_them() {
    let Some(program) = memcached_program() else {
        eprintln!("skipped: no memcached 1.6 in RACKSCOPE_MEMCACHED or on PATH");
        return;
    };
    let memcached = Memcached::start(&program, &[]);
    let server = Server::start(&[]);
    let told = [memcached.address(), server.address()].map(|address| {
        let mut watcher = Watcher::start(Client::connect(address), "mutations");
        let mut client = Client::connect(address);
        client.ask(
            b"set a 0 0 3\r\nabc\r\nadd a 0 0 1\r\nx\r\nadd b!c 0 0 1\r\nx\r\nreplace a 0 500 2\r\nxy\r\n\
            replace none 0 0 1\r\nx\r\nappend a 0 0 1\r\nx\r\nprepend none 0 0 1\r\nx\r\ncas a 0 0 1 1\r\nx\r\n\
            cas none 0 0 1 1\r\nx\r\nms a 1 T90\r\nx\r\nms none 1 MR\r\nx\r\n",
        );
        watcher
            .lines(11, |_| true)
            .iter()
            .map(|line| {
                // Classes are of each server's own.
                let words = line.split(' ').filter(|word| !word.starts_with("clsid="));
                words.collect::<Vec<_>>().join(" ")
            })
            .collect::<Vec<_>>()
    });
    assert_eq!(told[0], told[1]);
}

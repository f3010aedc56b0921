//! What those who look after a server ask of it.

use crate::support::{Client, Server, shown};
use std::collections::{BTreeMap, BTreeSet};

/// One worker, several that share all items, and several of which each has its own.
const KINDS: [&[&str]; 4] = [
    &["-t", "1"],
    &["-t", "3"],
    &["-t", "3", "--access", "erew"],
    &["-t", "2", "--access", "crew"],
];

fn start(kind: &[&str], more: &[&str]) -> Server {
    Server::start(&[kind, more].concat())
}

/// The statistics of a section by name.
fn statistics(client: &mut Client, section: &str) -> BTreeMap<String, String> {
    let answer = String::from_utf8(client.ask(format!("stats {section}\r\n").as_bytes()));
    let answer = answer.expect("text");
    let lines = answer.strip_suffix("END\r\n").expect("an end");
    lines
        .lines()
        .map(|line| {
            let (name, value) = line
                .strip_prefix("STAT ")
                .and_then(|line| line.split_once(' '))
                .expect("a statistic");
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

fn expect(client: &mut Client, exchanges: &[(&str, &str)]) {
    for (question, answer) in exchanges {
        assert_eq!(
            shown(&client.ask(format!("{question}\r\n").as_bytes())),
            shown(answer.as_bytes()),
            "{question}"
        );
    }
}

#[test]
fn items_are_of_one_class_whose_memory_is_the_log() {
    for kind in KINDS {
        // As much for one of three as for one of two.
        let server = start(kind, &["-m", "48"]);
        let mut client = server.connect();
        assert!(statistics(&mut client, "items").is_empty());
        client.ask(b"set a 0 0 3\r\nabc\r\nset b 0 0 1\r\n1\r\nget a\r\nincr b 1\r\ntouch b 0\r\n");
        let items = statistics(&mut client, "items");
        let bytes = (7 + 1 + 3) + (7 + 1 + 1);
        let expected = [
            ("items:1:number", "2"),
            ("items:1:age", "0"),
            ("items:1:mem_requested", &bytes.to_string()),
            ("items:1:evicted", "0"),
            ("items:1:outofmemory", "0"),
            ("items:1:reclaimed", "0"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut items_without_age = items.clone();
        // The clock may strike meanwhile.
        items_without_age.insert("items:1:age".to_owned(), "0".to_owned());
        assert!(
            items["items:1:age"]
                .parse::<u32>()
                .is_ok_and(|age| age < 20)
        );
        assert_eq!(items_without_age, BTreeMap::from(expected));

        let slabs = statistics(&mut client, "slabs");
        let number = |name: &str| slabs[name].parse::<u64>().expect("a number");
        assert_eq!(number("1:chunk_size") * number("1:total_chunks"), 48 << 20);
        assert_eq!(
            number("1:total_pages") * number("1:chunks_per_page"),
            48 << 20
        );
        assert_eq!(number("1:used_chunks"), bytes);
        assert_eq!(
            number("1:free_chunks"),
            number("1:total_chunks") - number("1:used_chunks")
        );
        assert_eq!(number("1:mem_requested"), bytes);
        assert_eq!(number("total_malloced"), 48 << 20);
        assert_eq!(number("active_slabs"), 1);
        for (name, expected) in [
            ("get_hits", 1),
            ("cmd_set", 2),
            ("incr_hits", 1),
            ("touch_hits", 1),
        ] {
            assert_eq!(number(&format!("1:{name}")), expected, "{name}");
        }
        assert_eq!(client.ask(b"stats reset\r\n"), b"RESET\r\n");
        let slabs = statistics(&mut client, "slabs");
        assert_eq!(
            (&slabs["1:get_hits"][..], &slabs["1:used_chunks"][..]),
            ("0", "20")
        );
    }
}

#[test]
fn evictions_of_the_class_count_from_the_last_reset() {
    let server = Server::start(&["-m", "1", "-I", "64k"]);
    let mut client = server.connect();
    let value = "v".repeat(60_000);
    let mut fill = |range: std::ops::Range<u32>| {
        for number in range {
            client.ask(format!("set k{number} 0 0 60000\r\n{value}\r\n").as_bytes());
        }
        let evicted = statistics(&mut client, "items")["items:1:evicted"].clone();
        let evictions = client.statistic("evictions");
        assert_eq!(evicted, evictions.to_string());
        assert_eq!(client.ask(b"stats reset\r\n"), b"RESET\r\n");
        evictions
    };
    assert!((10..30).contains(&fill(0..40)));
    assert_eq!(fill(40..50), 10);
}

#[test]
fn settings_have_memcached_s_names() {
    let server = Server::start(&["-X", "-D", "/", "-c", "77"]);
    let settings = statistics(&mut server.connect(), "settings");
    for (name, value) in [
        ("maxconns", "77"),
        ("domain_socket", "NULL"),
        ("umask", "700"),
        ("stat_key_prefix", "/"),
        ("detail_enabled", "yes"),
        ("dump_enabled", "no"),
        ("flush_enabled", "yes"),
        ("auth_enabled_ascii", "no"),
        ("lru_crawler", "no"),
        ("slab_reassign", "no"),
    ] {
        assert_eq!(
            settings.get(name).map(String::as_str),
            Some(value),
            "{name}"
        );
    }
}

#[test]
fn what_is_not_there_to_be_tuned_says_so() {
    let server = Server::start(&["-m", "64"]);
    let mut client = server.connect();
    expect(
        &mut client,
        &[
            ("stats sizes", "STAT sizes_status disabled\r\nEND\r\n"),
            ("stats nonsense", "ERROR\r\n"),
            ("slabs automove 0", "OK\r\n"),
            (
                "slabs reassign 1 2",
                "CLIENT_ERROR slab reassignment disabled\r\n",
            ),
            (
                "lru_crawler crawl all",
                "CLIENT_ERROR lru crawler disabled\r\n",
            ),
            ("cache_memlimit 64", "OK\r\n"),
            (
                "cache_memlimit 128",
                "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n",
            ),
            ("cache_memlimit 64 noreply", ""),
        ],
    );
}

#[test]
fn requests_are_counted_by_prefix_while_that_is_on() {
    for kind in KINDS {
        let server = start(kind, &[]);
        let mut client = server.connect();
        expect(
            &mut client,
            &[
                (
                    "stats detail",
                    "CLIENT_ERROR usage: stats detail on|off|dump\r\n",
                ),
                (
                    "stats detail x",
                    "CLIENT_ERROR usage: stats detail on|off|dump\r\n",
                ),
                ("set foo:1 0 0 1\r\nx", "STORED\r\n"),
                ("stats detail dump", "END\r\n"),
                ("stats detail on", "OK\r\n"),
                ("set foo:1 0 0 1\r\nx", "STORED\r\n"),
                ("get foo:1 foo:2 bar", "VALUE foo:1 0 1\r\nx\r\nEND\r\n"),
                ("gat 0 bar:1", "END\r\n"),
                ("mg foo:1 v", "VA 1\r\nx\r\n"),
                ("ms foo:1 1\r\ny", "HD\r\n"),
                ("md foo:2", "NF\r\n"),
                ("delete foo:1", "DELETED\r\n"),
                (
                    "stats detail dump",
                    "PREFIX bar get 1 hit 0 set 0 del 0\r\n\
                     PREFIX foo get 3 hit 2 set 2 del 2\r\nEND\r\n",
                ),
                ("stats detail off", "OK\r\n"),
                ("get foo:1", "END\r\n"),
                (
                    "stats detail dump",
                    "PREFIX bar get 1 hit 0 set 0 del 0\r\n\
                     PREFIX foo get 3 hit 2 set 2 del 2\r\nEND\r\n",
                ),
                ("stats reset", "RESET\r\n"),
                ("stats detail dump", "END\r\n"),
            ],
        );
    }
}

/// The words behind `key=` of a `metadump`, by key.
fn metadata(dump: &[u8]) -> BTreeMap<String, Vec<String>> {
    let text = std::str::from_utf8(dump).expect("text");
    let lines = text.strip_suffix("END\r\n").expect("an end");
    let mut all = BTreeMap::new();
    for line in lines.lines() {
        let mut words = line.split(' ').map(str::to_owned);
        let key = words.next().expect("a key").replacen("key=", "", 1);
        assert!(all.insert(key, words.collect()).is_none(), "twice: {line}");
    }
    all
}

#[test]
fn keys_are_listed_with_what_is_known_of_them() {
    for kind in KINDS {
        let server = start(kind, &[]);
        let mut client = server.connect();
        client.ask(b"set a/b 0 0 3\r\nabc\r\nset gone 0 -1 1\r\nx\r\nset t 0 2000000000 1\r\nx\r\nget t\r\nms AAEC 1 b\r\nx\r\n");
        let cas = client.ask(b"mg a/b c\r\n");
        let cas = String::from_utf8(cas).expect("text");
        let cas = cas.trim_end().strip_prefix("HD c").expect("a number");

        let all = metadata(&client.ask(b"lru_crawler metadump all\r\n"));
        assert_eq!(all.keys().collect::<Vec<_>>(), ["%00%01%02", "a%2Fb", "t"]);
        let [exp, la, found_cas, fetch, class, size] = &all["a%2Fb"][..] else {
            panic!("{all:?}");
        };
        assert_eq!(
            (&exp[..], &fetch[..], &class[..]),
            ("exp=-1", "fetch=yes", "cls=1")
        );
        assert_eq!(
            (found_cas, size),
            (
                &format!("cas={cas}"),
                &format!("size={}", mica::HEADER_BYTES + 3 + 3)
            )
        );
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let last_access: u64 = la
            .strip_prefix("la=")
            .expect("a time")
            .parse()
            .expect("a number");
        assert!(now.expect("after 1970").as_secs().abs_diff(last_access) < 30);
        assert_eq!(all["t"][0], "exp=2000000000");
        assert_eq!(
            metadata(&client.ask(b"lru_crawler metadump hash\r\n")).len(),
            3
        );
        assert_eq!(client.ask(b"lru_crawler metadump 2\r\n"), b"END\r\n");

        let keys = String::from_utf8(client.ask(b"lru_crawler mgdump all\r\n")).expect("text");
        let mut lines: Vec<_> = keys.lines().collect();
        assert_eq!(lines.pop(), Some("EN"));
        lines.sort_unstable();
        assert_eq!(lines, ["mg AAEC b", "mg a/b", "mg t"]);

        let dump = String::from_utf8(client.ask(b"stats cachedump 1 0\r\n")).expect("text");
        let mut lines: Vec<_> = dump.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            ["END", "ITEM a/b [3 b; 0 s]", "ITEM t [1 b; 2000000000 s]"]
        );
        assert_eq!(
            client
                .ask(b"stats cachedump 1 1\r\n")
                .split(|&byte| byte == b'\n')
                .count(),
            3
        );
        expect(
            &mut client,
            &[
                ("stats cachedump 2 0", "END\r\n"),
                ("stats cachedump 64 0", "CLIENT_ERROR Illegal slab id\r\n"),
                (
                    "stats cachedump x 0",
                    "CLIENT_ERROR bad command line format\r\n",
                ),
                ("stats cachedump 1", "CLIENT_ERROR bad command line\r\n"),
            ],
        );
    }
}

#[test]
fn a_long_list_goes_at_the_reader_s_pace_and_misses_nothing() {
    for kind in KINDS {
        long_list(kind);
    }
}

fn long_list(kind: &[&str]) {
    const KEYS: u32 = 40_000;
    let prefix = "a-key-that-is-not-short-".repeat(9);
    let server = start(kind, &["-m", "64"]);
    let mut client = server.connect();
    for start in (0..KEYS).step_by(10_000) {
        let sets: String = (start..start + 10_000)
            .map(|number| format!("set {prefix}:{number} 0 0 1 noreply\r\nx\r\n"))
            .collect();
        client.ask(sets.as_bytes());
    }
    // More than fits the sockets' buffers, and nobody reads; commands behind it wait.
    let mut slow = server.connect();
    slow.send(format!("lru_crawler mgdump all\r\nget {prefix}:7\r\n").as_bytes());
    // Others are served.
    assert_eq!(client.statistic("curr_items"), u64::from(KEYS));
    let held = client.ask(b"stats cachedump 1 0\r\n").len();
    assert!((1 << 20..=2 << 20).contains(&held), "{held}");
    let some = client.ask(b"stats cachedump 1 150\r\n");
    assert_eq!(some.split(|&byte| byte == b'\n').count(), 150 + 2);
    let answer = slow.until(format!("VALUE {prefix}:7 0 1\r\nx\r\nEND\r\n").as_bytes());
    let text = String::from_utf8(answer).expect("text");
    let keys: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("mg "))
        .collect();
    assert_eq!(keys.len(), KEYS as usize);
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), KEYS as usize);
    assert!(text.contains("\r\nEN\r\nVALUE"));
}

#[test]
fn lists_can_be_forbidden() {
    let server = Server::start(&["-X"]);
    expect(
        &mut server.connect(),
        &[
            ("set a 0 0 1\r\nx", "STORED\r\n"),
            (
                "stats cachedump 1 0",
                "CLIENT_ERROR stats cachedump not allowed\r\n",
            ),
            ("lru_crawler metadump all", "ERROR metadump not allowed\r\n"),
            ("lru_crawler mgdump all", "ERROR mgdump not allowed\r\n"),
        ],
    );
}

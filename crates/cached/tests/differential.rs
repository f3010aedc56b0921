//! Random commands to `rackscope-cached` and to memcached: the answers must be the same, byte by byte.
//!
//! memcached is taken from the variable `RACKSCOPE_MEMCACHED` (a path), or from PATH. Where there is none the test
//! says so and passes. It may be of any version from 1.6.18 on: what was answered otherwise later is in [`newer_words`], is
//! not drawn against such a memcached, and is asked of either by a test of its own. A case has about 20 commands; `PROPTEST_CASES=52000` makes a million, which `--nocapture` counts.
//!
//! Differences that are meant, and that the generator below therefore does not ask for:
//!
//! * `version`, `stats` and `me` tell about the server itself.
//! * There is nothing to list keys or count prefixes with, no class of lengths and no queue to tune, and memory stays as
//!   large as it is: as in a memcached of which that is forbidden, or `ERROR`.
//! * In a `get` with a key that is too long, memcached reads the keys before it, and marks them as read.
//! * After a line that is too long memcached closes without a word.
//! * `flush_all 1` in memcached also drops what is stored until the second ends; a `flush_all` for later brings back
//!   what an earlier one dropped and nobody has asked for since.
//! * memcached skips characters that are not base64 in a binary key; we refuse the key.
//! * memcached reads on behind a value of nothing but spaces when it looks for a number in it, and behind one of 2^63
//!   or more when it looks for a sign.
//! * An opaque token that is too long is refused before `ma` counts and `mg` touches, not after.
//! * Items within a hundred bytes of the largest: the two have headers of different length.
//! * Seconds left (`t`) and since the last hit (`l`) may differ by one between two servers.
//! * CAS numbers are of each server's own: theirs count changes, ours tell where an item lies. What must be the same is
//!   which of them are the same, and, of those of one key, which is older. Numbers of different keys have no order.
//! * The flags that came after 1.6.18 (`E`, `x`, `C` of `mg`, `s` and `N` of `ms`).
//! * When memory is full (`-M`), whether there is room: ours has no classes of lengths, and an item that is not longer
//!   than the one it replaces needs none. Then `add`, `replace` and `cas` that would not have stored anything say so
//!   here, and that memory is out there.
//! * A binary key stays marked as such when `append` or `mg` with `N` makes a new item.

use crate::support::memcached::{Memcached, memcached_program};
use crate::support::newer_words::{self, CHANGES, is_changed};
use crate::support::{Client, Server, shown};
use proptest::prelude::*;
use std::cell::Cell;
use std::sync::Mutex;

/// Both servers, fresh or after a case that went well, which left them in step.
struct Both {
    ours: Side,
    theirs: Side,
    /// Which of the [`CHANGES`] theirs has.
    speaks_newer: bool,
    _server: Server,
    _memcached: Memcached,
}

/// A server, and the CAS numbers it told so far, each once with its key's name.
struct Side {
    client: Client,
    seen: Vec<(Vec<u8>, u64)>,
}

impl Side {
    fn new(client: Client) -> Self {
        Self {
            client,
            seen: Vec::new(),
        }
    }

    /// The answers to `command`, with [CAS numbers](with_cas_numbers) of its key, and with `#` and its place among those
    /// told for each CAS number.
    fn ask(&mut self, command: &[u8], end: &[u8]) -> Vec<u8> {
        let name = name(command);
        let of_key = self.seen.iter().rev().filter(|(key, _)| *key == name);
        let newest: Vec<u64> = of_key.map(|&(_, cas)| cas).collect();
        let mut question = with_cas_numbers(command, &newest);
        question.extend_from_slice(end);
        let answer = self.client.ask(&question);
        self.without_cas(&answer, &name)
    }

    fn without_cas(&mut self, answer: &[u8], name: &[u8]) -> Vec<u8> {
        let mut shown = Vec::new();
        let mut rest = answer;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let (line, behind) = rest.split_at(end + 1);
            let mut words: Vec<Vec<u8>> = line
                .split(|&byte| byte == b' ')
                .map(<[u8]>::to_vec)
                .collect();
            let kind = words[0].clone();
            let name = match (&kind[..], words.get(1)) {
                (b"VALUE", Some(key)) => key.clone(),
                _ => name.to_vec(),
            };
            let value_bytes = match &kind[..] {
                b"VALUE" => words.get(3),
                b"VA" => words.get(1),
                _ => None,
            };
            let value_bytes = value_bytes
                .and_then(|word| digits(word))
                .map_or(0, |bytes| bytes as usize + 2);
            for (place, word) in words.iter_mut().enumerate() {
                let cas = match &kind[..] {
                    b"VALUE" if place == 4 => digits(word),
                    b"VA" | b"HD" if place > 0 => word.strip_prefix(b"c").and_then(digits),
                    _ => None,
                };
                if let Some(cas) = cas.filter(|&cas| cas != 0) {
                    let told = (name.clone(), cas);
                    let place = self
                        .seen
                        .iter()
                        .position(|seen| *seen == told)
                        .unwrap_or_else(|| {
                            self.seen.push(told);
                            self.seen.len() - 1
                        });
                    *word = format!("#{place}").into_bytes();
                }
            }
            shown.extend_from_slice(&words.join(&b' '));
            let (value, behind) = behind.split_at(value_bytes.min(behind.len()));
            shown.extend_from_slice(value);
            rest = behind;
        }
        shown.extend_from_slice(rest);
        shown
    }
}

/// `command` with the newest number for `{0}`, the one before it for `{1}` and so on, and 7 where there is none. In its line
/// only: a value is what it is.
fn with_cas_numbers(command: &[u8], newest: &[u64]) -> Vec<u8> {
    let line_bytes = command.iter().position(|&byte| byte == b'\n');
    let (line, value) = command.split_at(line_bytes.unwrap_or(command.len()));
    let mut question = line.to_vec();
    for back in 0..CAS_NUMBERS_BACK {
        let mark = format!("{{{back}}}");
        let number = newest.get(back).unwrap_or(&7).to_string();
        while let Some(at) = question
            .windows(mark.len())
            .position(|bytes| bytes == mark.as_bytes())
        {
            question.splice(at..at + mark.len(), number.bytes());
        }
    }
    question.extend_from_slice(value);
    question
}

#[test]
fn a_value_that_looks_like_a_mark_stays_as_it_is() {
    let command = b"cas a 0 0 3 {0} {1}\r\n{5}\r\n";
    let filled = b"cas a 0 0 3 12 7\r\n{5}\r\n";
    assert_eq!(shown(&with_cas_numbers(command, &[12])), shown(filled));
}

/// What the key of a command of one key is known by: an encoded one is another.
fn name(command: &[u8]) -> Vec<u8> {
    let line = command.split(|&byte| byte == b'\n').next();
    let mut words = line
        .unwrap_or_default()
        .trim_ascii_end()
        .split(|&byte| byte == b' ');
    let is_meta = words.next().is_some_and(|word| word.len() == 2);
    let mut name = words.next().unwrap_or_default().to_vec();
    if is_meta && words.any(|word| word == b"b") {
        name.extend_from_slice(b" encoded");
    }
    name
}

/// The number that a word is, but for the end of its line.
fn digits(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word.trim_ascii_end())
        .ok()?
        .parse()
        .ok()
}

/// How far back the CAS numbers that commands use may lie.
const CAS_NUMBERS_BACK: usize = 6;

/// Of a server with three workers, and so many count changes.
const PARTITIONS_MAX: u32 = 12;

impl Both {
    fn start(program: &str, arguments: &[&str]) -> Self {
        // Its housekeeping threads hold items now and then, and a number that is held is not padded with spaces.
        let without = "no_lru_maintainer,no_lru_crawler,no_slab_reassign";
        let mut theirs = vec!["-o", without, "-X", "-W"];
        theirs.extend(arguments.iter().filter(|&&argument| argument == "-M"));
        let memcached = Memcached::start(program, &theirs);
        let speaks_newer = memcached.version() >= newer_words::SINCE;
        let server = Server::start(arguments);
        let mut both = Self {
            ours: Side::new(server.connect()),
            theirs: Side::new(Client::connect(memcached.address())),
            speaks_newer,
            _server: server,
            _memcached: memcached,
        };
        // Small numbers, which commands are full of, are then older than any item's to both, in each of the partitions.
        for number in 0..20 * PARTITIONS_MAX {
            let spend = format!("set spent{number} 0 0 1\r\nx\r\n").repeat(10);
            both.ask(format!("{spend}delete spent{number}\r\n").as_bytes());
        }
        both
    }

    /// The answers of both to one command. One at a time: what memcached does may depend on answers that it has not
    /// sent yet (it pads a number with spaces only if nobody is about to read the old one, and a key that is too long
    /// makes it forget them).
    fn ask(&mut self, command: &[u8]) -> (Vec<u8>, Vec<u8>) {
        // A command that was cut short takes what follows for the end of its value. A newer memcached gets none of those.
        let end: &[u8] = if self.speaks_newer { b"" } else { b"\n\n\n" };
        (self.ours.ask(command, end), self.theirs.ask(command, end))
    }
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        20 => prop::sample::select(vec!["a", "b", "c", "d", "Zm9v"]).prop_map(str::to_owned),
        1 => Just("k".repeat(250)),
    ]
}

/// The same, rarely one that is too long.
fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![20 => key(), 1 => Just("k".repeat(251))]
}

/// Never empty: the words behind it would move up, and a length of another meaning take what follows for a value.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (0..30_u64).prop_map(|number| number.to_string()),
        2 => any::<u64>().prop_map(|number| number.to_string()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        2 => prop::sample::select(vec![
            "x", "-", "+1", "-0", "1x", "01", "4294967295", "4294967296", "-1", "2147483647", "2147483648",
            "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "1\t2", "1.5",
        ]).prop_map(str::to_owned),
    ]
}

/// The same, but for the large ones: an answer that does not tell the sum leaves open whether it has a sign to memcached.
fn small_number() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (0..30_u64).prop_map(|number| number.to_string()),
        2 => prop::sample::select(vec!["x", "-", "+1", "-0", "1x", "01", "4294967296", "-1", "1\t2", "1.5"])
            .prop_map(str::to_owned),
    ]
}

/// So large that to memcached it may have a sign (see the differences above).
fn may_have_sign(number: &[u8]) -> bool {
    digits(number).is_some_and(|number| number >= 1 << 62)
}

/// One that a server told, one that is older than all, or one that no item ever has.
fn cas_number() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0..CAS_NUMBERS_BACK).prop_map(|back| format!("{{{back}}}")),
        1 => (0..30_u64).prop_map(|number| number.to_string()),
        1 => (u64::MAX / 2..=u64::MAX).prop_map(|number| number.to_string()),
        1 => prop::sample::select(vec!["x", "-", "-1", "1x", "18446744073709551616"]).prop_map(str::to_owned),
    ]
}

/// Never so soon that the two servers could disagree about the second.
fn exptime() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just("0".to_owned()),
        2 => Just("5000".to_owned()),
        1 => prop::sample::select(vec!["-1", "-100", "2592000", "2592001", "1000000000", "2147483647", "2147483648", "4294967296", "-2147483649", "x", "5000x"])
            .prop_map(str::to_owned),
    ]
}

/// Without the sign (see the differences above), and never `mn`, by which the client finds the end of answers: where a
/// line is refused, its value is the next command.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let value = prop_oneof![
        6 => number().prop_map(String::into_bytes),
        6 => "([a-z][a-z ]{0,20})?".prop_map(String::into_bytes),
        2 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (0..2000_usize).prop_map(|length| vec![b'v'; length]),
    ];
    value.prop_map(|mut value: Vec<u8>| {
        if may_have_sign(&value) {
            value.truncate(9);
        }
        value.retain(|&byte| byte != b'-' && byte != b'm');
        if value.iter().all(|byte| matches!(byte, 0 | 9..=13 | b' ')) {
            value.clear();
        }
        value
    })
}

/// What follows a declared length: usually as long, and rarely not.
fn block() -> impl Strategy<Value = (usize, Vec<u8>)> {
    prop_oneof![
        30 => value().prop_map(|value| (value.len(), value)),
        1 => (value(), 0..3_usize).prop_map(|(value, more)| (value.len() + more, value)),
        1 => (value(), 0..3_usize).prop_map(|(value, less)| (value.len().saturating_sub(less), value)),
    ]
}

fn noreply() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "",
        "",
        "",
        "",
        " noreply",
        " noreply",
        " nonsense",
        " 0 noreply",
        "  ",
    ])
}

/// Bytes that a person can read in a failure.
#[derive(Clone)]
struct Bytes(Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&shown(&self.0))
    }
}

fn line(text: String) -> Bytes {
    Bytes((text + "\r\n").into_bytes())
}

fn with_block(text: &str, value: &[u8]) -> Bytes {
    Bytes([text.as_bytes(), b"\r\n", value, b"\r\n"].concat())
}

fn meta_flags() -> impl Strategy<Value = String> {
    let plain = prop::sample::select(vec![
        "v", "k", "f", "s", "c", "q", "h", "u", "b", "I", "O1", "Oopaque", "P1", "L1", "Z",
    ]);
    let valued = (prop::sample::select(vec!["F", "D", "J"]), small_number())
        .prop_map(|(flag, number)| flag.to_owned() + &number);
    let compared = cas_number().prop_map(|number| format!("C{number}"));
    let timed = (prop::sample::select(vec!["T", "N", "R"]), exptime())
        .prop_map(|(flag, time)| flag.to_owned() + &time);
    let mode = prop::sample::select(vec![
        "ME", "MA", "MP", "MR", "MS", "MI", "MD", "M+", "M-", "MX", "M", "MSS",
    ]);
    let flag = prop_oneof![8 => plain.prop_map(str::to_owned), 2 => valued, 2 => compared, 2 => timed, 2 => mode.prop_map(str::to_owned)];
    prop::collection::vec(flag, 0..5)
        .prop_map(|flags| {
            flags
                .iter()
                .map(|flag| format!(" {flag}"))
                .collect::<String>()
        })
        .prop_filter("a binary key and what makes a new item", |flags| {
            !flags.contains(" b") || ![" N", " MA", " MP"].iter().any(|flag| flags.contains(flag))
        })
}

fn command() -> impl Strategy<Value = Bytes> {
    let store = (
        prop::sample::select(vec![
            "set", "set", "set", "add", "replace", "append", "prepend",
        ]),
        any_key(),
        number(),
        exptime(),
        block(),
        noreply(),
    )
        .prop_map(|(verb, key, flags, exptime, (length, value), noreply)| {
            with_block(
                &format!("{verb} {key} {flags} {exptime} {length}{noreply}"),
                &value,
            )
        });
    let cas = (key(), exptime(), block(), cas_number(), noreply()).prop_map(
        |(key, exptime, (length, value), cas, noreply)| {
            with_block(
                &format!("cas {key} 0 {exptime} {length} {cas}{noreply}"),
                &value,
            )
        },
    );
    let get = (
        prop::sample::select(vec!["get", "gets"]),
        prop::collection::vec(key(), 0..30),
    )
        .prop_map(|(verb, keys)| line(format!("{verb} {}", keys.join(" "))));
    let touch = (
        prop::sample::select(vec!["gat", "gats"]),
        exptime(),
        prop::collection::vec(key(), 0..4),
    )
        .prop_map(|(verb, exptime, keys)| line(format!("{verb} {exptime} {}", keys.join(" "))));
    let one_number = (
        prop::sample::select(vec!["incr", "decr", "incr", "decr", "delete"]),
        any_key(),
        number(),
        noreply(),
    )
        .prop_map(|(verb, key, number, noreply)| line(format!("{verb} {key} {number}{noreply}")));
    let retouch = (any_key(), exptime(), noreply())
        .prop_map(|(key, exptime, noreply)| line(format!("touch {key} {exptime}{noreply}")));
    let delete =
        (any_key(), noreply()).prop_map(|(key, noreply)| line(format!("delete {key}{noreply}")));
    let other = prop::sample::select(vec![
        "flush_all",
        "flush_all 0",
        "flush_all -1",
        "flush_all x",
        "flush_all noreply",
        "flush_all 0 noreply",
        "flush_all 0 0 0",
        "verbosity 0",
        "verbosity",
        "verbosity x",
        "verbosity 0 noreply",
        "verbosity 0 0 0",
        "stats reset",
        "stats nonsense",
        "watch nonsense",
        "watch fetchers nonsense",
        "stats sizes",
        "stats cachedump 1",
        "stats cachedump x 0",
        "stats cachedump 64 0",
        "slabs",
        "slabs reassign 1 2",
        "lru",
        "lru mode flat",
        "lru temp_ttl 5",
        "lru_crawler",
        "lru_crawler crawl all",
        "lru_crawler x",
        "cache_memlimit",
        "bget",
        "bget a b",
        "",
        " ",
        "\r",
        "x",
        "xx",
        "get",
        "gets ",
        "gat",
        "incr",
        "incr a",
        "delete",
        "touch",
        "touch a",
        "set a 0 0",
        "cas a 0 0 1",
        "GET a",
        "getx a",
        "mx a",
        "ms a",
        "mg",
        "md",
        "ma",
        "ms a x",
        "ms a -1",
        "get a\0b",
        "set a 0 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 noreply",
        "mg a v k f s c q h u O1 P1 L1 T0 N0 R0 F0 C0 D0 J0 MS",
    ])
    .prop_map(|text| line(text.to_owned()));
    let meta = (
        prop::sample::select(vec!["mg", "mg", "md", "ma"]),
        key(),
        meta_flags(),
    )
        .prop_filter("a flag that is newer", |(verb, _, flags)| {
            *verb != "mg" || !flags.contains(" C")
        })
        .prop_map(|(verb, key, flags)| line(format!("{verb} {key}{flags}")));
    let meta_set = (key(), meta_flags(), block())
        .prop_filter("a flag that is newer", |(_, flags, _)| {
            let joins = flags.contains(" MA") || flags.contains(" MP");
            !(flags.contains(" s") || joins && flags.contains(" N"))
        })
        .prop_map(|(key, flags, (length, value))| {
            with_block(&format!("ms {key} {length}{flags}"), &value)
        });
    prop_oneof![8 => store, 2 => cas, 4 => get, 2 => touch, 4 => one_number, 1 => retouch, 2 => delete, 2 => other, 5 => meta, 3 => meta_set]
}

#[test]
fn answers_are_memcached_s() {
    compare(&[], 1000);
}

/// Most commands come to a worker that they are not for.
#[test]
fn answers_are_memcached_s_where_workers_have_their_own_keys() {
    compare(&["-t", "3", "--access", "erew"], 300);
    compare(&["-t", "3", "--access", "crew"], 300);
}

/// Neither evicts anything.
#[test]
fn answers_are_memcached_s_where_all_items_stay() {
    compare(&["-M"], 300);
    compare(&["-M", "-t", "3"], 300);
    compare(&["-M", "-t", "3", "--access", "erew"], 200);
    compare(&["-M", "-t", "3", "--access", "crew"], 200);
}

fn compare(arguments: &[&str], cases_min: u32) {
    let Some(program) = memcached_program() else {
        eprintln!("skipped: no memcached 1.6 in RACKSCOPE_MEMCACHED or on PATH");
        return;
    };
    let both = Mutex::new(None);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: ProptestConfig::default().cases.max(cases_min),
        max_shrink_iters: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let streams = prop::collection::vec(command(), 1..40);
    let commands = Cell::new(0_u64);
    let result = runner.run(&streams, |stream| {
        let mut servers = both
            .lock()
            .expect("one thread")
            .take()
            .unwrap_or_else(|| Both::start(&program, arguments));
        let is_crew = arguments.contains(&"crew");
        for command in stream {
            // What was read beside the owner does not count as read.
            if is_crew && asks_for_hits(&command.0) {
                continue;
            }
            if servers.speaks_newer && is_changed(&command.0) {
                continue;
            }
            let (ours, theirs) = servers.ask(&command.0);
            commands.set(commands.get() + 1);
            prop_assert_eq!(shown(&ours), shown(&theirs), "to {:?}", command);
            let first = ours.split(|&byte| byte == b'\r').next();
            if may_have_sign(first.unwrap_or_default()) {
                servers.ask(b"flush_all\r\n");
            }
        }
        servers.ask(b"flush_all\r\n");
        *both.lock().expect("one thread") = Some(servers);
        Ok(())
    });
    if let Err(error) = result {
        panic!("ours is left, memcached's is right: {error}");
    }
    println!("{} commands were answered alike", commands.get());
}

/// Whether the answer tells when, or whether, an item was read before.
fn asks_for_hits(command: &[u8]) -> bool {
    let line = command.split(|&byte| byte == b'\r').next();
    let mut words = line.unwrap_or_default().split(|&byte| byte == b' ');
    matches!(words.next(), Some(b"mg" | b"ma")) && words.any(|word| matches!(word, b"h" | b"l"))
}

/// What is too large or too long to be drawn at random.
#[test]
fn answers_about_large_things_are_memcached_s() {
    let Some(program) = memcached_program() else {
        eprintln!("skipped: no memcached 1.6 in RACKSCOPE_MEMCACHED or on PATH");
        return;
    };
    let mut servers = Both::start(&program, &[]);
    let large = "1".repeat(1_000_000);
    let too_large = "1".repeat(1_100_000);
    for burst in [
        format!("get {}\r\n", "k".repeat(251)),
        format!("gat 0 a {}\r\n", "k".repeat(251)),
        "set a 0 0 2\r\n-5\r\nincr a 1\r\nset a 0 0 2\r\n-0\r\nincr a 1\r\nset a 0 0 2\r\n- \r\nincr a 1\r\n".to_owned(),
        "mg a O12345678901234567890123456789012\r\n".to_owned(),
        "ms a 1 O12345678901234567890123456789012\r\nx\r\nget a\r\n".to_owned(),
        "ms a 1 O1234567890123456789012345678901\r\nx\r\nget a\r\n".to_owned(),
        format!(
            "set a 1 0 {}\r\n{large}\r\nget a\r\nincr a 1\r\nappend a 0 0 3\r\nxyz\r\nmg a s\r\n",
            large.len()
        ),
        format!(
            "set a 1 0 1\r\n1\r\nset a 1 0 {}\r\n{too_large}\r\nget a\r\n",
            too_large.len()
        ),
        format!(
            "set a 1 0 1\r\n1\r\nadd a 1 0 {}\r\n{too_large}\r\nget a\r\n",
            too_large.len()
        ),
        format!(
            "set a 1 0 1\r\n1\r\ncas a 1 0 {} 1 noreply\r\n{too_large}\r\nget a\r\n",
            too_large.len()
        ),
        format!(
            "set a 1 0 1\r\n1\r\nms a {} ME q\r\n{too_large}\r\nget a\r\n",
            too_large.len()
        ),
        format!(
            "set a 1 0 {}\r\n{large}\r\nappend a 0 0 100000\r\n{}\r\nmg a s\r\n",
            large.len(),
            &large[..100_000]
        ),
        format!("set a 1 0 {}\r\n{large}wxyz\r\nget a\r\n", large.len()),
    ] {
        let has_one_line = burst.find('\n') == Some(burst.len() - 1);
        if servers.speaks_newer && has_one_line && is_changed(burst.as_bytes()) {
            continue;
        }
        let (ours, theirs) = servers.ask(burst.as_bytes());
        assert!(
            ours == theirs,
            "to {}: ours {}, memcached's {}",
            shown(burst.as_bytes()),
            shown(&ours),
            shown(&theirs)
        );
    }
}

/// The table is right about the memcached that is there, and ours stays with the older words.
#[test]
fn words_that_changed_are_known() {
    let Some(program) = memcached_program() else {
        eprintln!("skipped: no memcached 1.6 in RACKSCOPE_MEMCACHED or on PATH");
        return;
    };
    let memcached = Memcached::start(&program, &["-X", "-W"]);
    let version = memcached.version();
    let server = Server::start(&[]);
    for change in CHANGES {
        let ask = |mut client: Client| {
            client.ask(b"flush_all\r\nset a 5 0 5\r\nhello\r\nset n 0 0 2\r\n10\r\n");
            shown(&client.ask(change.command))
        };
        let theirs = if version >= change.since {
            change.after
        } else {
            change.before
        };
        let question = shown(change.command);
        let told = ask(Client::connect(memcached.address()));
        assert_eq!(told, shown(theirs), "memcached {version:?} to {question}");
        assert_eq!(ask(server.connect()), shown(change.before), "to {question}");
        assert!(is_changed(change.command), "{question} is drawn");
    }
}

//! The parser of the server's side, as a connection uses it.

use proptest::prelude::*;
use wire::memcached::server::{
    Checkpoint, Command, Direction, KeyBuffer, LINE_BYTES_MAX, Limits, Parser, PlainGet, Request,
    Step, StoreMode,
};

const LIMITS: Limits = Limits {
    item_bytes_max: 300,
};

/// All commands of a stream that arrives in pieces of these lengths (the last piece is the rest). `patient`: come
/// back only when the parser said to. Ends at the first hopeless line, as a server does.
fn commands(stream: &[u8], pieces: &[usize], patient: bool) -> Vec<String> {
    let mut parser = Parser::new(LIMITS);
    let mut held = Vec::new();
    let mut wanted = 0;
    let mut found = Vec::new();
    let mut rest = stream;
    let mut pieces = pieces.iter();
    loop {
        let length = pieces
            .next()
            .map_or(rest.len(), |&length| length.min(rest.len()));
        held.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
        while !patient || held.len() >= wanted {
            let before = held.len();
            let mut room = KeyBuffer::default();
            let (consumed, step) = parser.next(&held, &mut room);
            assert!(consumed <= before);
            match step {
                Step::Request(request) => {
                    found.push(format!("{request:?}"));
                    if matches!(request.command, Command::Disconnect(_)) {
                        return found;
                    }
                    wanted = 0;
                    held.drain(..consumed);
                }
                Step::Incomplete(bytes) => {
                    held.drain(..consumed);
                    assert!(
                        bytes > held.len(),
                        "{bytes} of {} would never come",
                        held.len()
                    );
                    wanted = bytes;
                    break;
                }
            }
        }
        if rest.is_empty() {
            return found;
        }
    }
}

fn first(stream: &[u8]) -> Option<String> {
    let mut all = commands(stream, &[], true);
    (!all.is_empty()).then(|| all.swap_remove(0))
}

fn shown(command: Command<'_>, quiet: bool) -> Option<String> {
    Some(format!("{:?}", Request { command, quiet }))
}

#[test]
fn a_line_of_keys_arrives_key_by_key() {
    let get = |key, last| {
        shown(
            Command::Get {
                key,
                with_cas: true,
                last,
            },
            false,
        )
    };
    let found = commands(b"gets  a bb   c \r\nget d\n", &[], true);
    let expected = [
        get(b"a", false),
        get(b"bb", false),
        get(b"c", true),
        shown(
            Command::Get {
                key: b"d",
                with_cas: false,
                last: true,
            },
            false,
        ),
    ];
    assert_eq!(found, expected.map(Option::unwrap_or_default));
}

#[test]
fn what_there_is_not_is_answered_as_where_it_is_switched_off() {
    for (line, answer) in [
        (
            "slabs reassign 1 2",
            "CLIENT_ERROR slab reassignment disabled",
        ),
        ("slabs reassign 1", "ERROR"),
        ("slabs automove 1", "ERROR"),
        ("lru tune 20 40 0.2 2.0", "ERROR"),
        ("lru_crawler crawl all", "CLIENT_ERROR lru crawler disabled"),
        ("lru_crawler metadump all", "ERROR metadump not allowed"),
        ("lru_crawler mgdump hash", "ERROR key dump not allowed"),
        ("lru_crawler metadump", "ERROR"),
        ("watch", "CLIENT_ERROR watch commands not allowed"),
        (
            "watch fetchers nonsense",
            "CLIENT_ERROR watch commands not allowed",
        ),
        (
            "stats cachedump 1 0",
            "CLIENT_ERROR stats cachedump not allowed",
        ),
        ("stats detail on", "CLIENT_ERROR stats detail not allowed"),
        (
            "cache_memlimit 64",
            "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust",
        ),
        ("verbosity 1", "OK"),
        ("verbosity x", "CLIENT_ERROR bad command line format"),
    ] {
        let found = first(format!("{line}\r\n").as_bytes());
        assert_eq!(found, shown(Command::Answer(answer), false), "{line}");
    }
}

#[test]
fn a_value_may_hold_anything() {
    let store = Command::Store {
        mode: StoreMode::Cas,
        key: b"k",
        flags: 5,
        exptime: -1,
        cas: 9,
        value: b"\r\nget x\r\n",
    };
    assert_eq!(
        first(b"cas k 5 -1 9 9 noreply\r\n\r\nget x\r\n\r\n"),
        shown(store, true)
    );
}

#[test]
fn a_zero_byte_ends_a_line_as_it_does_in_c() {
    let get = Command::Get {
        key: b"a",
        with_cas: false,
        last: true,
    };
    assert_eq!(first(b"get a\0b c\r\nversion\r\n"), shown(get, false));
    assert_eq!(commands(b"get a\0b c\r\nversion\r\n", &[], true).len(), 2);
}

#[test]
fn mistakes_leave_the_stream_where_memcached_leaves_it() {
    let version = shown(Command::Version, false).unwrap_or_default();
    for (stream, error, quiet) in [
        // Nothing is skipped behind a line that is not understood.
        (
            &b"set k x 0 1\r\nversion\r\n"[..],
            "CLIENT_ERROR bad command line format",
            false,
        ),
        (
            b"set k x 0 1 noreply\r\nversion\r\n",
            "CLIENT_ERROR bad command line format",
            true,
        ),
        (
            b"set k 0 0 -1\r\nversion\r\n",
            "CLIENT_ERROR bad command line format",
            false,
        ),
        (b"set k 0 0\r\nversion\r\n", "ERROR", false),
        // The length says where a value ends, whatever is there.
        (
            b"set k 0 0 3\r\nabcdeversion\r\n",
            "CLIENT_ERROR bad data chunk",
            false,
        ),
        (
            b"ms k 3 Z\r\nabc\r\nversion\r\n",
            "CLIENT_ERROR invalid flag",
            false,
        ),
        (
            b"ms k 3 T1 T1\r\nabc\r\nversion\r\n",
            "CLIENT_ERROR duplicate flag",
            false,
        ),
        (
            b"delete k 1\r\nversion\r\n",
            "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
            false,
        ),
        (
            b"incr k x\r\nversion\r\n",
            "CLIENT_ERROR invalid numeric delta argument",
            false,
        ),
        (
            b"touch k x\r\nversion\r\n",
            "CLIENT_ERROR invalid exptime argument",
            false,
        ),
        (b"get\r\nversion\r\n", "ERROR", false),
        (b"\r\nversion\r\n", "ERROR", false),
        (b"nonsense\r\nversion\r\n", "ERROR", false),
    ] {
        let found = commands(stream, &[], true);
        let expected = shown(Command::Answer(error), quiet).unwrap_or_default();
        assert_eq!(
            found,
            [expected, version.clone()],
            "{:?}",
            stream.escape_ascii().to_string()
        );
    }
}

#[test]
fn a_key_that_is_too_long_is_refused_before_any_is_read() {
    let line = format!("get a {} b\r\nversion\r\n", "k".repeat(251));
    let found = commands(line.as_bytes(), &[], true);
    assert_eq!(found.len(), 2);
    assert!(found[0].contains("bad command line format"), "{found:?}");
    let line = format!("get a {} b\r\n", "k".repeat(250));
    assert_eq!(commands(line.as_bytes(), &[], true).len(), 3);
}

#[test]
fn a_value_that_is_too_large_is_told_at_once_and_skipped_as_it_comes() {
    let mut parser = Parser::new(LIMITS);
    let line = b"set key 0 0 1000000000\r\n";
    let mut room = KeyBuffer::default();
    let (consumed, step) = parser.next(line, &mut room);
    assert_eq!(consumed, line.len());
    let Step::Request(request) = step else {
        panic!("{step:?}")
    };
    assert_eq!(
        request.command,
        Command::TooLarge {
            key: b"key",
            remove: true
        }
    );
    let mut left = 1_000_000_002_usize;
    let piece = vec![b'\n'; 1 << 20];
    while left > piece.len() {
        assert_eq!(
            parser.next(&piece, &mut KeyBuffer::default()),
            (piece.len(), Step::Incomplete(1))
        );
        left -= piece.len();
    }
    let mut last = vec![0; left];
    last.extend_from_slice(b"version\r\n");
    let mut room = KeyBuffer::default();
    let (consumed, step) = parser.next(&last, &mut room);
    assert_eq!(consumed, last.len());
    assert_eq!(
        step,
        Step::Request(Request {
            command: Command::Version,
            quiet: false
        })
    );
}

/// Two bytes behind the value end its line, and all of it is counted in the type that memcached counts with.
#[test]
fn a_length_is_too_large_up_to_what_memcached_can_count_and_no_length_beyond() {
    for (length, is_length) in [(2_147_483_645_u32, true), (2_147_483_646, false)] {
        for line in [
            format!("set key 0 0 {length}\r\n"),
            format!("ms key {length}\r\n"),
        ] {
            let seen = first(line.as_bytes()).expect("a command");
            assert_eq!(seen.contains("TooLarge"), is_length, "{line}: {seen}");
            assert_eq!(
                seen.contains("bad command line"),
                !is_length,
                "{line}: {seen}"
            );
        }
    }
}

#[test]
fn a_line_without_end_is_hopeless_unless_it_is_of_keys() {
    let long = vec![b'x'; LINE_BYTES_MAX + 2];
    assert!(first(&long).is_some_and(|text| text.contains("Disconnect")));
    assert_eq!(first(&long[..LINE_BYTES_MAX]), None);
    let keys = format!("get {}\r\n", "key ".repeat(10_000));
    assert_eq!(
        commands(keys.as_bytes(), &[1000, 10_000], true).len(),
        10_000
    );
    assert!(first(b"GET / HTTP/1.1\r\n").is_some_and(|text| text.contains("Disconnect(\"\")")));
}

#[test]
fn a_long_line_of_spaces_is_hopeless_however_it_is_cut() {
    let line = |spaces: usize| format!("{}get {}\r\n", " ".repeat(spaces), "key ".repeat(1000));
    for (spaces, is_taken) in [(100, true), (101, false), (LINE_BYTES_MAX + 100, false)] {
        let whole = commands(line(spaces).as_bytes(), &[], false);
        assert_eq!(whole.len() == 1000, is_taken, "{spaces} spaces");
        let pieces = commands(line(spaces).as_bytes(), &[LINE_BYTES_MAX + 2], false);
        assert_eq!(whole, pieces, "{spaces} spaces");
    }
}

#[test]
fn meta_flags_are_checked_and_answered_in_order() {
    let mut parser = Parser::new(LIMITS);
    let mut room = KeyBuffer::default();
    let (_, step) = parser.next(b"mg Zm9v b v t Oabc k q T30\r\n", &mut room);
    let Step::Request(Request {
        command: Command::MetaGet(meta),
        ..
    }) = step
    else {
        panic!("{step:?}")
    };
    assert_eq!(
        (meta.key, meta.binary, meta.value, meta.quiet, meta.exptime),
        (&b"foo"[..], true, true, true, Some(30))
    );
    assert_eq!(
        format!("{:?}", meta.steps().collect::<Vec<_>>()),
        "[TimeToLive, Opaque([79, 97, 98, 99]), Key, Exptime]"
    );
    let mut room = KeyBuffer::default();
    let (_, step) = parser.next(b"ma n MD D5 N0 J7\r\n", &mut room);
    let Step::Request(Request {
        command: Command::MetaArithmetic(meta),
        ..
    }) = step
    else {
        panic!("{step:?}")
    };
    assert_eq!((meta.delta, meta.initial, meta.vivify), (5, 7, Some(0)));
    assert_eq!(
        format!("{:?}", meta.mode),
        format!("Some(Count({:?}))", Direction::Down)
    );
}

/// Pieces of streams: mostly commands, some broken, some noise.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let key = "[a-z]{1,5}|k{249,252}";
    let verb = prop::sample::select(vec![
        "set", "add", "replace", "append", "prepend", "cas", "ms",
    ]);
    let noreply = prop::sample::select(vec!["", " noreply", " noreply x"]);
    let stored = (
        verb,
        key,
        "[0-9]{1,3}|-1|x",
        prop::collection::vec(any::<u8>(), 0..400),
        -1..2_i32,
        noreply,
    )
        .prop_map(|(verb, key, number, value, off, noreply)| {
            let length = (value.len() as i32 + off).max(0);
            let line = match verb {
                "cas" => format!("cas {key} {number} 0 {length} {number}{noreply}\r\n"),
                "ms" => format!("ms {key} {length} T{number} c q\r\n"),
                _ => format!("{verb} {key} {number} 0 {length}{noreply}\r\n"),
            };
            [line.as_bytes(), &value, b"\r\n"].concat()
        });
    let line = prop::sample::select(vec![
        "get a b c",
        "gets  a   b ",
        "gat 0 a b",
        "gat 0",
        "gat x a",
        "delete a",
        "delete a 0 noreply",
        "incr a 1",
        "decr a x",
        "touch a 0",
        "flush_all",
        "flush_all 10 noreply",
        "version",
        "refresh_certs",
        "verbosity 1",
        "stats",
        "stats items",
        "mn",
        "mg a v k t",
        "mg Zm9v b k",
        "md a q",
        "ma a D1",
        "me a",
        "quit",
        "",
        " ",
        "get",
        "\0",
        "get a\0b",
        "xyzzy",
    ])
    .prop_map(|line| format!("{line}\r\n").into_bytes());
    prop_oneof![
        3 => stored,
        4 => line,
        1 => prop::collection::vec(any::<u8>(), 0..50),
        1 => prop::collection::vec(prop::sample::select(b"get set \r\n\0 0 1 noreply".to_vec()), 0..80),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn pieces_do_not_matter(
        fragments in prop::collection::vec(fragment(), 0..20),
        pieces in prop::collection::vec(0..70_usize, 0..200),
        patient in any::<bool>(),
    ) {
        let stream = fragments.concat();
        prop_assert_eq!(commands(&stream, &pieces, patient), commands(&stream, &[], true));
    }

    #[test]
    fn noise_is_survived(stream in prop::collection::vec(any::<u8>(), 0..6000), pieces in prop::collection::vec(0..500_usize, 0..20)) {
        prop_assert_eq!(commands(&stream, &pieces, false), commands(&stream, &[], true));
    }

    /// A line with a key that is too long is refused as a whole, wherever that is.
    #[test]
    fn a_long_key_is_seen_among_others(
        lengths in prop::collection::vec(prop_oneof![4 => 1..40_usize, 1 => 245..255_usize], 1..30),
        spaces in prop::collection::vec(1..4_usize, 30),
    ) {
        let mut line = b"get".to_vec();
        for (length, spaces) in lengths.iter().zip(spaces) {
            line.resize(line.len() + spaces, b' ');
            line.resize(line.len() + length, b'k');
        }
        line.extend_from_slice(b"\r\n");
        let mut room = KeyBuffer::default();
        let (_, step) = Parser::new(LIMITS).next(&line, &mut room);
        let is_got = matches!(step, Step::Request(Request { command: Command::Get { .. }, .. }));
        prop_assert_eq!(is_got, lengths.iter().all(|&length| length <= 250), "{:?}", step);
    }

    /// What the short way says of a line, the long one says too; and what clients send goes the short way.
    #[test]
    fn a_plain_get_is_a_get(
        keys in prop::collection::vec("[!-~]{1,260}", 1..6),
        odd in prop_oneof![8 => Just(None), 2 => any::<(u8, prop::sample::Index)>().prop_map(Some)],
        behind in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        let mut stream = format!("get {}\r\n", keys.join(" ")).into_bytes();
        if let Some((byte, at)) = &odd {
            let at = at.index(stream.len());
            stream[at] = *byte;
        }
        stream.extend_from_slice(&behind);
        let mut parser = Parser::new(Limits { item_bytes_max: 1 << 20 });
        let is_short = keys.iter().all(|key| key.len() <= 250);
        let mut rest = &stream[..];
        for number in 0..keys.len() {
            let before = parser.checkpoint();
            let found = parser.plain_get(rest);
            let after = parser.checkpoint();
            // The first of several begins a line, which is looked at as a whole.
            let is_plain = is_short && (number > 0 || keys.len() == 1);
            prop_assert!(odd.is_some() || is_plain == found.is_some());
            parser.restore(before);
            let mut room = KeyBuffer::default();
            let (consumed, step) = parser.next(rest, &mut room);
            if let Some(PlainGet { key, consumed: short, left }) = found {
                prop_assert_eq!(short, consumed);
                let command = Command::Get { key, with_cas: false, last: left == 0 };
                prop_assert_eq!(step, Step::Request(Request { command, quiet: false }));
                prop_assert_eq!((after, Checkpoint::plain(left)), (parser.checkpoint(), after));
            }
            if !is_short || odd.is_some() && found.is_none() {
                break;
            }
            rest = &rest[consumed..];
        }
    }
}

/// As memcached has it: so many words of a line, the command and the key among them.
#[test]
fn a_meta_line_has_nineteen_words_and_no_more() {
    let flags: Vec<String> = ('A'..='Z').map(|flag| format!("{flag}1")).collect();
    for (start, words, told) in [
        ("mg k", 2, "CLIENT_ERROR options flags are too long"),
        ("ms k 1", 3, "CLIENT_ERROR options flags too long"),
        ("md k", 2, "CLIENT_ERROR options flags too long"),
        ("ma k", 2, "CLIENT_ERROR options flags too long"),
    ] {
        for (count, is_told) in [(19, false), (20, true), (21, true)] {
            let line = format!("{start} {}\r\n", flags[..count - words].join(" "));
            let mut room = KeyBuffer::default();
            let (_, step) = Parser::new(LIMITS).next(line.as_bytes(), &mut room);
            let seen = format!("{step:?}");
            assert_eq!(seen.contains(told), is_told, "{count} words: {seen}");
        }
    }
}

//! `-M`: when memory is full, nothing makes room, and the answers are memcached's.

use crate::support::datagrams::{Sender, get, set as batch_set};
use crate::support::memcached::{Memcached, memcached_program};
use crate::support::{Client, Server, shown};
use std::io::{Read, Write};
use std::net::TcpStream;

/// 418 values of 10,000 bytes in ours, and 29 small items, leave not one byte.
const MEMORY: [&str; 3] = ["-M", "-m", "4"];

const LARGE: usize = 10_000;
/// Longer than all that the test frees.
const LARGER: usize = 200_000;

const OUT_OF_MEMORY: &str = "SERVER_ERROR out of memory storing object\r\n";

fn set(verb: &str, value_bytes: usize, more: &str) -> Vec<u8> {
    let line = format!("{verb} 0 0 {value_bytes}{more}\r\n");
    [line.as_bytes(), &vec![b'x'; value_bytes], b"\r\n"].concat()
}

/// Store values under `name` and a number of four digits until there is no room. How many there are.
fn fill(client: &mut Client, name: char, value: &str) -> usize {
    let length = value.len();
    (0..)
        .find(|number| {
            let question = format!("set {name}{number:04} 0 0 {length}\r\n{value}\r\n");
            match &client.ask(question.as_bytes())[..] {
                b"STORED\r\n" => false,
                answer => {
                    assert_eq!(shown(answer), shown(OUT_OF_MEMORY.as_bytes()));
                    true
                }
            }
        })
        .expect("memory ends")
}

/// Values of each length, until none of any has room.
fn fill_up(client: &mut Client) {
    let larger = fill(client, 'b', &"x".repeat(LARGER));
    assert!(fill(client, 'a', &"x".repeat(LARGE)) > 10);
    assert!(fill(client, 'c', "99999999") > 10);
    // memcached has a page for each class; ours is filled by the first that comes.
    for number in 0..larger {
        client.ask(format!("delete b{number:04}\r\n").as_bytes());
    }
    fill(client, 'b', &"x".repeat(LARGER));
}

fn questions() -> Vec<(Vec<u8>, &'static str)> {
    let text = |text: &str| text.as_bytes().to_vec();
    let swallowed = |verb: &str, more: &str| set(verb, LARGER, more);
    let meta = |key: &str, flags: &str| {
        let line = format!("ms {key} {LARGER} {flags}\r\n");
        [line.as_bytes(), &vec![b'x'; LARGER], b"\r\n"].concat()
    };
    vec![
        // Nothing that is there goes, but what a `set` was to replace.
        (text("incr c0000 1\r\n"), "SERVER_ERROR out of memory\r\n"),
        (text("ma c0000\r\n"), "SERVER_ERROR out of memory\r\n"),
        (text("mg c0000 v\r\n"), "VA 8\r\n99999999\r\n"),
        (
            text("ma new N0 J12345678\r\n"),
            "SERVER_ERROR Out of memory allocating new item\r\n",
        ),
        (text("mg new N0 s\r\n"), "EN\r\n"),
        (text("decr c0000 1\r\n"), "99999998\r\n"),
        (text("touch c0000 100\r\n"), "TOUCHED\r\n"),
        (text("md c0001 I T100\r\n"), "HD\r\n"),
        (swallowed("add new", ""), OUT_OF_MEMORY),
        (text("get new\r\n"), "END\r\n"),
        (swallowed("replace a0001", ""), OUT_OF_MEMORY),
        (swallowed("append a0001", ""), OUT_OF_MEMORY),
        (swallowed("prepend a0001", ""), OUT_OF_MEMORY),
        (text("mg a0001 s\r\n"), "HD s10000\r\n"),
        (swallowed("set a0001", ""), OUT_OF_MEMORY),
        (text("mg a0001 s\r\n"), "EN\r\n"),
        (set("set a0001", LARGE - 10, ""), "STORED\r\n"),
        (swallowed("set a0001", " noreply"), ""),
        (text("mg a0001 s\r\n"), "EN\r\n"),
        (meta("a0002", "MA q"), OUT_OF_MEMORY),
        (text("mg a0002 s\r\n"), "EN\r\n"),
        (meta("a0003", "O1 k"), OUT_OF_MEMORY),
        (text("mg a0003 s\r\n"), "EN\r\n"),
        (set("set a0003", LARGE, ""), "STORED\r\n"),
        (text("mg a0003 s\r\n"), "HD s10000\r\n"),
    ]
}

#[test]
fn answers_are_these() {
    let server = Server::start(&MEMORY);
    let mut client = server.connect();
    assert_eq!(fill(&mut client, 'a', &"x".repeat(LARGE)), 418);
    assert_eq!(fill(&mut client, 'c', "99999999"), 29);
    assert_eq!(client.statistic("free_bytes"), 0);
    let (held, refused) = (
        client.statistic("curr_items"),
        client.statistic("store_no_memory"),
    );
    for (question, answer) in questions() {
        assert_eq!(
            shown(&client.ask(&question)),
            shown(answer.as_bytes()),
            "to {}",
            shown(&question)
        );
    }
    assert_eq!(client.statistic("curr_items"), held - 2);
    assert_eq!(client.statistic("store_no_memory"), refused + 8);
    assert_eq!(client.statistic("evictions"), 0);
    let settings = client.ask(b"stats settings\r\n");
    assert!(shown(&settings).contains("STAT evictions off"));
    for number in (0..29).filter(|&number| number != 1) {
        assert!(
            !client
                .ask(format!("get c{number:04}\r\n").as_bytes())
                .starts_with(b"END")
        );
    }
    // Everything that goes is room again.
    client.ask(b"flush_all\r\n");
    assert_eq!(client.statistic("free_bytes"), 4 << 20);
    assert_eq!(fill(&mut client, 'a', &"x".repeat(LARGE)), 418);
}

#[test]
fn with_more_workers_they_are_too() {
    let server = Server::start(&["-M", "-m", "64", "-t", "3"]);
    let mut client = server.connect();
    let stored = fill(&mut client, 'a', &"x".repeat(LARGER));
    assert!(stored > 200);
    for number in 0..stored {
        let item = client.ask(format!("mg a{number:04} s\r\n").as_bytes());
        assert_eq!(shown(&item), "HD s200000\\r\\n");
    }
}

#[test]
fn memcached_s_answers_are_the_same() {
    let Some(program) = memcached_program() else {
        return;
    };
    let memcached = Memcached::start(&program, &MEMORY);
    let mut theirs = Client::connect(memcached.address());
    fill_up(&mut theirs);
    for (question, answer) in questions() {
        assert_eq!(
            shown(&theirs.ask(&question)),
            shown(answer.as_bytes()),
            "to {}",
            shown(&question)
        );
    }
}

/// What a batch was told is done is there; what it was told is refused is not, and neither is what it was to replace.
#[test]
fn a_batch_is_told_what_had_no_room() {
    let (server, address) = Server::start_with_datagrams(&["-M", "-m", "1", "-I", "40k"]);
    let (mut sender, mut client) = (Sender::to(&address), server.connect());
    let key = |number: usize| format!("key{number}");
    let short = "s".repeat(1000);
    let stored = (0..).take_while(|&number| {
        let answer = sender.batch(&[batch_set(&key(number), &short)]).remove(0);
        assert!(
            answer == "Done" || answer == "Refused(OutOfMemory)",
            "{answer}"
        );
        answer == "Done"
    });
    let stored = stored.count();
    assert!((900..1100).contains(&stored), "{stored}");
    // Longer by far than what little is free.
    let long = "l".repeat(30_000);
    let answers: Vec<String> = (0..stored)
        .map(|number| sender.batch(&[batch_set(&key(number), &long)]).remove(0))
        .collect();
    let refused = answers.iter().filter(|answer| *answer != "Done").count();
    assert!((1..stored).contains(&refused), "{refused} of {stored}");
    for (number, answer) in answers.iter().enumerate() {
        let held = match answer.as_str() {
            "Done" => format!("5 {long}"),
            "Refused(OutOfMemory)" => "NotFound".to_owned(),
            other => panic!("{other}"),
        };
        assert_eq!(sender.batch(&[get(&key(number))]), [held], "{number}");
    }
    assert_eq!(client.statistic("store_no_memory"), refused as u64 + 1);
    // No more than one item may have is refused for another reason, and replaces nothing either.
    let (old, longer) = (batch_set("old", "o"), "l".repeat(41 << 10));
    assert_eq!(sender.batch(&[old]), ["Done"]);
    let asked = [batch_set("old", &longer), get("old")];
    assert_eq!(sender.batch(&asked), ["Refused(TooLarge)", "NotFound"]);
}

/// An item without a value takes more room with flags than without.
#[test]
fn a_value_is_not_removed_where_the_flags_to_be_kept_have_no_room() {
    let server = Server::start(&MEMORY);
    let mut client = server.connect();
    fill(&mut client, 'a', &"x".repeat(LARGE));
    let empty = fill(&mut client, 'e', "");
    assert!(empty > 10, "{empty}");
    let mut refused = 0;
    for number in 0..empty {
        let answer = client.ask(format!("md e{number:04} x F7 q\r\n").as_bytes());
        let held = client.ask(format!("mg e{number:04} f\r\n").as_bytes());
        match shown(&answer).as_str() {
            "" => assert_eq!(shown(&held), "HD f7\\r\\n"),
            "SERVER_ERROR out of memory\\r\\n" => {
                refused += 1;
                assert_eq!(shown(&held), "HD f0\\r\\n");
            }
            other => panic!("{other}"),
        }
    }
    assert!(refused > 0);
}

/// The answer to a binary request: status, key length and body.
fn binary(
    stream: &mut TcpStream,
    opcode: u8,
    extras: &[u8],
    key: &[u8],
    value: &[u8],
) -> (u16, Vec<u8>) {
    let mut bytes = vec![0x80, opcode];
    bytes.extend((key.len() as u16).to_be_bytes());
    bytes.extend([extras.len() as u8, 0, 0, 0]);
    bytes.extend(((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    bytes.extend([0; 12]);
    stream
        .write_all(&[&bytes, extras, key, value].concat())
        .expect("send");
    let mut header = [0; 24];
    stream.read_exact(&mut header).expect("an answer");
    let mut body = vec![0; u32::from_be_bytes(header[8..12].try_into().expect("four")) as usize];
    stream.read_exact(&mut body).expect("a body");
    (u16::from_be_bytes([header[6], header[7]]), body)
}

fn check_binary(address: &str) {
    let mut stream = TcpStream::connect(address).expect("connect");
    stream
        .set_read_timeout(Some(crate::support::PATIENCE))
        .expect("a timeout");
    let (extras, larger) = ([0; 8], vec![b'x'; LARGER]);
    let refused = (0x82, b"Out of memory allocating item".to_vec());
    let counted = |delta: u64, initial: u64| {
        [&delta.to_be_bytes()[..], &initial.to_be_bytes(), &[0; 4]].concat()
    };
    let (set, add, replace, increment, append, get) = (1, 2, 3, 5, 0x0e, 0);
    assert_eq!(
        binary(&mut stream, increment, &counted(1, 0), b"c0000", b""),
        (0x82, b"Out of memory incrementing value".to_vec())
    );
    assert_eq!(
        binary(&mut stream, increment, &counted(1, 12_345_678), b"new", b""),
        (0x82, b"Out of memory allocating new item".to_vec())
    );
    for (opcode, extras, key) in [
        (add, &extras[..], "new"),
        (replace, &extras, "a0001"),
        (append, &[], "a0001"),
        (set, &extras, "a0002"),
    ] {
        assert_eq!(
            binary(&mut stream, opcode, extras, key.as_bytes(), &larger),
            refused,
            "{opcode} {key}"
        );
    }
    assert_eq!(binary(&mut stream, get, &[], b"a0001", b"").0, 0);
    assert_eq!(binary(&mut stream, get, &[], b"a0002", b"").0, 1);
    assert_eq!(
        binary(&mut stream, set, &extras, b"a0002", &larger[..LARGE]).0,
        0
    );
}

#[test]
fn binary_answers_are_memcached_s() {
    let server = Server::start(&MEMORY);
    let mut client = server.connect();
    fill(&mut client, 'a', &"x".repeat(LARGE));
    fill(&mut client, 'c', "99999999");
    check_binary(server.address());
    if let Some(program) = memcached_program() {
        let memcached = Memcached::start(&program, &MEMORY);
        fill_up(&mut Client::connect(memcached.address()));
        check_binary(memcached.address());
    }
}

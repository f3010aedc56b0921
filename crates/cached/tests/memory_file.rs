//! Items that outlive the server (`-e`).

use crate::support::{Client, Folder, PROGRAM, Server, run, shown};
use rustix::process::Signal;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// How many items [`fill`] stores.
const ITEMS: u32 = 3000;

/// A question that stores an item of some kind, one that reads it, and the answer to that.
fn item(number: u32) -> (Vec<u8>, String, Vec<u8>) {
    let bytes = match number % 100 {
        0 => 20_000 + number as usize,
        1 => 0,
        _ => number as usize % 300,
    };
    let value: Vec<u8> = (0..bytes).map(|at| (at as u32 * number) as u8).collect();
    let flags = number % 3 * 1_000_000_007 % 4_294_967_291;
    let seconds = if number.is_multiple_of(2) {
        0
    } else {
        1000 + number
    };
    let (stored, asked, told) = if number % 5 == 4 {
        // A key of bytes that no text has, 0 to 5 among them.
        let key = format!("AAECAwQF{number:04}");
        (
            format!("ms {key} {bytes} b F{flags} T{seconds} q\r\n"),
            format!("mg {key} b k f v\r\n"),
            format!("VA {bytes} k{key} b f{flags}\r\n"),
        )
    } else {
        (
            format!("set key{number} {flags} {seconds} {bytes} noreply\r\n"),
            format!("mg key{number} k f v\r\n"),
            format!("VA {bytes} kkey{number} f{flags}\r\n"),
        )
    };
    let end = &b"\r\n"[..];
    (
        [stored.as_bytes(), &value, end].concat(),
        asked,
        [told.as_bytes(), &value, end].concat(),
    )
}

fn fill(client: &mut Client) {
    for start in (0..ITEMS).step_by(100) {
        let burst: Vec<u8> = (start..start + 100)
            .flat_map(|number| item(number).0)
            .collect();
        assert_eq!(shown(&client.ask(&burst)), "");
    }
}

/// Assert that all that [`fill`] stored is there.
fn check(client: &mut Client) {
    for number in 0..ITEMS {
        let (_, asked, told) = item(number);
        let answer = client.ask(asked.as_bytes());
        assert!(
            answer == told,
            "{asked}: {} {}",
            shown(&answer),
            shown(&told)
        );
    }
    assert_eq!(client.statistic("curr_items"), u64::from(ITEMS));
    // About as much time is left as there was.
    let left = client.ask(b"mg key1 t\r\nmg key2 t\r\n");
    let left = String::from_utf8(left).expect("text");
    let lines: Vec<&str> = left.lines().collect();
    let seconds: u32 = lines[0]["HD t".len()..].parse().expect("a number");
    assert!((1001 - 60..=1001).contains(&seconds), "{left}");
    assert_eq!(lines[1], "HD t-1");
}

#[test]
fn items_are_there_again_after_every_way_to_stop() {
    let folder = Folder::new("restart");
    let path = folder.path("items");
    let started = |threads: &str| Server::start(&["-e", &path, "-t", threads, "-m", "64", "-A"]);
    let server = started("1");
    assert_eq!(server.said(), "");
    fill(&mut server.connect());
    let mut server = server;
    for (threads, signal) in [
        ("1", Some(Signal::USR1)),
        ("3", Some(Signal::TERM)),
        ("2", Some(Signal::INT)),
        ("1", None),
    ] {
        assert!(!Path::new(&path).exists());
        let said = match signal {
            Some(signal) => {
                let (status, said) = server.end_by(signal);
                assert_eq!(status.code(), Some(0), "{said}");
                said
            }
            None => {
                server.connect().send(b"shutdown graceful\r\n");
                let said = server.message();
                assert_eq!(server.wait().code(), Some(0));
                said
            }
        };
        assert_eq!(
            said,
            format!("rackscope-cached: {ITEMS} items are kept in {path}\n")
        );
        let mode = std::fs::metadata(&path)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        server = started(threads);
        assert_eq!(
            server.said(),
            format!("rackscope-cached: {ITEMS} items are back from {path}\n")
        );
        check(&mut server.connect());
    }
    assert!(!Path::new(&format!("{path}.tmp")).exists());
}

/// What belongs to one worker belongs to another of more or fewer.
#[test]
fn items_are_there_again_whoever_may_touch_them() {
    let folder = Folder::new("access");
    let path = folder.path("items");
    let started = |threads, access| {
        Server::start(&["-e", &path, "-t", threads, "--access", access, "-m", "64"])
    };
    let mut server = started("2", "erew");
    fill(&mut server.connect());
    for (threads, access) in [
        ("3", "crew"),
        ("2", "erew"),
        ("3", "crcw"),
        ("4", "erew"),
        ("1", "crew"),
    ] {
        let (status, said) = server.end_by(Signal::USR1);
        assert_eq!(status.code(), Some(0), "{said}");
        let kept = format!("rackscope-cached: {ITEMS} items are kept in {path}\n");
        assert!(said.ends_with(&kept), "{said}");
        server = started(threads, access);
        assert_eq!(
            server.said(),
            format!("rackscope-cached: {ITEMS} items are back from {path}\n")
        );
        check(&mut server.connect());
    }
}

#[test]
fn numbers_of_before_fit_nothing_that_changed() {
    let folder = Folder::new("numbers");
    let path = folder.path("items");
    let server = Server::start(&["-e", &path]);
    let mut client = server.connect();
    client.ask(b"set a 0 0 1\r\n1\r\nms own 1 E77\r\n1\r\nms stale 1\r\n1\r\nmd stale I T100\r\n");
    let answer = String::from_utf8(client.ask(b"mg a c\r\n")).expect("text");
    let cas = answer
        .trim_end()
        .strip_prefix("HD c")
        .expect("a number")
        .to_owned();
    server.end_by(Signal::USR1);
    let server = Server::start(&["-e", &path]);
    let mut client = server.connect();
    let question = format!("cas a 0 0 1 {cas}\r\n2\r\n");
    assert_eq!(client.ask(question.as_bytes()), b"EXISTS\r\n");
    // One that a client chose is the item's still, and what was stale is.
    assert_eq!(client.ask(b"mg own c v\r\n"), b"VA 1 c77\r\n1\r\n");
    assert_eq!(client.ask(b"mg stale v\r\n"), b"VA 1 X W\r\n1\r\n");
    let answer = String::from_utf8(client.ask(b"mg a c\r\n")).expect("text");
    let now: u64 = answer.trim_end()["HD c".len()..].parse().expect("a number");
    assert!(now > cas.parse().expect("a number"));
    assert_eq!(
        client.ask(format!("cas a 0 0 1 {now}\r\n2\r\n").as_bytes()),
        b"STORED\r\n"
    );
}

#[test]
fn what_fits_is_kept_where_there_is_less_room() {
    let folder = Folder::new("room");
    let path = folder.path("items");
    let server = Server::start(&["-e", &path, "-m", "64", "-t", "3"]);
    let mut client = server.connect();
    let value = "v".repeat(1000);
    // First: behind it, the last of its partition would count as older than those of others.
    client.ask(format!("set large 0 0 900000\r\n{}\r\n", value.repeat(900)).as_bytes());
    for number in 0..20_000 {
        client.send(format!("set key{number} 0 0 1000 noreply\r\n{value}\r\n").as_bytes());
    }
    assert_eq!(client.statistic("curr_items"), 20_001);
    server.end_by(Signal::USR1);
    let server = Server::start(&["-e", &path, "-m", "8", "-I", "100k"]);
    // On a busy host, lines before this one tell how far it is.
    let (held, rest) = server
        .said()
        .lines()
        .filter_map(|line| line.strip_prefix("rackscope-cached: "))
        .find_map(|line| line.split_once(" items are back, "))
        .unwrap_or_else(|| panic!("{}", server.said()));
    let held: u64 = held.parse().expect("a number");
    assert!((8000..8300).contains(&held), "{held}");
    assert!(
        rest.starts_with(&format!("{} did not fit, from ", 20_001 - held)),
        "{rest}"
    );
    let mut client = server.connect();
    assert_eq!(client.statistic("curr_items"), held);
    assert_eq!(client.ask(b"get key0 key1 large\r\n"), b"END\r\n");
    let newest = format!("VALUE key19999 0 1000\r\n{value}\r\nEND\r\n");
    assert_eq!(client.ask(b"get key19999\r\n"), newest.as_bytes());
}

#[test]
fn who_is_killed_leaves_nothing_to_read() {
    let folder = Folder::new("killed");
    let path = folder.path("items");
    let server = Server::start(&["-e", &path]);
    fill(&mut server.connect());
    server.end_by(Signal::USR1);
    let server = Server::start(&["-e", &path]);
    check(&mut server.connect());
    server.end_by(Signal::KILL);
    // What was read is not read again: items may have changed since.
    assert!(!Path::new(&path).exists());
    let server = Server::start(&["-e", &path]);
    assert_eq!(
        (server.said(), server.connect().statistic("curr_items")),
        ("", 0)
    );
}

/// A server that may write files of at most `kibibytes`.
fn limited(path: &str, before: &str, kibibytes: u32) -> Server {
    let mut command = Command::new("sh");
    // In blocks of 512 bytes (POSIX).
    let blocks = 2 * kibibytes;
    let script = format!("ulimit -c 0; ulimit -f {blocks}; {before} exec \"$0\" -p 0 -e \"$1\"");
    command.args(["-c", &script, PROGRAM, path]);
    Server::from_command(command)
}

#[test]
fn who_is_killed_while_writing_leaves_nothing_to_read() {
    let folder = Folder::new("midway");
    let path = folder.path("items");
    for kibibytes in [0, 1, 200, 1000] {
        let server = limited(&path, "", kibibytes);
        fill(&mut server.connect());
        let (status, _) = server.end_by(Signal::TERM);
        // Killed by the kernel at the byte that was one too many.
        assert_eq!(status.signal(), Some(Signal::XFSZ.as_raw()), "{kibibytes}");
        assert!(!Path::new(&path).exists());
        let left = std::fs::metadata(format!("{path}.tmp")).expect("a part of it");
        assert_eq!(left.len(), u64::from(kibibytes) << 10);
        let server = Server::start(&["-e", &path]);
        assert_eq!(
            (server.said(), server.connect().statistic("curr_items")),
            ("", 0)
        );
        assert!(!Path::new(&format!("{path}.tmp")).exists());
        server.end_by(Signal::KILL);
    }
}

#[test]
fn where_there_is_no_room_that_is_said_and_nothing_is_left() {
    let folder = Folder::new("full");
    let path = folder.path("items");
    let server = limited(&path, "trap '' XFSZ;", 100);
    fill(&mut server.connect());
    let (status, said) = server.end_by(Signal::TERM);
    assert_eq!(status.code(), Some(1));
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.starts_with(&format!(
            "rackscope-cached: -e {path}: it cannot be written: "
        )),
        "{said}"
    );
    assert!(!Path::new(&path).exists() && !Path::new(&format!("{path}.tmp")).exists());
}

#[test]
fn a_file_that_is_not_whole_is_put_aside() {
    let folder = Folder::new("damaged");
    let path = folder.path("items");
    let aside = format!("{path}.damaged");
    let server = Server::start(&["-e", &path]);
    fill(&mut server.connect());
    server.end_by(Signal::USR1);
    let whole = std::fs::read(&path).expect("a file");
    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 1;
    let mut newer = whole.clone();
    newer[8] = 3;
    for (bytes, reason) in [
        (&whole[..whole.len() - 1], "it ends in the middle"),
        (&whole[..30], "it ends in the middle"),
        (&[], "it ends in the middle"),
        (&altered, "its content is not what was written"),
        (&newer, "it is of version 3"),
        (&[b'x'; 100][..], "it is not a file of items"),
    ] {
        std::fs::write(&path, bytes).expect("write a file");
        let server = Server::start(&["-e", &path]);
        let said = server.said();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(
            said.starts_with(&format!("rackscope-cached: -e {path}: {reason}")),
            "{said}"
        );
        assert!(said.contains(&aside), "{said}");
        assert_eq!(server.connect().statistic("curr_items"), 0);
        assert!(!Path::new(&path).exists());
        assert!(std::fs::read(&aside).expect("a file") == bytes);
    }
    std::fs::write(&path, &whole).expect("write a file");
    check(&mut Server::start(&["-e", &path]).connect());
}

#[test]
fn a_place_where_nothing_can_be_kept_is_told_at_once() {
    let folder = Folder::new("place");
    std::fs::create_dir(folder.path("folder")).expect("make a folder");
    std::fs::write(folder.path("file"), "").expect("write a file");
    for (path, reason) in [
        ("/no/such/folder/items".to_owned(), "No such file"),
        (
            folder.path("folder"),
            "something that is not a file is there",
        ),
        (folder.path("file/items"), "Not a directory"),
    ] {
        let (status, _, message) = run(&["-p", "0", "-e", &path]);
        assert_eq!((status, message.lines().count()), (Some(1), 1), "{message}");
        assert!(
            message.starts_with(&format!("rackscope-cached: -e {path}: "))
                && message.contains(reason),
            "{message}"
        );
    }
    if rustix::process::geteuid().is_root() {
        let path = folder.path("theirs");
        std::fs::write(&path, "").expect("write a file");
        std::os::unix::fs::chown(&path, Some(65_534), None).expect("give a file away");
        let (status, _, message) = run(&["-p", "0", "-e", &path]);
        assert_eq!(status, Some(1));
        assert!(
            message.contains("a file of another user is there"),
            "{message}"
        );
        assert!(Path::new(&path).exists());
    }
}

#[test]
fn a_start_that_fails_leaves_the_items_for_the_next() {
    let folder = Folder::new("fails");
    let path = folder.path("items");
    let server = Server::start(&["-e", &path]);
    server.connect().ask(b"set a 0 0 1\r\n1\r\n");
    server.end_by(Signal::USR1);
    let (status, _, message) = run(&["-p", "0", "-e", &path, "--cores", "1000000"]);
    assert_eq!(status, Some(1), "{message}");
    let (status, _, message) = run(&["-p", "0", "-e", &path, "--metrics", "192.0.2.1:1"]);
    assert_eq!(status, Some(1), "{message}");
    let server = Server::start(&["-e", &path]);
    assert_eq!(
        server.said(),
        format!("rackscope-cached: 1 item is back from {path}\n")
    );
    assert_eq!(
        server.connect().ask(b"get a\r\n"),
        b"VALUE a 0 1\r\n1\r\nEND\r\n"
    );
}

/// Store values of `bytes` bytes until there is no room, and return how many there are.
fn fill_up(client: &mut Client, bytes: usize) -> u32 {
    let value = "v".repeat(bytes);
    (0..)
        .find(|number| {
            let question = format!("set key{number} 7 0 {bytes}\r\n{value}\r\n");
            client.ask(question.as_bytes()) != b"STORED\r\n"
        })
        .expect("memory ends")
}

/// With `-M` nothing is lost, not even where there was no room for one item more.
#[test]
fn a_full_store_is_there_again() {
    let folder = Folder::new("store");
    let path = folder.path("items");
    for more in [
        &["-t", "1"][..],
        &["-t", "3"],
        &["-t", "3", "--access", "erew"],
        &["-t", "2", "--access", "crew"],
    ] {
        let arguments = [&["-e", &path, "-M", "-m", "16"], more].concat();
        let server = Server::start(&arguments);
        let mut client = server.connect();
        let room = client.statistic("free_bytes");
        let items = fill_up(&mut client, 10_000);
        // Not the last number but one that other changes followed.
        let identity = client.ask(b"mg key3 c k f s\r\n");
        let held = client.statistic("curr_items");
        assert_eq!(held, u64::from(items));
        for _ in 0..2 {
            client.ask(b"set key0 0 0 1\r\n1\r\n");
        }
        let (status, said) = server.end_by(Signal::USR1);
        assert_eq!(status.code(), Some(0), "{said}");

        // Where some would be lost, all stay in the file.
        let less = ["-e", &path, "-M", "-m", "12", "-p", "0"];
        let (status, _, said) = run(&[&less[..], more].concat());
        assert_eq!(status, Some(1));
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
        assert!(
            said.contains(" of its items do not fit, and with -M"),
            "{said}"
        );

        let server = Server::start(&arguments);
        assert_eq!(
            server.said(),
            format!("rackscope-cached: {items} items are back from {path}\n")
        );
        let mut client = server.connect();
        assert_eq!(client.ask(b"mg key3 c k f s\r\n"), identity);
        for number in 1..items {
            let answer = client.ask(format!("mg key{number} s f\r\n").as_bytes());
            assert_eq!(shown(&answer), "HD s10000 f7\\r\\n");
        }
        // CAS numbers go on.
        let number = |answer: Vec<u8>| -> u64 {
            let answer = String::from_utf8(answer).expect("text");
            answer.trim_end()["HD c".len()..].parse().expect("a number")
        };
        let before = number(client.ask(b"mg key0 c\r\n"));
        client.ask(b"set key0 0 0 1\r\n2\r\n");
        assert!(number(client.ask(b"mg key0 c\r\n")) > before);
        client.ask(b"flush_all\r\n");
        assert_eq!(client.statistic("free_bytes"), room);
        server.end_by(Signal::USR1);
    }
}

/// What a start that fails leaves behind was read by nobody and changed by nobody.
#[test]
fn no_datagram_is_served_before_the_file_is_consumed() {
    let folder = Folder::new("datagrams");
    let path = folder.path("items");
    let server = Server::start(&["-e", &path]);
    fill(&mut server.connect());
    server.end_by(Signal::TERM);
    // Metrics come last, and there is no place for them.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = listener.local_addr().expect("an address").to_string();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("an address").port();
    drop(socket);
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a port");
    sender.connect(("127.0.0.1", port)).expect("connect");
    sender.set_nonblocking(true).expect("set an option");
    let mut child = Command::new(PROGRAM)
        .args([
            "-p",
            "0",
            "-U",
            &port.to_string(),
            "-e",
            &path,
            "--metrics",
            &taken,
        ])
        .stderr(Stdio::null())
        .spawn()
        .expect("start the server");
    let mut answers = 0;
    let status = loop {
        // Nobody listens yet, or nobody does any more: an error then.
        _ = sender.send(b"\0\x01\0\0\0\x01\0\0set key1 0 0 5\r\nafter\r\n");
        answers += usize::from(sender.recv(&mut [0; 100]).is_ok());
        if let Some(status) = child.try_wait().expect("wait for the server") {
            break status;
        }
    };
    assert_eq!((status.code(), answers), (Some(1), 0));
    let server = Server::start(&["-e", &path]);
    check(&mut server.connect());
}

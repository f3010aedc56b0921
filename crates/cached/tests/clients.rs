//! Clients that behave badly, or are many.

use crate::support::{Server, resident_bytes, shown};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{Read, Write};

#[test]
fn a_client_that_goes_away_within_a_value_leaves_nothing_behind() {
    let server = Server::start(&[]);
    let mut other = server.connect();
    for value_bytes in [10, 100_000, 1_000_000] {
        let mut stream = server.tcp();
        write!(stream, "set half 0 0 {value_bytes}\r\n").expect("send");
        stream
            .write_all(&vec![b'x'; value_bytes / 2])
            .expect("send");
        drop(stream);
    }
    // The server may learn of the last end after it learns of this question.
    while other.statistic("curr_connections") > 1 {}
    assert_eq!(other.ask(b"get half\r\n"), b"END\r\n");
    assert_eq!(other.statistic("curr_items"), 0);
}

#[test]
fn a_burst_of_many_commands_is_answered_in_order() {
    for threads in ["1", "2"] {
        let server = Server::start(&["-t", threads]);
        let (mut questions, mut answers) = (String::new(), String::new());
        for number in 0..20_000 {
            questions += &format!(
                "set k{} 0 0 6\r\n{number:06}\r\nget k{}\r\n",
                number % 77,
                number % 77
            );
            answers += &format!(
                "STORED\r\nVALUE k{} 0 6\r\n{number:06}\r\nEND\r\n",
                number % 77
            );
        }
        // Nothing is read before all is sent, unless the server makes us: that is what the second thread is for.
        let mut stream = server.tcp();
        let mut sender = stream.try_clone().expect("clone");
        let received = std::thread::scope(|scope| {
            scope.spawn(|| sender.write_all(questions.as_bytes()).expect("send"));
            let mut received = vec![0; answers.len()];
            stream.read_exact(&mut received).expect("receive");
            received
        });
        assert!(received == answers.as_bytes(), "{}", shown(&received));
    }
}

#[test]
fn a_client_that_never_reads_is_held_back_and_stalls_nobody() {
    let server = Server::start(&[]);
    let mut other = server.connect();
    let value = "v".repeat(100_000);
    other.ask(format!("set big 0 0 {}\r\n{value}\r\n", value.len()).as_bytes());
    // Ask for 100 kB with every line and read nothing, until the server does not read the questions any more. The
    // lines are long, so that few of them fill the sockets.
    let mut greedy = server.tcp();
    greedy.set_nonblocking(true).expect("set an option");
    let question = format!("get{}big\r\n", " ".repeat(20_000)).into_bytes();
    let (mut sent, mut is_idle) = (0, false);
    loop {
        match greedy.write(&question[sent % question.len()..]) {
            Ok(bytes) => (sent, is_idle) = (sent + bytes, false),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && is_idle => break,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                // Did the server stop, and read nothing from it while it answered somebody else?
                let before = other.statistic("bytes_read");
                let stalls = other.statistic("conn_stalls");
                is_idle = stalls > 0 && other.statistic("bytes_read") - before < 100;
            }
            Err(error) => panic!("{error} after {sent} bytes"),
        }
    }
    let resident = resident_bytes(server.pid());
    assert!(
        resident < 60 << 20,
        "{resident} bytes for one client that does not read"
    );
    for _ in 0..100 {
        assert_eq!(other.ask(b"get none\r\n"), b"END\r\n");
    }
    // It gets every answer once it reads.
    greedy.set_nonblocking(false).expect("set an option");
    let answers = sent / question.len();
    let answer = format!("VALUE big 0 {}\r\n{value}\r\nEND\r\n", value.len());
    let mut received = vec![0; answer.len()];
    for number in 0..answers {
        greedy.read_exact(&mut received).expect("receive");
        assert!(
            received == answer.as_bytes(),
            "answer {number}: {}",
            shown(&received)
        );
    }
    drop(greedy);
    while other.statistic("curr_connections") > 1 {}
}

#[test]
fn one_line_of_many_large_items_is_held_back_too() {
    let server = Server::start(&[]);
    let mut other = server.connect();
    let value = "v".repeat(1_000_000);
    other.ask(format!("set big 0 0 {}\r\n{value}\r\n", value.len()).as_bytes());
    let mut greedy = server.tcp();
    let keys = " big".repeat(500);
    greedy
        .write_all(format!("get{keys}\r\n").as_bytes())
        .expect("send");
    while other.statistic("conn_stalls") == 0 {}
    let resident = resident_bytes(server.pid());
    assert!(resident < 60 << 20, "{resident} bytes for one line");
    let answer = format!("VALUE big 0 {}\r\n{value}\r\n", value.len());
    let mut received = vec![0; answer.len()];
    for number in 0..500 {
        greedy.read_exact(&mut received).expect("receive");
        assert!(
            received == answer.as_bytes(),
            "item {number}: {}",
            shown(&received)
        );
    }
    let mut end = [0; 5];
    greedy.read_exact(&mut end).expect("receive");
    assert_eq!(&end, b"END\r\n");
}

#[test]
fn many_that_never_read_hold_little_memory() {
    let server = Server::start(&["-c", "100"]);
    let mut other = server.connect();
    let value = "v".repeat(50_000);
    other.ask(format!("set big 0 0 {}\r\n{value}\r\n", value.len()).as_bytes());
    let before = resident_bytes(server.pid());
    // Each asks for as much as the server is willing to hear, and for small and large answers.
    let question = b"get none\r\nget big\r\nversion\r\n".repeat(1000);
    let mut greedy: Vec<_> = (0..50).map(|_| server.tcp()).collect();
    for stream in &greedy {
        stream.set_nonblocking(true).expect("set an option");
    }
    let mut is_idle = false;
    while !is_idle {
        let heard = other.statistic("bytes_read");
        for stream in &mut greedy {
            for _ in 0..100 {
                match stream.write(&question) {
                    Ok(_) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        // It stopped for all of them, and read nothing while it answered somebody else.
        is_idle =
            other.statistic("conn_stalls") >= 50 && other.statistic("bytes_read") - heard < 100;
    }
    let held = resident_bytes(server.pid()).saturating_sub(before);
    assert!(held < 50 * 600_000, "{held} bytes for 50 clients");
    drop(greedy);
    while other.statistic("curr_connections") > 1 {}
}

#[test]
fn one_who_says_no_more_gets_all_answers() {
    let server = Server::start(&[]);
    let value = "v".repeat(30_000);
    let mut questions = format!("set big 0 0 {}\r\n{value}\r\n", value.len());
    let mut answers = "STORED\r\n".to_owned();
    for _ in 0..300 {
        questions += "get big\r\nget none\r\n";
        answers += &format!("VALUE big 0 {}\r\n{value}\r\nEND\r\nEND\r\n", value.len());
    }
    // What was begun and not ended is not done.
    for end in ["", "quit\r\nget big\r\n", "get bi", "set big 0 0 9\r\nabc"] {
        let mut stream = server.tcp();
        stream
            .write_all((questions.clone() + end).as_bytes())
            .expect("send");
        stream
            .shutdown(std::net::Shutdown::Write)
            .expect("shut down");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect("receive");
        assert!(received == answers.as_bytes(), "{}", shown(&received));
    }
    let mut other = server.connect();
    while other.statistic("curr_connections") > 1 {}
    assert_eq!(other.ask(b"delete big\r\n"), b"DELETED\r\n");
}

#[test]
fn an_item_that_is_too_large_is_refused_and_the_stream_stays_in_step() {
    let server = Server::start(&["-I", "10k"]);
    let mut client = server.connect();
    let value = "get a\r\n".repeat(2000);
    let set = |verb: &str, rest: &str| format!("{verb} a 0 0 {}{rest}\r\n{value}\r\n", value.len());
    let too_large = b"SERVER_ERROR object too large for cache\r\n";
    assert_eq!(client.ask(b"set a 0 0 1\r\nx\r\n"), b"STORED\r\n");
    assert_eq!(client.ask(set("add", "").as_bytes()), too_large);
    assert_eq!(client.ask(b"get a\r\n"), b"VALUE a 0 1\r\nx\r\nEND\r\n");
    // The old value is out of date once a client tried to set another.
    assert_eq!(client.ask(set("set", "").as_bytes()), too_large);
    assert_eq!(client.ask(b"get a\r\n"), b"END\r\n");
    assert_eq!(client.ask(set("set", " noreply").as_bytes()), b"");
    assert_eq!(
        client.ask(format!("ms a {} c\r\n{value}\r\n", value.len()).as_bytes()),
        too_large
    );
    assert_eq!(
        client.ask(b"get a\r\nset b 0 0 1\r\ny\r\n"),
        b"END\r\nSTORED\r\n"
    );
}

#[test]
fn the_largest_item_is_stored_and_one_more_byte_is_not() {
    let server = Server::start(&["-I", "100k"]);
    let mut client = server.connect();
    let largest = 100 * 1024 - mica::HEADER_BYTES - 1;
    let value = "x".repeat(largest + 1);
    assert_eq!(
        client.ask(format!("set k 0 0 {largest}\r\n{}\r\n", &value[1..]).as_bytes()),
        b"STORED\r\n"
    );
    let answer = client.ask(b"get k\r\n");
    assert_eq!(
        answer.len(),
        format!("VALUE k 0 {largest}\r\n\r\nEND\r\n").len() + largest
    );
    assert_eq!(client.ask(b"append k 0 0 1\r\nx\r\n"), b"NOT_STORED\r\n");
    let one_more = format!("set k 0 0 {}\r\n{value}\r\n", value.len());
    assert_eq!(
        client.ask(one_more.as_bytes()),
        b"SERVER_ERROR object too large for cache\r\n"
    );
}

#[test]
fn a_full_cache_drops_the_oldest() {
    for threads in ["1", "2"] {
        let server = Server::start(&["-m", "8", "-t", threads]);
        let mut client = server.connect();
        let value = "v".repeat(1000);
        let items = 20_000;
        for start in (0..items).step_by(100) {
            let burst: String = (start..start + 100)
                .map(|number| format!("set key{number} 0 0 1000 noreply\r\n{value}\r\n"))
                .collect();
            assert_eq!(client.ask(burst.as_bytes()), b"");
        }
        let held = client.statistic("curr_items");
        let evicted = client.statistic("evictions");
        assert_eq!(held + evicted, items);
        // 8 MiB hold 8,256 items of 1,016 bytes; partitions leave the rest of an item unused.
        assert!((8000..8300).contains(&held), "{held} items");
        assert!(client.statistic("bytes") <= 8 << 20);
        assert_eq!(client.ask(b"get key0\r\n"), b"END\r\n");
        let newest = format!("VALUE key{} 0 1000\r\n{value}\r\nEND\r\n", items - 1);
        assert_eq!(
            client.ask(format!("get key{}\r\n", items - 1).as_bytes()),
            newest.as_bytes()
        );
    }
}

#[test]
fn thousands_of_clients_are_served_and_cost_next_to_nothing_while_idle() {
    let is_long = std::env::var("RACKSCOPE_SUITE").as_deref() == Ok("long");
    let wanted = if is_long { 20_000 } else { 5_000 };

    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("take as many descriptors as the host allows");
    // Some are for other tests.
    let allowed = limit.maximum.map_or(usize::MAX, |most| most as usize);
    let count = wanted.min(allowed.saturating_sub(500)) as u64;
    let server = Server::start(&["-t", "2", "-c", "20001"]);
    let before = resident_bytes(server.pid());
    let mut clients: Vec<_> = (0..count).map(|_| server.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(
            format!("set k{number} 0 0 1000\r\n{number:01000}\r\nget k{number}\r\nmn\r\n")
                .as_bytes(),
        );
    }
    for (number, client) in clients.iter_mut().enumerate() {
        let expected = format!("STORED\r\nVALUE k{number} 0 1000\r\n{number:01000}\r\nEND\r\n");
        let answer = client.receive();
        assert!(answer == expected.as_bytes(), "{}", shown(&answer));
    }
    let mut one = server.connect();
    assert_eq!(one.statistic("curr_connections"), count + 1);
    // A thousand bytes each are the items; what is left is the connections, and what all of them share.
    let held = resident_bytes(server.pid()) as u64 - before as u64;
    assert!(
        held < 1000 * count + 500 * count + 8_000_000,
        "{held} bytes more"
    );
    drop(clients);
    while one.statistic("curr_connections") > 1 {}
    assert_eq!(one.statistic("total_connections"), count + 1);
}

#[test]
fn a_client_too_many_is_told() {
    let server = Server::start(&["-c", "2"]);
    let (mut first, second) = (server.connect(), server.connect());
    assert_eq!(first.ask(b"get a\r\n"), b"END\r\n");
    assert_eq!(
        server.connect().rest(),
        b"ERROR Too many open connections\r\n"
    );
    assert_eq!(first.statistic("rejected_connections"), 1);
    drop(second);
    while first.statistic("curr_connections") > 1 {}
    assert_eq!(server.connect().ask(b"get a\r\n"), b"END\r\n");
}

#[test]
fn large_values_arrive_whole_however_they_are_cut() {
    let server = Server::start(&["-m", "256", "-I", "64m"]);
    let mut client = server.connect();
    for bytes in [4_000, 65_535, 65_536, 70_000, 1_000_000, 30_000_000] {
        let value: Vec<u8> = (0..bytes).map(|place: u32| (place % 251) as u8).collect();
        let mut question = format!("set k 0 0 {bytes}\r\n").into_bytes();
        question.extend_from_slice(&value);
        question.extend_from_slice(b"\r\n");
        for piece in question.chunks(1 + bytes as usize / 13) {
            client.send(piece);
        }
        let answer = client.ask(b"get k\r\n");
        let head = format!("STORED\r\nVALUE k 0 {bytes}\r\n");
        assert_eq!(shown(&answer[..head.len()]), shown(head.as_bytes()));
        assert!(answer[head.len()..answer.len() - 7] == value);
    }
}

/// Large values are sent from where they lie: what the client does not take at once is kept apart, as another value may
/// be written there.
#[test]
fn large_values_are_whole_however_late_they_are_read() {
    const WORDS: usize = 25_000;
    const ROUNDS: u32 = 300;
    let server = Server::start(&["-t", "1", "-m", "64"]);
    let mut slow = server.connect();
    let mut other = server.connect();
    for round in 0..ROUNDS {
        let value = round.to_le_bytes().repeat(WORDS);
        let set = [&b"set key 0 0 100000\r\n"[..], &value, b"\r\n"].concat();
        assert_eq!(other.ask(&set), b"STORED\r\n");
        // Far more than sockets hold is asked for before anything is read.
        slow.send(b"get key\r\n");
    }
    let mut last = 0;
    for round in 0..ROUNDS {
        assert_eq!(slow.take(20), b"VALUE key 0 100000\r\n");
        let value = slow.take(4 * WORDS);
        let word = u32::from_le_bytes([value[0], value[1], value[2], value[3]]);
        assert!(
            value == word.to_le_bytes().repeat(WORDS),
            "round {round} is torn"
        );
        assert!(
            (round.max(last)..ROUNDS).contains(&word),
            "{word} in round {round}"
        );
        last = word;
        assert_eq!(slow.take(7), b"\r\nEND\r\n");
    }
}

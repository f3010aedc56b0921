//! Connections to the cache engine: what arrives is parsed, carried out on a small store, and answered.

use crate::input::Input;
use crate::values::Values;
use crate::{answers, binary_answers};
use cached::harness::{Harness, Line, Waiting};
use cached::options::Options;
use memchr::memmem;
use mica::Config;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use wire::memcached::binary::Command::Refuse;
use wire::memcached::binary::{self, Refusal};
use wire::memcached::server::{Command, KeyBuffer, Limits, Parser, Step};

/// Between what one client sends and what the next does.
const NEXT_CLIENT: &[u8] = b"\n--\n";

/// What the file of accounts holds, where there is one.
const ACCOUNTS: &[u8] = b"ann:secret\nbob:a b\n";

/// Every request gets its answer and no other, no value is told that was not stored under its key, and all of that is
/// the same byte by byte however what clients send is cut, however slowly they read, and whoever else is served
/// meanwhile.
pub fn run(data: &[u8]) {
    let Some(input) = Input::stretched(data) else {
        return;
    };
    let clients: Vec<&[u8]> = split(&input.stream).take(4).collect();
    let has_accounts = input.choice(5);
    let mut whole = Server::new(&input, has_accounts);
    let mut values = Values::default();
    let mut answers = Vec::new();
    let mut is_comparable = true;
    for stream in &clients {
        let client = Client::new(&whole.harness, false);
        let said = if has_accounts {
            let said = client.say_all(&mut whole, stream);
            check_admission(stream, &said);
            said
        } else if stream.first() == Some(&binary::MAGIC) {
            client.ask_binary(&mut whole, stream, &mut values)
        } else {
            client.ask_text(&mut whole, stream, &mut values)
        };
        answers.push(said);
        // Statistics tell of time, and of how often somebody had to wait.
        is_comparable &= memmem::find(stream, b"stats").is_none()
            && (stream.first() != Some(&binary::MAGIC) || !stream.contains(&0x10));
        whole.harness.wait(1);
    }
    let mut cut = Server::new(&input, has_accounts);
    let mut bystander = Bystander {
        client: Client::new(&cut.harness, false),
        // With accounts, nobody but them is answered.
        sent: if has_accounts { 64 } else { 0 },
    };
    for (stream, answer) in clients.iter().zip(&answers) {
        let client = Client::new(&cut.harness, input.choice(1));
        let said = client.say_in_pieces(&mut cut, stream, &input, &mut bystander);
        if is_comparable {
            assert!(
                said == *answer,
                "in pieces: {}\nat once: {}",
                said.escape_ascii(),
                answer.escape_ascii()
            );
        }
        cut.harness.wait(1);
    }
}

fn split(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(stream);
    std::iter::from_fn(move || {
        let all = rest.take()?;
        let Some(at) = memmem::find(all, NEXT_CLIENT) else {
            return Some(all);
        };
        rest = Some(&all[at + NEXT_CLIENT.len()..]);
        // The line end is the first client's.
        Some(&all[..=at])
    })
}

/// A client without a password gets no data.
fn check_admission(stream: &[u8], said: &[u8]) {
    let has = |text| memmem::find(stream, text).is_some();
    if has(b"ann secret") || has(b"bob a b") {
        return;
    }
    for line in said
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        assert!(
            [
                &b"CLIENT_ERROR unauthenticated\r"[..],
                b"CLIENT_ERROR authentication failure\r",
                b"CLIENT_ERROR auth token too long\r",
            ]
            .contains(&line),
            "a client without a password got {}",
            said.escape_ascii()
        );
    }
}

pub(crate) struct Server {
    pub harness: Harness,
    limits: Limits,
}

impl Server {
    pub fn new(input: &Input, has_accounts: bool) -> Self {
        // So small that items make room for others, or large enough for a line of keys and its answers.
        let mut layout = Config::for_log_bytes(if input.choice(2) { 8 << 10 } else { 1 << 20 });
        layout.item_bytes_max = layout.log_bytes / 4;
        layout.has_readers = input.choice(3);
        let partitions = if input.choice(4) { 3 } else { 1 };
        let accounts = has_accounts.then_some(ACCOUNTS);
        let harness = Harness::new(Options::default(), accounts, layout, partitions);
        Self {
            harness: harness.expect("a valid layout"),
            limits: Limits {
                item_bytes_max: layout.item_bytes_max - mica::HEADER_BYTES,
            },
        }
    }
}

/// A client and the server's end of its connection.
pub(crate) struct Client {
    line: Line,
    socket: UnixStream,
    waiting: Waiting,
    /// What it was told.
    said: Vec<u8>,
    reads_slowly: bool,
}

impl Client {
    pub fn new(harness: &Harness, reads_slowly: bool) -> Self {
        let (line, socket) = harness
            .connect(reads_slowly.then_some(1))
            .expect("a pair of sockets");
        socket.set_nonblocking(true).expect("an option");
        Self {
            line,
            socket,
            waiting: Waiting::ToRead,
            said: Vec::new(),
            reads_slowly,
        }
    }

    /// Send all of `bytes`, while the server does what it can.
    fn send(&mut self, server: &mut Server, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.waiting != Waiting::Over {
            match self.socket.write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
            self.settle(server);
        }
    }

    /// Let the server read what was sent, and take what it answers, until it waits for more.
    fn settle(&mut self, server: &mut Server) {
        while self.waiting != Waiting::Over {
            let unread = self.line.unread_bytes().expect("a count");
            if self.waiting == Waiting::ToRead && unread == 0 {
                break;
            }
            self.waiting = server.harness.advance(&mut self.line);
            if self.waiting == Waiting::ToWrite {
                assert!(
                    self.take(),
                    "the server waits, and there is nothing to take"
                );
            }
        }
        while self.take() {}
    }

    /// Take some of what the server answered; false where there is nothing.
    fn take(&mut self) -> bool {
        let mut piece = [0; 16 << 10];
        let length = if self.reads_slowly { 700 } else { piece.len() };
        match self.socket.read(&mut piece[..length]) {
            Ok(0) => false,
            Ok(bytes) => {
                self.said.extend_from_slice(&piece[..bytes]);
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// The end of what this client sends.
    fn finish(mut self, server: &mut Server) -> Vec<u8> {
        self.settle(server);
        if self.waiting != Waiting::Over {
            self.socket.shutdown(Shutdown::Write).expect("a shutdown");
            self.waiting = server.harness.advance(&mut self.line);
            assert_eq!(self.waiting, Waiting::Over, "nobody is left to serve");
        }
        while self.take() {}
        self.said
    }

    fn say_all(mut self, server: &mut Server, stream: &[u8]) -> Vec<u8> {
        self.send(server, stream);
        self.finish(server)
    }

    fn say_in_pieces(
        mut self,
        server: &mut Server,
        stream: &[u8],
        input: &Input,
        bystander: &mut Bystander,
    ) -> Vec<u8> {
        let mut lengths = input.lengths();
        let mut rest = stream;
        while !rest.is_empty() && self.waiting != Waiting::Over {
            let length = lengths.next().unwrap_or(usize::MAX).min(rest.len());
            self.send(server, &rest[..length]);
            rest = &rest[length..];
            bystander.drip(server);
        }
        self.finish(server)
    }

    /// Send request by request, and look at each answer.
    pub fn ask_text(mut self, server: &mut Server, stream: &[u8], values: &mut Values) -> Vec<u8> {
        let mut parser = Parser::new(server.limits);
        let (mut at, mut sent) = (0, 0);
        let mut keys = Vec::new();
        while self.waiting != Waiting::Over {
            let mut room = KeyBuffer::default();
            let (consumed, step) = parser.next(&stream[at..], &mut room);
            at += consumed;
            let Step::Request(request) = step else {
                break;
            };
            let last = match request.command {
                Command::Get { key, last, .. } | Command::GetAndTouch { key, last, .. } => {
                    // It is the stream's.
                    let start = key.as_ptr().addr() - stream.as_ptr().addr();
                    keys.push(&stream[start..][..key.len()]);
                    last
                }
                _ => true,
            };
            if !last {
                continue;
            }
            let told = self.said.len();
            if let Command::Disconnect(_) = request.command {
                // It is told by what nobody will read.
                at = stream.len();
            }
            self.send(server, &stream[sent..at]);
            sent = at;
            let said = &self.said[told..];
            if keys.is_empty() {
                answers::check(&request, said, values);
            } else {
                answers::check_keys(&keys, said, values);
                keys.clear();
            }
        }
        self.end_of(server, &stream[sent..])
    }

    /// The same, of requests of the binary protocol.
    pub fn ask_binary(
        mut self,
        server: &mut Server,
        stream: &[u8],
        values: &mut Values,
    ) -> Vec<u8> {
        let mut parser = binary::Parser::new(server.limits);
        let (mut at, mut sent) = (0, 0);
        while self.waiting != Waiting::Over {
            let (consumed, step) = parser.next(&stream[at..]);
            at += consumed;
            let binary::Step::Request(request) = step else {
                break;
            };
            let told = self.said.len();
            if let Refuse(Refusal { status: None, .. }) = request.command {
                // It is told by what nobody will read.
                at = stream.len();
            }
            self.send(server, &stream[sent..at]);
            sent = at;
            binary_answers::check(&request, &self.said[told..], values);
        }
        self.end_of(server, &stream[sent..])
    }

    /// There is no whole request in `rest`, so there is no answer.
    fn end_of(mut self, server: &mut Server, rest: &[u8]) -> Vec<u8> {
        if self.waiting != Waiting::Over {
            let told = self.said.len();
            self.send(server, rest);
            assert_eq!(self.said.len(), told, "an answer to half a request");
        }
        self.finish(server)
    }
}

/// A client who asks something now and then, byte by byte.
struct Bystander {
    client: Client,
    /// Bytes sent so far.
    sent: usize,
}

impl Bystander {
    const ASKS: &[u8] = b"mn\r\n";
    const IS_TOLD: &[u8] = b"MN\r\n";

    fn drip(&mut self, server: &mut Server) {
        // A few will do.
        if self.sent == 64 {
            return;
        }
        let byte = Self::ASKS[self.sent % Self::ASKS.len()];
        self.client.send(server, &[byte]);
        self.sent += 1;
        let said = &self.client.said[..];
        assert!(
            said.chunks(4).all(|line| line == Self::IS_TOLD) && said.len() / 4 == self.sent / 4,
            "after {} bytes a bystander was told {}",
            self.sent,
            said.escape_ascii()
        );
    }
}

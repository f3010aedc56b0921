//! What the load generator takes from datagrams: answers of a server, in whatever order and however often they come, and
//! what is none.

use load::{Silent, Tally};
use std::collections::HashMap;
use wire::batch::{Answer, Operation, parse_request, push_answer};
use wire::memcached::datagram::{FRAME_BYTES, Format, Frame};

/// As many datagrams as can be told apart by their numbers at least.
const DATAGRAMS_MAX: usize = 60;

const PHASE: &str = r#"{
    "name": "made up", "operations": {"read": 0.5, "update": 0.5}, "distribution": {"kind": "uniform"},
    "loop": {"kind": "closed"}, "duration_seconds": 1, "interval_seconds": 1, "record_latency": false
}"#;

/// Nothing is counted twice or forgotten. As long as a server answers as it should, nothing is found wrong with it,
/// however the network loses, delays, doubles and swaps datagrams; and a wrong value is found.
pub fn run(data: &[u8]) {
    let Some((&settings, actions)) = data.split_first() else {
        return;
    };
    let is_batch = settings & 1 == 1;
    let client = format!(
        r#"{{
            "target": {{"kind": "udp", "host": "127.0.0.1", "ports": [9]}}, "protocol": "{}", "connections": 2,
            "pipeline": {}, "batch": {}, "seed": {}, "keys": {{"count": 4, "size": {{"kind": "fixed", "bytes": 8}}}},
            "values": {{"kind": "fixed", "bytes": 40}}
        }}"#,
        if is_batch { "batch" } else { "memcached_text" },
        1 + (settings >> 1 & 3),
        if is_batch { 1 + (settings >> 3 & 7) } else { 1 },
        settings >> 6,
    );
    let done = Silent::try_with(&client, PHASE, |client| Match::new(client).play(actions));
    done.expect("a valid configuration");
}

/// A client, its server, and the network between them.
struct Match<'a> {
    client: Silent<'a>,
    asked: Vec<Asked>,
    /// Requests of all of them.
    requests: u64,
    /// What keys hold.
    items: HashMap<Vec<u8>, Vec<u8>>,
    /// Answers that are on their way, or were.
    answers: Vec<(usize, Vec<u8>)>,
    is_honest: bool,
}

/// A datagram of the client's.
struct Asked {
    flow: usize,
    bytes: Vec<u8>,
    is_carried_out: bool,
}

impl<'a> Match<'a> {
    fn new(client: Silent<'a>) -> Self {
        Self {
            client,
            asked: Vec::new(),
            requests: 0,
            items: HashMap::new(),
            answers: Vec::new(),
            is_honest: true,
        }
    }

    fn play(mut self, mut actions: &[u8]) {
        self.ask();
        while let Some((&action, rest)) = actions.split_first() {
            actions = rest;
            let number = usize::from(actions.first().copied().unwrap_or(0));
            match action % 8 {
                0 => {
                    let first = self.answers.len();
                    self.carry_out(0, number);
                    for at in first..self.answers.len() {
                        self.deliver(at);
                    }
                }
                1 => self.carry_out(number, usize::from(action >> 3)),
                2 if !self.answers.is_empty() => self.deliver(number % self.answers.len()),
                3 => {
                    let length = usize::from(action >> 3).min(actions.len());
                    let made_up = actions[..length].to_vec();
                    actions = &actions[length..];
                    self.is_honest = false;
                    self.client.take(number % 2, &made_up);
                }
                4 => {
                    let length = usize::from(action >> 3).min(actions.len());
                    self.answer_with(number, &actions[..length]);
                    actions = &actions[length..];
                }
                5 => self.client.give_up(),
                6 => self.ask(),
                7 => self.answer_wrongly(number),
                _ => {}
            }
            self.check();
        }
        self.client.give_up();
        self.check();
        assert_eq!(self.client.tally().outstanding, 0);
    }

    fn ask(&mut self) {
        if self.asked.len() + 8 > DATAGRAMS_MAX {
            return;
        }
        for (flow, bytes) in self.client.ask() {
            self.requests += requests(&bytes).len() as u64;
            self.asked.push(Asked {
                flow,
                bytes,
                is_carried_out: false,
            });
        }
    }

    /// Carry out a datagram that was not, and answer it in pieces of so many answers.
    fn carry_out(&mut self, number: usize, piece: usize) {
        let waiting: Vec<_> = (0..self.asked.len())
            .filter(|&at| !self.asked[at].is_carried_out)
            .collect();
        let Some(&at) = waiting.get(number.checked_rem(waiting.len()).unwrap_or(0)) else {
            return;
        };
        self.asked[at].is_carried_out = true;
        let answers: Vec<_> = requests(&self.asked[at].bytes)
            .into_iter()
            .map(|request| self.answer(&request))
            .collect();
        let pieces: Vec<_> = answers.chunks(1 + piece % 9).collect();
        let Asked { flow, bytes, .. } = &self.asked[at];
        for (sequence, piece) in (0..).zip(&pieces) {
            let (frame, _) = Frame::parse(bytes).expect("a frame");
            let frame = Frame {
                sequence,
                datagrams: pieces.len() as u16,
                ..frame
            };
            self.answers
                .push((*flow, [&frame.to_bytes()[..], &piece.concat()].concat()));
        }
    }

    fn answer(&mut self, request: &Asking) -> Vec<u8> {
        match (&request.value, self.items.get(&request.key)) {
            (Some(value), _) => {
                self.items.insert(request.key.clone(), value.clone());
                done(request.format)
            }
            (None, found) => found_or_not(request, found.map(Vec::as_slice)),
        }
    }

    fn deliver(&mut self, at: usize) {
        let (flow, answer) = &self.answers[at];
        self.client.take(*flow, answer);
    }

    /// Made-up bytes under the number of a datagram.
    fn answer_with(&mut self, number: usize, bytes: &[u8]) {
        let Asked {
            flow, bytes: asked, ..
        } = &self.asked[number % self.asked.len()];
        let answer = [&asked[..FRAME_BYTES], bytes].concat();
        self.is_honest = false;
        self.client.take(*flow, &answer);
    }

    /// Answer a read that still waits, and is the first of its datagram, with what no write wrote.
    fn answer_wrongly(&mut self, number: usize) {
        let Asked { flow, bytes, .. } = &self.asked[number % self.asked.len()];
        let Some(request) = requests(bytes).into_iter().next() else {
            return;
        };
        if request.value.is_some() || !self.is_honest {
            return;
        }
        let wrong = vec![b'w'; number % 50];
        let answer = found_or_not(&request, Some(&wrong));
        let answer = [&bytes[..FRAME_BYTES], &answer].concat();
        let before = self.client.tally();
        self.client.take(*flow, &answer);
        let after = self.client.tally();
        assert_eq!(
            after.wrong_values - before.wrong_values,
            after.completed - before.completed,
            "a wrong value was taken"
        );
        // What follows of this datagram may now be an answer to another request.
        self.is_honest &= after == before;
    }

    fn check(&self) {
        let Tally {
            outstanding,
            completed,
            errors,
            wrong_values,
        } = self.client.tally();
        assert_eq!(outstanding + completed + errors, self.requests);
        assert!(wrong_values <= completed);
        let (failure, wrong) = self.client.sentences();
        if self.is_honest {
            assert_eq!((failure, wrong), (None, None));
            assert_eq!(wrong_values, 0);
        }
    }
}

/// A request as the server reads it.
struct Asking {
    format: Format,
    key: Vec<u8>,
    /// To be stored.
    value: Option<Vec<u8>>,
}

fn requests(datagram: &[u8]) -> Vec<Asking> {
    let (frame, mut rest) = Frame::parse(datagram).expect("a frame");
    let format = frame.format;
    let mut requests = Vec::new();
    if format == Format::Text {
        let line = rest.iter().position(|&byte| byte == b'\r').expect("a line");
        let mut words = rest[..line].split(|&byte| byte == b' ');
        let is_set = words.next() == Some(b"set");
        let key = words.next().expect("a key").to_vec();
        let value = &rest[line + 2..];
        requests.push(Asking {
            format,
            key,
            value: is_set.then(|| value[..value.len() - 2].to_vec()),
        });
    } else {
        while let Some((request, behind)) = parse_request(rest).expect("a whole request") {
            let value = match request.operation {
                Operation::Set { value, .. } => Some(value.to_vec()),
                Operation::Get | Operation::Delete => None,
            };
            requests.push(Asking {
                format,
                key: request.key.to_vec(),
                value,
            });
            rest = behind;
        }
    }
    requests
}

fn done(format: Format) -> Vec<u8> {
    match format {
        Format::Text => b"STORED\r\n".to_vec(),
        Format::Batch => batch(Answer::Done),
    }
}

fn found_or_not(request: &Asking, value: Option<&[u8]>) -> Vec<u8> {
    match (request.format, value) {
        (Format::Text, None) => b"END\r\n".to_vec(),
        (Format::Text, Some(value)) => {
            let head = format!(" 0 {}\r\n", value.len());
            let parts = [b"VALUE ", &request.key[..], head.as_bytes(), value];
            [&parts.concat()[..], b"\r\nEND\r\n"].concat()
        }
        (Format::Batch, None) => batch(Answer::NotFound),
        (Format::Batch, Some(value)) => batch(Answer::Found { flags: 0, value }),
    }
}

fn batch(answer: Answer<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    push_answer(&mut out, answer);
    out
}

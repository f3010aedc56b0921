//! A client that sends datagrams.

use super::PATIENCE;
use std::net::UdpSocket;
use wire::batch::{Answer, Operation, Request, parse_answer, push_request};
use wire::memcached::datagram::{DATAGRAM_BYTES_MAX, Format, Frame};

/// A client with one socket, which waits for each answer.
pub struct Sender {
    pub socket: UdpSocket,
    request: u16,
}

impl Sender {
    pub fn to(address: &str) -> Self {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a free port");
        socket.connect(address).expect("connect");
        socket
            .set_read_timeout(Some(PATIENCE))
            .expect("set an option");
        Self { socket, request: 0 }
    }

    pub fn send(&mut self, format: Format, body: &[u8]) -> u16 {
        self.request += 1;
        let frame = Frame::single(self.request, format).to_bytes();
        self.socket.send(&[&frame, body].concat()).expect("send");
        self.request
    }

    /// The next datagram.
    pub fn receive(&self) -> (Frame, Vec<u8>) {
        let mut room = vec![0; 1 << 16];
        let length = self.socket.recv(&mut room).expect("an answer");
        let (frame, rest) = Frame::parse(&room[..length]).expect("a frame");
        (frame, rest.to_vec())
    }

    /// The whole answer to the next request.
    pub fn ask(&mut self, format: Format, body: &[u8]) -> Vec<u8> {
        let request = self.send(format, body);
        let mut answer = Vec::new();
        for sequence in 0.. {
            let (frame, rest) = self.receive();
            assert_eq!(
                (frame.request, frame.sequence, frame.format),
                (request, sequence, format)
            );
            assert!(rest.len() <= DATAGRAM_BYTES_MAX - 8 || format == Format::Batch);
            answer.extend_from_slice(&rest);
            if frame.datagrams == sequence + 1 {
                break;
            }
        }
        answer
    }

    pub fn text(&mut self, commands: &str) -> String {
        String::from_utf8(self.ask(Format::Text, commands.as_bytes())).expect("text")
    }

    /// What is answered to many requests, as it reads in a test's failure.
    pub fn batch(&mut self, requests: &[Request<'_>]) -> Vec<String> {
        let mut entries = Vec::new();
        for &request in requests {
            push_request(&mut entries, request);
        }
        let answer = self.ask(Format::Batch, &entries);
        let (mut rest, mut answers) = (&answer[..], Vec::new());
        while let Some((answer, behind)) = parse_answer(rest).expect("whole entries") {
            answers.push(match answer {
                Answer::Found { flags, value } => {
                    format!("{flags} {}", String::from_utf8_lossy(value))
                }
                answer => format!("{answer:?}"),
            });
            rest = behind;
        }
        answers
    }
}

pub fn set<'a>(key: &'a str, value: &'a str) -> Request<'a> {
    let operation = Operation::Set {
        flags: 5,
        exptime: 0,
        value: value.as_bytes(),
    };
    Request {
        operation,
        key: key.as_bytes(),
    }
}

pub fn get(key: &str) -> Request<'_> {
    Request {
        operation: Operation::Get,
        key: key.as_bytes(),
    }
}

pub fn delete(key: &str) -> Request<'_> {
    Request {
        operation: Operation::Delete,
        key: key.as_bytes(),
    }
}

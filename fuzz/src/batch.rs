//! What datagrams are made of: memcached's frame, the entries of a batch, and many datagrams behind one another.

use crate::input::Input;
use std::collections::BTreeMap;
use wire::batch::{Answer, Operation, Request};
use wire::batch::{parse_answer, parse_request, push_answer, push_request};
use wire::memcached::Datagrams;
use wire::memcached::datagram::{DATAGRAM_BYTES_MAX, FRAME_BYTES, Format, Frame};

/// What is read is what was there, byte by byte, and nothing of what is cut off; datagrams are the same in whichever
/// order they are gathered and however many go at once.
pub fn run(data: &[u8]) {
    let Some(input) = Input::new(data) else {
        return;
    };
    let stream = &input.stream[..];
    let Some((frame, entries)) = Frame::parse(stream) else {
        return check_datagrams(&input);
    };
    assert_eq!(frame.to_bytes(), stream[..FRAME_BYTES]);
    check_requests(entries);
    check_answers(entries);
    check_datagrams(&input);
}

fn check_requests(mut entries: &[u8]) {
    while let Ok(Some((request, rest))) = parse_request(entries) {
        let Request { key, operation } = request;
        assert!((1..=255).contains(&key.len()));
        let length = entries.len() - rest.len();
        assert_eq!(
            parse_request(&entries[..length]),
            Ok(Some((request, &[][..])))
        );
        for cut in [1, length / 2, length - 1] {
            assert!(parse_request(&entries[..cut]).is_err());
        }
        let mut again = Vec::new();
        push_request(&mut again, request);
        if let Operation::Set { .. } = operation {
            assert_eq!(again, entries[..length]);
        } else {
            assert_eq!(parse_request(&again), Ok(Some((request, &[][..]))));
        }
        entries = rest;
    }
}

fn check_answers(mut entries: &[u8]) {
    while let Ok(Some((answer, rest))) = parse_answer(entries) {
        let length = entries.len() - rest.len();
        assert_eq!(
            parse_answer(&entries[..length]),
            Ok(Some((answer, &[][..])))
        );
        assert!(parse_answer(&entries[..length - 1]).is_err());
        let mut again = Vec::new();
        push_answer(&mut again, answer);
        assert_eq!(again, entries[..length]);
        if let Answer::Found { value, .. } = answer {
            assert!(value.len() < length);
        }
        entries = rest;
    }
}

/// Datagrams whose lengths are pieces of the stream.
fn check_datagrams(input: &Input) {
    let stream = &input.stream[..];
    let mut datagrams = Datagrams::default();
    let mut at = 0;
    for (number, end) in (0..).zip(input.ends()) {
        let frame = Frame::single(number, Format::Batch);
        if input.choice(0) && number % 3 == 0 {
            // A long answer, in pieces.
            let long = stream[at..end].repeat(3);
            datagrams.push_split(frame, &long);
        } else {
            datagrams.begin(frame).extend_from_slice(&stream[at..end]);
            datagrams.end();
        }
        at = end;
    }
    let before = each(&datagrams);
    check_runs(&datagrams, &before, input);
    let by_request = by_request(&before);
    for (number, pieces) in &by_request {
        let is_split = input.choice(0) && number % 3 == 0;
        for (sequence, piece) in (0..).zip(pieces) {
            let (frame, body) = Frame::parse(piece).expect("a frame");
            assert_eq!(
                (frame.sequence, frame.datagrams as usize),
                (sequence, pieces.len())
            );
            assert!(!is_split || (piece.len() <= DATAGRAM_BYTES_MAX && !body.is_empty()));
        }
    }
    datagrams.gather();
    let after = each(&datagrams);
    check_runs(&datagrams, &after, input);
    assert_eq!(self::by_request(&after), by_request, "gathered");
    datagrams.gather();
    assert_eq!(each(&datagrams), after, "gathered twice");
}

pub(crate) fn each(datagrams: &Datagrams) -> Vec<Vec<u8>> {
    let each: Vec<_> = datagrams
        .runs(1, usize::MAX)
        .map(|(bytes, length, count)| {
            assert_eq!((length, count), (bytes.len(), 1));
            bytes.to_vec()
        })
        .collect();
    assert_eq!(each.len(), datagrams.len());
    each
}

/// The datagrams of each request, in order.
pub(crate) fn by_request(datagrams: &[Vec<u8>]) -> BTreeMap<u16, Vec<Vec<u8>>> {
    let mut by_request = BTreeMap::<u16, Vec<Vec<u8>>>::new();
    for datagram in datagrams {
        let (frame, _) = Frame::parse(datagram).expect("a frame");
        let pieces = by_request.entry(frame.request).or_default();
        pieces.push(datagram.clone());
    }
    by_request
}

/// Runs hold all of the datagrams in order, cut where the kernel cuts them.
pub(crate) fn check_runs(datagrams: &Datagrams, each: &[Vec<u8>], input: &Input) {
    let datagrams_max = 1 + usize::from(input.settings >> 4);
    let bytes_max = 4000;
    let mut cut = Vec::new();
    for (bytes, length, count) in datagrams.runs(datagrams_max, bytes_max) {
        assert!(count <= datagrams_max && (count == 1 || bytes.len() <= bytes_max));
        let pieces: Vec<_> = bytes.chunks(length).map(<[u8]>::to_vec).collect();
        assert_eq!(pieces.len(), count);
        cut.extend(pieces);
    }
    assert_eq!(cut, each);
}

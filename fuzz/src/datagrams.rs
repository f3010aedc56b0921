//! Datagrams to the cache engine: what arrives is carried out on a small store, and answered.

use crate::batch::{by_request, check_runs, each};
use crate::connection::{Client, Server};
use crate::input::Input;
use crate::values::Values;
use memchr::memmem;
use wire::batch::push_request;
use wire::batch::{Answer, Malformed, Operation, Refusal, Request, parse_answer, parse_request};
use wire::memcached::datagram::{DATAGRAM_BYTES_MAX, FRAME_BYTES, Format, Frame};
use wire::memcached::{Datagrams, binary};

/// Between one datagram and the next.
const NEXT_DATAGRAM: &[u8] = b"\xfb--\xfb";

/// The most that UDP carries over IPv4.
const DATAGRAM_BYTES: usize = 65_507;

/// What IP packets carry where nobody cuts them.
const PACKET_BYTES: usize = 1472;

/// The most that a server keeps of the answers to one datagram, beside those that say that there are too many.
const ANSWER_BYTES_MAX: usize = 1 << 20;

const IN_PIECES: &[u8] = b"SERVER_ERROR multi-packet request not supported\r\n";
const TOO_LONG: &[u8] = b"SERVER_ERROR the answer is too long for datagrams\r\n";

/// Every datagram is answered under its own number, in whole answers that fit where they go; text as over a connection,
/// a batch with one answer to each request, whose values are those that were stored; and all of that is the same
/// whether datagrams arrive one by one or together.
pub fn run(data: &[u8]) {
    let input = match data.first() {
        Some(settings) if settings >> 5 & 1 == 1 => Input::stretched(data),
        _ => Input::new(data),
    };
    let Some(input) = input else {
        return;
    };
    let mut asked: Vec<&[u8]> = split(&input.stream).take(16).collect();
    let packet_bytes = input.choice(0).then_some(PACKET_BYTES);
    let mut one_by_one = Server::new(&input, false);
    let mut twin = Server::new(&input, false);
    let mut values = Values::default();
    let mut answered = Vec::new();
    let mut is_comparable = true;
    for (number, datagram) in asked.clone().into_iter().enumerate() {
        let mut answers = Datagrams::default();
        one_by_one
            .harness
            .answer_datagrams(&[datagram], packet_bytes, &mut answers);
        let answers = each(&answers);
        // Statistics tell how much was carried out, and how.
        let has = |text| memmem::find(datagram, text).is_some();
        is_comparable &= !has(b"stats") && !has(&[binary::MAGIC, 0x10]);
        let is_cut_short = match Frame::parse(datagram) {
            None => {
                assert!(answers.is_empty(), "what is no datagram was answered");
                false
            }
            Some((frame, rest)) => {
                let body = check_frames(frame, &answers, packet_bytes);
                if frame.datagrams != 1 {
                    assert_eq!(body, IN_PIECES);
                    false
                } else if frame.format == Format::Batch {
                    check_batch(rest, &body, &mut twin, packet_bytes, &mut values);
                    false
                } else {
                    let client = Client::new(&twin.harness, false);
                    let said = if rest.first() == Some(&binary::MAGIC) {
                        client.ask_binary(&mut twin, rest, &mut values)
                    } else {
                        client.ask_text(&mut twin, rest, &mut values)
                    };
                    let is_cut_short = body == TOO_LONG;
                    assert!(
                        body == said || is_cut_short || !is_comparable,
                        "by a datagram: {}\nover a connection: {}",
                        body.escape_ascii(),
                        said.escape_ascii()
                    );
                    assert!(!is_cut_short || said.len() > ANSWER_BYTES_MAX);
                    is_cut_short
                }
            }
        };
        answered.push(answers);
        if is_cut_short {
            // The rest of it was not carried out.
            asked.truncate(number + 1);
            break;
        }
    }
    check_together(&input, &asked, &answered, is_comparable, packet_bytes);
}

fn split(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(stream);
    std::iter::from_fn(move || {
        let all = rest.take()?;
        let end = memmem::find(all, NEXT_DATAGRAM).inspect(|at| {
            rest = Some(&all[at + NEXT_DATAGRAM.len()..]);
        });
        let datagram = &all[..end.unwrap_or(all.len())];
        Some(&datagram[..datagram.len().min(DATAGRAM_BYTES)])
    })
}

/// The answers to one datagram, whole and in order, without their frames.
fn check_frames(asked: Frame, answers: &[Vec<u8>], packet_bytes: Option<usize>) -> Vec<u8> {
    let mut joined = Vec::new();
    for (sequence, answer) in (0..).zip(answers) {
        let (frame, body) = Frame::parse(answer).expect("a frame");
        assert_eq!(frame.request, asked.request);
        assert_eq!(
            (frame.sequence, usize::from(frame.datagrams)),
            (sequence, answers.len())
        );
        assert!(!body.is_empty(), "an empty answer");
        if asked.datagrams == 1 {
            assert_eq!(frame.format, asked.format);
        }
        if frame.format == Format::Text {
            assert!(answer.len() <= DATAGRAM_BYTES_MAX);
        } else {
            let joined_max = packet_bytes.unwrap_or(DATAGRAM_BYTES_MAX);
            let is_one = parse_answer(body)
                .is_ok_and(|answer| answer.is_some_and(|(_, rest)| rest.is_empty()));
            let most = if is_one {
                packet_bytes.unwrap_or(DATAGRAM_BYTES)
            } else {
                joined_max
            };
            assert!(answer.len() <= most, "{} bytes", answer.len());
        }
        joined.extend_from_slice(body);
    }
    joined
}

/// A batch is answered request by request, as it would be if each came by itself.
fn check_batch(
    mut requests: &[u8],
    mut answers: &[u8],
    twin: &mut Server,
    packet_bytes: Option<usize>,
    values: &mut Values,
) {
    assert!(answers.len() <= ANSWER_BYTES_MAX + requests.len() + FRAME_BYTES);
    let mut said = 0;
    while let Ok(Some((request, rest))) = parse_request(requests) {
        let (answer, behind) = parse_answer(answers)
            .expect("a whole answer")
            .expect("an answer to every request");
        said += answers.len() - behind.len();
        let alone = ask_alone(request, twin, packet_bytes);
        let alone = parse_answer(&alone).expect("a whole answer");
        let alone = alone.map(|(answer, _)| answer);
        let has_said_much = answer == Answer::Refused(Refusal::TooLarge)
            && said + DATAGRAM_BYTES > ANSWER_BYTES_MAX;
        assert!(
            alone == Some(answer) || has_said_much,
            "{answer:?}, and by itself {alone:?}"
        );
        note(request, answer, values);
        (requests, answers) = (rest, behind);
    }
    let last = parse_answer(answers).expect("a whole answer");
    let is_malformed = parse_request(requests) == Err(Malformed);
    let expected = is_malformed.then_some((Answer::Refused(Refusal::Malformed), &[][..]));
    assert_eq!(last, expected);
}

fn ask_alone(request: Request<'_>, twin: &mut Server, packet_bytes: Option<usize>) -> Vec<u8> {
    let mut datagram = Frame::single(1, Format::Batch).to_bytes().to_vec();
    push_request(&mut datagram, request);
    let mut answers = Datagrams::default();
    twin.harness
        .answer_datagrams(&[&datagram], packet_bytes, &mut answers);
    let [answer] = &each(&answers)[..] else {
        panic!("not one answer to one request");
    };
    answer[FRAME_BYTES..].to_vec()
}

fn note(request: Request<'_>, answer: Answer<'_>, values: &mut Values) {
    let Request { operation, key } = request;
    match (operation, answer) {
        (Operation::Get, Answer::Found { value, .. }) => values.hit(key, value),
        (Operation::Set { value, .. }, Answer::Done) => values.stored(key, value),
        (Operation::Delete, Answer::Done) => values.removed(key),
        (Operation::Get | Operation::Delete, Answer::NotFound)
        | (Operation::Get | Operation::Set { .. }, Answer::Refused(Refusal::TooLarge)) => {}
        (operation, answer) => panic!("{answer:?} to {operation:?}"),
    }
}

/// Datagrams that arrive together are answered as those that arrive one by one.
fn check_together(
    input: &Input,
    asked: &[&[u8]],
    answered: &[Vec<Vec<u8>>],
    is_comparable: bool,
    packet_bytes: Option<usize>,
) {
    let mut together = Server::new(input, false);
    let mut lengths = input.lengths();
    let mut at = 0;
    while at < asked.len() {
        let length = lengths.next().unwrap_or(usize::MAX);
        let end = at.saturating_add(length).min(asked.len());
        let mut answers = Datagrams::default();
        together
            .harness
            .answer_datagrams(&asked[at..end], packet_bytes, &mut answers);
        let said = each(&answers);
        check_runs(&answers, &said, input);
        if is_comparable {
            assert!(
                said == answered[at..end].concat(),
                "together and one by one"
            );
        }
        let before = by_request(&said);
        answers.gather();
        let after = each(&answers);
        let sorted = |pieces: &Vec<Vec<u8>>| {
            let mut sorted = pieces.clone();
            sorted.sort();
            sorted
        };
        let before: Vec<_> = before.values().map(sorted).collect();
        let after: Vec<_> = by_request(&after).values().map(sorted).collect();
        assert!(before == after, "gathered");
        at = end;
    }
}

use super::reply_limits::{Limits, REPLY_BYTES_MAX};
use crate::engine::{Context, Count, Outcome, Read, Storage};
use crate::session::BURST;
use arrayvec::ArrayVec;
use mica::{Contents, Key, Marks};
use wire::batch::{Answer, Operation, Refusal, Request, parse_request, push_answer, push_found};
use wire::memcached::Datagrams;
use wire::memcached::datagram::{FRAME_BYTES, Frame};
use wire::memcached::server::StoreMode;

/// Carry out the requests in `entries` and answer them in order, in as few datagrams as hold them.
pub(super) fn carry_out<S: Storage>(
    frame: Frame,
    mut entries: &[u8],
    limits: Limits,
    context: &mut Context<'_, S>,
    answers: &mut Datagrams,
) {
    let first = answers.len();
    let mut out = answers.begin(frame);
    let mut body = out.len();
    let mut is_over = false;
    // A datagram may hold thousands of requests, each of which may ask for the longest reply.
    let mut left_bytes = REPLY_BYTES_MAX;
    while !is_over {
        let mut burst = ArrayVec::<(Key<'_>, Request<'_>), BURST>::new();
        while !burst.is_full() {
            match parse_request(entries) {
                Ok(Some((request, rest))) => {
                    let key = context.storage.key(request.key);
                    context.storage.prefetch_bucket(key);
                    burst.push((key, request));
                    entries = rest;
                }
                Ok(None) | Err(_) => {
                    is_over = true;
                    break;
                }
            }
        }
        let keys = burst.iter().map(|(key, _)| *key);
        context.storage.prefetch_items(keys);
        for (key, request) in &burst {
            let before = out.len();
            let most = left_bytes.min(limits.single - FRAME_BYTES);
            answer(request, *key, most, context, out);
            left_bytes = left_bytes.saturating_sub(out.len() - before);
            if is_too_much(out, before, body, limits) {
                (out, body) = move_on(answers, frame, before);
            }
        }
    }
    if !entries.is_empty() {
        let before = out.len();
        push_answer(out, Answer::Refused(Refusal::Malformed));
        if is_too_much(out, before, body, limits) {
            (out, body) = move_on(answers, frame, before);
        }
    }
    if out.len() > body {
        answers.end();
    }
    if answers.len() > first + 1 {
        answers.number(first);
    }
}

/// Whether the answer from byte `before` on is one too many for the datagram whose answers begin at byte `body`.
fn is_too_much(out: &[u8], before: usize, body: usize, limits: Limits) -> bool {
    out.len() - body > limits.joined - FRAME_BYTES && before > body
}

/// End the datagram at byte `before`, and begin the next one with what is behind; says where its answers begin.
fn move_on(answers: &mut Datagrams, frame: Frame, before: usize) -> (&mut Vec<u8>, usize) {
    let moved = answers.end_at(before);
    let out = answers.begin(frame);
    let body = out.len();
    out.extend_from_slice(&moved);
    (out, body)
}

fn answer<S: Storage>(
    request: &Request<'_>,
    key: Key<'_>,
    value_answer_bytes_max: usize,
    context: &mut Context<'_, S>,
    out: &mut Vec<u8>,
) {
    let answer = match request.operation {
        Operation::Get => {
            let start = out.len();
            let read = context.storage.read(key, context.now, out, |out, front| {
                push_found(out, front.flags, front.value_bytes);
            });
            let count = match read {
                Read::Hit if out.len() - start > value_answer_bytes_max => {
                    out.truncate(start);
                    push_answer(out, Answer::Refused(Refusal::TooLarge));
                    Count::GetHits
                }
                Read::Hit => Count::GetHits,
                Read::Miss => {
                    push_answer(out, Answer::NotFound);
                    Count::GetMisses
                }
                Read::OtherWorker(_) => {
                    return push_answer(out, Answer::Refused(Refusal::OtherWorker));
                }
            };
            return context.counters.add(count, 1);
        }
        _ if context.storage.other_worker(key).is_some() => {
            return push_answer(out, Answer::Refused(Refusal::OtherWorker));
        }
        Operation::Set {
            flags,
            exptime,
            value,
        } => {
            let contents = Contents {
                value,
                flags,
                expires_at: context.clock.deadline(exptime, context.now),
                marks: Marks::default(),
                cas: 0,
            };
            match context.store(StoreMode::Set, key, contents, 0) {
                Outcome::Stored(_) => Answer::Done,
                Outcome::TooLarge => Answer::Refused(Refusal::TooLarge),
                // The others are of modes that a batch has not; were they to come, nothing would be stored either.
                Outcome::OutOfMemory | Outcome::NotStored | Outcome::Exists | Outcome::NotFound => {
                    Answer::Refused(Refusal::OutOfMemory)
                }
            }
        }
        Operation::Delete if context.delete(key) => Answer::Done,
        Operation::Delete => Answer::NotFound,
    };
    push_answer(out, answer);
}

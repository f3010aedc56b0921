use super::Limits;
use crate::conversation::BURST;
use crate::counters::Count;
use crate::execute::Context;
use crate::storage::{Read, Storage};
use crate::store::Outcome;
use arrayvec::ArrayVec;
use mica::{Contents, Entry, Key, Marks};
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
        for (key, _) in &burst {
            context.storage.prefetch_item(*key);
        }
        for (key, request) in &burst {
            let before = out.len();
            answer(request, *key, limits, context, out);
            // One that does not fit any more begins the next datagram.
            if out.len() - body > limits.joined - FRAME_BYTES && before > body {
                let moved = out.split_off(before);
                answers.end();
                out = answers.begin(frame);
                body = out.len();
                out.extend_from_slice(&moved);
            }
        }
    }
    if !entries.is_empty() {
        push_answer(out, Answer::Refused(Refusal::Malformed));
    }
    if out.len() > body {
        answers.end();
    }
    if answers.len() > first + 1 {
        answers.number(first);
    }
}

fn answer<S: Storage>(
    request: &Request<'_>,
    key: Key<'_>,
    limits: Limits,
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
                Read::Hit if out.len() - start > limits.single - FRAME_BYTES => {
                    out.truncate(start);
                    push_answer(out, Answer::Refused(Refusal::TooLarge));
                    Count::GetHits
                }
                Read::Hit => Count::GetHits,
                Read::Miss => {
                    push_answer(out, Answer::NotFound);
                    Count::GetMisses
                }
                Read::Elsewhere(_) => {
                    return push_answer(out, Answer::Refused(Refusal::Elsewhere));
                }
            };
            return context.counters.add(count, 1);
        }
        _ if context.storage.elsewhere(key).is_some() => Answer::Refused(Refusal::Elsewhere),
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
                Outcome::TooLarge => Answer::Refused(Refusal::TooLarge),
                _ => Answer::Done,
            }
        }
        Operation::Delete => {
            let now = context.now;
            let is_found =
                context
                    .storage
                    .with(key, |partition, key| match partition.entry(key, now) {
                        Entry::Occupied(entry) => {
                            entry.remove();
                            true
                        }
                        Entry::Vacant(_) => false,
                    });
            context.count_delete(is_found);
            if is_found {
                Answer::Done
            } else {
                Answer::NotFound
            }
        }
    };
    push_answer(out, answer);
}

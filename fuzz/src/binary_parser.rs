//! The server's parser of the binary protocol.

use crate::input::Input;
use wire::memcached::binary::{Command, HEADER_BYTES, Parser, Refusal, Request, Step};
use wire::memcached::server::{KEY_BYTES_MAX, Limits};

/// However the stream is cut, the requests are the same and end in the same places, and what is kept is bounded.
pub fn run(data: &[u8]) {
    let Some(input) = Input::new(data) else {
        return;
    };
    let limits = Limits {
        item_bytes_max: if input.choice(0) { 300 } else { 1 << 20 },
    };
    let is_patient = input.choice(1);
    let stream = &input.stream[..];
    let (mut pieces, mut at, mut wanted) = (Parser::new(limits), 0, 0);
    let (mut whole, mut whole_at) = (Parser::new(limits), 0);
    for end in input.ends() {
        if is_patient && end - at < wanted {
            continue;
        }
        loop {
            let (consumed, step) = pieces.next(&stream[at..end]);
            at += consumed;
            assert!(at <= end);
            let request = match step {
                Step::Incomplete(bytes) => {
                    assert!(bytes > end - at, "{bytes} would never come");
                    assert!(bytes <= most_wanted(limits), "{bytes} bytes are kept");
                    wanted = bytes;
                    break;
                }
                Step::Request(request) => request,
            };
            check(&request, limits);
            let (consumed, step) = whole.next(&stream[whole_at..]);
            whole_at += consumed;
            assert_eq!(step, Step::Request(request), "cut and whole");
            assert_eq!(whole_at, at, "consumed");
            if matches!(
                request.command,
                Command::Refuse(Refusal { close: true, .. })
            ) {
                return;
            }
        }
    }
    let (consumed, step) = whole.next(&stream[whole_at..]);
    assert!(
        matches!(step, Step::Incomplete(_)),
        "{step:?} is found only where the stream is whole"
    );
    assert_eq!(whole_at + consumed, at, "consumed");
}

/// The most that a request takes: header, extras, key, and a value that may be kept.
fn most_wanted(limits: Limits) -> usize {
    HEADER_BYTES + usize::from(u8::MAX) + KEY_BYTES_MAX + limits.item_bytes_max
}

/// What executing a request relies on.
fn check(request: &Request<'_>, limits: Limits) {
    if let Some(key) = request.command.key() {
        assert!((1..=KEY_BYTES_MAX).contains(&key.len()), "{request:?}");
    }
    if let Command::Store { key, value, .. } = request.command {
        assert!(key.len() + value.len() <= limits.item_bytes_max);
    }
}

//! What a server of the binary protocol may answer to each request.

use crate::values::{Values, counted};
use wire::memcached::binary::{Command, HEADER_BYTES, Refusal, Request};
use wire::memcached::server::{Direction, StoreMode, parse_u64};

struct Packet<'a> {
    status: u16,
    extras: &'a [u8],
    key: &'a [u8],
    value: &'a [u8],
}

/// `answer` is all that a server said to `request`: as many whole answers as that takes, which tell no value that was
/// not stored under the key.
pub(crate) fn check(request: &Request<'_>, answer: &[u8], values: &mut Values) {
    let mut rest = answer;
    if let Command::Stats { .. } = request.command {
        loop {
            let packet = packet(&mut rest, request);
            if packet.key.is_empty() {
                break;
            }
        }
    } else if answer.is_empty() {
        let may_be_silent = request.quiet
            || matches!(
                request.command,
                Command::Refuse(Refusal { status: None, .. })
            );
        assert!(may_be_silent, "no answer to {request:?}");
        let told = !matches!(request.command, Command::Get { .. });
        note(request, 0, told, values);
    } else {
        let packet = packet(&mut rest, request);
        if packet.status == 0 {
            match request.command {
                Command::Get {
                    key,
                    with_key,
                    with_value,
                    ..
                } => {
                    assert_eq!(packet.extras.len(), 4, "flags");
                    assert_eq!(packet.key, if with_key { key } else { b"" });
                    if with_value {
                        values.hit(key, packet.value);
                    }
                }
                Command::Arithmetic { key, .. } => {
                    let number = packet.value.try_into().map(u64::from_be_bytes);
                    let number = number.expect("eight bytes");
                    values.changed(key, |before| counted(before, number));
                    values.maybe_stored(key, number.to_string().as_bytes());
                }
                _ => note(request, packet.status, true, values),
            }
        } else {
            assert!(packet.extras.is_empty());
            note(request, packet.status, false, values);
        }
    }
    assert!(
        rest.is_empty(),
        "more than an answer: {}",
        answer.escape_ascii()
    );
}

/// The first answer of `rest`, which is taken off it.
fn packet<'a>(rest: &mut &'a [u8], request: &Request<'_>) -> Packet<'a> {
    let (header, body) = rest.split_at(HEADER_BYTES);
    let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let long = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    assert_eq!(header[0], 0x81, "magic");
    assert_eq!(header[1], request.opcode, "opcode");
    assert_eq!(header[5], 0, "type of data");
    assert_eq!(long(12), request.opaque, "opaque");
    let (body, after) = body.split_at(long(8) as usize);
    let (extras, body) = body.split_at(usize::from(header[4]));
    let (key, value) = body.split_at(usize::from(short(2)));
    *rest = after;
    Packet {
        status: short(6),
        extras,
        key,
        value,
    }
}

/// What became of the items; `is_done` where that is known to have worked (a quiet request that says nothing did).
fn note(request: &Request<'_>, status: u16, is_done: bool, values: &mut Values) {
    match request.command {
        Command::TooLarge { key, remove: true } => values.removed(key),
        _ if !is_done => {}
        Command::Store {
            mode, key, value, ..
        } => match mode {
            StoreMode::Append => values.changed(key, |before| [before, value].concat()),
            StoreMode::Prepend => values.changed(key, |before| [value, before].concat()),
            _ => values.stored(key, value),
        },
        Command::Delete { key } => values.removed(key),
        Command::Arithmetic {
            key,
            direction,
            delta,
            initial,
        } => {
            values.changed(key, |before| match (parse_u64(before), direction) {
                (None, _) => before.to_vec(),
                (Some(number), Direction::Up) => counted(before, number.wrapping_add(delta)),
                (Some(number), Direction::Down) => counted(before, number.saturating_sub(delta)),
            });
            if let Some((initial, _)) = initial {
                values.maybe_stored(key, initial.to_string().as_bytes());
            }
        }
        Command::Flush { delay } if delay <= 0 => values.flushed(),
        _ => assert!(status == 0 || !is_done),
    }
}

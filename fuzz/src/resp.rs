//! RESP: its tokens, what the load generator reads of Redis, and what its null responder reads.

use crate::input::Input;
use load::protocol::{Command, Elements, Protocol, Redis, Step};
use load::{Answerer, config};
use wire::resp::{Parsed, Token, parse_token, push_array_header, push_bulk};

const COMMANDS: [Command; 7] = [
    Command::Get,
    Command::Set,
    Command::ListPush,
    Command::ListPop,
    Command::SortedSetAdd,
    Command::SortedSetFirst,
    Command::SetAdd,
];

/// However a stream is cut, it reads the same; what is not whole is waited for, and never for what will not come; a
/// token that is written again is the same token.
pub fn run(data: &[u8]) {
    let Some(input) = Input::stretched(data) else {
        return;
    };
    let command = COMMANDS[usize::from(input.settings & 7) % COMMANDS.len()];
    let keys = usize::from(input.settings >> 3 & 3) + 1;
    read_in_pieces::<Redis>(&input, command, keys);
    answer_in_pieces(&input, config::Protocol::Resp);
    let mut rest = &input.stream[..];
    while let Ok(parsed) = parse_token(rest) {
        match parsed {
            Parsed::Complete { token, length } => {
                assert!((1..=rest.len()).contains(&length));
                assert_eq!(parse_token(&rest[..length]), Ok(parsed));
                let short = parse_token(&rest[..length - 1]);
                assert!(matches!(short, Ok(Parsed::Partial { needed }) if needed <= length));
                check_written(token);
                rest = &rest[length..];
            }
            Parsed::Partial { needed } => {
                assert!(needed > rest.len());
                break;
            }
        }
    }
}

/// What this crate writes reads as what was meant.
fn check_written(token: Token<'_>) {
    let mut out = Vec::new();
    match token {
        Token::Bulk(bytes) => push_bulk(&mut out, bytes),
        Token::Array(elements) => push_array_header(&mut out, elements),
        Token::Simple(_) | Token::Error(_) | Token::Integer(_) | Token::Null => return,
    }
    let length = out.len();
    assert_eq!(parse_token(&out), Ok(Parsed::Complete { token, length }));
}

/// Replies to requests, all of `command` and `keys`, are the same in pieces as at once.
pub(crate) fn read_in_pieces<P: Protocol>(input: &Input, command: Command, keys: usize) {
    let stream = &input.stream[..];
    let (mut at, mut elements): (usize, Elements) = (0, None);
    let (mut whole_at, mut whole_elements): (usize, Elements) = (0, None);
    let mut wanted = 0;
    for end in input.ends() {
        while end - at >= wanted {
            let held = &stream[at..end];
            let step = match P::step(held, command, keys, &mut elements) {
                Ok(Step::Partial(needed)) => {
                    assert!(needed > held.len(), "{needed} would never come");
                    wanted = needed;
                    break;
                }
                step => step,
            };
            wanted = 0;
            let whole = P::step(&stream[whole_at..], command, keys, &mut whole_elements);
            let Ok(Step::Answer(answer, length)) = step else {
                assert!(whole.is_err(), "refused in pieces only");
                return;
            };
            assert!((1..=held.len()).contains(&length));
            assert_eq!(whole, Ok(Step::Answer(answer, length)), "cut and whole");
            assert_eq!(elements, whole_elements);
            at += length;
            whole_at += length;
        }
    }
    let whole = P::step(&stream[whole_at..], command, keys, &mut whole_elements);
    assert!(
        matches!(whole, Ok(Step::Partial(_))),
        "{whole:?} is found only where the stream is whole"
    );
}

/// Requests are answered the same in pieces as at once.
pub(crate) fn answer_in_pieces(input: &Input, protocol: config::Protocol) {
    let stream = &input.stream[..];
    let mut said_at_once = Vec::new();
    let whole = Answerer::new(protocol).answer(stream, &mut said_at_once);
    let (mut answerer, mut said, mut at) = (Answerer::new(protocol), Vec::new(), 0);
    for end in input.ends() {
        match answerer.answer(&stream[at..end], &mut said) {
            Ok(used) => at += used,
            Err(_) => {
                assert!(whole.is_err(), "refused in pieces only");
                return;
            }
        }
        assert!(at <= end);
    }
    assert_eq!(whole.ok(), Some(at), "used");
    assert_eq!(said, said_at_once);
}

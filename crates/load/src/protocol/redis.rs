use super::{Answer, Command, Elements, Protocol, Step, unexpected};
use wire::memcached::client::Attributes;
use wire::resp::{
    Parsed, Token, parse_token, push_array_header, push_bulk, push_bulk_header, push_bulk_integer,
};

/// Redis's commands on strings, lists, sorted sets and sets.
pub struct Redis;

impl Protocol for Redis {
    #[inline]
    fn push_get(out: &mut Vec<u8>, keys: usize) {
        if keys == 1 {
            out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
        } else {
            push_array_header(out, keys + 1);
            out.extend_from_slice(b"$4\r\nMGET\r\n");
        }
    }

    #[inline]
    fn push_get_key(out: &mut Vec<u8>, key: &[u8], _keys: usize) {
        push_bulk(out, key);
    }

    #[inline]
    fn push_get_end(_out: &mut Vec<u8>, _keys: usize) {}

    #[inline]
    fn push_set(out: &mut Vec<u8>, key: &[u8], attributes: Attributes, value_bytes: usize) {
        out.extend_from_slice(match attributes.expire_seconds {
            0 => b"*3\r\n$3\r\nSET\r\n",
            _ => b"*5\r\n$3\r\nSET\r\n",
        });
        push_bulk(out, key);
        push_bulk_header(out, value_bytes);
    }

    #[inline]
    fn push_set_end(out: &mut Vec<u8>, attributes: Attributes) {
        out.extend_from_slice(b"\r\n");
        if attributes.expire_seconds > 0 {
            out.extend_from_slice(b"$2\r\nEX\r\n");
            push_bulk_integer(out, attributes.expire_seconds.into());
        }
    }

    fn push_command(
        out: &mut Vec<u8>,
        command: Command,
        key: &[u8],
        score: u32,
        argument_bytes: usize,
    ) {
        let head: &[u8] = match command {
            Command::ListPush => b"*3\r\n$5\r\nLPUSH\r\n",
            Command::ListPop => b"*2\r\n$4\r\nLPOP\r\n",
            Command::SortedSetAdd => b"*4\r\n$4\r\nZADD\r\n",
            Command::SortedSetFirst => b"*4\r\n$6\r\nZRANGE\r\n",
            Command::SetAdd => b"*3\r\n$4\r\nSADD\r\n",
            Command::Get | Command::Set => unreachable!("these have functions of their own"),
        };
        out.extend_from_slice(head);
        push_bulk(out, key);
        match command {
            Command::ListPop => return,
            Command::SortedSetFirst => {
                out.extend_from_slice(b"$1\r\n0\r\n$1\r\n0\r\n");
                return;
            }
            Command::SortedSetAdd => push_bulk_integer(out, score.into()),
            _ => {}
        }
        push_bulk_header(out, argument_bytes);
    }

    #[inline]
    fn step<'a>(
        input: &'a [u8],
        command: Command,
        keys: usize,
        elements: &mut Elements,
    ) -> Result<Step<'a>, String> {
        let (token, length) = match parse_token(input).map_err(|error| error.to_string())? {
            Parsed::Partial { needed } => return Ok(Step::Partial(needed)),
            Parsed::Complete { token, length } => (token, length),
        };
        let answer = if let (Token::Error(message), None) = (token, *elements) {
            Some(Answer::Refused {
                message,
                last: true,
            })
        } else {
            answer(token, command, keys, elements)
        };
        match answer {
            Some(answer) => Ok(Step::Answer(answer, length)),
            None => Err(unexpected(command, &token)),
        }
    }
}

/// What `token` means in the reply to a `command` of `keys` keys; `None` where it does not belong.
#[inline]
fn answer<'a>(
    token: Token<'a>,
    command: Command,
    keys: usize,
    elements: &mut Elements,
) -> Option<Answer<'a>> {
    match command {
        Command::Set => (token == Token::Simple(b"OK")).then_some(Answer::Done),
        Command::ListPush | Command::SortedSetAdd | Command::SetAdd => {
            matches!(token, Token::Integer(_)).then_some(Answer::Done)
        }
        Command::ListPop => found(token, true),
        Command::Get if keys == 1 => found(token, true),
        // An array with an element for each key; the range of a sorted set is one element or none.
        Command::Get | Command::SortedSetFirst => match (*elements, token) {
            (None, Token::Array(0)) if command == Command::SortedSetFirst => {
                Some(Answer::Miss { last: true })
            }
            (None, Token::Array(count)) if count == keys => {
                *elements = Some(count);
                Some(Answer::Continues)
            }
            (None, _) => None,
            (Some(left), token) => {
                *elements = (left > 1).then(|| left - 1);
                found(token, left <= 1)
            }
        },
    }
}

#[inline]
fn found(token: Token<'_>, last: bool) -> Option<Answer<'_>> {
    match token {
        Token::Bulk(value) => Some(Answer::Hit {
            key: None,
            flags: None,
            value,
            last,
        }),
        Token::Null => Some(Answer::Miss { last }),
        _ => None,
    }
}

use super::{Answer, Command, Elements, Protocol, Step, unexpected};
use wire::memcached::client::{
    Attributes, Parsed, Reply, parse_reply, push_get, push_get_key, push_set_header,
};

/// memcached's `get` and `set`.
pub struct MemcachedText;

impl Protocol for MemcachedText {
    #[inline]
    fn push_get(out: &mut Vec<u8>, _keys: usize) {
        push_get(out);
    }

    #[inline]
    fn push_get_key(out: &mut Vec<u8>, key: &[u8], _keys: usize) {
        push_get_key(out, key);
    }

    #[inline]
    fn push_get_end(out: &mut Vec<u8>, _keys: usize) {
        out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn push_set(out: &mut Vec<u8>, key: &[u8], attributes: Attributes, value_bytes: usize) {
        push_set_header(out, key, attributes, value_bytes);
    }

    #[inline]
    fn step<'a>(
        input: &'a [u8],
        command: Command,
        _keys: usize,
        _elements: &mut Elements,
    ) -> Result<Step<'a>, String> {
        let (reply, length) = match parse_reply(input).map_err(|error| error.to_string())? {
            Parsed::Partial { needed } => return Ok(Step::Partial(needed)),
            Parsed::Complete { reply, length } => (reply, length),
        };
        let answer = match (command, reply) {
            (Command::Get, Reply::End) | (Command::Set, Reply::Stored) => Answer::Done,
            (Command::Get, Reply::Value { key, flags, value }) => Answer::Hit {
                key: Some(key),
                flags: Some(flags),
                value,
                last: false,
            },
            (Command::Set, Reply::NotStored) => Answer::Refused {
                message: b"NOT_STORED",
                last: true,
            },
            (_, Reply::Refused(message)) => Answer::Refused {
                message,
                last: true,
            },
            (command, reply) => return Err(unexpected(command, &reply)),
        };
        Ok(Step::Answer(answer, length))
    }
}

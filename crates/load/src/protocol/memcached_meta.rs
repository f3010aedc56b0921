use super::{Answer, Command, Elements, Protocol, Step, unexpected};
use wire::memcached::client::{
    Attributes, Parsed, Reply, parse_reply, push_meta_get, push_meta_noop, push_meta_set_header,
};

/// memcached's `mg` and `ms`. Several keys are asked for quietly, with a no-op that ends the reply.
pub struct MemcachedMeta;

impl Protocol for MemcachedMeta {
    #[inline]
    fn push_get(_out: &mut Vec<u8>, _keys: usize) {}

    #[inline]
    fn push_get_key(out: &mut Vec<u8>, key: &[u8], keys: usize) {
        push_meta_get(out, key, keys > 1);
    }

    #[inline]
    fn push_get_end(out: &mut Vec<u8>, keys: usize) {
        if keys > 1 {
            push_meta_noop(out);
        }
    }

    #[inline]
    fn push_set(out: &mut Vec<u8>, key: &[u8], attributes: Attributes, value_bytes: usize) {
        push_meta_set_header(out, key, attributes, value_bytes);
    }

    #[inline]
    fn step<'a>(
        input: &'a [u8],
        command: Command,
        keys: usize,
        _elements: &mut Elements,
    ) -> Result<Step<'a>, String> {
        let (reply, length) = match parse_reply(input).map_err(|error| error.to_string())? {
            Parsed::Partial { needed } => return Ok(Step::Partial(needed)),
            Parsed::Complete { reply, length } => (reply, length),
        };
        let alone = keys == 1;
        let answer = match (command, reply) {
            (Command::Get, Reply::MetaValue { flags, value }) => Answer::Hit {
                key: key_flag(flags),
                flags: None,
                value,
                last: alone,
            },
            (Command::Get, Reply::MetaMiss) if alone => Answer::Miss { last: true },
            (Command::Get, Reply::MetaNoop) if !alone => Answer::Done,
            (Command::Set, Reply::MetaDone { .. }) => Answer::Done,
            (Command::Set, Reply::MetaNotStored) => Answer::Refused {
                message: b"NS",
                last: true,
            },
            (_, Reply::Refused(message)) => Answer::Refused {
                message,
                last: alone,
            },
            (command, reply) => return Err(unexpected(command, &reply)),
        };
        Ok(Step::Answer(answer, length))
    }
}

/// The key among the flags of a reply, where it was asked for.
#[inline]
fn key_flag(flags: &[u8]) -> Option<&[u8]> {
    if flags.is_empty() {
        return None;
    }
    flags
        .split(|&byte| byte == b' ')
        .find_map(|flag| flag.strip_prefix(b"k"))
}

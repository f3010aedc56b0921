//! How requests are written and replies are read in each protocol.
mod memcached_meta;
mod memcached_text;
mod redis;

pub use memcached_meta::MemcachedMeta;
pub use memcached_text::MemcachedText;
pub use redis::Redis;

use wire::memcached::client::Attributes;

/// What a request asks the server to do. An operation is one of these, or two in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Get the values of one or several keys.
    Get,
    /// Set the value of a key.
    Set,
    /// `LPUSH key element`.
    ListPush,
    /// `LPOP key`.
    ListPop,
    /// `ZADD key score member`.
    SortedSetAdd,
    /// `ZRANGE key 0 0`.
    SortedSetFirst,
    /// `SADD key member`.
    SetAdd,
}

/// A piece of the reply to a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The next key was found, or the key that is named.
    Hit {
        /// The key, where the reply names it.
        key: Option<&'a [u8]>,
        /// Its flags, where the reply tells them.
        flags: Option<u32>,
        /// Its value.
        value: &'a [u8],
        /// Whether this ends the reply.
        last: bool,
    },
    /// The next key was not found.
    Miss {
        /// Whether this ends the reply.
        last: bool,
    },
    /// The reply ends; keys not mentioned were not found.
    Done,
    /// The server refused, with this message.
    Refused {
        /// What it said.
        message: &'a [u8],
        /// Whether this ends the reply.
        last: bool,
    },
    /// Nothing of interest; the reply goes on.
    Continues,
}

/// What the beginning of the received bytes holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A piece of the reply, in so many bytes.
    Answer(Answer<'a>, usize),
    /// Not enough to say; nothing more can be said before there are so many bytes in all.
    Partial(usize),
}

/// Where in a reply of several elements the parsing stands: how many are still to come, once that is known.
pub type Elements = Option<usize>;

/// A protocol, as the client sees it.
pub trait Protocol {
    /// Append the beginning of a get of `keys` keys; [`Protocol::push_get_key`] must follow for each, then
    /// [`Protocol::push_get_end`].
    fn push_get(out: &mut Vec<u8>, keys: usize);
    /// Append one key of a get of `keys` keys.
    fn push_get_key(out: &mut Vec<u8>, key: &[u8], keys: usize);
    /// Append the end of a get of `keys` keys.
    fn push_get_end(out: &mut Vec<u8>, keys: usize);
    /// Append all of a set up to the value; that and [`Protocol::push_set_end`] must follow.
    fn push_set(out: &mut Vec<u8>, key: &[u8], attributes: Attributes, value_bytes: usize);
    /// Append what is behind the value of a set.
    #[inline]
    fn push_set_end(out: &mut Vec<u8>, _attributes: Attributes) {
        out.extend_from_slice(b"\r\n");
    }
    /// Append all of another command up to its last argument of `argument_bytes` bytes, if it has one; `\r\n` must
    /// follow that. memcached has none: the configuration refuses them.
    fn push_command(
        _out: &mut Vec<u8>,
        command: Command,
        _key: &[u8],
        _score: u32,
        _argument_bytes: usize,
    ) {
        unreachable!("{command:?} over memcached's protocol");
    }
    /// Take the next piece of the reply to a `command` of `keys` keys. The error is a sentence: the server sent what no
    /// server should.
    fn step<'a>(
        input: &'a [u8],
        command: Command,
        keys: usize,
        elements: &mut Elements,
    ) -> Result<Step<'a>, String>;
}

#[cold]
fn unexpected(command: Command, reply: &dyn std::fmt::Debug) -> String {
    format!("an answer that does not belong to a {command:?}: {reply:?}")
}

//! Finds where requests end, in the cheapest way that is not a guess, and says the least that answers them.
use crate::config::Protocol;
use wire::resp::{Parsed, Token, parse_token};

/// Bytes that are no request.
#[derive(Debug)]
pub struct Unread;

/// What one connection has been told so far.
#[derive(Debug)]
pub struct Answerer {
    protocol: Protocol,
    /// Bytes of a value that are still to come, and what to answer then.
    skip: usize,
    after: &'static [u8],
}

impl Answerer {
    /// A new connection's.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            skip: 0,
            after: b"",
        }
    }

    /// Append the answers to all requests that end in `input`: how many of its bytes are done with.
    pub fn answer(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Unread> {
        match self.protocol {
            Protocol::Resp => answer_redis(input, out),
            Protocol::MemcachedText | Protocol::MemcachedMeta => self.answer_memcached(input, out),
            // It comes in datagrams, which this does not receive.
            Protocol::Batch => Err(Unread),
        }
    }

    fn answer_memcached(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Unread> {
        let mut used = 0;
        while used < input.len() {
            if self.skip > 0 {
                let skipped = self.skip.min(input.len() - used);
                used += skipped;
                self.skip -= skipped;
                if self.skip == 0 {
                    out.extend_from_slice(self.after);
                }
                continue;
            }
            let Some(newline) = memchr::memchr(b'\n', &input[used..]) else {
                break;
            };
            let line = &input[used..used + newline + 1];
            used += line.len();
            match line {
                [b'g', b'e', b't', b' ', ..] => out.extend_from_slice(b"END\r\n"),
                [b'm', b'g', b' ', ..] => {
                    if !line.ends_with(b" q\r\n") {
                        out.extend_from_slice(b"EN\r\n");
                    }
                }
                [b's', b'e', b't', b' ', ..] => self.take_value(line, 4, b"STORED\r\n")?,
                [b'm', b's', b' ', ..] => self.take_value(line, 2, b"HD\r\n")?,
                b"mn\r\n" => out.extend_from_slice(b"MN\r\n"),
                b"version\r\n" => out.extend_from_slice(b"VERSION null\r\n"),
                _ => return Err(Unread),
            }
        }
        Ok(used)
    }

    /// The word at `place` of `line` is the length of the value that follows.
    fn take_value(
        &mut self,
        line: &[u8],
        place: usize,
        after: &'static [u8],
    ) -> Result<(), Unread> {
        let line = line.strip_suffix(b"\r\n").ok_or(Unread)?;
        let word = line.split(|&byte| byte == b' ').nth(place).ok_or(Unread)?;
        let digit = |length: usize, &digit: &u8| {
            let digit = digit.is_ascii_digit().then(|| usize::from(digit - b'0'))?;
            length.checked_mul(10)?.checked_add(digit)
        };
        let length: usize = word.iter().try_fold(0, digit).ok_or(Unread)?;
        self.skip = length.checked_add(2).ok_or(Unread)?;
        self.after = after;
        Ok(())
    }
}

fn answer_redis(input: &[u8], out: &mut Vec<u8>) -> Result<usize, Unread> {
    let mut used = 0;
    while let Some(request) = redis_request(&input[used..])? {
        used += request.length;
        match request.name {
            b"GET" | b"LPOP" => out.extend_from_slice(b"$-1\r\n"),
            b"SET" => out.extend_from_slice(b"+OK\r\n"),
            b"LPUSH" | b"SADD" | b"ZADD" => out.extend_from_slice(b":1\r\n"),
            b"ZRANGE" => out.extend_from_slice(b"*0\r\n"),
            b"PING" => out.extend_from_slice(b"+PONG\r\n"),
            b"MGET" => {
                wire::resp::push_array_header(out, request.arguments);
                for _ in 0..request.arguments {
                    out.extend_from_slice(b"$-1\r\n");
                }
            }
            _ => out.extend_from_slice(b"-ERR unknown command\r\n"),
        }
    }
    Ok(used)
}

struct RedisRequest<'a> {
    name: &'a [u8],
    arguments: usize,
    /// In bytes.
    length: usize,
}

/// The request at the beginning of `input`, if it is whole.
fn redis_request(input: &[u8]) -> Result<Option<RedisRequest<'_>>, Unread> {
    let Some((Token::Array(words), mut length)) = token(input)? else {
        return if input.first().is_none_or(|&byte| byte == b'*') {
            Ok(None)
        } else {
            Err(Unread)
        };
    };
    let mut name: &[u8] = b"";
    for word in 0..words {
        match token(&input[length..])? {
            None => return Ok(None),
            Some((Token::Bulk(bytes), more)) => {
                length += more;
                if word == 0 {
                    name = bytes;
                }
            }
            Some(_) => return Err(Unread),
        }
    }
    Ok(Some(RedisRequest {
        name,
        arguments: words.saturating_sub(1),
        length,
    }))
}

fn token(input: &[u8]) -> Result<Option<(Token<'_>, usize)>, Unread> {
    match parse_token(input) {
        Ok(Parsed::Complete { token, length }) => Ok(Some((token, length))),
        Ok(Parsed::Partial { .. }) => Ok(None),
        Err(_) => Err(Unread),
    }
}

#[cfg(test)]
mod tests;

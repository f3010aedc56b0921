//! What the load generator reads of memcached: replies to text and meta commands. And what its null responder reads.

use crate::input::Input;
use crate::resp::{answer_in_pieces, read_in_pieces};
use load::config;
use load::protocol::{Command, MemcachedMeta, MemcachedText};
use wire::memcached::client::{Parsed, parse_reply};

/// However replies are cut, they read the same; what is not whole is waited for, and never for what will not come.
pub fn run(data: &[u8]) {
    let Some(input) = Input::stretched(data) else {
        return;
    };
    let command = if input.choice(0) {
        Command::Set
    } else {
        Command::Get
    };
    let keys = if input.choice(1) { 1 } else { 3 };
    let protocol = if input.choice(2) {
        read_in_pieces::<MemcachedMeta>(&input, command, keys);
        config::Protocol::MemcachedMeta
    } else {
        read_in_pieces::<MemcachedText>(&input, command, keys);
        config::Protocol::MemcachedText
    };
    answer_in_pieces(&input, protocol);
    let mut rest = &input.stream[..];
    while let Ok(parsed) = parse_reply(rest) {
        match parsed {
            Parsed::Complete { length, .. } => {
                // With a byte less it is not whole, and with more it stays what it was.
                assert!((1..=rest.len()).contains(&length));
                assert_eq!(parse_reply(&rest[..length]), Ok(parsed));
                let short = parse_reply(&rest[..length - 1]);
                assert!(matches!(short, Ok(Parsed::Partial { needed }) if needed <= length));
                rest = &rest[length..];
            }
            Parsed::Partial { needed } => {
                assert!(needed > rest.len());
                break;
            }
        }
    }
}

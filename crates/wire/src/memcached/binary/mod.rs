//! The server's side of the binary protocol (memcached's `protocol_binary.h`, and where that is silent, what memcached
//! 1.6.18 answers).
//!
//! A request is a header of 24 bytes, extras, a key and a value, numbers most significant byte first:
//!
//! ```text
//! byte 0      1       2..4     4       5     6..8     8..12  12..16  16..24
//! | 0x80 | opcode | key length | extras | 0 | 0 | body length | opaque | CAS |
//! ```

mod request;
mod response;
mod status;

pub use request::{Command, HEADER_BYTES, MAGIC, Parser, Refusal, Request, Step};
pub use response::{error, statistic, success};
pub use status::Status;

#[cfg(test)]
mod tests;

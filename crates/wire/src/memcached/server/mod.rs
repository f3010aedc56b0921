//! The server's side of the text protocol, classic and meta (memcached's `protocol.txt`; where the text is silent,
//! what memcached 1.6.18 answers).
//!
//! [`Parser`] turns a connection's bytes into [`Command`]s without copying or allocating; [`reply`] writes answers.

mod administration;
mod base64;
mod classic;
mod command;
mod line;
mod meta;
mod number;
mod parser;
pub mod reply;

pub use command::{Command, Direction, Meta, MetaFlag, MetaMode, Request, StoreMode};
pub use number::parse_u64;
pub use parser::{Checkpoint, KeyBuffer, Limits, Parser, PlainGet, Step};

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 250;

/// The longest command line except one of keys to read, in bytes without its end.
pub const LINE_BYTES_MAX: usize = 2048;

/// The longest line of keys to read (`get`, `gets`, `gat`, `gats`), in bytes without its end.
pub const KEYS_LINE_BYTES_MAX: usize = 1 << 20;

/// The longest opaque token of a meta command, in bytes, with its `O`.
pub const OPAQUE_BYTES_MAX: usize = 32;

//! What must hold of every parser, whatever bytes it is given.
//!
//! Each module is one target: `run` takes the bytes that the engine made up and panics where something does not hold.
//! The engine itself is only in the programs below `targets/`; `tests/seeds.rs` tries the same properties on every seed.
//! `docs/testing.md` says how to run them.

pub mod accounts;
pub mod batch;
pub mod binary_parser;
pub mod connection;
pub mod datagram_replies;
pub mod datagrams;
pub mod host_files;
pub mod memcached_replies;
pub mod memory_file;
pub mod metrics;
pub mod packets;
pub mod partition;
pub mod recipe;
pub mod resp;
pub mod snmp;
pub mod text_parser;

mod answers;
mod binary_answers;
mod input;
mod values;

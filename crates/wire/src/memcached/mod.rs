//! The memcached protocol (memcached's `protocol.txt`): what a client sends and reads, what a server reads and sends.
pub mod binary;
pub mod client;
pub mod server;

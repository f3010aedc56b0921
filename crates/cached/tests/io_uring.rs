//! What holds over epoll holds over io_uring: the same tests, on servers that are asked for it.
#![allow(
    clippy::duplicate_mod,
    reason = "each test file has the support as its own"
)]

#[path = "administration.rs"]
mod administration;
#[path = "binary.rs"]
mod binary;
#[path = "clients.rs"]
mod clients;
#[path = "connections.rs"]
mod connections;
#[path = "differential.rs"]
mod differential;
#[path = "hot_keys.rs"]
mod hot_keys;
#[path = "memory_file.rs"]
mod memory_file;
#[path = "operations.rs"]
mod operations;
#[path = "process.rs"]
mod process;
#[path = "protocol.rs"]
mod protocol;
mod support;
#[path = "threads.rs"]
mod threads;
#[path = "watch.rs"]
mod watch;

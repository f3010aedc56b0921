//! What holds over epoll holds over io_uring: the same tests, on servers that are asked for it.
#![allow(
    clippy::duplicate_mod,
    reason = "each test file has the support as its own"
)]

#[path = "binary.rs"]
mod binary;
#[path = "clients.rs"]
mod clients;
#[path = "differential.rs"]
mod differential;
#[path = "memory_file.rs"]
mod memory_file;
#[path = "operations.rs"]
mod operations;
#[path = "process.rs"]
mod process;
#[path = "protocol.rs"]
mod protocol;
#[path = "threads.rs"]
mod threads;

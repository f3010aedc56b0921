//! The server as clients and operators meet it: one program, so that it is linked once.

mod administration;
#[path = "support/authority.rs"]
mod authority;
mod binary;
mod clients;
mod connections;
mod datagrams;
mod differential;
mod floors;
mod hot_keys;
mod io_uring;
mod large_items;
mod memory_file;
mod memory_full;
mod operations;
mod process;
mod protocol;
mod support;
mod threads;
mod tls;
mod tls_bad_clients;
mod tls_files;
mod transport;
mod watch;
mod xdp;

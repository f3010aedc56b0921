//! The server as clients and operators meet it: one program, so that it is linked once.

mod administration;
mod arrivals;
#[path = "support/authority.rs"]
mod authority;
mod binary;
mod client_memory;
mod clients;
mod datagrams;
mod differential;
mod evictions;
mod floors;
mod forwarding;
mod io_uring;
mod large_items;
mod memory_file;
mod memory_full;
mod operations;
mod process;
mod protocol;
mod simulation;
mod support;
mod threads;
mod tls;
mod tls_bad_clients;
mod tls_files;
mod transport;
mod xdp;

//! How the server starts, runs and ends: the command line, sockets to listen on, workers, signals, files.

pub(crate) mod address;
pub mod arguments;
pub(crate) mod error;
mod layout;
mod listen;
pub(crate) mod memory_file;
mod metrics;
pub(crate) mod process;
pub mod server;

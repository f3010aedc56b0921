//! What partitions do in process, without sockets: EREW against CREW against CRCW (MICA, NSDI'14, section 3.2).
//!
//! Keys and values of 8 bytes, more of them than any cache holds, preloaded; every value that is read is checked.
//!
//! `rackscope-access`, and `cargo bench -p mica`, print a table of it. For a program that wants to choose the order of
//! measurements itself, [`requests`] has them asked for one by one.
#![deny(missing_docs)]

pub mod arguments;
pub mod draw;
pub mod measure;
pub mod requests;
pub mod store;
pub mod table;

use arguments::{HELP, Request};
use std::ffi::OsString;
use std::process::ExitCode;

/// A mistake in what was asked, as opposed to a failure.
const MISTAKE: u8 = 2;

/// Do what a command line, without the program's name, asks for; what was printed says how it went.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let done = match arguments::parse(arguments) {
        Ok(Request::Help) => {
            print!("{HELP}");
            Ok(())
        }
        Ok(Request::Version) => {
            println!("rackscope-access {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Ok(Request::Table(options)) => table::print(&options),
        Ok(Request::Json { items }) => {
            requests::serve(std::io::stdin().lock(), std::io::stdout().lock(), items)
        }
        Err(error) => {
            eprintln!("rackscope-access: {error}");
            return ExitCode::from(MISTAKE);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rackscope-access: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A partition could not be made.
    #[error("{items} items for {cores} cores: {source}; ask for fewer items")]
    Partition {
        /// Items that were asked for.
        items: u64,
        /// Cores that were asked for.
        cores: usize,
        /// What is in the way.
        source: mica::Error,
    },
    /// More cores than there are.
    #[error("{wanted} cores were asked for, and this process may use {usable}")]
    Cores {
        /// Cores that were asked for.
        wanted: usize,
        /// Cores that there are.
        usable: usize,
    },
    /// A thread could not be kept on its core.
    #[error(transparent)]
    Pin(#[from] net::Error),
    /// What was asked for cannot be measured.
    #[error("{0}")]
    Request(String),
    /// Nobody listens, or nobody asks any more.
    #[error("standard input or output: {0}")]
    Io(#[from] std::io::Error),
}

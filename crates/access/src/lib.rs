//! What partitions do in process, without sockets: EREW against CREW against CRCW (MICA, NSDI'14, section 3.2).
//!
//! Keys and values of 8 bytes, more of them than any cache holds, preloaded; every value that is read is checked.
//!
//! `rackscope-access`, and `cargo bench -p mica`, print a table of it. For a program that wants to choose the order of
//! measurements itself, [`requests`] has them asked for one by one.
#![deny(missing_docs)]

pub mod arguments;
pub mod draw;
mod error;
pub mod measure;
mod peers;
pub mod requests;
pub mod store;
pub mod table;

pub use error::Error;

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

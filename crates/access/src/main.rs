//! `rackscope-access`: see [`access`].

use std::process::ExitCode;

fn main() -> ExitCode {
    access::run(std::env::args_os().skip(1))
}

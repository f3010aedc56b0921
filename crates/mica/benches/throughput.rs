//! What a partition does in process: `cargo bench -p mica [-- --items N --seconds S --rounds N --cores N --access NAME]`.
//! See `crates/access`, which `rackscope study access` runs too.

use std::process::ExitCode;

fn main() -> ExitCode {
    access::run(std::env::args_os().skip(1))
}

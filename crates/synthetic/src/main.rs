//! `rackscope-synthetic`: see [`synthetic`].

use std::error::Error;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use synthetic::arguments::{self, HELP, Options, Request};
use synthetic::server::Server;

/// A mistake in what was asked, as opposed to a failure.
const MISTAKE: u8 = 2;

fn main() -> ExitCode {
    match arguments::parse(std::env::args_os().skip(1)) {
        Ok(Request::Help) => print!("{HELP}"),
        Ok(Request::Version) => println!("rackscope-synthetic {}", env!("CARGO_PKG_VERSION")),
        Ok(Request::Serve(options)) => {
            if let Err(error) = serve(&options) {
                eprintln!("rackscope-synthetic: {error}");
                return ExitCode::FAILURE;
            }
        }
        Err(error) => {
            eprintln!("rackscope-synthetic: {error}");
            return ExitCode::from(MISTAKE);
        }
    }
    ExitCode::SUCCESS
}

fn serve(options: &Options) -> Result<(), Box<dyn Error>> {
    // Before anything is made, so that a signal never leaves a file behind.
    let (mut stop, signals) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, signals.try_clone()?)?;
    }
    let server = Server::start(options)?;
    for note in server.notes() {
        eprintln!("rackscope-synthetic: {note}");
    }
    eprintln!(
        "rackscope-synthetic: ready on {} (read: {}; update: {})",
        server.endpoint(),
        options.on_read,
        options.on_update,
    );
    stop.read_exact(&mut [0])?;
    Ok(())
}

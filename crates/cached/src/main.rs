//! `rackscope-cached`: see [`cached`].

use cached::control::arguments::{self, HELP, Request};
use cached::control::server::Server;
use cached::options::Options;
use std::error::Error;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// A mistake in what was asked, as opposed to a failure.
const MISTAKE: u8 = 2;

fn main() -> ExitCode {
    match arguments::parse(std::env::args_os().skip(1)) {
        Ok(Request::Help) => print!("{HELP}"),
        Ok(Request::Version) => println!("rackscope-cached {}", env!("CARGO_PKG_VERSION")),
        Ok(Request::Serve(options)) => {
            if let Err(error) = serve(&options) {
                eprintln!("rackscope-cached: {error}");
                return ExitCode::FAILURE;
            }
        }
        Err(error) => {
            eprintln!("rackscope-cached: {error}");
            return ExitCode::from(MISTAKE);
        }
    }
    ExitCode::SUCCESS
}

fn serve(options: &Options) -> Result<(), Box<dyn Error>> {
    // Before anything is listened on, so that a signal never leaves a socket's file behind.
    let (stop, signals) = UnixStream::pair()?;
    for signal in [
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGINT,
        // With which memcached's users ask for a stop that keeps items; here every stop does.
        signal_hook::consts::SIGUSR1,
    ] {
        signal_hook::low_level::pipe::register(signal, signals.try_clone()?)?;
    }
    // As memcached reads its certificates again; without any there is nothing to do, and no reason to end.
    let (refresh, signals) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGHUP, signals)?;
    let mut server = Server::start(options)?;
    let endpoints: Vec<String> = server.endpoints().map(ToString::to_string).collect();
    eprintln!(
        "rackscope-cached: ready on {} ({} MiB, {} {})",
        endpoints.join(", "),
        options.memory_mebibytes,
        options.threads,
        if options.threads == 1 {
            "thread"
        } else {
            "threads"
        },
    );
    let own: Vec<String> = server.worker_endpoints().map(ToString::to_string).collect();
    if !own.is_empty() {
        eprintln!(
            "rackscope-cached: each worker has its own keys, and listens on {}",
            own.join(", ")
        );
    }
    if let Some(address) = server.datagram_addresses().first() {
        eprintln!("rackscope-cached: datagrams are served at {address}");
    }
    if let Some(how) = server.xdp_interface() {
        eprintln!("rackscope-cached: datagrams are served over AF_XDP on {how}");
    }
    if let Some(address) = server.metrics() {
        eprintln!("rackscope-cached: metrics at http://{address}/metrics");
    }
    server.run(&stop, &refresh)?;
    Ok(server.stop()?)
}

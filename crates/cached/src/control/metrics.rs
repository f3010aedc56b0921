//! What `stats` writes, over HTTP in Prometheus's text format, from a thread of its own.
//!
//! It asks the workers, which own what is counted.

use rustix::net::Shutdown;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A request's head; only its first line is looked at.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// For a whole request, and for each piece of a reply; a slower client is not waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Until a descriptor may be free again for a client that waits to be accepted.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Statistics that go up and down, or stand still; all others only grow.
const GAUGES: &str = "\
    accepting_conns bytes curr_connections curr_items free_bytes hash_bytes limit_maxbytes log_bytes \
    max_connections pid pointer_size read_buf_bytes read_buf_bytes_free threads time time_since_server_cert_refresh uptime \
    verbosity";

/// Names and values.
pub(crate) type Statistics = Vec<(String, String)>;

/// A thread that serves metrics. Dropping it ends it.
pub(crate) struct Metrics {
    address: SocketAddr,
    listener: Arc<TcpListener>,
    thread: Option<JoinHandle<()>>,
}

impl Metrics {
    /// Listen on `address`; `ask` gives the statistics, or nothing where no answer comes in time.
    pub fn start(
        address: SocketAddr,
        ask: impl Fn() -> Option<Statistics> + Send + 'static,
    ) -> io::Result<Self> {
        let listener = Arc::new(TcpListener::bind(address)?);
        let address = listener.local_addr()?;
        let listening = Arc::clone(&listener);
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                while let Ok((client, _)) = accept(&listening) {
                    // One that went away, or sent nonsense, is not worth a word.
                    _ = answer(&client, &ask);
                }
            })?;
        Ok(Self {
            address,
            listener,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        // Its `accept` fails from now on. Nothing but a bad descriptor can keep this from being done.
        _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// The next client. Fails when there will be none.
fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    loop {
        match listener.accept() {
            // What `accept(2)` says of a socket that is shut down.
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(error),
            // No descriptors are left, for now.
            Err(_) => std::thread::sleep(ACCEPT_RETRY),
            accepted => return accepted,
        }
    }
}

fn answer(mut client: &TcpStream, ask: &impl Fn() -> Option<Statistics>) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let head = head(client)?;
    let first = head.lines().next().unwrap_or_default();
    let mut words = first.split_ascii_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => match ask() {
            Some(statistics) => ("200 OK", exposition(&statistics)),
            None => ("503 Service Unavailable", "the server is busy\n".to_owned()),
        },
        (Some("GET"), Some(_)) => ("404 Not Found", "there is only /metrics\n".to_owned()),
        _ => ("400 Bad Request", "GET /metrics\n".to_owned()),
    };
    write!(
        client,
        "HTTP/1.0 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// What a client sends before the empty line, all of it, so that closing the connection does not reset it.
fn head(mut client: &TcpStream) -> io::Result<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        // Of all of it: a client that sends byte by byte is not waited for longer.
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut piece)? {
            0 => break,
            bytes => head.extend_from_slice(&piece[..bytes]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Statistics as Prometheus reads them; those that are no numbers are left out.
fn exposition(statistics: &[(String, String)]) -> String {
    let mut text = String::new();
    for (name, value) in statistics {
        if value.parse::<f64>().is_err() {
            continue;
        }
        let (kind, suffix) = if GAUGES.split(' ').any(|gauge| gauge == name) {
            ("gauge", "")
        } else {
            ("counter", "_total")
        };
        // Prometheus's names take no second `_total`.
        let name = name.strip_prefix("total_").unwrap_or(name);
        _ = writeln!(text, "# TYPE rackscope_cached_{name}{suffix} {kind}");
        _ = writeln!(text, "rackscope_cached_{name}{suffix} {value}");
    }
    text
}

#[cfg(test)]
mod tests;

//! What `stats` tells, over HTTP in Prometheus's text format, from a thread of its own.
//!
//! It asks the server as any client does, over a connection that was handed to a worker at the start: workers own
//! what is told, and nobody else looks at it.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A request's head; only its first line is looked at.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// For a whole request, and for a whole answer's each piece; whoever is slower is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Statistics that go up and down, or stand still; all others only grow.
const GAUGES: [&str; 14] = [
    "accepting_conns",
    "bytes",
    "curr_connections",
    "curr_items",
    "hash_bytes",
    "limit_maxbytes",
    "log_bytes",
    "max_connections",
    "pid",
    "pointer_size",
    "threads",
    "time",
    "uptime",
    "verbosity",
];

/// A thread that tells. Dropping it ends it.
pub(crate) struct Metrics {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Metrics {
    /// Listen on `address`; `server` is the other end of a connection that a worker serves.
    pub fn start(address: SocketAddr, server: UnixStream) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        server.set_read_timeout(Some(PATIENCE))?;
        server.set_write_timeout(Some(PATIENCE))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                let mut server = BufReader::new(server);
                for client in listener.incoming() {
                    if over.load(Relaxed) {
                        break;
                    }
                    // One that went away, or sent nonsense, is not worth a word.
                    _ = client.and_then(|client| answer(&client, &mut server));
                }
            })?;
        Ok(Self {
            address,
            is_over,
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
        self.is_over.store(true, Relaxed);
        // Wakes it. If that fails it has ended, or ends with the process.
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            _ = thread.join();
        }
    }
}

fn answer(client: &TcpStream, server: &mut BufReader<UnixStream>) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let head = head(client)?;
    let first = head.lines().next().unwrap_or_default();
    let mut words = first.split_ascii_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => ("200 OK", exposition(&statistics(server)?)),
        (Some("GET"), Some(_)) => ("404 Not Found", "there is only /metrics\n".to_owned()),
        _ => ("400 Bad Request", "GET /metrics\n".to_owned()),
    };
    let mut client = client;
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

/// The answer to `stats`, line by line.
fn statistics(server: &mut BufReader<UnixStream>) -> io::Result<Vec<String>> {
    server.get_mut().write_all(b"stats\r\n")?;
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if server.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if line.trim_end() == "END" {
            return Ok(lines);
        }
        lines.push(line);
    }
}

/// Statistics as Prometheus reads them; those that are no numbers are left out.
fn exposition(statistics: &[String]) -> String {
    let mut text = String::new();
    for line in statistics {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (Some(name), Some(value)) = (words.next(), words.next()) else {
            continue;
        };
        if value.parse::<f64>().is_err() {
            continue;
        }
        let (kind, suffix) = if GAUGES.contains(&name) {
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
mod tests {
    use super::*;

    #[test]
    fn statistics_become_metrics() {
        let lines = [
            "STAT pid 7\r\n",
            "STAT version x\r\n",
            "STAT total_items 9\r\n",
            "STAT get_hits 3\r\n",
        ];
        assert_eq!(
            exposition(&lines.map(str::to_owned)),
            "# TYPE rackscope_cached_pid gauge\nrackscope_cached_pid 7\n\
             # TYPE rackscope_cached_items_total counter\nrackscope_cached_items_total 9\n\
             # TYPE rackscope_cached_get_hits_total counter\nrackscope_cached_get_hits_total 3\n"
        );
    }
}

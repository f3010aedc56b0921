//! Listening, one thread a connection, and the end.

use crate::Error;
use crate::arguments::Options;
use crate::connection::serve;
use crate::shared::{Counters, Shared};
use crate::work::Workshop;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

/// A server that listens. Dropping it removes its files; its threads end with the process.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    socket_file: Option<PathBuf>,
    endpoint: String,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// How long to wait when the process has no descriptor left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Ample for a thread that only parses and works.
const STACK_BYTES: usize = 256 << 10;

impl Server {
    /// Prepares the work, listens and serves from then on.
    pub fn start(options: &Options) -> Result<Self, Error> {
        // First, so that a port in use is told at once, and nothing is made on a disk.
        let (listener, endpoint) = listen(options)?;
        let socket_file = options.unix_socket.clone();
        let workshop = Workshop::prepare(options).inspect_err(|_| remove(&socket_file))?;
        let shared = Arc::new(Shared {
            workshop,
            on_read: options.on_read.clone(),
            on_update: options.on_update.clone(),
            value: vec![b'v'; options.value_bytes],
            counters: Counters::default(),
            connections_max: options.connections as u64,
            started: Instant::now(),
        });
        let server = Self {
            shared: Arc::clone(&shared),
            socket_file,
            endpoint,
        };
        thread::Builder::new()
            .name("accept".into())
            .spawn(move || accept(&listener, &shared))
            .map_err(|error| {
                Error::Host(format!(
                    "cannot start a thread to accept connections: {error}"
                ))
            })?;
        Ok(server)
    }

    /// Where it listens, with the port that it got.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What a reader of the log should know.
    pub fn notes(&self) -> &[String] {
        &self.shared.workshop.notes
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        remove(&self.socket_file);
        remove(&self.shared.workshop.channel_file);
    }
}

/// A file that is gone already is no concern.
fn remove(path: &Option<PathBuf>) {
    if let Some(path) = path {
        let _ = fs::remove_file(path);
    }
}

fn listen(options: &Options) -> Result<(Listener, String), Error> {
    let failed =
        |endpoint: &str, error| Error::Host(format!("cannot listen on {endpoint}: {error}"));
    if let Some(path) = &options.unix_socket {
        let endpoint = format!("unix:{}", path.display());
        return match UnixListener::bind(path) {
            Ok(listener) => Ok((Listener::Unix(listener), endpoint)),
            Err(error) => Err(failed(&endpoint, error)),
        };
    }
    let bound = TcpListener::bind((options.listen.as_str(), options.port))
        .and_then(|listener| Ok((listener.local_addr()?, listener)));
    match bound {
        Ok((address, listener)) => Ok((Listener::Tcp(listener), address.to_string())),
        Err(error) => Err(failed(
            &format!("{}:{}", options.listen, options.port),
            error,
        )),
    }
}

fn accept(listener: &Listener, shared: &Arc<Shared>) {
    loop {
        let accepted = match listener {
            Listener::Tcp(listener) => listener.accept().map(|(stream, _)| {
                // Only an optimisation, and only lost when the client is gone already.
                let _ = stream.set_nodelay(true);
                admit(stream, shared);
            }),
            Listener::Unix(listener) => listener.accept().map(|(stream, _)| admit(stream, shared)),
        };
        match accepted {
            Ok(()) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                ) => {}
            // No descriptor or memory for it now: others will leave.
            Err(_) => thread::sleep(ACCEPT_PAUSE),
        }
    }
}

/// A stream that a thread of its own can serve.
trait Client: Read + Write + Send + 'static {}
impl Client for TcpStream {}
impl Client for UnixStream {}

fn admit<C: Client>(mut client: C, shared: &Arc<Shared>) {
    let counters = &shared.counters;
    if counters.connections.load(Relaxed) >= shared.connections_max {
        counters.connections_refused.fetch_add(1, Relaxed);
        // As memcached does; a client that is gone need not hear it.
        let _ = client.write_all(b"ERROR Too many open connections\r\n");
        return;
    }
    counters.connections.fetch_add(1, Relaxed);
    let number = counters.connections_total.fetch_add(1, Relaxed);
    let place = Place(Arc::clone(shared));
    let spawned = thread::Builder::new()
        .name("connection".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let mut hand = place.0.workshop.hand(number);
            // A client that breaks off ends its thread, and that is all.
            let _ = serve(client, &place.0, &mut hand);
        });
    if spawned.is_err() {
        counters.connections_refused.fetch_add(1, Relaxed);
    }
}

/// Counts a connection until its thread ends, however it ends.
struct Place(Arc<Shared>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.counters.connections.fetch_sub(1, Relaxed);
    }
}

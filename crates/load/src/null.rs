//! A server that knows nothing: what the generator is measured against.
use crate::Error;
use crate::config::{Protocol, Target};
use net::{
    Endpoint, Event, Events, Interest, ListenOptions, Listener, Poller, Stream, Waker, affinity,
};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

mod answer;

pub use answer::{Answerer, Unread};

const WAKER_TOKEN: u64 = u64::MAX;
const LISTENER_TOKEN: u64 = u64::MAX - 1;
const BUFFER_BYTES: usize = 256 << 10;
/// The longest request, in bytes: the longest value and some words.
const MOST_REQUEST_BYTES: usize = 33 << 20;

/// Answers every request with canned bytes, as fast as one core can: gets miss and sets succeed.
#[derive(Debug)]
pub struct NullResponder {
    endpoint: Endpoint,
    control: Arc<Control>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Control {
    stop: AtomicBool,
    waker: Waker,
}

impl NullResponder {
    /// Listen on `endpoint_json` (as [`Target`]) and answer on a thread, pinned to `core` if there is one.
    pub fn new(protocol: &str, endpoint_json: &str, core: Option<usize>) -> Result<Self, Error> {
        let protocol = serde_json::from_value(protocol.into())
            .map_err(|error| Error::Config(format!("null responder: {error}")))?;
        let target = serde_json::from_str(endpoint_json)
            .map_err(|error| Error::Config(format!("null responder: {error}")))?;
        let endpoint = match target {
            Target::Tcp { host, port, .. } => Endpoint::resolve(&host, port)?.remove(0),
            Target::Unix { path, .. } => Endpoint::Unix(path),
            Target::Udp { .. } | Target::Xdp { .. } => {
                return Err(Error::Config(
                    "the null responder answers connections, not datagrams".to_owned(),
                ));
            }
        };
        let listener = Listener::bind(&endpoint, ListenOptions::default())?;
        let poller = Poller::new().map_err(Error::system("create a poller"))?;
        let waker = Waker::new(&poller, WAKER_TOKEN).map_err(Error::system("create a waker"))?;
        poller
            .add(&listener, LISTENER_TOKEN, Interest::READ)
            .map_err(Error::system("watch a listener"))?;
        let control = Arc::new(Control {
            stop: AtomicBool::new(false),
            waker,
        });
        let endpoint = listener.endpoint().clone();
        let (pinned, is_pinned) = std::sync::mpsc::sync_channel(1);
        let thread = {
            let control = Arc::clone(&control);
            std::thread::Builder::new()
                .name("null-responder".to_owned())
                .spawn(move || {
                    let done = core.map_or(Ok(()), affinity::pin_current_thread);
                    let go_on = done.is_ok();
                    // The receiver waits for exactly this.
                    _ = pinned.send(done);
                    if go_on {
                        Server::new(protocol, listener, poller).serve(&control);
                    }
                })
                .map_err(Error::system("start a thread"))?
        };
        let responder = Self {
            endpoint,
            control,
            thread: Some(thread),
        };
        is_pinned
            .recv()
            .map_err(|_| Error::State("the null responder ended at once"))??;
        Ok(responder)
    }

    /// Where it listens, as JSON; port 0 has become the one it got.
    pub fn endpoint(&self) -> String {
        let endpoint = match &self.endpoint {
            Endpoint::Tcp(address) => {
                let (host, port) = (address.ip().to_string(), address.port());
                serde_json::json!({"kind": "tcp", "host": host, "port": port})
            }
            Endpoint::Unix(path) => serde_json::json!({"kind": "unix", "path": path}),
        };
        endpoint.to_string()
    }

    /// Close everything.
    pub fn stop(&mut self) {
        self.control.stop.store(true, Ordering::Relaxed);
        self.control.waker.wake();
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            _ = thread.join();
        }
    }
}

impl Drop for NullResponder {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Server {
    listener: Listener,
    poller: Poller,
    events: Events,
    connections: Vec<Option<Connection>>,
    protocol: Protocol,
    buffer: Vec<u8>,
}

struct Connection {
    stream: Stream,
    answerer: Answerer,
    /// The beginning of a request that was cut off.
    carry: Vec<u8>,
    out: Vec<u8>,
    sent: usize,
    watching_write: bool,
}

impl Server {
    fn new(protocol: Protocol, listener: Listener, poller: Poller) -> Self {
        Self {
            listener,
            poller,
            events: Events::with_capacity(1024),
            connections: Vec::new(),
            protocol,
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    fn serve(&mut self, control: &Control) {
        while !control.stop.load(Ordering::Relaxed) {
            if self.poller.wait(&mut self.events, None).is_err() {
                // Nothing can be answered any more; clients see their connections close.
                return;
            }
            for index in 0..self.events.len() {
                let event = self.events[index];
                match event.token() {
                    WAKER_TOKEN => control.waker.reset(),
                    LISTENER_TOKEN => self.accept(),
                    token => self.handle(token as usize, event),
                }
            }
        }
    }

    fn accept(&mut self) {
        // Where one cannot be accepted, its client sees it fail.
        while let Ok(Some(stream)) = self.listener.accept() {
            let free = self.connections.iter().position(Option::is_none);
            let index = free.unwrap_or(self.connections.len());
            if self
                .poller
                .add(&stream, index as u64, Interest::READ)
                .is_err()
            {
                continue;
            }
            let connection = Some(Connection {
                stream,
                answerer: Answerer::new(self.protocol),
                carry: Vec::new(),
                out: Vec::with_capacity(4096),
                sent: 0,
                watching_write: false,
            });
            if index == self.connections.len() {
                self.connections.push(connection);
            } else {
                self.connections[index] = connection;
            }
        }
    }

    fn handle(&mut self, index: usize, event: Event) {
        let Some(Some(connection)) = self.connections.get_mut(index) else {
            return;
        };
        let blocked = connection.watching_write;
        let mut done = Ok(());
        // Nothing is read from a client that does not read.
        if event.is_readable() && !blocked {
            done = connection.answer(&mut self.buffer);
        }
        if done.is_ok() {
            done = connection.flush(&self.poller, index as u64);
        }
        if done.is_err() {
            self.connections[index] = None;
        }
    }
}

impl Connection {
    fn answer(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let kept = self.carry.len();
        if buffer.len() < 2 * kept {
            buffer.resize(2 * kept, 0);
        }
        buffer[..kept].copy_from_slice(&self.carry);
        let received = match self.stream.read(&mut buffer[kept..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            received => received?,
        };
        let input = &buffer[..kept + received];
        let used = self
            .answerer
            .answer(input, &mut self.out)
            .map_err(|Unread| io::Error::from(io::ErrorKind::InvalidData))?;
        let rest = &input[used..];
        if rest.len() > MOST_REQUEST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.carry.clear();
        self.carry.extend_from_slice(rest);
        Ok(())
    }

    fn flush(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let blocked = self.sent < self.out.len();
        if !blocked {
            self.out.clear();
            self.sent = 0;
        }
        if blocked != self.watching_write {
            self.watching_write = blocked;
            let interest = if blocked {
                Interest::WRITE
            } else {
                Interest::READ
            };
            poller.modify(&self.stream, token, interest)?;
        }
        Ok(())
    }
}

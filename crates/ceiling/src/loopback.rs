//! Loopback bandwidth: bytes through one TCP connection from one core to another.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::team::{join, pin_to, spawn};
use crate::{Error, Result};

/// Bytes handed to the kernel at once: large enough that the calls do not count.
const CHUNK_BYTES: usize = 256 << 10;
/// How long one end waits for the other before it gives up.
const PATIENCE: Duration = Duration::from_secs(5);

/// What arrived and how long it took.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    /// Bytes that the receiver got.
    pub bytes: u64,
    /// From the first byte sent to the end of the stream at the receiver.
    pub duration: Duration,
}

/// Sends zeros over 127.0.0.1 from a thread on `sender_core` to one on `receiver_core`, for `budget`.
pub fn measure_loopback_bandwidth(
    sender_core: usize,
    receiver_core: usize,
    budget: Duration,
) -> Result<Transfer> {
    let failed = |doing| Error::host(format!("the loopback connection failed while {doing}"));
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed("listening on 127.0.0.1"))?;
    let address = listener
        .local_addr()
        .map_err(failed("listening on 127.0.0.1"))?;
    // Connecting needs no accept yet: the kernel completes it from the listener's backlog.
    let outgoing = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed("connecting"))?;
    let (incoming, _) = listener.accept().map_err(failed("accepting"))?;
    for stream in [&outgoing, &incoming] {
        stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
            .map_err(failed("setting a time limit"))?;
    }
    thread::scope(|scope| {
        // Each thread owns its end: when one gives up, the other sees the connection close.
        let receiver = spawn(scope, receiver_core, move || {
            pin_to(receiver_core)?;
            receive(incoming).map_err(failed("receiving"))
        })?;
        let sender = spawn(scope, sender_core, move || {
            pin_to(sender_core)?;
            send(outgoing, budget).map_err(failed("sending"))
        })?;
        let (sent, received) = (join(sender), join(receiver));
        // The receiver's error first: a sender whose receiver is gone fails for that, a receiver sees the stream end.
        let (bytes, end) = received?;
        let sent = sent?;
        Ok(Transfer {
            bytes,
            duration: end.duration_since(sent).max(Duration::from_nanos(1)),
        })
    })
}

/// Sends until `budget` is spent; returns when it began.
fn send(mut stream: TcpStream, budget: Duration) -> io::Result<Instant> {
    let chunk = vec![0; CHUNK_BYTES];
    let began = Instant::now();
    loop {
        stream.write_all(&chunk)?;
        if began.elapsed() >= budget {
            stream.shutdown(Shutdown::Write)?;
            return Ok(began);
        }
    }
}

/// Receives until the stream ends; returns the bytes and when it ended.
fn receive(mut stream: TcpStream) -> io::Result<(u64, Instant)> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok((bytes, Instant::now())),
            Ok(count) => bytes += count as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;

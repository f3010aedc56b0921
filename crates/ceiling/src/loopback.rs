//! Loopback bandwidth: bytes through one TCP connection from one core to another.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::team::pin_to;
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
///
/// # Errors
/// [`Error::Core`] when a core may not be used, [`Error::Loopback`] when the connection fails.
pub fn measure_loopback_bandwidth(
    sender_core: usize,
    receiver_core: usize,
    budget: Duration,
) -> Result<Transfer> {
    let failed = |doing| move |source| Error::Loopback { doing, source };
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
        let receiver = thread::Builder::new()
            .name(format!("ceiling-{receiver_core}"))
            .spawn_scoped(scope, move || {
                pin_to(receiver_core)?;
                receive(incoming).map_err(failed("receiving"))
            })
            .map_err(|source| Error::Thread {
                core: receiver_core,
                source,
            })?;
        let sender = thread::Builder::new()
            .name(format!("ceiling-{sender_core}"))
            .spawn_scoped(scope, move || {
                pin_to(sender_core)?;
                send(outgoing, budget).map_err(failed("sending"))
            })
            .map_err(|source| Error::Thread {
                core: sender_core,
                source,
            })?;
        let sent = sender
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let received = receiver
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // A core that may not be used is the cause; the connection that breaks for it only the effect.
        let (sent, received) = match (sent, received) {
            (Ok(sent), Ok(received)) => (sent, received),
            (Err(Error::Loopback { .. }), Err(error)) | (Err(error), _) | (_, Err(error)) => {
                return Err(error);
            }
        };
        let (bytes, end) = received;
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
mod tests {
    use super::*;
    use crate::team::usable_cores;

    #[test]
    fn what_is_sent_arrives() {
        let cores = usable_cores().unwrap();
        let transfer =
            measure_loopback_bandwidth(cores[0], cores[cores.len() - 1], Duration::ZERO).unwrap();
        assert_eq!(transfer.bytes, CHUNK_BYTES as u64);
        assert!(transfer.duration > Duration::ZERO);
    }

    #[test]
    fn an_unusable_core_is_named_for_either_end() {
        let core = usable_cores().unwrap()[0];
        for (sender, receiver) in [(1023, core), (core, 1023)] {
            let error =
                measure_loopback_bandwidth(sender, receiver, Duration::from_secs(30)).unwrap_err();
            assert!(error.to_string().contains("core 1023"), "{error}");
        }
    }
}

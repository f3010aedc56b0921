//! One client's TLS session: bytes of the network in, what they say out, and the other way round. No sockets.

use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, WriteTraffic,
};
use rustls::{HandshakeKind, ServerConfig};
use std::sync::Arc;

/// The most that [`TlsSession::seal`] takes at once: what fits into one record.
pub(crate) const ENCRYPTED_BYTES_MAX: usize = 16 << 10;

/// Bytes that [`TlsSession::seal`] needs for so much: the record around it, and one in which keys change.
pub(crate) const RECORD_BYTES_MAX: usize = ENCRYPTED_BYTES_MAX + 512;

/// Where a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Who speaks is not settled yet.
    Handshake,
    /// Both sides may speak.
    Open,
    /// The client said that it will say no more.
    Closed,
    /// Something was said that cannot be, so nothing is taken or sent any more.
    Failed,
}

/// A session that cannot go on.
#[derive(Debug)]
pub(crate) struct Broken;

/// One client's session. What it received and cannot use yet is kept; nothing else is, between calls.
pub(crate) struct TlsSession {
    tls: UnbufferedServerConnection,
    /// Received, and not a whole record or a whole message of the handshake.
    incoming: Vec<u8>,
    stage: Stage,
}

impl TlsSession {
    /// With a client that said nothing yet. Fails where the host gives no random numbers.
    pub fn new(config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self {
            tls: UnbufferedServerConnection::new(config)?,
            incoming: Vec::new(),
            stage: Stage::Handshake,
        })
    }

    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether the handshake did not take up an earlier session.
    pub fn is_new(&self) -> bool {
        self.tls.handshake_kind() != Some(HandshakeKind::Resumed)
    }

    /// What was received and not used yet; [`open`](Self::open) wants it in front of what is received next.
    pub fn incoming(&self) -> &[u8] {
        &self.incoming
    }

    /// Take what was received, `received` behind [`incoming`](Self::incoming): hand what the client said to `each`, and
    /// append what is to be sent back unasked to `reply`. Where the session cannot go on, `reply` has what the client
    /// is to know of it.
    pub fn open(
        &mut self,
        received: &mut [u8],
        mut each: impl FnMut(&[u8]),
        reply: &mut Vec<u8>,
    ) -> Result<(), rustls::Error> {
        if self.stage == Stage::Failed {
            return Err(rustls::Error::General("it failed before".to_owned()));
        }
        let mut done = 0;
        let result = loop {
            let status = self.tls.process_tls_records(&mut received[done..]);
            let discard = status.discard;
            match status.state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        match record {
                            Ok(record) => each(record.payload),
                            Err(_) => break,
                        }
                    }
                }
                Ok(ConnectionState::EncodeTlsData(data)) => append(reply, data),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::WriteTraffic(_)) => {
                    if self.stage == Stage::Handshake {
                        self.stage = Stage::Open;
                    }
                    done += discard;
                    break Ok(());
                }
                Ok(ConnectionState::PeerClosed) => self.stage = Stage::Closed,
                Ok(ConnectionState::Closed) => {
                    self.stage = Stage::Closed;
                    done += discard;
                    break Ok(());
                }
                // Early data is not asked for, so there is none.
                Ok(_) => {
                    done += discard;
                    break Ok(());
                }
                Err(error) => {
                    done += discard;
                    self.last_words(&mut received[done..], reply);
                    self.stage = Stage::Failed;
                    break Err(error);
                }
            }
            done += discard;
        };
        self.incoming.clear();
        if done < received.len() {
            self.incoming.extend_from_slice(&received[done..]);
        } else {
            self.incoming = Vec::new();
        }
        result
    }

    /// What a session that failed still has to say.
    fn last_words(&mut self, rest: &mut [u8], reply: &mut Vec<u8>) {
        // What is to be sent is looked for before anything that was received, so nothing fails again.
        while self.tls.wants_write() {
            match self.tls.process_tls_records(rest).state {
                Ok(ConnectionState::EncodeTlsData(data)) => append(reply, data),
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while traffic.next_record().is_some() {}
                }
                _ => return,
            }
        }
    }

    /// Encrypt `plain`, at most [`ENCRYPTED_BYTES_MAX`] bytes, to the front of `buffer`, which has [`RECORD_BYTES_MAX`]. Returns
    /// the length.
    pub fn seal(&mut self, plain: &[u8], buffer: &mut [u8]) -> Result<usize, Broken> {
        self.write(buffer, |traffic, buffer| traffic.encrypt(plain, buffer))
    }

    /// Say to `buffer` that there will be no more. Returns the length.
    pub fn close(&mut self, buffer: &mut [u8]) -> Result<usize, Broken> {
        self.write(buffer, |traffic, buffer| traffic.queue_close_notify(buffer))
    }

    fn write(
        &mut self,
        buffer: &mut [u8],
        mut write: impl FnMut(
            &mut WriteTraffic<'_, ServerConnectionData>,
            &mut [u8],
        ) -> Result<usize, EncryptError>,
    ) -> Result<usize, Broken> {
        let mut at = 0;
        while self.stage != Stage::Failed {
            // What was received is no whole record, so none is taken here.
            match self.tls.process_tls_records(&mut self.incoming).state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let written = write(&mut traffic, &mut buffer[at..]);
                    return written.map(|bytes| at + bytes).map_err(|_| Broken);
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    at += data.encode(&mut buffer[at..]).map_err(|_| Broken)?;
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.stage = Stage::Closed,
                Ok(_) | Err(_) => break,
            }
        }
        Err(Broken)
    }
}

/// Append a record of the handshake to `to`.
fn append(to: &mut Vec<u8>, mut data: EncodeTlsData<'_, ServerConnectionData>) {
    let start = to.len();
    let mut capacity = 4 << 10;
    loop {
        to.resize(start + capacity, 0);
        match data.encode(&mut to[start..]) {
            Ok(written) => return to.truncate(start + written),
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size }))
                if required_size > capacity =>
            {
                capacity = required_size;
            }
            Err(_) => return to.truncate(start),
        }
    }
}

#[cfg(test)]
mod tests;

//! A client's side of a connection, plain or encrypted, of which bytes come and go in pieces.

use crate::authority::{Authority, BOTH_VERSIONS, Identity};
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, LazyLock};

/// Bytes of one record: the server reads none of them before it has all.
const RECORD_BYTES: usize = 16_000;

/// How both ends encrypt.
pub static SIDES: LazyLock<(Arc<ServerConfig>, Arc<ClientConfig>)> = LazyLock::new(|| {
    let authority = Authority::new("the simulation's");
    let identity: Identity = authority.vouch("cache.test");
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&BOTH_VERSIONS)
        .expect("versions that are known")
        .with_no_client_auth()
        .with_single_cert(identity.chain(), identity.key())
        .expect("a key that fits");
    (Arc::new(server), authority.client(&BOTH_VERSIONS, None))
});

pub struct Link {
    stream: UnixStream,
    tls: Option<Box<ClientConnection>>,
    /// Encrypted and not taken by the socket, and how many bytes of the client's that stands for.
    sealed: Vec<u8>,
    said: usize,
}

impl Link {
    pub fn new(stream: UnixStream, is_encrypted: bool) -> Result<Self, String> {
        stream
            .set_nonblocking(true)
            .map_err(|error| error.to_string())?;
        let name = ServerName::try_from("cache.test").expect("a name");
        let session = || ClientConnection::new(Arc::clone(&SIDES.1), name);
        let tls = is_encrypted.then(session).transpose();
        Ok(Self {
            stream,
            tls: tls.map_err(|error| error.to_string())?.map(Box::new),
            sealed: Vec::new(),
            said: 0,
        })
    }

    /// Do at most so many bytes of the handshake in each direction; false once it is done.
    pub fn shake(&mut self, most: usize) -> io::Result<bool> {
        let is_open = |tls: &ClientConnection| !tls.is_handshaking() && !tls.wants_write();
        match &self.tls {
            None => return Ok(false),
            Some(tls) if is_open(tls) && self.sealed.is_empty() => return Ok(false),
            Some(_) => {}
        }
        for done in [self.push(most).map(drop), self.receive(most).map(drop)] {
            match done {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Send at most so many bytes of `front`. How many of them the server can have read now.
    pub fn send(&mut self, front: &[u8], most: usize) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.stream.write(&front[..front.len().min(most)]);
        };
        if self.sealed.is_empty() {
            self.said = front.len().min(most).min(RECORD_BYTES);
            tls.writer().write_all(&front[..self.said])?;
        }
        let is_all = self.push(most)?;
        Ok(if is_all { self.said } else { 0 })
    }

    /// Send at most so many bytes of what is encrypted; whether that was all.
    fn push(&mut self, most: usize) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.sealed)?;
            }
        }
        let front = &self.sealed[..self.sealed.len().min(most)];
        if !front.is_empty() {
            let sent = self.stream.write(front)?;
            self.sealed.drain(..sent);
        }
        Ok(self.sealed.is_empty())
    }

    /// Receive at most so many bytes; `None` where the server has closed the connection. Replies that cannot be decrypted
    /// are invalid data.
    pub fn receive(&mut self, most: usize) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; most];
        let length = self.stream.read(&mut bytes)?;
        bytes.truncate(length);
        let Some(tls) = &mut self.tls else {
            return Ok((length > 0).then_some(bytes));
        };
        let (mut rest, mut said) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            tls.read_tls(&mut rest)?;
            let state = tls.process_new_packets();
            state.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            match tls.reader().read_to_end(&mut said) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        Ok((length > 0).then_some(said))
    }
}

//! One client's TLS session: bytes of the network in, what they say out, and the other way round. No sockets.

use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, WriteTraffic,
};
use rustls::{HandshakeKind, ServerConfig};
use std::sync::Arc;

/// The most that [`Session::seal`] takes at once: what fits into one record.
pub(crate) const SEALED_BYTES_MAX: usize = 16 << 10;

/// Room that [`Session::seal`] needs for so much: the record around it, and one in which keys change.
pub(crate) const SEALING_ROOM: usize = SEALED_BYTES_MAX + 512;

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
pub(crate) struct Session {
    tls: UnbufferedServerConnection,
    /// Received, and not a whole record or a whole message of the handshake.
    incoming: Vec<u8>,
    stage: Stage,
}

impl Session {
    /// With a client that said nothing yet.
    ///
    /// # Errors
    /// [`rustls::Error`] where the host gives no random numbers.
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

    /// Take what was received, `received` behind [`incoming`](Self::incoming): hand what the client said to `each`,
    /// and append what is to be sent back unasked to `reply`.
    ///
    /// # Errors
    /// [`rustls::Error`] where the session cannot go on; what the client is to be told of it is in `reply` then.
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

    /// Encrypt `plain`, at most [`SEALED_BYTES_MAX`] bytes, to the front of `room`, which has [`SEALING_ROOM`]. Returns
    /// the length.
    pub fn seal(&mut self, plain: &[u8], room: &mut [u8]) -> Result<usize, Broken> {
        self.write(room, |traffic, room| traffic.encrypt(plain, room))
    }

    /// Say to `room` that there will be no more. Returns the length.
    pub fn close(&mut self, room: &mut [u8]) -> Result<usize, Broken> {
        self.write(room, |traffic, room| traffic.queue_close_notify(room))
    }

    fn write(
        &mut self,
        room: &mut [u8],
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
                    let written = write(&mut traffic, &mut room[at..]);
                    return written.map(|bytes| at + bytes).map_err(|_| Broken);
                }
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    at += data.encode(&mut room[at..]).map_err(|_| Broken)?;
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
    let mut room = 4 << 10;
    loop {
        to.resize(start + room, 0);
        match data.encode(&mut to[start..]) {
            Ok(written) => return to.truncate(start + written),
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size }))
                if required_size > room =>
            {
                room = required_size;
            }
            Err(_) => return to.truncate(start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustls::crypto::ring;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use rustls::{
        ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion, version,
    };
    use std::io::{Read, Write};
    use std::sync::LazyLock;

    /// Both sides of a conversation.
    static SIDES: LazyLock<(Arc<ServerConfig>, [Arc<ClientConfig>; 2])> = LazyLock::new(|| {
        let made = rcgen::generate_simple_self_signed(["cache.test".to_owned()]).expect("made");
        let chain: Vec<CertificateDer<'static>> = vec![made.cert.der().clone()];
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(ring::default_provider());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain.clone(), key)
            .expect("a server");
        let mut roots = RootCertStore::empty();
        roots.add(chain[0].clone()).expect("a root");
        let client = |version: &'static SupportedProtocolVersion| {
            let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
                .with_protocol_versions(&[version])
                .expect("a version");
            Arc::new(
                builder
                    .with_root_certificates(roots.clone())
                    .with_no_client_auth(),
            )
        };
        (
            Arc::new(server),
            [client(&version::TLS12), client(&version::TLS13)],
        )
    });

    /// A session and its client, with a network between them that cuts and alters.
    struct Pair {
        session: Session,
        client: ClientConnection,
        /// What the server was told.
        heard: Vec<u8>,
    }

    impl Pair {
        fn new(is_13: bool) -> Self {
            let (server, clients) = &*SIDES;
            let name = "cache.test".try_into().expect("a name");
            let config = Arc::clone(&clients[usize::from(is_13)]);
            Self {
                session: Session::new(Arc::clone(server)).expect("a session"),
                client: ClientConnection::new(config, name).expect("a client"),
                heard: Vec::new(),
            }
        }

        /// Let the server take `bytes` in pieces of `piece`; what it answers is returned.
        fn deliver(&mut self, bytes: &[u8], piece: usize) -> Result<Vec<u8>, rustls::Error> {
            let mut reply = Vec::new();
            for piece in bytes.chunks(piece.max(1)) {
                let mut received = self.session.incoming().to_vec();
                received.extend_from_slice(piece);
                let each = |said: &[u8]| self.heard.extend_from_slice(said);
                self.session.open(&mut received, each, &mut reply)?;
            }
            Ok(reply)
        }

        /// Let the client say all that it has to, and hear the answer.
        fn exchange(&mut self, piece: usize) {
            loop {
                let mut said = Vec::new();
                while self.client.wants_write() {
                    self.client.write_tls(&mut said).expect("said");
                }
                if said.is_empty() {
                    return;
                }
                let reply = self.deliver(&said, piece).expect("a good client");
                self.listen(&reply);
            }
        }

        fn listen(&mut self, mut reply: &[u8]) {
            while !reply.is_empty() {
                self.client.read_tls(&mut reply).expect("heard");
                self.client.process_new_packets().expect("a good server");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// However the network cuts it, both hear what was said, whole.
        #[test]
        fn both_sides_hear_each_other(
            is_13: bool,
            piece in prop_oneof![1..50_usize, 1000..40_000_usize],
            said in prop::collection::vec((any::<bool>(), 1..40_000_usize), 1..6),
        ) {
            let mut pair = Pair::new(is_13);
            pair.exchange(piece);
            prop_assert_eq!(pair.session.stage(), Stage::Open);
            for (number, (from_client, bytes)) in said.into_iter().enumerate() {
                let text: Vec<u8> = (0..bytes).map(|at| (at * 7 + number) as u8).collect();
                if from_client {
                    pair.heard.clear();
                    pair.client.writer().write_all(&text).expect("encrypt");
                    pair.exchange(piece);
                    prop_assert!(pair.heard == text);
                } else {
                    let mut heard = Vec::new();
                    for piece in text.chunks(SEALED_BYTES_MAX) {
                        let mut room = [0; SEALING_ROOM];
                        let sealed = pair.session.seal(piece, &mut room).expect("room");
                        pair.listen(&room[..sealed]);
                        let mut said = vec![0; piece.len()];
                        pair.client.reader().read_exact(&mut said).expect("decrypt");
                        heard.extend_from_slice(&said);
                    }
                    prop_assert!(heard == text);
                }
            }
            prop_assert!(pair.session.incoming().is_empty());
            pair.client.send_close_notify();
            pair.exchange(piece);
            prop_assert_eq!(pair.session.stage(), Stage::Closed);
            let mut room = [0; 64];
            let sealed = pair.session.close(&mut room).expect("a last word");
            pair.listen(&room[..sealed]);
            prop_assert_eq!(pair.client.reader().read(&mut [0]).expect("a clean end"), 0);
        }

        /// Whatever the network alters, nothing panics, and nothing is heard that was not said.
        #[test]
        fn what_is_altered_is_refused(
            is_13: bool,
            piece in 1..3000_usize,
            at in any::<prop::sample::Index>(),
            with in 1..=255_u8,
            after in 0..3_u8,
        ) {
            let mut pair = Pair::new(is_13);
            if after > 0 {
                pair.exchange(piece);
                pair.client.writer().write_all(&[b'x'; 5000]).expect("encrypt");
            }
            let mut said = Vec::new();
            pair.client.write_tls(&mut said).expect("said");
            if after > 1 {
                said.extend([with; 300]);
            }
            let at = at.index(said.len());
            said[at] ^= with;
            // A hello may be altered where it does not matter yet.
            let refused = pair.deliver(&said, piece).is_err();
            prop_assert!(pair.heard.is_empty() || pair.heard == [b'x'; 5000]);
            if refused {
                // Nothing goes on as if nothing had been.
                prop_assert_eq!(pair.session.stage(), Stage::Failed);
                let heard = pair.heard.len();
                prop_assert!(pair.deliver(&said, piece).is_err());
                prop_assert_eq!(pair.heard.len(), heard);
                prop_assert!(pair.session.seal(b"x", &mut [0; SEALING_ROOM]).is_err());
            }
        }
    }
}

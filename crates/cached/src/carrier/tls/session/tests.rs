use super::*;
use proptest::prelude::*;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion, version};
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
    session: TlsSession,
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
            session: TlsSession::new(Arc::clone(server)).expect("a session"),
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
                for piece in text.chunks(ENCRYPTED_BYTES_MAX) {
                    let mut buffer = [0; RECORD_BYTES_MAX];
                    let sealed = pair.session.seal(piece, &mut buffer).expect("sealed");
                    pair.listen(&buffer[..sealed]);
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
        let mut buffer = [0; 64];
        let sealed = pair.session.close(&mut buffer).expect("a last word");
        pair.listen(&buffer[..sealed]);
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
            prop_assert!(pair.session.seal(b"x", &mut [0; RECORD_BYTES_MAX]).is_err());
        }
    }
}

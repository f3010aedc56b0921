//! Certificates, and clients that use them.
#![allow(dead_code, reason = "each test file uses a part")]

use crate::support::{Client, Folder, Server, tcp};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion, version,
};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;

pub const BOTH_VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];

/// Somebody who vouches for others.
pub struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub struct Identity {
    pub certificate: rcgen::Certificate,
    pub key: KeyPair,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        Self {
            certificate: params.self_signed(&key).expect("a certificate"),
            issuer: Issuer::new(params, key),
        }
    }

    /// Vouch for somebody called `name`.
    pub fn vouch(&self, name: &str) -> Identity {
        let mut params = CertificateParams::new([name.to_owned(), "127.0.0.1".to_owned()])
            .expect("names of hosts");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Identity { certificate, key }
    }

    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// What a client trusts that trusts this one.
    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots
            .add(self.certificate.der().clone())
            .expect("an authority");
        roots
    }

    /// A client that believes this authority, and shows a certificate where it has one.
    pub fn client(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        identity: Option<&Identity>,
    ) -> Arc<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("versions that are known")
            .with_root_certificates(self.roots());
        Arc::new(match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(identity.chain(), identity.key())
                .expect("a key that fits"),
        })
    }
}

impl Identity {
    pub fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.der().clone()]
    }

    pub fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.serialize_der()).expect("a key")
    }
}

/// A TLS client's connection, its handshake done.
pub type Wire = StreamOwned<ClientConnection, TcpStream>;

/// Shake hands over `stream`.
pub fn shake(mut stream: TcpStream, config: &Arc<ClientConfig>) -> io::Result<Wire> {
    let name = ServerName::try_from("cache.test").expect("a name");
    let mut tls = ClientConnection::new(Arc::clone(config), name).expect("a client");
    while tls.is_handshaking() {
        tls.complete_io(&mut stream)?;
    }
    Ok(StreamOwned::new(tls, stream))
}

/// A server that speaks TLS, with the files that it does so with.
pub struct TlsServer {
    pub server: Server,
    pub folder: Folder,
    pub authority: Authority,
}

impl TlsServer {
    /// With `arguments` beside those that name its files; `name` is the test's. `FOLDER` in them stands for the path of
    /// its folder, in which `clients.pem` is the authority that may vouch for clients.
    pub fn start(name: &str, arguments: &[&str]) -> Self {
        Self::start_trusting(name, arguments, &Authority::new("nobody's"))
    }

    pub fn start_trusting(name: &str, arguments: &[&str], clients: &Authority) -> Self {
        let folder = Folder::new(name);
        let authority = Authority::new("the server's");
        install(&folder, &authority.vouch("cache.test"));
        std::fs::write(folder.path("clients.pem"), clients.pem()).expect("write a file");
        let files = format!(
            "ssl_chain_cert={},ssl_key={}",
            folder.path("chain.pem"),
            folder.path("key.pem")
        );
        let arguments: Vec<String> = arguments
            .iter()
            .map(|argument| argument.replace("FOLDER", &folder.path("")))
            .collect();
        let mut all = vec!["-Z", "-o", &files];
        all.extend(arguments.iter().map(String::as_str));
        Self {
            server: Server::start(&all),
            folder,
            authority,
        }
    }

    /// A client without a certificate, of any version.
    pub fn connect(&self) -> Client {
        Client::over(self.wire(&self.authority.client(&BOTH_VERSIONS, None)))
    }

    pub fn wire(&self, config: &Arc<ClientConfig>) -> Wire {
        self.try_wire(config).expect("shake hands")
    }

    pub fn try_wire(&self, config: &Arc<ClientConfig>) -> io::Result<Wire> {
        shake(tcp(self.server.address()), config)
    }
}

/// Write an identity to where servers look for theirs.
pub fn install(folder: &Folder, identity: &Identity) {
    for (name, text) in [
        ("chain.pem", identity.certificate.pem()),
        ("key.pem", identity.key.serialize_pem()),
    ] {
        std::fs::write(folder.path(name), text).expect("write a file");
    }
}

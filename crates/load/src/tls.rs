//! TLS to the server: whom to trust, and a session over a stream.
use crate::Error;
use net::{Endpoint, Stream};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How sessions are made.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// Trusts the certificates in `file` (PEM), and nothing else: each as the server's own or as that of an authority,
    /// whose certificates must then name the server `name`.
    pub(crate) fn new(file: &Path, name: &str) -> Result<Self, Error> {
        let refused = |what: String| Error::Config(format!("{}: {what}", file.display()));
        let trusted: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect)
            .map_err(|error| refused(format!("cannot read certificates: {error}")))?;
        if trusted.is_empty() {
            return Err(refused("holds no certificate in PEM form".to_owned()));
        }
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            roots
                .add(certificate.clone())
                .map_err(|error| refused(format!("invalid certificate: {error}")))?;
        }
        let provider = Arc::new(ring::default_provider());
        let authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| refused(error.to_string()))?;
        let verifier = Verifier {
            trusted,
            authorities,
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self {
            config: Arc::new(config),
            name: ServerName::try_from(name.to_owned())
                .map_err(|_| Error::Config(format!("invalid server name for TLS: {name:?}")))?,
        })
    }

    /// Shake hands with the server at the other end of `stream`, waiting at most `timeout`.
    pub(crate) fn open(
        &self,
        stream: &Stream,
        endpoint: &Endpoint,
        timeout: Duration,
    ) -> Result<Session, Error> {
        let failed = |source| Error::Net(net::Error::Connect(endpoint.clone(), source));
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .map_err(|error| failed(io::Error::other(error)))?;
        let mut session = Session {
            connection,
            is_full: false,
        };
        let deadline = Instant::now() + timeout;
        while session.connection.is_handshaking() {
            match session.connection.complete_io(&mut Socket(stream)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(failed(error)),
                Ok(_) => continue,
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap_or_default();
            let flags = match session.connection.wants_write() {
                true => PollFlags::IN | PollFlags::OUT,
                false => PollFlags::IN,
            };
            match poll(&mut [PollFd::new(stream, flags)], Some(&left)) {
                Ok(0) => return Err(net::Error::ConnectTimeout(endpoint.clone(), timeout).into()),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
        }
        Ok(session)
    }
}

/// One connection's session.
#[derive(Debug)]
pub(crate) struct Session {
    connection: ClientConnection,
    /// Whether the last read filled its buffer, so that decrypted bytes may be left.
    is_full: bool,
}

impl Session {
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether encrypted bytes wait for the socket.
    pub(crate) fn is_sent(&self) -> bool {
        !self.connection.wants_write()
    }

    /// As [`Stream::read`]; less than `buffer` takes means that there was no more.
    pub(crate) fn read(&mut self, stream: &Stream, buffer: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        self.is_full = false;
        while count < buffer.len() {
            match self.connection.reader().read(&mut buffer[count..]) {
                Ok(0) => return Ok(count),
                Ok(more) => {
                    count += more;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return if count > 0 { Ok(count) } else { Err(error) },
            }
            match self.connection.read_tls(&mut Socket(stream)) {
                Ok(0) => return Ok(count),
                Ok(_) => {
                    self.connection
                        .process_new_packets()
                        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                }
                Err(_) if count > 0 => return Ok(count),
                Err(error) => return Err(error),
            }
        }
        self.is_full = true;
        Ok(count)
    }

    /// As [`Stream::write`]. What was encrypted and not sent is [flushed](Self::flush) later.
    pub(crate) fn write(&mut self, stream: &Stream, bytes: &[u8]) -> io::Result<usize> {
        self.flush(stream)?;
        let written = self.connection.writer().write(bytes)?;
        match self.flush(stream) {
            Err(error) if written > 0 && error.kind() == io::ErrorKind::WouldBlock => Ok(written),
            Err(error) => Err(error),
            Ok(()) => Ok(written),
        }
    }

    /// Send what was encrypted.
    pub(crate) fn flush(&mut self, stream: &Stream) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut Socket(stream))?;
        }
        Ok(())
    }
}

struct Socket<'a>(&'a Stream);

impl Read for Socket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes a server whose own certificate is trusted, or that of an authority over it.
#[derive(Debug)]
struct Verifier {
    trusted: Vec<CertificateDer<'static>>,
    authorities: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // That the server has its key is what the handshake's signature shows.
        if self.trusted.contains(certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        self.authorities
            .verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

//! The server's certificate, its key, and the authorities that vouch for clients: read at the start and whenever asked.

use super::error::Error;
use crate::engine::Certificates;
use crate::options::{ClientCertificates, Oldest, TlsOptions};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{
    NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier,
    danger::ClientCertVerifier,
};
use rustls::{CipherSuite, RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A file of certificates is short; anything longer is not one.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Files are read again at most so often, however often that is asked for.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Sessions that may be resumed; the oldest go first.
const SESSIONS_MAX: usize = 20_480;

const CHAIN: &str = "ssl_chain_cert";
const KEY: &str = "ssl_key";
const AUTHORITIES: &str = "ssl_ca_cert";

/// What connections are encrypted with.
#[derive(Debug)]
pub struct Tls {
    options: TlsOptions,
    current: Mutex<Current>,
}

/// What the files say, and when they were read.
#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    read_at: Instant,
}

impl Tls {
    /// Read the files that `options` name.
    pub fn new(options: TlsOptions) -> Result<Self, Error> {
        Ok(Self {
            current: Mutex::new(Current::read(&options)?),
            options,
        })
    }

    /// What a new connection is to use.
    pub fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.lock().config)
    }

    fn refresh(&self) -> Result<(), Error> {
        let fresh = Current::read(&self.options)?;
        *self.lock() = fresh;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the files again when asked, on a thread of its own: that may take long. Where it fails, all stays as it was.
pub(crate) struct Refresher {
    tls: Arc<Tls>,
    /// Holds one question: those that come before it is looked at are the same.
    asked: SyncSender<()>,
    errors: Arc<AtomicU64>,
}

impl Refresher {
    pub fn start(tls: Arc<Tls>) -> io::Result<Self> {
        let (asked, questions) = mpsc::sync_channel(1);
        let errors = Arc::new(AtomicU64::new(0));
        let (reading, failed) = (Arc::clone(&tls), Arc::clone(&errors));
        std::thread::Builder::new()
            .name("certificates".to_owned())
            .spawn(move || {
                while questions.recv().is_ok() {
                    if let Err(error) = reading.refresh() {
                        failed.fetch_add(1, Relaxed);
                        eprintln!("rackscope-cached: the certificates stay as they are. {error}");
                    }
                    std::thread::sleep(REFRESH_INTERVAL);
                }
            })?;
        Ok(Self { tls, asked, errors })
    }
}

impl Certificates for Refresher {
    fn refresh(&self) {
        // Where it is full, somebody asked already.
        _ = self.asked.try_send(());
    }

    fn refresh_errors(&self) -> u64 {
        self.errors.load(Relaxed)
    }

    fn age_seconds(&self) -> u64 {
        self.tls.lock().read_at.elapsed().as_secs()
    }
}

impl Current {
    fn read(options: &TlsOptions) -> Result<Self, Error> {
        Ok(Self {
            config: Arc::new(read(options)?),
            read_at: Instant::now(),
        })
    }
}

fn read(options: &TlsOptions) -> Result<ServerConfig, Error> {
    let chain = certificates(CHAIN, &options.chain)?;
    let key = private_key(options)?;
    let provider = Arc::new(provider(options));
    let verifier = verifier(options, &provider)?;
    let versions: &[&SupportedProtocolVersion] = match options.oldest {
        Oldest::Tls12 => &[&version::TLS12, &version::TLS13],
        Oldest::Tls13 => &[&version::TLS13],
    };
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| {
            Error(format!(
                "ssl_ciphers: nothing is left to be spoken: {error}"
            ))
        })?;
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| explain_key(options, &error))?;
    // With the certificates go the sessions: a client that resumes one is not asked for a certificate again.
    if options.has_session_cache {
        config.session_storage = ServerSessionMemoryCache::new(SESSIONS_MAX);
    } else {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// The cryptography, with the suites that are asked for. Those of a version of which none is named stay.
fn provider(options: &TlsOptions) -> CryptoProvider {
    let mut provider = ring::default_provider();
    if let Some(wanted) = options.ciphers.as_deref().and_then(suites) {
        let is_13 = |suite: &rustls::SupportedCipherSuite| suite.tls13().is_some();
        for of_13 in [true, false] {
            let is_wanted = |suite: &rustls::SupportedCipherSuite| wanted.contains(&suite.suite());
            if provider
                .cipher_suites
                .iter()
                .any(|suite| is_13(suite) == of_13 && is_wanted(suite))
            {
                provider
                    .cipher_suites
                    .retain(|suite| is_13(suite) != of_13 || is_wanted(suite));
            }
        }
    }
    provider
}

fn verifier(
    options: &TlsOptions,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, Error> {
    let Some(path) = &options.authorities else {
        return Ok(None);
    };
    // Read even where no client is asked: a file that is of no use is better known early.
    let mut authorities = RootCertStore::empty();
    for certificate in certificates(AUTHORITIES, path)? {
        authorities
            .add(certificate)
            .map_err(|error| content(AUTHORITIES, path, error))?;
    }
    let builder =
        WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(provider));
    let builder = match options.client_certificates {
        ClientCertificates::NotAsked => return Ok(None),
        ClientCertificates::Asked => builder.allow_unauthenticated(),
        ClientCertificates::Required => builder,
    };
    let verifier = builder
        .build()
        .map_err(|error| content(AUTHORITIES, path, error))?;
    Ok(Some(verifier))
}

/// All certificates of a file in PEM; there is at least one.
fn certificates(option: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = file(option, path)?;
    let certificates: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(content(
            option,
            path,
            "no certificate is in it; give a file of -----BEGIN CERTIFICATE----- blocks (PEM)",
        )),
        certificates => certificates.map_err(|error| content(option, path, error)),
    }
}

/// The key, in PEM or as it is in DER.
fn private_key(options: &TlsOptions) -> Result<PrivateKeyDer<'static>, Error> {
    let path = options.key_file();
    let option = if options.key.is_some() { KEY } else { CHAIN };
    let bytes = file(option, path)?;
    match PrivateKeyDer::from_pem_slice(&bytes) {
        Err(pem::Error::NoItemsFound) => {}
        key => return key.map_err(|error| content(option, path, error)),
    }
    let marker = b"-----BEGIN ENCRYPTED PRIVATE KEY-----";
    let what = if bytes.windows(marker.len()).any(|window| window == marker) {
        "the private key in it is encrypted; give one without a passphrase"
    } else if options.key.is_none() {
        "no private key is in it; give its file with -o ssl_key=FILE"
    } else if let Ok(key) = PrivateKeyDer::try_from(bytes) {
        return Ok(key);
    } else {
        "no private key is in it; give a file of a -----BEGIN PRIVATE KEY----- block (PEM)"
    };
    Err(content(option, path, what))
}

fn explain_key(options: &TlsOptions, error: &rustls::Error) -> Error {
    match error {
        rustls::Error::InconsistentKeys(_) => content(
            if options.key.is_some() { KEY } else { CHAIN },
            options.key_file(),
            format_args!(
                "the private key in it is not that of the certificate in {}",
                options.chain.display()
            ),
        ),
        rustls::Error::InvalidCertificate(_) => content(CHAIN, &options.chain, error),
        _ => content(
            if options.key.is_some() { KEY } else { CHAIN },
            options.key_file(),
            format_args!(
                "the private key in it is of no kind that is known here ({error}); give one for RSA, ECDSA (P-256, P-384) or Ed25519"
            ),
        ),
    }
}

fn file(option: &str, path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |error| content(option, path, format_args!("it cannot be read: {error}"));
    if std::fs::metadata(path).map_err(failed)?.len() > FILE_BYTES_MAX {
        let what = format_args!("it has more than {FILE_BYTES_MAX} bytes");
        return Err(content(option, path, what));
    }
    std::fs::read(path).map_err(failed)
}

fn content(option: &str, path: &Path, what: impl Display) -> Error {
    Error(format!("{option}={}: {what}", path.display()))
}

/// The suites that `text` names by OpenSSL's names, separated by colons; `None` where it names another.
pub(crate) fn suites(text: &str) -> Option<Vec<CipherSuite>> {
    use CipherSuite as Suite;
    let one = |name| match name {
        "TLS_AES_256_GCM_SHA384" => Some(Suite::TLS13_AES_256_GCM_SHA384),
        "TLS_AES_128_GCM_SHA256" => Some(Suite::TLS13_AES_128_GCM_SHA256),
        "TLS_CHACHA20_POLY1305_SHA256" => Some(Suite::TLS13_CHACHA20_POLY1305_SHA256),
        "ECDHE-ECDSA-AES256-GCM-SHA384" => Some(Suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
        "ECDHE-ECDSA-AES128-GCM-SHA256" => Some(Suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
        "ECDHE-ECDSA-CHACHA20-POLY1305" => {
            Some(Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256)
        }
        "ECDHE-RSA-AES256-GCM-SHA384" => Some(Suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
        "ECDHE-RSA-AES128-GCM-SHA256" => Some(Suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
        "ECDHE-RSA-CHACHA20-POLY1305" => Some(Suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
        _ => None,
    };
    text.split(':').map(one).collect()
}

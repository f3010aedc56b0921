use std::path::{Path, PathBuf};

/// How to speak TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsOptions {
    /// A file of the server's certificate and of those that lead from it to an authority.
    pub chain: PathBuf,
    /// A file of the certificate's private key, where it is not in that of the chain.
    pub key: Option<PathBuf>,
    /// What is asked of clients.
    pub client_certificates: ClientCertificates,
    /// A file of authorities that may vouch for clients.
    pub authorities: Option<PathBuf>,
    /// The oldest version that is spoken.
    pub oldest: Oldest,
    /// Suites by OpenSSL's names, separated by colons; `None` for all that there are.
    pub ciphers: Option<String>,
    /// Whether clients may resume sessions.
    pub has_session_cache: bool,
    /// Seconds after which a handshake that is not finished is given up.
    pub handshake_seconds_max: u32,
}

impl TlsOptions {
    /// Seconds for a handshake where nothing else is asked for.
    pub const HANDSHAKE_SECONDS_MAX: u32 = 10;

    /// The file with the private key.
    pub fn key_file(&self) -> &Path {
        self.key.as_ref().unwrap_or(&self.chain)
    }
}

/// Whether clients show certificates (`ssl_verify_mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientCertificates {
    /// They are not asked (0).
    #[default]
    NotAsked,
    /// They are asked; one that is shown must be good (1).
    Asked,
    /// They must (2 and 3, which differ only where a session can be negotiated anew).
    Required,
}

impl ClientCertificates {
    /// As `ssl_verify_mode` numbers them.
    #[must_use]
    pub fn mode(self) -> u8 {
        self as u8
    }
}

/// The oldest version that is spoken (`ssl_min_version`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Oldest {
    /// TLS 1.2.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl Oldest {
    /// As `stats settings` names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "tlsv1.2",
            Self::Tls13 => "tlsv1.3",
        }
    }
}

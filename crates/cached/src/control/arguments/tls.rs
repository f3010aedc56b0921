//! `-Z` and the suboptions of `-o` that begin with `ssl_`.

use super::error::{Error, bad, refused};
use crate::carrier::tls::suites;
use crate::control::address::ListenAddress;
use crate::options::{ClientCertificates, Oldest, Options, TlsOptions};
use std::path::PathBuf;

/// What was said of TLS so far.
#[derive(Default)]
pub(super) struct TlsArguments {
    is_on: bool,
    chain: Option<PathBuf>,
    key: Option<PathBuf>,
    client_certificates: ClientCertificates,
    authorities: Option<PathBuf>,
    oldest: Oldest,
    ciphers: Option<String>,
    has_session_cache: bool,
    handshake_seconds_max: Option<u32>,
    /// One of them was said.
    is_described: bool,
}

impl TlsArguments {
    /// `-Z`.
    pub fn turn_on(&mut self) {
        self.is_on = true;
    }

    /// `-o name=value`, where `one` is all of it.
    pub fn set(&mut self, name: &str, value: &str, one: &str) -> Result<(), Error> {
        let wrong = |reason| bad("-o", one.to_owned(), reason);
        let file = |reason| match value {
            "" => Err(wrong(reason)),
            path => Ok(Some(PathBuf::from(path))),
        };
        match name {
            "ssl_chain_cert" => self.chain = file("give ssl_chain_cert=FILE")?,
            "ssl_key" => self.key = file("give ssl_key=FILE")?,
            "ssl_ca_cert" => self.authorities = file("give ssl_ca_cert=FILE")?,
            "ssl_verify_mode" => {
                self.client_certificates = match value {
                    "0" => ClientCertificates::NotAsked,
                    "1" => ClientCertificates::Asked,
                    "2" | "3" => ClientCertificates::Required,
                    _ => return Err(wrong("give 0 (none), 1 (request), 2 (require) or 3 (once)")),
                }
            }
            "ssl_min_version" => {
                self.oldest = match value {
                    "2" | "tlsv1.2" => Oldest::Tls12,
                    "3" | "tlsv1.3" => Oldest::Tls13,
                    "0" | "1" | "tlsv1.0" | "tlsv1.1" => {
                        return Err(wrong(
                            "TLS before 1.2 is not spoken (RFC 8996); give 2 (TLS 1.2) or 3 (TLS 1.3)",
                        ));
                    }
                    _ => return Err(wrong("give 2 (TLS 1.2) or 3 (TLS 1.3)")),
                }
            }
            "ssl_ciphers" => {
                if suites(value).is_none() {
                    return Err(wrong(
                        "give suites with colons between them: ECDHE-ECDSA- or ECDHE-RSA- with AES256-GCM-SHA384, AES128-GCM-SHA256 or CHACHA20-POLY1305; TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256",
                    ));
                }
                self.ciphers = Some(value.to_owned());
            }
            "ssl_session_cache" if value.is_empty() => self.has_session_cache = true,
            "ssl_handshake_timeout" => {
                self.handshake_seconds_max = match value.parse() {
                    Ok(seconds @ 1..) => Some(seconds),
                    _ => return Err(wrong("give ssl_handshake_timeout=SECONDS, at least 1")),
                }
            }
            // Either is recognised.
            "ssl_keyformat" if matches!(value, "1" | "2" | "PEM" | "DER") => {}
            "ssl_keyformat" => return Err(wrong("give a key in PEM (1) or DER (2)")),
            // What is encrypted goes to a buffer that all connections share.
            "ssl_wbuf_size" => {}
            "ssl_kernel_tls" => {
                return Err(wrong(
                    "what is sent is encrypted here, not by the kernel; leave it out",
                ));
            }
            _ => return Err(wrong("there is no such suboption here")),
        }
        self.is_described = true;
        Ok(())
    }

    /// All of it, once all arguments were read.
    pub fn finish(self, options: &Options) -> Result<Option<TlsOptions>, Error> {
        let plain = options
            .listen
            .iter()
            .find(|text| ListenAddress::parse(text).is_ok_and(|address| address.is_plain));
        if !self.is_on {
            if let Some(text) = plain {
                return Err(bad(
                    "-l",
                    text.clone(),
                    "notls: says something only with -Z; leave it out",
                ));
            }
            return if self.is_described {
                Err(refused(
                    "-o ssl_...",
                    "nothing is encrypted without -Z; give -Z too, or leave these out",
                ))
            } else {
                Ok(None)
            };
        }
        if options.unix_socket.is_some() {
            return Err(refused(
                "-Z",
                "what is said over a unix socket is not encrypted; leave out -Z or -s",
            ));
        }
        if options.udp_port.is_some() {
            return Err(refused(
                "-U",
                "what is said by UDP is not encrypted; leave out -U or -Z",
            ));
        }
        let Some(chain) = self.chain else {
            return Err(refused(
                "-Z",
                "give the server's certificate with -o ssl_chain_cert=FILE,ssl_key=FILE",
            ));
        };
        if self.client_certificates != ClientCertificates::NotAsked && self.authorities.is_none() {
            return Err(refused(
                "-o ssl_verify_mode",
                "give the authorities that may vouch for clients with -o ssl_ca_cert=FILE",
            ));
        }
        Ok(Some(TlsOptions {
            chain,
            key: self.key,
            client_certificates: self.client_certificates,
            authorities: self.authorities,
            oldest: self.oldest,
            ciphers: self.ciphers,
            has_session_cache: self.has_session_cache,
            handshake_seconds_max: self
                .handshake_seconds_max
                .unwrap_or(TlsOptions::HANDSHAKE_SECONDS_MAX),
        }))
    }
}

#[cfg(test)]
mod tests;

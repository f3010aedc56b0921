//! TLS, by rustls: between a stream and its conversation.
//!
//! * `options`, `certificates`: what was asked for, and the files that it names.
//! * `session`: one client's, without a socket: encrypted bytes to what they say, and back.
//! * `connection`: a session on a stream, with a conversation.

mod certificates;
mod connection;
mod error;
mod options;
mod session;

pub(crate) use certificates::Tls;
pub(crate) use connection::TlsConnection;
pub use error::Error;
pub use options::{ClientCertificates, Oldest, TlsOptions, suites};

//! TLS, by rustls, without a socket.
//!
//! * `certificates`: the files that the options name.
//! * `session`: one client's: encrypted bytes to what they say, and back.

mod certificates;
mod error;
mod session;

pub(crate) use certificates::{Refresher, Tls, suites};
pub use error::Error;
pub(crate) use session::{ENCRYPTED_BYTES_MAX, RECORD_BYTES_MAX, Stage, TlsSession};

//! What goes on a wire: codecs without sockets.
pub mod batch;
mod decimal;
mod malformed;
pub mod memcached;
pub mod resp;

pub use malformed::Malformed;

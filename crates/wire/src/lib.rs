//! What goes on a wire: codecs without sockets.
pub mod batch;
mod decimal;
pub mod memcached;
pub mod resp;

//! What goes on a wire: codecs without sockets.
mod decimal;
pub mod memcached;
pub mod resp;

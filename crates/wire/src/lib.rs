//! What goes on a wire: codecs without sockets.
pub mod memcached;
pub mod resp;

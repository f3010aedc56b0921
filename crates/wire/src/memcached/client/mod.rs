//! The client side: encode requests, parse replies (text and meta commands of memcached's `protocol.txt`).
mod reply;
mod request;

pub use reply::{Parsed, Reply, parse_reply};
pub use request::{
    Attributes, push_get, push_get_key, push_meta_get, push_meta_noop, push_meta_set_header,
    push_set_header,
};

/// The longest key that memcached takes, in bytes.
pub const MAX_KEY_BYTES: usize = 250;

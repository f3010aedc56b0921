//! How long replies may be.

use wire::memcached::datagram::DATAGRAM_BYTES_MAX;

/// The longest reply to one datagram, in bytes; a client that wants more has to use a connection.
pub(super) const REPLY_BYTES_MAX: usize = 1 << 20;

/// How long a reply to a batch may be, in bytes with its frame.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Of replies to several requests in one datagram.
    pub(super) joined: usize,
    /// Of the reply to one request.
    pub(super) single: usize,
}

impl Limits {
    /// Over the kernel's sockets: what goes whole everywhere, and, for one reply, what the kernel cuts into fragments.
    pub const SOCKETS: Self = Self {
        joined: DATAGRAM_BYTES_MAX,
        single: net::SENT_BYTES_MAX,
    };

    /// Where packets are not cut into fragments, and carry so many bytes.
    pub fn of_packets(payload_bytes: usize) -> Self {
        Self {
            joined: payload_bytes,
            single: payload_bytes,
        }
    }
}

//! The memcached protocol (memcached's `protocol.txt`): what a client sends and reads, what a server reads and sends.
pub mod binary;
pub mod client;
pub mod datagram;
mod datagrams;
pub mod partition_map;
pub mod server;

pub use datagrams::Datagrams;

/// What a server's parser found in the bytes that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<R> {
    /// A request.
    Request(R),
    /// Nothing whole yet: come back once there are at least this many bytes, counted from the first not consumed.
    Incomplete(usize),
}

impl<R> Step<R> {
    /// The request, if there is one. `wanted` becomes how many bytes there must be before there is another.
    #[inline]
    pub fn request(self, wanted: &mut usize) -> Option<R> {
        match self {
            Self::Request(request) => {
                *wanted = 0;
                Some(request)
            }
            Self::Incomplete(bytes) => {
                *wanted = bytes;
                None
            }
        }
    }
}

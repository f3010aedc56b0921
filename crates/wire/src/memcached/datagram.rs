//! What is in front of every datagram (memcached's `protocol.txt`, "UDP protocol").
//!
//! ```text
//! 0          2          4          6          8
//! | request  | sequence | datagrams| format   | commands or answers ...
//! ```
//!
//! All numbers are big-endian. memcached reserves the last one, as 0: it means that its text follows. Another value
//! means the entries of [`batch`](crate::batch).

/// Length of a [`Frame`].
pub const FRAME_BYTES: usize = 8;

/// The most that memcached puts in a datagram, frame included: what every path on the internet carries whole.
pub const DATAGRAM_BYTES_MAX: usize = 1400;

/// What is in front of every datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Chosen by the client, and given back with every datagram of the answer.
    pub request: u16,
    /// Which of the datagrams this is, from 0 on.
    pub sequence: u16,
    /// How many there are.
    pub datagrams: u16,
    /// What follows.
    pub format: Format,
}

/// What follows a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// memcached's text.
    Text,
    /// Entries of [`batch`](crate::batch).
    Batch,
}

const BATCH: u16 = 0x4d42;

impl Frame {
    /// The frame of a `datagram`, and what follows it; `None` where it is cut short or has an unknown code.
    #[inline]
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<(Self, &[u8])> {
        let (frame, rest) = datagram.split_first_chunk::<FRAME_BYTES>()?;
        let number = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let format = match number(6) {
            0 => Format::Text,
            BATCH => Format::Batch,
            _ => return None,
        };
        let frame = Self {
            request: number(0),
            sequence: number(2),
            datagrams: number(4),
            format,
        };
        Some((frame, rest))
    }

    /// The frame of the only datagram of a request.
    #[must_use]
    pub fn single(request: u16, format: Format) -> Self {
        Self {
            request,
            sequence: 0,
            datagrams: 1,
            format,
        }
    }

    /// As it is sent.
    #[inline]
    #[must_use]
    pub fn to_bytes(self) -> [u8; FRAME_BYTES] {
        let format = match self.format {
            Format::Text => 0,
            Format::Batch => BATCH,
        };
        let mut bytes = [0; FRAME_BYTES];
        let numbers = [self.request, self.sequence, self.datagrams, format];
        for (room, number) in bytes.chunks_exact_mut(2).zip(numbers) {
            room.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests;

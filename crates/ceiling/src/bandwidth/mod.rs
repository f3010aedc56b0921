//! DRAM bandwidth: known bytes read, written or copied by pinned threads over buffers of their own.
//!
//! After STREAM (McCalpin 1995): arrays far larger than the last-level cache, best of several passes, bytes counted as
//! the program moves them. Unlike STREAM the stores bypass the cache where the processor can
//! ([`Stores::NonTemporal`]); ordinary stores read each line before they overwrite it, traffic that the count of bytes
//! would leave out.

use std::time::Duration;

use crate::memory::{Buffer, huge_page_bytes};
use crate::team::{Rounds, run_together};
use crate::{Error, Result};

mod kernels;

pub use kernels::Stores;

/// Buffers are whole multiples of this.
pub const GRANULE_BYTES: usize = 4096;
const WORD_BYTES: usize = size_of::<u64>();

/// Reads all of `words` once, as the read kernel does; their sum, wrapping, which a caller should use somehow.
#[must_use]
pub fn read_words(words: &[u64]) -> u64 {
    kernels::sum(words)
}

/// What the threads do with their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Sum up every word.
    Read,
    /// Overwrite every word.
    Write,
    /// Copy the first half over the second half; a byte copied counts twice, read and written.
    Copy,
}

impl std::str::FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            "copy" => Ok(Self::Copy),
            other => Err(Error::Argument(format!(
                "'{other}' is not a kind of memory traffic: read, write or copy"
            ))),
        }
    }
}

/// What a bandwidth measurement found.
#[derive(Debug)]
pub struct Bandwidth {
    /// Bytes of each pass and its time, all threads together.
    pub rounds: Rounds<Stream>,
    /// How the stores were made; `None` for [`Kind::Read`].
    pub stores: Option<Stores>,
    /// Name of the widest instructions used: `avx2`, `sse2`, `neon` or `portable`.
    pub instructions: &'static str,
    /// Bytes of all buffers together.
    pub buffer_bytes: u64,
    /// Of those, bytes that huge pages backed; `None` where the kernel does not say.
    pub huge_page_bytes: Option<u64>,
}

/// Moves `bytes_per_thread` bytes per pass on each of `cores` at once, pass after pass for `budget`.
///
/// `bytes_per_thread` is rounded down to [`GRANULE_BYTES`]. The amount of a round is bytes.
///
/// # Errors
/// [`Error::Argument`] when `bytes_per_thread` is less than one granule, [`Error::Memory`] when the buffers cannot be
/// mapped, and as [`run_together`].
pub fn measure_bandwidth(
    kind: Kind,
    cores: &[usize],
    bytes_per_thread: usize,
    budget: Duration,
) -> Result<Bandwidth> {
    let bytes = bytes_per_thread / GRANULE_BYTES * GRANULE_BYTES;
    if bytes == 0 {
        return Err(Error::Argument(format!(
            "{bytes_per_thread} bytes a thread are too few to stream: at least {GRANULE_BYTES} are needed"
        )));
    }
    let rounds = run_together(cores, budget, |_| Stream::new(kind, bytes), Stream::pass)?;
    let huge_page_bytes = huge_page_bytes(rounds.states.iter().map(|stream| &stream.buffer));
    Ok(Bandwidth {
        stores: (kind != Kind::Read).then(kernels::stores),
        instructions: kernels::instructions(),
        buffer_bytes: bytes as u64 * cores.len() as u64,
        huge_page_bytes,
        rounds,
    })
}

/// One thread's buffer and what it found there.
#[derive(Debug)]
pub struct Stream {
    kind: Kind,
    buffer: Buffer,
    /// What the next write pass stores, so that each pass leaves something new.
    value: u64,
    /// Of the last read pass; kept so that the reads cannot be optimised away.
    sum: u64,
}

impl Stream {
    fn new(kind: Kind, bytes: usize) -> Result<Self> {
        let mut buffer = Buffer::zeroed(bytes / WORD_BYTES)?;
        // The owner touches every page first, which places it on the owner's NUMA node.
        buffer.fill(1);
        Ok(Self {
            kind,
            buffer,
            value: 1,
            sum: 0,
        })
    }

    fn pass(&mut self) -> u64 {
        match self.kind {
            Kind::Read => self.sum = kernels::sum(&self.buffer),
            Kind::Write => {
                self.value += 1;
                kernels::fill(&mut self.buffer, self.value);
            }
            Kind::Copy => {
                let middle = self.buffer.len() / 2;
                let (source, destination) = self.buffer.split_at_mut(middle);
                kernels::copy(source, destination);
            }
        }
        (self.buffer.len() * WORD_BYTES) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::usable_cores;

    const BYTES: usize = 64 * GRANULE_BYTES;

    #[test]
    fn a_read_pass_sums_what_is_there() {
        let mut stream = Stream::new(Kind::Read, BYTES).unwrap();
        for (index, word) in stream.buffer.iter_mut().enumerate() {
            *word = (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        let expected = stream
            .buffer
            .iter()
            .fold(0, |sum: u64, word| sum.wrapping_add(*word));
        assert_eq!(stream.pass(), BYTES as u64);
        assert_eq!(stream.sum, expected);
    }

    #[test]
    fn a_write_pass_overwrites_every_word() {
        let mut stream = Stream::new(Kind::Write, BYTES).unwrap();
        for pass in 2..5 {
            assert_eq!(stream.pass(), BYTES as u64);
            assert!(stream.buffer.iter().all(|&word| word == pass));
        }
    }

    #[test]
    fn a_copy_pass_copies_the_first_half_and_counts_both() {
        let mut stream = Stream::new(Kind::Copy, BYTES).unwrap();
        let middle = stream.buffer.len() / 2;
        for (index, word) in stream.buffer[..middle].iter_mut().enumerate() {
            *word = index as u64;
        }
        assert_eq!(stream.pass(), BYTES as u64);
        let (source, destination) = stream.buffer.split_at(middle);
        assert_eq!(source, destination);
        assert!(
            source
                .iter()
                .enumerate()
                .all(|(index, &word)| word == index as u64)
        );
    }

    #[test]
    fn bytes_are_counted_over_threads_and_passes() {
        let cores: Vec<usize> = usable_cores().unwrap().into_iter().take(2).collect();
        for kind in [Kind::Read, Kind::Write, Kind::Copy] {
            let result = measure_bandwidth(kind, &cores, BYTES + 1, Duration::ZERO).unwrap();
            let each = (BYTES * cores.len()) as u64;
            assert_eq!(result.buffer_bytes, each);
            assert_eq!(
                result.rounds.amount(),
                each * result.rounds.rounds.len() as u64
            );
            assert_eq!(result.stores.is_some(), kind != Kind::Read);
        }
    }

    #[test]
    fn too_small_a_buffer_and_an_unknown_kind_are_refused() {
        let refused = measure_bandwidth(Kind::Read, &[0], GRANULE_BYTES - 1, Duration::ZERO);
        assert!(matches!(refused, Err(Error::Argument(_))));
        assert!(
            "scale"
                .parse::<Kind>()
                .unwrap_err()
                .to_string()
                .contains("'scale'")
        );
    }
}

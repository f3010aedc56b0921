//! DRAM bandwidth: known bytes read, written or copied by pinned threads over buffers of their own.
//!
//! After STREAM (McCalpin 1995): arrays far larger than the last-level cache, best of several passes, bytes counted as
//! the program moves them. Unlike STREAM the stores bypass the cache where the processor can; ordinary stores read each line before they overwrite it, traffic that the count of bytes
//! would leave out.

use std::time::Duration;

use crate::memory::{self, huge_page_bytes};
use crate::team::{Rounds, run_together};
use crate::{Error, Result};
use mapping::Words;

mod kernels;

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
    /// How the stores were made, `non-temporal` or `ordinary`; `None` for [`Kind::Read`].
    pub stores: Option<&'static str>,
    /// Name of the widest instructions used: `avx2`, `sse2`, `neon` or `portable`.
    pub instructions: &'static str,
    /// Bytes of all buffers together.
    pub buffer_bytes: u64,
    /// Of those, bytes that huge pages backed; `None` where the kernel does not say.
    pub huge_page_bytes: Option<u64>,
}

/// Moves `bytes_per_thread` bytes per pass on each of `cores` at once, pass after pass for `budget`.
///
/// `bytes_per_thread` is rounded down to [`GRANULE_BYTES`]. The amount of a round is bytes. Refuses `bytes_per_thread`
/// of less than one granule.
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
        stores: (kind != Kind::Read).then_some(kernels::STORES),
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
    buffer: Words,
    /// What the next write pass stores, so that each pass leaves something new.
    value: u64,
    /// Of the last read pass; kept so that the reads cannot be optimised away.
    sum: u64,
}

impl Stream {
    fn new(kind: Kind, bytes: usize) -> Result<Self> {
        let mut buffer = memory::zeroed(bytes / WORD_BYTES)?;
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
mod tests;

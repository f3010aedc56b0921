//! Files that are read or written past the page cache, so that every request reaches the disk.

use crate::Error;
use rustix::fs::{Advice, OFlags, fadvise};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Direct I/O wants offsets, lengths and memory in whole blocks (open(2), `O_DIRECT`); 4 KiB suits every disk.
pub(super) const ALIGNMENT_BYTES: usize = 4096;
/// What one system call moves at most.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// A file in slots of what a request moves.
#[derive(Debug)]
pub(super) struct BlockFile {
    file: File,
    bytes: u64,
    /// Slots taken in order so far.
    taken: AtomicU64,
    /// Whether the page cache is bypassed; else it is emptied after every request.
    pub direct: bool,
}

impl BlockFile {
    /// Written in full, out of the page cache, and without a name: it is gone when the process is.
    pub fn create(path: &Path, bytes: u64, access: Access) -> Result<Self, Error> {
        let written = write_file(path, bytes)?;
        let opened = open_direct(path, access);
        let removed = std::fs::remove_file(path);
        let file = opened.map_err(Error::file(path, "opened"))?;
        removed.map_err(Error::file(path, "removed"))?;
        // Only clean pages can be dropped, and write_file left no others. Advice: a kernel that does not take it only
        // makes the first reads of a file system without direct I/O faster.
        let _ = fadvise(&written, 0, None, Advice::DontNeed);
        Ok(match file {
            Some(file) => Self::new(file, bytes, true),
            None => Self::new(written, bytes, false),
        })
    }

    fn new(file: File, bytes: u64, direct: bool) -> Self {
        Self {
            file,
            bytes,
            taken: AtomicU64::new(0),
            direct,
        }
    }

    /// Read the next `bytes`, in order, around the end; threads take turns.
    pub fn read_next(&self, bytes: u64, block: &mut [u8]) -> io::Result<()> {
        let slot = self.taken.fetch_add(1, Ordering::Relaxed);
        self.read_at_slot(slot, bytes, block)
    }

    /// Read `bytes` of one of the places where a multiple of `bytes` begins.
    pub fn read_at_slot(&self, slot: u64, bytes: u64, block: &mut [u8]) -> io::Result<()> {
        self.in_pieces(slot, bytes, block, |piece, offset| {
            self.file.read_exact_at(piece, offset)
        })
    }

    /// Overwrite the next `bytes`, in order, around the end; they are with the disk when this returns.
    pub fn write_next(&self, bytes: u64, block: &mut [u8]) -> io::Result<()> {
        let slot = self.taken.fetch_add(1, Ordering::Relaxed);
        self.in_pieces(slot, bytes, block, |piece, offset| {
            self.file.write_all_at(piece, offset)
        })
    }

    fn in_pieces(
        &self,
        slot: u64,
        bytes: u64,
        block: &mut [u8],
        move_piece: impl Fn(&mut [u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let bytes = aligned(bytes);
        let slots = (self.bytes / bytes).max(1);
        let start = slot % slots * bytes;
        let padding = block.as_ptr().align_offset(ALIGNMENT_BYTES);
        let room = &mut block[padding..];
        let piece_bytes = (room.len() / ALIGNMENT_BYTES * ALIGNMENT_BYTES) as u64;
        let mut moved = 0;
        while moved < bytes {
            let piece = piece_bytes.min(bytes - moved);
            move_piece(&mut room[..piece as usize], start + moved)?;
            moved += piece;
        }
        if !self.direct {
            self.file.sync_data()?;
            // Advice: what a kernel does not drop is read faster, which the log has warned of.
            let _ = fadvise(&self.file, start, NonZeroU64::new(bytes), Advice::DontNeed);
        }
        Ok(())
    }
}

/// `bytes` in whole blocks.
pub(super) fn aligned(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT_BYTES as u64)
}

/// A new file of `bytes` bytes on the disk, not merely reserved: reserved bytes are read without one.
pub(super) fn write_file(path: &Path, bytes: u64) -> Result<File, Error> {
    // One that a killed server left.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::file(path, "removed")(error));
        }
        _ => {}
    }
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(Error::file(path, "made"))?;
    let written = write_blocks(&mut file, bytes);
    if written.is_err() {
        // A disk that is full is not left full; the error that is told is the first one.
        let _ = std::fs::remove_file(path);
    }
    written.map_err(Error::file(path, "written"))?;
    Ok(file)
}

fn write_blocks(file: &mut File, bytes: u64) -> io::Result<()> {
    let mut block = vec![0_u8; PIECE_BYTES];
    let mut state = 1;
    let mut left = bytes;
    while left > 0 {
        // Every block is another, so that a file system that compresses or shares blocks has to keep them all.
        for word in block.chunks_exact_mut(8) {
            word.copy_from_slice(&next_random(&mut state).to_ne_bytes());
        }
        let piece = left.min(PIECE_BYTES as u64);
        file.write_all(&block[..piece as usize])?;
        left -= piece;
    }
    file.sync_data()
}

/// The file past the page cache; `None` where its file system cannot.
fn open_direct(path: &Path, access: Access) -> io::Result<Option<File>> {
    let opened = OpenOptions::new()
        .read(true)
        .write(access == Access::Write)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
        Err(error) => return Err(error),
    };
    // Some file systems take the flag and refuse the reads.
    let mut block = vec![0; 2 * ALIGNMENT_BYTES];
    let padding = block.as_ptr().align_offset(ALIGNMENT_BYTES);
    match file.read_exact_at(&mut block[padding..padding + ALIGNMENT_BYTES], 0) {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
        Err(error) => Err(error),
    }
}

/// SplitMix64 (Steele et al., OOPSLA 2014): good enough to pick pages, one word of state.
pub(super) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

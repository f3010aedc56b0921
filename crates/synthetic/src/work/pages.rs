//! Pages of a mapped file: what is touched must be in memory, and comes from the disk again where it had to go.

use super::files::write_file;
use crate::Error;
use mapping::{Access, Mapping};
use std::path::Path;

const PAGE_BYTES: usize = 4096;

/// A mapped file. It is in the page cache when it is made, so that touching is cheap until memory becomes short.
#[derive(Debug)]
pub(super) struct PageFile(Mapping);

impl PageFile {
    pub fn create(path: &Path, bytes: u64) -> Result<Self, Error> {
        let file = write_file(path, bytes)?;
        // The file is kept by its mapping, and no other process can open it to make it shorter.
        std::fs::remove_file(path).map_err(Error::file(path, "removed"))?;
        let bytes = bytes as usize / PAGE_BYTES * PAGE_BYTES;
        let mapping = Mapping::of_file(&file, 0, bytes, Access::Read, false)
            .map_err(Error::file(path, "mapped"))?;
        // A page that is missing is to cost one page, not a read-ahead.
        mapping.expect_random_access();
        Ok(Self(mapping))
    }

    /// Read a byte of each of `pages` pages that `random` picks.
    pub fn touch(&self, pages: u64, mut random: impl FnMut() -> u64) {
        let count = (self.0.bytes() / PAGE_BYTES) as u64;
        for _ in 0..pages {
            self.0.touch((random() % count) as usize * PAGE_BYTES);
        }
    }
}

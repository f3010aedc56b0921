//! Memory of the model checker, in place of `memory`.
//!
//! Readers load its words, each of which may have any value that relaxed loads may give. In production even the bytes of
//! one word may be of different times: values of models are several words long. The one who writes sees bytes of its own.

use crate::Error;
use crate::sync::{AtomicU64, Ordering::Relaxed};
use mapping::Mapping;
use std::sync::atomic;

const WORD_BYTES: usize = 8;

/// No model uses more of a memory than its beginning.
const USED_BYTES: usize = 1024;

pub(crate) struct Memory {
    own: Mapping,
    lines: Box<[[AtomicU64; 8]]>,
}

impl Memory {
    pub fn zeroed(bytes: usize) -> Result<Self, Error> {
        let own = Mapping::zeroed(bytes).map_err(|_| Error::OutOfMemory { bytes })?;
        let line = |_| std::array::from_fn(|_| AtomicU64::new(0));
        let lines = (0..bytes.min(USED_BYTES).div_ceil(64)).map(line).collect();
        Ok(Self { own, lines })
    }

    pub fn bytes(&self) -> usize {
        self.own.bytes()
    }

    pub fn use_huge_pages(&self) {}

    pub fn prefetch(&self, _at: usize) {}

    pub fn lines(&self) -> &[[AtomicU64; 8]] {
        &self.lines
    }

    fn check(&self, at: usize, bytes: usize) {
        let of = self.bytes();
        assert!(
            at <= of && bytes <= of - at,
            "{bytes} bytes at {at} of {of}"
        );
    }

    /// # Safety
    /// As in production.
    pub unsafe fn slice(&self, at: usize, bytes: usize) -> &[u8] {
        self.check(at, bytes);
        // SAFETY: in bounds, and the caller knows that there are no writes.
        unsafe { std::slice::from_raw_parts(self.own.start().as_ptr().add(at), bytes) }
    }

    /// # Safety
    /// As in production.
    pub unsafe fn store(&self, at: usize, from: &[u8]) {
        self.check(at, from.len());
        // SAFETY: in bounds, and the caller knows that nobody has a slice.
        unsafe {
            self.own
                .start()
                .as_ptr()
                .add(at)
                .copy_from(from.as_ptr(), from.len())
        };
        let words = at / WORD_BYTES..(at + from.len()).div_ceil(WORD_BYTES);
        for (word, own) in self.lines.as_flattened()[words.clone()]
            .iter()
            .zip(&self.own.words()[words])
        {
            word.store(own.load(atomic::Ordering::Relaxed), Relaxed);
        }
    }

    pub fn load(&self, at: usize, bytes: usize, to: &mut Vec<u8>) {
        self.check(at, bytes);
        let start = to.len();
        to.resize(start + bytes, 0);
        self.load_into(at, &mut to[start..]);
    }

    pub fn load_into(&self, at: usize, to: &mut [u8]) {
        self.check(at, to.len());
        let words = at / WORD_BYTES..(at + to.len()).div_ceil(WORD_BYTES);
        let words = &self.lines.as_flattened()[words];
        let bytes: Vec<u8> = words
            .iter()
            .flat_map(|word| word.load(Relaxed).to_le_bytes())
            .collect();
        to.copy_from_slice(&bytes[at % WORD_BYTES..][..to.len()]);
    }

    pub fn equals(&self, at: usize, these: &[u8]) -> bool {
        let mut found = vec![0; these.len()];
        self.load_into(at, &mut found);
        found == these
    }
}

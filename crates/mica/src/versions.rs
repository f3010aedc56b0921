//! Versions of buckets, by which readers notice a write while they looked (a sequence lock).

use crate::sync::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence};

/// Stripes of a partition that others read; buckets share them.
const STRIPES: usize = if cfg!(loom) { 2 } else { 1024 };

/// Odd while a bucket, or an item in it, is being written.
pub(crate) struct Versions {
    /// A power of two of them, or none where there are no readers.
    stripes: Box<[AtomicU64]>,
}

/// What a reader saw before it looked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen(u64);

impl Versions {
    /// For a partition that only its owner reads: nothing is noted.
    pub fn unread() -> Self {
        Self {
            stripes: Box::default(),
        }
    }

    /// For a partition with readers beside its one writer.
    pub fn new() -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub fn are_read(&self) -> bool {
        !self.stripes.is_empty()
    }

    #[inline]
    fn stripe(&self, bucket: usize) -> Option<&AtomicU64> {
        self.stripes
            .get(bucket & self.stripes.len().wrapping_sub(1))
    }

    /// From now on until the guard is dropped, `bucket` and its items are being written. One writer at a time, and no
    /// second guard for the same stripe.
    #[inline]
    pub fn write(&self, bucket: usize) -> Writing<'_> {
        Writing(self.stripe(bucket).inspect(|stripe| {
            let version = stripe.load(Relaxed);
            debug_assert!(version.is_multiple_of(2), "a guard within a guard");
            stripe.store(version + 1, Relaxed);
            // Whoever sees one of the writes that follow sees the odd version.
            fence(Release);
        }))
    }

    /// As [`write`](Self::write), for two buckets.
    pub fn write_two(&self, one: usize, other: usize) -> (Writing<'_>, Writing<'_>) {
        let same = (one ^ other) & self.stripes.len().wrapping_sub(1) == 0;
        (
            self.write(one),
            if same {
                Writing(None)
            } else {
                self.write(other)
            },
        )
    }

    /// As [`write`](Self::write), for all buckets.
    pub fn write_all(&self) -> WritingAll<'_> {
        for stripe in &self.stripes {
            stripe.store(stripe.load(Relaxed) + 1, Relaxed);
        }
        fence(Release);
        WritingAll(&self.stripes)
    }

    /// Before looking at `bucket`; `None` while it is being written.
    #[inline]
    pub fn begin(&self, bucket: usize) -> Option<Seen> {
        let version = self.stripe(bucket)?.load(Acquire);
        version.is_multiple_of(2).then_some(Seen(version))
    }

    /// Whether `bucket` was not written since `seen`: only then is what was read there true.
    #[inline]
    pub fn is_unchanged(&self, bucket: usize, seen: Seen) -> bool {
        // What was read before cannot be from after the version that is read now.
        fence(Acquire);
        self.stripe(bucket)
            .is_some_and(|stripe| stripe.load(Relaxed) == seen.0)
    }
}

/// Held while a bucket is written.
#[must_use]
pub(crate) struct Writing<'v>(Option<&'v AtomicU64>);

impl Drop for Writing<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(stripe) = self.0 {
            stripe.store(stripe.load(Relaxed) + 1, Release);
        }
    }
}

/// Held while all buckets are written.
#[must_use]
pub(crate) struct WritingAll<'v>(&'v [AtomicU64]);

impl Drop for WritingAll<'_> {
    fn drop(&mut self) {
        for stripe in self.0 {
            stripe.store(stripe.load(Relaxed) + 1, Release);
        }
    }
}

#[cfg(test)]
mod tests;

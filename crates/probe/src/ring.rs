//! Rows on their way from the sampling thread to the thread that drains them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The largest block of rows kept, in bytes.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Rows that were drained.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// When each row was read: nanoseconds since the epoch, advanced by the monotonic clock.
    pub timestamps: Vec<i64>,
    /// The values, row after row; NaN where unreadable.
    pub values: Vec<f64>,
}

/// A ring with one writer and one reader that never wait for each other. A row that finds it full is counted and
/// dropped, so that what is kept stays whole and in order.
pub(crate) struct Ring {
    columns: usize,
    capacity: usize,
    timestamps: Box<[AtomicI64]>,
    values: Box<[AtomicU64]>,
    /// Rows ever written and ever read; the difference lies in the ring.
    written: AtomicU64,
    read: AtomicU64,
    dropped: AtomicU64,
}

impl Ring {
    /// Room for `rows` rows, or for as many as fit in a bounded amount of memory.
    pub(crate) fn new(columns: usize, rows: usize) -> Self {
        let row_bytes = (columns + 1) * size_of::<u64>();
        let capacity = rows.min(MOST_BYTES / row_bytes).max(2);
        Self {
            columns,
            capacity,
            timestamps: (0..capacity).map(|_| AtomicI64::new(0)).collect(),
            values: (0..capacity * columns).map(|_| AtomicU64::new(0)).collect(),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Adds a row; for the one writing thread.
    pub(crate) fn push(&self, timestamp: i64, row: &[f64]) {
        debug_assert_eq!(row.len(), self.columns);
        let written = self.written.load(Ordering::Relaxed);
        // Acquire: the reader is done with the slots that it gave back.
        if written - self.read.load(Ordering::Acquire) >= self.capacity as u64 {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let slot = (written % self.capacity as u64) as usize;
        self.timestamps[slot].store(timestamp, Ordering::Relaxed);
        let cells = &self.values[slot * self.columns..(slot + 1) * self.columns];
        for (cell, value) in cells.iter().zip(row) {
            cell.store(value.to_bits(), Ordering::Relaxed);
        }
        // Release: a thread that sees the count sees the row.
        self.written.store(written + 1, Ordering::Release);
    }

    /// Takes all rows; for the one reading thread (callers hold `&mut Sampler`).
    pub(crate) fn drain(&self) -> Rows {
        let read = self.read.load(Ordering::Relaxed);
        let written = self.written.load(Ordering::Acquire);
        let count = (written - read) as usize;
        let mut rows = Rows {
            timestamps: Vec::with_capacity(count),
            values: Vec::with_capacity(count * self.columns),
        };
        for row in read..written {
            let slot = (row % self.capacity as u64) as usize;
            rows.timestamps
                .push(self.timestamps[slot].load(Ordering::Relaxed));
            let cells = &self.values[slot * self.columns..(slot + 1) * self.columns];
            rows.values.extend(
                cells
                    .iter()
                    .map(|cell| f64::from_bits(cell.load(Ordering::Relaxed))),
            );
        }
        self.read.store(written, Ordering::Release);
        rows
    }

    /// Rows that found the ring full.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;

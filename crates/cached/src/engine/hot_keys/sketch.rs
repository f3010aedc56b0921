//! The most frequent keys of a stream, in bounded memory: Space-Saving (Metwally, Agrawal and El Abbadi, ICDT 2005).

/// The longest key that is counted, in bytes: memcached's.
pub(super) const KEY_BYTES_MAX: usize = 250;

/// Counts the keys of a stream with a fixed number of counters. A key without one takes that of the key with the
/// smallest count, and its count with it, as what it may be wrong by. After `n` notes, of any key:
///
/// * the count of one that has a counter is at least the true one, and more by at most its error;
/// * no error is larger than `n / capacity`;
/// * each that was noted more than `n / capacity` times has a counter.
///
/// Nothing is allocated after it is made.
pub(super) struct SpaceSaving {
    counters: Box<[Counter]>,
    /// Bytes for the longest key of each counter.
    keys: Box<[u8]>,
    /// Counters in use, from the largest count to the smallest.
    order: Box<[u16]>,
    /// Where each counter is in `order`.
    positions: Box<[u16]>,
    /// Counters by their keys' hashes, each behind where it belongs if that is taken; 0 for none, else one more.
    slots: Box<[u16]>,
    used: usize,
}

#[derive(Clone, Copy, Default)]
struct Counter {
    hash: u64,
    count: u64,
    error: u64,
    key_bytes: u8,
}

/// A key and how often it was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted<'s> {
    pub key: &'s [u8],
    /// At least as often as it was.
    pub count: u64,
    /// By how much that may be too often.
    pub error: u64,
}

impl SpaceSaving {
    /// With `capacity` counters, 1 to 32,768.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, 1 << 15);
        Self {
            counters: vec![Counter::default(); capacity].into(),
            keys: vec![0; capacity * KEY_BYTES_MAX].into(),
            order: vec![0; capacity].into(),
            positions: vec![0; capacity].into(),
            // Half of them stay empty, so that the way to a key is short.
            slots: vec![0; (2 * capacity).next_power_of_two()].into(),
            used: 0,
        }
    }

    /// Count `key`, whose hash is `hash`. One that is longer than keys are is left out.
    pub fn add(&mut self, hash: u64, key: &[u8]) {
        if key.len() > KEY_BYTES_MAX {
            return;
        }
        let number = match self.find(hash, key) {
            Some(number) => number,
            None => self.take_over(hash, key),
        };
        self.raise(number);
    }

    /// The keys that have counters, the most frequent first.
    pub fn counted(&self) -> impl Iterator<Item = Counted<'_>> {
        self.order[..self.used].iter().map(|&number| {
            let counter = &self.counters[usize::from(number)];
            Counted {
                key: self.key(number),
                count: counter.count,
                error: counter.error,
            }
        })
    }

    /// No key without a counter was noted more often than this.
    pub fn unseen_max(&self) -> u64 {
        if self.used < self.counters.len() {
            return 0;
        }
        let last = self.order[self.used - 1];
        self.counters[usize::from(last)].count
    }

    /// Forget all.
    pub fn clear(&mut self) {
        self.used = 0;
        self.slots.fill(0);
    }

    fn key(&self, number: u16) -> &[u8] {
        let start = usize::from(number) * KEY_BYTES_MAX;
        let bytes = usize::from(self.counters[usize::from(number)].key_bytes);
        &self.keys[start..start + bytes]
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<u16> {
        let mut slot = self.home(hash);
        loop {
            let number = self.slots[slot].checked_sub(1)?;
            if self.counters[usize::from(number)].hash == hash && self.key(number) == key {
                return Some(number);
            }
            slot = self.behind(slot);
        }
    }

    /// Give `key` a counter: a fresh one, or else that of the least frequent key, with its count.
    fn take_over(&mut self, hash: u64, key: &[u8]) -> u16 {
        let number = if self.used < self.counters.len() {
            let number = self.used as u16;
            self.counters[self.used] = Counter::default();
            self.order[self.used] = number;
            self.positions[self.used] = number;
            self.used += 1;
            number
        } else {
            let number = self.order[self.used - 1];
            self.forget(number);
            number
        };
        let counter = &mut self.counters[usize::from(number)];
        counter.error = counter.count;
        counter.hash = hash;
        counter.key_bytes = key.len() as u8;
        let start = usize::from(number) * KEY_BYTES_MAX;
        self.keys[start..start + key.len()].copy_from_slice(key);
        let mut slot = self.home(hash);
        while self.slots[slot] != 0 {
            slot = self.behind(slot);
        }
        self.slots[slot] = number + 1;
        number
    }

    /// Count one more, and keep the order: it changes places with the first of those that have as many.
    fn raise(&mut self, number: u16) {
        let count = self.counters[usize::from(number)].count;
        let order = &self.order[..self.used];
        let first = order.partition_point(|&other| self.counters[usize::from(other)].count > count);
        let place = usize::from(self.positions[usize::from(number)]);
        let other = self.order[first];
        self.order.swap(first, place);
        self.positions[usize::from(other)] = place as u16;
        self.positions[usize::from(number)] = first as u16;
        self.counters[usize::from(number)].count += 1;
    }

    /// Take a counter's key out of the slots, and move up those that it kept from where they belong.
    fn forget(&mut self, number: u16) {
        let mut slot = self.home(self.counters[usize::from(number)].hash);
        while self.slots[slot] != number + 1 {
            slot = self.behind(slot);
        }
        let mut empty = slot;
        loop {
            slot = self.behind(slot);
            let Some(other) = self.slots[slot].checked_sub(1) else {
                break;
            };
            let home = self.home(self.counters[usize::from(other)].hash);
            let mask = self.slots.len() - 1;
            // Whether it lies at least as far behind its own place as behind the empty one.
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(empty) & mask {
                self.slots[empty] = other + 1;
                empty = slot;
            }
        }
        self.slots[empty] = 0;
    }

    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn behind(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests;

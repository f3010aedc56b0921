use crate::address::{Address, EDITION_BITS, LOG_BYTES_MAX, OFFSET_BITS, cas, near_end};
use crate::item::{First, Header, PLAIN_BYTES, WINDOW_BYTES};
use crate::key::Key;
use crate::memory::Memory;
use crate::sync::{AtomicU64, Ordering::Relaxed, Ordering::Release, fence};
use crate::{Error, Hasher, Item};
use std::sync::Arc;

/// A log so long fills huge pages; a shorter one would leave much of its last one unused.
const HUGE_LOG_BYTES: usize = 32 << 20;

/// What a prefetch fetches.
const LINE_BYTES: usize = 64;

/// The most that is fetched of an item ahead. Behind that, processors see by themselves where a copy goes on.
const FETCHED_BYTES_MAX: usize = 4 * LINE_BYTES;

/// What readers share with the writer of a log.
pub(crate) struct Shared {
    pub memory: Memory,
    /// The oldest item, and the next to write, as [`Address`]s.
    head: AtomicU64,
    tail: AtomicU64,
    /// How far behind its first byte an item's last one usually is: a running mean of those that were written. A hint
    /// that may be seen late, and so none of what the models check.
    reach: std::sync::atomic::AtomicUsize,
}

impl Shared {
    /// How many bytes of items fit. Behind them is room for the last header's window.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.memory.bytes() - WINDOW_BYTES
    }

    /// Have the item at a position fetched: the cache lines in which an item of the usual length lies.
    #[inline]
    pub fn prefetch(&self, position: u32) {
        let offset = Address::from_bits(u64::from(position)).offset();
        let reach = self.reach.load(Relaxed);
        self.memory.prefetch(offset);
        let mut at = LINE_BYTES;
        while at < reach {
            self.memory.prefetch(offset + at);
            at += LINE_BYTES;
        }
        self.memory.prefetch(offset + reach);
    }

    /// An item of so many bytes is written.
    #[inline]
    fn note_length(&self, item_bytes: usize) {
        let before = self.reach.load(Relaxed);
        let last = item_bytes.clamp(1, FETCHED_BYTES_MAX) - 1;
        // An eighth of the way, rounded up so that items of one length are met exactly.
        let step = last.abs_diff(before).div_ceil(8);
        if last > before {
            self.reach.store(before + step, Relaxed);
        } else if last < before {
            self.reach.store(before - step, Relaxed);
        }
    }

    #[inline]
    pub fn head(&self) -> Address {
        Address::from_bits(self.head.load(Relaxed))
    }

    #[inline]
    pub fn tail(&self) -> Address {
        Address::from_bits(self.tail.load(Relaxed))
    }
}

/// The writer's side of a circular log: items lie behind one another, whole, between `head` (the oldest) and `tail`
/// (the next to write).
///
/// ```text
/// 0            tail        head                 end     capacity
/// | this lap   |   free    |   lap before       | unused |
/// ```
///
/// An item that does not fit behind `tail` leaves the rest unused (`end`) and goes to the front, in a new lap.
pub(crate) struct Log {
    shared: Arc<Shared>,
    hasher: Hasher,
    end: usize,
    /// Items before this are near their end; kept with the tail, as it is asked for at every hit.
    near_end: Address,
    scratch: Vec<u8>,
}

impl Log {
    /// Room for `capacity` bytes. The system gives pages as they are first written, so unused room costs nothing.
    pub fn new(capacity: usize, hasher: Hasher) -> Result<Self, Error> {
        let start = Address::new(1, 0);
        Self::between(start, start, near_end(start, capacity), capacity, hasher)
    }

    /// Memory that a [`Heap`](crate::heap::Heap) hands out. Head and tail stand still so that each position is a
    /// [place](Address::at) of the same bits, always alive and never near its end.
    pub fn standing(capacity: usize, hasher: Hasher) -> Result<Self, Error> {
        let (head, tail) = (Address::from_bits(0), Address::from_bits(1 << 32));
        Self::between(head, tail, head, capacity, hasher)
    }

    fn between(
        head: Address,
        tail: Address,
        near_end: Address,
        capacity: usize,
        hasher: Hasher,
    ) -> Result<Self, Error> {
        if capacity > LOG_BYTES_MAX {
            return Err(Error::LogTooLarge {
                log_bytes: capacity,
                limit: LOG_BYTES_MAX,
            });
        }
        let memory = Memory::zeroed(capacity + WINDOW_BYTES)?;
        if capacity >= HUGE_LOG_BYTES {
            memory.use_huge_pages();
        }
        Ok(Self {
            shared: Arc::new(Shared {
                memory,
                head: AtomicU64::new(head.bits()),
                tail: AtomicU64::new(tail.bits()),
                reach: (WINDOW_BYTES - 1).into(),
            }),
            hasher,
            end: 0,
            near_end,
            scratch: Vec::new(),
        })
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    #[inline]
    pub fn capacity(&self) -> usize {
        self.shared.capacity()
    }

    #[inline]
    pub fn tail(&self) -> Address {
        self.shared.tail()
    }

    #[inline]
    pub fn head(&self) -> Address {
        self.shared.head()
    }

    #[inline]
    pub fn address(&self, position: u32) -> Address {
        Address::before(self.tail(), position)
    }

    /// Whether what was written at `address`, which is before the tail, is still there.
    #[inline]
    pub fn is_alive(&self, address: Address) -> bool {
        address >= self.head()
    }

    /// The item that was written first among those that are alive.
    pub fn oldest(&self) -> Option<Address> {
        self.next_at(self.head())
    }

    /// The item that was written after that of `item_bytes` at `address`.
    pub fn behind(&self, address: Address, item_bytes: usize) -> Option<Address> {
        self.next_at(Address::from_bits(address.bits() + item_bytes as u64))
    }

    /// The item that begins at `address`, or at the front if those of an earlier lap end there.
    fn next_at(&self, address: Address) -> Option<Address> {
        let tail = self.tail();
        let next = if address.lap() < tail.lap() && address.offset() >= self.end {
            Address::new(tail.lap(), 0)
        } else {
            address
        };
        (next < tail).then_some(next)
    }

    /// Begin at a lap in which no place has a CAS number up to `cas`. For a log that nothing was written to.
    pub fn begin_after(&mut self, cas: u64) {
        const LAPS: u64 = 1 << (u64::BITS - OFFSET_BITS - EDITION_BITS);
        let lap = (cas >> (OFFSET_BITS + EDITION_BITS)) + 1;
        let start = Address::new(lap.min(LAPS - 1), 0);
        self.move_head(start);
        self.move_tail(start);
    }

    /// Whether the tail will pass an item that is alive within the next quarter of the log.
    #[inline]
    pub fn is_near_its_end(&self, address: Address) -> bool {
        address < self.near_end
    }

    /// The oldest item, where it must go before `bytes` can be claimed. The caller looks at it and calls
    /// [`drop_oldest`](Self::drop_oldest).
    #[inline]
    pub fn oldest_in_the_way(&mut self, bytes: usize) -> Option<Address> {
        if self.tail().offset() + bytes > self.capacity() {
            if self.head().lap() < self.tail().lap() {
                return Some(self.head());
            }
            self.end = self.tail().offset();
            self.move_tail(Address::new(self.tail().lap() + 1, 0));
        }
        if self.head().lap() == self.tail().lap() {
            return None;
        }
        if self.head().offset() >= self.end {
            self.move_head(Address::new(self.tail().lap(), 0));
            return None;
        }
        (self.head().offset() < self.tail().offset() + bytes).then_some(self.head())
    }

    #[inline]
    pub fn drop_oldest(&mut self, item_bytes: usize) {
        let end = self.head().offset() + item_bytes;
        self.move_head(if end < self.end {
            Address::new(self.head().lap(), end)
        } else {
            Address::new(self.tail().lap(), 0)
        });
    }

    #[inline]
    fn move_head(&mut self, head: Address) {
        self.shared.head.store(head.bits(), Relaxed);
        // Whoever sees what is written over an item sees that the head has passed it.
        fence(Release);
    }

    /// Take the next `bytes`; nothing may be in their way any more. Readers do not look there yet.
    #[inline]
    pub fn claim(&mut self, bytes: usize) -> Address {
        debug_assert!(self.tail().offset() + bytes <= self.capacity());
        let address = self.tail();
        // An item that ends where the log does leaves the tail there: the next one wraps.
        self.move_tail(Address::from_bits(address.bits() + bytes as u64));
        address
    }

    #[inline]
    fn move_tail(&mut self, tail: Address) {
        self.near_end = near_end(tail, self.capacity());
        self.shared.tail.store(tail.bits(), Release);
    }

    /// The bytes of a header, and some behind it.
    #[inline]
    fn window(&self, offset: usize) -> &[u8; WINDOW_BYTES] {
        self.slice(offset, WINDOW_BYTES)
            .first_chunk()
            .unwrap_or(const { &[0; WINDOW_BYTES] })
    }

    #[inline]
    fn slice(&self, offset: usize, bytes: usize) -> &[u8] {
        // SAFETY: only this log writes, by methods that borrow it mutably, so not while the slice lives.
        unsafe { self.shared.memory.slice(offset, bytes) }
    }

    #[inline]
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        // SAFETY: this log is the only writer, and slices of it borrow it, so none is alive here.
        unsafe { self.shared.memory.store(offset, bytes) }
    }

    /// Eight bytes that are no item's.
    #[inline]
    pub fn word(&self, offset: usize) -> u64 {
        let bytes = self.slice(offset, 8).first_chunk();
        u64::from_le_bytes(*bytes.unwrap_or(const { &[0; 8] }))
    }

    #[inline]
    pub fn set_word(&mut self, offset: usize, word: u64) {
        self.write(offset, &word.to_le_bytes());
    }

    #[inline]
    pub fn header(&self, address: Address) -> (Header, usize) {
        Header::decode(self.window(address.offset()))
    }

    /// Write a header over one of the same length.
    #[inline]
    pub fn set_header(&mut self, address: Address, header: &Header) {
        let mut bytes = [0; WINDOW_BYTES];
        let length = header.encode(&mut bytes);
        self.write(address.offset(), &bytes[..length]);
    }

    /// Write a plain header over one, with the byte behind it.
    #[inline]
    pub fn set_first(&mut self, address: Address, first: First) {
        self.write(address.offset(), &first.to_bytes());
    }

    /// The item's first bytes, if it is `key`'s.
    #[inline(always)]
    pub fn first_with_key(&self, address: Address, key: &[u8]) -> Option<First> {
        let window = self.window(address.offset());
        let first = First::from_bytes(*window.first_chunk().unwrap_or(const { &[0; 8] }));
        if first.key_bytes() != key.len() {
            return None;
        }
        // A short key behind a plain header is seen through the window already.
        if first.is_plain()
            && let Some(found) = window.get(PLAIN_BYTES..PLAIN_BYTES + key.len())
        {
            return is_same(found, key).then_some(first);
        }
        self.is_key_at(address, first, key).then_some(first)
    }

    #[inline(never)]
    fn is_key_at(&self, address: Address, first: First, key: &[u8]) -> bool {
        let header_bytes = match first.is_short() {
            true => PLAIN_BYTES + first.option_bytes(),
            false => self.header(address).1,
        };
        is_same(self.slice(address.offset() + header_bytes, key.len()), key)
    }

    /// Flags and the second of expiry of an item with a short header.
    #[inline]
    pub fn options(&self, address: Address, first: First) -> (u32, u32) {
        first.options(self.word(address.offset() + PLAIN_BYTES))
    }

    /// The value of an item with a short header.
    #[inline]
    pub fn short_value(&self, address: Address, first: First) -> &[u8] {
        let key_at = address.offset() + PLAIN_BYTES + first.option_bytes();
        self.slice(key_at + first.key_bytes(), first.value_bytes())
    }

    /// Write a short header with the bytes of its fields over one with the same fields, and a value of the same length.
    #[inline]
    pub fn renew(&mut self, address: Address, (first, options): (First, u64), value: &[u8]) {
        let options_at = address.offset() + PLAIN_BYTES;
        let bytes = first.option_bytes();
        self.set_first(address, first);
        self.write(options_at, &options.to_le_bytes()[..bytes]);
        self.write(options_at + bytes + first.key_bytes(), value);
    }

    /// The value of an item with a plain header.
    #[inline]
    pub fn plain_value(&self, address: Address, first: First) -> &[u8] {
        self.slice(
            address.offset() + PLAIN_BYTES + first.key_bytes(),
            first.value_bytes(),
        )
    }

    /// Write over that value one of the same length.
    #[inline]
    pub fn set_plain_value(&mut self, address: Address, first: First, value: &[u8]) {
        debug_assert_eq!(first.value_bytes(), value.len());
        self.write(address.offset() + PLAIN_BYTES + first.key_bytes(), value);
    }

    #[inline]
    pub fn key(&self, address: Address, header: &Header, header_bytes: usize) -> &[u8] {
        self.slice(
            address.offset() + header_bytes,
            usize::from(header.key_bytes),
        )
    }

    #[inline]
    pub fn value(&self, address: Address, header: &Header, header_bytes: usize) -> &[u8] {
        let start = address.offset() + header_bytes + usize::from(header.key_bytes);
        self.slice(start, header.value_bytes as usize)
    }

    /// Write a whole item.
    #[inline]
    pub fn write_item(&mut self, address: Address, header: &Header, key: &[u8], value: &[u8]) {
        self.shared.note_length(header.item_bytes());
        let mut window = [0; WINDOW_BYTES];
        let header_bytes = header.encode(&mut window);
        let mut at = address.offset();
        for part in [&window[..header_bytes], key, value] {
            self.write(at, part);
            at += part.len();
        }
    }

    /// Write more behind the value of an item with the header `old`.
    pub fn append(&mut self, address: Address, old: &Header, more: &[u8]) {
        self.write(address.offset() + old.item_bytes(), more);
    }

    /// Copy a whole item of `bytes` to memory that is not its own but where it lies before that.
    pub fn copy_item(&mut self, from: Address, to: Address, bytes: usize) {
        let mut window = [0; 4096];
        for at in (0..bytes).step_by(window.len()) {
            let part = &mut window[..(bytes - at).min(4096)];
            part.copy_from_slice(self.slice(from.offset() + at, part.len()));
            self.write(to.offset() + at, part);
        }
    }

    /// Write an item whose value is `front`, then the value of another item, which may be overwritten by it, then
    /// `back`.
    pub fn write_joined(
        &mut self,
        address: Address,
        header: &Header,
        key: &[u8],
        parts: (&[u8], (Address, &Header), &[u8]),
    ) {
        let (front, (old_place, old), back) = parts;
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend_from_slice(front);
        scratch.extend_from_slice(self.value(old_place, old, old.bytes()));
        scratch.extend_from_slice(back);
        self.write_item(address, header, key, &scratch);
        self.scratch = scratch;
        self.release_scratch();
    }

    /// Change bytes of a value, but not how many there are.
    pub fn edit_value(
        &mut self,
        address: Address,
        header: &Header,
        change: impl FnOnce(&mut [u8]),
    ) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend_from_slice(self.value(address, header, header.bytes()));
        change(&mut scratch);
        let start = address.offset() + header.bytes() + usize::from(header.key_bytes);
        self.write(start, &scratch);
        self.scratch = scratch;
        self.release_scratch();
    }

    fn release_scratch(&mut self) {
        if self.scratch.capacity() > SCRATCH_KEPT_BYTES {
            self.scratch = Vec::new();
        }
    }

    #[inline]
    pub fn item(&self, address: Address, header: &Header, now: u32) -> Item<'_> {
        Item {
            value: self.value(address, header, header.bytes()),
            flags: header.flags(),
            cas: cas(address, header),
            expires_at: header.expires_at(),
            accessed_at: header.accessed_at(now),
            marks: header.marks(),
        }
    }
}

/// As `==`, which would be a call even for keys of a few words.
#[inline(always)]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    match one.len() {
        length if length != other.len() => false,
        8..=16 => ends_agree::<8>(one, other),
        17..=32 => ends_agree::<16>(one, other),
        _ => one == other,
    }
}

/// Whether the first `N` bytes agree, and the last `N`, which may be partly the same.
#[inline(always)]
fn ends_agree<const N: usize>(one: &[u8], other: &[u8]) -> bool {
    one.first_chunk::<N>() == other.first_chunk() && one.last_chunk::<N>() == other.last_chunk()
}

/// A large value's room is not kept for small ones.
const SCRATCH_KEPT_BYTES: usize = 64 << 10;

impl crate::index::Items for Log {
    #[inline]
    fn is_alive(&self, position: u32) -> bool {
        self.is_alive(self.address(position))
    }

    #[inline]
    fn recency(&self, position: u32) -> u64 {
        self.address(position).bits()
    }

    #[inline]
    fn key_at(&self, position: u32) -> Key<'_> {
        let address = self.address(position);
        let (header, header_bytes) = self.header(address);
        self.hasher.key(self.key(address, &header, header_bytes))
    }

    #[inline]
    fn prefetch(&self, position: u32) {
        self.shared.prefetch(position);
    }
}

#[cfg(test)]
mod tests;

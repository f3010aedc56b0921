use crate::item::{First, Header, PLAIN_BYTES, WINDOW_BYTES};
use crate::key::Key;
use crate::memory::Memory;
use crate::sync::{AtomicU64, Ordering::Relaxed, Ordering::Release, fence};
use crate::{Error, Hasher, Item};
use std::sync::Arc;

/// Bits of a [`Place`] that count bytes within a lap.
const OFFSET_BITS: u32 = 30;

/// Bits of a CAS number that count changes of an item where it lies.
const EDITION_BITS: u32 = u8::BITS;

const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

/// The longest log, in bytes: a little less than a lap counts, so that the tail's offset is one too.
pub(crate) const LOG_BYTES_MAX: usize = OFFSET_MASK as usize - WINDOW_BYTES;

/// A log so long fills huge pages; a shorter one would leave much of its last one unused.
const HUGE_LOG_BYTES: usize = 32 << 20;

/// Where an item begins, for ever: the lap in which it was written above the offset in the log. Those written later
/// are larger. The index keeps the low 32 bits, a [`position`](Self::position): the offset and two bits of the lap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

impl Place {
    #[inline]
    fn new(lap: u64, offset: usize) -> Self {
        Self(lap << OFFSET_BITS | offset as u64)
    }

    /// A place of a memory that is not written round and round.
    #[inline]
    pub fn at(offset: usize) -> Self {
        Self::new(0, offset)
    }

    #[inline]
    pub fn offset(self) -> usize {
        (self.0 & OFFSET_MASK) as usize
    }

    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub fn lap(self) -> u64 {
        self.0 >> OFFSET_BITS
    }

    #[inline]
    pub fn position(self) -> u32 {
        self.0 as u32
    }

    /// The last place before `tail` that has this position.
    #[inline]
    pub fn before(tail: Self, position: u32) -> Self {
        let last = tail.0.wrapping_sub(1);
        let behind = (last as u32).wrapping_sub(position);
        Self(last.wrapping_sub(u64::from(behind)))
    }

    /// The CAS number of an item that begins here, after it was changed here `edition` times: no other item of this
    /// log ever has it.
    #[inline]
    pub fn cas(self, edition: u8) -> u64 {
        self.0 << EDITION_BITS | u64::from(edition)
    }
}

/// What readers share with the writer of a log.
pub(crate) struct Shared {
    pub memory: Memory,
    /// The oldest item, and the next to write, as [`Place`]s.
    head: AtomicU64,
    tail: AtomicU64,
}

impl Shared {
    /// How many bytes of items fit. Behind them is room for the last header's window.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.memory.bytes() - WINDOW_BYTES
    }

    /// Have the item at a position fetched: its header and the bytes behind that, which may lie in two cache lines.
    #[inline]
    pub fn prefetch(&self, position: u32) {
        let offset = Place(u64::from(position)).offset();
        self.memory.prefetch(offset);
        self.memory.prefetch(offset + WINDOW_BYTES - 1);
    }

    #[inline]
    pub fn head(&self) -> Place {
        Place(self.head.load(Relaxed))
    }

    #[inline]
    pub fn tail(&self) -> Place {
        Place(self.tail.load(Relaxed))
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
    near_end: Place,
    scratch: Vec<u8>,
}

impl Log {
    /// Room for `capacity` bytes. The system gives pages as they are first written, so unused room costs nothing.
    pub fn new(capacity: usize, hasher: Hasher) -> Result<Self, Error> {
        let start = Place::new(1, 0);
        Self::between(start, start, near_end(start, capacity), capacity, hasher)
    }

    /// Memory that a [`Heap`](crate::heap::Heap) hands out. Head and tail stand still so that each position is a
    /// [place](Place::at) of the same bits, always alive and never near its end.
    pub fn standing(capacity: usize, hasher: Hasher) -> Result<Self, Error> {
        let (head, tail) = (Place(0), Place(1 << 32));
        Self::between(head, tail, head, capacity, hasher)
    }

    fn between(
        head: Place,
        tail: Place,
        near_end: Place,
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
                head: AtomicU64::new(head.0),
                tail: AtomicU64::new(tail.0),
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
    pub fn tail(&self) -> Place {
        self.shared.tail()
    }

    #[inline]
    pub fn head(&self) -> Place {
        self.shared.head()
    }

    #[inline]
    pub fn place(&self, position: u32) -> Place {
        Place::before(self.tail(), position)
    }

    /// Whether what was written at `place`, which is before the tail, is still there.
    #[inline]
    pub fn is_alive(&self, place: Place) -> bool {
        place >= self.head()
    }

    /// The item that was written first among those that are alive.
    pub fn oldest(&self) -> Option<Place> {
        self.next_at(self.head())
    }

    /// The item that was written after that of `item_bytes` at `place`.
    pub fn behind(&self, place: Place, item_bytes: usize) -> Option<Place> {
        self.next_at(Place(place.0 + item_bytes as u64))
    }

    /// The item that begins at `place`, or at the front if those of an earlier lap end there.
    fn next_at(&self, place: Place) -> Option<Place> {
        let tail = self.tail();
        let next = if place.lap() < tail.lap() && place.offset() >= self.end {
            Place::new(tail.lap(), 0)
        } else {
            place
        };
        (next < tail).then_some(next)
    }

    /// Begin at a lap in which no place has a CAS number up to `cas`. For a log that nothing was written to.
    pub fn begin_after(&mut self, cas: u64) {
        const LAPS: u64 = 1 << (u64::BITS - OFFSET_BITS - EDITION_BITS);
        let lap = (cas >> (OFFSET_BITS + EDITION_BITS)) + 1;
        let start = Place::new(lap.min(LAPS - 1), 0);
        self.move_head(start);
        self.move_tail(start);
    }

    /// Whether the tail will pass an item that is alive within the next quarter of the log.
    #[inline]
    pub fn is_near_its_end(&self, place: Place) -> bool {
        place < self.near_end
    }

    /// The oldest item, where it must go before `bytes` can be claimed. The caller looks at it and calls
    /// [`drop_oldest`](Self::drop_oldest).
    #[inline]
    pub fn oldest_in_the_way(&mut self, bytes: usize) -> Option<Place> {
        if self.tail().offset() + bytes > self.capacity() {
            if self.head().lap() < self.tail().lap() {
                return Some(self.head());
            }
            self.end = self.tail().offset();
            self.move_tail(Place::new(self.tail().lap() + 1, 0));
        }
        if self.head().lap() == self.tail().lap() {
            return None;
        }
        if self.head().offset() >= self.end {
            self.move_head(Place::new(self.tail().lap(), 0));
            return None;
        }
        (self.head().offset() < self.tail().offset() + bytes).then_some(self.head())
    }

    #[inline]
    pub fn drop_oldest(&mut self, item_bytes: usize) {
        let end = self.head().offset() + item_bytes;
        self.move_head(if end < self.end {
            Place::new(self.head().lap(), end)
        } else {
            Place::new(self.tail().lap(), 0)
        });
    }

    #[inline]
    fn move_head(&mut self, head: Place) {
        self.shared.head.store(head.0, Relaxed);
        // Whoever sees what is written over an item sees that the head has passed it.
        fence(Release);
    }

    /// Take the next `bytes`; nothing may be in their way any more. Readers do not look there yet.
    #[inline]
    pub fn claim(&mut self, bytes: usize) -> Place {
        debug_assert!(self.tail().offset() + bytes <= self.capacity());
        let place = self.tail();
        // An item that ends where the log does leaves the tail there: the next one wraps.
        self.move_tail(Place(place.0 + bytes as u64));
        place
    }

    #[inline]
    fn move_tail(&mut self, tail: Place) {
        self.near_end = near_end(tail, self.capacity());
        self.shared.tail.store(tail.0, Release);
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
    pub fn header(&self, place: Place) -> (Header, usize) {
        Header::decode(self.window(place.offset()))
    }

    /// Write a header over one of the same length.
    #[inline]
    pub fn set_header(&mut self, place: Place, header: &Header) {
        let mut bytes = [0; WINDOW_BYTES];
        let length = header.encode(&mut bytes);
        self.write(place.offset(), &bytes[..length]);
    }

    /// Write a plain header over one, with the byte behind it.
    #[inline]
    pub fn set_first(&mut self, place: Place, first: First) {
        self.write(place.offset(), &first.to_bytes());
    }

    /// The item's first bytes, if it is `key`'s.
    #[inline(always)]
    pub fn first_with_key(&self, place: Place, key: &[u8]) -> Option<First> {
        let window = self.window(place.offset());
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
        self.is_key_at(place, key).then_some(first)
    }

    #[inline(never)]
    fn is_key_at(&self, place: Place, key: &[u8]) -> bool {
        let header_bytes = self.header(place).1;
        is_same(self.slice(place.offset() + header_bytes, key.len()), key)
    }

    /// The value of an item with a plain header.
    #[inline]
    pub fn plain_value(&self, place: Place, first: First) -> &[u8] {
        self.slice(
            place.offset() + PLAIN_BYTES + first.key_bytes(),
            first.value_bytes(),
        )
    }

    /// Write over that value one of the same length.
    #[inline]
    pub fn set_plain_value(&mut self, place: Place, first: First, value: &[u8]) {
        debug_assert_eq!(first.value_bytes(), value.len());
        self.write(place.offset() + PLAIN_BYTES + first.key_bytes(), value);
    }

    #[inline]
    pub fn key(&self, place: Place, header: &Header, header_bytes: usize) -> &[u8] {
        self.slice(place.offset() + header_bytes, usize::from(header.key_bytes))
    }

    #[inline]
    pub fn value(&self, place: Place, header: &Header, header_bytes: usize) -> &[u8] {
        let start = place.offset() + header_bytes + usize::from(header.key_bytes);
        self.slice(start, header.value_bytes as usize)
    }

    /// Write a whole item.
    #[inline]
    pub fn write_item(&mut self, place: Place, header: &Header, key: &[u8], value: &[u8]) {
        let mut window = [0; WINDOW_BYTES];
        let header_bytes = header.encode(&mut window);
        let mut at = place.offset();
        for part in [&window[..header_bytes], key, value] {
            self.write(at, part);
            at += part.len();
        }
    }

    /// Write more behind the value of an item with the header `old`.
    pub fn append(&mut self, place: Place, old: &Header, more: &[u8]) {
        self.write(place.offset() + old.item_bytes(), more);
    }

    /// Copy a whole item of `bytes` to memory that is not its own but where it lies before that.
    pub fn copy_item(&mut self, from: Place, to: Place, bytes: usize) {
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
        place: Place,
        header: &Header,
        key: &[u8],
        parts: (&[u8], (Place, &Header), &[u8]),
    ) {
        let (front, (old_place, old), back) = parts;
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend_from_slice(front);
        scratch.extend_from_slice(self.value(old_place, old, old.bytes()));
        scratch.extend_from_slice(back);
        self.write_item(place, header, key, &scratch);
        self.scratch = scratch;
        self.release_scratch();
    }

    /// Change bytes of a value, but not how many there are.
    pub fn edit_value(&mut self, place: Place, header: &Header, change: impl FnOnce(&mut [u8])) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend_from_slice(self.value(place, header, header.bytes()));
        change(&mut scratch);
        let start = place.offset() + header.bytes() + usize::from(header.key_bytes);
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
    pub fn item(&self, place: Place, header: &Header, now: u32) -> Item<'_> {
        Item {
            value: self.value(place, header, header.bytes()),
            flags: header.flags(),
            cas: cas(place, header),
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

#[inline]
pub(crate) fn cas(place: Place, header: &Header) -> u64 {
    header
        .explicit_cas()
        .unwrap_or_else(|| place.cas(header.edition))
}

/// The first place that `tail` will not pass within the next quarter of a log of `capacity` bytes.
#[inline]
pub(crate) fn near_end(tail: Place, capacity: usize) -> Place {
    let quarter_ahead = tail.offset() + capacity / 4;
    if quarter_ahead < capacity {
        Place::new(tail.lap() - 1, quarter_ahead)
    } else {
        Place::new(tail.lap(), quarter_ahead - capacity)
    }
}

impl crate::index::Items for Log {
    #[inline]
    fn is_alive(&self, position: u32) -> bool {
        self.is_alive(self.place(position))
    }

    #[inline]
    fn recency(&self, position: u32) -> u64 {
        self.place(position).0
    }

    #[inline]
    fn key_at(&self, position: u32) -> Key<'_> {
        let place = self.place(position);
        let (header, header_bytes) = self.header(place);
        self.hasher.key(self.key(place, &header, header_bytes))
    }

    #[inline]
    fn prefetch(&self, position: u32) {
        self.shared.prefetch(position);
    }
}

#[cfg(test)]
mod tests;

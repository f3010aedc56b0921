//! The conditions under which the classic and the meta commands change an item.

use mica::{Contents, Entry, Error, Key, Marks, Occupied, Partition};
use wire::memcached::server::{Direction, StoreMode, parse_u64, reply};

// Replies of the text and the meta commands.
pub const TOO_LARGE: &[u8] = b"SERVER_ERROR object too large for cache";
pub const OUT_OF_MEMORY: &[u8] = b"SERVER_ERROR out of memory storing object";
pub const NO_MEMORY: &[u8] = b"SERVER_ERROR out of memory";
pub const NOT_A_NUMBER: &[u8] = b"CLIENT_ERROR cannot increment or decrement non-numeric value";

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored, under this CAS number.
    Stored(u64),
    /// The mode did not allow it.
    NotStored,
    /// The item has another CAS number.
    Exists,
    /// There is no item whose CAS number could be compared.
    NotFound,
    /// It is larger than any item that is kept.
    TooLarge,
    /// Memory is full, and nothing is to be evicted.
    OutOfMemory,
}

impl Outcome {
    /// Whether the value could not be kept, whatever is there.
    #[inline]
    pub fn is_refusal(self) -> bool {
        match self {
            Self::TooLarge | Self::OutOfMemory => true,
            Self::Stored(_) | Self::NotStored | Self::Exists | Self::NotFound => false,
        }
    }
}

/// Store `contents` whatever was there. Where that is refused, what was there goes, as with memcached: a client must not
/// take it for what was just sent.
#[inline]
pub fn set(partition: &mut Partition, key: Key<'_>, now: u32, contents: &Contents<'_>) -> Outcome {
    let outcome = stored(partition.set(key, now, contents));
    if outcome.is_refusal() {
        remove(partition, key, now);
    }
    outcome
}

/// Remove the item; whether there was one.
pub fn remove(partition: &mut Partition, key: Key<'_>, now: u32) -> bool {
    match partition.entry(key, now) {
        Entry::Occupied(entry) => {
            entry.remove();
            true
        }
        Entry::Vacant(_) => false,
    }
}

/// Store `contents` as `mode` says. A `cas` that is not 0 must be the item's; with `invalidate`, an older number is
/// accepted too, and the item marked as stale.
#[inline]
pub fn store(
    entry: Entry<'_, '_>,
    mode: StoreMode,
    contents: Contents<'_>,
    cas: u64,
    invalidate: bool,
) -> Outcome {
    match entry {
        Entry::Occupied(entry) => change(entry, mode, contents, cas, invalidate),
        Entry::Vacant(entry) => match mode {
            StoreMode::Set | StoreMode::Add => stored(entry.insert(contents)),
            StoreMode::Cas => Outcome::NotFound,
            StoreMode::Replace | StoreMode::Append | StoreMode::Prepend => Outcome::NotStored,
        },
    }
}

#[inline]
fn change(
    mut entry: Occupied<'_, '_>,
    mode: StoreMode,
    contents: Contents<'_>,
    cas: u64,
    invalidate: bool,
) -> Outcome {
    let item = entry.item();
    match mode {
        StoreMode::Set | StoreMode::Replace => stored(entry.replace(contents)),
        StoreMode::Add => {
            entry.keep();
            Outcome::NotStored
        }
        StoreMode::Cas if cas == 0 => Outcome::Exists,
        StoreMode::Cas if cas == item.cas => stored(entry.replace(contents)),
        StoreMode::Cas if invalidate && cas < item.cas => {
            let renewing = if item.marks.has(Marks::RENEWING) {
                Marks::RENEWING
            } else {
                Marks::default()
            };
            let contents = Contents {
                expires_at: item.expires_at,
                marks: contents.marks.with(Marks::STALE).with(renewing),
                ..contents
            };
            stored(entry.replace(contents))
        }
        StoreMode::Cas => Outcome::Exists,
        StoreMode::Append | StoreMode::Prepend if cas != 0 && cas != item.cas => Outcome::Exists,
        StoreMode::Append => joined(entry.join(&[], contents.value, contents.cas)),
        StoreMode::Prepend => joined(entry.join(contents.value, &[], contents.cas)),
    }
}

#[inline]
fn stored(result: Result<u64, Error>) -> Outcome {
    match result {
        Ok(cas) => Outcome::Stored(cas),
        Err(Error::Full { .. } | Error::OutOfMemory { .. }) => Outcome::OutOfMemory,
        Err(Error::ItemTooLarge { .. } | Error::KeyTooLong { .. }) => Outcome::TooLarge,
        // Errors of making a partition.
        Err(Error::LogTooSmall { .. } | Error::LogTooLarge { .. }) => Outcome::TooLarge,
    }
}

/// What grew too large to be joined stays as it was, which is not an error by the protocol.
fn joined(result: Result<u64, Error>) -> Outcome {
    match stored(result) {
        Outcome::TooLarge => Outcome::NotStored,
        outcome @ (Outcome::Stored(_)
        | Outcome::OutOfMemory
        | Outcome::NotStored
        | Outcome::Exists
        | Outcome::NotFound) => outcome,
    }
}

/// What became of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It changed.
    Done {
        /// The new number.
        value: u64,
        /// The item's new CAS number.
        cas: u64,
    },
    /// There is no item.
    NotFound,
    /// The item's value is not a number.
    NotANumber,
    /// The item has another CAS number.
    Exists,
    /// It has one digit more, and memory is full.
    OutOfMemory,
}

/// Count the number in an item up or down. A `cas` that is not 0 must be the item's. A number that becomes shorter
/// is padded with spaces, as `protocol.txt` allows and memcached does.
pub fn count(mut entry: Occupied<'_, '_>, direction: Direction, delta: u64, cas: u64) -> Change {
    let item = entry.item();
    if item.value.is_empty() {
        return Change::NotANumber;
    }
    if cas != 0 && cas != item.cas {
        return Change::Exists;
    }
    let Some(before) = parse_u64(item.value) else {
        return Change::NotANumber;
    };
    let value = match direction {
        Direction::Up => before.wrapping_add(delta),
        Direction::Down => before.saturating_sub(delta),
    };
    let mut digits = [0; reply::DECIMAL_BYTES_MAX];
    let start = reply::write_decimal(&mut digits, value);
    let digits = &digits[start..];
    if digits.len() <= item.value.len() {
        let cas = entry.edit(|text| {
            let (number, padding) = text.split_at_mut(digits.len());
            number.copy_from_slice(digits);
            padding.fill(b' ');
        });
        return Change::Done { value, cas };
    }
    let contents = Contents {
        value: digits,
        flags: item.flags,
        expires_at: item.expires_at,
        marks: if item.marks.has(Marks::BINARY_KEY) {
            Marks::BINARY_KEY
        } else {
            Marks::default()
        },
        cas: 0,
    };
    match stored(entry.replace(contents)) {
        Outcome::Stored(cas) => Change::Done { value, cas },
        // An item that is as long as one may be has no room for another digit.
        Outcome::OutOfMemory
        | Outcome::TooLarge
        | Outcome::NotStored
        | Outcome::Exists
        | Outcome::NotFound => Change::OutOfMemory,
    }
}

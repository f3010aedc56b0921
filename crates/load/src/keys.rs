//! What keys look like: a word of four letters and the decimal id, padded with zeros.
use crate::Error;
use crate::config::{KeysConfig, SizeConfig};
use crate::sizes::{MAX_KEY_BYTES, Sizes};

/// What a key names. Each kind has a word of its own, so that a list never meets a string of the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// A value: `user`, as in YCSB.
    User,
    /// A Redis list.
    List,
    /// A Redis sorted set.
    SortedSet,
    /// A Redis set.
    Set,
}

impl KeyKind {
    #[inline]
    fn word(self) -> &'static [u8; 4] {
        match self {
            Self::User => b"user",
            Self::List => b"list",
            Self::SortedSet => b"zset",
            Self::Set => b"sets",
        }
    }
}

/// Digits of the largest 64-bit number.
const MAX_DIGITS: usize = 20;
/// Digits that are enough for nearly all ids, and quickly written.
const COMMON_DIGITS: usize = 16;
const TOO_LARGE_FOR_COMMON_DIGITS: u64 = 10_u64.pow(COMMON_DIGITS as u32);
const WORD_BYTES: usize = 4;

/// Writes keys.
#[derive(Debug, Clone)]
pub(crate) struct KeyFormat {
    sizes: Sizes,
}

impl KeyFormat {
    /// Refuses a size at which keys cannot all be different, or are too long for memcached.
    pub(crate) fn new(config: &KeysConfig, seed: u64) -> Result<Self, Error> {
        let digits = (config.count - 1).checked_ilog10().unwrap_or(0) as usize + 1;
        let least = WORD_BYTES + digits;
        if let SizeConfig::Fixed { bytes } = config.size
            && !(least..=MAX_KEY_BYTES).contains(&bytes)
        {
            return Err(Error::Config(format!(
                "keys.size.bytes must be between {least} (so that {} keys differ) and {MAX_KEY_BYTES}, not {bytes}",
                config.count
            )));
        }
        // Room for inserts to make the key space a thousand times as large.
        let roomy = (least + 3).min(WORD_BYTES + MAX_DIGITS);
        Ok(Self {
            sizes: Sizes::keys(config.size, seed, roomy),
        })
    }

    /// The longest key, in bytes.
    pub(crate) fn most(&self) -> usize {
        self.sizes.most().min(MAX_KEY_BYTES)
    }

    /// The id past the largest one whose key differs from all others'.
    pub(crate) fn capacity(&self) -> u64 {
        let least = match self.sizes {
            Sizes::Drawn { least, .. } => least,
            sizes => sizes.of(0),
        };
        let digits = u32::try_from(least - WORD_BYTES).unwrap_or(u32::MAX);
        10_u64.checked_pow(digits).unwrap_or(u64::MAX)
    }

    /// Append the key of `id`.
    #[inline]
    pub(crate) fn push(&self, out: &mut Vec<u8>, kind: KeyKind, id: u64) {
        let mut buffer = [0; MAX_KEY_BYTES];
        out.extend_from_slice(self.write(&mut buffer, kind, id));
    }

    /// The key of `id`, in `buffer`.
    #[inline]
    pub(crate) fn write<'a>(
        &self,
        buffer: &'a mut [u8; MAX_KEY_BYTES],
        kind: KeyKind,
        id: u64,
    ) -> &'a [u8] {
        let key = &mut buffer[..self.sizes.of(id).min(MAX_KEY_BYTES)];
        let (word, number) = key.split_at_mut(WORD_BYTES);
        word.copy_from_slice(kind.word());
        if let Some((zeros, digits)) = number.split_last_chunk_mut::<COMMON_DIGITS>()
            && id < TOO_LARGE_FOR_COMMON_DIGITS
        {
            zeros.fill(b'0');
            write_common_digits(digits, id);
        } else {
            write_padded(number, id);
        }
        key
    }

    /// A request that holds the key of one id, of which only the key's digits change from id to id; `None` where keys
    /// are of several sizes or too short for this.
    pub(crate) fn template(&self, push: impl FnOnce(&mut Vec<u8>, &[u8])) -> Option<KeyTemplate> {
        let Sizes::Fixed(bytes) = self.sizes else {
            return None;
        };
        if bytes < WORD_BYTES + COMMON_DIGITS {
            return None;
        }
        let mut buffer = [0; MAX_KEY_BYTES];
        let key = self.write(&mut buffer, KeyKind::User, 0);
        let mut request = Vec::new();
        push(&mut request, key);
        let start = memchr::memmem::find(&request, key)?;
        Some(KeyTemplate {
            digits: start + bytes - COMMON_DIGITS,
            request: request.into(),
        })
    }

    /// The key of `id`, for messages.
    pub(crate) fn text(&self, kind: KeyKind, id: u64) -> String {
        let mut out = Vec::new();
        self.push(&mut out, kind, id);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// A request whose key changes.
#[derive(Debug, Clone)]
pub(crate) struct KeyTemplate {
    request: Box<[u8]>,
    /// Where the last digits of the key begin.
    digits: usize,
}

impl KeyTemplate {
    /// The request with the key of `id`; `None` for the largest ids.
    #[inline]
    pub(crate) fn with(&mut self, id: u64) -> Option<&[u8]> {
        if id >= TOO_LARGE_FOR_COMMON_DIGITS {
            return None;
        }
        let digits = self.request[self.digits..].first_chunk_mut::<COMMON_DIGITS>()?;
        write_common_digits(digits, id);
        Some(&self.request)
    }
}

#[inline]
fn write_common_digits(digits: &mut [u8; COMMON_DIGITS], number: u64) {
    let (high, low) = digits.split_at_mut(8);
    high.copy_from_slice(&eight_digits(number / 100_000_000));
    low.copy_from_slice(&eight_digits(number % 100_000_000));
}

/// Fill `place` with the last digits of `number`, padded with zeros.
fn write_padded(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// `number`, below 10^8, as eight digits: splits into halves of four, two and one digits in parallel, in lanes of
/// one 64-bit word, and divides by multiplying with a reciprocal that is exact in the lane's range.
#[inline]
fn eight_digits(number: u64) -> [u8; 8] {
    // Two lanes of 32 bits, below 10^4 each; the first digits come first in memory.
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    // Four lanes of 16 bits, below 100 each.
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    // Eight lanes of 8 bits, below 10 each.
    let ones = tens | ((twos - tens * 10) << 8);
    (ones | 0x3030_3030_3030_3030).to_le_bytes()
}

#[cfg(test)]
mod tests;

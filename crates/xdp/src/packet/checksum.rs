/// A sum in ones' complement of 16-bit numbers (RFC 1071), not yet folded, in the machine's order of bytes: the order
/// does not matter to the sum as long as the result is stored the same way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum(u64);

impl Sum {
    /// And these bytes, at an even distance from the start; a last odd one counts as if a zero followed.
    #[must_use]
    #[inline]
    pub fn and(self, bytes: &[u8]) -> Self {
        // 32 bits at a time into 64: no carry is lost in anything shorter than 16 GiB, and compilers make vectors of it.
        let (words, rest) = bytes.as_chunks::<4>();
        let mut sum = self.0;
        for word in words {
            sum += u64::from(u32::from_ne_bytes(*word));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Self(sum + u64::from(u32::from_ne_bytes(last)))
    }

    /// And a number as 32 bits.
    #[must_use]
    #[inline]
    pub fn and_number(self, number: u32) -> Self {
        self.and(&number.to_be_bytes())
    }

    /// The sum of 16 bits, as it is stored.
    #[must_use]
    #[inline]
    pub fn folded(self) -> [u8; 2] {
        let mut sum = self.0;
        sum = (sum & 0xffff_ffff) + (sum >> 32);
        sum = (sum & 0xffff_ffff) + (sum >> 32);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        (sum as u16).to_ne_bytes()
    }

    /// The checksum, as it is stored: zero over bytes that hold a right one.
    #[must_use]
    #[inline]
    pub fn finish(self) -> [u8; 2] {
        self.folded().map(|byte| !byte)
    }
}

#[cfg(test)]
mod tests;

use crate::random::mix;

/// A fixed permutation of the numbers below a bound, to scatter popular ranks over the key space.
///
/// YCSB hashes ranks and takes the remainder, which merges some keys and leaves others out; a permutation keeps the
/// distribution exact. It is a bijection of the next power of two, walked until it lands below the bound (cycle
/// walking: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002), so in two steps on average at most.
#[derive(Debug, Clone)]
pub(crate) struct Scramble {
    addends: [u64; 3],
}

impl Scramble {
    pub(crate) fn new(seed: u64) -> Self {
        let first = mix(seed ^ 0x5363_7261_6d62_6c65);
        Self {
            addends: [first, mix(first), mix(mix(first))],
        }
    }

    /// The place of `number`, which must be below `bound`.
    #[inline]
    pub(crate) fn permute(&self, number: u64, bound: u64) -> u64 {
        let bits = u64::BITS - (bound - 1).leading_zeros();
        if bits == 0 {
            return 0;
        }
        let mask = u64::MAX >> (u64::BITS - bits);
        let shift = bits.div_ceil(2);
        let mut place = number;
        loop {
            // Each step is a bijection of `bits` bits: adding, multiplying by an odd number, xor with a shift.
            for addend in self.addends {
                place = place
                    .wrapping_add(addend)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                    & mask;
                place ^= place >> shift;
            }
            if place < bound {
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests;

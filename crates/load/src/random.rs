//! Seeded randomness: the same seed asks the same questions on every machine.
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The stream of one worker in one phase.
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// A stream of its own for each combination of `seed` and `parts`.
    pub(crate) fn new(seed: u64, parts: [u64; 2]) -> Self {
        let seed = parts.iter().fold(mix(seed), |state, &part| {
            mix(state.wrapping_add(mix(part.wrapping_add(1))))
        });
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform over [0, 1), in steps of 2^-53.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        to_unit(self.next())
    }

    /// Uniform over the integers below `bound`, which must not be 0, without bias (Lemire, "Fast Random Integer
    /// Generation in an Interval", 2019).
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.next()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.next()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }
}

/// A bijection of 64-bit numbers in which every bit of the result depends on every bit of `number` (the finalizer
/// of SplitMix64: Steele et al., "Fast Splittable Pseudorandom Number Generators", 2014).
#[inline]
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The top 53 bits of `bits` as a number in [0, 1).
#[inline]
pub(crate) fn to_unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests;

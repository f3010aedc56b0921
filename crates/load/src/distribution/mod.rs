//! Which key an operation falls on.
mod scramble;
mod zipfian;

use crate::config::DistributionConfig;
use crate::random::Random;
use scramble::Scramble;
use zipfian::Zipfian;

/// Draws key ids below a bound that may grow from draw to draw.
pub(crate) enum Chooser {
    Uniform,
    Zipfian(Zipfian),
    ScrambledZipfian(Zipfian, Scramble),
    Latest(Zipfian),
    /// A share of the keys is drawn by a share of the operations; the hot keys are the first ones.
    Hotspot {
        hot_keys: f64,
        hot_operations: f64,
    },
    /// Every `stride`-th key: one of `stride` workers that together visit each key once in a round.
    Sequential {
        next: u64,
        stride: u64,
    },
}

impl Chooser {
    /// For worker number `worker` of `workers`.
    pub(crate) fn new(
        config: &DistributionConfig,
        seed: u64,
        worker: usize,
        workers: usize,
    ) -> Self {
        match *config {
            DistributionConfig::Uniform {} => Self::Uniform,
            DistributionConfig::Zipfian { theta, scrambled } if scrambled => {
                Self::ScrambledZipfian(Zipfian::new(theta), Scramble::new(seed))
            }
            DistributionConfig::Zipfian { theta, .. } => Self::Zipfian(Zipfian::new(theta)),
            DistributionConfig::Latest { theta } => Self::Latest(Zipfian::new(theta)),
            DistributionConfig::Sequential {} => Self::Sequential {
                next: worker as u64,
                stride: workers as u64,
            },
            DistributionConfig::Hotspot {
                hot_keys,
                hot_operations,
            } => Self::Hotspot {
                hot_keys,
                hot_operations,
            },
        }
    }

    /// Draw a key below `count`, which must not be 0.
    #[inline]
    pub(crate) fn draw(&mut self, random: &mut Random, count: u64) -> u64 {
        match self {
            Self::Uniform => random.below(count),
            Self::Zipfian(zipfian) => zipfian.draw(random, count) - 1,
            Self::ScrambledZipfian(zipfian, scramble) => {
                scramble.permute(zipfian.draw(random, count) - 1, count)
            }
            Self::Latest(zipfian) => count - zipfian.draw(random, count),
            Self::Hotspot {
                hot_keys,
                hot_operations,
            } => {
                let hot = ((count as f64 * *hot_keys) as u64).clamp(1, count);
                if hot == count || random.unit() < *hot_operations {
                    random.below(hot)
                } else {
                    hot + random.below(count - hot)
                }
            }
            Self::Sequential { next, stride } => {
                let key = *next % count;
                *next += *stride;
                key
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

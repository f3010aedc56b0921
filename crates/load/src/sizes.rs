//! How long keys and values are: fixed, or as in Facebook's pools (Atikoglu et al., "Workload Analysis of a Large-Scale
//! Key-Value Store", SIGMETRICS 2012): ETC by the fits of section 5, the others by what else is published.
use crate::config::SizeConfig;
use crate::random::{mix, to_unit};
use pools::{Piece, quantile};

mod pools;

/// The longest key, in bytes: memcached's limit.
pub(crate) const MAX_KEY_BYTES: usize = wire::memcached::client::MAX_KEY_BYTES;
/// The longest value that ETC sizes give, in bytes: memcached's default limit.
pub(crate) const MAX_ETC_VALUE_BYTES: usize = 1 << 20;

/// A size for each id, the same every time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sizes {
    Fixed(usize),
    Drawn {
        from: Distribution,
        seed: u64,
        least: usize,
        most: usize,
    },
}

/// What sizes are drawn from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Distribution {
    EtcKeys,
    EtcValues,
    Pieces(&'static [Piece]),
}

impl Sizes {
    /// Sizes of keys; `least` is what a key needs to be unique.
    pub(crate) fn keys(config: SizeConfig, seed: u64, least: usize) -> Self {
        Self::new(config, mix(seed ^ 1), least, |(keys, _)| keys)
    }

    /// Sizes of values.
    pub(crate) fn values(config: SizeConfig, seed: u64) -> Self {
        Self::new(config, mix(seed ^ 2), 0, |(_, values)| values)
    }

    /// `side` chooses from a pool's distributions of keys and of values.
    fn new(
        config: SizeConfig,
        seed: u64,
        least: usize,
        side: fn((Distribution, Distribution)) -> Distribution,
    ) -> Self {
        use Distribution::{EtcKeys, EtcValues, Pieces};
        let from = side(match config {
            SizeConfig::Fixed { bytes } => return Self::Fixed(bytes),
            SizeConfig::Etc {} => (EtcKeys, EtcValues),
            SizeConfig::Usr {} => (Pieces(pools::USR_KEYS), Pieces(pools::USR_VALUES)),
            SizeConfig::App {} => (Pieces(pools::APP_KEYS), Pieces(pools::APP_VALUES)),
            SizeConfig::Var {} => (Pieces(pools::VAR_KEYS), Pieces(pools::VAR_VALUES)),
            SizeConfig::Sys {} => (Pieces(pools::SYS_KEYS), Pieces(pools::SYS_VALUES)),
        });
        Self::Drawn {
            from,
            seed,
            least,
            most: from.most().max(least),
        }
    }

    /// The size that `id` has, in bytes.
    #[inline]
    pub(crate) fn of(&self, id: u64) -> usize {
        match *self {
            Self::Fixed(bytes) => bytes,
            Self::Drawn {
                from,
                seed,
                least,
                most,
            } => {
                let unit = to_unit(mix(id ^ seed));
                let bytes = match from {
                    Distribution::EtcKeys => etc_key_bytes(unit),
                    Distribution::EtcValues => etc_value_bytes(unit),
                    Distribution::Pieces(pieces) => quantile(pieces, unit),
                };
                bytes.clamp(least, most)
            }
        }
    }

    /// The largest size that any id can have, in bytes.
    pub(crate) fn most(&self) -> usize {
        match *self {
            Self::Fixed(bytes) => bytes,
            Self::Drawn { most, .. } => most,
        }
    }
}

impl Distribution {
    fn most(self) -> usize {
        match self {
            Self::EtcKeys => MAX_KEY_BYTES,
            Self::EtcValues => MAX_ETC_VALUE_BYTES,
            Self::Pieces(pieces) => pools::most(pieces),
        }
    }
}

/// Generalised extreme value distribution with mu = 30.7984, sigma = 8.20449, k = 0.078688, by inversion of its
/// cumulative distribution F(x) = exp(-(1 + k (x - mu) / sigma)^(-1/k)).
fn etc_key_bytes(unit: f64) -> usize {
    const MU: f64 = 30.7984;
    const SIGMA: f64 = 8.20449;
    const K: f64 = 0.078_688;
    let exponential = -(unit.max(f64::MIN_POSITIVE)).ln();
    // Saturates at 0 and far above the longest key.
    (MU + SIGMA / K * (exponential.powf(-K) - 1.0)).round() as usize
}

/// The paper's table of the probabilities of values of 0 to 14 bytes.
const SHORT_VALUES: [f64; 15] = [
    0.00536, 0.00047, 0.17820, 0.09239, 0.00018, 0.02740, 0.00065, 0.00606, 0.00023, 0.00837,
    0.00837, 0.08989, 0.00092, 0.00326, 0.01980,
];

/// The table for up to 14 bytes; above, the generalised Pareto distribution with theta = 0, sigma = 214.476,
/// k = 0.348238, conditional on being longer, by inversion of its survival function S(x) = (1 + k x / sigma)^(-1/k).
fn etc_value_bytes(unit: f64) -> usize {
    const SIGMA: f64 = 214.476;
    const K: f64 = 0.348_238;
    let mut below = 0.0;
    for (bytes, probability) in SHORT_VALUES.iter().enumerate() {
        below += probability;
        if unit < below {
            return bytes;
        }
    }
    let shortest = SHORT_VALUES.len() as f64;
    let survival_of_shortest = (1.0 + K * shortest / SIGMA).powf(-1.0 / K);
    // What is left of `unit` is uniform: from 1 (the shortest) down to 0 (the longest).
    let survival = (1.0 - unit) / (1.0 - below) * survival_of_shortest;
    let bytes = SIGMA / K * (survival.powf(-K) - 1.0);
    (bytes as usize).clamp(SHORT_VALUES.len(), MAX_ETC_VALUE_BYTES)
}

#[cfg(test)]
mod tests;

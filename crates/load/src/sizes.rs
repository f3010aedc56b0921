//! How long keys and values are: fixed, or as in Facebook's ETC pool (Atikoglu et al., "Workload Analysis of a
//! Large-Scale Key-Value Store", SIGMETRICS 2012, section 5).
use crate::config::SizeConfig;
use crate::random::{mix, to_unit};

/// The longest key, in bytes: memcached's limit.
pub(crate) const MAX_KEY_BYTES: usize = wire::memcached::client::MAX_KEY_BYTES;
/// The longest value that ETC sizes give, in bytes: memcached's default limit.
pub(crate) const MAX_ETC_VALUE_BYTES: usize = 1 << 20;

/// A size for each id, the same every time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sizes {
    Fixed(usize),
    EtcKeys { seed: u64, least: usize },
    EtcValues { seed: u64 },
}

impl Sizes {
    /// Sizes of keys; `least` is what a key needs to be unique.
    pub(crate) fn keys(config: SizeConfig, seed: u64, least: usize) -> Self {
        match config {
            SizeConfig::Fixed { bytes } => Self::Fixed(bytes),
            SizeConfig::Etc {} => Self::EtcKeys {
                seed: mix(seed ^ 1),
                least,
            },
        }
    }

    /// Sizes of values.
    pub(crate) fn values(config: SizeConfig, seed: u64) -> Self {
        match config {
            SizeConfig::Fixed { bytes } => Self::Fixed(bytes),
            SizeConfig::Etc {} => Self::EtcValues {
                seed: mix(seed ^ 2),
            },
        }
    }

    /// The size that `id` has, in bytes.
    #[inline]
    pub(crate) fn of(&self, id: u64) -> usize {
        match *self {
            Self::Fixed(bytes) => bytes,
            Self::EtcKeys { seed, least } => {
                etc_key_bytes(to_unit(mix(id ^ seed))).clamp(least, MAX_KEY_BYTES)
            }
            Self::EtcValues { seed } => etc_value_bytes(to_unit(mix(id ^ seed))),
        }
    }

    /// The largest size that any id can have, in bytes.
    pub(crate) fn most(&self) -> usize {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::EtcKeys { .. } => MAX_KEY_BYTES,
            Self::EtcValues { .. } => MAX_ETC_VALUE_BYTES,
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
mod tests {
    use super::*;
    use crate::distribution::tests::chi_square;

    const IDS: u64 = 1_000_000;

    fn etc_values() -> Sizes {
        Sizes::values(SizeConfig::Etc {}, 3)
    }

    /// How many ids have a size in each cell; cell i ends before `edges[i]`, the last has no end.
    fn histogram(sizes: &Sizes, edges: &[f64]) -> Vec<u64> {
        let mut counts = vec![0; edges.len() + 1];
        for id in 0..IDS {
            let size = sizes.of(id) as f64;
            counts[edges.partition_point(|&edge| edge <= size)] += 1;
        }
        counts
    }

    #[test]
    fn etc_keys_follow_the_generalised_extreme_value_distribution() {
        let sizes = Sizes::keys(SizeConfig::Etc {}, 3, 11);
        let below =
            |x: f64| (-(1.0 + 0.078_688 * (x - 30.7984) / 8.204_49).powf(-1.0 / 0.078_688)).exp();
        // Sizes are rounded, so a cell from 20 bytes on begins at 19.5.
        let edges: Vec<f64> = (14..100).map(f64::from).collect();
        let mut probabilities: Vec<f64> = edges.iter().map(|edge| below(edge - 0.5)).collect();
        probabilities.push(1.0);
        for index in (1..probabilities.len()).rev() {
            probabilities[index] -= probabilities[index - 1];
        }
        let (statistic, critical) = chi_square(&histogram(&sizes, &edges), &probabilities);
        assert!(statistic < critical, "{statistic} > {critical}");
    }

    #[test]
    fn etc_values_follow_the_table_and_then_the_generalised_pareto_distribution() {
        let survival = |x: f64| (1.0 + 0.348_238 * x / 214.476_f64).powf(-1.0 / 0.348_238);
        let mut edges: Vec<f64> = (1..=15).map(f64::from).collect();
        edges.extend([
            20.0, 50.0, 100.0, 200.0, 300.0, 500.0, 1000.0, 2000.0, 5000.0, 20_000.0,
        ]);
        let short: f64 = SHORT_VALUES.iter().sum();
        let scale = (1.0 - short) / survival(15.0);
        let mut probabilities = SHORT_VALUES.to_vec();
        for pair in edges[14..].windows(2) {
            probabilities.push((survival(pair[0]) - survival(pair[1])) * scale);
        }
        probabilities.push(survival(20_000.0) * scale);
        let (statistic, critical) = chi_square(&histogram(&etc_values(), &edges), &probabilities);
        assert!(statistic < critical, "{statistic} > {critical}");
    }

    #[test]
    fn sizes_stay_in_bounds_at_the_ends_of_the_distributions() {
        let last = 1.0 - f64::EPSILON / 2.0;
        assert_eq!(etc_value_bytes(0.0), 0);
        assert_eq!(etc_value_bytes(last), MAX_ETC_VALUE_BYTES);
        assert_eq!(Sizes::keys(SizeConfig::Etc {}, 1, 14).most(), 250);
        for unit in [0.0, last] {
            let sizes = etc_key_bytes(unit).clamp(14, MAX_KEY_BYTES);
            assert!((14..=250).contains(&sizes));
        }
    }

    #[test]
    fn an_id_keeps_its_size_and_a_seed_changes_it() {
        let other = Sizes::values(SizeConfig::Etc {}, 4);
        assert!((0..100).all(|id| etc_values().of(id) == etc_values().of(id)));
        assert!((0..100).any(|id| etc_values().of(id) != other.of(id)));
    }
}

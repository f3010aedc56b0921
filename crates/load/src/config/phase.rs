use super::{Protocol, parse};
use crate::Error;
use crate::operation::Operation;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A part of a run with one behaviour.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseConfig {
    /// What to call it in the result.
    pub name: String,
    /// The share of each operation; they add up to 1.
    pub operations: BTreeMap<Operation, f64>,
    /// Which keys the operations fall on.
    pub distribution: DistributionConfig,
    /// When the next operation starts.
    #[serde(rename = "loop")]
    pub control: LoopConfig,
    /// When to stop, in seconds.
    #[serde(default)]
    pub duration_seconds: Option<f64>,
    /// After how many operations to stop.
    #[serde(default)]
    pub operation_count: Option<u64>,
    /// How often to report, in seconds.
    pub interval_seconds: f64,
    /// Whether to keep histograms of latency.
    #[serde(default = "yes")]
    pub record_latency: bool,
}

/// Which keys operations fall on.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DistributionConfig {
    /// Every key alike.
    Uniform {},
    /// The key of rank r with a probability proportional to r^-theta.
    Zipfian {
        /// The exponent: 0 is uniform, YCSB takes 0.99.
        theta: f64,
        /// Scatter the ranks over the key space; otherwise rank r is key r.
        #[serde(default)]
        scrambled: bool,
    },
    /// The r-th newest key with a probability proportional to r^-theta.
    Latest {
        /// The exponent.
        theta: f64,
    },
    /// One key after the other, again from the first after the last.
    Sequential {},
    /// A share of the operations on a share of the keys.
    Hotspot {
        /// Share of the keys that are hot.
        hot_keys: f64,
        /// Share of the operations that fall on them.
        hot_operations: f64,
    },
}

/// When the next operation starts.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LoopConfig {
    /// When an earlier one has completed.
    Closed {},
    /// At times fixed beforehand, whatever the server does.
    Open {
        /// How they are spaced.
        arrivals: ArrivalKind,
        /// How many there are in a second, on average.
        rate_per_second: f64,
    },
}

/// How the starts of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalKind {
    /// Evenly.
    Constant,
    /// At random, independently of each other.
    Poisson,
}

fn yes() -> bool {
    true
}

impl PhaseConfig {
    /// Parse and check.
    pub fn from_json(json: &str, protocol: Protocol) -> Result<Self, Error> {
        let config: Self = parse("phase", json)?;
        config.check(protocol)?;
        Ok(config)
    }

    /// Operations that there are some of.
    pub(crate) fn drawn_operations(&self) -> impl Iterator<Item = Operation> {
        let shares = self.operations.iter();
        shares
            .filter(|&(_, &share)| share > 0.0)
            .map(|(&operation, _)| operation)
    }

    /// Check what has no expiry: Redis's commands on data structures.
    pub fn check_for_expiry(&self) -> Result<(), Error> {
        let lasting = self.operations.keys().find(|one| one.needs_redis());
        require!(
            lasting.is_none(),
            "phase {}: expire_seconds must be 0, as {} has none",
            self.name,
            lasting.map_or("", |operation| operation.name())
        );
        Ok(())
    }

    /// Check what datagrams cannot do.
    pub fn check_for_datagrams(&self) -> Result<(), Error> {
        let can = |operation: &Operation| {
            matches!(
                operation,
                Operation::Read | Operation::Update | Operation::Insert
            )
        };
        require!(
            self.operations.keys().all(can),
            "over udp and xdp, operations must be of read, update and insert"
        );
        Ok(())
    }

    fn check(&self, protocol: Protocol) -> Result<(), Error> {
        let Self { name, .. } = self;
        for (operation, share) in &self.operations {
            require!(
                (0.0..=1.0).contains(share),
                "phase {name}: the fraction of {operation} must be between 0 and 1, not {share}"
            );
            require!(
                !operation.needs_redis() || protocol == Protocol::Resp,
                "phase {name}: {operation} is a command of Redis; memcached has none like it"
            );
        }
        let sum: f64 = self.operations.values().sum();
        require!(
            (sum - 1.0).abs() < 1e-6,
            "phase {name}: the fractions of the operations must add up to 1, not {sum}"
        );
        self.check_distribution()?;
        if let LoopConfig::Open {
            rate_per_second, ..
        } = self.control
        {
            require!(
                rate_per_second > 0.0 && rate_per_second <= 1e9,
                "phase {name}: rate_per_second must be positive and at most 1e9, not {rate_per_second}"
            );
        }
        require!(
            self.duration_seconds.is_some() || self.operation_count.is_some(),
            "phase {name} would never end: give duration_seconds or operation_count"
        );
        if let Some(duration) = self.duration_seconds {
            require!(
                duration > 0.0 && duration <= 1e7,
                "phase {name}: duration_seconds must be positive and at most 1e7, not {duration}"
            );
        }
        if let Some(count) = self.operation_count {
            require!(
                (1..=1_000_000_000_000_000).contains(&count),
                "phase {name}: operation_count must be between 1 and 1e15, not {count}"
            );
        }
        require!(
            (0.001..=1e6).contains(&self.interval_seconds),
            "phase {name}: interval_seconds must be between 0.001 and 1e6, not {}",
            self.interval_seconds
        );
        Ok(())
    }

    fn check_distribution(&self) -> Result<(), Error> {
        let Self { name, .. } = self;
        match self.distribution {
            DistributionConfig::Zipfian { theta, .. } | DistributionConfig::Latest { theta } => {
                require!(
                    (0.0..=100.0).contains(&theta),
                    "phase {name}: theta must be between 0 and 100, not {theta}"
                );
            }
            DistributionConfig::Hotspot {
                hot_keys,
                hot_operations,
            } => {
                require!(
                    hot_keys > 0.0 && hot_keys <= 1.0,
                    "phase {name}: hot_keys must be a fraction above 0 and at most 1, not {hot_keys}"
                );
                require!(
                    (0.0..=1.0).contains(&hot_operations),
                    "phase {name}: hot_operations must be between 0 and 1, not {hot_operations}"
                );
            }
            DistributionConfig::Uniform {} | DistributionConfig::Sequential {} => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
